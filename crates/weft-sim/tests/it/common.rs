//! Running experiments in tests.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use weft_machine::SHIPPED;
use weft_results::{Existing, Table};
use weft_sim::experiment::{
    Control, Estimate, ExperimentOptions, Interrupt, MachineInput, Output, ProgressListener, Start,
};

/// A machine that ships, with `--set`s.
pub fn machine(name: &str, sets: &[&str]) -> MachineInput {
    let shipped = SHIPPED.iter().find(|shipped| shipped.name == name).unwrap();
    MachineInput {
        name: name.to_owned(),
        text: shipped.text.to_owned(),
        sets: sets.iter().map(|&set| set.to_owned()).collect(),
        files: Default::default(),
    }
}

/// Writes all tables, if there is a directory.
pub fn options(threads: u32, directory: Option<PathBuf>) -> ExperimentOptions {
    let start = Start::Fresh(Existing::Refuse);
    // A run that is saved, and the ideal network, have no table of packets.
    let tables = || Table::named().into_iter().filter(|table| *table != Table::Packets).collect();
    let output = directory.map(|directory| Output { directory, tables: tables(), start });
    ExperimentOptions { threads, output, ..ExperimentOptions::default() }
}

/// Interrupts the run at the given epoch.
pub struct InterruptAt {
    epoch: u32,
    passed: AtomicU32,
    interrupt: Interrupt,
}

impl InterruptAt {
    /// At no epoch: `u32::MAX`.
    pub fn new(epoch: u32) -> InterruptAt {
        InterruptAt { epoch, passed: AtomicU32::new(0), interrupt: Interrupt::default() }
    }

    /// The control of the run.
    pub fn control(&self) -> Control<'_> {
        Control { interrupt: &self.interrupt, progress: self }
    }
}

impl ProgressListener for InterruptAt {
    fn estimate(&self, estimate: Estimate) {
        assert!(estimate.memory_bytes > 0 && estimate.wall_seconds.is_some_and(f64::is_finite));
    }

    fn advance(&self, share: f64, _: &str) {
        assert!((0.0..=1.0).contains(&share), "{share}");
        if self.passed.fetch_add(1, Ordering::Relaxed) + 1 == self.epoch {
            self.interrupt.request();
        }
    }
}
