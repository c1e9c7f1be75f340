//! What happens to the cluster in the middle of a drill, and to which part of it.

use std::process::Command;

use tokio::task::spawn_blocking;

use super::Common;
use super::leader::Operators;
use crate::cli::access::Access;
use crate::cli::{Failure, Target};
use crate::demo::cluster::{Cluster, Which};
use crate::demo::plan::Plan;

/// What happens.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// Nodes are gone at once.
    Loss(Whom),
    /// They are asked to end, as by SIGTERM, and do so in good order.
    Drain(Whom),
    /// They stop where they are, and go on later as if no time had passed.
    Pause(Whom),
    /// All are asked to end, one after another; each is started again before the next one ends.
    RollingRestart,
}

/// To whom, without a name or with one.
#[derive(Clone, Debug)]
pub(super) enum Whom {
    Region(Option<String>),
    Node(Option<String>),
    /// The node that leads most of the load's keys when the time has come; who that is, the cluster
    /// says to operators.
    Leader(Box<Access>),
}

/// Where the drill plays.
pub(super) struct Stage {
    event: Event,
    /// Nobody yet where the leader is meant.
    target: Option<Which>,
    place: Place,
    endpoints: Vec<String>,
}

enum Place {
    /// Nothing is touched.
    Nowhere,
    /// A cluster that was started for the drill.
    Demo(Box<Cluster>),
    /// A cluster that somebody else runs, and the commands that cause and end the event.
    Hooks(String, Option<String>),
}

impl Event {
    fn name(&self) -> &'static str {
        match self {
            Event::Loss(Whom::Region(_)) => "region-loss",
            Event::Loss(Whom::Node(_)) => "node-loss",
            Event::Loss(Whom::Leader(_)) => "leader-loss",
            Event::Drain(Whom::Region(_)) => "region-drain",
            Event::Drain(Whom::Node(_)) => "node-drain",
            Event::Drain(Whom::Leader(_)) => "leader-drain",
            Event::Pause(Whom::Region(_)) => "region-pause",
            Event::Pause(Whom::Node(_)) => "node-pause",
            Event::Pause(Whom::Leader(_)) => "leader-pause",
            Event::RollingRestart => "rolling-restart",
        }
    }

    /// To whom it happens; all nodes if to nobody in particular.
    fn whom(&self) -> Option<&Whom> {
        match self {
            Event::Loss(whom) | Event::Drain(whom) | Event::Pause(whom) => Some(whom),
            Event::RollingRestart => None,
        }
    }

    /// The way to who knows whom it happens to, if that is found out when the time has come.
    fn asks(&self) -> Option<&Access> {
        match self.whom() {
            Some(Whom::Leader(access)) => Some(access),
            _ => None,
        }
    }
}

impl Whom {
    fn named(&self) -> Option<Which> {
        match self.clone() {
            Whom::Region(name) => name.map(Which::Region),
            Whom::Node(name) => name.map(Which::Node),
            Whom::Leader(_) => None,
        }
    }

    /// Who is meant in a demonstration cluster: by default the first.
    fn chosen_of(&self, plan: &Plan) -> Result<Option<Which>, Failure> {
        let known: Vec<&str> = match self {
            Whom::Region(_) => plan.regions().iter().map(|region| region.name).collect(),
            Whom::Node(_) => plan.nodes().map(|node| &node.name[..]).collect(),
            Whom::Leader(_) => return Ok(None),
        };
        let first = known[0].to_owned();
        let chosen = self.named().unwrap_or(match self {
            Whom::Region(_) => Which::Region(first),
            Whom::Node(_) | Whom::Leader(_) => Which::Node(first),
        });
        match known.contains(&name(&chosen)) {
            true => Ok(Some(chosen)),
            false => Err(Failure::Usage(format!(
                "the demonstration cluster has no \"{}\": it has {}",
                name(&chosen),
                known.join(", ")
            ))),
        }
    }
}

fn name(which: &Which) -> &str {
    match which {
        Which::Region(name) | Which::Node(name) => name,
        Which::All => "all nodes",
    }
}

impl Stage {
    /// Finds or builds the cluster.
    ///
    /// # Errors
    /// [`Failure`] when the event can't be caused there, or the demonstration does not start.
    pub(super) async fn prepare(
        event: Event,
        common: &Common,
        target: &Target,
    ) -> Result<Self, Failure> {
        let live = common.live && !common.dry_run;
        if common.demo {
            return Stage::of_demo(event, common, live).await;
        }
        let chosen = match event.whom() {
            None => Some(Which::All),
            Some(Whom::Leader(_)) => None,
            Some(whom) => Some(whom.named().ok_or_else(|| {
                Failure::Usage(
                    "say which: --region or --node, or --demo for a cluster to try".into(),
                )
            })?),
        };
        let place = match (&common.hook, live) {
            (Some(hook), true) => Place::Hooks(hook.clone(), common.undo_hook.clone()),
            (None, true) => {
                return Err(Failure::Usage(
                    "this cluster is not the drill's own: say with --hook which command causes \
                     the event, or use --demo"
                        .into(),
                ));
            }
            (_, false) => Place::Nowhere,
        };
        let endpoints = match common.endpoints.is_empty() {
            true => vec![target.endpoint.clone()],
            false => common.endpoints.clone(),
        };
        Ok(Stage {
            event,
            target: chosen,
            place,
            endpoints,
        })
    }

