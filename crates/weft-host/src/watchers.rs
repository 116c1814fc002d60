//! Those who watch a job from outside virtual time: its processes, Ctrl-C, and the limit in real time.

use crate::job::Job;
use crate::launch::processes::Watch;
use crate::live_end::{Death, LiveEnd};
use crate::lock::lock;
use crate::wall::Stopwatch;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weft_sim::experiment::Interrupt;

/// Real time between two checks of the limits in real time.
const LIMIT_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The first error at which output of ranks could not be passed on, though somebody reads.
pub(crate) type Unwritten = Arc<Mutex<Option<io::Error>>>;

/// Passes on the output of the ranks, and ends the job when one of them fails.
pub(crate) struct ProcessWatch {
    pub job: Arc<Job>,
    /// Whether standard output of ranks goes to standard error.
    pub output_to_error: bool,
    pub unwritten: Unwritten,
}

impl Watch for ProcessWatch {
    fn lines(&mut self, _: u32, error: bool, lines: &[u8]) {
        if error || self.output_to_error {
            // Lost if standard error does not take it, as weft's own remarks are.
            let _ = io::stderr().write_all(lines);
            return;
        }
        let mut out = io::stdout().lock();
        let written = out.write_all(lines).and_then(|()| out.flush());
        // If nobody reads any more, the job goes on and nobody misses anything.
        if let Some(error) = written.err().filter(|error| error.kind() != io::ErrorKind::BrokenPipe) {
            lock(&self.unwritten).get_or_insert(error);
        }
    }

    fn ended(&mut self, rank: u32, death: Death, inside: bool) {
        if !self.job.is_stopping() && (inside || death != Death::Exited(0)) {
            self.job.end(LiveEnd::RankEnded(rank, death));
        }
    }

    fn aborted(&mut self, rank: u32, status: i32) {
        self.job.end(LiveEnd::Aborted(rank, status));
    }
}

/// Ends the job on Ctrl-C and at its limit in real time, until dropped.
pub(crate) struct Guard {
    done: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Guard {
    /// Guards `job`, which began at `since` and may take real time up to `limit`.
    pub(crate) fn start(
        job: Arc<Job>,
        interrupt: Interrupt,
        since: Stopwatch,
        limit: Option<Duration>,
    ) -> Guard {
        let done = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&done);
        let thread = std::thread::spawn(move || {
            while !ended.load(Ordering::Acquire) {
                if interrupt.is_requested() {
                    return job.end(LiveEnd::Interrupted);
                }
                if limit.is_some_and(|limit| since.elapsed() >= limit) {
                    return job.end(LiveEnd::WallLimit);
                }
                std::thread::sleep(LIMIT_CHECK_INTERVAL);
            }
        });
        Guard { done, thread: Some(thread) }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // It fails only by a panic, which is reported elsewhere.
            let _ = thread.join();
        }
    }
}
