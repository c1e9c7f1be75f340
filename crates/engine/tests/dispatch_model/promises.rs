//! What was promised, judged by what was published, delivered and answered. One plain state per
//! message, no index, nothing clever.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use engine::dispatch::{AckReply, Delivered, ModifyReply, SessionKind};
use engine::kv::ViewExt;
use engine::kv::memory::MemoryView;
use engine::shard::Backlog;
use engine::subscription::SubscriptionSettings;
use engine::table::attachment::{Attachment, AttachmentKey};
use engine::table::lane::Lane;
use model::limits::ENDED_SESSION_RELEASE;
use model::{AckId, Generation, KeyHash, MessageId, SessionId, Timestamp};

use crate::bench::{self, Heard};

struct Lease {
    generation: Generation,
    session: SessionId,
    batch: u64,
    deadline: Timestamp,
    /// When its deadline is if its stream comes back.
    if_back: Option<Timestamp>,
    extended: bool,
    exactly_once: bool,
    /// It may be over: an ack with an older id, or one whose answer was lost with its leader, may have
    /// settled the message, or its lane went back.
    doubtful: bool,
    /// When its deadline is cannot be told from outside.
    changing: bool,
    /// Which leader gave it, counting all of them. What earlier ones gave counts for no credit.
    leader: u32,
}

/// What is known of a session.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) kind: SessionKind,
    pub(crate) client: Option<String>,
    pub(crate) deadline: Duration,
    pub(crate) messages_max: u32,
}

pub(crate) struct Promises {
    pub(crate) settings: SubscriptionSettings,
    /// Whether it was ever exactly-once: then marks may be passed over.
    ever_exactly_once: bool,
    /// The strand of each wanted message, if it is in a lane.
    strand_of: BTreeMap<MessageId, Option<KeyHash>>,
    by_text: BTreeMap<String, MessageId>,
    /// The wanted messages of each key, in publish order.
    strands: BTreeMap<KeyHash, Vec<MessageId>>,
    /// The message of each key that was delivered last.
    last: BTreeMap<KeyHash, MessageId>,
    leases: BTreeMap<MessageId, Lease>,
    latest: BTreeMap<MessageId, Generation>,
    deliveries: BTreeMap<MessageId, u32>,
    leader_changes: u32,
    /// Messages that left for the dead letters, if only for a while.
    dead: BTreeSet<MessageId>,
    /// Acks that are not answered yet.
    unanswered: BTreeMap<AckId, u32>,
    /// The same of shorter and longer deadlines.
    unanswered_changes: Vec<(AckId, Timestamp)>,
    /// Nacked while an ack was not answered yet.
    nacked_meanwhile: BTreeSet<AckId>,
    /// Acknowledged with the id of the latest delivery.
    acknowledged: BTreeSet<MessageId>,
    pub(crate) sessions: BTreeMap<SessionId, Known>,
}

impl Promises {
    pub(crate) fn new(settings: SubscriptionSettings) -> Self {
        Promises {
            ever_exactly_once: settings.exactly_once,
            settings,
            strand_of: BTreeMap::new(),
            by_text: BTreeMap::new(),
            strands: BTreeMap::new(),
            last: BTreeMap::new(),
            leases: BTreeMap::new(),
            latest: BTreeMap::new(),
            deliveries: BTreeMap::new(),
            leader_changes: 0,
            dead: BTreeSet::new(),
            unanswered: BTreeMap::new(),
            unanswered_changes: Vec::new(),
            nacked_meanwhile: BTreeSet::new(),
            acknowledged: BTreeSet::new(),
            sessions: BTreeMap::new(),
        }
    }

    pub(crate) fn change_settings(&mut self, settings: SubscriptionSettings) {
        self.ever_exactly_once |= settings.exactly_once;
        self.settings = settings;
    }

    pub(crate) fn published(&mut self, key: &str, ids: &[MessageId], texts: &[String]) {
        let strand = (self.settings.ordered && !key.is_empty()).then(|| bench::key(key));
        for (id, text) in ids.iter().zip(texts) {
            self.strand_of.insert(*id, strand);
            self.by_text.insert(text.clone(), *id);
            if let Some(strand) = strand {
                self.strands.entry(strand).or_default().push(*id);
            }
        }
    }

    /// Time has passed. An ack or extension that came in time decides, when it is answered.
    pub(crate) fn expire(&mut self, now: Timestamp) {
        while let Some(message) = self.first_expired(now) {
            self.fail(message);
        }
    }

