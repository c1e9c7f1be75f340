//! The invariants of a leader between two steps, for tests and simulations to assert.

use model::Timestamp;

use super::dispatcher::Dispatcher;
use super::lane::Status;
use super::leader::Leader;
use super::session::Flow;

impl Leader {
    /// Asserts what must hold after every step. Costs as much as the leader has in memory.
    ///
    /// # Panics
    /// When something does not hold.
    pub fn assert_invariants(&self, now: Timestamp) {
        for dispatcher in self.dispatchers.values() {
            dispatcher.assert_leases();
            dispatcher.assert_lanes();
            dispatcher.assert_no_lost_wake_up(now);
        }
    }
}

impl Dispatcher {
    /// Each lease in a lane is outstanding there, and the other way round.
    fn assert_leases(&self) {
        let in_lanes = self.leases.iter().filter(|(_, lease)| lease.in_lane);
        let mut leased = 0;
        for (message, lease) in in_lanes {
            let lane = self.lanes.get(&lease.strand);
            assert!(
                lane.is_some_and(|lane| lane.is_outstanding(message)),
                "message {message} is leased, and its lane does not know"
            );
            leased += 1;
        }
        let outstanding = self.lanes.values().map(|lane| lane.outstanding.len());
        assert_eq!(outstanding.sum::<usize>(), leased, "leases in lanes");
        for (message, lease) in self.leases.iter() {
            let decided = !lease.is_undecided();
            let is_sent = lease.deadline.is_some() || self.is_logging(message);
            assert!(
                !decided || is_sent,
                "the lease of {message} would never run out"
            );
        }
    }

    /// Each lane is in the queue that it belongs into.
    fn assert_lanes(&self) {
        for (strand, lane) in &self.lanes {
            let queue = lane.place.map(|place| place.queue);
            match lane.status() {
                Status::Done => panic!("lane {strand:?} is done, and still in memory"),
                Status::Waiting => assert_eq!(queue, None, "lane {strand:?} must wait"),
                Status::Free => assert!(queue.is_some(), "lane {strand:?} is forgotten"),
                Status::Held(holder) => assert!(
                    queue.is_none() || queue == Some(Some(holder)),
                    "lane {strand:?} is in the queue of another than its holder"
                ),
            }
            let listed = |at| self.resumptions.contains(&(at, *strand));
            assert!(lane.resume_at.is_none_or(listed), "a back-off never ends");
        }
        let placed = self.lanes.values().filter(|lane| lane.place.is_some());
        assert_eq!(placed.count(), self.ready.len(), "lanes in queues");
    }

    /// If something can go and somebody might take it, it is offered, or under way, or the leader
    /// wakes by itself.
    fn assert_no_lost_wake_up(&self, now: Timestamp) {
        if self.outbox.settles_enough() {
            return;
        }
        for (id, session) in self.sessions.iter() {
            let own = self.ready.waiting(Some(id)).messages;
            let is_idle = matches!(session.flow, Flow::Idle);
            assert!(
                !is_idle || own == 0,
                "session {id} is not told of its lanes"
            );
        }
        let idle = self
            .sessions
            .iter()
            .any(|(_, session)| matches!(session.flow, Flow::Idle));
        let unread = self.wants_to_read() && !self.reader.at_end;
        if idle && (self.shared().messages > 0 || unread) {
            let wakes = self.next_wake(now).is_some();
            let under_way = self.in_flight > 0 || !self.outbox.is_empty();
            assert!(wakes || under_way, "what waits for anybody is forgotten");
        }
    }

    fn is_logging(&self, message: model::MessageId) -> bool {
        self.sessions
            .iter()
            .any(|(_, session)| match &session.flow {
                Flow::Logging { deliveries, .. } => {
                    let mut messages = deliveries.iter().map(|delivery| delivery.ack.message);
                    messages.any(|logging| logging == message)
                }
                _ => false,
            })
            || self.in_flight > 0
            || !self.outbox.is_empty()
    }
}
