//! What a consumer says about the messages that it has.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use proto::pubsub::subscriber_client::SubscriberClient;
use proto::pubsub::{AcknowledgeRequest, ModifyAckDeadlineRequest};
use tokio::time::sleep;

use super::{Endpoints, Subscribed, timed};
use crate::chance::Chance;
use crate::history::{Call, Delivered, Session, What};
use crate::nodes::habits::Habits;
use crate::nodes::recorder::Recorder;

/// The most that a consumer waits before it gives a message back.
const NACK_AFTER_MAX: Duration = Duration::from_millis(500);
/// Ack deadlines that a consumer asks for. The longest is over before a drained cluster has been
/// quiet for long enough.
const EXTENSIONS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(13));

/// What a consumer does with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Acknowledges it at once.
    Ack,
    /// Gives it back after a while.
    Nack(Duration),
    /// Nothing.
    Forget,
    /// Asks for so much time, and acknowledges after a while.
    Extend(Duration, Duration),
}

impl Act {
    pub(super) fn choose(habits: &Habits, chance: &mut Chance) -> Self {
        let dice = chance.below(100);
        let mut below = 0;
        let mut is = |percent: u64| {
            below += percent;
            dice < below
        };
        if is(habits.nack) {
            Act::Nack(chance.up_to(NACK_AFTER_MAX))
        } else if is(habits.forget) {
            Act::Forget
        } else if is(habits.extend) {
            let deadline = chance.between(EXTENSIONS.0, EXTENSIONS.1);
            let deadline = Duration::from_secs(deadline.as_secs());
            Act::Extend(deadline, chance.up_to(2 * deadline))
        } else {
            Act::Ack
        }
    }
}

/// A message that a consumer has, and the name that the server knows it by.
pub(super) struct Held {
    pub(super) ack_id: String,
    pub(super) delivered: Delivered,
}

/// Says what is to be said, over the node that its consumer uses. Clones are the same.
#[derive(Clone)]
pub(super) struct Answers {
    pub(super) endpoints: Endpoints,
    pub(super) recorder: Recorder,
    pub(super) subscribed: Subscribed,
    pub(super) credit: Credit,
}

impl Answers {
    /// Acknowledges messages. Acks of which the answer is lost are not sent again: their messages
    /// may come again.
    pub(super) fn ack(self, held: Vec<Held>) {
        let mut ack_ids = Vec::new();
        let mut acks: Vec<(Call, Delivered)> = Vec::new();
        for Held { ack_id, delivered } in held {
            let (call, delivery) = (self.recorder.call(), delivered.delivery);
            self.recorder.event(What::AckInvoked { call, delivery });
            ack_ids.push(ack_id);
            acks.push((call, delivered));
        }
        let request = AcknowledgeRequest {
            subscription: self.subscribed.name(),
            ack_ids,
        };
        let mut client = SubscriberClient::new(self.endpoints.channel());
        tokio::spawn(async move {
            let answer = client.acknowledge(timed(request)).await;
            if answer.is_ok() {
                self.credit.give_back(acks.len());
            }
            for (call, delivered) in acks {
                if answer.is_ok() {
                    self.recorder.event(What::AckOk { call });
                }
                // Without an answer it may count, and then the message does not come again.
                self.recorder.settled(&delivered);
            }
        });
    }

    /// Does something with one message.
    pub(super) fn act(self, held: Held, act: Act) {
        tokio::spawn(async move {
            match act {
                Act::Ack => self.ack(vec![held]),
                Act::Forget => {}
                Act::Nack(after) => {
                    sleep(after).await;
                    self.nack(&held).await;
                }
                Act::Extend(deadline, after) => {
                    self.extend(&held, deadline).await;
                    sleep(after).await;
                    self.ack(vec![held]);
                }
            }
        });
    }

    async fn nack(&self, held: &Held) {
        let (call, delivery) = (self.recorder.call(), held.delivered.delivery);
        self.recorder.event(What::NackInvoked { call, delivery });
        if self.set_deadline(held, Duration::ZERO).await {
            self.credit.give_back(1);
            self.recorder.event(What::NackOk { call });
        }
    }

    async fn extend(&self, held: &Held, ack_deadline: Duration) {
        let (call, delivery) = (self.recorder.call(), held.delivered.delivery);
        self.recorder.event(What::ExtendInvoked {
            call,
            delivery,
            ack_deadline,
        });
        if self.set_deadline(held, ack_deadline).await {
            self.recorder.event(What::ExtendOk { call });
        }
    }

    /// Whether the node has said that it is done.
    async fn set_deadline(&self, held: &Held, deadline: Duration) -> bool {
        let request = ModifyAckDeadlineRequest {
            subscription: self.subscribed.name(),
            ack_ids: vec![held.ack_id.clone()],
            ack_deadline_seconds: deadline.as_secs() as i32,
        };
        let mut client = SubscriberClient::new(self.endpoints.channel());
        client.modify_ack_deadline(timed(request)).await.is_ok()
    }
}

/// How much a stream may have outstanding still, as far as its client knows: what was delivered is
/// outstanding until it is settled or given back, and the node has said so. Clones are the same.
#[derive(Clone)]
pub(super) struct Credit {
    recorder: Recorder,
    session: Session,
    outstanding_max: usize,
    /// Messages; `None` once the session is over.
    outstanding: Arc<Mutex<Option<usize>>>,
}

impl Credit {
    /// Nothing is outstanding yet.
    pub(super) fn new(recorder: Recorder, session: Session, outstanding_max: u32) -> Self {
        let credit = Credit {
            recorder,
            session,
            outstanding_max: outstanding_max as usize,
            outstanding: Arc::new(Mutex::new(Some(0))),
        };
        credit.tell(true);
        credit
    }

    /// Of a session that waits for no more than it gets.
    pub(super) fn none(recorder: Recorder, session: Session) -> Self {
        Credit {
            recorder,
            session,
            outstanding_max: 0,
            outstanding: Arc::default(),
        }
    }

    pub(super) fn take(&self, messages: usize) {
        self.change(|outstanding| outstanding + messages);
    }

    fn give_back(&self, messages: usize) {
        self.change(|outstanding| outstanding - messages);
    }

    /// The session is over: nothing is told of it any more.
    pub(super) fn close(&self) {
        *self
            .outstanding
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn change(&self, change: impl FnOnce(usize) -> usize) {
        let mut outstanding = self
            .outstanding
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let Some(outstanding) = &mut *outstanding else {
            return;
        };
        let is_free = |outstanding| outstanding < self.outstanding_max;
        let before = is_free(*outstanding);
        *outstanding = change(*outstanding);
        if is_free(*outstanding) != before {
            self.tell(!before);
        }
    }

    fn tell(&self, free: bool) {
        let session = self.session;
        self.recorder.event(What::Credit { session, free });
    }
}
