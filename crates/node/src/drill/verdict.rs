//! What a ledger says about the promises: nothing lost, order kept, exactly once, and how long the
//! service was away.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use super::ledger::{Audited, Delivered, Ledger, Moment, Pages};
use super::message::Token;
use crate::cli::output::Show;

/// The result of a drill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) drill: String,
    pub(super) published: usize,
    pub(super) delivered: usize,
    /// Publishes answered OK that were not delivered, counted for each subscription.
    pub(super) lost: usize,
    pub(super) order_violations: usize,
    pub(super) exactly_once_violations: usize,
    /// Attempts to publish that were stored as more than one message.
    pub(super) stored_twice: usize,
    /// At-least-once deliveries of what had been delivered before. Allowed, and counted.
    pub(super) duplicates: usize,
    /// Whether what happened was planned, so that clients should hardly notice.
    pub(super) planned: bool,
    /// Attempts to publish that failed. Clients made them again.
    pub(super) failed: usize,
    /// The longest that an attempt to publish took, whatever its answer.
    pub(super) slowest_publish: Duration,
    /// From the event until the last key could be published to again; `None` if one never could.
    pub(super) rto_publish: Option<Duration>,
    /// From the event until a message published after it was delivered for the last key, to the
    /// subscription with at-least-once delivery.
    pub(super) rto_at_least_once: Option<Duration>,
    /// The same with exactly-once delivery, where a key waits for what a lost client holds.
    pub(super) rto_exactly_once: Option<Duration>,
    /// The same for those keys alone that were delivered to streams which outlive the event, so
    /// that no lost client holds anything of them; `None` also if there are none.
    pub(super) rto_exactly_once_free: Option<Duration>,
}

impl Ledger {
    /// Judges everything that is written down.
    pub(super) fn verdict(&self, drill: &str, planned: bool) -> Verdict {
        let pages = self.pages().clone();
        let disorder = order_violations(&pages);
        for violation in disorder.iter().take(TOLD_MAX) {
            super::tell(&violation.to_string());
        }
        let lost = lost(&pages);
        for (subscription, token) in lost.iter().take(TOLD_MAX) {
            let Token { key, value, .. } = token;
            super::tell(&format!(
                "lost: {subscription:?} never got value {value} of key {key}"
            ));
        }
        let all = keys(&pages);
        let held = held(&pages, Audited::ExactlyOnce);
        let free: BTreeSet<u32> = all.difference(&held).copied().collect();
        Verdict {
            drill: drill.to_owned(),
            published: pages.published.len(),
            delivered: pages.delivered.len(),
            lost: lost.len(),
            order_violations: disorder.len(),
            exactly_once_violations: exactly_once_violations(&pages),
            stored_twice: stored_twice(&pages),
            duplicates: duplicates(&pages),
            planned,
            failed: pages.failed.len(),
            slowest_publish: slowest_publish(&pages),
            rto_publish: rto_publish(&pages),
            rto_at_least_once: rto_delivery(&pages, Audited::AtLeastOnce, &all),
            rto_exactly_once: rto_delivery(&pages, Audited::ExactlyOnce, &all),
            rto_exactly_once_free: match free.is_empty() {
                true => None,
                false => rto_delivery(&pages, Audited::ExactlyOnce, &free),
            },
        }
    }
}

impl Verdict {
    /// Whether every promise was kept, and the service came back for every key.
    pub(super) fn passes(&self) -> bool {
        self.published > 0
            && self.lost == 0
            && self.order_violations == 0
            && self.exactly_once_violations == 0
            && self.stored_twice == 0
            && self.rto_publish.is_some()
            && self.rto_delivery().is_some()
            && (!self.planned || self.is_hardly_noticed())
    }

    /// From the event until deliveries of every key went on, whatever the subscription.
    pub(super) fn rto_delivery(&self) -> Option<Duration> {
        Some(self.rto_at_least_once?.max(self.rto_exactly_once?))
    }

