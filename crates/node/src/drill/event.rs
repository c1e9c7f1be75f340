//! What happens to the cluster in the middle of a drill, and to which part of it.

use super::Common;
use super::hooks::Hooks;
use super::operators::Operators;
use super::tell;
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
    Leader,
}

/// Where the drill plays.
pub(super) struct Stage {
    event: Event,
    /// Nobody yet where the leader is meant.
    target: Option<Which>,
    place: Place,
    endpoints: Vec<String>,
    access: Access,
    /// Whether it has happened, or may have, and is not over.
    happens: bool,
}

enum Place {
    /// Nothing is touched.
    Nowhere,
    /// A cluster that was started for the drill.
    Demo(Box<Cluster>),
    /// A cluster that somebody else runs, and the commands that cause and end the event.
    Hooks(Hooks),
}

impl Event {
    /// What a hook and a verdict call it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Event::Loss(Whom::Region(_)) => "region-loss",
            Event::Loss(Whom::Node(_)) => "node-loss",
            Event::Loss(Whom::Leader) => "leader-loss",
            Event::Drain(Whom::Region(_)) => "region-drain",
            Event::Drain(Whom::Node(_)) => "node-drain",
            Event::Drain(Whom::Leader) => "leader-drain",
            Event::Pause(Whom::Region(_)) => "region-pause",
            Event::Pause(Whom::Node(_)) => "node-pause",
            Event::Pause(Whom::Leader) => "leader-pause",
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
}

impl Whom {
    fn named(&self) -> Option<Which> {
        match self.clone() {
            Whom::Region(name) => name.map(Which::Region),
            Whom::Node(name) => name.map(Which::Node),
            Whom::Leader => None,
        }
    }

    /// Who is meant in a demonstration cluster: by default the first.
    fn chosen_of(&self, plan: &Plan) -> Result<Option<Which>, Failure> {
        let known: Vec<&str> = match self {
            Whom::Region(_) => plan.regions().iter().map(|region| region.name).collect(),
            Whom::Node(_) => plan.nodes().map(|node| &node.name[..]).collect(),
            Whom::Leader => return Ok(None),
        };
        let first = known[0].to_owned();
        let chosen = self.named().unwrap_or(match self {
            Whom::Region(_) => Which::Region(first),
            Whom::Node(_) | Whom::Leader => Which::Node(first),
        });
        match known.contains(&chosen.name()) {
            true => Ok(Some(chosen)),
            false => Err(Failure::Usage(format!(
                "the demonstration cluster has no \"{}\": it has {}",
                chosen.name(),
                known.join(", ")
            ))),
        }
    }
}

impl Stage {
    /// Finds the cluster, or plans it.
    ///
    /// # Errors
    /// [`Failure`] when the event can't be caused there.
    pub(super) async fn prepare(
        event: Event,
        common: &Common,
        target: &Target,
        access: &Access,
    ) -> Result<Self, Failure> {
        if common.demo {
            return Stage::of_demo(event, common, access);
        }
        let chosen = match event.whom() {
            None => Some(Which::All),
            Some(Whom::Leader) => None,
            Some(whom) => Some(whom.named().ok_or_else(|| {
                Failure::Usage(
                    "say which: --region or --node, or --demo for a cluster to try".into(),
                )
            })?),
        };
        let place = match (&common.hook, common.is_live()) {
            (Some(hook), _) => Place::Hooks(Hooks::new(hook.clone(), common.undo_hook.clone())),
            (None, true) => {
                return Err(Failure::Usage(
                    "this cluster is not the drill's own: say with --hook which command causes \
                     the event, or use --demo"
                        .into(),
                ));
            }
            (None, false) => Place::Nowhere,
        };
        let endpoints = match common.endpoints.is_empty() {
            true => vec![target.endpoint.clone()],
            false => common.endpoints.clone(),
        };
        if let Some(chosen) = &chosen {
            let operators = Operators {
                access,
                target,
                endpoints: &endpoints,
            };
            operators.know(chosen).await?;
        }
        Ok(Stage {
            event,
            target: chosen,
            place,
            endpoints,
            access: access.clone(),
            happens: false,
        })
    }

