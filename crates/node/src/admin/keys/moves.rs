//! Keys are pinned where an operator wants them, and moved there, many at once.

use std::sync::Arc;
use std::time::Duration;

use engine::dispatch::MoveReply;
use engine::registry::Pin;
use engine::route::Spread;
use engine::table::strand::StrandKey;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use model::limits::{MOVE_BYTES_MAX, MOVE_ITEMS_MAX, MOVE_KEYS_MAX, MOVING_KEYS_MAX};
use proto::admin;
use proto::admin::key_move::Outcome;
use replica::{ControlClient, Shards};
use thiserror::Error;
use tokio::time::{Instant, sleep, timeout_at};
use tonic::{Code, Status};

use super::place::Destination;
use crate::admin::refusal::Refusal;

/// What becomes of keys, one after another as they are done.
pub(in crate::admin) type KeyMoves = BoxStream<'static, Result<admin::KeyMove, Status>>;

/// How long a call may take that does not say so.
const TIME_DEFAULT: Duration = Duration::from_secs(60);
/// How long any call may take.
const TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// The pause before a key is looked at again that could not be moved; each later one is twice as
/// long.
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// The longest of these pauses.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Pins a key that is not pinned yet.
pub(in crate::admin) async fn pin(
    control: &ControlClient,
    shards: &Shards,
    request: &admin::PinKeyRequest,
) -> Result<admin::Key, Refusal> {
    let place = request.place.as_ref();
    let destination = Destination::read(control, &request.topic, place).await?;
    let key = destination.key(&request.ordering_key)?;
    if let Some(pin) = shards.pin(key).await? {
        return Err(is_pinned(&destination, request, &key, &pin));
    }
    let to = destination.places.choose(Spread::Key(key.strand));
    let pin = shards.pin_to(key, to).await?;
    match pin.shard == to {
        true => Ok(destination.catalogue.message(&key, &pin)),
        // Somebody published to it just now.
        false => Err(is_pinned(&destination, request, &key, &pin)),
    }
}

fn is_pinned(
    destination: &Destination,
    request: &admin::PinKeyRequest,
    key: &StrandKey,
    pin: &Pin,
) -> Refusal {
    let found = destination.catalogue.message(key, pin);
    let (topic, name) = (&request.topic, &request.ordering_key);
    let next = match (&request.place, destination.places.has(pin.shard)) {
        (Some(place), false) if place.region.is_empty() => format!(
            "\"orderly keys move {topic} {name} --to-shard {}\" moves it",
            place.shard
        ),
        (Some(place), false) => format!(
            "\"orderly keys move {topic} {name} --to-region {}\" moves it",
            place.region
        ),
        _ => "it is where it should be".to_owned(),
    };
    Refusal::Pinned(format!(
        "key \"{name}\" is pinned already, to {} in region \"{}\": {next}",
        found.shard, found.region
    ))
}

/// Moves keys, and says of each what became of it.
pub(in crate::admin) async fn move_all(
    control: &ControlClient,
    shards: &Shards,
    request: &admin::MoveKeysRequest,
) -> Result<KeyMoves, Refusal> {
    let began = Instant::now();
    let count = request.ordering_keys.len() + request.hashes.len();
    if !(1..=MOVE_KEYS_MAX).contains(&count) {
        return Err(Refusal::Invalid(format!(
            "one call moves 1 to {MOVE_KEYS_MAX} keys, not {count}"
        )));
    }
    let place = request.place.as_ref();
    let destination = Destination::read(control, &request.topic, place).await?;
    let named = request.ordering_keys.iter();
    let named = named.map(|name| destination.key(name));
    let hashed = request.hashes.iter();
    let hashed = hashed.map(|hash| destination.key_of_hash(hash));
    let keys = named.chain(hashed).collect::<Result<Vec<_>, _>>()?;
    let time = match request.timeout_ms {
        0 => TIME_DEFAULT,
        time => Duration::from_millis(time).min(TIME_MAX),
    };
    let mover = Arc::new(Mover {
        shards: shards.clone(),
        destination,
        give_up: began + time,
    });
    let moves = stream::iter((0..).zip(keys)).map(move |(number, key)| {
        let mover = mover.clone();
        async move { Ok(mover.answer(number, key).await) }
    });
    Ok(moves.buffer_unordered(MOVING_KEYS_MAX).boxed())
}

/// Why a key was not moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
enum NotMoved {
    /// *Refused*: it has too large a backlog.
    #[error(
        "it has more unacknowledged messages than a move takes along ({} MiB, {MOVE_ITEMS_MAX} \
         publish requests): let its subscribers catch up, and move it then",
        MOVE_BYTES_MAX >> 20
    )]
    TooLarge,
    /// *Refused*: others took all the time.
    #[error("its turn did not come in time: say a longer --timeout")]
    NoTime,
    /// *Unknown*.
    #[error("it is not there in time, and may come there yet: {0}")]
    Late(Trouble),
}

