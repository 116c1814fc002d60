//! Windows with a thread per partition.
//!
//! ```text
//!   thread 0  ─ window k ─┬ publish, leave mail ─┐         ┌ take mail, same minimum ─┬─ window n ─ …
//!   thread 1  ─ window k ─┴ publish, leave mail ─┤ barrier ├ take mail, same minimum ─┴─ window n ─ …
//! ```
//! One barrier per window. Before it each thread publishes the first window that its pending events or its
//! mail ask for, and leaves its mail. After it all threads compute the same minimum, which is the next
//! window, and take their mail. There are two [`Board`]s used in turn, so that nobody writes what another
//! still reads.

use crate::barrier::SpinBarrier;
use crate::event_queue::Letters;
use crate::lookahead::Windows;
use crate::model::Model;
use crate::partition::Partition;
use crate::simulation::Progress;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use weft_units::Time;

/// Below this many events in a window and partition, a barrier costs more than a second thread saves: an
/// allreduce of 512 ranks over the exanet interface has 23 and takes two thirds of the time, a single
/// transfer has 1 and would take longer.
const EVENTS_WORTH_A_BARRIER: u64 = 16;
/// Windows after which it is decided anew whether threads are worth their barriers.
pub(crate) const WINDOWS_PER_STRETCH: u64 = 64;

/// The outcome of a stretch of windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StretchOutcome {
    /// Windows hold enough events for threads.
    Busy,
    /// Windows hold too few events for threads.
    Idle,
    /// The run has come to its end.
    Ended(Progress),
}

impl StretchOutcome {
    /// The outcome of a whole stretch in which `partitions` have handled so many `events`.
    pub(crate) fn of(events: u64, partitions: usize) -> StretchOutcome {
        let enough = EVENTS_WORTH_A_BARRIER * WINDOWS_PER_STRETCH * partitions as u64;
        if events >= enough { StretchOutcome::Busy } else { StretchOutcome::Idle }
    }
}

/// The windows that are to be worked off.
pub(crate) struct Task<'a, M> {
    pub(crate) model: &'a M,
    pub(crate) windows: Windows,
    /// End of the run, exclusive.
    pub(crate) until: Time,
    pub(crate) interrupt: &'a AtomicBool,
}

