//! A barrier for threads that meet every few microseconds.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A reusable barrier that spins before it yields: `std::sync::Barrier` sleeps at once, which costs
/// more than most windows take.
pub(crate) struct SpinBarrier {
    threads: usize,
    waiting: AtomicUsize,
    generation: AtomicUsize,
    broken: AtomicBool,
}

impl SpinBarrier {
    pub(crate) fn new(threads: usize) -> SpinBarrier {
        SpinBarrier {
            threads,
            waiting: AtomicUsize::new(0),
            generation: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
        }
    }

    /// Waits for all threads. Panics if another thread panicked, since it will never come.
    pub(crate) fn wait(&self) {
        let generation = self.generation.load(Ordering::Acquire);
        if self.waiting.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.waiting.store(0, Ordering::Relaxed);
            self.generation.store(generation.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut spins = 0u32;
        while self.generation.load(Ordering::Acquire) == generation {
            assert!(!self.broken.load(Ordering::Relaxed), "another thread of the simulation panicked");
            spins += 1;
            if spins < 2_000 {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
    }

    /// Breaks the barrier if the returned guard is dropped by a panic.
    pub(crate) fn guard(&self) -> BreakOnPanic<'_> {
        BreakOnPanic(self)
    }
}

pub(crate) struct BreakOnPanic<'a>(&'a SpinBarrier);

impl Drop for BreakOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::Relaxed);
        }
    }
}