/// What a move waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
enum Trouble {
    #[error("the registry group that knows where it is does not answer")]
    Registry,
    #[error("the shard that has it does not answer")]
    Owner,
    #[error("its copy took too long on its way, so that it was left where it was")]
    Undone,
    #[error("it is being released, or moved by somebody else")]
    Busy,
}

/// A key is where it should be.
struct Done {
    outcome: Outcome,
    pin: Pin,
    /// How long the move took, if there was one.
    took: Duration,
}

/// How far a key has come.
enum Step {
    Done(Outcome, Pin),
    Moved,
    Never(NotMoved),
    Again(Trouble),
}

struct Mover {
    shards: Shards,
    destination: Destination,
    give_up: Instant,
}

impl Mover {
    async fn answer(&self, number: u32, key: StrandKey) -> admin::KeyMove {
        match self.carry(key).await {
            Ok(done) => admin::KeyMove {
                number,
                outcome: done.outcome.into(),
                key: Some(self.destination.catalogue.message(&key, &done.pin)),
                took_us: u64::try_from(done.took.as_micros()).unwrap_or(u64::MAX),
                ..admin::KeyMove::default()
            },
            Err(why) => admin::KeyMove {
                number,
                outcome: Outcome::NotMoved.into(),
                code: why.code().into(),
                error: why.to_string(),
                ..admin::KeyMove::default()
            },
        }
    }

    /// Moves a key until it is where it should be, or the time is over.
    async fn carry(&self, key: StrandKey) -> Result<Done, NotMoved> {
        let began = Instant::now();
        if began >= self.give_up {
            return Err(NotMoved::NoTime);
        }
        let mut waits_for = Trouble::Registry;
        let attempts = async {
            let mut pause = PAUSE_MIN;
            let mut is_tried = false;
            let mut moved_after = None;
            loop {
                match self.step(key).await {
                    // Whoever has moved it: it was elsewhere.
                    Step::Done(_, pin) if is_tried => {
                        return Ok(Done {
                            outcome: Outcome::Moved,
                            pin,
                            took: moved_after.unwrap_or_else(|| began.elapsed()),
                        });
                    }
                    Step::Done(outcome, pin) => {
                        let took = Duration::ZERO;
                        return Ok(Done { outcome, pin, took });
                    }
                    Step::Never(why) => return Err(why),
                    // Whether it is there is looked at once more: somebody else may move it too.
                    Step::Moved => {
                        is_tried = true;
                        moved_after = Some(began.elapsed());
                    }
                    Step::Again(trouble) => {
                        // It was elsewhere, and may be on its way now: an answer may be lost, and
                        // a pin of which nothing is stored only goes when a move asks for it.
                        is_tried |= trouble != Trouble::Registry;
                        waits_for = trouble;
                        sleep(pause).await;
                        pause = (pause * 2).min(PAUSE_MAX);
                    }
                }
            }
        };
        match timeout_at(self.give_up, attempts).await {
            Ok(carried) => carried,
            Err(_) => Err(NotMoved::Late(waits_for)),
        }
    }

    async fn step(&self, key: StrandKey) -> Step {
        let places = &self.destination.places;
        let to = places.choose(Spread::Key(key.strand));
        let pin = match self.shards.pin(key).await {
            Err(_) => return Step::Again(Trouble::Registry),
            Ok(Some(pin)) => pin,
            Ok(None) => match self.shards.pin_to(key, to).await {
                Ok(pin) if places.has(pin.shard) => return Step::Done(Outcome::Pinned, pin),
                Ok(pin) => pin,
                Err(_) => return Step::Again(Trouble::Registry),
            },
        };
        if places.has(pin.shard) {
            return Step::Done(Outcome::AlreadyThere, pin);
        }
        // A shard that is new to this node's catalogue will be known in a moment.
        let Some(owner) = self.shards.client(pin.shard) else {
            return Step::Again(Trouble::Owner);
        };
        match owner.move_key(key, to, Some(self.give_up)).await {
            Ok(MoveReply::Moved) => Step::Moved,
            Ok(MoveReply::TooLarge) => Step::Never(NotMoved::TooLarge),
            Ok(MoveReply::Undone) => Step::Again(Trouble::Undone),
            Ok(MoveReply::NotHere) => Step::Again(Trouble::Busy),
            Err(_) => Step::Again(Trouble::Owner),
        }
    }
}

impl NotMoved {
    fn code(self) -> Code {
        match self {
            NotMoved::TooLarge => Code::FailedPrecondition,
            NotMoved::NoTime | NotMoved::Late(_) => Code::DeadlineExceeded,
        }
    }
}
