//! Those who watch a job from outside virtual time: its processes, Ctrl-C, the limit in real time, and how
//! far its ranks have come in starting.

use crate::job::{Arrivals, Job};
use crate::launch::processes::Watch;
use crate::live_end::{Death, LiveEnd};
use crate::lock::lock;
use crate::wall::Stopwatch;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weft_sim::experiment::{Interrupt, ProgressListener};

/// Real time between two checks of the limits in real time.
const LIMIT_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Real time between two looks at ranks that start.
const START_CHECK_INTERVAL: Duration = Duration::from_millis(50);

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

/// A report of how far the ranks have come in starting, until all are in virtual time or it is dropped.
pub(crate) struct StartReport {
    done: Arc<AtomicBool>,
}

impl StartReport {
    /// Reports to `progress`, from a thread of `scope`.
    pub(crate) fn begin<'scope>(
        scope: &'scope std::thread::Scope<'scope, '_>,
        job: Arc<Job>,
        progress: &'scope dyn ProgressListener,
    ) -> StartReport {
        let done = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&done);
        scope.spawn(move || {
            while !ended.load(Ordering::Acquire) {
                let arrivals = job.arrivals();
                if arrivals.joined == job.ranks() {
                    break;
                }
                let (share, doing) = start_progress(arrivals, job.ranks());
                progress.advance(share, &doing);
                std::thread::sleep(START_CHECK_INTERVAL);
            }
            progress.advance(1.0, "");
        });
        StartReport { done }
    }
}

impl Drop for StartReport {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Release);
    }
}

/// The share of the start that is done, each of its parts as long as the others, and the present part.
fn start_progress(arrivals: Arrivals, ranks: u32) -> (f64, String) {
    let (part, verb, count) = match arrivals {
        Arrivals { started, .. } if started < ranks => (0.0, "started", started),
        Arrivals { released: false, met, .. } => (1.0, "in MPI_Init", met),
        Arrivals { joined, .. } => (2.0, "connected", joined),
    };
    let share = (part + f64::from(count) / f64::from(ranks.max(1))) / 3.0;
    (share, format!("ranks {verb} {count} of {ranks}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a part of the start that is told as another, and a bar that goes back.
    #[test]
    fn the_start_goes_on_part_by_part() {
        let at = |started, met, released, joined| {
            start_progress(Arrivals { started, met, released, joined }, 1024)
        };
        let parts = [
            at(312, 0, false, 0),
            at(1024, 7, false, 0),
            at(1024, 1024, false, 0),
            at(1024, 0, true, 0),
            at(1024, 900, true, 900),
        ];
        assert!(parts.windows(2).all(|pair| pair[0].0 <= pair[1].0), "{parts:?}");
        let words = parts.map(|(_, words)| words);
        assert_eq!(words[0], "ranks started 312 of 1024");
        assert_eq!(words[1], "ranks in MPI_Init 7 of 1024");
        assert_eq!(words[4], "ranks connected 900 of 1024");
    }
}
