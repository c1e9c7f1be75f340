//! A store on either disk, which can be ended at any moment and opened again.

#![allow(dead_code, reason = "each test binary uses its part")]

pub(crate) mod disk;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use engine::Fault;
use engine::kv::{RawRow, View, Writes};
use engine::table::garbage::{Garbage, GarbageKey};
use engine::table::row_key;
use engine::table::run::PayloadAt;
use model::run::RunPayload;
use model::{GroupId, NodeId, ShardNumber};
use store::{
    Applied, Done, Identity, InstallError, Limits, LogEntry, MemoryDisk, OpenError, Pace, Payloads,
    Position, Sealed, Settings, Start, Store, WriteFault,
};
use tempfile::TempDir;

/// How long a test waits for what must come.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// A group to write to.
pub(crate) const GROUP: GroupId = GroupId::Shard(ShardNumber(1));
/// A group whose rows lie behind those of [`GROUP`].
pub(crate) const OTHER: GroupId = GroupId::Shard(ShardNumber(2));

/// A disk.
pub(crate) enum Rig {
    Rocks { folder: TempDir, limits: Limits },
    Memory { disk: MemoryDisk, limits: Limits },
}

impl Rig {
    pub(crate) fn rocks() -> Self {
        Rig::Rocks {
            folder: tempfile::tempdir().unwrap(),
            limits: Limits::default(),
        }
    }

    pub(crate) fn memory() -> Self {
        Rig::Memory {
            disk: MemoryDisk::new(),
            limits: Limits::default(),
        }
    }

    pub(crate) fn limits(&mut self) -> &mut Limits {
        match self {
            Rig::Rocks { limits, .. } | Rig::Memory { limits, .. } => limits,
        }
    }

    /// Opens the disk for the first time.
    pub(crate) fn first_start(&self) -> Store {
        self.open(Start::New(identity())).unwrap()
    }

    /// Opens the disk again.
    pub(crate) fn restart(&self) -> Store {
        self.open(Start::Existing).unwrap()
    }

    pub(crate) fn open(&self, start: Start) -> Result<Store, OpenError> {
        match self {
            Rig::Rocks { folder, limits } => {
                let mut settings = settings(folder.path(), start);
                settings.limits = *limits;
                Store::open(settings)
            }
            Rig::Memory { disk, limits } => {
                let mut settings = settings(Path::new("memory"), start);
                settings.limits = *limits;
                Store::memory(disk, settings, Pace::AtOnce)
            }
        }
    }

    /// Ends the process that has the store, as `kill -9` does, and starts again.
    pub(crate) fn crash(&mut self, store: Store) -> Store {
        match self {
            Rig::Rocks { folder, .. } => {
                // What lies in the files at this moment is what a killed process leaves.
                let left = tempfile::tempdir().unwrap();
                copy_folder(folder.path(), left.path());
                drop(store);
                *folder = left;
            }
            Rig::Memory { disk, .. } => disk.end_process(),
        }
        self.restart()
    }
}

pub(crate) fn settings(folder: &Path, start: Start) -> Settings {
    let mut settings = Settings::new(folder, start);
    settings.marks.reserve = 0;
    settings.marks.high_free = 0;
    settings.marks.full_free = 0;
    settings
}

pub(crate) fn identity() -> Identity {
    Identity {
        cluster: "test".into(),
        node: NodeId(7),
        called: None,
    }
}

/// Copies a folder as it is at one moment: again, if it changed meanwhile.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    wait_until("a quiet folder", || {
        let before = sizes(from);
        let _ = fs::remove_dir_all(to);
        copy_files(from, to).is_ok() && before.is_ok() && sizes(from).ok() == before.ok()
    });
}

fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_files(&entry.path(), &to)?,
            false => {
                fs::copy(entry.path(), to)?;
            }
        }
    }
    Ok(())
}

/// Every file below a folder, with its size.
fn sizes(folder: &Path) -> io::Result<BTreeMap<PathBuf, u64>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => found.extend(sizes(&entry.path())?),
            false => {
                found.insert(entry.path(), entry.metadata()?.len());
            }
        }
    }
    Ok(found)
}

/// An entry with one payload for each of the texts.
pub(crate) fn entry(term: u64, index: u64, payloads: &[&str]) -> LogEntry {
    LogEntry {
        at: Position { term, index },
        head: Bytes::from(format!("head {term}.{index}")),
        payloads: payloads.iter().map(|text| payload(text)).collect(),
    }
}

