//! Where messages go that no pin binds yet.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use engine::Fault;
use engine::control::{Topic, read};
use engine::route::{self, NoRoute, NotInTransit, Routes, Spread};
use model::{RegionName, ShardNumber};
use tokio::time::Instant;

use crate::Router;

/// How long the shards are as they were read: new ones take their part so much later.
const READ_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// What a router has read of the catalogue, so as not to read it for each message.
#[derive(Debug, Default)]
pub(crate) struct KnownRoutes {
    /// The region of this node, which never changes.
    region: OnceLock<RegionName>,
    read: Mutex<Option<(Instant, Arc<Routes>)>>,
}

impl Router {
    /// The shard for a message of the topic: at home in this node's region, where the topic's
    /// storage policy allows it.
    ///
    /// # Errors
    /// [`NoRoute`] where there is no such shard yet; [`Fault`] when the catalogue can't be read.
    pub(crate) fn route(
        &self,
        topic: &Topic,
        spread: Spread,
    ) -> Result<Result<ShardNumber, NoRoute>, Fault> {
        let region = self.region()?;
        let near: Vec<RegionName> = region.cloned().into_iter().collect();
        let routes = self.routes()?;
        Ok(route::route(&routes, &near, topic, spread))
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
        let mut read = self
            .inner
            .routes
            .read
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match &*read {
            Some((at, routes)) if at.elapsed() < READ_AGAIN_AFTER => Ok(routes.clone()),
            _ => {
                let routes = Arc::new(Routes::read(self.control().view())?);
                *read = Some((Instant::now(), routes.clone()));
                Ok(routes)
            }
        }
    }
}
