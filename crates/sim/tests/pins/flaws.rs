//! Rules of the protocol that can be turned off, one at a time.

/// A rule that a wrong variant of the protocol lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Flaw {
    /// The source of a move opens its strand again without asking the registry.
    UndoWithoutANewEpoch,
    /// The registry undoes a move that has happened.
    UndoAfterMove,
    /// Dropping a strand doesn't raise the shard's floor: it forgets its epoch.
    DropForgetsItsEpoch,
    /// A shard without a strand accepts a publish at once.
    AcceptWithoutAClaim,
    /// A shard that is told that a copy waits for it opens an empty strand.
    ClaimBeforeActivate,
    /// A pin is swept although a copy waits to be activated.
    SweepOfAMovedPin,
    /// A drop acts on whatever is sealed.
    DropWithoutItsEpoch,
    /// Marks outlive a rewind.
    MarkOutlivesARewind,
    /// A move doesn't raise the id floor.
    MoveForgetsIds,
    /// A release doesn't raise the id floor.
    ReleaseForgetsIds,
    /// The target opens a copy at the next epoch as it guesses it.
    ActivateAtAGuessedEpoch,
    /// A subscription that the copy lacks starts at the target's attach point.
    LateLaneAtTheAttachPoint,
    /// A sealed strand opens at any higher epoch of its shard, also of a later ownership.
    ReopenOfAnEarlierOwnership,
    /// "There is no pin" is believed however old it is.
    OldAnswerDrops,
    /// The copy is taken before the strand is sealed.
    CopyBeforeTheSeal,
    /// A sealed strand takes acks.
    AckWhileSealed,
    /// A sweep that finds no strand doesn't raise the shard's floor.
    SweepForgetsItsEpoch,
    /// The registry removes a swept pin whatever its epoch is.
    SweepAtAnyEpoch,
    /// A copy is opened by a shard whose catalogue is older than the source's was.
    ActivateUnderAnOldCatalogue,
    /// The copy has no marks.
    MoveForgetsMarks,
    /// The copy doesn't say which ids count no more.
    MoveForgetsFences,
    /// A new leader sends again without a rewind.
    ResendWithoutARewind,
    /// The id counter goes above the floor at the first publish, not when the strand opens.
    FloorRaisedAtThePublish,
    /// A strand is released without looking again whether something has come meanwhile.
    ReleaseOfWhatIsWanted,
    /// A copy is staged although its strand is open here already.
    StageAfterActivate,
    /// A delivery's generation doesn't say which leader sent it.
    GenerationWithoutTerm,
    /// A delivery's generation doesn't say at which epoch of the pin it was sent.
    GenerationWithoutEpoch,
}

/// The rules that are off: one or none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flaws(pub Option<Flaw>);

impl Flaws {
    pub(crate) fn has(self, flaw: Flaw) -> bool {
        self.0 == Some(flaw)
    }
}
