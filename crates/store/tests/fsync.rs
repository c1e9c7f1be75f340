//! The disk fails one fsync of a real store: it refuses everything from then on, although the disk
//! would go on. Needs `strace`, which injects the failure.

mod rig;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use rig::*;
use store::{Start, Store, WriteFault};

/// Set in the process that writes: the data folder.
const FOLDER: &str = "STORE_FSYNC_FOLDER";
/// The fsync of the writer's thread that fails.
const FAILING: u64 = 30;

#[test]
fn a_failed_fsync_is_the_last() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return write_until_refused(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    drop(Store::open(settings(folder.path(), Start::New(identity()))).unwrap());
    let output = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync"])
        .arg(format!("-einject=fdatasync:error=EIO:when={FAILING}"))
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "a_failed_fsync_is_the_last", "--nocapture"])
        .env(FOLDER, folder.path())
        .stdin(Stdio::null())
        .output();
    let output = match output {
        Ok(output) if traced(&output.stderr) => output,
        _ => {
            let mut out = std::io::stdout();
            writeln!(
                out,
                "skipped: fsync::a_failed_fsync_is_the_last: strace can't trace"
            )
            .unwrap();
            return;
        }
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("refused: disk refused a write"), "{said}");
    assert!(said.contains("append: store stopped writing"), "{said}");
    assert!(said.contains("state: store stopped writing"), "{said}");
    let number = |line: &str| line.strip_prefix("acknowledged ")?.parse::<u64>().ok();
    let acknowledged = said.lines().filter_map(number).max().expect("some were");

    let store = Store::open(settings(folder.path(), Start::Existing)).unwrap();
    let found = whole_log(&store, GROUP);
    assert!(
        found.len() as u64 > acknowledged,
        "{acknowledged} was acknowledged"
    );
    assert_eq!(found, entries(1, 0..found.len() as u64));
}

fn traced(stderr: &[u8]) -> bool {
    !String::from_utf8_lossy(stderr).contains("strace: ")
}

/// What the process does: appends until it is refused, and then tries other writes.
fn write_until_refused(folder: &Path) {
    let store = Store::open(settings(folder, Start::Existing)).unwrap();
    let append = |index| wait_for(|done| store.append(GROUP, entries(1, index..index + 1), done));
    let mut out = std::io::stdout();
    let mut next = 0;
    let refused: WriteFault = loop {
        match append(next) {
            Ok(()) => writeln!(out, "acknowledged {next}").unwrap(),
            Err(fault) => break fault,
        }
        next += 1;
        assert!(next < 10 * FAILING, "no fsync failed");
    };
    writeln!(out, "refused: {refused}").unwrap();
    writeln!(out, "append: {}", append(next + 1).unwrap_err()).unwrap();
    let state = store.write_state(GROUP, applied(1, 0), rows(&[]));
    writeln!(out, "state: {}", state.unwrap_err()).unwrap();
}
