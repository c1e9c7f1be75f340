//! `sabotage`: faults put in on purpose, each of which its test must notice.
//!
//! A test that can't fail proves nothing. One build holds every fault of the list. Each test must
//! pass with all of them off, and fail with its own one on.

mod binaries;
pub(crate) mod list;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::bail;

use binaries::{Binaries, Verdict};
use list::List;

/// Runs the tests of the list, or of one sabotage with `--only NAME`, and fails if one escapes.
pub(crate) fn run(root: &Path, arguments: &[String]) -> anyhow::Result<()> {
    let mut list = List::read(root)?;
    list.choose(arguments)?;
    let binaries = Binaries::build(root, &list)?;
    run_without(&binaries, &list)?;
    let mut escaped = 0;
    for sabotage in &list.sabotages {
        let outcome = match binaries.run(sabotage, true)? {
            Verdict::Failed => "caught".to_owned(),
            Verdict::Passed => format!("ESCAPED: {} passes", sabotage.test),
            Verdict::None(why) => format!("ESCAPED: {}: {why}", sabotage.test),
        };
        escaped += usize::from(outcome != "caught");
        eprintln!("{}: {outcome} ({})", sabotage.name, sabotage.breaks);
    }
    let all = list.sabotages.len();
    eprintln!(
        "{all} sabotages: {} caught, {escaped} escaped",
        all - escaped
    );
    match escaped {
        0 => Ok(()),
        _ => bail!("sharpen the tests that stand behind ESCAPED above"),
    }
}

/// Runs each test once with no sabotage: that one fails says nothing if it always does.
fn run_without(binaries: &Binaries, list: &List) -> anyhow::Result<()> {
    let mut passed = BTreeSet::new();
    for sabotage in &list.sabotages {
        let test = (&sabotage.binary, &sabotage.test);
        if !passed.insert(test) {
            continue;
        }
        match binaries.run(sabotage, false)? {
            Verdict::Passed => {}
            Verdict::Failed => bail!("{} fails without a sabotage", sabotage.test),
            Verdict::None(why) => bail!("{} without a sabotage: {why}", sabotage.test),
        }
    }
    eprintln!("{} tests pass without a sabotage", passed.len());
    Ok(())
}