    fn is_hardly_noticed(&self) -> bool {
        let attempts = self.published + self.failed;
        self.failed * FAILED_ONE_IN < attempts && self.slowest_publish < PLANNED_PUBLISH_MAX
    }
}

/// Where something is planned, fewer than one publish in so many may fail.
const FAILED_ONE_IN: usize = 1_000;
/// And none may take so long.
const PLANNED_PUBLISH_MAX: Duration = Duration::from_secs(1);
/// Violations of a kind that are told one by one.
const TOLD_MAX: usize = 10;

/// A delivery that is out of order.
struct Disorder {
    delivered: Delivered,
    /// The value that should have come at most.
    expected: u64,
}

impl fmt::Display for Disorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Delivered {
            subscription,
            stream,
            token,
            message_id,
            at,
        } = self.delivered;
        write!(
            f,
            "out of order: {subscription:?} stream {stream} got value {} of key {} (message \
             {message_id}) at {at:.1?} instead of {} at most",
            token.value, token.key, self.expected
        )
    }
}

const BOTH: [Audited; 2] = [Audited::AtLeastOnce, Audited::ExactlyOnce];

/// What was answered OK and not delivered, for each subscription.
pub(super) fn lost(pages: &Pages) -> BTreeSet<(Audited, Token)> {
    let seen: BTreeSet<(Audited, Token)> = pages
        .delivered
        .iter()
        .map(|delivered| (delivered.subscription, delivered.token))
        .collect();
    let wanted = BOTH.into_iter().flat_map(|subscription| {
        let published = pages.published.keys();
        published.map(move |token| (subscription, *token))
    });
    wanted.filter(|one| !seen.contains(one)).collect()
}

/// Deliveries that leave out a value of their key, and first deliveries whose message id is not
/// above all of the key's before.
///
/// A key may go from stream to stream, and what a leader sent that is gone may still arrive on one
/// while the next leader sends on another. So a delivery is compared with the key's last one if that
/// came on the same stream, and else with the furthest that any stream has come.
fn order_violations(pages: &Pages) -> Vec<Disorder> {
    let mut last: BTreeMap<(Audited, u32), (u64, u64)> = BTreeMap::new();
    let mut furthest: BTreeMap<(Audited, u32), u64> = BTreeMap::new();
    let mut highest: BTreeMap<(Audited, u32), u64> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut violations = Vec::new();
    for delivered in &pages.delivered {
        let lane = (delivered.subscription, delivered.token.key);
        let after = delivered.token.value + 1;
        let furthest = furthest.entry(lane).or_default();
        let expected = match last.insert(lane, (delivered.stream, after)) {
            Some((stream, next)) if stream == delivered.stream => next,
            _ => *furthest,
        };
        let leaves_out = delivered.token.value > expected;
        *furthest = after.max(*furthest);
        let is_first = seen.insert((delivered.subscription, delivered.token));
        let highest = highest.entry(lane).or_default();
        let goes_back = is_first && delivered.message_id <= *highest;
        *highest = (*highest).max(delivered.message_id);
        if leaves_out || goes_back {
            violations.push(Disorder {
                delivered: *delivered,
                expected,
            });
        }
    }
    violations
}

/// Deliveries of a message after its exactly-once ack was answered OK.
fn exactly_once_violations(pages: &Pages) -> usize {
    let mut acked: BTreeMap<u64, usize> = BTreeMap::new();
    for (message_id, before) in &pages.acked {
        let first = acked.entry(*message_id).or_insert(*before);
        *first = (*first).min(*before);
    }
    let again = |(place, delivered): (usize, &Delivered)| {
        delivered.subscription == Audited::ExactlyOnce
            && acked
                .get(&delivered.message_id)
                .is_some_and(|before| place >= *before)
    };
    pages
        .delivered
        .iter()
        .enumerate()
        .filter(|one| again(*one))
        .count()
}

