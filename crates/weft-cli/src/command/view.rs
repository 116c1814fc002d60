//! `weft view`: results in the browser.

use super::plot::open_all;
use crate::called;
use crate::exit::{Failure, Status};
use crate::options::FormatOptions;
use crate::output;
use crate::standard_error::say;
use clap::{Args, ValueHint};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use weft_study::{StoredStudy, is_study};
use weft_view::{Server, Shown, ViewError};

/// Options of `weft view`.
#[derive(Args)]
#[command(
    after_help = "The page is served to this computer alone, at an address with a secret: who has not \
                        the address gets nothing. Ctrl-C ends it."
)]
pub struct ViewOptions {
    /// Directories that weft wrote with -o; two of them are shown side by side. Or that of one study, whose
    /// page has what is done of it whenever it is loaded
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
        if let [one] = self.directories.as_slice()
            && is_study(one)
        {
            return self.of_study(one);
        }
        let results = open_all(&self.directories)?;
        if let Some(timeline) = self.timeline.as_deref().filter(|timeline| !timeline.is_file()) {
            let path = timeline.display();
            return Err(Failure::input(format!(
                "--timeline {path} is no file; weft replay and weft run write one with --timeline"
            )));
        }
        if let Some(timeline) = &self.timeline
            && !is_json(timeline)
        {
            let path = timeline.display();
            return Err(Failure::input(format!(
                "--timeline {path} is no timeline, which is JSON; weft replay and weft run write one with \
                 --timeline"
            )));
        }
        let mut timeline = self.timeline;
        let shown = results.into_iter().map(|result| Shown::new(result, timeline.take())).collect();
        let server = Server::new(self.port, shown).map_err(failure)?;
        let has_page = weft_view::has_page();
        if !has_page {
            say!("weft: this weft was built without the page; it is built by {}", weft_view::PAGE_MEND);
        }
        serve(&server, has_page, self.format)
    }

    /// Serves the page of a study, made anew whenever it is asked for.
    fn of_study(&self, directory: &Path) -> Result<Status, Failure> {
        if self.timeline.is_some() {
            return Err(Failure::input("--timeline: a study has no ranks; leave it out"));
        }
        // A directory that cannot be shown is told here, and not in the browser.
        study_page(directory)?;
        let directory = directory.to_owned();
        let page = move || study_page(&directory).map_err(|failure| failure.told().1.to_owned());
        let server = Server::of_page(self.port, Box::new(page)).map_err(failure)?;
        serve(&server, true, self.format)
    }
}

/// Whether a file begins as a document in JSON does: all of it may be large.
fn is_json(path: &Path) -> bool {
    let mut begin = [0; 64];
    let read = File::open(path).and_then(|mut file| file.read(&mut begin));
    let first = read.ok().and_then(|length| begin[..length].trim_ascii_start().first().copied());
    matches!(first, Some(b'{' | b'['))
}

fn study_page(directory: &Path) -> Result<String, Failure> {
    let report = StoredStudy::open(directory)?.report()?;
    weft_plot::sectioned_report(&report).map_err(|error| Failure::bug(error.to_string()))
}

/// Serves until it is interrupted.
fn serve(server: &Server, has_page: bool, format: FormatOptions) -> Result<Status, Failure> {
    let address = server.address();
    if format.json {
        let document = serde_json::json!({ "command": "view", "address": address, "has_page": has_page });
        output::document(&document)?;
    } else {
        output::text(&format!("{address}\n"))?;
        say!("weft: open this address in a browser of this computer; Ctrl-C ends it");
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

/// Who is told of a server that cannot begin.
pub fn failure(error: ViewError) -> Failure {
    match error {
        ViewError::Random(_) => Failure::bug(error.to_string()),
        other => Failure::input(other.to_string()),
    }
}
