//! The scenarios of the README.

mod admin;
mod delivery;
mod ordering;
mod restart;

use crate::Scenario;

/// Independent of each other, so they run at the same time.
pub const CONCURRENT: [(&str, Scenario); 11] = [
    ("create", |stage| Box::pin(admin::create(stage))),
    ("update", |stage| Box::pin(admin::update(stage))),
    ("delete", |stage| Box::pin(admin::delete(stage))),
    ("publish_ordered", |stage| {
        Box::pin(ordering::publish_ordered(stage))
    }),
    ("stream", |stage| Box::pin(ordering::stream(stage))),
    ("nack", |stage| Box::pin(ordering::nack(stage))),
    ("expiry", |stage| Box::pin(delivery::expiry(stage))),
    ("exactly_once", |stage| {
        Box::pin(delivery::exactly_once(stage))
    }),
    ("flow_control", |stage| {
        Box::pin(delivery::flow_control(stage))
    }),
    ("dead_letter", |stage| {
        Box::pin(delivery::dead_letter(stage))
    }),
    ("filter", |stage| Box::pin(delivery::filter(stage))),
];

/// These disturb every client of the server, so they run alone, at the end.
pub const DISRUPTIVE: [(&str, Scenario); 1] =
    [("restart", |stage| Box::pin(restart::restart(stage)))];
