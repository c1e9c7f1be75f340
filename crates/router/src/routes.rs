//! Where messages go that no pin binds yet.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use engine::Fault;
use engine::control::{Topic, read};
use engine::route::{self, NoRoute, NotInTransit, Route, Routes, Spread};
use model::{RegionName, ShardNumber};
use tokio::time::Instant;

use crate::Router;
use crate::silence::Silences;

/// How long the shards are as they were read: new ones take their part so much later.
const READ_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// What a router has read of the catalogue, so as not to read it for each message, and what it has
/// seen of regions.
#[derive(Debug, Default)]
pub(crate) struct KnownRoutes {
    /// The region of this node, which never changes.
    region: OnceLock<RegionName>,
    read: Mutex<Option<(Instant, Arc<Routes>)>>,
    silences: Mutex<Silences>,
}

impl Router {
    /// The shard for a message of the topic: at home in this node's region, where the topic's
    /// storage policy allows it; else in another that it allows. Regions that were passed over come
    /// last.
    ///
    /// # Errors
    /// [`NoRoute`] where there is no such shard yet; [`Fault`] when the catalogue can't be read.
    pub(crate) fn route(
        &self,
        topic: &Topic,
        spread: Spread,
    ) -> Result<Result<Route, NoRoute>, Fault> {
        let routes = self.routes()?;
        let near = self.near(&routes)?;
        Ok(route::route(&routes, &near, topic, spread))
    }

    /// Whether messages of the topic may be stored in a shard.
    ///
    /// # Errors
    /// [`Fault`] when the catalogue can't be read.
    pub(crate) fn fits(&self, topic: &Topic, shard: ShardNumber) -> Result<bool, Fault> {
        let mut routes = self.routes()?;
        if !routes.has(shard) {
            // It is new, and the key was brought there.
            routes = self.read_routes(&mut self.known_routes())?;
        }
        Ok(route::fits(&routes, topic, shard))
    }

    /// A region's shard did not answer a call that began then. When that lasts, others take what no
    /// pin binds to the region.
    pub(crate) fn unanswered(&self, region: RegionName, began: Instant) {
        self.silences().unanswered(region, began, Instant::now());
    }

    /// A region's shard has answered.
    pub(crate) fn answered(&self, region: &RegionName) {
        self.silences().answered(region);
    }

    /// The regions that a message may go to, in the order in which they are asked.
    fn near(&self, routes: &Routes) -> Result<Vec<RegionName>, Fault> {
        let own = self.region()?;
        let others = routes.regions().filter(|region| Some(*region) != own);
        let mut near: Vec<RegionName> = own.into_iter().chain(others).cloned().collect();
        self.silences().put_last(&mut near, Instant::now());
        Ok(near)
    }

    fn silences(&self) -> MutexGuard<'_, Silences> {
        let silences = self.inner.routes.silences.lock();
        silences.unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether messages of the topic may pass through this node.
    ///
    /// # Errors
    /// [`NotInTransit`] when its storage policy forbids it; [`Fault`] when the catalogue can't be
    /// read.
    pub(crate) fn admit(&self, topic: &Topic) -> Result<Result<(), NotInTransit>, Fault> {
        Ok(match self.region()? {
            Some(region) => route::admit(topic, region),
            None => Ok(()),
        })
    }

    /// The region of this node; nothing while its catalogue does not know the node itself.
    fn region(&self) -> Result<Option<&RegionName>, Fault> {
        let known = &self.inner.routes.region;
        if let Some(region) = known.get() {
            return Ok(Some(region));
        }
        let node = read::node(self.control().view(), self.inner.node)?;
        Ok(node.map(|node| known.get_or_init(|| node.region)))
    }

    fn routes(&self) -> Result<Arc<Routes>, Fault> {
        let mut known = self.known_routes();
        match &*known {
            Some((at, routes)) if at.elapsed() < READ_AGAIN_AFTER => Ok(routes.clone()),
            _ => self.read_routes(&mut known),
        }
    }

    fn read_routes(
        &self,
        known: &mut Option<(Instant, Arc<Routes>)>,
    ) -> Result<Arc<Routes>, Fault> {
        let routes = Arc::new(Routes::read(self.control().view())?);
        *known = Some((Instant::now(), routes.clone()));
        Ok(routes)
    }

    fn known_routes(&self) -> MutexGuard<'_, Option<(Instant, Arc<Routes>)>> {
        let known = self.inner.routes.read.lock();
        known.unwrap_or_else(PoisonError::into_inner)
    }
}
