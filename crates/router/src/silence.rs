//! Regions whose shards do not answer, as far as this node has seen.

use std::collections::BTreeMap;
use std::time::Duration;

use model::RegionName;
use tokio::time::Instant;

/// A region that has not answered for so long is passed over: longer than it takes to elect a
/// leader, and shorter than a publish waits for one. A single call with a short deadline says
/// nothing of a region.
const SILENT_FOR: Duration = Duration::from_millis(2_500);

/// How long a region is passed over at first, where others will do; twice as long each time that it
/// then does not answer. Also how long silence is remembered of which nobody hears more.
const AWAY_FOR: Duration = Duration::from_secs(10);
/// How long a region is passed over at most: the next publish then waits for it again.
const AWAY_FOR_MAX: Duration = Duration::from_secs(60);

/// The regions that were silent lately. It grows with the number of regions.
#[derive(Debug, Default)]
pub(crate) struct Silences(BTreeMap<RegionName, Silence>);

#[derive(Clone, Copy, Debug)]
struct Silence {
    /// When the first call began that was not answered.
    since: Instant,
    /// When the last one ended.
    last: Instant,
    /// Until when the region is passed over.
    away_until: Option<Instant>,
    /// How long it is passed over the next time.
    away_for: Duration,
}

impl Silences {
    /// A call to the region that began then is not answered.
    pub(crate) fn unanswered(&mut self, region: RegionName, began: Instant, now: Instant) {
        let silence = self.0.entry(region).or_insert(Silence {
            since: began,
            last: now,
            away_until: None,
            away_for: AWAY_FOR,
        });
        if silence.last + AWAY_FOR < began {
            silence.since = began;
        }
        silence.last = now;
        if now.duration_since(silence.since) >= SILENT_FOR {
            silence.away_until = Some(now + silence.away_for);
            silence.away_for = (2 * silence.away_for).min(AWAY_FOR_MAX);
        }
    }

    /// The region has answered.
    pub(crate) fn answered(&mut self, region: &RegionName) {
        if !self.0.is_empty() {
            self.0.remove(region);
        }
    }

    /// Puts the regions last that are passed over. Otherwise they stay as they are.
    pub(crate) fn put_last(&self, regions: &mut [RegionName], now: Instant) {
        if !self.0.is_empty() {
            regions.sort_by_key(|region| self.is_away(region, now));
        }
    }

    fn is_away(&self, region: &RegionName, now: Instant) -> bool {
        let silence = self.0.get(region);
        silence.is_some_and(|silence| silence.away_until > Some(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(name: &str) -> RegionName {
        RegionName::parse(name).expect("a valid name")
    }

    fn order(silences: &Silences, now: Instant) -> Vec<String> {
        let mut regions = ["north", "south", "west"].map(region);
        silences.put_last(&mut regions, now);
        regions.map(|region| region.to_string()).into()
    }

    const AS_THEY_ARE: [&str; 3] = ["north", "south", "west"];
    const NORTH_LAST: [&str; 3] = ["south", "west", "north"];

    #[test]
    fn a_region_that_was_waited_for_is_passed_over_for_a_while() {
        let began = Instant::now();
        let ended = began + SILENT_FOR;
        let mut silences = Silences::default();
        silences.unanswered(region("north"), began, ended);
        assert_eq!(order(&silences, ended), NORTH_LAST);
        assert_eq!(order(&silences, ended + AWAY_FOR), AS_THEY_ARE);
    }

    #[test]
    fn a_region_that_stays_away_is_asked_more_rarely() {
        let mut silences = Silences::default();
        let mut now = Instant::now();
        for seconds in [10, 20, 40, 60, 60] {
            silences.unanswered(region("north"), now, now + SILENT_FOR);
            let away = Duration::from_secs(seconds);
            now += SILENT_FOR + away;
            assert_eq!(order(&silences, now - Duration::from_millis(1)), NORTH_LAST);
            assert_eq!(order(&silences, now), AS_THEY_ARE, "after {seconds} s");
        }
    }

    #[test]
    fn calls_with_short_deadlines_pass_a_region_over_only_together() {
        let mut silences = Silences::default();
        let first = Instant::now();
        let short = Duration::from_millis(100);
        silences.unanswered(region("north"), first, first + short);
        assert_eq!(order(&silences, first + short), AS_THEY_ARE);
        let later = first + SILENT_FOR;
        silences.unanswered(region("north"), later, later + short);
        assert_eq!(order(&silences, later + short), NORTH_LAST);
    }

    #[test]
    fn an_answer_or_a_long_time_ends_a_silence() {
        let mut silences = Silences::default();
        let first = Instant::now();
        let short = Duration::from_millis(100);
        silences.unanswered(region("north"), first, first + short);
        silences.answered(&region("north"));
        let later = first + SILENT_FOR;
        silences.unanswered(region("north"), later, later + short);
        assert_eq!(order(&silences, later + short), AS_THEY_ARE);
        let much_later = later + short + AWAY_FOR + SILENT_FOR;
        silences.unanswered(region("north"), much_later, much_later + short);
        assert_eq!(order(&silences, much_later + short), AS_THEY_ARE);
    }
}
