//! Which key each request has.
//!
//! As the official clients do, one request of a key is on its way at a time: otherwise nobody could
//! say in which order the key was published.

use rand::Rng;
use rand::rngs::SmallRng;
use tokio::sync::{Mutex, MutexGuard};

use super::options::Options;

/// The keys of a load.
pub(crate) enum Keys {
    /// Messages have none.
    Unkeyed,
    /// Each request has its own.
    Unique,
    /// So many, each with the sequence of its next message.
    Among {
        /// For each key the share of all requests that it or an earlier one has; empty if uniform.
        cumulative: Vec<f64>,
        /// Held while a request of the key is on its way.
        lanes: Vec<Mutex<u64>>,
    },
}

/// A key that was picked, and nobody else's until it is dropped.
pub(crate) struct Picked<'a> {
    /// Its number, where keys are numbered.
    pub(crate) index: u64,
    /// As it stands in messages.
    pub(crate) text: String,
    /// The sequence of its next message.
    pub(crate) next: Option<MutexGuard<'a, u64>>,
}

impl Keys {
    /// The keys that the options ask for.
    pub(crate) fn new(options: &Options) -> Self {
        if options.unique_keys {
            return Keys::Unique;
        }
        if options.keys == 0 {
            return Keys::Unkeyed;
        }
        let lanes = (0..options.keys).map(|_| Mutex::new(0)).collect();
        Keys::Among {
            cumulative: cumulative(options.keys, options.skew),
            lanes,
        }
    }

    /// Picks a key for request number `request`, and waits until no other request has it.
    pub(crate) async fn pick(&self, random: &mut SmallRng, request: u64) -> Picked<'_> {
        match self {
            Keys::Unkeyed => Picked {
                index: 0,
                text: String::new(),
                next: None,
            },
            Keys::Unique => Picked {
                index: 0,
                text: format!("unique-{request}"),
                next: None,
            },
            Keys::Among { cumulative, lanes } => {
                let index = draw(cumulative, lanes.len(), random);
                let next = Some(lanes[index].lock().await);
                Picked {
                    index: index as u64,
                    text: format!("key-{index}"),
                    next,
                }
            }
        }
    }
}

/// The shares of a Zipf distribution: key `n`, from 1, has a weight of `1 / n^exponent`.
fn cumulative(keys: usize, exponent: f64) -> Vec<f64> {
    if exponent == 0.0 {
        return Vec::new();
    }
    let mut sum = 0.0;
    let mut sums: Vec<_> = (1..=keys)
        .map(|number| {
            sum += (number as f64).powf(-exponent);
            sum
        })
        .collect();
    sums.iter_mut().for_each(|share| *share /= sum);
    sums
}

fn draw(cumulative: &[f64], keys: usize, random: &mut SmallRng) -> usize {
    if cumulative.is_empty() {
        return random.random_range(0..keys);
    }
    let point = random.random::<f64>();
    // The last share may fall short of 1 by rounding.
    cumulative
        .partition_point(|&share| share <= point)
        .min(keys - 1)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn counts(exponent: f64) -> [usize; 4] {
        let shares = cumulative(4, exponent);
        let mut random = SmallRng::seed_from_u64(1);
        let mut counts = [0; 4];
        for _ in 0..100_000 {
            counts[draw(&shares, 4, &mut random)] += 1;
        }
        counts
    }

    #[test]
    fn without_skew_all_keys_are_alike() {
        assert!(
            counts(0.0)
                .iter()
                .all(|count| (24_000..26_000).contains(count))
        );
    }

    #[test]
    fn an_exponent_of_one_halves_the_second_key() {
        // Of 1 + 1/2 + 1/3 + 1/4 = 25/12 the keys have 48, 24, 16 and 12 percent.
        let [first, second, third, fourth] = counts(1.0);
        assert!((47_000..49_000).contains(&first), "{first}");
        assert!((23_000..25_000).contains(&second), "{second}");
        assert!((15_000..17_000).contains(&third), "{third}");
        assert!((11_000..13_000).contains(&fourth), "{fourth}");
    }
}
