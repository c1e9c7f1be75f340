//! Runs the scenarios with the official Rust client and prints one line for each.
//!
//! The server is the one that `PUBSUB_EMULATOR_HOST` names; `ORDERLY_RESTART` is explained in the
//! README.

mod scenarios;
mod sequence;
mod setup;
mod stage;

use std::env;
use std::pin::Pin;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::task::JoinSet;

use crate::stage::{Skipped, Stage};

/// A scenario at work: it fails if a promise is broken.
type Playing = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// How a scenario is begun.
type Scenario = fn(Stage) -> Playing;

#[tokio::main]
async fn main() -> ExitCode {
    rustls::crypto::ring::default_provider()
        .install_default()
        .expect("no other provider was installed before");
    let wanted: Vec<String> = env::args().skip(1).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|want| want == name);

    let mut playing = JoinSet::new();
    for (name, scenario) in scenarios::CONCURRENT {
        if is_wanted(name) {
            playing.spawn(play(name, scenario));
        }
    }
    let mut passed = playing.join_all().await;
    for (name, scenario) in scenarios::DISRUPTIVE {
        if !is_wanted(name) {
            continue;
        }
        if env::var_os("ORDERLY_RESTART").is_some() {
            passed.push(play(name, scenario).await);
        } else {
            report(
                name,
                "skipped",
                Duration::ZERO,
                "ORDERLY_RESTART is not set",
            );
        }
    }
    if passed.into_iter().all(|passed| passed) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Plays one scenario; false if it failed.
async fn play(name: &'static str, scenario: Scenario) -> bool {
    let began = Instant::now();
    let outcome = match Stage::new(name).await {
        Ok(stage) => scenario(stage).await,
        Err(error) => Err(error),
    };
    match outcome {
        Ok(()) => report(name, "passed", began.elapsed(), ""),
        Err(reason) if reason.is::<Skipped>() => {
            report(name, "skipped", began.elapsed(), &reason.to_string());
        }
        Err(error) => {
            report(name, "failed", began.elapsed(), &format!("{error:#}"));
            return false;
        }
    }
    true
}

fn report(name: &str, outcome: &str, took: Duration, reason: &str) {
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    println!("{name} {outcome} {:.1}s {reason}", took.as_secs_f64());
}
