//! What is ready together travels together: parts are gathered into frames.

use model::limits::{LINK_BEAT_EVERY, LINK_FRAME_BYTES, LINK_FRAMES_WAITING_MAX};
use proto::cluster::{LinkFrame, LinkPart};
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// What a part weighs besides its bytes.
const PART_OVERHEAD_BYTES: usize = 16;

/// The parts of one frame.
#[derive(Debug, Default)]
pub(super) struct Frame {
    parts: Vec<LinkPart>,
    bytes: usize,
}

impl Frame {
    /// Adds a part.
    pub(super) fn push(&mut self, part: LinkPart) {
        let payloads: usize = part.payloads.iter().map(|payload| payload.len()).sum();
        self.bytes += PART_OVERHEAD_BYTES + part.head.len() + payloads;
        self.parts.push(part);
    }

    /// Whether no more should be added.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= LINK_FRAME_BYTES
    }

    /// As it is sent.
    pub(super) fn finish(self) -> LinkFrame {
        LinkFrame { parts: self.parts }
    }
}

/// Where frames go, and what the transport reads.
pub(super) fn frames<T>() -> (mpsc::Sender<T>, mpsc::Receiver<T>) {
    mpsc::channel(LINK_FRAMES_WAITING_MAX)
}

/// When signs of life are due; the first one at once.
pub(super) fn beats() -> Interval {
    let mut beats = interval(LINK_BEAT_EVERY);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beats
}