    async fn of_demo(event: Event, common: &Common, live: bool) -> Result<Self, Failure> {
        let plan = Plan::new(&common.plan)?;
        let target = match event.whom() {
            None => Some(Which::All),
            Some(whom) => whom.chosen_of(&plan)?,
        };
        // One of each region in turn, so that clients of neighbouring numbers use other regions.
        let endpoints = (0..usize::from(common.plan.nodes))
            .flat_map(|number| {
                plan.regions()
                    .iter()
                    .map(move |region| &region.nodes[number])
            })
            .map(|node| format!("127.0.0.1:{}", node.port))
            .collect();
        let place = match live {
            true => Place::Demo(Box::new(Cluster::start(plan).await?)),
            false => Place::Nowhere,
        };
        Ok(Stage {
            event,
            target,
            place,
            endpoints,
        })
    }

    /// The endpoints that clients may use.
    pub(super) fn endpoints(&self) -> &[String] {
        &self.endpoints
    }

    /// Whether what happens is planned: then clients should hardly notice.
    pub(super) fn is_planned(&self) -> bool {
        match self.event {
            Event::Drain(_) | Event::RollingRestart => true,
            Event::Loss(_) | Event::Pause(_) => false,
        }
    }

    /// What happens, in a few words.
    pub(super) fn describe(&self) -> String {
        let target = match &self.target {
            Some(target) => name(target),
            None => "the node that leads most of the load's keys",
        };
        format!("{} of {target}", self.event.name())
    }

    /// Finds out to whom it will happen, where that follows from the load.
    ///
    /// # Errors
    /// [`Failure`] when the cluster does not say who leads the keys of the topic.
    pub(super) async fn aim(&mut self, target: &Target, topic: &str) -> Result<(), Failure> {
        let Some(access) = self.event.asks() else {
            return Ok(());
        };
        let is_demo = matches!(self.place, Place::Demo(_));
        let operators = Operators {
            access,
            target,
            beside: is_demo.then_some(&self.endpoints[0]),
        };
        self.target = Some(Which::Node(operators.leader_of(topic).await?));
        Ok(())
    }

    /// Causes the event.
    ///
    /// # Errors
    /// [`Failure`] when it can't be caused.
    pub(super) async fn cause(&mut self) -> Result<(), Failure> {
        let Some(target) = &self.target else {
            return Ok(());
        };
        match &mut self.place {
            Place::Nowhere => Ok(()),
            Place::Demo(cluster) => match self.event {
                Event::Loss(_) => cluster.kill(target),
                Event::Pause(_) => cluster.pause(target),
                Event::Drain(_) => {
                    cluster.drain(target).await;
                    Ok(())
                }
                Event::RollingRestart => cluster.restart_each().await,
            },
            Place::Hooks(hook, _) => call(hook, &self.event, target).await,
        }
    }

    /// Ends the event, and waits until everything is back.
    ///
    /// # Errors
    /// [`Failure`] when it can't be ended.
    pub(super) async fn undo(&mut self) -> Result<(), Failure> {
        let Some(target) = &self.target else {
            return Ok(());
        };
        match &mut self.place {
            Place::Demo(cluster) => {
                match self.event {
                    Event::Pause(_) => cluster.resume(target)?,
                    _ => cluster.start_missing()?,
                }
                cluster.wait_until_ready().await
            }
            Place::Hooks(_, Some(undo)) => call(undo, &self.event, target).await,
            Place::Nowhere | Place::Hooks(_, None) => Ok(()),
        }
    }

    /// Stops what was started for the drill.
    pub(super) async fn close(self) {
        if let Place::Demo(cluster) = self.place {
            cluster.stop().await;
        }
    }
}

/// Runs an operator's command.
async fn call(hook: &str, event: &Event, target: &Which) -> Result<(), Failure> {
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(hook)
        .env("ORDERLY_DRILL_EVENT", event.name())
        .env("ORDERLY_DRILL_TARGET", name(target));
    let ended = spawn_blocking(move || command.status()).await;
    let status = ended.expect("waiting does not panic");
    let status = status.map_err(Failure::Runtime)?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::Check(format!(
            "the hook \"{hook}\" failed: {status}"
        ))),
    }
}