    fn first_expired(&self, now: Timestamp) -> Option<MessageId> {
        let is_asked = |message, lease: &Lease| {
            let changes = self.unanswered_changes.iter().map(|(id, _)| id);
            let mut asked = self.unanswered.keys().chain(changes);
            asked.any(|id| id.message == message && id.generation == lease.generation)
        };
        let mut leases = self.leases.iter();
        let expired =
            leases.find(|(message, lease)| lease.deadline <= now && !is_asked(**message, lease));
        expired.map(|(message, _)| *message)
    }

    pub(crate) fn sent_ack(&mut self, id: AckId) {
        *self.unanswered.entry(id).or_default() += 1;
    }

    pub(crate) fn nacked(&mut self, id: &AckId) {
        if self.unanswered.contains_key(id) {
            // The ack that came first decides.
            self.nacked_meanwhile.insert(*id);
        } else if self.is_latest_lease(id) {
            self.fail(id.message);
        }
    }

    pub(crate) fn session_closed(
        &mut self,
        session: SessionId,
        now: Timestamp,
        returned: &[Delivered],
    ) {
        for delivery in returned {
            self.nacked(&delivery.ack);
        }
        self.release_early(now, |lease| {
            (lease.session == session).then_some(ENDED_SESSION_RELEASE)
        });
    }

    /// A stream's client may have it still, though the leader can't reach it.
    pub(crate) fn session_lost(&mut self, session: SessionId, now: Timestamp) {
        let is_released = |lease: &Lease| lease.session == session && !lease.exactly_once;
        self.release_early(now, |lease| {
            is_released(lease).then_some(bench::BACK_WITHIN)
        });
    }

    /// Every stream that there was has ended.
    pub(crate) fn process_ended(&mut self, now: Timestamp) {
        self.release_early(now, |_| Some(ENDED_SESSION_RELEASE));
    }

    /// What streams got that have ended may come again so soon, unless its client confirmed it.
    fn release_early(&mut self, now: Timestamp, within: impl Fn(&Lease) -> Option<Duration>) {
        for lease in self.leases.values_mut() {
            let of_stream = self.sessions[&lease.session].kind == SessionKind::Stream;
            if let Some(within) = within(lease)
                && of_stream
                && !lease.extended
            {
                lease.if_back.get_or_insert(lease.deadline);
                lease.deadline = lease.deadline.min(now.plus(within));
            }
        }
    }

    /// A stream is open again, under another number.
    pub(crate) fn came_back(&mut self, stream: SessionId, session: SessionId) {
        let known = Known {
            deadline: bench::ACK_DEADLINE,
            ..self.sessions[&stream].clone()
        };
        self.sessions.insert(session, known);
        let leases = self.leases.values_mut();
        for lease in leases.filter(|lease| lease.session == stream) {
            lease.session = session;
            lease.deadline = lease.if_back.take().unwrap_or(lease.deadline);
        }
    }

    /// A lane goes back: everything behind `from` comes again with it, even if `from` itself then
    /// leaves for the dead letters.
    pub(crate) fn rewound(&mut self, strand: KeyHash, from: MessageId) {
        let behind = |id: &MessageId| self.strand_of[id] == Some(strand) && *id > from;
        self.acknowledged.retain(|id| !behind(id));
        let leases = self.leases.iter_mut();
        for (_, lease) in leases.filter(|(id, _)| behind(id)) {
            lease.doubtful = true;
        }
    }

    pub(crate) fn sent_change(&mut self, id: AckId, deadline: Timestamp) {
        if self.is_latest_lease(&id)
            && let Some(lease) = self.leases.get_mut(&id.message)
        {
            lease.changing = true;
        }
        self.unanswered_changes.push((id, deadline));
    }

    pub(crate) fn leader_changed(&mut self) {
        self.leader_changes += 1;
        // They may have been carried out.
        for (id, deadline) in std::mem::take(&mut self.unanswered_changes) {
            if self.is_latest_lease(&id)
                && let Some(lease) = self.leases.get_mut(&id.message)
            {
                lease.deadline = lease.deadline.min(deadline);
            }
        }
        for (id, _) in std::mem::take(&mut self.unanswered) {
            if self.is_latest_lease(&id)
                && let Some(lease) = self.leases.get_mut(&id.message)
            {
                lease.doubtful = true;
            }
        }
        for id in std::mem::take(&mut self.nacked_meanwhile) {
            self.nacked(&id);
        }
        let exactly_once = self.settings.exactly_once;
        self.leases
            .retain(|_, lease| exactly_once && lease.exactly_once);
    }

