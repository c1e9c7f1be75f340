//! A real disk of a test's own: a file system in a file. Needs root, `mkfs.ext4`, a loop device and
//! `xfs_io`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// Size of the file system.
const IMAGE_BYTES: u64 = 512 * 1024 * 1024;

/// A file system in a file.
pub(crate) struct Disk {
    folder: TempDir,
    mount: PathBuf,
}

impl Disk {
    /// Makes and mounts it. Where that can't be done, says that the test is skipped, and why.
    pub(crate) fn new(test: &str) -> Option<Self> {
        match Disk::make() {
            Ok(disk) => Some(disk),
            Err(reason) => {
                // Past the capture of output, so that the skip is counted.
                let mut out = io::stdout();
                writeln!(out, "skipped: {test}: {reason}").unwrap();
                None
            }
        }
    }

    /// Where it is mounted.
    pub(crate) fn path(&self) -> &Path {
        &self.mount
    }

    fn make() -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let image = folder.path().join("image");
        let file = std::fs::File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(IMAGE_BYTES)
            .map_err(|error| error.to_string())?;
        run("xfs_io", &["-V"])?;
        // Nothing is kept back for root.
        run("mkfs.ext4", &["-q", "-m", "0", &text(&image)])?;
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

    /// Stops the file system at once. Its journal is not written out either.
    pub(crate) fn lose_power(&self) {
        run("xfs_io", &["-x", "-c", "shutdown", &text(&self.mount)]).unwrap();
    }

    /// Mounts what is left.
    pub(crate) fn restore(&self) {
        run("umount", &[&text(&self.mount)]).unwrap();
        self.mount().unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Who still has a file open, as a process that is being killed, keeps the file system and its
        // room until then, but no longer. Fails where it was never mounted.
        let _ = run("umount", &["--lazy", &text(&self.mount)]);
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
