//! Every bound has a name here, and its reason. Sizes are in bytes of UTF-8 or of encoded messages.
//!
//! "API" marks a documented limit of Pub/Sub v1 that clients and their tests rely on: the value
//! itself is accepted, one more is refused.

use std::time::Duration;

/// API: messages in one publish request.
pub const PUBLISH_MESSAGES_MAX: usize = 1_000;
/// API: one encoded publish request.
pub const PUBLISH_REQUEST_BYTES_MAX: usize = 10_000_000;
/// API: attributes of one message.
pub const ATTRIBUTES_MAX: usize = 100;
/// API: the key of an attribute.
pub const ATTRIBUTE_KEY_BYTES_MAX: usize = 256;
/// API: the value of an attribute.
pub const ATTRIBUTE_VALUE_BYTES_MAX: usize = 1_024;
/// API: an ordering key.
pub const ORDERING_KEY_BYTES_MAX: usize = 1_024;
/// API: one Acknowledge or ModifyAckDeadline request.
pub const ACK_REQUEST_BYTES_MAX: usize = 524_288;
/// 3,000 ids (what Node's client sends at most) fit into [`ACK_REQUEST_BYTES_MAX`].
pub const ACK_ID_BYTES_MAX: usize = 160;
/// Failed ids in the details of one status, before they become base64: the trailers then stay below
/// 8 KiB, where clients on grpc-core begin to refuse them; others refuse 16 KiB.
pub const ACK_FAILURES_BYTES_DEFAULT: usize = 5_000;
/// The same for Google's client for Node, which never sees trailers of 64 KiB.
pub const ACK_FAILURES_BYTES_NODE: usize = 45_000;
/// The same for Google's other clients: they take 4 MiB and more, and are to get 1 MB at most.
pub const ACK_FAILURES_BYTES_MAX: usize = 750_000;
/// What a gRPC request may weigh before it is decoded: the largest publish and its framing.
pub const GRPC_REQUEST_BYTES_MAX: usize = 11 * 1024 * 1024;

/// API: a resource id.
pub const RESOURCE_ID_BYTES_MIN: usize = 3;
/// API: a resource id.
pub const RESOURCE_ID_BYTES_MAX: usize = 255;
/// API: a filter.
pub const FILTER_BYTES_MAX: usize = 256;
/// API: labels of one resource.
pub const LABELS_MAX: usize = 64;
/// API: the key of a label, in characters; it has at least one.
pub const LABEL_KEY_CHARACTERS_MAX: usize = 63;
/// API: the value of a label, in characters.
pub const LABEL_VALUE_CHARACTERS_MAX: usize = 63;
/// API: topics of one project; also subscriptions of one project, and of one topic.
pub const RESOURCES_PER_PROJECT_MAX: usize = 10_000;
/// Names on one page of a list when the caller does not say.
pub const PAGE_SIZE_DEFAULT: usize = 100;
/// Names on one page of a list at most.
pub const PAGE_SIZE_MAX: usize = 1_000;

/// API: the ack deadline of a subscription or stream.
pub const ACK_DEADLINE_SECONDS_MIN: u32 = 10;
/// API: the ack deadline of a subscription, of a stream, and of ModifyAckDeadline.
pub const ACK_DEADLINE_SECONDS_MAX: u32 = 600;
/// API: what a subscription without an ack deadline gets.
pub const ACK_DEADLINE_SECONDS_DEFAULT: u32 = 10;
/// API: what an exactly-once subscription without an ack deadline gets.
pub const ACK_DEADLINE_SECONDS_DEFAULT_EXACTLY_ONCE: u32 = 60;
/// API: failed deliveries before a message is dead-lettered.
pub const DELIVERY_ATTEMPTS_MIN: u32 = 5;
/// API: failed deliveries before a message is dead-lettered.
pub const DELIVERY_ATTEMPTS_MAX: u32 = 100;
/// API: failed deliveries before a message is dead-lettered, when the policy does not say.
pub const DELIVERY_ATTEMPTS_DEFAULT: u32 = 5;
/// API: either back-off of a retry policy.
pub const BACKOFF_MAX: Duration = Duration::from_secs(600);
/// API: the minimum back-off of a retry policy that does not say.
pub const MINIMUM_BACKOFF_DEFAULT: Duration = Duration::from_secs(10);
/// API: how long messages may be kept, by a topic or a subscription.
pub const MESSAGE_RETENTION_MIN: Duration = Duration::from_secs(600);
/// API: how long messages may be kept, by a topic or a subscription.
pub const MESSAGE_RETENTION_MAX: Duration = Duration::from_secs(31 * 24 * 3_600);
/// API: how long an unacknowledged message is kept.
pub const MESSAGE_RETENTION_DEFAULT: Duration = Duration::from_secs(7 * 24 * 3_600);
/// API: how long an unused subscription must be let live at least.
pub const EXPIRATION_TTL_MIN: Duration = Duration::from_secs(24 * 3_600);
/// API: how long an unused subscription lives.
pub const EXPIRATION_TTL_DEFAULT: Duration = Duration::from_secs(31 * 24 * 3_600);

