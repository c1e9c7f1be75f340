//! Histories that break one promise each: every checker finds its own, and only its own.

use std::time::Duration;

use model::{MessageId, Timestamp};

use super::check;
use crate::history::{
    Call, Delivered, DeliveryNumber, Event, History, Key, Session, Subscription, Value, What,
};

const SUBSCRIPTION: Subscription = Subscription(1);
const ACK_DEADLINE: Duration = Duration::from_secs(10);

/// Writes a history of one subscription with one session, message by message.
struct Writer {
    history: History,
    now: Timestamp,
    calls: u64,
    deliveries: u64,
}

impl Writer {
    fn new(ordered: bool, exactly_once: bool) -> Self {
        let mut writer = Writer {
            history: History {
                events: Vec::new(),
                drained: true,
            },
            now: Timestamp(1),
            calls: 0,
            deliveries: 0,
        };
        writer.write(What::Created {
            subscription: SUBSCRIPTION,
            ordered,
            exactly_once,
            may_wait: false,
        });
        writer.open(1, 3);
        writer
    }

    fn write(&mut self, what: What) {
        let at = self.now;
        self.history.events.push(Event { at, what });
    }

    fn wait(&mut self, seconds: u64) {
        self.now = self.now.plus(Duration::from_secs(seconds));
    }

    fn call(&mut self) -> Call {
        self.calls += 1;
        Call(self.calls)
    }

    fn open(&mut self, session: u64, messages_max: u32) {
        let session = Session(session);
        self.write(What::Opened {
            session,
            subscription: SUBSCRIPTION,
            stream: true,
            messages_max,
        });
        self.write(What::Credit {
            session,
            free: true,
        });
    }

    /// Publishes a message of key `k`; its value is its id.
    fn publish(&mut self, id: u64) {
        let call = self.call();
        self.write(What::PublishInvoked {
            call,
            key: Key::from("k"),
            values: vec![Value(id)],
        });
        let ids = vec![MessageId(id)];
        self.write(What::PublishOk { call, ids });
    }

    fn deliver(&mut self, message: u64) -> DeliveryNumber {
        self.deliver_to(1, message)
    }

    fn deliver_to(&mut self, session: u64, message: u64) -> DeliveryNumber {
        self.deliveries += 1;
        let delivery = DeliveryNumber(self.deliveries);
        self.write(What::Delivered(Delivered {
            delivery,
            subscription: SUBSCRIPTION,
            session: Session(session),
            key: Key::from("k"),
            message: MessageId(message),
            value: Value(message),
            ack_deadline: ACK_DEADLINE,
        }));
        delivery
    }

    fn ack(&mut self, delivery: DeliveryNumber) {
        let call = self.call();
        self.write(What::AckInvoked { call, delivery });
        self.write(What::AckOk { call });
    }

    fn nack(&mut self, delivery: DeliveryNumber) {
        let call = self.call();
        self.write(What::NackInvoked { call, delivery });
        self.write(What::NackOk { call });
    }

    fn deliver_and_ack(&mut self, message: u64) {
        let delivery = self.deliver(message);
        self.ack(delivery);
    }

    /// The promises that the history breaks.
    fn broken(self) -> Vec<&'static str> {
        let violations = check(&self.history);
        violations
            .iter()
            .map(|violation| &violation.promise[..3])
            .map(str::trim)
            .collect()
    }
}

/// Three messages of an ordered key that were published.
fn three(exactly_once: bool) -> Writer {
    let mut writer = Writer::new(true, exactly_once);
    for id in 1..=3 {
        writer.publish(id);
    }
    writer
}

#[test]
fn a_good_history_breaks_nothing() {
    for exactly_once in [false, true] {
        let mut writer = three(exactly_once);
        let [first, second] = [writer.deliver(1), writer.deliver(2)];
        writer.ack(first);
        writer.nack(second);
        let again = writer.deliver(2);
        let third = writer.deliver(3);
        writer.ack(again);
        writer.wait(9);
        writer.ack(third);
        assert_eq!(writer.broken(), [""; 0]);
    }
}

