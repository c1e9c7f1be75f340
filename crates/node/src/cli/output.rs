//! What commands print: a table for people, or JSON for programs.

use std::io::{IsTerminal, Write};

use clap::ValueEnum;
use serde_json::{Value, json};

use super::Failure;

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Columns.
    Table,
    /// JSON in the form of the API: an array; commands without end print one object on each line.
    Json,
}

/// Something that commands print.
pub(crate) trait Show {
    /// The headings of its columns.
    const COLUMNS: &'static [&'static str];

    /// Its cells, one for each column.
    fn cells(&self) -> Vec<String>;

    /// The whole of it, as the API's JSON has it.
    fn json(&self) -> Value;
}

/// Prints all rows under their headings, or as an array.
pub(crate) fn print_rows<T: Show>(format: Format, rows: &[T]) {
    match format {
        Format::Json => {
            let values = rows.iter().map(Show::json).collect();
            print_line(&format!("{:#}", Value::Array(values)));
        }
        Format::Table => print_table(rows),
    }
}

/// Prints one thing: a line for each column, or an object.
pub(crate) fn print_one<T: Show>(format: Format, one: &T) {
    match format {
        Format::Json => print_line(&format!("{:#}", one.json())),
        Format::Table => {
            let width = T::COLUMNS
                .iter()
                .map(|heading| heading.len())
                .max()
                .unwrap_or(0);
            for (heading, cell) in T::COLUMNS.iter().zip(one.cells()) {
                print_line(format!("{heading:width$}  {cell}").trim_end());
            }
        }
    }
}

/// Prints one thing of an endless sequence, as it comes.
pub(crate) fn print_next<T: Show>(format: Format, next: &T) {
    match format {
        Format::Json => print_line(&next.json().to_string()),
        Format::Table => print_line(next.cells().join("  ").trim_end()),
    }
}

/// Says what was done to the named things: a line for each, or an array of names.
pub(crate) fn print_done(format: Format, done: &str, names: &[String]) {
    match format {
        Format::Json => {
            let values = names.iter().map(|name| json!({ "name": name })).collect();
            print_line(&format!("{:#}", Value::Array(values)));
        }
        Format::Table => names
            .iter()
            .for_each(|name| print_line(&format!("{done} {name}."))),
    }
}

/// Says something to the person who reads, beside the results: on the error output, so that
/// programs which read results never see it.
pub(crate) fn note(text: &str) {
    // Without a reader there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// How far something is: one line that changes where a person watches, and in a log a line for
/// each change.
#[derive(Default)]
pub(crate) struct Progress {
    said: String,
}

impl Progress {
    /// Says how far it is now.
    pub(crate) fn say(&mut self, text: &str) {
        if self.said == text {
            return;
        }
        let mut out = std::io::stderr();
        // Without a reader there is nobody to tell.
        let _ = match out.is_terminal() {
            true => write!(out, "\r\x1b[K{text}").and_then(|()| out.flush()),
            false => writeln!(out, "{text}"),
        };
        text.clone_into(&mut self.said);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if !self.said.is_empty() && std::io::stderr().is_terminal() {
            note("");
        }
    }
}

/// Writes one line to standard output.
pub(crate) fn print_line(line: &str) {
    print_bytes(format!("{line}\n").as_bytes());
}

/// Writes one line to standard output, for commands that have something to undo.
///
/// # Errors
/// [`Failure::Interrupted`] where the reader has gone away.
pub(crate) fn say_line(line: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    written.map_err(|_| Failure::Interrupted)
}

/// Writes bytes to standard output. A reader that has gone away, as `head` does, is no failure.
pub(crate) fn print_bytes(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    if written.is_err() {
        std::process::exit(0);
    }
}

fn print_table<T: Show>(rows: &[T]) {
    if rows.is_empty() {
        return;
    }
    let headings = T::COLUMNS
        .iter()
        .map(|&heading| heading.to_owned())
        .collect();
    let mut lines: Vec<Vec<String>> = vec![headings];
    lines.extend(rows.iter().map(Show::cells));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<_> = (0..T::COLUMNS.len())
        .map(|column| width(column).unwrap_or(0))
        .collect();
    for line in &lines {
        let cells = line
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| format!("{cell:width$}"));
        print_line(cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}
