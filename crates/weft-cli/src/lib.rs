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
//! `called` keeps the output where another language calls the command in its own process.

mod called;
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
mod study;
mod value;

pub use called::Caller;
use clap::Parser;
use command::Command;
pub use exit::Failure as CommandFailure;
use exit::{Failure, Status};
pub use study::Sweep;
pub use weft_sim::experiment::Interrupt;
pub use weft_sim::experiment::replay::{ReceivedMessage, Stepped};
pub use weft_study::{Outcome, Point};

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

/// The first words to somebody who has typed `weft` alone.
const WELCOME: &str = "\
weft is a virtual HPC interconnect: describe a machine, put work on it, and see in virtual time what every
message and link does.

First steps:
  weft machine list                                        machines that ship
  weft machine show bxi3-fattree                           one of them: its figures, and every value's source
  weft traffic -m bxi3-fattree --set topology.k=4 --load 0.1:0.9:0.2 --time 20us -o curve
                                                           throughput and latency over load
  weft plot curve                                          a picture of it
  weft report curve                                        all of it in one page
  weft doctor                                              what real programs need: weft run, weft record

weft --help lists all commands; weft COMMAND --help says what each takes.
";

/// The command: does what `words` say, the first of which is its own name; returns the exit status.
pub fn main(words: &[String]) -> u8 {
    exit::report_panics();
    interrupt::survive_file_size_limit();
    // Known before the words are read, since a word that cannot be read is answered in JSON too. What
    // follows `--` belongs to the program.
    let json = words.iter().take_while(|word| *word != "--").any(|word| word == "--json");
    if json {
        refused_memory::tell_as_document();
    }
    let outcome = match Weft::try_parse_from(words) {
        Ok(weft) => weft.command.run(words),
        Err(_) if words.len() <= 1 => output::text(WELCOME).map(|()| Status::Done),
        Err(error) if error.use_stderr() => Err(Failure::usage(&error)),
        Err(help) => output::text(&help.to_string()).map(|()| Status::Done),
    };
    exit::end(outcome, json)
}

/// The outcome of a command that was called in this process.
pub struct Called {
    /// The exit status that the command would have.
    pub status: u8,
    /// The text that it would have written to standard output.
    pub output: String,
    /// The error, as the command words it; empty where there is none.
    pub message: String,
}

/// Does what `words` say in this process and thread, and keeps its output: for other languages.
pub fn call(words: &[String], caller: Caller) -> Called {
    let outcome = || match Weft::try_parse_from(words) {
        Ok(weft) => weft.command.run(words),
        Err(error) if error.use_stderr() => Err(Failure::usage(&error)),
        Err(help) => output::text(&help.to_string()).map(|()| Status::Done),
    };
    let (outcome, output, detail) = called::within(caller, outcome);
    let (status, message) = match outcome {
        Ok(status) => (status, detail),
        Err(failure) => failure.into_parts(),
    };
    Called { status: status.code(), output, message }
}
