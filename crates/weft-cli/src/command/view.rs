//! `weft view`: results in the browser.

use super::plot::open_all;
use crate::called;
use crate::exit::{Failure, Status};
use crate::options::FormatOptions;
use crate::output;
use crate::standard_error::say;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use weft_view::{Server, Shown, ViewError};

/// Options of `weft view`.
#[derive(Args)]
#[command(
    after_help = "The page is served to this computer alone, at an address with a secret: who has not \
                        the address gets nothing. Ctrl-C ends it."
)]
pub struct ViewOptions {
    /// Directories that weft wrote with -o; two of them are shown side by side
    #[arg(value_name = "DIR", required = true, value_hint = ValueHint::DirPath)]
    directories: Vec<PathBuf>,

    /// The port of 127.0.0.1; by default any that is free
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    port: u16,

    /// The timeline of the first result's ranks, as --timeline of weft replay or run wrote it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    timeline: Option<PathBuf>,

    #[command(flatten)]
    format: FormatOptions,
}

impl ViewOptions {
    /// Serves the page until it is interrupted.
    pub fn run(self) -> Result<Status, Failure> {
        let results = open_all(&self.directories)?;
        if let Some(timeline) = self.timeline.as_deref().filter(|timeline| !timeline.is_file()) {
            let path = timeline.display();
            return Err(Failure::input(format!(
                "--timeline {path} is no file; weft replay and weft run write one with --timeline"
            )));
        }
        let mut timeline = self.timeline;
        let shown = results.into_iter().map(|result| Shown::new(result, timeline.take())).collect();
        let server = Server::new(self.port, shown).map_err(failure)?;
        let (address, has_page) = (server.address(), weft_view::has_page());
        if self.format.json {
            let document = serde_json::json!({ "command": "view", "address": address, "has_page": has_page });
            output::document(&document)?;
        } else {
            output::text(&format!("{address}\n"))?;
            say!("weft: open this address in a browser of this computer; Ctrl-C ends it");
        }
        if !has_page {
            say!("weft: this weft was built without the page; it is built by {}", weft_view::PAGE_MEND);
        }
        // Without a caller of another language Ctrl-C ends the process, as of any program.
        let interrupt = called::interrupt();
        if interrupt.is_some() {
            // The output of a call is kept until it ends.
            say!("weft: {address}");
        }
        server.run(|| interrupt.as_ref().is_some_and(|interrupt| interrupt.is_requested()));
        Ok(Status::Interrupted)
    }
}

/// Who is told of a server that cannot begin.
pub fn failure(error: ViewError) -> Failure {
    match error {
        ViewError::Random(_) => Failure::bug(error.to_string()),
        other => Failure::input(other.to_string()),
    }
}
