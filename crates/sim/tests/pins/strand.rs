//! What a shard keeps of a key, and what a move copies: messages, and how far each subscription is.

use super::words::{Generation, MESSAGES, MessageId, Messages, Place, SUBSCRIPTIONS};

/// The messages of a key, with a lane for each subscription that has one of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Strand {
    pub(crate) messages: Messages,
    pub(crate) last: MessageId,
    /// A subscription without a lane starts behind its attach point.
    pub(crate) lanes: [Option<Lane>; SUBSCRIPTIONS],
}

/// How far one subscription is in a strand. Everything here is committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Lane {
    /// Settled for good, or never wanted: the beginning of the strand up to the position.
    pub(crate) settled: Messages,
    /// Tentative marks: acked behind a message that is not.
    pub(crate) marks: Messages,
    /// For each message, the generation below which ids count no more; committed by rewinds.
    pub(crate) fences: [Generation; MESSAGES],
}

impl Lane {
    /// A lane that wants none of these.
    pub(crate) fn behind(messages: Messages) -> Self {
        Lane {
            settled: messages,
            ..Lane::default()
        }
    }

    /// The message at the front: the first that is not settled.
    pub(crate) fn position(&self, messages: Messages) -> Option<Place> {
        messages.without(self.settled).iter().next()
    }

    /// A message is acked. The marks that are joined to the front become final with it.
    pub(crate) fn mark(&mut self, messages: Messages, place: Place) {
        self.marks.insert(place);
        while let Some(front) = self
            .position(messages)
            .filter(|front| self.marks.contains(*front))
        {
            self.marks.remove(front);
            self.settled.insert(front);
        }
    }

    /// The lane goes back to a message: from there on no mark stands, and no id of before counts.
    pub(crate) fn rewind(&mut self, from: Place, generation: Generation, keep_marks: bool) {
        if !keep_marks {
            self.marks = self.marks.before(from);
        }
        for fence in &mut self.fences[from.0..] {
            *fence = generation;
        }
    }
}
