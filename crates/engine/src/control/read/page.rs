//! Lists in pages, in the order of names, so that a page goes on where the one before it ended
//! whatever was created or deleted meanwhile.

use model::limits::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use thiserror::Error;

use crate::Fault;

/// Which page a client asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageRequest<'r> {
    /// How many items at most. Zero is the default, and more than the maximum is the maximum.
    pub size: i32,
    /// [`Page::next_token`] of the page before, of the same list; empty for the first page.
    pub token: &'r str,
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Asks for the page after this one; empty after the last.
    pub next_token: String,
}

/// No page can be asked for so.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidPage {
    /// The size is negative.
    #[error("page_size is {size}, but must not be negative")]
    Size {
        /// The size.
        size: i32,
    },
    /// The token is not one that this list has given out.
    #[error("page_token {token:?} was not returned by an earlier page of this list")]
    Token {
        /// The token.
        token: String,
    },
}

/// Where a page begins.
pub(super) struct PageStart<'r> {
    parent: &'r str,
    size: usize,
    /// The last name of the page before; empty for the first page.
    pub(super) after: &'r str,
}

impl<'r> PageRequest<'r> {
    /// Checks the request for the list that `parent` names.
    pub(super) fn start(&self, parent: &'r str) -> Result<PageStart<'r>, InvalidPage> {
        let size = match usize::try_from(self.size) {
            Ok(0) => PAGE_SIZE_DEFAULT,
            Ok(size) => size.min(PAGE_SIZE_MAX),
            Err(_) => return Err(InvalidPage::Size { size: self.size }),
        };
        let after = match self.token {
            "" => "",
            token => read_token(parent, token).ok_or_else(|| InvalidPage::Token {
                token: token.to_owned(),
            })?,
        };
        Ok(PageStart {
            parent,
            size,
            after,
        })
    }
}

impl PageStart<'_> {
    /// Takes one page of `found`, which begins behind [`PageStart::after`].
    pub(super) fn page<T>(
        &self,
        found: impl Iterator<Item = Result<T, Fault>>,
        name: impl Fn(&T) -> &str,
    ) -> Result<Page<T>, Fault> {
        let mut items = found
            .take(self.size + 1)
            .collect::<Result<Vec<T>, Fault>>()?;
        let goes_on = items.len() > self.size;
        items.truncate(self.size);
        let next_token = match items.last() {
            Some(last) if goes_on && !model::sabotage!("list-ends-after-a-page") => {
                write_token(self.parent, name(last))
            }
            _ => String::new(),
        };
        Ok(Page { items, next_token })
    }
}

/// A token is a checksum of the list and the name, and then the name.
fn write_token(parent: &str, last: &str) -> String {
    format!("{:08x}{last}", checksum(parent, last))
}

fn read_token<'t>(parent: &str, token: &'t str) -> Option<&'t str> {
    let (written, last) = token.split_at_checked(8)?;
    (written == format!("{:08x}", checksum(parent, last))).then_some(last)
}

fn checksum(parent: &str, last: &str) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(parent.as_bytes()), last.as_bytes())
}
