//! Which messages a subscription wants: filters over the attributes of a message.
//!
//! ```text
//! filter  = "" | chain
//! chain   = unary { "AND" unary } | unary { "OR" unary }
//! unary   = [ "NOT" | "-" ] primary
//! primary = "(" chain ")"
//!         | "attributes" ":" key
//!         | "attributes" "." key ( "=" | "!=" ) string
//!         | "hasPrefix" "(" "attributes" "." key "," string ")"
//! key     = one or more of A-Z a-z 0-9 _ - | string
//! string  = '"' { character | "\uXXXX" | "\xXX" | "\OOO" | '\"' | "\\" } '"'
//! ```
//!
//! AND and OR have no precedence over each other: to mix them, parentheses are needed.

mod parse;

use bytes::Bytes;
use model::limits::FILTER_BYTES_MAX;
use thiserror::Error;

use crate::{Fault, message_wire};

/// A filter, ready to be asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter(Option<Expression>);

/// Nests no deeper than its text has parentheses, so a walk needs little stack.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Expression {
    /// The attribute is there, whatever its value.
    Has { key: String },
    /// The attribute is there and has this value.
    Equals { key: String, value: String },
    /// The attribute is there and its value begins so.
    HasPrefix { key: String, prefix: String },
    /// The opposite. `attributes.k != "v"` is this too, so a message without `k` passes it.
    Not(Box<Expression>),
    /// All of two or more.
    All(Vec<Expression>),
    /// At least one of two or more.
    Any(Vec<Expression>),
}

/// A text is not a filter.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidFilter {
    /// The text is too long.
    #[error("the filter has {bytes} bytes, but at most {FILTER_BYTES_MAX} are allowed")]
    TooLong {
        /// Its length in bytes.
        bytes: usize,
    },
    /// Something else should stand there.
    #[error("the filter is invalid at byte {at}: expected {expected}")]
    Unexpected {
        /// The offset, in bytes from zero.
        at: usize,
        /// What should stand there.
        expected: &'static str,
    },
    /// AND and OR are mixed.
    #[error("the filter is invalid at byte {at}: AND and OR can only be combined with parentheses")]
    Mixed {
        /// The offset of the operator that differs from the ones before it, in bytes from zero.
        at: usize,
    },
}

impl Filter {
    /// Reads a filter. The empty text is the filter that every message passes.
    ///
    /// # Errors
    /// [`InvalidFilter`] says where the text goes wrong.
    pub fn parse(text: &str) -> Result<Filter, InvalidFilter> {
        if text.len() > FILTER_BYTES_MAX {
            return Err(InvalidFilter::TooLong { bytes: text.len() });
        }
        match text {
            "" => Ok(Filter(None)),
            _ => parse::whole(text).map(|expression| Filter(Some(expression))),
        }
    }

    /// A filter of a subscription, which was read once before it came into the catalogue.
    ///
    /// # Errors
    /// [`Fault::Missing`] when it can't be read any more.
    pub(crate) fn stored(text: &str) -> Result<Filter, Fault> {
        Filter::parse(text).map_err(|error| Fault::Missing(format!("filter {text:?}: {error}")))
    }

    /// Whether every message passes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether a message passes; `attribute` is the value of one of its attributes.
    #[must_use]
    pub fn matches<'m>(&self, attribute: &dyn Fn(&str) -> Option<&'m str>) -> bool {
        match &self.0 {
            Some(expression) => expression.matches(attribute),
            None => true,
        }
    }

    /// Whether an encoded message passes.
    pub(crate) fn wants(&self, message: &Bytes) -> bool {
        self.matches(&|wanted| message_wire::attribute(message, wanted))
    }
}

impl Expression {
    fn matches<'m>(&self, attribute: &dyn Fn(&str) -> Option<&'m str>) -> bool {
        match self {
            Expression::Has { key } => attribute(key).is_some(),
            Expression::Equals { key, value } => attribute(key) == Some(value),
            Expression::HasPrefix { key, prefix } => {
                attribute(key).is_some_and(|value| value.starts_with(prefix.as_str()))
            }
            Expression::Not(_) if model::sabotage!("not-passes-nothing") => false,
            Expression::Not(inner) => !inner.matches(attribute),
            Expression::All(parts) => parts.iter().all(|part| part.matches(attribute)),
            Expression::Any(parts) => parts.iter().any(|part| part.matches(attribute)),
        }
    }
}

#[cfg(test)]
mod tests;