#[test]
fn a_cascade_repeats_what_was_acked() {
    let mut writer = three(false);
    let [first, second] = [writer.deliver(1), writer.deliver(2)];
    writer.ack(second);
    writer.nack(first);
    for message in 1..=3 {
        writer.deliver_and_ack(message);
    }
    assert_eq!(writer.broken(), [""; 0]);
}

#[test]
fn p2_first_deliveries_out_of_order() {
    let mut writer = three(false);
    for message in [1, 3, 2, 3] {
        writer.deliver_and_ack(message);
    }
    // Message 3 was acknowledged, but came along with 2.
    assert_eq!(writer.broken(), ["P2"]);
}

#[test]
fn p2_and_p3_an_unacked_message_is_stepped_over() {
    let mut writer = three(false);
    let [first, _, third] = [writer.deliver(1), writer.deliver(2), writer.deliver(3)];
    writer.nack(first);
    writer.deliver_and_ack(1);
    writer.ack(third);
    writer.deliver_and_ack(3);
    assert_eq!(writer.broken(), ["P2", "P3", "P4"]);
}

#[test]
fn p3_an_acked_message_does_not_come_along() {
    let mut writer = three(false);
    let [first, second] = [writer.deliver(1), writer.deliver(2)];
    writer.ack(second);
    writer.nack(first);
    writer.deliver_and_ack(1);
    writer.deliver_and_ack(3);
    assert_eq!(writer.broken(), ["P3"]);
}

#[test]
fn p3_the_last_of_a_cascade_does_not_come() {
    let mut writer = three(false);
    let [first, second] = [writer.deliver(1), writer.deliver(2)];
    writer.deliver_and_ack(3);
    writer.ack(second);
    writer.nack(first);
    writer.deliver_and_ack(1);
    writer.deliver_and_ack(2);
    assert_eq!(writer.broken(), ["P3"]);
}

#[test]
fn p4_a_stored_message_never_comes() {
    let mut writer = three(false);
    writer.deliver_and_ack(1);
    writer.deliver_and_ack(3);
    assert_eq!(writer.broken(), ["P4"]);
}

#[test]
fn p4_a_nacked_message_does_not_come_again() {
    let mut writer = Writer::new(false, false);
    writer.publish(1);
    let delivery = writer.deliver(1);
    writer.nack(delivery);
    assert_eq!(writer.broken(), ["P4"]);
}

#[test]
fn p4_in_a_key_the_ack_of_an_older_delivery_settles_nothing() {
    let mut writer = Writer::new(true, false);
    writer.publish(1);
    let first = writer.deliver(1);
    writer.nack(first);
    writer.deliver(1);
    writer.ack(first);
    assert_eq!(writer.broken(), ["P4"]);
}

#[test]
fn p4_a_drained_history_is_needed_and_a_deleted_subscription_wants_nothing() {
    let mut writer = three(false);
    writer.history.drained = false;
    assert_eq!(writer.broken(), [""; 0]);
    let mut writer = three(false);
    writer.write(What::Deleted {
        subscription: SUBSCRIPTION,
    });
    assert_eq!(writer.broken(), [""; 0]);
}

#[test]
fn p5_an_acked_message_comes_again() {
    for ordered in [true, false] {
        let mut writer = Writer::new(ordered, false);
        writer.publish(1);
        writer.deliver_and_ack(1);
        writer.deliver_and_ack(1);
        assert_eq!(writer.broken(), ["P5"]);
    }
}

#[test]
fn p5_an_old_id_promises_nothing() {
    let mut writer = Writer::new(false, false);
    writer.publish(1);
    let old = writer.deliver(1);
    writer.nack(old);
    let latest = writer.deliver(1);
    writer.ack(old);
    writer.nack(latest);
    writer.deliver_and_ack(1);
    assert_eq!(writer.broken(), [""; 0]);
}

