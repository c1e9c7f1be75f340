//! An operator wants a key to live in another shard.

use model::ShardNumber;

use super::leader::Leader;
use super::step::Step;
use super::{MoveReply, Output, RequestId};
use crate::Fault;
use crate::shard::{copy, read};
use crate::table::sealed::Purpose;
use crate::table::strand::StrandKey;

impl Leader {
    /// Begins to move a key that is here, unless it is too large. It is sealed first, so that its
    /// copy is the last word: publishes and acks wait until it is elsewhere, or stays after all.
    pub(super) fn move_key(
        &mut self,
        step: &mut Step<'_>,
        request: RequestId,
        key: StrandKey,
        to: ShardNumber,
    ) -> Result<(), Fault> {
        if self.transfers.joins(&key, to, request) {
            return Ok(());
        }
        let strand = read::strand(step.view, key.topic, key.strand)?;
        if strand.is_none() && !self.claims.holds(&key) && !self.seals.freezes(&key) {
            // Nothing of it is stored here. A pin that says otherwise goes, and the key is free.
            self.claims.ask_again(key);
        }
        let may_move = |epoch| super::pin::is_keyed(epoch) && to != self.shard;
        let strand = strand.filter(|strand| !strand.sealed && may_move(strand.epoch));
        let reply = match strand {
            Some(strand) if !self.seals.freezes(&key) && !self.seals.is_full() => {
                if copy::of_strand(step.view, &key)?.is_some() {
                    let id = self.transfers.begin(key, to, request);
                    self.seals.want(key, strand.epoch, Purpose::Move { id, to });
                    return Ok(());
                }
                MoveReply::TooLarge
            }
            _ => MoveReply::NotHere,
        };
        step.out.push(Output::KeyMoved { request, reply });
        Ok(())
    }
}
