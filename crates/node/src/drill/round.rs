//! One round of a drill: load, the event, load, its end, and everything delivered. However it goes,
//! what the round has done to the cluster is undone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::endpoints::Endpoints;
use super::event::Stage;
use super::ledger::Ledger;
use super::verdict::Verdict;
use super::workload::Workload;
use super::{Common, tell};
use crate::cli::interrupt::Interrupts;
use crate::cli::{Failure, Target};

/// Plays one round, and clears up after it: a second interrupt ends that too.
///
/// # Errors
/// [`Failure`] when there is no verdict. What is left then is said.
pub(super) async fn perform(
    stage: &mut Stage,
    common: &Common,
    target: &Target,
    interrupts: &mut Interrupts,
) -> Result<Verdict, Failure> {
    let ledger = Arc::new(Ledger::new(Instant::now()));
    let endpoints = Endpoints::new(stage.endpoints().to_vec());
    let workload = Workload::new(target, endpoints, common, Arc::clone(&ledger))?;
    let played = tokio::select! {
        played = play(stage, common, &workload, &ledger, target) => played,
        () = interrupts.next() => Err(Failure::Interrupted),
    };
    if stage.goes() && played.is_err() {
        return played;
    }
    if let Err(failure) = &played {
        tell(&format!("{failure}: what was done is undone now"));
    }
    let cleared = tokio::select! {
        cleared = clear(stage, &workload) => cleared,
        () = interrupts.next() => Err(Failure::Interrupted),
    };
    let left = [stage.left(), workload.left()];
    left.iter().flatten().for_each(|left| tell(left));
    match cleared {
        Ok(()) if played.is_err() => tell("the topic and its subscriptions are deleted"),
        Ok(()) => {}
        // What was measured counts all the same.
        Err(failure) => tell(&format!("not all is cleared up: {failure}")),
    }
    played
}

async fn play(
    stage: &mut Stage,
    common: &Common,
    workload: &Workload,
    ledger: &Ledger,
    target: &Target,
) -> Result<Verdict, Failure> {
    workload.create().await?;
    let running = workload.start();
    tell("load is running");
    tokio::time::sleep(Duration::from_secs(common.before)).await;
    stage.aim(target, workload.topic()).await?;
    ledger.event();
    let what = stage.describe();
    stage.cause().await?;
    tell(&format!("{what}: done"));
    tokio::time::sleep(Duration::from_secs(common.after)).await;
    stage.undo().await?;
    running.stop_publishing().await;
    running.drain().await;
    ledger.over();
    Ok(ledger.verdict(&what, stage.is_planned()))
}

/// Ends the event, if it has not ended, and deletes what was created.
async fn clear(stage: &mut Stage, workload: &Workload) -> Result<(), Failure> {
    let undone = stage.undo().await;
    let deleted = workload.delete().await;
    undone.and(deleted)
}
