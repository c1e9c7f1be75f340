//! The node's certificates, from the files that its configuration names.

use std::fs;
use std::path::Path;

use replica::peer::Tls;

use super::{Settings, StartError};

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
    let (authority, certificate) = (read(&files.ca)?, read(&files.certificate)?);
    let tls = Tls::new(&authority, &certificate, &read(&files.key)?)?;
    if *tls.name() != member.name {
        return Err(StartError::OtherNode {
            named: tls.name().clone(),
            name: member.name.clone(),
        });
    }
    Ok(Some(tls))
}

fn read(path: &Path) -> Result<Vec<u8>, StartError> {
    fs::read(path).map_err(|source| StartError::Certificate {
        path: path.to_owned(),
        source,
    })
}