/// Messages of one Pull.
pub const PULL_MESSAGES_MAX: usize = 1_000;
/// How long a Pull with nothing to deliver is held before its empty answer.
pub const PULL_WAIT_MAX: Duration = Duration::from_secs(20);
/// How long before the caller's deadline an empty Pull is answered, so that the answer arrives.
pub const PULL_WAIT_MARGIN: Duration = Duration::from_secs(1);
/// One response with messages: some clients accept 4 MiB. A larger message travels alone.
pub const RESPONSE_BYTES_MAX: usize = 3_500_000;
/// Messages in one response.
pub const RESPONSE_MESSAGES_MAX: usize = 1_000;
/// A stream without limits of its own gets this many messages outstanding.
pub const OUTSTANDING_MESSAGES_MAX: u32 = 10_000;
/// A stream without limits of its own gets this many bytes outstanding.
pub const OUTSTANDING_BYTES_MAX: u64 = 50_000_000;
/// A stream that has sent nothing for this long is closed; clients send a heartbeat each 30 s.
pub const STREAM_IDLE_MAX: Duration = Duration::from_secs(120);
/// A stream is closed at this age, so that connections spread again.
pub const STREAM_AGE_MAX: Duration = Duration::from_secs(30 * 60);
/// A streamed delivery that was never extended is released this long after its stream ended: the
/// client has not confirmed that it arrived. Extended ones keep their lease.
pub const ENDED_SESSION_RELEASE: Duration = Duration::from_secs(5);

