//! A node's data folder: the file that says whose it is, the database, and the reserve.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::backend::DiskSpace;
use crate::fault::OpenError;
use crate::identity::Identity;
use crate::start;

/// Says whose data the folder holds. It outlives the database.
const IDENTITY_FILE: &str = "ORDERLY";
/// Where the file is written before it gets its name.
const UNFINISHED_FILE: &str = "ORDERLY.new";
/// Space that is set aside; its content means nothing.
const RESERVE_FILE: &str = "RESERVE";
/// What ext4 has in the root of each disk, so that a disk of its own may be a data folder.
const FILE_SYSTEM: &str = "lost+found";
/// The folder of RocksDB.
const DATABASE: &str = "database";

/// A node's data folder.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

/// What the files of the database look like from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Files {
    /// No file at all.
    None,
    /// What RocksDB needs to begin with.
    Present,
    /// Some, but not what RocksDB needs to begin with.
    Broken(String),
}

impl Folder {
    pub(super) fn new(path: &Path) -> Self {
        Folder {
            path: path.to_owned(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }

    /// Makes the folders, if they are not there, so that they survive a loss of power.
    pub(super) fn create(&self) -> io::Result<()> {
        let database = self.database();
        let is_new = |folder: &&Path| !folder.exists();
        let new: Vec<PathBuf> = database
            .ancestors()
            .take_while(is_new)
            .map(PathBuf::from)
            .collect();
        fs::create_dir_all(&database)?;
        for parent in new.iter().filter_map(|folder| folder.parent()) {
            // The parent of a relative path's first part is the working folder.
            let parent = match parent.as_os_str().is_empty() {
                true => Path::new("."),
                false => parent,
            };
            File::open(parent)?.sync_all()?;
        }
        Ok(())
    }

    /// Whose data the folder says it holds.
    pub(super) fn identity(&self) -> Result<Option<Identity>, OpenError> {
        match fs::read(self.path.join(IDENTITY_FILE)) {
            Ok(bytes) => Identity::from_text(&String::from_utf8_lossy(&bytes))
                .map(Some)
                .map_err(|bad| start::refuse(bad, &self.path, "the file ORDERLY")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(start::unusable(&self.path, error)),
        }
    }

    /// Writes down whose data the folder holds, so that it is whole or not there.
    pub(super) fn write_identity(&self, identity: &Identity) -> io::Result<()> {
        let unfinished = self.path.join(UNFINISHED_FILE);
        let mut file = File::create(&unfinished)?;
        file.write_all(identity.to_text().as_bytes())?;
        file.sync_all()?;
        fs::rename(&unfinished, self.path.join(IDENTITY_FILE))?;
        File::open(&self.path)?.sync_all()
    }

    /// Something that a first start, cut short, does not leave. The reserve is set aside only once
    /// the folder says whose it is.
    pub(super) fn stranger(&self) -> io::Result<Option<String>> {
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if ![UNFINISHED_FILE, DATABASE, FILE_SYSTEM].contains(&name.as_str()) {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Looks for the files that RocksDB begins with. It would answer a missing one by creating a
    /// new database, by going on without, or with a message that says nothing to an operator.
    pub(super) fn files(&self) -> io::Result<Files> {
        let database = self.database();
        let names = match fs::read_dir(&database) {
            Ok(entries) => entries
                .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
                .collect::<io::Result<Vec<_>>>()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Files::None),
            Err(error) => return Err(error),
        };
        if names.is_empty() {
            return Ok(Files::None);
        }
        let current = match fs::read_to_string(database.join("CURRENT")) {
            Ok(current) => current,
            Err(error) => return Ok(Files::Broken(format!("its file CURRENT: {error}"))),
        };
        let manifest = current.trim_end();
        let missing = if !manifest.starts_with("MANIFEST-") {
            "its file CURRENT names no manifest".into()
        } else if !names.iter().any(|name| name == manifest) {
            format!("its file {manifest} is missing")
        } else if !names.iter().any(|name| name.ends_with(".log")) {
            // There always is one: a new one is there before an old one goes.
            "its write-ahead log is missing".into()
        } else {
            return Ok(Files::Present);
        };
        Ok(Files::Broken(missing))
    }

    /// Whether the file system lets the database write past the page cache. Not all do; a file
    /// without a name tells, and leaves nothing behind.
    pub(super) fn takes_direct_writes(&self) -> bool {
        let flags = OFlags::TMPFILE | OFlags::DIRECT | OFlags::WRONLY;
        rustix::fs::open(self.database(), flags, Mode::RUSR | Mode::WUSR).is_ok()
    }

    /// The size of the disk that the folder is on, and what this user can still write.
    pub(super) fn space(&self) -> io::Result<DiskSpace> {
        let space = rustix::fs::statvfs(&self.path)?;
        Ok(DiskSpace {
            size: space.f_blocks * space.f_frsize,
            free: space.f_bavail * space.f_frsize,
        })
    }

    /// Bytes set aside now.
    pub(super) fn reserve(&self) -> u64 {
        fs::metadata(self.path.join(RESERVE_FILE)).map_or(0, |file| file.len())
    }

    /// Sets bytes aside, or gives them up.
    pub(super) fn set_reserve(&self, bytes: u64) -> io::Result<()> {
        let path = self.path.join(RESERVE_FILE);
        if bytes == 0 {
            return fs::remove_file(path);
        }
        let file = File::create(&path)?;
        let set_aside = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes);
        if let Err(error) = set_aside {
            fs::remove_file(path)?;
            return Err(error.into());
        }
        file.sync_all()
    }
}
