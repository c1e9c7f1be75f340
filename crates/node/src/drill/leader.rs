//! Which node leads the load's keys.

use std::collections::BTreeMap;

use proto::admin::{ListKeysRequest, ListShardsRequest};

use super::operators::Operators;
use crate::cli::Failure;

/// Keys of one call.
const PAGE_KEYS: u32 = 1_000;

impl Operators<'_> {
    /// The name of the node that leads the shards of most keys of a topic.
    ///
    /// # Errors
    /// [`Failure`] when the cluster does not say.
    pub(super) async fn leader_of(&self, topic: &str) -> Result<String, Failure> {
        let mut client = self.client().await?;
        let mut request = ListKeysRequest {
            topic: topic.to_owned(),
            page_size: PAGE_KEYS,
            ..ListKeysRequest::default()
        };
        let mut shards = Vec::new();
        loop {
            let page = client.list_keys(request.clone()).await?.into_inner();
            shards.extend(page.keys.into_iter().map(|key| key.shard));
            request.page_token = page.next_page_token;
            if request.page_token.is_empty() {
                break;
            }
        }
        let listed = client.list_shards(ListShardsRequest {}).await?;
        let listed = listed.into_inner().shards.into_iter();
        let leaders = listed.map(|shard| (shard.name, shard.leader)).collect();
        most(&shards, &leaders).ok_or_else(|| {
            Failure::Check(format!(
                "nobody is known to lead the keys of {topic}: see \"orderly shards list\""
            ))
        })
    }
}

/// Who leads most of the keys, of which each is in one of `shards`.
fn most(shards: &[String], leaders: &BTreeMap<String, String>) -> Option<String> {
    let mut led: BTreeMap<&String, usize> = BTreeMap::new();
    for leader in shards.iter().filter_map(|shard| leaders.get(shard)) {
        *led.entry(leader).or_default() += 1;
    }
    let known = led.into_iter().filter(|(leader, _)| !leader.is_empty());
    let most = known.max_by_key(|(_, keys)| *keys);
    most.map(|(leader, _)| leader.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_that_leads_most_keys_is_meant() {
        let shards = ["a", "b", "b", "c", "c", "c"].map(str::to_owned);
        let leaders = |of_a: &str, of_c: &str| {
            let leaders = [("a", of_a), ("b", "north-1"), ("c", of_c)];
            BTreeMap::from(leaders.map(|(shard, leader)| (shard.to_owned(), leader.to_owned())))
        };
        let most = |leaders| most(&shards, &leaders);
        assert_eq!(most(leaders("east-1", "south-1")).unwrap(), "south-1");
        assert_eq!(most(leaders("east-1", "")).unwrap(), "north-1");
        assert_eq!(super::most(&shards[..1], &leaders("", "")), None);
    }
}
