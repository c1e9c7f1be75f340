//! Each rule is missed when it is off: which property breaks, and how much must happen for it.

use super::bounds::{ACKS, Bounds, LATE, SWEEP, THERE_AND_BACK, TWO_KEYS, UNDO};
use super::flaws::Flaw;
use super::properties::{ACKS_HOLD, CASCADE, GROWING_IDS, KEY_ORDER, NOT_BEFORE_ITS_TIME};
use super::properties::{NO_STALE_OWNER, NOTHING_LOST, ONE_OWNER, SETTLES};

/// A rule that is off, and the property that notices it within bounds.
pub(crate) type Missed = (Flaw, &'static str, Bounds);

/// Every rule that can be turned off.
pub(crate) const MISSED: [Missed; 27] = [
    (Flaw::UndoWithoutANewEpoch, ONE_OWNER, UNDO),
    (Flaw::UndoAfterMove, ONE_OWNER, UNDO),
    (Flaw::DropForgetsItsEpoch, ONE_OWNER, UNDO),
    (Flaw::AcceptWithoutAClaim, NO_STALE_OWNER, UNDO),
    (Flaw::ClaimBeforeActivate, NOTHING_LOST, UNDO),
    (Flaw::SweepOfAMovedPin, NOTHING_LOST, LATE),
    (Flaw::DropWithoutItsEpoch, NOTHING_LOST, THERE_AND_BACK),
    (Flaw::MarkOutlivesARewind, CASCADE, ACKS),
    (Flaw::MoveForgetsIds, GROWING_IDS, TWO_KEYS),
    (Flaw::ReleaseForgetsIds, GROWING_IDS, SWEEP),
    (Flaw::ActivateAtAGuessedEpoch, SETTLES, LATE),
    (Flaw::LateLaneAtTheAttachPoint, NOT_BEFORE_ITS_TIME, LATE),
    (Flaw::ReopenOfAnEarlierOwnership, ACKS_HOLD, UNDO),
    (Flaw::OldAnswerDrops, NOTHING_LOST, UNDO),
    (Flaw::CopyBeforeTheSeal, NOTHING_LOST, UNDO),
    (Flaw::AckWhileSealed, ACKS_HOLD, ACKS),
    (Flaw::SweepForgetsItsEpoch, ONE_OWNER, SWEEP),
    (Flaw::SweepAtAnyEpoch, ONE_OWNER, SWEEP),
    (Flaw::ActivateUnderAnOldCatalogue, KEY_ORDER, LATE),
    (Flaw::MoveForgetsMarks, ACKS_HOLD, ACKS),
    (Flaw::MoveForgetsFences, CASCADE, ACKS),
    (Flaw::ResendWithoutARewind, CASCADE, ACKS),
    (Flaw::FloorRaisedAtThePublish, NOT_BEFORE_ITS_TIME, LATE),
    (Flaw::ReleaseOfWhatIsWanted, NOTHING_LOST, UNDO),
    (Flaw::StageAfterActivate, SETTLES, UNDO),
    (Flaw::GenerationWithoutTerm, CASCADE, ACKS),
    (Flaw::GenerationWithoutEpoch, CASCADE, ACKS),
];
