//! A data folder that is not as it was left: refused with a reason, or recovered without loss.

mod rig;

use std::fs;
use std::path::{Path, PathBuf};

use engine::kv::View;
use rig::*;
use store::{LogEntry, OpenError, Payloads, Start, Store};
use tempfile::TempDir;

/// A node's folder, as a killed process left it: some of the data in tables, some only in the
/// write-ahead log.
fn left_by_a_killed_process() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(settings(folder.path(), Start::New(identity()))).unwrap();
    append(&store, GROUP, written()[..4].to_vec());
    store
        .write_state(GROUP, applied(1, 2), rows(&[(b"\x01key", Some("value"))]))
        .unwrap();
    store.flush_state().unwrap();
    for entry in &written()[4..] {
        append(&store, GROUP, vec![entry.clone()]);
    }
    let left = tempfile::tempdir().unwrap();
    copy_folder(folder.path(), left.path());
    left
}

fn written() -> Vec<LogEntry> {
    entries(1, 0..8)
}

fn open(folder: &Path) -> Result<Store, OpenError> {
    Store::open(settings(folder, Start::Existing))
}

/// The error of an opening that must fail. It must name the folder, and leave it as it is.
fn refusal(folder: &Path) -> OpenError {
    let before = listing(folder);
    let error = open(folder).err().expect("the folder is refused");
    let text = error.to_string();
    assert!(text.contains(&*folder.to_string_lossy()), "{text}");
    let created: Vec<_> = listing(folder)
        .into_iter()
        .filter(|name| !before.contains(name) && is_data(name))
        .collect();
    assert_eq!(created, [""; 0], "nothing is made over old data");
    error
}

fn is_data(name: &str) -> bool {
    ["CURRENT", "MANIFEST", ".sst", ".log", ".blob"]
        .iter()
        .any(|part| name.contains(part))
}

fn listing(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = files(folder, "")
        .iter()
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The files below a folder whose name has `part`, in order.
fn files(folder: &Path, part: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, part));
        } else if path.file_name().unwrap().to_string_lossy().contains(part) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Everything that was written, or why it can't be read.
fn read_everything(folder: &Path) -> Result<Vec<LogEntry>, String> {
    let store = open(folder).map_err(|error| error.to_string())?;
    let view = store.view(GROUP).map_err(|fault| fault.to_string())?;
    let key = view.get(b"\x01key").map_err(|fault| fault.to_string())?;
    assert_eq!(key.unwrap(), "value");
    store
        .read_log(GROUP, 0..u64::MAX, usize::MAX, Payloads::Joined)
        .map_err(|fault| fault.to_string())
}

fn damaged(folder: &Path, about: &str) {
    let error = refusal(folder);
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains(about), "{error}");
}

#[test]
fn a_flipped_bit_in_a_large_payload_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let large = entry(1, 0, &[&"large ".repeat(20_000)]);
    let store = Store::open(settings(folder.path(), Start::New(identity()))).unwrap();
    append(&store, GROUP, vec![large.clone()]);
    drop(store);
    // Recovery brings it from the log into a file of its own.
    assert_eq!(whole_log(&open(folder.path()).unwrap(), GROUP), [large]);
    let blob = &files(folder.path(), ".blob")[0];
    let mut bytes = fs::read(blob).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(blob, bytes).unwrap();
    let store = open(folder.path()).unwrap();
    let read = store.read_log(GROUP, 0..1, usize::MAX, Payloads::Joined);
    assert!(read.is_err(), "{read:?}");
}

#[test]
fn an_untouched_folder_has_everything() {
    let folder = left_by_a_killed_process();
    assert_eq!(read_everything(folder.path()), Ok(written()));
}

#[test]
fn an_emptied_database_is_noticed() {
    let folder = left_by_a_killed_process();
    fs::remove_dir_all(folder.path().join("database")).unwrap();
    let error = refusal(folder.path());
    assert!(
        matches!(error, OpenError::Emptied { node: 7, .. }),
        "{error}"
    );
    fs::create_dir(folder.path().join("database")).unwrap();
    let error = refusal(folder.path());
    assert!(
        matches!(error, OpenError::Emptied { node: 7, .. }),
        "{error}"
    );
    let new = Store::open(settings(folder.path(), Start::New(identity())));
    assert!(matches!(new.err(), Some(OpenError::Occupied { .. })));
}

#[test]
fn a_lost_file_of_the_database_is_noticed() {
    for (part, about) in [
        ("CURRENT", "CURRENT"),
        ("MANIFEST", "MANIFEST"),
        (".sst", ".sst"),
    ] {
        let folder = left_by_a_killed_process();
        fs::remove_file(&files(folder.path(), part)[0]).unwrap();
        damaged(folder.path(), about);
    }
}

#[test]
fn a_lost_write_ahead_log_is_noticed() {
    let folder = left_by_a_killed_process();
    fs::remove_file(&files(folder.path(), ".log")[0]).unwrap();
    damaged(folder.path(), "Missing WAL");

    let folder = left_by_a_killed_process();
    // Leaves one log, which nothing else knows of.
    let store = open(folder.path()).unwrap();
    append(&store, GROUP, entries(1, 8..9));
    let left = tempfile::tempdir().unwrap();
    copy_folder(folder.path(), left.path());
    let logs = files(left.path(), ".log");
    assert_eq!(logs.len(), 1);
    fs::remove_file(&logs[0]).unwrap();
    damaged(left.path(), "write-ahead log is missing");
}

