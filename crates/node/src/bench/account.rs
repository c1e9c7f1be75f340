//! Which messages were confirmed, and which arrived: three bits for each.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The account of one run. Every message has a number.
#[derive(Default)]
pub(crate) struct Account {
    books: Mutex<Books>,
}

#[derive(Default)]
struct Books {
    confirmed: Bits,
    received: Bits,
    acknowledged: Bits,
    summary: Summary,
}

/// What the account says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Publishes answered OK.
    pub(crate) confirmed: u64,
    /// Messages that arrived, each counted once.
    pub(crate) received: u64,
    /// Confirmed and not received.
    pub(crate) missing: u64,
    /// Deliveries of what had been received already.
    pub(crate) repeated: u64,
    /// Those of them whose ack had been answered OK.
    pub(crate) repeated_after_ack: u64,
}

impl Account {
    /// The publish of these messages was answered OK.
    pub(crate) fn confirm(&self, numbers: impl Iterator<Item = u64>) {
        let books = &mut *self.books();
        for number in numbers {
            books.confirmed.set(number);
            books.summary.confirmed += 1;
            books.summary.missing += u64::from(!books.received.has(number));
        }
    }

    /// These messages arrived; returns how many of them did so for the first time.
    pub(crate) fn receive(&self, numbers: impl Iterator<Item = u64>) -> u64 {
        let books = &mut *self.books();
        let before = books.summary.received;
        for number in numbers {
            if books.received.set(number) {
                books.summary.received += 1;
                books.summary.missing -= u64::from(books.confirmed.has(number));
            } else {
                books.summary.repeated += 1;
                books.summary.repeated_after_ack += u64::from(books.acknowledged.has(number));
            }
        }
        books.summary.received - before
    }

    /// The acks of these messages were answered OK.
    pub(crate) fn acknowledge(&self, numbers: &[u64]) {
        let books = &mut *self.books();
        for &number in numbers {
            books.acknowledged.set(number);
        }
    }

    /// What the account says now.
    pub(crate) fn summary(&self) -> Summary {
        self.books().summary
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A set of small numbers.
#[derive(Default)]
struct Bits(Vec<u64>);

impl Bits {
    /// Adds a number; whether it was new.
    fn set(&mut self, number: u64) -> bool {
        let (word, bit) = place(number);
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }

    fn has(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.0.get(word).is_some_and(|bits| bits & bit != 0)
    }
}

fn place(number: u64) -> (usize, u64) {
    ((number / 64) as usize, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confirmed_message_is_missing_until_it_arrives() {
        let account = Account::default();
        account.confirm(0..100);
        assert_eq!(account.receive(0..99), 99);
        assert_eq!(account.summary().missing, 1);
        assert_eq!(account.receive(99..100), 1);
        assert_eq!(account.summary().missing, 0);
    }

    #[test]
    fn a_message_may_arrive_before_its_publish_is_answered() {
        let account = Account::default();
        account.receive(70..71);
        account.confirm(70..71);
        let expected = Summary {
            confirmed: 1,
            received: 1,
            ..Summary::default()
        };
        assert_eq!(account.summary(), expected);
    }

    #[test]
    fn a_message_that_comes_again_is_worse_after_its_ack() {
        let account = Account::default();
        account.receive(0..2);
        account.acknowledge(&[0]);
        assert_eq!(account.receive(0..2), 0);
        let summary = account.summary();
        assert_eq!((summary.repeated, summary.repeated_after_ack), (2, 1));
    }
}