fn stored_twice(pages: &Pages) -> usize {
    let mut ids: BTreeMap<Token, BTreeSet<u64>> = BTreeMap::new();
    for delivered in &pages.delivered {
        let of_token = ids.entry(delivered.token).or_default();
        of_token.insert(delivered.message_id);
    }
    ids.values().filter(|ids| ids.len() > 1).count()
}

fn duplicates(pages: &Pages) -> usize {
    let mut seen = BTreeSet::new();
    let at_least_once = |one: &&Delivered| one.subscription == Audited::AtLeastOnce;
    let deliveries = pages.delivered.iter().filter(at_least_once);
    deliveries.filter(|one| !seen.insert(one.token)).count()
}

fn slowest_publish(pages: &Pages) -> Duration {
    let attempts = pages.published.values().chain(&pages.failed);
    let took = attempts.map(|(called, answered)| answered.saturating_sub(*called));
    took.max().unwrap_or_default()
}

/// From the event until the first publish that was called after it is answered, for the key that
/// waited longest.
fn rto_publish(pages: &Pages) -> Option<Duration> {
    let event = pages.event?;
    let after = pages
        .published
        .iter()
        .filter(|(_, (called, _))| *called >= event)
        .map(|(token, (_, answered))| (token.key, *answered));
    slowest(&keys(pages), event, after)
}

/// From the event until the first message that was published after it arrives, for the one of
/// these keys that waited longest.
fn rto_delivery(pages: &Pages, subscription: Audited, keys: &BTreeSet<u32>) -> Option<Duration> {
    let event = pages.event?;
    let after = pages.delivered.iter().filter(|delivered| {
        let published = pages.published.get(&delivered.token);
        delivered.subscription == subscription
            && published.is_some_and(|(called, _)| *called >= event)
    });
    let moments = after.map(|delivered| (delivered.token.key, delivered.at));
    slowest(keys, event, moments)
}

/// All keys that were published to.
fn keys(pages: &Pages) -> BTreeSet<u32> {
    pages.published.keys().map(|token| token.key).collect()
}

/// The keys whose last delivery before the event came on a stream that has ended since: its client
/// may hold something of them.
fn held(pages: &Pages, subscription: Audited) -> BTreeSet<u32> {
    let event = pages.event.unwrap_or(Moment::MAX);
    let before = pages.delivered.iter();
    let before = before.filter(|one| one.subscription == subscription && one.at <= event);
    let last: BTreeMap<u32, u64> = before.map(|one| (one.token.key, one.stream)).collect();
    let ended = |stream: &u64| {
        pages
            .streams_ended
            .get(stream)
            .is_some_and(|at| *at >= event)
    };
    let held = last.into_iter().filter(|(_, stream)| ended(stream));
    held.map(|(key, _)| key).collect()
}

/// The largest of these keys' first moments after the event; `None` where a key has none.
fn slowest(
    keys: &BTreeSet<u32>,
    event: Moment,
    moments: impl Iterator<Item = (u32, Moment)>,
) -> Option<Duration> {
    let mut first: BTreeMap<u32, Moment> = BTreeMap::new();
    for (key, moment) in moments {
        let known = first.entry(key).or_insert(moment);
        *known = (*known).min(moment);
    }
    let waited = |key| first.get(key).map(|moment| moment.saturating_sub(event));
    keys.iter()
        .try_fold(Duration::ZERO, |worst, key| Some(worst.max(waited(key)?)))
}

