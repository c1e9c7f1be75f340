//! The copy that a move has brought is opened: from now on the key lives here.

use model::{Incarnation, MessageId, sabotage};
use serde::{Deserialize, Serialize};

use super::read::{self, LAST_INCARNATION};
use super::run_release::drop_payload;
use super::{At, Effect, Opening, Outcome, Rejected, Reply, copy, open, stage};
use crate::Fault;
use crate::kv::{Overlay, ViewExt};
use crate::table::arrived::Arrived;
use crate::table::attachment::Attachment;
use crate::table::delivery::{Delivery, DeliveryKey};
use crate::table::detached::{Detached, DetachedKey};
use crate::table::holes::{Holes, HolesKey};
use crate::table::lane::{Lane, LaneKey};
use crate::table::run::{Run, RunKey};
use crate::table::staged::{CopyHead, Staged, StagedItem, StagedKey};
use crate::table::strand::{Strand, StrandKey};
use crate::table::strand_run::{StrandRun, StrandRunKey};

/// Opens a copy at exactly the epoch that the registry group has answered.
///
/// Nothing happens where the strand is here already, or the copy is not whole. Subscriptions that
/// are gone leave nothing; one that the copy lacks begins behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activate {
    /// The copy.
    pub copy: StagedKey,
    /// The pin.
    pub opening: Opening,
}

/// A copy on its way into the tables.
struct Opened<'a> {
    key: StrandKey,
    head: &'a CopyHead,
    runs: Vec<(MessageId, Run)>,
}

impl Activate {
    pub(super) fn apply(&self, overlay: &mut Overlay<'_>, at: At) -> Result<Outcome, Fault> {
        let key = self.copy.strand_key();
        let is_here = read::strand(overlay, key.topic, key.strand)?.is_some();
        let staged = overlay.row::<Staged>(&self.copy)?;
        let Some(head) = staged.and_then(|staged| staged.whole).filter(|_| !is_here) else {
            return Ok(Reply::Done.into());
        };
        let floor = read::epoch_floor(overlay, self.opening.registry)?;
        if self.opening.epoch <= floor {
            return Ok(Rejected::BelowFloor { floor }.into());
        }
        open::go_on_above(overlay, self.opening.id_floor.max(head.last), at)?;
        let items = stage::items(overlay, &self.copy)?;
        stage::drop_copy(overlay, &self.copy, false)?;
        let mut opened = Opened {
            key,
            head: &head,
            runs: Vec::new(),
        };
        for (_, item) in items {
            opened.take(overlay, item)?;
        }
        opened.begin_for_others(overlay)?;
        opened.finish(overlay, self.opening.epoch)
    }
}

