//! Rows about how many messages a second, and how long each takes.

use super::lab::Lab;
use super::outcome::{Outcome, Side};
use super::row::Line;
use crate::cli::Failure;

/// 1,000 keys, 1 KB, 100 in a request, nobody consumes.
pub(crate) fn publish(lab: &Lab) -> Result<Vec<Line>, Failure> {
    let show = |outcome: &Outcome| outcome.throughput(Side::Published);
    let arguments = lab.scale.timed("--batch 100 --no-consume");
    let (full, outcome) =
        lab.compare("publish, 1,000 keys, 1 KB, 100 a request", &arguments, show)?;

    let rate = half(&outcome, Side::Published);
    let arguments = lab
        .scale
        .timed(&format!("--batch 100 --no-consume --rate {rate}"));
    let show = |outcome: &Outcome| outcome.latency(Side::Published);
    let half = lab
        .load(&lab.node()?, &arguments)?
        .line("publish at half of it", show);
    Ok(vec![full, half])
}

/// The same, consumed by an ordered stream at once.
pub(crate) fn end_to_end(lab: &Lab) -> Result<Vec<Line>, Failure> {
    let show = |outcome: &Outcome| outcome.throughput(Side::Consumed);
    let arguments = lab.scale.timed("--batch 100");
    let work = "publish and consume in order, acked";
    let (full, outcome) = lab.compare(work, &arguments, show)?;

    let rate = half(&outcome, Side::Consumed);
    let arguments = lab.scale.timed(&format!("--batch 100 --rate {rate}"));
    let half = lab
        .load(&lab.node()?, &arguments)?
        .line("end to end at half of it", latencies);
    Ok(vec![full, half])
}

/// 1,000 messages a second, each in a request of its own.
pub(crate) fn single_messages(lab: &Lab) -> Result<Vec<Line>, Failure> {
    let arguments = lab.scale.timed("--rate 1000");
    let (line, _) = lab.compare("1,000 single messages a second", &arguments, latencies)?;
    Ok(vec![line])
}

/// A new key for each message; beside it 1,000 keys with one message in a request, and as many
/// calls as can be.
pub(crate) fn unique_keys(lab: &Lab) -> Result<Vec<Line>, Failure> {
    let show = |outcome: &Outcome| outcome.throughput(Side::Consumed);
    let loads = [
        ("one message a request, unique keys", "--unique-keys"),
        ("the same, 1,000 keys", ""),
    ];
    let mut lines = Vec::new();
    for (work, keys) in loads {
        let arguments = lab
            .scale
            .timed(&format!("--batch 1 --in-flight 256 {keys}"));
        lines.push(lab.load(&lab.node()?, &arguments)?.line(work, show));
    }
    // What the machine can do at most, where a request carries one message.
    let arguments = lab
        .scale
        .timed("--batch 1 --in-flight 256 --no-consume --get-topic");
    let show = |outcome: &Outcome| outcome.calls();
    let calls = lab.load(&lab.node()?, &arguments)?;
    lines.push(calls.line("calls that do nothing", show));
    Ok(lines)
}

/// All messages have the same key.
pub(crate) fn hot_key(lab: &Lab) -> Result<Vec<Line>, Failure> {
    let show = |outcome: &Outcome| outcome.throughput(Side::Consumed);
    let arguments = lab.scale.timed("--keys 1 --batch 100 --in-flight 2");
    Ok(vec![
        lab.load(&lab.node()?, &arguments)?
            .line("one hot key", show),
    ])
}

/// A consumer never acknowledges one key of 1,000, beside the same where it acknowledges all.
pub(crate) fn stuck_key(lab: &Lab) -> Result<Vec<Line>, Failure> {
    let show = |outcome: &Outcome| format!("end to end {}", outcome.latency(Side::Consumed));
    let loads = [
        ("10,000 msg/s in order", ""),
        ("the same, one key of 1,000 stuck", "--stuck-keys 1"),
    ];
    let measure = |(work, stuck): (&str, &str)| {
        let arguments = lab.scale.timed(&format!("--batch 10 --rate 10000 {stuck}"));
        Ok(lab.load(&lab.node()?, &arguments)?.line(work, show))
    };
    loads.into_iter().map(measure).collect()
}

/// A backlog that lies ready.
pub(crate) fn catch_up(lab: &Lab) -> Result<Vec<Line>, Failure> {
    let show = |outcome: &Outcome| outcome.throughput(Side::Consumed);
    let messages = lab.scale.messages;
    let arguments = format!("--batch 100 --count {messages} --backlog --drain 300s");
    let work = format!("catch up with {} MB", messages / 1_000);
    Ok(vec![lab.load(&lab.node()?, &arguments)?.line(&work, show)])
}

/// One subscription is active, and many others of the same topic are not.
pub(crate) fn many_subscriptions(lab: &Lab) -> Result<Vec<Line>, Failure> {
    let show = |outcome: &Outcome| outcome.throughput(Side::Consumed);
    let idle = lab.scale.subscriptions;
    let arguments = lab
        .scale
        .timed(&format!("--batch 100 --idle-subscriptions {idle}"));
    let work = format!("one active subscription beside {idle} idle ones");
    Ok(vec![lab.load(&lab.node()?, &arguments)?.line(&work, show)])
}

/// Half of what was reached, as a whole rate.
fn half(outcome: &Outcome, side: Side) -> u64 {
    ((outcome.rate(side) / 2.0) as u64).max(1)
}

fn latencies(outcome: &Outcome) -> String {
    let [published, consumed] = [Side::Published, Side::Consumed].map(|side| outcome.latency(side));
    format!("publish {published}; end to end {consumed}")
}