/// Entries of one term, each with one payload.
pub(crate) fn entries(term: u64, indexes: std::ops::Range<u64>) -> Vec<LogEntry> {
    indexes
        .map(|index| entry(term, index, &[&format!("payload {term}.{index}")]))
        .collect()
}

pub(crate) fn payload(text: &str) -> RunPayload {
    RunPayload::new(&[Bytes::from(text.to_owned())])
}

pub(crate) fn at(term: u64, index: u64, number: u32) -> PayloadAt {
    PayloadAt {
        term,
        index,
        number,
    }
}

pub(crate) fn applied(term: u64, index: u64) -> Applied {
    Applied {
        at: Position { term, index },
        note: Bytes::from(format!("note {index}")),
    }
}

/// Rows to write.
pub(crate) fn rows(rows: &[(&[u8], Option<&str>)]) -> Writes {
    rows.iter()
        .map(|(key, value)| {
            let value = value.map(|value| Bytes::from(value.to_owned()));
            (key.to_vec(), value)
        })
        .collect()
}

/// A row that says that nothing refers to a payload any more.
pub(crate) fn garbage(at: PayloadAt) -> Writes {
    Writes::from([(
        row_key::<Garbage>(&GarbageKey(at)),
        Some(Bytes::from_static(b"x")),
    )])
}

/// A row that refers to a payload, as [`refers`] understands it.
pub(crate) fn reference(key: u8, at: PayloadAt) -> (Vec<u8>, Option<Bytes>) {
    let mut value = at.term.to_be_bytes().to_vec();
    value.extend_from_slice(&at.index.to_be_bytes());
    value.extend_from_slice(&at.number.to_be_bytes());
    (vec![REFERENCES, key], Some(value.into()))
}

/// The table of [`reference`].
const REFERENCES: u8 = 3;

/// Which payload a row of the tests refers to.
pub(crate) fn refers(key: &[u8], value: &[u8]) -> Result<Option<PayloadAt>, Fault> {
    let field = |from: usize, to: usize| {
        value[from..to]
            .iter()
            .fold(0, |all, byte| all << 8 | u64::from(*byte))
    };
    Ok((key[0] == REFERENCES).then(|| at(field(0, 8), field(8, 16), field(16, 20) as u32)))
}

/// The chunks of a group's checkpoint.
pub(crate) fn export(store: &Store, group: GroupId) -> Vec<Bytes> {
    let mut chunks = Vec::new();
    let send = &mut |chunk| {
        chunks.push(chunk);
        true
    };
    store.export(group, refers, send).unwrap();
    chunks
}

/// Takes all chunks of a checkpoint in.
pub(crate) fn install(
    store: &Store,
    group: GroupId,
    chunks: &[Bytes],
) -> Result<Sealed, InstallError> {
    let mut install = store.install(group, &chunks[0])?;
    for chunk in &chunks[1..] {
        install.add(chunk)?;
    }
    install.seal()
}

pub(crate) fn scan(view: &impl View, from: &[u8], to: &[u8]) -> Vec<RawRow> {
    view.scan(from, to).collect::<Result<_, _>>().unwrap()
}

/// Does something that is told when it is done, and waits for that.
pub(crate) fn wait_for(act: impl FnOnce(Done)) -> Result<(), WriteFault> {
    let (sender, receiver) = mpsc::channel();
    act(Box::new(move |outcome| {
        sender.send(outcome).expect("the test waits for it");
    }));
    receiver
        .recv_timeout(DEADLINE)
        .expect("the write is done in time")
}

pub(crate) fn append(store: &Store, group: GroupId, entries: Vec<LogEntry>) {
    wait_for(|done| store.append(group, entries, done)).unwrap();
}

pub(crate) fn truncate_after(store: &Store, group: GroupId, index: u64) {
    wait_for(|done| store.truncate_after(group, index, done)).unwrap();
}

pub(crate) fn purge(store: &Store, group: GroupId, term: u64, index: u64) {
    wait_for(|done| store.purge(group, Position { term, index }, done)).unwrap();
}

/// The whole log with its payloads.
pub(crate) fn whole_log(store: &Store, group: GroupId) -> Vec<LogEntry> {
    store
        .read_log(group, 0..u64::MAX, usize::MAX, Payloads::Joined)
        .unwrap()
}

/// Waits until something holds.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < DEADLINE, "{what} did not come in time");
        std::thread::yield_now();
    }
}
