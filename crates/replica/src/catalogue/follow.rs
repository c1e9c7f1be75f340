//! Hands what changes of the catalogue mean to the leaders of shards on this node, and knows up to
//! which change they have all logged it.

use std::collections::VecDeque;

use engine::control::read;
use futures::StreamExt;
use futures::future::{BoxFuture, join_all};
use futures::stream::FuturesOrdered;
use store::Position;
use tokio::sync::watch;

use crate::raft::{Core, Effects, Notice, Stopped};
use crate::shard::{CatalogueLogged, Shards};
use crate::stopping::Stopping;

/// The task's state.
pub(super) struct Follower {
    control: Core,
    effects: Effects,
    applied: watch::Receiver<Option<Position>>,
    shards: Shards,
    /// Entries that leaders are logging, in order: the index of each, and its end.
    logging: FuturesOrdered<BoxFuture<'static, ()>>,
    indexes: VecDeque<u64>,
    complete: watch::Sender<u64>,
}

impl Follower {
    /// Follows the catalogue of `control`. The other half tells up to which entry this node is
    /// complete: it has applied it, and each leader of a shard here has it in its log, or will
    /// compare before it serves.
    pub(super) fn new(control: Core, shards: Shards) -> (Self, watch::Receiver<u64>) {
        let (complete, watched) = watch::channel(0);
        let follower = Follower {
            effects: control.effects(),
            applied: control.applied(),
            control,
            shards,
            logging: FuturesOrdered::new(),
            indexes: VecDeque::new(),
            complete,
        };
        (follower, watched)
    }

    /// Works until the node shuts down.
    pub(super) async fn work(mut self, mut stopping: Stopping) -> Result<(), Stopped> {
        loop {
            self.hand_on().await?;
            tokio::select! {
                biased;
                () = stopping.begun() => return Ok(()),
                Some(()) = self.logging.next() => {
                    self.indexes.pop_front();
                }
                changed = self.applied.changed() => if changed.is_err() {
                    return Ok(());
                },
            }
        }
    }

    /// Hands on what has been applied, and says how far everyone has come.
    async fn hand_on(&mut self) -> Result<(), Stopped> {
        // First how far, then what: the notices of all that is applied by now are there.
        let applied = self.applied.borrow_and_update().map_or(0, |at| at.index);
        for notice in self.effects.take() {
            let index = match &notice {
                Notice::Entry(index, _) => *index,
                Notice::Everything => *self.complete.borrow() + 1,
            };
            let logged = log(&self.shards, notice).await;
            self.indexes.push_back(index);
            self.logging.push_back(logged);
        }
        let complete = self.indexes.front().map_or(applied, |index| index - 1);
        self.complete
            .send_if_modified(|known| std::mem::replace(known, complete) != complete);
        let lives = read::awake(self.control.view());
        let lives = lives.map_err(|fault| self.control.stopped(fault))?;
        self.shards.woken(lives);
        Ok(())
    }
}

/// Hands a notice to every leader here; the answer comes when all have logged it.
async fn log(shards: &Shards, notice: Notice) -> BoxFuture<'static, ()> {
    let mut logged = Vec::new();
    for shard in shards.hosted() {
        match &notice {
            Notice::Everything => logged.push(shard.compare_catalogue().await),
            Notice::Entry(_, effects) => {
                for effect in effects {
                    logged.push(shard.log_catalogue(effect.clone()).await);
                }
            }
        }
    }
    Box::pin(async move {
        join_all(logged.into_iter().map(CatalogueLogged::wait)).await;
    })
}