#[test]
fn p6_a_lease_is_not_respected() {
    let mut writer = Writer::new(false, true);
    writer.publish(1);
    writer.deliver(1);
    writer.wait(9);
    writer.deliver_and_ack(1);
    assert_eq!(writer.broken(), ["P6"]);
    let mut writer = Writer::new(false, true);
    writer.publish(1);
    writer.deliver(1);
    writer.deliver(1);
    writer.wait(10);
    writer.deliver_and_ack(1);
    assert_eq!(writer.broken(), ["P6"]);
}

#[test]
fn p6_an_extension_is_not_respected() {
    let mut writer = Writer::new(false, true);
    writer.publish(1);
    let delivery = writer.deliver(1);
    let call = writer.call();
    writer.write(What::ExtendInvoked {
        call,
        delivery,
        ack_deadline: 6 * ACK_DEADLINE,
    });
    writer.write(What::ExtendOk { call });
    writer.wait(59);
    writer.deliver_and_ack(1);
    assert_eq!(writer.broken(), ["P6"]);
}

#[test]
fn p6_an_ended_session_releases_after_five_seconds_and_not_before() {
    for (seconds, expected) in [(5, &[][..]), (4, &["P6"][..])] {
        let mut writer = Writer::new(false, true);
        writer.publish(1);
        writer.deliver(1);
        let session = Session(1);
        writer.write(What::Closed { session });
        writer.open(2, 1);
        writer.wait(seconds);
        let delivery = writer.deliver_to(2, 1);
        writer.ack(delivery);
        assert_eq!(writer.broken(), expected);
    }
}

#[test]
fn p6_a_message_comes_after_its_ack() {
    let mut writer = Writer::new(false, true);
    writer.publish(1);
    writer.deliver_and_ack(1);
    writer.wait(60);
    writer.deliver(1);
    assert_eq!(writer.broken(), ["P5", "P6"]);
}

#[test]
fn p6_a_stale_id_is_accepted() {
    let mut writer = Writer::new(false, true);
    writer.publish(1);
    let first = writer.deliver(1);
    writer.nack(first);
    let second = writer.deliver(1);
    writer.ack(first);
    writer.ack(second);
    assert_eq!(writer.broken(), ["P6"]);
}

#[test]
fn p8_ids_go_back() {
    let mut writer = Writer::new(true, false);
    writer.publish(2);
    writer.publish(1);
    writer.deliver_and_ack(1);
    writer.deliver_and_ack(2);
    assert_eq!(writer.broken(), ["P8"]);
}

#[test]
fn p8_a_message_that_nobody_published_or_that_was_refused() {
    let mut writer = Writer::new(true, false);
    writer.deliver_and_ack(7);
    assert_eq!(writer.broken(), ["P8"]);
    let mut writer = Writer::new(true, false);
    let call = writer.call();
    writer.write(What::PublishInvoked {
        call,
        key: Key::from("k"),
        values: vec![Value(7)],
    });
    writer.write(What::PublishFailed { call });
    writer.deliver_and_ack(7);
    assert_eq!(writer.broken(), ["P8"]);
}

#[test]
fn p8_one_message_under_two_ids() {
    let mut writer = Writer::new(true, false);
    writer.publish(1);
    let call = writer.call();
    writer.write(What::PublishInvoked {
        call,
        key: Key::from("k"),
        values: vec![Value(2)],
    });
    writer.deliver_and_ack(1);
    writer.deliver_and_ack(2);
    let ids = vec![MessageId(3)];
    writer.write(What::PublishOk { call, ids });
    writer.deliveries += 1;
    assert!(writer.broken().contains(&"P8"));
}

