//! Whose data folder it is, against what the settings say.

use engine::control::read;
use model::GroupId;
use store::Store;

use super::{Settings, StartError};

/// Compares the settings with what the catalogue in the data folder says of its node. A node that
/// has just joined is not in it yet, nor is one whose catalogue has to be rebuilt from its log.
///
/// # Errors
/// [`StartError::FolderOf`] where they name another node, and [`StartError::OfSeveral`] where they
/// name none and there are others.
pub(super) fn check(settings: &Settings, store: &Store) -> Result<(), StartError> {
    let failed = |fault: engine::Fault| StartError::Replicas {
        folder: settings.data_dir.clone(),
        source: fault.into(),
    };
    let catalogue = &store.view(GroupId::Control).map_err(failed)?;
    let node = read::node(catalogue, store.identity().node).map_err(failed)?;
    let Some(node) = node else {
        return Ok(());
    };
    let folder = settings.data_dir.clone();
    match &settings.member {
        Some(member) if member.name != node.name || member.region != node.region => {
            Err(StartError::FolderOf {
                folder,
                name: node.name,
                region: node.region,
            })
        }
        None if read::nodes(catalogue).map_err(failed)?.len() > 1 => Err(StartError::OfSeveral {
            folder,
            name: node.name,
        }),
        _ => Ok(()),
    }
}
