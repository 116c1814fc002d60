//! `weft machine draw`: a picture of a machine.

use super::MachineName;
use crate::exit::{Failure, Status};
use crate::options::SetOptions;
use crate::output;
use crate::place::{OutputFile, write_whole};
use clap::{Args, ValueHint};
use std::path::{Path, PathBuf};
use weft_sim::experiment::machine;

/// Options of `weft machine draw`.
#[derive(Args)]
pub struct DrawOptions {
    #[command(flatten)]
    machine: MachineName,

    /// File for the SVG; without it standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// Write over a file that is there already
    #[arg(long, requires = "output")]
    force: bool,

    #[command(flatten)]
    sets: SetOptions,
}

impl DrawOptions {
    /// Draws it.
    pub fn run(&self) -> Result<Status, Failure> {
        if let Some(path) = &self.output {
            let file = OutputFile { option: "--output", contents: "drawing", path };
            file.refuse_inputs(&[Path::new(self.machine.get())])?;
            if path.extension().is_some_and(|extension| extension != "svg") {
                let path = path.display();
                return Err(Failure::input(format!(
                    "--output {path}: a drawing is SVG; name it so, as in m.svg"
                )));
            }
            if !self.force {
                file.refuse_existing()?;
            }
        }
        let drawing = machine::draw(&machine::input(self.machine.get(), &self.sets.sets)?)?;
        match &self.output {
            None => output::text(&drawing)?,
            Some(path) => write_whole(path, drawing.as_bytes())?,
        }
        Ok(Status::Done)
    }
}