#[test]
fn p10_nobody_wakes_up() {
    let mut writer = three(false);
    writer.deliver_and_ack(1);
    writer.wait(2);
    writer.deliver_and_ack(2);
    writer.deliver_and_ack(3);
    assert_eq!(writer.broken(), ["P10"]);
}

#[test]
fn p10_a_nacked_message_waits_too_long() {
    let mut writer = Writer::new(false, false);
    writer.publish(1);
    let delivery = writer.deliver(1);
    writer.nack(delivery);
    writer.wait(2);
    writer.deliver_and_ack(1);
    assert_eq!(writer.broken(), ["P10"]);
}

#[test]
fn p10_without_credit_or_server_or_behind_another_nothing_is_due() {
    let mut writer = three(false);
    let session = Session(1);
    let [free, taken] = [true, false].map(|free| What::Credit { session, free });
    for (hold, release) in [(taken, free), (What::Down, What::Up)] {
        writer.write(hold);
        writer.wait(2);
        writer.write(release);
    }
    let first = writer.deliver(1);
    writer.wait(2);
    writer.ack(first);
    writer.deliver_and_ack(2);
    writer.deliver_and_ack(3);
    assert_eq!(writer.broken(), [""; 0]);
}

#[test]
fn p10_a_key_may_stand_still_while_it_moves_and_no_longer() {
    let key = Key::from("k");
    let [moving, moved] = [What::Moving { key: key.clone() }, What::Moved { key }];
    for (waits, broken) in [(0, &[][..]), (2, &["P10"])] {
        let mut writer = three(false);
        writer.write(moving.clone());
        writer.wait(2);
        writer.publish(4);
        writer.wait(2);
        writer.write(moved.clone());
        writer.wait(waits);
        for message in 1..=4 {
            writer.deliver_and_ack(message);
        }
        assert_eq!(writer.broken(), broken);
    }
}

#[test]
fn p10_an_exactly_once_delivery_may_be_lost_on_its_way_where_a_key_moves() {
    let key = Key::from("k");
    let mut writer = three(true);
    writer.write(What::Moving { key: key.clone() });
    writer.write(What::Moved { key });
    writer.wait(10);
    for message in 1..=3 {
        writer.deliver_and_ack(message);
    }
    // What comes later waits for nothing.
    writer.publish(4);
    writer.wait(2);
    writer.deliver_and_ack(4);
    assert_eq!(writer.broken(), ["P10"]);
}

#[test]
fn p11_more_is_outstanding_than_was_allowed() {
    let mut writer = three(false);
    writer.publish(4);
    let deliveries = [1, 2, 3, 4].map(|message| writer.deliver(message));
    for delivery in deliveries {
        writer.ack(delivery);
    }
    assert_eq!(writer.broken(), ["P11"]);
}

#[test]
fn p11_a_nack_or_an_expiry_takes_the_rest_of_the_key_along() {
    let mut writer = three(false);
    let first = [1, 2, 3].map(|message| writer.deliver(message))[0];
    writer.nack(first);
    let deliveries = [1, 2, 3].map(|message| writer.deliver(message));
    writer.wait(10);
    let again = [1, 2, 3].map(|message| writer.deliver(message));
    for delivery in deliveries.into_iter().chain(again) {
        writer.ack(delivery);
    }
    assert_eq!(writer.broken(), [""; 0]);
}

#[test]
fn p11_what_an_ended_session_left_takes_along_what_its_successor_got() {
    let mut writer = three(false);
    writer.publish(4);
    let first = writer.deliver(1);
    writer.open(2, 3);
    writer.write(What::Closed {
        session: Session(1),
    });
    for message in [2, 3, 4] {
        writer.deliver_to(2, message);
    }
    writer.nack(first);
    for message in [1, 2, 3] {
        let delivery = writer.deliver_to(2, message);
        writer.ack(delivery);
    }
    let last = writer.deliver_to(2, 4);
    writer.ack(last);
    assert_eq!(writer.broken(), [""; 0]);
}