impl Opened<'_> {
    fn take(&mut self, overlay: &mut Overlay<'_>, item: StagedItem) -> Result<(), Fault> {
        match item {
            StagedItem::Run { first, run } => self.runs.push((first, run)),
            StagedItem::Lane { subscription, lane } => {
                if self.takes_part(overlay, subscription)? {
                    overlay.put(&self.lane(subscription), &lane);
                }
            }
            StagedItem::Holes {
                subscription,
                first,
                holes,
            } => {
                if self.takes_part(overlay, subscription)? {
                    overlay.put(&self.holes(first, subscription), &holes);
                }
            }
            StagedItem::Delivery {
                subscription,
                message,
                delivery,
            } => {
                if self.takes_part(overlay, subscription)? {
                    let key = DeliveryKey {
                        subscription,
                        message,
                    };
                    overlay.put::<Delivery>(&key, &delivery);
                }
            }
        }
        Ok(())
    }

    fn takes_part(&self, overlay: &Overlay<'_>, subscription: Incarnation) -> Result<bool, Fault> {
        let topic = self.key.topic;
        let row = overlay.row::<Attachment>(&crate::table::attachment::AttachmentKey {
            topic,
            subscription,
        })?;
        Ok(row.is_some())
    }

    /// Subscriptions that the source did not know want nothing of the copy, and neither do those
    /// whose leftovers are being cleaned up.
    fn begin_for_others(&self, overlay: &mut Overlay<'_>) -> Result<(), Fault> {
        let known = |subscription: &Incarnation| self.head.subscriptions.contains(subscription);
        let late = copy::attachments(overlay, self.key.topic)?.into_iter();
        let late = late.filter(|(subscription, _)| !known(subscription));
        let late = late.map(|(late, attachment)| (late, attachment.settings.ordered));
        let gone = self.detached(overlay)?;
        for (subscription, ordered) in late.chain(gone) {
            if sabotage!("late-subscription-gets-the-copy") {
                continue;
            }
            if ordered {
                let lane = Lane {
                    position: self.head.last,
                    ..Lane::default()
                };
                overlay.put(&self.lane(subscription), &lane);
                continue;
            }
            for (first, _) in &self.runs {
                overlay.put(&self.holes(*first, subscription), &Holes::All);
            }
        }
        Ok(())
    }

    fn detached(&self, overlay: &Overlay<'_>) -> Result<Vec<(Incarnation, bool)>, Fault> {
        let key = |subscription| DetachedKey {
            topic: self.key.topic,
            subscription,
        };
        let rows = overlay.rows::<Detached>(&key(Incarnation(0)), &key(LAST_INCARNATION));
        rows.map(|row| row.map(|(key, detached)| (key.subscription, detached.ordered)))
            .collect()
    }

    /// Writes the runs that somebody waits for, and the strand.
    fn finish(self, overlay: &mut Overlay<'_>, epoch: model::Epoch) -> Result<Outcome, Fault> {
        let (topic, strand) = (self.key.topic, self.key.strand);
        let attachments = copy::attachments(overlay, topic)?;
        let mut stored = 0;
        for (first, run) in &self.runs {
            let first = *first;
            let mut waiting = 0;
            for (subscription, attachment) in &attachments {
                let ordered = attachment.settings.ordered;
                waiting += u32::from(self.waits(overlay, *subscription, ordered, (first, run))?);
            }
            if waiting == 0 {
                self.forget_run(overlay, first, run)?;
                continue;
            }
            stored += 1;
            overlay.put(
                &RunKey { topic, first },
                &Run {
                    waiting,
                    ..run.clone()
                },
            );
            let count = run.count;
            let index = StrandRunKey {
                topic,
                strand,
                first,
            };
            overlay.put(&index, &StrandRun { count });
        }
        let after = Strand {
            epoch,
            last: self.head.last,
            published: self.head.published,
            runs: stored,
            sealed: false,
        };
        overlay.put(&self.key, &after);
        overlay.put(&self.key, &Arrived);
        Ok(Outcome::done(Effect::Opened { key: self.key }))
    }

    /// Whether a subscription has not finished a run.
    fn waits(
        &self,
        overlay: &Overlay<'_>,
        subscription: Incarnation,
        ordered: bool,
        (first, run): (MessageId, &Run),
    ) -> Result<bool, Fault> {
        Ok(match ordered {
            true => {
                let lane = overlay.row::<Lane>(&self.lane(subscription))?;
                lane.is_some_and(|lane| lane.position < run.last(first))
            }
            false => {
                let holes = overlay.row::<Holes>(&self.holes(first, subscription))?;
                holes.is_some_and(|holes| holes != Holes::All)
            }
        })
    }

    /// Nobody here waits for a run: all who did are gone.
    fn forget_run(
        &self,
        overlay: &mut Overlay<'_>,
        first: MessageId,
        run: &Run,
    ) -> Result<(), Fault> {
        drop_payload(overlay, run.payload);
        let key = |subscription| self.holes(first, subscription);
        let rows = overlay.rows::<Holes>(&key(Incarnation(0)), &key(LAST_INCARNATION));
        let keys = rows
            .map(|row| Ok(row?.0))
            .collect::<Result<Vec<_>, Fault>>()?;
        for key in keys {
            overlay.delete::<Holes>(&key);
        }
        Ok(())
    }

    fn lane(&self, subscription: Incarnation) -> LaneKey {
        LaneKey {
            topic: self.key.topic,
            strand: self.key.strand,
            subscription,
        }
    }

    fn holes(&self, first: MessageId, subscription: Incarnation) -> HolesKey {
        HolesKey {
            topic: self.key.topic,
            first,
            subscription,
        }
    }
}

impl StagedKey {
    /// The strand that the copy is of.
    #[must_use]
    pub fn strand_key(&self) -> StrandKey {
        StrandKey {
            topic: self.topic,
            strand: self.strand,
        }
    }
}
