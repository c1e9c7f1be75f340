//! What a drill would do, for who looks before.

use serde_json::{Value, json};

use super::Common;
use super::event::Stage;
use crate::cli::output::Show;

/// What would be done.
pub(super) struct Plan {
    event: &'static str,
    whom: String,
    what: String,
    endpoints: Vec<String>,
    common: Common,
}

impl Plan {
    pub(super) fn of(stage: &Stage, common: &Common) -> Self {
        Plan {
            event: stage.event(),
            whom: stage.whom().to_owned(),
            what: stage.describe(),
            endpoints: stage.endpoints().to_vec(),
            common: common.clone(),
        }
    }

    /// In sentences.
    pub(super) fn text(&self) -> String {
        let steps = self.steps().join("\n");
        format!("{steps}\nNothing was done: add --live to do it.")
    }

    fn steps(&self) -> Vec<String> {
        let Common {
            demo,
            hook,
            undo_hook,
            before,
            after,
            keys,
            rate,
            repeat,
            ..
        } = &self.common;
        let what = &self.what;
        let cause = hook
            .as_ref()
            .map_or(String::new(), |it| format!(", with: {it}"));
        let undo = undo_hook
            .as_ref()
            .map_or(String::new(), |it| format!(", with: {it}"));
        let mut steps = Vec::new();
        if *demo {
            steps.push("start a demonstration cluster".to_owned());
        }
        steps.extend([
            "create a topic and two ordered subscriptions, one of them exactly-once".to_owned(),
            format!(
                "publish to {keys} keys, up to {rate} messages a second each, and consume, through {}",
                self.endpoints.join(", ")
            ),
            format!("after {before} s: {what}{cause}"),
            format!("{after} s later: undo it{undo}, and wait until everything is delivered"),
            "delete the topic and the subscriptions".to_owned(),
        ]);
        if *repeat > 1 {
            steps.push(format!("all but the start of a cluster {repeat} times"));
        }
        steps.push(
            "say what was lost, out of order or repeated, and how long the service was away"
                .to_owned(),
        );
        steps
    }
}

impl Show for Plan {
    const COLUMNS: &'static [&'static str] = &["DRILL", "STEPS"];

    fn cells(&self) -> Vec<String> {
        vec![self.what.clone(), self.steps().join("; ")]
    }

    fn json(&self) -> Value {
        let Common {
            demo,
            hook,
            undo_hook,
            before,
            after,
            keys,
            rate,
            repeat,
            ..
        } = &self.common;
        json!({
            "drill": self.what,
            "event": self.event,
            "target": self.whom,
            "live": false,
            "demo": demo,
            "hook": hook,
            "undo_hook": undo_hook,
            "endpoints": self.endpoints,
            "keys": keys,
            "rate": rate,
            "before_s": before,
            "after_s": after,
            "rounds": repeat,
            "steps": self.steps(),
        })
    }
}
