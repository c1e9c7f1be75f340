//! One line each second, for who watches.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::consumer::Consuming;
use super::publisher::Publishing;

const PERIOD: Duration = Duration::from_secs(1);

/// Tells on standard error how a run goes, until it is dropped.
pub(crate) async fn tell(publishing: Arc<Publishing>, consuming: Arc<Consuming>) {
    let start = Instant::now();
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.tick().await;
    let (mut published, mut consumed) = (0, 0);
    loop {
        ticks.tick().await;
        let now = (publishing.meter.total(), consuming.meter.total());
        let summary = consuming.account.summary();
        eprintln!(
            "{:4} s  published {:>9}/s  consumed {:>9}/s  behind {:>11}  again {:>7}",
            start.elapsed().as_secs(),
            grouped(now.0 - published),
            grouped(now.1 - consumed),
            grouped(summary.missing),
            grouped(summary.repeated),
        );
        (published, consumed) = now;
    }
}

/// A number with a comma before each three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_from_the_right() {
        let numbers = [0, 999, 1_000, 12_345, 1_234_567];
        let expected = ["0", "999", "1,000", "12,345", "1,234,567"];
        assert_eq!(numbers.map(grouped), expected);
    }
}
