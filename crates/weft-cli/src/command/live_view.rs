//! `--view`: the page in the browser while a run goes on.
//!
//! ```text
//!  command ── simulates, writes DIR ──────────────────► the run has ended ── Ctrl-C, or no terminal ──► end
//!  server  ── the page: what DIR has so far, once a second ── the whole result ──────────────────────► end
//! ```

use super::view::failure;
use crate::exit::{Failure, Status};
use crate::interrupt;
use crate::options::ResultOptions;
use crate::standard_error::say;
use clap::Args;
use std::io::{IsTerminal, stdin};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;
use weft_units::Span;
use weft_view::Server;

/// The interval of telemetry where the user has not named one: without it there is nothing to see.
const TELEMETRY: Span = Span::from_us(10);
/// Real time between two checks whether the page is to end.
const END_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Whether the run is shown as it goes.
#[derive(Args)]
pub struct LiveOptions {
    /// Show the run in the browser as it goes: prints an address for this computer. Needs -o; --telemetry
    /// says how closely links are looked at, 10us without it
    #[arg(long, requires = "output")]
    view: bool,
}

impl LiveOptions {
    /// Asks for the telemetry that the page shows.
    pub fn ask_for_telemetry(&self, results: &mut ResultOptions) {
        if self.view {
            results.telemetry.get_or_insert(TELEMETRY);
        }
    }

    /// Whether it is wanted.
    pub fn is_wanted(&self) -> bool {
        self.view
    }
}

/// A page of a run that goes on.
pub struct LiveView {
    server: Arc<Server>,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl LiveView {
    /// Shows what `run` writes into a directory while it goes on.
    ///
    /// # Errors
    /// A system that lets nobody listen, and those of the run.
    pub fn during(
        directory: &Path,
        run: impl FnOnce() -> Result<Status, Failure>,
    ) -> Result<Status, Failure> {
        let view = LiveView::start(directory)?;
        let outcome = run();
        view.end(outcome.is_ok());
        outcome
    }

    /// Serves what a run is about to write into a directory.
    fn start(directory: &Path) -> Result<LiveView, Failure> {
        let server = Arc::new(Server::live(0, directory.to_owned()).map_err(failure)?);
        say!("weft: {}", server.address());
        if !weft_view::has_page() {
            say!("weft: this weft was built without the page; it is built by {}", weft_view::PAGE_MEND);
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let (serving, ends) = (server.clone(), is_over.clone());
        let thread = spawn(move || serving.run(|| ends.load(Ordering::Relaxed)));
        Ok(LiveView { server, is_over, thread })
    }

    /// The run has ended; `has_result`: with a result. On a terminal the page stays until Ctrl-C, unless that
    /// has ended the run already.
    fn end(self, has_result: bool) {
        self.server.end_live();
        let waits = has_result && stdin().is_terminal();
        if let Some(interrupt) = interrupt::handled().filter(|_| waits)
            && !interrupt.is_requested()
        {
            interrupt::only_serve();
            say!("weft: the run has ended; the page stays at {} until Ctrl-C", self.server.address());
            while !interrupt.is_requested() {
                sleep(END_CHECK_INTERVAL);
            }
        }
        self.is_over.store(true, Ordering::Relaxed);
        // A thread that has panicked has told so.
        let _ = self.thread.join();
    }
}
