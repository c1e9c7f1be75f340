//! A lane while acks are merged into it, in id order: one pass over its marks, whatever the acks.

use model::{Incarnation, KeyHash, MessageId, sabotage};

use crate::Fault;
use crate::kv::View;
use crate::shard::read;
use crate::table::lane::{Lane, Rewound};

/// Both ends included.
type Range = (MessageId, MessageId);

/// What the messages up to some id have become.
pub(super) struct Progress {
    topic: Incarnation,
    strand: KeyHash,
    /// The end of what is settled from the front on.
    position: MessageId,
    /// The marks behind it, up to the id reached.
    marks: Vec<Range>,
    /// The lane's marks that are not reached, last first.
    rest: Vec<Range>,
    /// Whether the last range up to here has grown, and so may have met the next mark.
    grown: bool,
    /// The run that was looked at last.
    run: Option<Place>,
}

/// A stored run, and the last stored message of the strand before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) first: MessageId,
    pub(super) last: MessageId,
    pub(super) before: MessageId,
}

/// Where a message meets what is settled before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joint {
    /// It is the first that is not settled.
    Position,
    /// It is the next after a mark.
    Mark,
    /// There is an unsettled message right before it.
    Apart,
}

impl Progress {
    /// The lane as it was; `run` is where the first message is, if that is known.
    pub(super) fn new(
        topic: Incarnation,
        strand: KeyHash,
        lane: &Lane,
        run: Option<Place>,
    ) -> Self {
        Progress {
            topic,
            strand,
            position: lane.position,
            marks: Vec::new(),
            rest: lane.marks.iter().rev().copied().collect(),
            grown: false,
            run,
        }
    }

    /// Takes in every mark that begins at `message` or before.
    pub(super) fn reach(&mut self, view: &dyn View, message: MessageId) -> Result<(), Fault> {
        while let Some(mark) = self.rest.pop_if(|(start, _)| *start <= message) {
            let joint = match self.grown {
                true => self.joint(view, mark.0)?.unwrap_or(Joint::Apart),
                false => Joint::Apart,
            };
            self.add(mark, joint);
            self.grown = false;
        }
        Ok(())
    }

    /// Whether a message that is reached is settled or marked.
    pub(super) fn covers(&self, message: MessageId) -> bool {
        message <= self.end()
    }

    /// Where a message that is reached and not covered would join; `None` if it is not stored.
    pub(super) fn joint(
        &mut self,
        view: &dyn View,
        message: MessageId,
    ) -> Result<Option<Joint>, Fault> {
        let Some(run) = self.find(view, message)? else {
            return Ok(None);
        };
        let before = match message > run.first {
            true => MessageId::new(message.counter() - 1, message.shard()),
            false => run.before,
        };
        Ok(Some(if before > self.end() && !sabotage!("lane-skips") {
            Joint::Apart
        } else if self.marks.is_empty() {
            Joint::Position
        } else {
            Joint::Mark
        }))
    }

    /// The run of a message. Mostly it is the one looked at last, or the next of the strand.
    fn find(&mut self, view: &dyn View, message: MessageId) -> Result<Option<Place>, Fault> {
        if self.run.is_none_or(|run| !run.has(message)) {
            let next = match self.run {
                Some(run) => self.next_run(view, run)?,
                None => None,
            };
            self.run = match next.filter(|next| next.has(message)) {
                Some(next) => Some(next),
                None => self.look_up(view, message)?,
            };
        }
        Ok(self.run)
    }

    fn next_run(&self, view: &dyn View, run: Place) -> Result<Option<Place>, Fault> {
        let from = MessageId(run.last.0 + 1);
        let next = read::strand_runs(view, self.topic, self.strand, from).next();
        Ok(next.transpose()?.map(|(key, row)| Place {
            first: key.first,
            last: row.last(key.first),
            before: run.last,
        }))
    }

    fn look_up(&self, view: &dyn View, message: MessageId) -> Result<Option<Place>, Fault> {
        let floor = |at| read::strand_run_floor(view, self.topic, self.strand, at);
        let Some((key, row)) = floor(message)? else {
            return Ok(None);
        };
        let before = floor(MessageId(key.first.0 - 1))?;
        let place = Place {
            first: key.first,
            last: row.last(key.first),
            before: before.map_or(MessageId::ZERO, |(key, row)| row.last(key.first)),
        };
        Ok(Some(place).filter(|place| place.has(message)))
    }

    /// How many marks the lane has.
    pub(super) fn marks(&self) -> usize {
        self.marks.len() + self.rest.len()
    }

    /// Settles a message that is reached and not covered.
    pub(super) fn settle(&mut self, message: MessageId, joint: Joint) {
        self.add((message, message), joint);
        self.grown = true;
    }

    /// The lane as it is now.
    pub(super) fn finish(
        mut self,
        view: &dyn View,
        mut rewound: Vec<Rewound>,
    ) -> Result<Lane, Fault> {
        self.reach(view, MessageId::MAX)?;
        // Of those that the position has passed, the last one alone says what holds behind it.
        let passed = rewound.partition_point(|rewound| rewound.from <= self.position);
        rewound.drain(..passed.saturating_sub(1));
        Ok(Lane {
            position: self.position,
            marks: self.marks,
            rewound,
        })
    }

    fn end(&self) -> MessageId {
        self.marks.last().map_or(self.position, |(_, end)| *end)
    }

    fn add(&mut self, range: Range, joint: Joint) {
        match joint {
            Joint::Position => self.position = range.1,
            Joint::Mark => {
                let last = self.marks.last_mut();
                last.expect("a range joins a mark only if there is one").1 = range.1;
            }
            Joint::Apart => self.marks.push(range),
        }
    }
}

impl Place {
    fn has(&self, message: MessageId) -> bool {
        (self.first..=self.last).contains(&message)
    }
}
