//! `weft machine new`: a machine file to start from.

use crate::exit::{Failure, Status};
use crate::output;
use clap::Args;
use weft_sim::experiment::machine;

/// Options of `weft machine new`.
#[derive(Args)]
pub struct NewOptions {
    /// Name and title of the new machine: letters, digits, `-`, `_` and `.`
    #[arg(value_name = "NAME")]
    name: String,

    /// The machine to start from, which ships with weft or is a machine file
    #[arg(long, value_name = "NAME|FILE")]
    like: String,
}

impl NewOptions {
    /// Prints it.
    pub fn run(&self) -> Result<Status, Failure> {
        output::text(&machine::template(&self.name, &self.like)?)?;
        Ok(Status::Done)
    }
}