impl Show for Verdict {
    const COLUMNS: &'static [&'static str] = &[
        "DRILL",
        "PUBLISHED",
        "DELIVERED",
        "LOST",
        "ORDER_VIOLATIONS",
        "EXACTLY_ONCE_VIOLATIONS",
        "STORED_TWICE",
        "DUPLICATES",
        "FAILED",
        "SLOWEST_PUBLISH",
        "RTO_PUBLISH",
        "RTO_DELIVERY",
        "RTO_EXACTLY_ONCE",
        "RTO_EXACTLY_ONCE_FREE",
        "VERDICT",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.drill.clone(),
            self.published.to_string(),
            self.delivered.to_string(),
            self.lost.to_string(),
            self.order_violations.to_string(),
            self.exactly_once_violations.to_string(),
            self.stored_twice.to_string(),
            self.duplicates.to_string(),
            self.failed.to_string(),
            time(Some(self.slowest_publish)),
            time(self.rto_publish),
            time(self.rto_at_least_once),
            time(self.rto_exactly_once),
            self.rto_exactly_once_free.map_or("-".to_owned(), ms),
            self.word().to_owned(),
        ]
    }

    fn json(&self) -> Value {
        let millis = |rto: Option<Duration>| rto.map(|rto| rto.as_millis());
        json!({
            "drill": self.drill,
            "published": self.published,
            "delivered": self.delivered,
            "lost": self.lost,
            "order_violations": self.order_violations,
            "exactly_once_violations": self.exactly_once_violations,
            "stored_twice": self.stored_twice,
            "duplicates": self.duplicates,
            "failed_publishes": self.failed,
            "slowest_publish_ms": self.slowest_publish.as_millis(),
            "rto_publish_ms": millis(self.rto_publish),
            "rto_delivery_ms": millis(self.rto_delivery()),
            "rto_delivery_at_least_once_ms": millis(self.rto_at_least_once),
            "rto_delivery_exactly_once_ms": millis(self.rto_exactly_once),
            "rto_delivery_exactly_once_free_ms": millis(self.rto_exactly_once_free),
            "verdict": self.word(),
        })
    }
}

impl Verdict {
    /// The result in a line.
    pub(super) fn summary(&self) -> String {
        format!(
            "{}, publish after {}, delivery after {}, exactly once {}",
            self.word(),
            time(self.rto_publish),
            time(self.rto_at_least_once),
            time(self.rto_exactly_once),
        )
    }

    fn word(&self) -> &'static str {
        match self.passes() {
            true => "pass",
            false => "fail",
        }
    }
}

fn time(rto: Option<Duration>) -> String {
    rto.map_or("never".to_owned(), ms)
}

