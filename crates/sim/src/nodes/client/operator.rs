//! An operator: brings nodes to rest, sends them away, and says which ones are lost.

use std::time::Duration;

use proto::admin::admin_client::AdminClient;
use proto::admin::node::State;
use proto::admin::{
    ActivateNodeRequest, DecommissionNodeRequest, DrainNodeRequest, ListNodesRequest, Node,
    ReplaceNodeRequest,
};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use tonic::{Code, Status};

use super::{Endpoints, timed};
use crate::nodes::recorder::Recorder;

/// How often an operator looks at what becomes of an order.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What an operator shall bring about.
#[derive(Clone, Debug)]
pub(in crate::nodes) enum Order {
    /// The node of this name leaves for good.
    SendAway(String),
    /// The node of this name is lost.
    Replace(String),
    /// The node of this name comes to rest for so long: it leads nothing.
    Rest(String, Duration),
}

/// An order, and who wants to know when it is carried out, and whether it did something.
pub(in crate::nodes) type Ordered = (Order, oneshot::Sender<bool>);

/// Carries orders out, each until it is done.
pub(in crate::nodes) async fn obey(
    nodes: Vec<String>,
    recorder: Recorder,
    mut orders: mpsc::UnboundedReceiver<Ordered>,
) {
    while let Some((order, done)) = orders.recv().await {
        let (endpoints, recorder) = (Endpoints::new(&nodes), recorder.clone());
        tokio::spawn(async move {
            let did = match &order {
                Order::Rest(node, lasts) => rest(&endpoints, &recorder, node, *lasts).await,
                Order::SendAway(_) | Order::Replace(_) => {
                    let (what, to, say) = (&order, &endpoints, &recorder);
                    let said = format!("{order:?}");
                    until_done(to, say, &said, || carry_out(to, say, what)).await;
                    true
                }
            };
            recorder.say(format!("{order:?} is carried out: {did}"));
            // The world may have ended.
            let _ = done.send(did);
        });
    }
}

/// Asks one node after another until something is done.
async fn until_done<T, Attempt>(
    endpoints: &Endpoints,
    recorder: &Recorder,
    what: &str,
    attempt: impl Fn() -> Attempt,
) -> T
where
    Attempt: Future<Output = Result<T, Status>>,
{
    let mut said = None;
    loop {
        match attempt().await {
            Ok(done) => return done,
            Err(why) => {
                let why = Some((why.code(), why.message().to_owned()));
                if said != why {
                    recorder.say(format!("{what} has to wait: {why:?}"));
                    said = why;
                }
            }
        }
        endpoints.next();
        sleep(LOOK_EVERY).await;
    }
}

/// Brings a node to rest for a while; whether it gave something up that it led.
async fn rest(endpoints: &Endpoints, recorder: &Recorder, node: &str, lasts: Duration) -> bool {
    let over = Instant::now() + lasts;
    let resting = timeout_at(over, async {
        let drained = until_done(endpoints, recorder, "a drain", || drain(endpoints, node)).await;
        let at_rest = || wait_until_at_rest(endpoints, drained.id);
        until_done(endpoints, recorder, "rest", at_rest).await && !drained.leads.is_empty()
    });
    let did = resting.await.unwrap_or(false);
    sleep_until(over).await;
    until_done(endpoints, recorder, "the end of a rest", || {
        wake_up(endpoints, node)
    })
    .await;
    did
}

async fn drain(endpoints: &Endpoints, node: &str) -> Result<Node, Status> {
    // What it leads is told before it gives it up.
    let nodes = list(endpoints).await?;
    let mut client = AdminClient::new(endpoints.channel());
    let node = node.to_owned();
    let drained = client.drain_node(timed(DrainNodeRequest { node })).await?;
    let drained = drained.into_inner();
    let before = nodes.into_iter().find(|node| node.id == drained.id);
    Ok(before.unwrap_or(drained))
}

/// Lets a node take part again that rests. It may have left meanwhile, or be about to.
async fn wake_up(endpoints: &Endpoints, node: &str) -> Result<(), Status> {
    let nodes = list(endpoints).await?.into_iter();
    let resting = nodes.filter(|other| other.name == node && other.state() == State::Draining);
    for resting in resting {
        let mut client = AdminClient::new(endpoints.channel());
        let node = resting.id.to_string();
        client
            .activate_node(timed(ActivateNodeRequest { node }))
            .await?;
    }
    Ok(())
}

async fn carry_out(
    endpoints: &Endpoints,
    recorder: &Recorder,
    order: &Order,
) -> Result<(), Status> {
    let mut client = AdminClient::new(endpoints.channel());
    match order {
        Order::Replace(node) => {
            let node = node.clone();
            let replaced = client
                .replace_node(timed(ReplaceNodeRequest { node }))
                .await;
            replaced.map(drop)
        }
        Order::Rest(..) => unreachable!("it has its own way"),
        Order::SendAway(node) => {
            let request = DecommissionNodeRequest {
                node: node.clone(),
                force: true,
            };
            let asked = client.decommission_node(timed(request)).await;
            // An earlier request may have been carried out.
            let id = match asked {
                Ok(node) => node.into_inner().id,
                Err(status) if status.code() == Code::NotFound => return Ok(()),
                Err(status) => return Err(status),
            };
            wait_until_removed(endpoints, recorder, id).await
        }
    }
}

/// Waits for a node to lead nothing; whether it came to that.
async fn wait_until_at_rest(endpoints: &Endpoints, id: u64) -> Result<bool, Status> {
    loop {
        let nodes = list(endpoints).await?;
        match nodes.iter().find(|node| node.id == id) {
            Some(node) if node.state() == State::Draining && !node.leads.is_empty() => {
                sleep(LOOK_EVERY).await;
            }
            Some(node) => return Ok(node.state() == State::Draining),
            None => return Ok(false),
        }
    }
}

async fn list(endpoints: &Endpoints) -> Result<Vec<Node>, Status> {
    let mut client = AdminClient::new(endpoints.channel());
    let nodes = client.list_nodes(timed(ListNodesRequest {})).await?;
    Ok(nodes.into_inner().nodes)
}

async fn wait_until_removed(
    endpoints: &Endpoints,
    recorder: &Recorder,
    id: u64,
) -> Result<(), Status> {
    let mut said = None;
    loop {
        let mut nodes = list(endpoints).await?.into_iter();
        let leaving = nodes.find(|node| node.id == id && node.state() != State::Removed);
        let Some(leaving) = leaving else {
            return Ok(());
        };
        let has = Some((leaving.votes, leaving.still_votes));
        if said != has {
            recorder.say(format!("node {id} is wanted in and still votes in {has:?}"));
            said = has;
        }
        sleep(LOOK_EVERY).await;
    }
}
