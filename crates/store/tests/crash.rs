//! A process that writes is killed, again and again: nothing that it was told is on the disk is
//! missing, and its state is never ahead of its log.

mod rig;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use engine::kv::View;
use rig::*;
use store::{Applied, Position, Start, Store};

/// Set in the process that writes: the data folder.
const FOLDER: &str = "STORE_CRASH_FOLDER";
/// How often the process is killed.
const LIVES: usize = 6;
/// How many writes are acknowledged before each kill, at least.
const WRITES: usize = 150;

#[test]
fn nothing_acknowledged_is_lost_by_a_kill() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        write_for_ever(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    drop(Store::open(settings(folder.path(), Start::New(identity()))).unwrap());
    let mut acknowledged = None;
    for life in 0..LIVES {
        // Kill it in the middle of something else each time.
        let told = write_and_kill(folder.path(), WRITES + 13 * life);
        acknowledged = acknowledged.max(told);
        check(folder.path(), acknowledged.expect("it wrote"));
    }
}

/// Runs the process that writes until it has acknowledged so many writes, and kills it. Answers
/// the last index that it acknowledged.
fn write_and_kill(folder: &Path, writes: usize) -> Option<u64> {
    let mut child: Child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "nothing_acknowledged_is_lost_by_a_kill",
            "--nocapture",
        ])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let told = lines
        .map_while(Result::ok)
        .filter_map(|line| line.strip_prefix("acknowledged ")?.parse().ok());
    let mut last = None;
    let mut told = told.inspect(|index| last = Some(*index));
    assert!(told.nth(writes - 1).is_some(), "the process ended early");
    child.kill().unwrap();
    told.for_each(drop);
    child.wait().unwrap();
    last
}

fn check(folder: &Path, acknowledged: u64) {
    let store = Store::open(settings(folder, Start::Existing)).unwrap();
    let bounds = store.log_bounds(GROUP).unwrap();
    let last = bounds.last.unwrap().index;
    assert!(last >= acknowledged, "{acknowledged} was acknowledged");
    let applied = store
        .applied(GROUP)
        .unwrap()
        .map(|applied| applied.at.index);
    assert!(applied <= Some(last), "{applied:?} is ahead of {last}");
    let first = bounds.purged.map_or(0, |purged| purged.index + 1);
    assert_eq!(whole_log(&store, GROUP), entries(1, first..last + 1));
    let view = store.view(GROUP).unwrap();
    for index in 0..applied.map_or(0, |applied| applied + 1) {
        let row = view.get(&row_key(index)).unwrap();
        assert!(row.is_some(), "row {index} of {applied:?}");
    }
}

fn row_key(index: u64) -> Vec<u8> {
    [&[1][..], &index.to_be_bytes()].concat()
}

/// What the process does: appends, applies, flushes and purges, until it is killed.
fn write_for_ever(folder: &Path) -> ! {
    let mut settings = settings(folder, Start::Existing);
    settings.limits.flush_bytes = 2_000;
    settings.limits.purge_bytes = 500;
    let store = Store::open(settings).unwrap();
    let mut next = store
        .log_bounds(GROUP)
        .unwrap()
        .last
        .map_or(0, |last| last.index + 1);
    catch_up(&store, next);
    loop {
        store.append(
            GROUP,
            entries(1, next..next + 1),
            Box::new(move |outcome| {
                outcome.unwrap();
                let mut out = std::io::stdout();
                writeln!(out, "acknowledged {next}").unwrap();
                out.flush().unwrap();
            }),
        );
        apply(&store, next);
        if next.is_multiple_of(20)
            && let Some(through) = store.flushed_applied(GROUP).unwrap()
        {
            purge(&store, GROUP, through.term, through.index);
        }
        next += 1;
    }
}

fn catch_up(store: &Store, end: u64) {
    let applied = store.applied(GROUP).unwrap();
    for index in applied.map_or(0, |applied| applied.at.index + 1)..end {
        apply(store, index);
    }
}

fn apply(store: &Store, index: u64) {
    let applied = Applied {
        at: Position { term: 1, index },
        note: "note".into(),
    };
    let written = rows(&[(&row_key(index), Some("row"))]);
    store.write_state(GROUP, applied, written).unwrap();
}
