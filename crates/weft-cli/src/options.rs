//! Options that commands share.

use crate::exit::Failure;
use clap::{Args, ValueHint};
use std::fs;
use std::path::PathBuf;
use weft_sim::experiment::replay::Mapping;
use weft_sim::experiment::{MachineInput, Output, RunOptions, Start, machine};
use weft_sim::results::{Existing, ResultsWriter, Table};
use weft_units::Span;

/// Which machine.
#[derive(Args)]
pub struct MachineOptions {
    /// A machine that ships with weft (`weft machine list`), or a machine file
    #[arg(short, long, value_name = "NAME|FILE")]
    pub machine: String,

    #[command(flatten)]
    pub sets: SetOptions,
}

/// Changes to a machine.
#[derive(Args)]
pub struct SetOptions {
    /// Changes a value of the machine file, such as topology.dims=[8,8,8]; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_set)]
    pub sets: Vec<String>,
}

fn parse_set(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() && !value.trim().is_empty() => Ok(text.to_owned()),
        _ => Err("a value is set with KEY=VALUE, such as topology.dims=[8,8,8]".to_owned()),
    }
}

impl MachineOptions {
    /// The machine with its text.
    pub fn input(&self) -> Result<MachineInput, Failure> {
        Ok(machine::input(&self.machine, &self.sets.sets)?)
    }

    /// Changes these values of the machine as well, but for those that are changed already; returns what it has changed.
    pub fn set_others(&mut self, values: &[(&str, String)]) -> Vec<String> {
        let is_set = |key: &str| {
            self.sets.sets.iter().any(|set| set.split_once('=').is_some_and(|(other, _)| other.trim() == key))
        };
        let others = values.iter().filter(|(key, _)| !is_set(key));
        let others: Vec<String> = others.map(|(key, value)| format!("{key}={value}")).collect();
        self.sets.sets.extend_from_slice(&others);
        others
    }
}

/// Where ranks sit.
#[derive(Args)]
pub struct PlaceOptions {
    /// Where ranks sit: linear, random, or a file whose line n has the place of rank n
    #[arg(long, value_name = "linear|random|FILE", default_value = "linear")]
    pub map: String,

    /// Ranks per host, filled in order; by default the host's cores
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    pub ppn: Option<u32>,
}

impl PlaceOptions {
    /// The mapping, with the text of its file.
    pub fn mapping(&self) -> Result<Mapping, Failure> {
        Ok(match self.map.as_str() {
            "linear" => Mapping::Linear,
            "random" => Mapping::Random,
            file => Mapping::File(fs::read_to_string(file).map_err(|error| {
                Failure::input(format!(
                    "cannot read the mapping file {file}: {error}; write --map linear, --map random or a file"
                ))
            })?),
        })
    }
}

/// A mapping in JSON.
pub fn mapping_name(map: &Mapping) -> &'static str {
    match map {
        Mapping::Linear => "linear",
        Mapping::Random => "random",
        Mapping::File(_) => "file",
    }
}

/// How much is said, and how.
#[derive(Args, Clone, Copy)]
pub struct SayOptions {
    /// One JSON document on standard output, units in the key names
    #[arg(long)]
    pub json: bool,
}

/// Where results go.
#[derive(Args)]
pub struct ResultOptions {
    /// Directory for results; without it only the report is printed
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,

    /// Write over results that are there
    #[arg(long)]
    pub force: bool,

    /// Tables to write: messages, flows, links, ranks
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = Table::DEFAULT, requires = "output")]
    pub tables: Vec<Table>,

    /// Write a timeline for Perfetto (https://ui.perfetto.dev)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub timeline: Option<PathBuf>,

    /// Check as the run goes that no packet, credit or byte is lost
    #[arg(long)]
    pub check: bool,
}

impl ResultOptions {
    /// The options of a fresh run in one thread; `breakdown`: with the pieces of messages. A result directory that
    /// must not be written to is refused here, before anything is built.
    pub fn run_options(&self, words: &[String], breakdown: bool) -> Result<RunOptions, Failure> {
        let existing = if self.force { Existing::Replace } else { Existing::Refuse };
        if let Some(directory) = &self.output {
            ResultsWriter::check(directory, existing)?;
        }
        let mut tables = self.tables.clone();
        tables.extend(breakdown.then_some(Table::Pieces));
        tables.sort();
        tables.dedup();
        let output =
            self.output.clone().map(|directory| Output { directory, tables, start: Start::Fresh(existing) });
        Ok(RunOptions {
            threads: 1,
            output,
            save_every: None,
            timeline: self.timeline.clone(),
            check: self.check,
            command: words.to_vec(),
        })
    }
}

/// How a simulation runs and where its results go.
#[derive(Args)]
pub struct SimulationOptions {
    /// Threads that simulate; results do not depend on it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: u32,

    #[command(flatten)]
    pub results: ResultOptions,

    /// Save the whole state whenever so much virtual time has passed, for `weft rerun --resume`
    #[arg(long, value_name = "TIME", value_parser = parse_positive_span, requires = "output")]
    pub save_every: Option<Span>,

    /// No progress and no estimate on standard error
    #[arg(long)]
    pub quiet: bool,
}

impl SimulationOptions {
    /// The options of a fresh run.
    pub fn run_options(&self, words: &[String], breakdown: bool) -> Result<RunOptions, Failure> {
        let (threads, save_every) = (self.threads, self.save_every);
        Ok(RunOptions { threads, save_every, ..self.results.run_options(words, breakdown)? })
    }
}

/// A time above zero.
pub fn parse_positive_span(text: &str) -> Result<Span, String> {
    match text.parse::<Span>() {
        Ok(Span::ZERO) => Err("a time of 0 never passes; write 20us or 1.5ms".to_owned()),
        other => other.map_err(|error| error.to_string()),
    }
}
