//! The power goes while a store writes: a file system in a file is shut down under it, so that
//! all that was not synced is lost. Needs root, `mkfs.ext4`, a loop device and `xfs_io`.

mod rig;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rig::*;
use store::{Start, Store};
use tempfile::TempDir;

/// Losses of power in a row, on the same disk.
const LOSSES: u64 = 4;
/// Entries that are acknowledged before each of them.
const ENTRIES: u64 = 300;
/// Size of the file system.
const IMAGE_BYTES: u64 = 512 * 1024 * 1024;

#[test]
fn nothing_acknowledged_is_lost_with_the_power() {
    let disk = match Disk::new() {
        Ok(disk) => disk,
        Err(reason) => {
            // Past the capture of output, so that the skip is counted.
            let mut out = std::io::stdout();
            writeln!(
                out,
                "skipped: power::nothing_acknowledged_is_lost_with_the_power: {reason}"
            )
            .unwrap();
            return;
        }
    };
    drop(open(&disk, Start::New(identity())));
    disk.sync();
    let mut acknowledged = 0;
    for loss in 0..LOSSES {
        let store = open(&disk, Start::Existing);
        let begin = store
            .log_bounds(GROUP)
            .unwrap()
            .last
            .map_or(0, |last| last.index + 1);
        assert!(
            begin >= acknowledged,
            "loss {loss}: {acknowledged} were acknowledged"
        );
        assert_eq!(whole_log(&store, GROUP), entries(1, 0..begin));
        let applied = store.applied(GROUP).unwrap();
        assert!(applied.is_none_or(|applied| applied.at.index < begin));
        acknowledged = write(&store, begin);
        disk.lose_power();
        drop(store);
        disk.restore();
    }
}

/// Appends and applies; answers how many entries are on the disk, by the store's word.
fn write(store: &Store, begin: u64) -> u64 {
    let acknowledged = Arc::new(AtomicU64::new(begin));
    for index in begin..begin + 2 * ENTRIES {
        let told = acknowledged.clone();
        store.append(
            GROUP,
            entries(1, index..index + 1),
            Box::new(move |outcome| {
                outcome.expect("the disk is sound until the power goes");
                told.store(index + 1, Ordering::Release);
            }),
        );
        let applied_before = store
            .applied(GROUP)
            .unwrap()
            .map(|applied| applied.at.index);
        if applied_before.is_none_or(|before| before < index) {
            store
                .write_state(GROUP, applied(1, index), rows(&[]))
                .unwrap();
        }
        if index == begin + ENTRIES {
            store.flush_state().unwrap();
        }
    }
    wait_until("half of the writes", || {
        acknowledged.load(Ordering::Acquire) >= begin + ENTRIES
    });
    acknowledged.load(Ordering::Acquire)
}

fn open(disk: &Disk, start: Start) -> Store {
    Store::open(settings(&disk.mount.join("data"), start)).unwrap()
}

/// A file system in a file.
struct Disk {
    folder: TempDir,
    mount: PathBuf,
}

impl Disk {
    /// Makes and mounts it, or says what is missing here.
    fn new() -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let image = folder.path().join("image");
        let file = std::fs::File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(IMAGE_BYTES)
            .map_err(|error| error.to_string())?;
        run("xfs_io", &["-V"])?;
        run("mkfs.ext4", &["-q", &text(&image)])?;
        let mount = folder.path().join("mount");
        std::fs::create_dir(&mount).map_err(|error| error.to_string())?;
        let disk = Disk { folder, mount };
        disk.mount()?;
        Ok(disk)
    }

    fn mount(&self) -> Result<(), String> {
        let image = text(&self.folder.path().join("image"));
        run("mount", &["-o", "loop", &image, &text(&self.mount)])
    }

    fn sync(&self) {
        run("sync", &["-f", &text(&self.mount)]).unwrap();
    }

    /// Stops the file system at once. Its journal is not written out either.
    fn lose_power(&self) {
        run("xfs_io", &["-x", "-c", "shutdown", &text(&self.mount)]).unwrap();
    }

    /// Mounts what is left.
    fn restore(&self) {
        run("umount", &[&text(&self.mount)]).unwrap();
        self.mount().unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Fails where it was never mounted.
        let _ = run("umount", &[&text(&self.mount)]);
    }
}

/// Runs a command to its end, or says why it did not succeed.
fn run(command: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(command)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{command}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("{command}: {}", said.trim()))
        }
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
