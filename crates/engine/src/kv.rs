//! What a state machine reads and writes: ordered rows of bytes.

pub mod memory;

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;
use model::run::RunPayload;

use crate::Fault;
use crate::table::run::PayloadAt;
use crate::table::{Row, RowKey, read_row, row_key, write_row};

/// A row on its way out of a scan: key and value.
pub type RawRow = (Vec<u8>, Bytes);

/// The state of one group on one replica, as of some applied entry.
pub trait View {
    /// The value of `key`.
    ///
    /// # Errors
    /// [`Fault`] when the state can't be read.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Fault>;

    /// The rows of `[from, to)` in key order.
    fn scan<'a>(
        &'a self,
        from: &[u8],
        to: &[u8],
    ) -> Box<dyn Iterator<Item = Result<RawRow, Fault>> + 'a>;

    /// The last row of `[from, at]`.
    ///
    /// # Errors
    /// [`Fault`] when the state can't be read.
    fn floor(&self, from: &[u8], at: &[u8]) -> Result<Option<RawRow>, Fault>;

    /// The messages of a run. They are stored beside the log, not in rows.
    ///
    /// # Errors
    /// [`Fault`] when the payload is missing or can't be read.
    fn payload(&self, at: PayloadAt) -> Result<RunPayload, Fault>;
}

/// Typed reads over any [`View`].
pub trait ViewExt: View {
    /// The row of `key`, if there is one.
    ///
    /// # Errors
    /// [`Fault`] when it can't be read or does not decode.
    fn row<R: Row>(&self, key: &R::Key) -> Result<Option<R>, Fault> {
        let key = row_key::<R>(key);
        self.get(&key)?
            .map(|value| read_row(&key, &value))
            .transpose()
    }

    /// The rows of `[from, to)` of one table, in key order.
    fn rows<'a, R: Row + 'a>(
        &'a self,
        from: &R::Key,
        to: &R::Key,
    ) -> impl Iterator<Item = Result<(R::Key, R), Fault>> + use<'a, Self, R> {
        self.scan(&row_key::<R>(from), &row_key::<R>(to))
            .map(|found| typed::<R>(found?))
    }

    /// The last row of `[from, at]` of one table.
    ///
    /// # Errors
    /// [`Fault`] when it can't be read or does not decode.
    fn floor_row<R: Row>(&self, from: &R::Key, at: &R::Key) -> Result<Option<(R::Key, R)>, Fault> {
        self.floor(&row_key::<R>(from), &row_key::<R>(at))?
            .map(typed::<R>)
            .transpose()
    }
}

impl<V: View + ?Sized> ViewExt for V {}

fn typed<R: Row>((key, value): RawRow) -> Result<(R::Key, R), Fault> {
    let row = read_row(&key, &value)?;
    match R::Key::read(&key[1..]) {
        Some(typed) => Ok((typed, row)),
        None => Err(Fault::CorruptRow {
            table: R::TABLE,
            key,
        }),
    }
}

/// What [`Overlay`] collected: each key with its new value, or `None` where the row goes.
pub type Writes = BTreeMap<Vec<u8>, Option<Bytes>>;

/// Writes on top of a view, which reads see at once. Nothing reaches the view itself.
pub struct Overlay<'v> {
    view: &'v dyn View,
    writes: Writes,
}

impl<'v> Overlay<'v> {
    /// An overlay without writes.
    #[must_use]
    pub fn new(view: &'v dyn View) -> Self {
        Overlay {
            view,
            writes: Writes::new(),
        }
    }

    /// Writes a row.
    pub fn put<R: Row>(&mut self, key: &R::Key, row: &R) {
        self.writes.insert(row_key::<R>(key), Some(write_row(row)));
    }

    /// Removes a row, if it is there.
    pub fn delete<R: Row>(&mut self, key: &R::Key) {
        self.writes.insert(row_key::<R>(key), None);
    }

    /// The collected writes.
    #[must_use]
    pub fn into_writes(self) -> Writes {
        self.writes
    }
}

impl View for Overlay<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Fault> {
        match self.writes.get(key) {
            Some(written) => Ok(written.clone()),
            None => self.view.get(key),
        }
    }

    fn scan<'a>(
        &'a self,
        from: &[u8],
        to: &[u8],
    ) -> Box<dyn Iterator<Item = Result<RawRow, Fault>> + 'a> {
        if from >= to {
            return Box::new(std::iter::empty());
        }
        let bounds = (Bound::Included(from), Bound::Excluded(to));
        Box::new(Merged {
            below: self.view.scan(from, to).peekable(),
            above: self.writes.range::<[u8], _>(bounds).peekable(),
        })
    }

    fn floor(&self, from: &[u8], at: &[u8]) -> Result<Option<RawRow>, Fault> {
        let mut at = at.to_vec();
        loop {
            let below = self.view.floor(from, &at)?;
            let bounds = (Bound::Included(from), Bound::Included(&at[..]));
            let above = match from <= &at[..] {
                true => self.writes.range::<[u8], _>(bounds).next_back(),
                false => None,
            };
            match (below, above) {
                (below, None) => return Ok(below),
                (Some(below), Some((key, _))) if below.0 > *key => return Ok(Some(below)),
                (_, Some((key, Some(value)))) => return Ok(Some((key.clone(), value.clone()))),
                // The last row is deleted here: look before it.
                (_, Some((key, None))) => match predecessor(key) {
                    Some(before) => at = before,
                    None => return Ok(None),
                },
            }
        }
    }

    fn payload(&self, at: PayloadAt) -> Result<RunPayload, Fault> {
        self.view.payload(at)
    }
}

/// A key below `key` with no row key between the two: row keys of one table have one length, so
/// the number one less, in the same length, will do.
fn predecessor(key: &[u8]) -> Option<Vec<u8>> {
    let mut before = key.to_vec();
    for byte in before.iter_mut().rev() {
        let (less, borrowed) = byte.overflowing_sub(1);
        *byte = less;
        if !borrowed {
            return Some(before);
        }
    }
    None
}

/// Two sorted sequences as one, where a written row hides the one below it.
struct Merged<B: Iterator<Item = Result<RawRow, Fault>>, A: Iterator> {
    below: std::iter::Peekable<B>,
    above: std::iter::Peekable<A>,
}

impl<'a, B, A> Iterator for Merged<B, A>
where
    B: Iterator<Item = Result<RawRow, Fault>>,
    A: Iterator<Item = (&'a Vec<u8>, &'a Option<Bytes>)>,
{
    type Item = Result<RawRow, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let below = match self.below.peek() {
                Some(Err(_)) => return self.below.next(),
                Some(Ok((key, _))) => Some(key),
                None => None,
            };
            let above = self.above.peek().map(|(key, _)| *key);
            match (below, above) {
                (None, None) => return None,
                (Some(below), Some(above)) if below < above => return self.below.next(),
                (Some(_), None) => return self.below.next(),
                (below, Some(above)) => {
                    if below == Some(above) {
                        self.below.next();
                    }
                    let (key, value) = self.above.next().expect("it was peeked");
                    if let Some(value) = value {
                        return Some(Ok((key.clone(), value.clone())));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
