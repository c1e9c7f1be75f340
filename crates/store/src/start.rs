//! The first look at a disk: whose it is, and whether that fits what is expected.

use std::path::Path;

use crate::backend::batch::{Batch, Durability};
use crate::backend::{Backend, DiskError};
use crate::fault::OpenError;
use crate::identity::{BadIdentity, FORMAT, Identity};
use crate::key::{self, Column};
use crate::row::Rows;
use crate::settings::Start;

/// Whose disk it is. At the first start, makes it the new node's.
///
/// `elsewhere` is what the data folder says of itself.
pub(crate) fn identify(
    backend: &dyn Backend,
    rows: &Rows,
    folder: &Path,
    start: &Start,
    elsewhere: Option<&Identity>,
) -> Result<Identity, OpenError> {
    let found = read_identity(rows, folder)?;
    match (start, found) {
        (Start::Existing, Some(found)) => match elsewhere.is_none_or(|there| *there == found) {
            true => Ok(found),
            false => Err(damaged(
                folder,
                "it belongs to another node than the folder",
            )),
        },
        (Start::Existing, None) => match elsewhere {
            Some(_) => Err(damaged(folder, "it does not say whose it is")),
            None => Err(empty_or_damaged(rows, folder)?),
        },
        // A first start that was cut short has left nothing but its identity, if that.
        (Start::New(new), found) => match has_rows_of_groups(rows, folder)? {
            held if !held || model::sabotage!("old-disk-made-new") => {
                write_identity(backend, folder, new)
            }
            _ => Err(match found {
                Some(found) => OpenError::Occupied {
                    folder: folder.to_owned(),
                    node: found.node.0,
                },
                None => damaged(folder, "it does not say whose it is"),
            }),
        },
    }
}

/// What a bad identity in `place` means for the opening of the store.
pub(crate) fn refuse(bad: BadIdentity, folder: &Path, place: &str) -> OpenError {
    match bad {
        BadIdentity::Newer(found) => OpenError::Newer {
            folder: folder.to_owned(),
            found,
            known: FORMAT,
        },
        BadIdentity::Malformed => damaged(folder, format!("{place} does not read as an identity")),
    }
}

pub(crate) fn damaged(folder: &Path, what: impl ToString) -> OpenError {
    OpenError::Damaged {
        folder: folder.to_owned(),
        what: what.to_string(),
    }
}

pub(crate) fn unusable(folder: &Path, what: impl ToString) -> OpenError {
    OpenError::Unusable {
        folder: folder.to_owned(),
        what: what.to_string(),
    }
}

fn read_identity(rows: &Rows, folder: &Path) -> Result<Option<Identity>, OpenError> {
    let row = rows.get(Column::Meta, &key::IDENTITY);
    let Some(body) = row.map_err(|fault| damaged(folder, fault))? else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&body);
    Identity::from_text(&text)
        .map(Some)
        .map_err(|bad| refuse(bad, folder, "its identity row"))
}

fn write_identity(
    backend: &dyn Backend,
    folder: &Path,
    new: &Identity,
) -> Result<Identity, OpenError> {
    if new.cluster.contains(char::is_control) {
        return Err(unusable(
            folder,
            "the cluster's name has control characters",
        ));
    }
    let mut batch = Batch::default();
    let text = new.to_text();
    batch.put(Column::Meta, key::IDENTITY.to_vec(), &[text.as_bytes()]);
    backend
        .write(batch, Durability::Synced)
        .map_err(|DiskError(what)| unusable(folder, what))?;
    Ok(new.clone())
}

fn empty_or_damaged(rows: &Rows, folder: &Path) -> Result<OpenError, OpenError> {
    Ok(match has_rows_of_groups(rows, folder)? {
        true => damaged(folder, "it does not say whose it is"),
        false => OpenError::Empty {
            folder: folder.to_owned(),
        },
    })
}

fn has_rows_of_groups(rows: &Rows, folder: &Path) -> Result<bool, OpenError> {
    for column in Column::ALL {
        let first = rows
            .scan(column, &1_u32.to_be_bytes(), &[0xff; 5])
            .next()
            .transpose();
        if first.map_err(|fault| damaged(folder, fault))?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