/// Ranges of acknowledged messages behind the unacknowledged head of a lane. A lane at the limit
/// sends nothing new.
pub const LANE_MARKS_MAX: usize = 1_000;
/// Records of how a lane was moved back. Beyond, the oldest two become one that refuses more: some
/// deliveries must then be repeated.
pub const LANE_REWINDS_MAX: usize = 16;
/// A repeated ack of a settled exactly-once message is OK for this long.
pub const SETTLED_KEPT: Duration = Duration::from_secs(600);
/// A drained strand that was idle for this long is released.
pub const STRAND_IDLE: Duration = Duration::from_secs(600);
/// A pin that was not written for this long is asked after: it goes if nothing of its key is stored.
pub const PIN_IDLE: Duration = STRAND_IDLE;
/// Strands of one shard that are sealed at once: each may be a question to a registry group, and
/// publishes of it wait. Others that could be released wait for their turn.
pub const SEALED_STRANDS_MAX: usize = 2_000;
/// Rows that the move of one key takes along: runs, and for each subscription what it has settled.
/// One command opens them all. A key with more is not moved.
pub const MOVE_ITEMS_MAX: usize = 10_000;
/// Payload bytes that the move of one key takes along: the key stands still while they travel.
pub const MOVE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Payload bytes, and rows, of one part of a copy on its way: more than one message only below it.
pub const MOVE_PART_BYTES: usize = 2 * 1024 * 1024;
/// Rows of one part of a copy.
pub const MOVE_PART_ITEMS: usize = 1_000;
/// Copies of keys on their way to one shard at once.
pub const STAGING_MAX: usize = 512;
const _: () = assert!(MOVING_KEYS_MAX <= STAGING_MAX);
/// Keys that one call of an operator moves: it says of each what became of it.
pub const MOVE_KEYS_MAX: usize = 1_000;
/// How many of them are on their way at once: each stands still meanwhile, and a shard takes no
/// more than [`STAGING_MAX`] copies.
pub const MOVING_KEYS_MAX: usize = 128;
/// Rows that one clean-up command touches: it must not hold up publishes.
pub const SWEEP_ROWS_MAX: usize = 1_000;
/// Keys that one command of a registry group names: about 30 kB in its log.
pub const REGISTRY_KEYS_MAX: usize = 1_000;
/// Payload bytes that one log entry gathers from waiting publishes.
pub const PROPOSAL_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Requests that one log entry gathers.
pub const PROPOSAL_REQUESTS_MAX: usize = 4_096;
/// Log entries of a shard on their way to the disks at once.
pub const PROPOSALS_IN_FLIGHT_MAX: usize = 16;
/// Payload bytes waiting to be proposed in one shard; beyond, publishes are RESOURCE_EXHAUSTED.
pub const SHARD_WAITING_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Requests waiting for the control group's leader on one node; beyond, the sender waits.
pub const CONTROL_WAITING_REQUESTS_MAX: usize = 1_024;
/// Payload bytes of publishes that wait in one shard until somebody knows who owns their key;
/// beyond, publishes are RESOURCE_EXHAUSTED. Apart from the others, which a registry group that
/// does not answer must not hold up.
pub const SHARD_HELD_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Publishes that so wait in one shard; beyond, they are RESOURCE_EXHAUSTED.
pub const SHARD_HELD_REQUESTS_MAX: usize = 16_384;
/// Publishes of one key that so wait: one hot key must leave room to the others.
pub const KEY_HELD_REQUESTS_MAX: usize = 1_000;
/// Subscriptions whose backlogs are among the metrics, the first by name: each is two series, and a
/// look at every shard that the node leads.
pub const METRIC_SUBSCRIPTIONS_MAX: usize = 1_000;
/// Publish requests that are looked at for one subscription in one shard; beyond, its metrics say
/// "at least".
pub const METRIC_RUNS_PER_BACKLOG_MAX: usize = 20_000;
/// The same for all of them together: a look takes a second at most, on a thread of its own.
pub const METRIC_RUNS_MAX: usize = 200_000;
/// Requests waiting in one shard; beyond, the sender waits.
pub const SHARD_WAITING_REQUESTS_MAX: usize = 65_536;

/// The name of a region, zone or node: it can be a host name.
pub const PLACE_NAME_BYTES_MAX: usize = 63;
/// Nodes of a cluster that are not removed: each holds a copy of the catalogue and hears of every
/// change of it. Beyond, a node is not let in.
pub const NODES_MAX: usize = 256;
/// Shards of one class that a region may have: each costs its nodes a Raft group.
pub const SHARDS_PER_REGION_MAX: u16 = 1_000;
/// Shards that a cluster may ever have: their numbers are never reused, and are part of every
/// message id.
pub const SHARDS_MAX: u16 = u16::MAX - 1;

/// A call whose caller sets no deadline is given up after this long.
pub const CALL_WAIT_MAX: Duration = Duration::from_secs(10);
/// How long before its caller's deadline a call is given up, so that the answer arrives.
pub const CALL_WAIT_MARGIN: Duration = Duration::from_millis(250);
/// Bytes of calls on their way to one other node, answered or not; beyond, callers wait.
pub const LINK_CALLS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Calls that wait to be sent to one other node; beyond, callers wait.
pub const LINK_CALLS_WAITING_MAX: usize = 16_384;
/// Bytes that one frame between nodes gathers from what waits.
pub const LINK_FRAME_BYTES: usize = 1024 * 1024;
/// One frame between nodes: what it gathers, and a last part, which is at most one session's grant
/// and the message that crosses it.
pub const LINK_FRAME_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Frames that wait for the transport. More than one keeps it busy.
pub const LINK_FRAMES_WAITING_MAX: usize = 4;
/// Keys of which a node remembers where they are pinned, if that is not where a new key would go.
pub const PIN_CACHE_MAX: usize = 65_536;
/// How often each end of a link gives a sign of life.
pub const LINK_BEAT_EVERY: Duration = Duration::from_millis(500);
/// A link on which nothing was heard for this long is broken: its calls are answered with unknown,
/// its sessions open themselves again elsewhere.
pub const LINK_SILENCE_MAX: Duration = Duration::from_secs(2);
