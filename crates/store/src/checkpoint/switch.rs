//! The moment at which an installed checkpoint becomes the group's state.

use std::sync::atomic::Ordering;

use super::install::{InstallError, Sealed, check_newer};
use crate::backend::batch::Batch;
use crate::core::Core;
use crate::entry::Position;
use crate::group::Group;
use crate::key::{self, Column, Mark};
use crate::writer::Ticket;

impl Sealed {
    /// Makes the checkpoint the group's state, by one synced write that also ends the log before
    /// it. Entries behind it stay if they continue it. Then removes what the old state alone
    /// referred to. To be called by whoever applies entries to the group, instead of that.
    ///
    /// # Errors
    /// [`InstallError::NotNewer`] when the group's state has come as far meanwhile, and
    /// [`InstallError::Write`].
    pub fn switch(mut self) -> Result<(), InstallError> {
        let install = &mut self.0;
        let (group, at) = (install.group.clone(), install.applied.at);
        check_newer(&group, at)?;
        let core = install.store.core();
        {
            // A flush removes garbage of the generation that is valid when it begins.
            let _no_flush = core.hold_flushes();
            let ticket = core.submit_switch(&group, install.generation, at)?;
            core.writer.take_turn();
            core.writer.wait_for(ticket)?;
            group.switch_to(install.generation, install.applied.clone());
        }
        install.switched = true;
        core.clean_up(&group)?;
        Ok(())
    }
}

impl Core {
    /// Queues the write that makes a generation valid, and changes the log in memory alike.
    fn submit_switch(
        &self,
        group: &Group,
        generation: u32,
        at: Position,
    ) -> Result<Ticket, InstallError> {
        let id = group.id;
        let mut log = group.log();
        // An entry of another leader in its place means that none behind it was committed.
        let continued =
            (log.first..log.end()).contains(&at.index) && self.header(id, &log, at.index)?.at == at;
        let mut batch = match continued || log.end() <= at.index {
            true => Batch::default(),
            false => self.cut(id, &mut log, at.index)?,
        };
        let weight = log.restart_behind(at, continued);
        self.recent_bytes.fetch_sub(weight, Ordering::Relaxed);
        let (from, to) = (key::log(id, 0), key::log(id, at.index + 1));
        batch.delete_range(Column::Log, from, to);
        let purged = key::meta(id, Mark::Purged);
        batch.put(Column::Meta, purged, &[&at.to_bytes()]);
        let mark = key::meta(id, Mark::Generation);
        batch.put(Column::Meta, mark, &[&generation.to_le_bytes()]);
        let ticket = self.writer.submit(batch, Box::new(|_| {}));
        log.purging = Some(ticket);
        Ok(ticket)
    }
}
