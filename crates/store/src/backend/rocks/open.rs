//! Opening a data folder: every doubt is an error, and nothing is made over old data.

use std::io;
use std::sync::Arc;

use rocksdb::{DB, ErrorKind, Options};

use super::folder::{Files, Folder};
use super::room::Relocation;
use super::{RocksBackend, options, torn_log};
use crate::backend::Backend;
use crate::fault::OpenError;
use crate::identity::Identity;
use crate::key::Column;
use crate::level::DiskLevel;
use crate::row::Rows;
use crate::settings::{Limits, Settings, Start};
use crate::start;

/// The column family that RocksDB makes in any case. It stays empty.
const DEFAULT_COLUMN: &str = "default";

/// Opens the database of a data folder, or makes one where a new node was asked for.
pub(crate) fn open(settings: &Settings) -> Result<(Arc<dyn Backend>, Identity), OpenError> {
    let folder = Folder::new(&settings.folder);
    let path = &settings.folder;
    let named = folder.identity()?;
    check_files(&folder, &settings.start, named.as_ref())?;
    let new = named.is_none() && matches!(settings.start, Start::New(_));
    match new {
        true => folder.create().map_err(|error| unusable(&folder, error))?,
        false => check_columns(&folder)?,
    }
    make_room(&folder, settings).map_err(|error| unusable(&folder, error))?;
    let size = folder
        .space()
        .map_err(|error| unusable(&folder, error))?
        .size;
    let db = open_database(&folder, new, size, &settings.limits)?;
    let backend: Arc<dyn Backend> = Arc::new(RocksBackend {
        db,
        folder: folder.clone(),
        relocation: Relocation::default(),
    });
    let rows = Rows::new(backend.clone());
    let identity = start::identify(&*backend, &rows, path, &settings.start, named.as_ref())?;
    if named.is_none() {
        let written = folder.write_identity(&identity);
        written.map_err(|error| unusable(&folder, error))?;
    }
    Ok((backend, identity))
}

/// Whether the files there fit what is expected.
fn check_files(folder: &Folder, start: &Start, named: Option<&Identity>) -> Result<(), OpenError> {
    let path = folder.path().to_owned();
    let files = folder.files().map_err(|error| unusable(folder, error))?;
    match (start, named, files) {
        (Start::New(_), Some(named), _) => Err(OpenError::Occupied {
            folder: path,
            node: named.node.0,
        }),
        (_, _, Files::Broken(what)) => Err(start::damaged(&path, what)),
        (_, None, Files::None) if let Some(found) = stranger(folder)? => Err(OpenError::NotEmpty {
            folder: path,
            found,
        }),
        (Start::Existing, None, Files::None) => Err(OpenError::Empty { folder: path }),
        (Start::Existing, Some(named), Files::None) => Err(OpenError::Emptied {
            folder: path,
            node: named.node.0,
        }),
        (Start::New(_), None, Files::None) | (_, _, Files::Present) => Ok(()),
    }
}

/// Something in the folder that a new node's folder does not have.
fn stranger(folder: &Folder) -> Result<Option<String>, OpenError> {
    folder.stranger().map_err(|error| unusable(folder, error))
}

/// Whether the database has our columns, and no others.
fn check_columns(folder: &Folder) -> Result<(), OpenError> {
    let found = DB::list_cf(&Options::default(), folder.database())
        .map_err(|error| refusal(folder, &error))?;
    for column in Column::ALL {
        if !found.iter().any(|name| name == column.name()) {
            let what = format!("column {} is missing", column.name());
            return Err(start::damaged(folder.path(), what));
        }
    }
    let known = |name: &str| Column::ALL.iter().any(|column| column.name() == name);
    match found
        .iter()
        .find(|name| !known(name) && *name != DEFAULT_COLUMN)
    {
        Some(name) => Err(start::damaged(
            folder.path(),
            format!("column {name} is not known to this program"),
        )),
        None => Ok(()),
    }
}

/// Gives up the reserve of a full disk: opening writes, too.
fn make_room(folder: &Folder, settings: &Settings) -> io::Result<()> {
    let reserved = folder.reserve();
    let space = folder.space()?;
    let marks = settings.marks.within(space.size);
    let level = marks.level(space.free, reserved);
    match level == DiskLevel::Full && reserved > 0 {
        true => folder.set_reserve(0),
        false => Ok(()),
    }
}

/// Opens the database; once more, if all that is wrong is that its last write was torn.
fn open_database(folder: &Folder, new: bool, size: u64, limits: &Limits) -> Result<DB, OpenError> {
    let disk = options::Disk {
        bytes: size,
        direct: folder.takes_direct_writes(),
    };
    let open = |recovery| {
        let options = options::database(new, recovery, &disk, limits);
        DB::open_cf_descriptors(&options, folder.database(), options::columns(limits))
    };
    let error = match open(options::CUT_END) {
        Ok(db) => return Ok(db),
        Err(error) => error,
    };
    let torn = error.kind() == ErrorKind::Corruption
        && torn_log::ends_in_torn_write(&folder.database())
            .map_err(|error| unusable(folder, error))?;
    if !torn {
        return Err(refusal(folder, &error));
    }
    tracing::warn!("the last write before the stop is torn; nobody was told of it, so it goes");
    open(options::ANY_END).map_err(|error| refusal(folder, &error))
}

/// What RocksDB's refusal means for the opening of the store.
fn refusal(folder: &Folder, error: &rocksdb::Error) -> OpenError {
    let text = error.to_string();
    let locked = text.contains("While lock file") || text.contains("lock hold by current process");
    match error.kind() {
        ErrorKind::IOError if locked => OpenError::InUse {
            folder: folder.path().to_owned(),
        },
        ErrorKind::IOError if !text.contains("No such file") => {
            start::unusable(folder.path(), text)
        }
        _ => start::damaged(folder.path(), text),
    }
}

fn unusable(folder: &Folder, error: io::Error) -> OpenError {
    start::unusable(folder.path(), error)
}
