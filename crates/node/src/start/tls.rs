//! The node's certificates, from the files that its configuration names.

use std::fs;
use std::path::Path;

use replica::peer::Tls;

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
    let tls = read_files(files)?;
    if *tls.name() != member.name {
        return Err(StartError::OtherNode {
            named: tls.name().clone(),
            name: member.name.clone(),
        });
    }
    Ok(Some(tls))
}

/// Reads certificates that prove who somebody is.
///
/// # Errors
/// [`StartError`] when they can't be used.
pub(crate) fn read_files(files: &config::Tls) -> Result<Tls, StartError> {
    let (authority, certificate) = (read(&files.ca)?, read(&files.certificate)?);
    Ok(Tls::new(&authority, &certificate, &read(&files.key)?)?)
}

fn read(path: &Path) -> Result<Vec<u8>, StartError> {
    fs::read(path).map_err(|source| StartError::Certificate {
        path: path.to_owned(),
        source,
    })
}