    pub(crate) fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Delivered {
                session,
                batch,
                delivery,
                at,
                lane,
                settled,
            } => {
                self.expire(at);
                self.delivered(session, batch, &delivery, at);
                match self.strand_of[&delivery.ack.message] {
                    Some(strand) => self.judge_lane(strand, session, batch, &delivery, &lane),
                    None => assert!(!settled, "P5: {} is settled", delivery.ack.message),
                }
            }
            Heard::Acknowledged(id, reply) => self.answered(&id, reply),
            Heard::Modified(id, duration, reply, at) => self.modified(&id, duration, reply, at),
            Heard::Forwarded(message) => self.forwarded(&bench::data(&message)),
        }
    }

    fn delivered(&mut self, session: SessionId, batch: u64, delivery: &Delivered, at: Timestamp) {
        let (message, generation) = (delivery.ack.message, delivery.ack.generation);
        assert!(
            self.strand_of.contains_key(&message),
            "{message} is not wanted"
        );
        let latest = self.latest.insert(message, generation);
        assert!(latest < Some(generation), "P6: ids of {message} grow");
        *self.deliveries.entry(message).or_default() += 1;
        let lease = Lease {
            generation,
            session,
            batch,
            deadline: at.plus(self.sessions[&session].deadline),
            if_back: None,
            extended: false,
            exactly_once: self.settings.exactly_once,
            doubtful: false,
            changing: false,
            leader: self.leader_changes,
        };
        let leased = self.leases.insert(message, lease);
        assert!(
            leased.is_none_or(|lease| lease.doubtful || lease.changing),
            "{message} is delivered during its lease"
        );
        // Of a lane only what is behind a redelivery comes again.
        let comes_by_itself = self.strand_of[&message].is_none_or(|strand| {
            let last = self.last.get(&strand);
            last.is_none_or(|last| message <= *last)
        });
        let acknowledged = self.acknowledged.remove(&message);
        assert!(
            !acknowledged || !comes_by_itself,
            "P5: {message} comes again after its ack"
        );
        self.judge_outstanding(session);
    }

    /// Counted are the deliveries whose lease surely lives.
    fn judge_outstanding(&self, session: SessionId) {
        let is_asked = |message: MessageId| self.unanswered.keys().any(|id| id.message == message);
        let leases = self.leases.iter();
        let surely = leases.filter(|(message, lease)| {
            let surely = !lease.doubtful && !lease.changing && !is_asked(**message);
            // Leases that are not in the log are unknown to later leaders.
            let counts = lease.exactly_once || lease.leader == self.leader_changes;
            surely && lease.session == session && counts
        });
        let (outstanding, allowed) = (surely.count(), self.sessions[&session].messages_max);
        assert!(
            outstanding <= allowed as usize,
            "P11: session {session} has {outstanding} of {allowed} messages"
        );
    }

    fn judge_lane(
        &mut self,
        strand: KeyHash,
        session: SessionId,
        batch: u64,
        delivery: &Delivered,
        lane: &Lane,
    ) {
        let message = delivery.ack.message;
        let passed = |id: MessageId| match self.ever_exactly_once {
            true => lane.covers(id),
            false => id <= lane.position,
        };
        assert!(!passed(message), "P5: {message} is settled");
        let last = self.last.get(&strand).copied();
        let messages = &self.strands[&strand];
        let skipped = messages
            .iter()
            .filter(|id| last.is_none_or(|last| **id > last) && **id < message);
        for id in skipped {
            let left = self.dead.contains(id) && lane.covers(*id);
            assert!(left || passed(*id), "P2: {message} comes before {id}");
        }
        if !self.ever_exactly_once {
            let marked = |(_, end): &(MessageId, MessageId)| *end >= message;
            assert!(
                !lane.marks.iter().any(marked),
                "P3: an old ack of a later one counts"
            );
        }
        for (id, lease) in self.leases.range(..message) {
            // The answer to an ack may be lost with a leader.
            if self.strand_of[id] != Some(strand) || passed(*id) {
                continue;
            }
            assert!(
                self.is_same_client(lease.session, session),
                "{message} goes to another than {id}"
            );
            let same_batch = lease.batch == batch;
            assert!(
                same_batch || self.sessions[&session].kind == SessionKind::Stream,
                "a Pull gets {message} while {id} is outstanding"
            );
        }
        self.last.insert(strand, message);
    }

    fn answered(&mut self, id: &AckId, reply: AckReply) {
        let latest = self.latest.get(&id.message) == Some(&id.generation);
        let unanswered = self.unanswered.get_mut(id).expect("it was asked");
        *unanswered -= 1;
        if *unanswered == 0 {
            self.unanswered.remove(id);
            if self.nacked_meanwhile.remove(id) && reply != AckReply::Acknowledged {
                self.nacked(id);
            }
        }
        if matches!(reply, AckReply::Superseded | AckReply::Void) && latest {
            // The client was told that the message comes again.
            self.leases.remove(&id.message);
        }
        if reply == AckReply::Acknowledged {
            if latest {
                self.acknowledged.insert(id.message);
            }
            // An older id settles a message that waits for no other.
            if latest || self.strand_of[&id.message].is_none() {
                self.leases.remove(&id.message);
            } else if let Some(lease) = self.leases.get_mut(&id.message) {
                lease.doubtful = true;
            }
        }
    }

    fn modified(&mut self, id: &AckId, to: Duration, reply: ModifyReply, now: Timestamp) {
        if to.is_zero() {
            return;
        }
        let mut asked = self.unanswered_changes.iter();
        let asked = asked.position(|(asked, _)| asked == id);
        let asked = asked.map(|at| self.unanswered_changes.remove(at));
        // Some begin to count when they are asked for, and some with the answer.
        if let Some((_, deadline)) = asked
            && reply == ModifyReply::Modified
            && self.is_latest_lease(id)
            && let Some(lease) = self.leases.get_mut(&id.message)
        {
            (lease.deadline, lease.if_back) = (now.plus(to), None);
            lease.changing = lease.deadline != deadline;
            // What counted when it was asked for may be over since, and a later change of a lease
            // that is over is answered alike.
            lease.doubtful |= lease.changing && !lease.exactly_once;
            lease.extended = true;
        }
        self.expire(now);
    }

    fn forwarded(&mut self, text: &str) {
        let message = self.by_text[text];
        self.dead.insert(message);
        let policy = self.settings.dead_letter.as_ref();
        if let Some(policy) = policy {
            let deliveries = self.deliveries.get(&message).copied().unwrap_or(0);
            // A leader may end between the log and the sending of a delivery.
            assert!(
                deliveries + self.leader_changes >= policy.attempts_max,
                "{message} is dead after {deliveries} deliveries"
            );
        }
        self.leases.remove(&message);
    }

    /// With ample credit, and everything under way done: what could be delivered and is not.
    pub(crate) fn forgotten(&self, view: &MemoryView) -> BTreeSet<MessageId> {
        let backlog = self.backlog(view);
        let held_back = |message: &MessageId| {
            let logged = backlog.delivery(*message).unwrap();
            self.leases.contains_key(message) || logged.is_some_and(|row| row.lease.is_some())
        };
        let loose = self.strand_of.iter().filter(|(message, strand)| {
            strand.is_none() && !self.is_settled(view, **message) && !held_back(message)
        });
        let mut forgotten: BTreeSet<_> = loose.map(|(message, _)| *message).collect();
        for (strand, messages) in &self.strands {
            let position = backlog.lane(*strand).unwrap().position;
            let mut waiting = messages.iter().filter(|message| **message > position);
            let head = waiting.clone().next();
            if !waiting.any(held_back) {
                forgotten.extend(head);
            }
        }
        forgotten
    }

    /// Messages that are not settled.
    pub(crate) fn unsettled(&self, view: &MemoryView) -> Vec<MessageId> {
        let unsettled = self.strand_of.keys().copied();
        unsettled
            .filter(|message| !self.is_settled(view, *message))
            .collect()
    }

    fn is_settled(&self, view: &MemoryView, message: MessageId) -> bool {
        match self.strand_of[&message] {
            Some(strand) => {
                let lane = self.backlog(view).lane(strand).unwrap();
                message <= lane.position
            }
            None => self.backlog(view).is_settled(message).unwrap(),
        }
    }

    fn backlog<'v>(&self, view: &'v MemoryView) -> Backlog<'v> {
        let key = AttachmentKey {
            topic: bench::TOPIC,
            subscription: bench::SUB,
        };
        let attachment: Attachment = view.row(&key).unwrap().expect("it is attached");
        Backlog::of(view, key, Arc::new(attachment))
    }

    fn is_same_client(&self, one: SessionId, other: SessionId) -> bool {
        let client = |session| self.sessions[&session].client.clone();
        one == other || (client(one).is_some() && client(one) == client(other))
    }

    fn is_latest_lease(&self, id: &AckId) -> bool {
        let lease = self.leases.get(&id.message);
        lease.is_some_and(|lease| lease.generation == id.generation)
    }

    /// A lease is over, and with it, without exactly-once, those behind it in its lane. Perhaps, if
    /// its message was settled by an older id.
    fn fail(&mut self, message: MessageId) {
        let Some(failed) = self.leases.remove(&message) else {
            return;
        };
        let Some(strand) = self.strand_of[&message] else {
            return;
        };
        let strand_of = &self.strand_of;
        let goes_along = |id: &MessageId, lease: &Lease| {
            strand_of[id] == Some(strand) && *id > message && !lease.exactly_once
        };
        for (id, lease) in &mut self.leases {
            lease.doubtful |= failed.doubtful && goes_along(id, lease);
        }
        self.leases
            .retain(|id, lease| failed.doubtful || !goes_along(id, lease));
    }
}
