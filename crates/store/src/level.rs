//! How full the disk is, and the reserve that is given up so that it can be emptied.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use crate::backend::{Backend, DiskError, DiskSpace};
use crate::core::Core;
use crate::settings::DiskMarks;

/// How full the disk is, after [`crate::settings::DiskMarks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskLevel {
    /// Everything is accepted.
    Normal,
    /// Publishes are refused; acks, deletes and votes are written.
    High,
    /// Only what frees space is written, and votes.
    Full,
}

/// What is known of the disk's free space.
pub(crate) struct Space {
    marks: DiskMarks,
    level: AtomicU8,
    /// Whether what is in memory can be written.
    flushable: AtomicBool,
    /// Bytes that may yet be appended before the next look: on a small disk, a second is long.
    unseen: AtomicU64,
}

/// The share of [`DiskMarks::high_free`] that is appended between two looks at the most.
const LOOK_SHARE: u64 = 16;

impl Space {
    pub(crate) fn new(marks: DiskMarks) -> Self {
        Space {
            marks,
            level: AtomicU8::new(DiskLevel::Normal as u8),
            flushable: AtomicBool::new(true),
            unseen: AtomicU64::new(0),
        }
    }

    /// Whether what is in memory can be written. If not, to try would end the node, while somebody
    /// else may still make room.
    pub(crate) fn is_flushable(&self) -> bool {
        self.flushable.load(Ordering::Relaxed)
    }

    /// Whether enough was appended for another look.
    pub(crate) fn is_due(&self) -> bool {
        self.unseen.load(Ordering::Relaxed) == 0
    }

    /// The same, after so many bytes more.
    pub(crate) fn is_due_after(&self, appended: u64) -> bool {
        let left = |unseen: u64| Some(unseen.saturating_sub(appended));
        let before = self
            .unseen
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
        before.is_ok_and(|before| before > 0 && before <= appended)
    }

    fn level(&self) -> DiskLevel {
        match self.level.load(Ordering::Relaxed) {
            0 => DiskLevel::Normal,
            1 => DiskLevel::High,
            _ => DiskLevel::Full,
        }
    }
}

impl DiskMarks {
    /// The marks on a disk of `size` bytes: on a small one each is lowered to a share of it.
    pub(crate) fn within(&self, size: u64) -> Self {
        DiskMarks {
            high_free: self.high_free.min(size / 100 * 10),
            full_free: self.full_free.min(size / 100 * 3),
            reserve: self.reserve.min(size / 100),
        }
    }

    /// The level when `free` bytes can be written and `reserved` are set aside. A reserve that was
    /// given up counts as used, so that giving it up does not look like new room.
    pub(crate) fn level(&self, free: u64, reserved: u64) -> DiskLevel {
        let missing = self.reserve.saturating_sub(reserved);
        match free.saturating_sub(missing) {
            room if room < self.full_free => DiskLevel::Full,
            _ if model::sabotage!("nearly-full-is-normal") => DiskLevel::Normal,
            room if room < self.high_free => DiskLevel::High,
            _ => DiskLevel::Normal,
        }
    }
}

/// Gives up the reserve on a full disk, sets it aside on one with room.
fn settle(
    backend: &dyn Backend,
    space: DiskSpace,
    marks: &DiskMarks,
) -> Result<DiskLevel, DiskError> {
    let reserved = backend.reserve();
    let level = marks.level(space.free, reserved);
    let wanted = match level {
        DiskLevel::Normal => marks.reserve,
        DiskLevel::High => reserved,
        DiskLevel::Full => 0,
    };
    if wanted != reserved {
        backend.set_reserve(wanted)?;
    }
    Ok(level)
}

impl Core {
    /// The level as of the keeper's last look, or of now where nobody keeps looking.
    pub(crate) fn disk_level(&self) -> DiskLevel {
        if !self.flush.is_kept() {
            self.look_at_space();
        }
        self.space.level()
    }

    /// Looks at the free space.
    pub(crate) fn look_at_space(&self) {
        // Where the look fails, the next one is due by time.
        self.space.unseen.store(u64::MAX, Ordering::Relaxed);
        let settled = self.backend.space().and_then(|space| {
            self.space
                .flushable
                .store(space.free > 0, Ordering::Relaxed);
            let marks = self.space.marks.within(space.size);
            let unseen = (marks.high_free / LOOK_SHARE).max(1);
            self.space.unseen.store(unseen, Ordering::Relaxed);
            settle(&*self.backend, space, &marks)
        });
        let level = match settled {
            Ok(level) => level,
            Err(error) => {
                tracing::warn!(%error, "free space can't be watched over: the disk counts as full");
                DiskLevel::Full
            }
        };
        let before = self.space.level.swap(level as u8, Ordering::Relaxed);
        if before != level as u8 {
            tracing::warn!(?level, "disk level changed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKS: DiskMarks = DiskMarks {
        high_free: 100,
        full_free: 50,
        reserve: 20,
    };

    #[test]
    fn the_level_follows_the_marks() {
        let levels = [100, 99, 50, 49].map(|free| MARKS.level(free, 20));
        let expected = [
            DiskLevel::Normal,
            DiskLevel::High,
            DiskLevel::High,
            DiskLevel::Full,
        ];
        assert_eq!(levels, expected);
    }

    #[test]
    fn a_small_disk_has_lower_marks() {
        let marks = DiskMarks::default();
        assert_eq!(marks.within(u64::MAX).high_free, marks.high_free);
        let small = marks.within(10_000_000);
        let shares = (small.high_free, small.full_free, small.reserve);
        assert_eq!(shares, (1_000_000, 300_000, 100_000));
    }

    #[test]
    fn giving_up_the_reserve_is_not_new_room() {
        assert_eq!(MARKS.level(49 + 20, 0), DiskLevel::Full);
        assert_eq!(MARKS.level(100 + 20, 0), DiskLevel::Normal);
    }
}