fn ms(duration: Duration) -> String {
    format!("{} ms", duration.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: u32 = 7;

    fn token(value: u64, attempt: u32) -> Token {
        Token {
            key: KEY,
            value,
            attempt,
        }
    }

    fn millis(number: u64) -> Moment {
        Duration::from_millis(number)
    }

    /// Three values, published at 10, 20 and 30 ms and delivered 5 ms later; the event at 15 ms.
    fn flawless() -> Pages {
        let mut pages = Pages {
            event: Some(millis(15)),
            ..Pages::default()
        };
        for value in 0..3 {
            let called = millis(10 * (value + 1));
            pages
                .published
                .insert(token(value, 0), (called, called + millis(1)));
            for subscription in BOTH {
                pages.delivered.push(Delivered {
                    subscription,
                    stream: subscription as u64,
                    token: token(value, 0),
                    message_id: value + 1,
                    at: called + millis(5),
                });
            }
        }
        pages
    }

    fn verdict(pages: Pages) -> Verdict {
        let ledger = Ledger::new(std::time::Instant::now());
        *ledger.pages() = pages;
        ledger.verdict("test", false)
    }

    #[test]
    fn a_flawless_run_passes() {
        let verdict = verdict(flawless());
        assert!(verdict.passes());
        assert_eq!(verdict.rto_publish, Some(millis(6)));
        assert_eq!(verdict.rto_delivery(), Some(millis(10)));
    }

    #[test]
    fn keys_that_a_lost_client_may_hold_are_told_apart() {
        let other = |token: Token| Token { key: 8, ..token };
        let mut pages = flawless();
        let delivered = pages.delivered.clone();
        // The other key's stream ends with the event, and its next message comes late.
        for (token, moments) in pages.published.clone() {
            pages.published.insert(other(token), moments);
        }
        for one in delivered {
            let is_late = one.token.value > 0;
            pages.delivered.push(Delivered {
                stream: one.stream + if is_late { 20 } else { 10 },
                token: other(one.token),
                message_id: one.message_id + 100,
                at: one.at + millis(if is_late { 500 } else { 0 }),
                ..one
            });
        }
        pages.delivered.sort_by_key(|one| one.at);
        let stream = 10 + Audited::ExactlyOnce as u64;
        pages.streams_ended.insert(stream, millis(16));
        let verdict = verdict(pages);
        assert_eq!(verdict.rto_exactly_once, Some(millis(510)));
        assert_eq!(verdict.rto_exactly_once_free, Some(millis(10)));
    }

    #[test]
    fn without_a_key_that_nobody_lost_holds_there_is_no_time_for_such() {
        let mut pages = flawless();
        let stream = Audited::ExactlyOnce as u64;
        pages.streams_ended.insert(stream, millis(16));
        let verdict = verdict(pages);
        assert_eq!(verdict.rto_exactly_once, Some(millis(10)));
        assert_eq!(verdict.rto_exactly_once_free, None);
    }

    #[test]
    fn what_is_missing_on_one_subscription_is_lost() {
        let mut pages = flawless();
        pages.delivered.pop();
        let verdict = verdict(pages);
        assert_eq!(verdict.lost, 1);
        assert!(!verdict.passes());
    }

    #[test]
    fn a_value_left_out_breaks_the_order() {
        let mut pages = flawless();
        let later = pages.delivered.remove(2);
        pages.delivered.push(later);
        assert_eq!(verdict(pages).order_violations, 2);
    }

    #[test]
    fn a_step_back_is_no_violation() {
        let mut pages = flawless();
        let again = pages.delivered.clone();
        pages.delivered.extend(again);
        let verdict = verdict(pages);
        assert_eq!((verdict.order_violations, verdict.duplicates), (0, 3));
    }

    #[test]
    fn a_key_may_go_to_another_stream_and_come_back() {
        let mut pages = flawless();
        pages.delivered[2].stream = 7;
        assert_eq!(pages.delivered[2].token.value, 1);
        assert_eq!(verdict(pages).order_violations, 0);
    }

    #[test]
    fn an_attempt_that_was_stored_after_all_is_in_order() {
        let mut pages = flawless();
        pages.delivered.push(Delivered {
            subscription: Audited::AtLeastOnce,
            stream: 7,
            token: token(2, 1),
            message_id: 9,
            at: millis(90),
        });
        assert_eq!(verdict(pages).order_violations, 0);
    }

    #[test]
    fn a_delivery_after_its_ack_violates_exactly_once() {
        let mut pages = flawless();
        pages.acked.push((1, 2));
        assert_eq!(verdict(pages.clone()).exactly_once_violations, 0);
        let again = pages.delivered[1];
        assert_eq!(again.subscription, Audited::ExactlyOnce);
        pages.delivered.push(again);
        assert_eq!(verdict(pages).exactly_once_violations, 1);
    }

    #[test]
    fn what_is_planned_is_hardly_noticed() {
        let judge = |pages| {
            let ledger = Ledger::new(std::time::Instant::now());
            *ledger.pages() = pages;
            ledger.verdict("test", true).passes()
        };
        assert!(judge(flawless()));
        let mut failed = flawless();
        failed.failed.push((millis(10), millis(20)));
        assert!(!judge(failed));
        let mut slow = flawless();
        slow.published
            .insert(token(2, 0), (millis(30), millis(1_030)));
        assert!(!judge(slow));
    }

    #[test]
    fn a_key_that_never_comes_back_fails() {
        let mut pages = flawless();
        pages.event = Some(millis(500));
        let verdict = verdict(pages);
        assert_eq!(verdict.rto_publish, None);
        assert!(!verdict.passes());
    }
}
