//! The `weft` command.
//!
//! ```text
//!  words ──clap──► options ──► command/NAME: typed request ──► weft_sim::experiment ──► report
//!                                                                                        │
//!  exit status ◄── exit ◄── standard output ◄── JSON document or tables ◄────────────────┘
//! ```
//! One file per command under `command`; `exit` alone knows exit statuses; `output` alone writes to
//! standard output, `standard_error` alone to standard error, but for memory that is refused
//! (`refused_memory`); `closed` knows whether standard output was open.

mod closed;
mod command;
mod exit;
mod interrupt;
mod options;
mod output;
mod place;
mod progress;
mod refused_memory;
mod standard_error;
mod value;

use clap::Parser;
use command::Command;
use exit::{Failure, Status};
use std::process::ExitCode;

/// A virtual HPC interconnect.
///
/// Describe a machine in one file, put work on it and see in virtual time what every message and link does.
#[derive(Parser)]
#[command(
    name = "weft",
    version,
    max_term_width = 100,
    after_help = "Sizes are written 256, 4K, 1M (binary); times 20us, 1.5ms; rates 16Gb/s.\n\
                  Exit status: 0 done; 1 the simulation ended badly, or what it found could not be kept, or \
                  memory ran out; 2 bad input; 3 a bug in weft; 130 interrupted. Where its program fails, \
                  weft run ends with the program's status, whatever it is."
)]
struct Weft {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    exit::report_panics();
    interrupt::survive_file_size_limit();
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    // Known before the words are read, since a word that cannot be read is answered in JSON too. What
    // follows `--` belongs to the program.
    let json = words.iter().take_while(|word| *word != "--").any(|word| word == "--json");
    if json {
        refused_memory::tell_as_document();
    }
    let outcome = match Weft::try_parse() {
        Ok(weft) => weft.command.run(&words),
        Err(error) if error.use_stderr() => Err(Failure::usage(&error)),
        Err(help) => output::text(&help.to_string()).map(|()| Status::Done),
    };
    exit::end(outcome, json)
}
