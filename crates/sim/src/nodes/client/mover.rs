//! Moves keys, one after another, or several at once by the call of operators.

use std::time::Duration;

use model::TopicName;
use proto::admin::admin_client::AdminClient;
use proto::admin::key_move;
use proto::admin::{KeyPlace, MoveKeysRequest};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tonic::{Code, Request, Status};

use super::{AGAIN_AFTER, Endpoints, Phase, TOPIC};
use crate::chance::Chance;
use crate::history::{Key, What};
use crate::nodes::member::Member;
use crate::nodes::moves::Outcome;
use crate::nodes::recorder::Recorder;

/// Keys of one call at most.
const TOGETHER_MAX: u64 = 4;
/// How long one call tries.
const CALL_MAX: Duration = Duration::from_secs(5);

/// Moves keys.
pub(in crate::nodes) struct Mover {
    /// The nodes that are there from the beginning, and where operators reach them.
    pub(in crate::nodes) nodes: Vec<Member>,
    pub(in crate::nodes) endpoints: Endpoints,
    pub(in crate::nodes) recorder: Recorder,
    pub(in crate::nodes) keys: Vec<Key>,
    pub(in crate::nodes) regions: Vec<&'static str>,
    pub(in crate::nodes) every: Duration,
    /// Whether it moves them by the call of operators.
    pub(in crate::nodes) by_call: bool,
    pub(in crate::nodes) chance: Chance,
    pub(in crate::nodes) phase: watch::Receiver<Phase>,
}

impl Mover {
    /// Moves keys until the load is over, and then ends what it began.
    pub(in crate::nodes) async fn move_keys(mut self) {
        let begun = self.phase.wait_for(|phase| *phase >= Phase::Load).await;
        begun.expect("the simulation holds the sender");
        while *self.phase.borrow() == Phase::Load {
            sleep(self.chance.between(Duration::ZERO, 2 * self.every)).await;
            match self.by_call {
                true => self.move_some().await,
                false => self.move_one().await,
            }
        }
        self.recorder.ended_moving();
    }

    async fn move_one(&mut self) {
        let topic = TopicName::parse(TOPIC).expect("it follows the grammar");
        let key = self.keys[self.chance.below(self.keys.len() as u64) as usize].clone();
        let place = self.chance.below(u64::MAX);
        let first = self.chance.below(self.nodes.len() as u64) as usize;
        self.begins(&key);
        let mut turn = self.nodes.iter().cycle().skip(first);
        let outcome = loop {
            let node = turn.next().expect("they go round");
            match node.mover().move_key(&topic, &key, place).await {
                Some(outcome) => break outcome,
                None => sleep(AGAIN_AFTER).await,
            }
        };
        self.ends(&key, outcome);
    }

    /// Moves several keys to a region, and asks until each has come to an end.
    async fn move_some(&mut self) {
        self.chance.shuffle(&mut self.keys);
        let count = 1 + self.chance.below(TOGETHER_MAX) as usize;
        let mut keys: Vec<Key> = self.keys.iter().take(count).cloned().collect();
        let region = self.regions[self.chance.below(self.regions.len() as u64) as usize];
        keys.iter().for_each(|key| self.begins(key));
        while !keys.is_empty() {
            let asked = timeout(2 * CALL_MAX, self.ask(&mut keys, region)).await;
            if !matches!(asked, Ok(Ok(()))) {
                self.endpoints.next();
            }
            if !keys.is_empty() {
                sleep(AGAIN_AFTER).await;
            }
        }
    }

    /// Asks once, and takes out of the keys those that have come to an end.
    async fn ask(&self, keys: &mut Vec<Key>, region: &str) -> Result<(), Status> {
        let asked = keys.clone();
        let request = MoveKeysRequest {
            topic: TOPIC.to_owned(),
            ordering_keys: asked.iter().map(Key::to_string).collect(),
            place: Some(KeyPlace {
                region: region.to_owned(),
                ..KeyPlace::default()
            }),
            timeout_ms: CALL_MAX.as_millis() as u64,
            ..MoveKeysRequest::default()
        };
        let mut client = AdminClient::new(self.endpoints.channel());
        let moves = client.move_keys(Request::new(request)).await?;
        let mut moves = moves.into_inner();
        while let Some(moved) = moves.message().await? {
            let outcome = match moved.outcome() {
                key_move::Outcome::Moved => Outcome::Moved,
                // It may move yet.
                key_move::Outcome::NotMoved
                    if moved.code != i32::from(Code::FailedPrecondition) =>
                {
                    continue;
                }
                _ => Outcome::Stays,
            };
            let key = &asked[moved.number as usize];
            keys.retain(|other| other != key);
            self.ends(key, outcome);
        }
        Ok(())
    }

    fn begins(&self, key: &Key) {
        self.recorder.event(What::Moving { key: key.clone() });
    }

    fn ends(&self, key: &Key, outcome: Outcome) {
        self.recorder.event(What::Moved { key: key.clone() });
        if outcome == Outcome::Moved {
            self.recorder.moved();
        }
    }
}
