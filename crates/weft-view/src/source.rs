//! The results that are shown: whole ones, or one that is still being written.
//!
//! ```text
//!  the run goes on   ── .weft/live.json, again and again ──► a result of what is written
//!  it has ended      ── run.json ─────────────────────────► the whole result
//! ```

use crate::shown::Shown;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use weft_results::{StoredResult, is_whole, live_generation};

/// The results that are shown.
pub(crate) struct Source {
    state: Mutex<State>,
    /// The directory of a run that goes on; `None`: all are whole.
    live: Option<PathBuf>,
    /// Whether that run is over.
    is_over: AtomicBool,
}

struct State {
    shown: Arc<Vec<Shown>>,
    /// Of what is written, as its writer counts.
    generation: Option<u64>,
    goes_on: bool,
}

/// Answers whether there is more to see.
#[derive(Serialize)]
pub(crate) struct Progress {
    /// Whether the run goes on.
    live: bool,
    /// Whether there is something to see.
    begun: bool,
    /// Grows with what is written.
    generation: u64,
}

impl Source {
    /// Results that are whole.
    pub fn of(shown: Vec<Shown>) -> Source {
        let state = State { shown: Arc::new(shown), generation: None, goes_on: false };
        Source { state: Mutex::new(state), live: None, is_over: AtomicBool::new(false) }
    }

    /// The result of a run that goes on.
    pub fn live(directory: PathBuf) -> Source {
        let state = State { shown: Arc::default(), generation: None, goes_on: true };
        Source { state: Mutex::new(state), live: Some(directory), is_over: AtomicBool::new(false) }
    }

    /// The run is over: its result is whole, or there is none.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// The results as they are now.
    pub fn now(&self) -> Arc<Vec<Shown>> {
        self.looked().shown.clone()
    }

    /// Whether there is more to see.
    pub fn progress(&self) -> Progress {
        let state = self.looked();
        let begun = !state.shown.is_empty();
        Progress { live: state.goes_on, begun, generation: state.generation.unwrap_or(0) }
    }

    /// The state after a look at what has been written.
    fn looked(&self) -> std::sync::MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(directory) = self.live.as_ref().filter(|_| state.goes_on) else { return state };
        if self.is_over.load(Ordering::SeqCst) {
            state.goes_on = false;
            if is_whole(directory)
                && let Ok(result) = StoredResult::open(directory)
            {
                state.show(result);
            }
            return state;
        }
        let generation = live_generation(directory);
        if generation.is_some()
            && generation != state.generation
            && let Ok(result) = StoredResult::open_live(directory)
        {
            state.generation = generation;
            state.show(result);
        }
        state
    }
}

impl State {
    /// Shows a result in the place of what was written before; the machine stays the same.
    fn show(&mut self, result: StoredResult) {
        let map = self.shown.first().map(Shown::share_map);
        self.shown = Arc::new(vec![Shown::with_map(result, None, map.unwrap_or_default())]);
    }
}
