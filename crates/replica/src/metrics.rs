//! What is worth watching of a node. Paths of messages only add to a counter; all else is looked at
//! when somebody asks, within bounds. What another node leads is for that node to tell.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::Fault;
use engine::control::{Subscription, read};
use engine::shard::{Backlog, BacklogSize};
use model::limits::{METRIC_RUNS_MAX, METRIC_RUNS_PER_BACKLOG_MAX, METRIC_SUBSCRIPTIONS_MAX};
use model::{GroupId, SubscriptionName, Timestamp};
use store::Store;
pub use store::SyncTimes;

use crate::catalogue::CatalogueLease;
use crate::clock::Clock;
use crate::groups::Groups;
use crate::raft::Core;

/// What the leaders on this node count. Clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    leaderships: AtomicU64,
    published: AtomicU64,
    delivered: AtomicU64,
    acknowledged: AtomicU64,
}

impl Counts {
    /// The leadership of a shard has begun.
    pub(crate) fn leadership(&self) {
        add(&self.0.leaderships, 1);
    }

    /// A publish request is stored.
    pub(crate) fn published(&self) {
        add(&self.0.published, 1);
    }

    /// Messages are on their way to a session.
    pub(crate) fn delivered(&self, messages: usize) {
        add(&self.0.delivered, messages);
    }

    /// Acks are durable.
    pub(crate) fn acknowledged(&self, acks: usize) {
        add(&self.0.acknowledged, acks);
    }
}

fn add(counter: &AtomicU64, more: usize) {
    counter.fetch_add(more as u64, Ordering::Relaxed);
}

/// Looks at a node. Clones look at the same.
#[derive(Clone)]
pub struct Metrics {
    groups: Groups,
    control: Core,
    lease: CatalogueLease,
    store: Store,
    clock: Clock,
    counts: Counts,
}

/// What was seen of a node. Counters begin with its process.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Leaderships of shards that began here.
    pub leaderships: u64,
    /// Publish requests that leaders here have stored.
    pub published: u64,
    /// Messages that leaders here have sent, again or not.
    pub delivered: u64,
    /// Acks that leaders here have answered OK.
    pub acknowledged: u64,
    /// The groups that this node leads; none while it has no catalogue lease.
    pub led: Vec<GroupId>,
    /// How long the node may go on without hearing of the control group.
    pub catalogue_lease: Duration,
    /// Bytes that the disk can still take; `None` where it does not say.
    pub disk_free: Option<u64>,
    /// How long the disk took to make writes durable.
    pub syncs: SyncTimes,
    /// The backlog of each subscription on the shards that this node leads, by name.
    pub backlogs: BTreeMap<SubscriptionName, BacklogFigures>,
    /// Subscriptions that are too many to be looked at.
    pub left_out: usize,
}

/// The backlog of one subscription on the shards that a node leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BacklogFigures {
    /// Messages that are not acknowledged. At least so many, where `is_partial`.
    pub messages: u64,
    /// How long ago the oldest of them was published; zero where there is none.
    pub oldest: Duration,
    /// Whether the backlog is too large to be counted each time.
    pub is_partial: bool,
}

impl Metrics {
    pub(crate) fn new(
        groups: &Groups,
        control: &Core,
        lease: &CatalogueLease,
        store: &Store,
        clock: Clock,
    ) -> Self {
        Metrics {
            groups: groups.clone(),
            control: control.clone(),
            lease: lease.clone(),
            store: store.clone(),
            clock,
            counts: Counts::default(),
        }
    }

    /// Where the leaders on this node count.
    pub(crate) fn counts(&self) -> Counts {
        self.counts.clone()
    }

    /// Looks at everything. Reads the disk, up to [`METRIC_RUNS_MAX`] rows of it: not for a thread
    /// that serves.
    ///
    /// # Errors
    /// [`Fault`] when a state can't be read.
    pub fn figures(&self) -> Result<Figures, Fault> {
        let counters = &self.counts.0;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (backlogs, left_out) = self.backlogs()?;
        Ok(Figures {
            leaderships: count(&counters.leaderships),
            published: count(&counters.published),
            delivered: count(&counters.delivered),
            acknowledged: count(&counters.acknowledged),
            led: self.led(),
            catalogue_lease: self.lease.left(),
            disk_free: self.store.disk_free(),
            syncs: self.store.sync_times(),
            backlogs,
            left_out,
        })
    }

    /// The backlogs of the first subscriptions by name, and how many more there are.
    fn backlogs(&self) -> Result<(BTreeMap<SubscriptionName, BacklogFigures>, usize), Fault> {
        let shards = self.led_shards();
        let (mut backlogs, mut left_out) = (BTreeMap::new(), 0);
        let mut runs = METRIC_RUNS_MAX;
        for subscription in read::attached_subscriptions(self.control.view()) {
            let subscription = subscription?;
            if backlogs.len() == METRIC_SUBSCRIPTIONS_MAX {
                left_out += 1;
                continue;
            }
            if let Some(figures) = self.backlog(&subscription, &shards, &mut runs)? {
                backlogs.insert(subscription.name, figures);
            }
        }
        Ok((backlogs, left_out))
    }

    /// The backlog of a subscription on these shards; `None` if it takes part in none of them.
    fn backlog(
        &self,
        subscription: &Subscription,
        shards: &[Core],
        runs: &mut usize,
    ) -> Result<Option<BacklogFigures>, Fault> {
        let mut figures = None;
        for shard in shards {
            let backlog = Backlog::open(shard.view(), subscription.topic, subscription.incarnation);
            let Some(backlog) = backlog? else {
                continue;
            };
            let size = backlog.size(METRIC_RUNS_PER_BACKLOG_MAX.min(*runs))?;
            *runs = runs.saturating_sub(size.runs);
            self.add(figures.get_or_insert_default(), &size);
        }
        Ok(figures)
    }

    fn add(&self, figures: &mut BacklogFigures, size: &BacklogSize) {
        let age = |published: Timestamp| self.clock.wall().since(published);
        figures.messages += size.messages;
        figures.oldest = figures.oldest.max(size.oldest.map(age).unwrap_or_default());
        figures.is_partial |= size.is_partial;
    }

    /// The groups that this node leads: none where it hears of nobody, since others may lead them
    /// by now.
    fn led(&self) -> Vec<GroupId> {
        match self.lease.lasts() {
            true => self.groups.led().iter().map(|led| led.group).collect(),
            false => Vec::new(),
        }
    }

    fn led_shards(&self) -> Vec<Core> {
        let led = self.led();
        let led =
            |core: &&Core| matches!(core.group(), GroupId::Shard(_)) && led.contains(&core.group());
        self.groups.all().values().filter(led).cloned().collect()
    }
}