/// Works off windows with a thread per partition, until the end or until a stretch was idle. Returns the
/// virtual time that has been reached as well.
pub(crate) fn run<M: Model>(partitions: &mut [Partition<M>], task: &Task<'_, M>) -> (StretchOutcome, Time) {
    let threads = partitions.len();
    let (barrier, boards) = (SpinBarrier::new(threads), [Board::new(threads), Board::new(threads)]);
    let (barrier, boards) = (&barrier, &boards);
    let mut outcomes = Vec::with_capacity(threads);
    std::thread::scope(|scope| {
        let mut workers = partitions
            .iter_mut()
            .enumerate()
            .map(|(own, partition)| (Worker { own, barrier, boards, task }, partition));
        let first = workers.next();
        let others: Vec<_> =
            workers.map(|(worker, partition)| scope.spawn(move || worker.run(partition))).collect();
        if let Some((worker, partition)) = first {
            outcomes.push(worker.run(partition));
        }
        for thread in others {
            match thread.join() {
                Ok(outcome) => outcomes.push(outcome),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    outcomes.swap_remove(0)
}

/// A board on which the threads show one another what they ask for, before a barrier.
struct Board<M: Model> {
    /// By thread: the first window that it asks for; [`u64::MAX`]: none.
    next: Vec<AtomicU64>,
    /// By thread: events that it has handled since threads began.
    handled: Vec<AtomicU64>,
    /// `[to * threads + from]`.
    mail: Vec<Mutex<Letters<M::Payload, M::Note>>>,
    /// Whether the run is interrupted.
    stop: AtomicBool,
}

/// The content of a board after the barrier, the same to all threads.
struct Reading {
    /// The next window; `None`: nothing is pending.
    window: Option<u64>,
    /// Events that all threads have handled.
    handled: u64,
    stopped: bool,
}

impl<M: Model> Board<M> {
    fn new(threads: usize) -> Board<M> {
        Board {
            next: (0..threads).map(|_| AtomicU64::new(u64::MAX)).collect(),
            handled: (0..threads).map(|_| AtomicU64::new(0)).collect(),
            mail: std::iter::repeat_with(Mutex::default).take(threads * threads).collect(),
            stop: AtomicBool::new(false),
        }
    }

    /// Publishes what the thread `own` asks for and has handled, and leaves its mail.
    fn publish(&self, own: usize, partition: &mut Partition<M>, windows: Windows, handled: u64) {
        let pending = &mut partition.pending;
        let first = pending.next_window().unwrap_or(u64::MAX);
        let mailed = std::mem::replace(&mut pending.mail_earliest, Time::NEVER);
        let first = if mailed == Time::NEVER { first } else { first.min(windows.of(mailed)) };
        self.next[own].store(first, Ordering::Relaxed);
        self.handled[own].store(handled, Ordering::Relaxed);
        for (to, letters) in pending.mail.iter_mut().enumerate() {
            if !letters.is_empty() {
                std::mem::swap(letters, &mut lock(&self.mail[to * self.next.len() + own]));
            }
        }
    }

    /// Takes the mail for the thread `own`.
    fn take_mail(&self, own: usize, partition: &mut Partition<M>) {
        let threads = self.next.len();
        for letters in &self.mail[own * threads..(own + 1) * threads] {
            partition.pending.take_over(&mut lock(letters));
        }
    }

    fn read(&self) -> Reading {
        let window = self.next.iter().map(|next| next.load(Ordering::Relaxed)).min();
        Reading {
            window: window.filter(|&window| window != u64::MAX),
            handled: self.handled.iter().map(|handled| handled.load(Ordering::Relaxed)).sum(),
            stopped: self.stop.load(Ordering::Relaxed),
        }
    }
}

/// The thread of one partition.
struct Worker<'a, M: Model> {
    own: usize,
    barrier: &'a SpinBarrier,
    boards: &'a [Board<M>; 2],
    task: &'a Task<'a, M>,
}

impl<M: Model> Worker<'_, M> {
    fn run(&self, partition: &mut Partition<M>) -> (StretchOutcome, Time) {
        let Worker { own, barrier, boards, task: &Task { model, windows, until, interrupt } } = *self;
        let _guard = barrier.guard();
        let mut reached = Time::ZERO;
        let (before, mut handled_before) = (partition.events_handled, 0);
        let mut round = 0u64;
        loop {
            let board = &boards[round as usize % 2];
            let handled = partition.events_handled - before;
            board.publish(own, partition, windows, handled);
            if own == 0 && interrupt.load(Ordering::Relaxed) {
                board.stop.store(true, Ordering::Relaxed);
            }
            barrier.wait();
            board.take_mail(own, partition);
            let Reading { window, handled, stopped } = board.read();
            let Some(window) = window else { return (StretchOutcome::Ended(Progress::Dry), reached) };
            if windows.start(window) >= until || reached >= until {
                return (StretchOutcome::Ended(Progress::Reached), reached);
            }
            if stopped {
                return (StretchOutcome::Ended(Progress::Interrupted), reached);
            }
            if round > 0 && round.is_multiple_of(WINDOWS_PER_STRETCH) {
                if StretchOutcome::of(handled - handled_before, boards[0].next.len()) == StretchOutcome::Idle
                {
                    return (StretchOutcome::Idle, reached);
                }
                handled_before = handled;
            }
            partition.run_window(model, window, windows, until);
            reached = windows.start(window + 1).min(until);
            round += 1;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("a thread that panics breaks the barrier before another takes its locks")
}