    fn of_demo(event: Event, common: &Common, access: &Access) -> Result<Self, Failure> {
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
        Ok(Stage {
            event,
            target,
            place: Place::Demo(Box::new(Cluster::new(plan))),
            endpoints,
            access: access.clone(),
            happens: false,
        })
    }

    /// Starts the cluster, if it is the drill's own.
    ///
    /// # Errors
    /// [`Failure`] when it does not start.
    pub(super) async fn open(&mut self) -> Result<(), Failure> {
        match &mut self.place {
            Place::Demo(cluster) => cluster.start().await,
            Place::Nowhere | Place::Hooks(_) => Ok(()),
        }
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
        format!("{} of {}", self.event.name(), self.whom())
    }

    /// What happens, in a word.
    pub(super) fn event(&self) -> &'static str {
        self.event.name()
    }

    /// To whom it happens.
    pub(super) fn whom(&self) -> &str {
        match &self.target {
            Some(target) => target.name(),
            None => "the node that leads most of the load's keys",
        }
    }

    /// Whether the cluster, with all that was done to it, goes with the drill.
    pub(super) fn goes(&self) -> bool {
        match &self.place {
            Place::Demo(cluster) => cluster.plan().is_temporary(),
            Place::Nowhere | Place::Hooks(_) => false,
        }
    }

    /// Finds out to whom it will happen, where that follows from the load.
    ///
    /// # Errors
    /// [`Failure`] when the cluster does not say who leads the keys of the topic.
    pub(super) async fn aim(&mut self, target: &Target, topic: &str) -> Result<(), Failure> {
        if !matches!(self.event.whom(), Some(Whom::Leader)) {
            return Ok(());
        }
        let operators = Operators {
            access: &self.access,
            target,
            endpoints: &self.endpoints,
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
        self.happens = true;
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
            Place::Hooks(hooks) => hooks.cause(self.event.name(), target.name()).await,
        }
    }

    /// Ends the event if it has been caused, and waits until everything is back.
    ///
    /// # Errors
    /// [`Failure`] when it can't be ended.
    pub(super) async fn undo(&mut self) -> Result<(), Failure> {
        let (Some(target), true) = (&self.target, self.happens) else {
            return Ok(());
        };
        match &mut self.place {
            Place::Demo(cluster) => {
                match self.event {
                    Event::Pause(_) => cluster.resume(target)?,
                    _ => cluster.start_missing()?,
                }
                cluster.wait_until_ready().await?;
            }
            Place::Hooks(hooks) => hooks.undo(self.event.name(), target.name()).await?,
            Place::Nowhere => {}
        }
        self.happens = false;
        tell(match &self.place {
            Place::Hooks(hooks) if hooks.undoing().is_none() => {
                "there is no --undo-hook: what --hook did is not undone by the drill"
            }
            _ => "everything is back",
        });
        Ok(())
    }

    /// What a person has to do where the event has been caused, and could not be ended.
    pub(super) fn left(&self) -> Option<String> {
        let what = self.describe();
        self.happens.then(|| match &self.place {
            Place::Hooks(hooks) => format!(
                "the {what} is not over: end it by hand, with ORDERLY_DRILL_EVENT={} \
                 ORDERLY_DRILL_TARGET={} as --undo-hook would: {}",
                self.event.name(),
                self.whom(),
                hooks.undoing().unwrap_or("there is none"),
            ),
            Place::Demo(_) | Place::Nowhere => format!("the {what} is not over"),
        })
    }

    /// Stops what was started for the drill, and passes on how the drill has ended.
    ///
    /// # Errors
    /// The failure that was given.
    pub(super) async fn close<T>(self, ended: Result<T, Failure>) -> Result<T, Failure> {
        match self.place {
            Place::Demo(cluster) => cluster.end(ended).await,
            Place::Nowhere | Place::Hooks(_) => ended,
        }
    }
}
