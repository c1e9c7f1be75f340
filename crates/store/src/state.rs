//! The state of a group, as [`engine`] reads it.

use bytes::Bytes;
use engine::Fault;
use engine::kv::{RawRow, View};
use engine::table::run::PayloadAt;
use model::GroupId;
use model::run::RunPayload;

use crate::Store;

/// The state of one group on this node: a view of what is written when it is asked, not a frozen
/// one. One reader may stop on the way while another writes; each scan sees the rows in order.
#[derive(Clone)]
pub struct StateView {
    store: Store,
    group: GroupId,
}

impl View for StateView {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Fault> {
        unimplemented!("{key:?}")
    }

    fn scan<'a>(
        &'a self,
        from: &[u8],
        to: &[u8],
    ) -> Box<dyn Iterator<Item = Result<RawRow, Fault>> + 'a> {
        unimplemented!("{from:?} {to:?}")
    }

    fn floor(&self, from: &[u8], at: &[u8]) -> Result<Option<RawRow>, Fault> {
        unimplemented!("{from:?} {at:?}")
    }

    fn payload(&self, at: PayloadAt) -> Result<RunPayload, Fault> {
        unimplemented!("{at:?}")
    }
}

impl StateView {
    pub(crate) fn new(store: Store, group: GroupId) -> Self {
        StateView { store, group }
    }
}