#[test]
fn a_log_that_ends_before_its_state_is_refused() {
    let folder = left_by_a_killed_process();
    edit_database(folder.path(), |db| {
        let column = db.cf_handle("log").unwrap();
        let entries = db.iterator_cf(&column, rocksdb::IteratorMode::Start);
        let keys: Vec<_> = entries.map(|entry| entry.unwrap().0).collect();
        for key in &keys[2..] {
            db.delete_cf(&column, key).unwrap();
        }
    });
    let fault = read_everything(folder.path()).unwrap_err();
    assert!(
        fault.contains("has applied 2, and the log ends at 1"),
        "{fault}"
    );
}

#[test]
fn a_lost_identity_file_is_written_again() {
    let folder = left_by_a_killed_process();
    let file = folder.path().join("ORDERLY");
    let text = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    assert_eq!(read_everything(folder.path()), Ok(written()));
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn another_node_s_database_is_refused() {
    let folder = left_by_a_killed_process();
    let other = tempfile::tempdir().unwrap();
    let mut theirs = identity();
    theirs.node = model::NodeId(8);
    drop(Store::open(settings(other.path(), Start::New(theirs))).unwrap());
    fs::copy(other.path().join("ORDERLY"), folder.path().join("ORDERLY")).unwrap();
    let error = open(folder.path()).err().expect("it is not theirs");
    assert!(error.to_string().contains("another node"), "{error}");
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let folder = left_by_a_killed_process();
    let text = "orderly format 2\nwhatever\n";
    let text = format!("{text}crc32c {:08x}\n", crc32c::crc32c(text.as_bytes()));
    fs::write(folder.path().join("ORDERLY"), text).unwrap();
    let error = refusal(folder.path());
    assert!(
        matches!(
            error,
            OpenError::Newer {
                found: 2,
                known: 1,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_lost_column_is_refused_by_name() {
    let folder = left_by_a_killed_process();
    edit_database(folder.path(), |db| db.drop_cf("message").unwrap());
    damaged(folder.path(), "column message is missing");
}

#[test]
fn a_changed_row_is_refused_by_name() {
    let folder = left_by_a_killed_process();
    edit_database(folder.path(), |db| {
        let column = db.cf_handle("log").unwrap();
        let mut entries = db.iterator_cf(&column, rocksdb::IteratorMode::Start);
        let (key, row) = entries.nth(3).unwrap().unwrap();
        let mut row = row.to_vec();
        *row.last_mut().unwrap() ^= 1;
        db.put_cf(&column, &key, row).unwrap();
    });
    let fault = read_everything(folder.path()).unwrap_err();
    assert!(fault.contains("of column log is corrupt"), "{fault}");
}

#[test]
fn a_first_start_that_was_cut_short_begins_again() {
    let folder = tempfile::tempdir().unwrap();
    drop(Store::open(settings(folder.path(), Start::New(identity()))).unwrap());
    fs::remove_file(folder.path().join("ORDERLY")).unwrap();
    let store = Store::open(settings(folder.path(), Start::New(identity()))).unwrap();
    append(&store, GROUP, written());
    drop(store);
    assert_eq!(open(folder.path()).unwrap().identity(), &identity());
}

#[test]
fn a_record_that_was_being_written_is_left_out() {
    let whole = left_by_a_killed_process();
    let log = live_log(whole.path());
    let size = fs::metadata(&log).unwrap().len();
    // The last record has 100 bytes and more: any cut inside of it takes the last entry only.
    for missing in [1, 10, 60] {
        for zeros in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            copy_folder(whole.path(), folder.path());
            let file = fs::OpenOptions::new()
                .write(true)
                .open(live_log(folder.path()))
                .unwrap();
            file.set_len(size - missing).unwrap();
            if zeros {
                // The size of the file came to the disk, its last page did not.
                file.set_len(size + 4_096).unwrap();
            }
            let read = read_everything(folder.path());
            let whole = Ok(written()[..7].to_vec());
            assert_eq!(read, whole, "cut by {missing}, zeros {zeros}");
            assert_eq!(read_everything(folder.path()), whole, "once more");
        }
    }
}

#[test]
fn a_flipped_bit_loses_nothing_in_silence() {
    let whole = left_by_a_killed_process();
    let mut refused = 0;
    let mut harmless = 0;
    for part in ["ORDERLY", "CURRENT", "MANIFEST", ".sst", ".log"] {
        let file = files(whole.path(), part).pop().unwrap();
        let name = file.strip_prefix(whole.path()).unwrap().to_owned();
        let size = fs::metadata(&file).unwrap().len();
        // The last record of the live log looks the same when it was torn.
        let judged = if part == ".log" { size - 200 } else { size };
        for step in 0..25 {
            let folder = tempfile::tempdir().unwrap();
            copy_folder(whole.path(), folder.path());
            let mut bytes = fs::read(folder.path().join(&name)).unwrap();
            let offset = (judged - 1) * step / 24;
            bytes[offset as usize] ^= 1 << (step % 8);
            fs::write(folder.path().join(&name), bytes).unwrap();
            match read_everything(folder.path()) {
                Ok(read) => {
                    assert_eq!(read, written(), "{part}, byte {offset} of {size}");
                    harmless += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > harmless, "{refused} refused, {harmless} harmless");
}

/// Changes a database behind the store's back.
fn edit_database(folder: &Path, edit: impl FnOnce(&rocksdb::DB)) {
    let database = folder.join("database");
    let options = rocksdb::Options::default();
    let names = rocksdb::DB::list_cf(&options, &database).unwrap();
    edit(&rocksdb::DB::open_cf(&options, &database, names).unwrap());
}

/// The write-ahead log that was written last.
fn live_log(folder: &Path) -> PathBuf {
    files(folder, ".log").pop().unwrap()
}
