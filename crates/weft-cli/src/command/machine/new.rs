//! `weft machine new`: a machine file to start from.

use crate::exit::{Failure, Status};
use crate::options::machine_name;
use crate::output;
use clap::Args;
use weft_sim::experiment::machine::{self, TemplateKeys};

/// Options of `weft machine new`.
#[derive(Args)]
pub struct NewOptions {
    /// Name and title of the new machine: letters, digits, `-`, `_` and `.`
    #[arg(value_name = "NAME")]
    name: String,

    /// The machine to start from, which ships with weft or is a machine file
    #[arg(long, value_name = "NAME|FILE", value_parser = machine_name(), hide_possible_values = true)]
    like: String,

    /// Every key: those that the other machine does not set are comments, with an example as the value
    #[arg(long)]
    all: bool,
}

impl NewOptions {
    /// Prints it.
    pub fn run(&self) -> Result<Status, Failure> {
        let keys = if self.all { TemplateKeys::All } else { TemplateKeys::Set };
        output::text(&machine::template(&self.name, &self.like, keys)?)?;
        Ok(Status::Done)
    }
}
