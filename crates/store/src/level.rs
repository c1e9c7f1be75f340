//! How full the disk is, and the reserve that is given up so that it can be emptied.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::backend::Backend;
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
}

impl Space {
    pub(crate) fn new(marks: DiskMarks) -> Self {
        Space {
            marks,
            level: AtomicU8::new(DiskLevel::Normal as u8),
        }
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
    /// The level when `free` bytes can be written and `reserved` are set aside. A reserve that was
    /// given up counts as used, so that giving it up does not look like new room.
    pub(crate) fn level(&self, free: u64, reserved: u64) -> DiskLevel {
        let missing = self.reserve.saturating_sub(reserved);
        match free.saturating_sub(missing) {
            room if room < self.full_free => DiskLevel::Full,
            room if room < self.high_free => DiskLevel::High,
            _ => DiskLevel::Normal,
        }
    }
}

/// Looks at the free space: gives up the reserve on a full disk, sets it aside on one with room.
pub(crate) fn settle(backend: &dyn Backend, marks: &DiskMarks) -> DiskLevel {
    let reserved = backend.reserve();
    let level = match backend.free() {
        Ok(free) => marks.level(free, reserved),
        Err(error) => {
            tracing::warn!(%error, "free space of the disk can't be read");
            DiskLevel::Full
        }
    };
    let wanted = match level {
        DiskLevel::Normal => marks.reserve,
        DiskLevel::High => reserved,
        DiskLevel::Full => 0,
    };
    if wanted != reserved
        && let Err(error) = backend.set_reserve(wanted)
    {
        tracing::warn!(%error, "reserve of the disk can't be changed");
    }
    level
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
        let level = settle(&*self.backend, &self.space.marks);
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
    fn giving_up_the_reserve_is_not_new_room() {
        assert_eq!(MARKS.level(49 + 20, 0), DiskLevel::Full);
        assert_eq!(MARKS.level(100 + 20, 0), DiskLevel::Normal);
    }
}
