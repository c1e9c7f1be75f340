//! The page `/metrics`, in the text format of Prometheus: every name, its unit and its meaning.
//!
//! A few lines of text need no library of metrics with registries of its own. Names and labels of
//! projects and subscriptions have no character that the format would have to escape.

use std::fmt::{Display, Write};
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use model::GroupId;
use replica::metrics::{BacklogFigures, Figures, Metrics, SyncTimes};
use tokio::sync::Mutex;

/// What Prometheus is told that it gets.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Who looks. One look at a time: each reads the disk.
#[derive(Clone)]
pub(crate) struct Watch(Arc<Mutex<Metrics>>);

impl Watch {
    pub(crate) fn new(metrics: Metrics) -> Self {
        Watch(Arc::new(Mutex::new(metrics)))
    }
}

/// Answers `GET /metrics`.
pub(crate) async fn page(State(watch): State<Watch>) -> axum::response::Response {
    let metrics = watch.0.lock().await;
    let looking = metrics.clone();
    let figures = tokio::task::spawn_blocking(move || looking.figures()).await;
    match figures.expect("looking does not panic") {
        Ok(figures) => ([("content-type", FORMAT)], text(&figures)).into_response(),
        Err(fault) => {
            let text = format!("the state can't be read: {fault}\n");
            (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
        }
    }
}

/// All metrics of a node.
fn text(figures: &Figures) -> String {
    let mut page = Page(String::with_capacity(4_096));
    page.backlogs(figures);
    let counters: [(&str, &str, u64); 4] = [
        (
            "orderly_publishes_total",
            "Publish requests stored by leaders on this node.",
            figures.published,
        ),
        (
            "orderly_deliveries_total",
            "Messages sent to sessions by leaders on this node, redeliveries included.",
            figures.delivered,
        ),
        (
            "orderly_acks_total",
            "Acks made durable by leaders on this node.",
            figures.acknowledged,
        ),
        (
            "orderly_leaderships_total",
            "Leaderships of shards that began on this node.",
            figures.leaderships,
        ),
    ];
    for (name, meaning, value) in counters {
        page.one(name, "counter", meaning, value);
    }
    page.groups(&figures.led);
    let lease = figures.catalogue_lease.as_secs_f64();
    let meaning = "Seconds that this node may serve without hearing of the control group.";
    page.one("orderly_catalogue_lease_seconds", "gauge", meaning, lease);
    if let Some(free) = figures.disk_free {
        let meaning = "Bytes that the disk of this node can still take.";
        page.one("orderly_disk_free_bytes", "gauge", meaning, free);
    }
    page.syncs(&figures.syncs);
    page.0
}

/// The page as far as it is written.
struct Page(String);

impl Page {
    fn backlogs(&mut self, figures: &Figures) {
        let of_each = |page: &mut Page, name: &str, value: &dyn Fn(&BacklogFigures) -> f64| {
            for (subscription, backlog) in &figures.backlogs {
                let (project, id) = (subscription.project(), subscription.id());
                let project = project.as_str();
                let labels = format!("project=\"{project}\",subscription=\"{id}\"");
                page.sample(&format!("{name}{{{labels}}}"), value(backlog));
            }
        };
        let name = "orderly_subscription_backlog_messages";
        let meaning = "Messages not acknowledged, on shards led by this node: sum over the nodes. \
                       Counted up to a limit, see orderly_backlogs_partial.";
        self.head(name, "gauge", meaning);
        of_each(self, name, &|backlog| backlog.messages as f64);
        let name = "orderly_subscription_oldest_unacked_seconds";
        let meaning = "Age of the oldest message not acknowledged, on shards led by this node: \
                       maximum over the nodes.";
        self.head(name, "gauge", meaning);
        of_each(self, name, &|backlog| backlog.oldest.as_secs_f64());
        let partial = figures.backlogs.values().filter(|it| it.is_partial);
        let meaning = "Subscriptions with so large a backlog that it was not counted to its end.";
        let partial = partial.count();
        self.one("orderly_backlogs_partial", "gauge", meaning, partial);
        let meaning = "Subscriptions without backlog metrics, because there are too many.";
        let left_out = figures.left_out;
        self.one("orderly_backlogs_left_out", "gauge", meaning, left_out);
    }

    fn groups(&mut self, led: &[GroupId]) {
        let name = "orderly_groups_led";
        self.head(
            name,
            "gauge",
            "Raft groups led by this node; none while it has no catalogue lease.",
        );
        let kind = |group: &GroupId| match group {
            GroupId::Control => "control",
            GroupId::Registry(_) => "registry",
            GroupId::Shard(_) => "shard",
        };
        for wanted in ["control", "registry", "shard"] {
            let count = led.iter().filter(|group| kind(group) == wanted).count();
            self.sample(&format!("{name}{{kind=\"{wanted}\"}}"), count);
        }
    }

    fn syncs(&mut self, syncs: &SyncTimes) {
        let name = "orderly_sync_seconds";
        let meaning = "How long the disk took to make a batch of writes durable.";
        self.head(name, "histogram", meaning);
        for (bound, count) in syncs.within {
            let bound = bound.as_secs_f64();
            self.sample(&format!("{name}_bucket{{le=\"{bound}\"}}"), count);
        }
        self.sample(&format!("{name}_bucket{{le=\"+Inf\"}}"), syncs.count);
        self.sample(&format!("{name}_sum"), syncs.sum.as_secs_f64());
        self.sample(&format!("{name}_count"), syncs.count);
    }

    fn one(&mut self, name: &str, kind: &str, meaning: &str, value: impl Display) {
        self.head(name, kind, meaning);
        self.sample(name, value);
    }

    fn head(&mut self, name: &str, kind: &str, meaning: &str) {
        let lines = writeln!(self.0, "# HELP {name} {meaning}\n# TYPE {name} {kind}");
        lines.expect("a string takes everything");
    }

    fn sample(&mut self, series: &str, value: impl Display) {
        writeln!(self.0, "{series} {value}").expect("a string takes everything");
    }
}
