//! An operator: moves keys, sends nodes away, and says which ones are lost.

use std::time::Duration;

use model::TopicName;
use proto::admin::admin_client::AdminClient;
use proto::admin::node::State;
use proto::admin::{DecommissionNodeRequest, ListNodesRequest, ReplaceNodeRequest};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep;
use tonic::{Code, Status};

use super::{AGAIN_AFTER, Endpoints, Phase, TOPIC, timed};
use crate::chance::Chance;
use crate::history::{Key, What};
use crate::nodes::member::Member;
use crate::nodes::moves::Outcome;
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
}

/// An order, and who wants to know when it is carried out.
pub(in crate::nodes) type Ordered = (Order, oneshot::Sender<()>);

/// Carries orders out, each until it is done.
pub(in crate::nodes) async fn obey(
    nodes: Vec<String>,
    recorder: Recorder,
    mut orders: mpsc::UnboundedReceiver<Ordered>,
) {
    while let Some((order, done)) = orders.recv().await {
        let (endpoints, recorder) = (Endpoints::new(&nodes), recorder.clone());
        tokio::spawn(async move {
            let mut said = None;
            while let Err(why) = carry_out(&endpoints, &recorder, &order).await {
                let why = Some((why.code(), why.message().to_owned()));
                if said != why {
                    recorder.say(format!("{order:?} has to wait: {why:?}"));
                    said = why;
                }
                endpoints.next();
                sleep(LOOK_EVERY).await;
            }
            recorder.say(format!("{order:?} is carried out"));
            // The world may have ended.
            let _ = done.send(());
        });
    }
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

async fn wait_until_removed(
    endpoints: &Endpoints,
    recorder: &Recorder,
    id: u64,
) -> Result<(), Status> {
    let mut said = None;
    loop {
        let mut client = AdminClient::new(endpoints.channel());
        let nodes = client.list_nodes(timed(ListNodesRequest {})).await?;
        let mut nodes = nodes.into_inner().nodes.into_iter();
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

/// Moves keys, one after another, until the load is over, and then ends what it began.
pub(in crate::nodes) async fn move_keys(
    nodes: Vec<Member>,
    recorder: Recorder,
    keys: Vec<Key>,
    every: Duration,
    mut chance: Chance,
    mut phase: watch::Receiver<Phase>,
) {
    let topic = TopicName::parse(TOPIC).expect("it follows the grammar");
    let begun = phase.wait_for(|phase| *phase >= Phase::Load).await;
    begun.expect("the simulation holds the sender");
    while *phase.borrow() == Phase::Load {
        sleep(chance.between(Duration::ZERO, 2 * every)).await;
        let key = &keys[chance.below(keys.len() as u64) as usize];
        let place = chance.below(u64::MAX);
        let first = chance.below(nodes.len() as u64) as usize;
        recorder.event(What::Moving { key: key.clone() });
        let mut turn = nodes.iter().cycle().skip(first);
        let outcome = loop {
            let node = turn.next().expect("they go round");
            match node.mover().move_key(&topic, key, place).await {
                Some(outcome) => break outcome,
                None => sleep(AGAIN_AFTER).await,
            }
        };
        recorder.event(What::Moved { key: key.clone() });
        if outcome == Outcome::Moved {
            recorder.moved();
        }
    }
    recorder.ended_moving();
}
