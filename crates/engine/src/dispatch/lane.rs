//! A lane in the leader's memory: how far one key has been sent to one ordered subscription.
//!
//! A lane is in memory only while it has something outstanding, held back or left behind by the
//! reader; what was acknowledged stands in [`crate::table::lane`].

use std::collections::VecDeque;

use model::limits::LANE_MARKS_MAX;
use model::{ClientId, Epoch, MessageId, SessionId, Timestamp};

use super::ready::Place;
use super::{Credit, SessionKind};

/// Who has the outstanding messages of a lane.
#[derive(Clone, Debug)]
pub(super) struct Holder {
    pub(super) session: SessionId,
    pub(super) kind: SessionKind,
    pub(super) client: Option<ClientId>,
}

/// One key of one subscription.
#[derive(Debug)]
pub(super) struct Lane {
    /// The epoch of the key's pin, which its deliveries carry.
    pub(super) epoch: Epoch,
    /// Whether the strand is sealed: nothing of it is sent.
    pub(super) frozen: bool,
    /// No message from here on has been sent since the lane last went back.
    pub(super) next: MessageId,
    /// The newest message that the strand is known to have.
    pub(super) newest: MessageId,
    /// The newest message that was sent since the log last heard of a rewind: it and those before
    /// it are not sent again without another rewind.
    pub(super) sent: MessageId,
    /// Whether this leader has logged a rewind, so that deliveries of earlier leaders don't count.
    pub(super) rewound: bool,
    /// The messages with a live lease, in order.
    pub(super) outstanding: VecDeque<MessageId>,
    /// Who has them.
    pub(super) holder: Option<Holder>,
    /// The lane is held back until this moment.
    pub(super) resume_at: Option<Timestamp>,
    /// Where the rewind begins that is on its way through the log.
    pub(super) rewinding: Option<MessageId>,
    /// When this leader last logged a rewind: somebody had credit then, and soon has the messages.
    pub(super) went_back: Option<Timestamp>,
    /// Failures on their way through the log, and dead letters on theirs to another topic.
    pub(super) undecided: u32,
    /// At most so many marks are in the lane's row.
    pub(super) marks: usize,
    /// About what waits between `next` and `newest`.
    pub(super) waiting: Credit,
    /// In which queue it waits for a session.
    pub(super) place: Option<Place>,
    /// The run that `next` is probably in: saves a look into the index of the strand.
    pub(super) run: Option<MessageId>,
}

/// Whether a lane can go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// Nothing is left to be done or remembered.
    Done,
    /// Something must happen first: a lease ends, an outcome comes, or a back-off is over.
    Waiting,
    /// The next message can go to any session.
    Free,
    /// The next message can go to this session only.
    Held(SessionId),
}

impl Lane {
    /// A lane whose next message is `next` or later.
    pub(super) fn new((epoch, frozen): (Epoch, bool), next: MessageId, newest: MessageId) -> Self {
        Lane {
            epoch,
            frozen,
            next,
            newest,
            sent: MessageId::ZERO,
            rewound: false,
            outstanding: VecDeque::new(),
            holder: None,
            resume_at: None,
            rewinding: None,
            went_back: None,
            undecided: 0,
            marks: 0,
            waiting: Credit::default(),
            place: None,
            run: None,
        }
    }

    /// Whether the lane can go on.
    pub(super) fn status(&self) -> Status {
        if self.undecided > 0 || self.rewinding.is_some() || self.resume_at.is_some() {
            return Status::Waiting;
        }
        if self.next > self.newest {
            return match self.outstanding.is_empty() {
                true => Status::Done,
                false => Status::Waiting,
            };
        }
        if self.frozen {
            return Status::Waiting;
        }
        match self.outstanding.front() {
            // Every lease is behind the next message: what comes next is a redelivery.
            None => Status::Free,
            Some(first) if *first > self.next => Status::Free,
            Some(first) if *first == self.next => Status::Waiting,
            Some(_) if self.marks >= LANE_MARKS_MAX || self.is_outstanding(self.next) => {
                Status::Waiting
            }
            Some(_) if model::sabotage!("key-at-two-clients") => Status::Free,
            Some(_) => match &self.holder {
                Some(holder) if holder.kind == SessionKind::Stream => Status::Held(holder.session),
                // A Pull gets one batch, and of a batch from before this leader nobody knows where
                // it went: all of it must be settled first.
                _ => Status::Waiting,
            },
        }
    }

    /// Whether a rewind must be logged before `message` is sent.
    ///
    /// `inherited` is the newest message that was perhaps delivered before this leader knew of it.
    pub(super) fn needs_rewind(&self, message: MessageId, inherited: MessageId) -> bool {
        (message <= self.sent && !model::sabotage!("sent-again-without-a-rewind"))
            || (!self.rewound
                && message <= inherited
                && !model::sabotage!("new-leader-forgets-the-old-deliveries"))
    }

    /// A message was sent, or was passed because it must not be.
    pub(super) fn advance(&mut self, message: MessageId, bytes: u64) {
        self.next = MessageId(message.0 + 1);
        self.waiting.subtract(Credit::of(bytes));
    }

    /// A message was sent.
    pub(super) fn send(&mut self, message: MessageId, bytes: u64, to: &Holder) {
        self.begin_lease(message);
        self.holder = Some(to.clone());
        self.sent = self.sent.max(message);
        self.advance(message, bytes);
    }

    /// A message has a lease now.
    pub(super) fn begin_lease(&mut self, message: MessageId) {
        // Only what an exactly-once lane sends again has others behind it.
        match self.outstanding.back() {
            Some(last) if *last > message => {
                let at = self.outstanding.partition_point(|id| *id < message);
                self.outstanding.insert(at, message);
            }
            _ => self.outstanding.push_back(message),
        }
    }

    /// The lane goes back to a message. The leases that it thereby leaves behind are the caller's.
    pub(super) fn go_back(&mut self, to: MessageId) {
        if to < self.next {
            self.next = to;
            self.run = None;
        }
    }

    /// The lease of a message is over.
    pub(super) fn end_lease(&mut self, message: MessageId) {
        if let Ok(at) = self.outstanding.binary_search(&message) {
            self.outstanding.remove(at);
        }
        if self.outstanding.is_empty() {
            self.holder = None;
            self.marks = 0;
        }
    }

    /// Messages up to `position` are settled.
    pub(super) fn settle_up_to(&mut self, position: MessageId) {
        if position >= self.next {
            self.next = MessageId(position.0 + 1);
        }
    }

    pub(super) fn is_outstanding(&self, message: MessageId) -> bool {
        self.outstanding.binary_search(&message).is_ok()
    }
}
