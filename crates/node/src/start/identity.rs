//! Whose data folder it is, against what the settings say.

use engine::control::{Node, read};
use model::GroupId;
use store::{Called, Store};

use super::{Settings, StartError};

/// Compares the settings with what the data folder says of its node.
///
/// # Errors
/// [`StartError::FolderOf`] where they name another node, and [`StartError::Configured`] where they
/// name none and the folder does.
pub(super) fn check(settings: &Settings, store: &Store) -> Result<(), StartError> {
    let folder = || settings.data_dir.clone();
    let called = match &store.identity().called {
        Some(called) => Some(called.clone()),
        None => by_catalogue(settings, store)?,
    };
    match (&settings.member, called) {
        (Some(member), Some(called)) if member.called() != called => Err(StartError::FolderOf {
            folder: folder(),
            name: called.name,
            region: called.region,
        }),
        (None, Some(called)) => Err(StartError::Configured {
            folder: folder(),
            name: called.name,
        }),
        _ => Ok(()),
    }
}

/// What the catalogue in the folder says, of a node alone among others too. The folders of members
/// say it themselves, but for those from before they did; of these, one whose catalogue has to be
/// rebuilt from its log says nothing.
fn by_catalogue(settings: &Settings, store: &Store) -> Result<Option<Called>, StartError> {
    let failed = |fault: engine::Fault| StartError::Replicas {
        folder: settings.data_dir.clone(),
        source: fault.into(),
    };
    let catalogue = &store.view(GroupId::Control).map_err(failed)?;
    let nodes = read::nodes(catalogue).map_err(failed)?;
    // A node that was alone from its birth has no configuration.
    if settings.member.is_none() && nodes.len() <= 1 {
        return Ok(None);
    }
    let node = nodes
        .into_iter()
        .find(|node| node.id == store.identity().node);
    Ok(node.map(|Node { name, region, .. }| Called { name, region }))
}
