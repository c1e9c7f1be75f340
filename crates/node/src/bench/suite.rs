//! `orderly bench suite`: the rows of the speed table, against nodes of its own.
//!
//! - [`row`]: the rows. [`throughput`], [`memory`], [`recovery`]: how they are measured.
//! - [`lab`]: what a row may use: nodes, Google's emulator, loads. [`server`]: one process.
//! - [`outcome`]: what a load answered. [`table`]: Markdown.

mod lab;
mod memory;
mod outcome;
mod recovery;
mod row;
mod server;
mod table;
mod throughput;

use std::fs;
use std::path::PathBuf;

use clap::Args;

use crate::cli::Failure;
use crate::cli::output::print_line;
use lab::{Lab, Scale};
use row::{Line, ROWS, Row};

/// The command.
#[derive(Debug, Args)]
pub(crate) struct Suite {
    /// A fraction of the work: shows that every row runs, not how fast a node is.
    #[arg(long)]
    quick: bool,
    /// Where nodes keep their data, on the disk to measure: about 4 GB, emptied after each row.
    #[arg(long, default_value = "./data/bench", value_name = "FOLDER")]
    data_dir: PathBuf,
    /// The start script of Google's emulator; by default that of an installed Cloud SDK.
    #[arg(long, value_name = "FILE")]
    emulator: Option<PathBuf>,
    /// Only rows with this text in their names.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Also writes the table into this file.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

impl Suite {
    /// Measures all rows, and goes on when one fails.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let scale = if self.quick {
            Scale::QUICK
        } else {
            Scale::FULL
        };
        let lab = Lab::new(scale, self.data_dir.clone(), self.emulator.clone())?;
        let mut lines = Vec::new();
        let mut failed = Vec::new();
        for row in ROWS.iter().filter(|row| self.wants(row)) {
            eprintln!("--- {}", row.name);
            match (row.measure)(&lab) {
                Ok(measured) => lines.extend(measured.into_iter().map(|line| (row, line))),
                Err(failure) => {
                    eprintln!("{}: {failure}", row.name);
                    failed.push(row.name);
                    lines.push((row, Line::failed(row.name, &failure)));
                }
            }
        }
        self.tell(&table::markdown(&lines, self.quick))?;
        match failed[..] {
            [] => Ok(()),
            _ => Err(Failure::Check(format!(
                "not measured: {}",
                failed.join(", ")
            ))),
        }
    }

    fn wants(&self, row: &Row) -> bool {
        self.only
            .as_ref()
            .is_none_or(|text| row.name.contains(text.as_str()))
    }

    fn tell(&self, table: &str) -> Result<(), Failure> {
        print_line(table.trim_end());
        let Some(path) = &self.write else {
            return Ok(());
        };
        let written = fs::write(path, table);
        written.map_err(|source| Failure::Write {
            path: path.clone(),
            source,
        })
    }
}
