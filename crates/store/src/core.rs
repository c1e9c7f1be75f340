//! What all handles of a store share.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, RwLock};

use engine::Fault;
use model::GroupId;

use crate::backend::Backend;
use crate::flush::Flush;
use crate::group::Group;
use crate::health::Health;
use crate::identity::Identity;
use crate::key::{self, Column};
use crate::level::Space;
use crate::payload_cache::PayloadCache;
use crate::row::Rows;
use crate::settings::{DiskMarks, Limits};
use crate::writer::{Turn, Writer};

/// What all handles of a store share.
pub(crate) struct Core {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) rows: Rows,
    pub(crate) identity: Identity,
    pub(crate) limits: Limits,
    pub(crate) health: Arc<Health>,
    pub(crate) writer: Writer,
    pub(crate) flush: Flush,
    pub(crate) space: Space,
    pub(crate) payloads: PayloadCache,
    /// What the entries in memory weigh, over all groups.
    pub(crate) recent_bytes: AtomicUsize,
    groups: RwLock<BTreeMap<GroupId, Arc<Group>>>,
}

impl Core {
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        identity: Identity,
        limits: Limits,
        marks: DiskMarks,
        turn: Turn,
    ) -> Self {
        let health = Arc::new(Health::default());
        Core {
            rows: Rows::new(backend.clone()),
            identity,
            limits,
            writer: Writer::new(backend.clone(), health.clone(), limits, turn),
            flush: Flush::default(),
            space: Space::new(marks),
            payloads: PayloadCache::new(limits.payload_cache_bytes),
            recent_bytes: AtomicUsize::new(0),
            groups: RwLock::default(),
            health,
            backend,
        }
    }

    /// A group, read from the disk at its first use.
    pub(crate) fn group(&self, id: GroupId) -> Result<Arc<Group>, Fault> {
        const SOUND: &str = "no holder of the groups panics";
        if let Some(group) = self.groups.read().expect(SOUND).get(&id) {
            return Ok(group.clone());
        }
        let mut groups = self.groups.write().expect(SOUND);
        if let Some(group) = groups.get(&id) {
            return Ok(group.clone());
        }
        let group = Arc::new(Group::load(&self.rows, id)?);
        self.discard_leftovers(&group)?;
        groups.insert(id, group.clone());
        Ok(group)
    }

    /// The groups that were used since the store was opened.
    pub(crate) fn used_groups(&self) -> Vec<Arc<Group>> {
        let groups = self.groups.read().expect("no holder of the groups panics");
        groups.values().cloned().collect()
    }

    /// Every group with a row on the disk, by one look into each column for each group.
    pub(crate) fn stored_groups(&self) -> Result<Vec<GroupId>, Fault> {
        let mut found = Vec::new();
        for column in Column::ALL {
            // Number 0 is the node itself.
            let mut next = 1_u32;
            while let Some(row) = self
                .rows
                .scan(column, &next.to_be_bytes(), &[0xff; 5])
                .next()
            {
                let number = key::group_number(&row?.0);
                found.push(GroupId::from_number(number).ok_or_else(|| {
                    Fault::Unreadable(format!("column {} has rows of no group", column.name()))
                })?);
                next = number + 1;
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }
}
