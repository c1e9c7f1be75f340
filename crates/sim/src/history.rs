//! What clients did and saw: the only thing that checkers look at.
//!
//! Events stand in the order in which they happened, by one clock. A call has an event when it is
//! made and one when it is answered; between the two it may take effect at any moment, and after
//! an unknown answer even later.

use std::sync::Arc;
use std::time::Duration;

use model::{MessageId, Timestamp};

/// Events in order.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The events; their times never go back.
    pub events: Vec<Event>,
    /// Whether in the end all faults were over, and consumers acknowledged whatever came until
    /// nothing came any more. Only then can something be missing.
    pub drained: bool,
}

/// Something that a client did or saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, by the one clock of the test.
    pub at: Timestamp,
    /// What.
    pub what: What,
}

/// An ordering key; empty for none.
pub type Key = Arc<str>;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);
    };
}
number! {
    /// One subscription, from its creation to its deletion.
    Subscription
}
number! {
    /// One open pull of one client.
    Session
}
number! {
    /// One call of a client.
    Call
}
number! {
    /// One delivery of one message, as its ack id names it. Grows in the order of sending.
    DeliveryNumber
}
number! {
    /// What a publisher put into a message: different in each, a retry included.
    Value
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A subscription was created: the answer is there.
    Created {
        /// The subscription.
        subscription: Subscription,
        /// Whether messages of a key come in order.
        ordered: bool,
        /// Whether delivery is exactly-once.
        exactly_once: bool,
        /// Whether a message that failed may wait, or go elsewhere: the subscription has a retry or
        /// dead-letter policy.
        may_wait: bool,
    },
    /// A subscription is about to be deleted: it promises nothing from here on.
    Deleted {
        /// The subscription.
        subscription: Subscription,
    },
    /// A publish was sent.
    PublishInvoked {
        /// Names the call.
        call: Call,
        /// The key of all its messages.
        key: Key,
        /// The messages.
        values: Vec<Value>,
    },
    /// A publish was answered OK.
    PublishOk {
        /// The call.
        call: Call,
        /// One for each message.
        ids: Vec<MessageId>,
    },
    /// A publish was refused: nothing is stored, now or later.
    PublishFailed {
        /// The call.
        call: Call,
    },
    /// A session begins, with nothing outstanding.
    Opened {
        /// The session.
        session: Session,
        /// Its subscription.
        subscription: Subscription,
        /// Whether it is a stream; else it ends with its first messages.
        stream: bool,
        /// How many messages it lets the server have outstanding.
        messages_max: u32,
    },
    /// Whether a session has credit for another message, as far as it knows.
    Credit {
        /// The session.
        session: Session,
        /// Whether it has.
        free: bool,
    },
    /// A session ended.
    Closed {
        /// The session.
        session: Session,
    },
    /// A delivery never reached the client, and the server knows it.
    Returned {
        /// The delivery.
        delivery: DeliveryNumber,
    },
    /// A message was sent to a client.
    Delivered(Delivered),
    /// An ack was sent.
    AckInvoked {
        /// Names the call.
        call: Call,
        /// What is acknowledged.
        delivery: DeliveryNumber,
    },
    /// An ack was answered OK.
    AckOk {
        /// The call.
        call: Call,
    },
    /// An ack was refused.
    AckFailed {
        /// The call.
        call: Call,
    },
    /// A nack was sent.
    NackInvoked {
        /// Names the call.
        call: Call,
        /// What is given back.
        delivery: DeliveryNumber,
    },
    /// A nack was answered OK.
    NackOk {
        /// The call.
        call: Call,
    },
    /// More time was asked for.
    ExtendInvoked {
        /// Names the call.
        call: Call,
        /// The delivery.
        delivery: DeliveryNumber,
        /// Its new time from now.
        ack_deadline: Duration,
    },
    /// More time was given.
    ExtendOk {
        /// The call.
        call: Call,
    },
    /// A message was stored in the dead-letter topic instead of being delivered on.
    DeadLettered {
        /// The subscription that it came from.
        subscription: Subscription,
        /// The message.
        message: MessageId,
    },
    /// An operator is about to move a key: it may stand still from here on.
    Moving {
        /// The key.
        key: Key,
    },
    /// The key has a place again, another one or the same. What was on its way to a client meanwhile
    /// may be lost, and is leased all the same.
    Moved {
        /// The key.
        key: Key,
    },
    /// The server serves nobody from here on: it crashed, or its leadership is over.
    Down,
    /// The server serves again.
    Up,
}

/// A message on its way to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// Names the delivery.
    pub delivery: DeliveryNumber,
    /// The subscription.
    pub subscription: Subscription,
    /// The session.
    pub session: Session,
    /// The message's key.
    pub key: Key,
    /// The message.
    pub message: MessageId,
    /// What is in it.
    pub value: Value,
    /// How long the client has until it must acknowledge or extend.
    pub ack_deadline: Duration,
}
