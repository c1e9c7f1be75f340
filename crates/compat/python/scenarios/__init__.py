"""The scenarios of the README, each a function that takes a stage and raises if a promise is broken."""

from scenarios import admin, delivery, ordering, restart

CONCURRENT = {
    "create": admin.create,
    "update": admin.update,
    "delete": admin.delete,
    "publish_ordered": ordering.publish_ordered,
    "stream": ordering.stream,
    "nack": ordering.nack,
    "expiry": delivery.expiry,
    "exactly_once": delivery.exactly_once,
    "flow_control": delivery.flow_control,
    "dead_letter": delivery.dead_letter,
    "filter": delivery.filter_,
}
"""Independent of each other, so they run at the same time."""

DISRUPTIVE = {"restart": restart.restart}
"""These disturb every client of the server, so they run alone, at the end."""
