//! What the replicas on this node have come to, each as one number.

use std::pin::Pin;

use futures::{Stream, StreamExt, stream};
use model::GroupId;
use proto::admin::{DigestReplicasRequest, ReplicaDigest};
use replica::Digests;
use tonic::Status;

use super::refusal::Refusal;

/// One replica after another; the next one is read when somebody takes it.
pub(super) type DigestStream = Pin<Box<dyn Stream<Item = Result<ReplicaDigest, Status>> + Send>>;

/// The replicas that are asked for.
pub(super) fn read(digests: &Digests, request: &DigestReplicasRequest) -> DigestStream {
    let asked = &request.groups;
    let is_asked = |group: &GroupId| asked.is_empty() || asked.contains(&group.to_string());
    let groups: Vec<GroupId> = digests.groups().into_iter().filter(is_asked).collect();
    let digests = digests.clone();
    let read = stream::iter(groups).filter_map(move |group| {
        let digests = digests.clone();
        async move { digest(&digests, group).await.transpose() }
    });
    Box::pin(read.map(|digest| Ok(digest?)))
}

/// `None` where nothing was applied yet.
async fn digest(digests: &Digests, group: GroupId) -> Result<Option<ReplicaDigest>, Refusal> {
    let digest = digests.digest(group).await;
    let digest = digest.map_err(|fault| Refusal::Unreadable { group, fault })?;
    Ok(digest.map(|digest| ReplicaDigest {
        node: digests.node().0,
        group: group.to_string(),
        term: digest.at.term,
        index: digest.at.index,
        sum: digest.sum,
    }))
}
