//! What one subscription has not settled of its topic, on this shard.

use std::sync::Arc;

use model::{Epoch, Incarnation, KeyHash, MessageId};

use super::read;
use crate::Fault;
use crate::kv::{View, ViewExt};
use crate::table::attachment::{Attachment, AttachmentKey};
use crate::table::delivery::{Delivery, DeliveryKey};
use crate::table::holes::{Holes, HolesKey};
use crate::table::lane::{Lane, LaneKey};
use crate::table::run::{Run, RunKey};

/// A subscription that takes part, and the rows to judge its messages by.
pub struct Backlog<'v> {
    pub(super) view: &'v dyn View,
    key: AttachmentKey,
    attachment: Arc<Attachment>,
}

impl<'v> Backlog<'v> {
    /// The backlog of a subscription; `None` if it does not take part in the topic here.
    ///
    /// # Errors
    /// [`Fault`] when the state can't be read.
    pub fn open(
        view: &'v dyn View,
        topic: Incarnation,
        subscription: Incarnation,
    ) -> Result<Option<Self>, Fault> {
        let key = AttachmentKey {
            topic,
            subscription,
        };
        let attachment = view.row(&key)?;
        Ok(attachment.map(|attachment| Backlog::of(view, key, Arc::new(attachment))))
    }

    /// The backlog of a subscription that is known to take part, and how.
    #[must_use]
    pub fn of(view: &'v dyn View, key: AttachmentKey, attachment: Arc<Attachment>) -> Self {
        Backlog {
            view,
            key,
            attachment,
        }
    }

    /// What [`Backlog::of`] takes, for a command that writes between two looks.
    pub(super) fn into_parts(self) -> (AttachmentKey, Arc<Attachment>) {
        (self.key, self.attachment)
    }

    /// How the subscription takes part.
    #[must_use]
    pub fn attachment(&self) -> &Attachment {
        &self.attachment
    }

    /// The runs that the subscription may not have finished, from the one that begins at `from` on
    /// or the next one after it.
    pub fn runs(
        &self,
        from: MessageId,
    ) -> impl Iterator<Item = Result<(RunKey, Run), Fault>> + use<'v> {
        let first = MessageId(self.attachment.after.0 + 1);
        read::runs(self.view, self.key.topic, from.max(first))
    }

    /// Whether a message was published before the subscription took part, if its id is of this
    /// shard or the subscription knows nothing of it.
    pub(crate) fn precedes(&self, message: MessageId) -> bool {
        message <= self.attachment.after
    }

    /// Whether the messages of a run are in a lane; the others have holes.
    #[must_use]
    pub fn in_lane(&self, run: &Run) -> bool {
        self.attachment.settings.ordered && run.keyed()
    }

    /// The epoch of the pin of a run's key, and whether its strand is sealed.
    ///
    /// # Errors
    /// [`Fault`] when the state can't be read.
    pub fn epoch_of(&self, run: &Run) -> Result<(Epoch, bool), Fault> {
        let strand = read::strand(self.view, self.key.topic, run.strand)?;
        // A strand outlives its runs; it is gone only where the state has gone on meanwhile.
        Ok(strand.map_or((run.epoch, false), |strand| (strand.epoch, strand.sealed)))
    }

    /// The lane of a keyed strand, on an ordered subscription.
    ///
    /// # Errors
    /// [`Fault`] when the state can't be read.
    pub fn lane(&self, strand: KeyHash) -> Result<Lane, Fault> {
        let key = LaneKey {
            topic: self.key.topic,
            strand,
            subscription: self.key.subscription,
        };
        Ok(self.view.row(&key)?.unwrap_or_else(|| Lane {
            position: self.attachment.after,
            ..Lane::default()
        }))
    }

    /// The first message of a lane after `after` that is neither settled nor marked.
    ///
    /// # Errors
    /// [`Fault`] when the state can't be read.
    pub fn next_in_lane(
        &self,
        strand: KeyHash,
        after: MessageId,
    ) -> Result<Option<MessageId>, Fault> {
        let lane = self.lane(strand)?;
        let mut after = after.max(lane.position);
        loop {
            let next = read::next_of_strand(self.view, self.key.topic, strand, after)?;
            match next.and_then(|next| lane.mark_of(next)) {
                Some((_, end)) => after = end,
                None => return Ok(next),
            }
        }
    }

    /// What is settled of a run, where it has holes. `None` for nothing.
    ///
    /// # Errors
    /// [`Fault`] when the state can't be read.
    pub fn holes(&self, run: RunKey) -> Result<Option<Holes>, Fault> {
        self.view.row(&HolesKey {
            topic: run.topic,
            first: run.first,
            subscription: self.key.subscription,
        })
    }

    /// Whether a message is settled or marked. One that was published before the subscription took
    /// part, or that is not stored any more, counts as settled.
    ///
    /// # Errors
    /// [`Fault`] when the state can't be read.
    pub fn is_settled(&self, message: MessageId) -> Result<bool, Fault> {
        let Some((key, run)) = read::run_of(self.view, self.key.topic, message)? else {
            return Ok(true);
        };
        if self.in_lane(&run) {
            Ok(self.lane(run.strand)?.covers(message))
        } else {
            let number = message.counter() - key.first.counter();
            let precedes = self.precedes(message);
            Ok(self.holes(key)?.map_or(precedes, |holes| holes.has(number)))
        }
    }

    /// Lease and attempts of a message; `None` before the first that is logged.
    ///
    /// # Errors
    /// [`Fault`] when the state can't be read.
    pub fn delivery(&self, message: MessageId) -> Result<Option<Delivery>, Fault> {
        let subscription = self.key.subscription;
        self.view.row(&DeliveryKey {
            subscription,
            message,
        })
    }

    /// All logged leases and attempts, by message.
    pub fn deliveries(
        &self,
    ) -> impl Iterator<Item = Result<(DeliveryKey, Delivery), Fault>> + use<'v> {
        deliveries(self.view, self.key.subscription)
    }
}

/// All logged leases and attempts of a subscription, by message.
pub(super) fn deliveries(
    view: &dyn View,
    subscription: Incarnation,
) -> impl Iterator<Item = Result<(DeliveryKey, Delivery), Fault>> {
    let key = |message| DeliveryKey {
        subscription,
        message,
    };
    view.rows(&key(MessageId::ZERO), &key(MessageId::MAX))
}
