//! The node's certificates, from the files that its configuration names.

use std::fs;
use std::path::Path;

use model::NodeName;
use replica::peer::{Tls, TlsFile};

use super::{Settings, StartError};
use crate::config;

/// Reads the certificates; `None` for a node that has none.
///
/// # Errors
/// [`StartError`] when they can't be used, or are another node's.
pub(super) fn load(settings: &Settings) -> Result<Option<Tls>, StartError> {
    let Some((member, files)) = settings
        .member
        .as_ref()
        .and_then(|member| Some((member, member.tls.as_ref()?)))
    else {
        return Ok(None);
    };
    Ok(Some(of_node(files, &member.name)?))
}

/// Reads the certificates of the node of this name.
///
/// # Errors
/// [`StartError`] when they can't be used, or are another node's.
pub(crate) fn of_node(files: &config::Tls, name: &NodeName) -> Result<Tls, StartError> {
    let tls = read_files(files)?;
    match tls.name() == name {
        true => Ok(tls),
        false => Err(StartError::OtherNode {
            named: tls.name().clone(),
            name: name.clone(),
        }),
    }
}

/// Reads certificates that prove who somebody is.
///
/// # Errors
/// [`StartError`] when they can't be used.
pub(crate) fn read_files(files: &config::Tls) -> Result<Tls, StartError> {
    let authority = read(files, TlsFile::Authority)?;
    let certificate = read(files, TlsFile::Certificate)?;
    let key = read(files, TlsFile::Key)?;
    Tls::new(&authority, &certificate, &key).map_err(|source| StartError::Tls {
        file: source.file().name(),
        path: path(files, source.file()).to_owned(),
        source,
    })
}

fn read(files: &config::Tls, file: TlsFile) -> Result<Vec<u8>, StartError> {
    let path = path(files, file);
    fs::read(path).map_err(|source| StartError::Certificate {
        file: file.name(),
        path: path.to_owned(),
        source,
    })
}

fn path(files: &config::Tls, file: TlsFile) -> &Path {
    match file {
        TlsFile::Authority => &files.ca,
        TlsFile::Certificate => &files.certificate,
        TlsFile::Key => &files.key,
    }
}
