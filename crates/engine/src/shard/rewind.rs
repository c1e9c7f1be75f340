//! Lanes go back, before anything of them is sent again.

use std::sync::Arc;

use model::limits::LANE_REWINDS_MAX;
use model::{Generation, MessageId, sabotage};

use super::{Backlog, LaneRewind, Outcome, Rejected, Reply, Rewind, open};
use crate::Fault;
use crate::kv::Overlay;
use crate::table::lane::{Lane, LaneKey, Rewound};

pub(super) fn apply(overlay: &mut Overlay<'_>, rewind: &Rewind) -> Result<Outcome, Fault> {
    let Some(backlog) = Backlog::open(overlay, rewind.topic, rewind.subscription)? else {
        return Ok(Rejected::NotAttached.into());
    };
    let (key, attachment) = backlog.into_parts();
    // There an ack that was answered is for good, and nothing is sent again after it.
    if attachment.settings.exactly_once {
        return Ok(Reply::Done.into());
    }
    for lane_rewind in &rewind.lanes {
        let strand = lane_rewind.strand;
        if open::is_sealed(overlay, key.topic, strand)? {
            continue;
        }
        let mut lane = Backlog::of(overlay, key, Arc::clone(&attachment)).lane(strand)?;
        if lane.position >= lane_rewind.from && !sabotage!("rewind-behind-the-position") {
            continue;
        }
        lane.rewind(lane_rewind);
        let key = LaneKey {
            topic: key.topic,
            strand,
            subscription: key.subscription,
        };
        overlay.put(&key, &lane);
    }
    Ok(Reply::Done.into())
}

impl Lane {
    fn rewind(&mut self, to: &LaneRewind) {
        if !sabotage!("rewind-keeps-marks") {
            self.erase_marks(to.from);
        }
        self.fence(to.from, to.generation);
        if self.rewound.len() > LANE_REWINDS_MAX {
            self.rewound[1].from = self.rewound[0].from;
            self.rewound.remove(0);
        }
    }

    /// From `from` on, deliveries before `generation` don't count any more; the earlier records
    /// still say what counts before `from`.
    fn fence(&mut self, from: MessageId, generation: Generation) {
        self.rewound
            .retain(|rewound| rewound.from < from || rewound.generation > generation);
        let place = self.rewound.partition_point(|rewound| rewound.from < from);
        let before = self.rewound[..place].last();
        if before.is_none_or(|before| before.generation < generation) {
            self.rewound.insert(place, Rewound { from, generation });
        }
    }

    fn erase_marks(&mut self, from: MessageId) {
        self.marks.retain(|(start, _)| *start < from);
        if let Some((_, end)) = self.marks.last_mut() {
            *end = (*end).min(MessageId::new(from.counter() - 1, from.shard()));
        }
        self.assert_marks_apart();
    }
}
