//! The waves of an endpoint's blocks: their ports, as a VCD or FST file.
//!
//! ```text
//!   ports ── each cycle ──► RecentChanges of a block ─┬─ in order of cycles ──► Waves of the first endpoint
//!                                                     └─ at a difference ─────► Waves of its endpoint
//! ```

mod fst;
mod recent;
mod vcd;

pub(crate) use recent::RecentChanges;

use crate::difference::Difference;
use crate::library::Instance;
use fst::Fst;
use recent::{Change, signals};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{fs, io};
use vcd::Vcd;
use weft_units::{Clock, EndpointId, Time};

/// The time of which waves are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaveWindow {
    /// The begin.
    pub from: Time,
    /// The end, which does not belong to it.
    pub to: Time,
}

impl Default for WaveWindow {
    fn default() -> WaveWindow {
        WaveWindow { from: Time::ZERO, to: Time::NEVER }
    }
}

/// Waves that cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WavesError {
    /// A file that is none of those that are known.
    #[error("--waves {}: waves are written as VCD or FST; name a file .vcd or .fst", .0.display())]
    Format(PathBuf),
    /// The file cannot be written.
    #[error("--waves {}: {error}; name a file that can be written", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// A pipe, a device or a folder: a file gets its name when it is whole.
    #[error("--waves {}: it is there and no plain file; name a new file .vcd or .fst", .0.display())]
    NoPlainFile(PathBuf),
    /// A window without time in it.
    #[error("--waves-from {from} is not before --waves-to {to}; take times in their order")]
    NoTime {
        /// The begin.
        from: Time,
        /// The end.
        to: Time,
    },
    /// Nothing has happened in the window.
    #[error(
        "--waves: {what} {window}, and the run is over at {end}; take other times with --waves-from and \
         --waves-to, or another endpoint with --rtl-at"
    )]
    Empty {
        /// The thing that was not found.
        what: String,
        /// The window, in words.
        window: String,
        /// The end of the run.
        end: Time,
    },
}

/// A file of waves, while it is written.
trait WaveFile: Send {
    /// Begins a module within the present one.
    fn begin_module(&mut self, name: &str) -> io::Result<()>;

    /// Ends the present module.
    fn end_module(&mut self) -> io::Result<()>;

    /// A signal of the present module. Signals are numbered in their order, from 0.
    fn declare(&mut self, name: &str, bits: u32) -> io::Result<()>;

    /// All is declared: values follow.
    fn end_declarations(&mut self) -> io::Result<()>;

    /// The time of the changes that follow.
    fn time(&mut self, time: Time) -> io::Result<()>;

    /// A signal changes.
    fn change(&mut self, signal: usize, bits: u32, value: u128) -> io::Result<()>;

    /// Ends the file.
    fn finish(&mut self) -> io::Result<()>;
}

/// A block of the endpoint whose waves are written.
pub(crate) struct WavesOfBlock<'a> {
    pub name: &'static str,
    pub rtl: &'a Instance,
    pub recent: &'a RecentChanges,
}

/// Waves that have been written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrittenWaves {
    /// The file.
    pub file: PathBuf,
    /// The first and the last edge of the interface's clock that are in it.
    pub edges: (u64, u64),
}

/// The waves of a run. They have their name when they are whole.
pub(crate) struct Waves {
    path: PathBuf,
    part: PathBuf,
    clock: Clock,
    window: WaveWindow,
    /// The endpoint whose blocks are written, when it is known, and its name.
    endpoint: Option<(EndpointId, String)>,
    /// The number of each block's first signal in the file.
    first_signals: Vec<usize>,
    /// Value and bits of each signal: no value before its block's first cycle.
    values: Vec<(Option<u128>, u32)>,
    file: Box<dyn WaveFile>,
    /// The cycle before which all is written.
    written: u64,
    /// Whether the file has values.
    has_values: bool,
    /// The first and the last cycle of a block in the window.
    cycles: Option<(u64, u64)>,
    /// The first error: it is told at the end.
    failed: Option<io::Error>,
}

impl Waves {
    /// Begins a file; the blocks come with [`Waves::declare`].
    ///
    /// # Errors
    /// Its name says no known format, it cannot be made, or the window has no time in it.
    pub fn create(path: &Path, clock: Clock, window: WaveWindow) -> Result<Waves, WavesError> {
        let WaveWindow { from, to } = window;
        if from >= to {
            return Err(WavesError::NoTime { from, to });
        }
        if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
            return Err(WavesError::NoPlainFile(path.to_path_buf()));
        }
        let file_error = |error| WavesError::File { path: path.to_path_buf(), error };
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let extension = path.extension().map(|extension| extension.to_ascii_lowercase());
        let file: Box<dyn WaveFile> = match extension.as_deref().and_then(OsStr::to_str) {
            Some("vcd") => Box::new(Vcd::create(&part).map_err(file_error)?),
            Some("fst") => Box::new(Fst::create(&part).map_err(file_error)?),
            _ => return Err(WavesError::Format(path.to_path_buf())),
        };
        Ok(Waves {
            path: path.to_path_buf(),
            part,
            clock,
            window,
            endpoint: None,
            first_signals: Vec::new(),
            values: Vec::new(),
            file,
            written: 0,
            has_values: false,
            cycles: None,
            failed: None,
        })
    }

    /// The endpoint whose blocks are written, when it is known.
    pub fn endpoint(&self) -> Option<EndpointId> {
        self.endpoint.as_ref().map(|(endpoint, _)| *endpoint)
    }

    /// Writes what the file is of: the blocks of an endpoint.
    pub fn declare(&mut self, endpoint: EndpointId, name: &str, blocks: &[WavesOfBlock<'_>]) {
        self.endpoint = Some((endpoint, name.to_owned()));
        let declared = self.write_declarations(name, blocks);
        self.failed = self.failed.take().or(declared.err());
    }

    fn write_declarations(&mut self, name: &str, blocks: &[WavesOfBlock<'_>]) -> io::Result<()> {
        self.file.begin_module(name)?;
        for block in blocks {
            self.file.begin_module(block.name)?;
            self.first_signals.push(self.values.len());
            for signal in signals(block.rtl) {
                self.file.declare(&signal.name, signal.port.bits)?;
                self.values.push((None, signal.port.bits));
            }
            self.file.end_module()?;
        }
        self.file.end_module()?;
        self.file.end_declarations()
    }

    /// Hears of a cycle of a block.
    pub fn step(&mut self, cycle: u64) {
        if self.has_in_window(cycle) {
            let (first, last) = self.cycles.unwrap_or((cycle, cycle));
            self.cycles = Some((first.min(cycle), last.max(cycle)));
        }
    }

    fn has_in_window(&self, cycle: u64) -> bool {
        let at = self.clock.edge(cycle);
        self.window.from <= at && at < self.window.to
    }

    /// Writes what the blocks of the endpoint have kept of cycles before one, which they have all passed.
    pub fn write(&mut self, blocks: &[WavesOfBlock<'_>], before: u64) {
        let mut changes = Vec::new();
        for (block, first) in blocks.iter().zip(&self.first_signals) {
            let of_file = |change: Change| Change { signal: first + change.signal, ..change };
            changes.extend(block.recent.between(self.written, before).map(of_file));
        }
        self.written = self.written.max(before);
        self.put(changes);
    }

    /// Writes changes of the file's signals.
    fn put(&mut self, mut changes: Vec<Change>) {
        changes.sort_by_key(|change| change.cycle);
        for of_cycle in changes.chunk_by(|one, other| one.cycle == other.cycle) {
            if self.failed.is_none() {
                self.failed = self.write_cycle(of_cycle[0].cycle, of_cycle).err();
            }
        }
    }

    fn write_cycle(&mut self, cycle: u64, changes: &[Change]) -> io::Result<()> {
        // Blocks have had cycles without a change before.
        if let Some((first, _)) = self.cycles.filter(|(first, _)| *first < cycle) {
            self.write_all_values(first)?;
        }
        for change in changes {
            self.values[change.signal].0 = Some(change.value);
        }
        if !self.has_in_window(cycle) {
            return Ok(());
        }
        if !self.has_values {
            return self.write_all_values(cycle);
        }
        self.file.time(self.clock.edge(cycle))?;
        let changed: BTreeSet<usize> = changes.iter().map(|change| change.signal).collect();
        changed.into_iter().try_for_each(|signal| self.write_value(signal))
    }

    /// Writes the values with which the window begins, if they are not written.
    fn write_all_values(&mut self, cycle: u64) -> io::Result<()> {
        if self.has_values {
            return Ok(());
        }
        self.has_values = true;
        self.file.time(self.clock.edge(cycle))?;
        (0..self.values.len()).try_for_each(|signal| self.write_value(signal))
    }

    fn write_value(&mut self, signal: usize) -> io::Result<()> {
        let (value, bits) = self.values[signal];
        value.map_or(Ok(()), |value| self.file.change(signal, bits, value))
    }

    /// Ends the file of a run that is over at `end`.
    ///
    /// # Errors
    /// It could not be written, or nothing is in it.
    pub fn finish(mut self, end: Time) -> Result<WrittenWaves, WavesError> {
        let finished = match self.failed.take() {
            Some(error) => Err(error),
            None => self.write_end(),
        };
        let named = finished.and_then(|edges| {
            let written = edges.map(|edges| WrittenWaves { file: self.path.clone(), edges });
            written.map(|written| fs::rename(&self.part, &self.path).map(|()| written)).transpose()
        });
        if !matches!(named, Ok(Some(_))) {
            // What is not whole is not left.
            let _ = fs::remove_file(&self.part);
        }
        let file_error = |error| WavesError::File { path: self.path.clone(), error };
        named.map_err(file_error)?.ok_or_else(|| self.empty(end))
    }

    /// Ends what is written, and returns its first and last cycle, if it has any.
    fn write_end(&mut self) -> io::Result<Option<(u64, u64)>> {
        if let Some((first, last)) = self.cycles {
            self.write_all_values(first)?;
            // The last cycle is as long as any.
            self.file.time(self.clock.edge(last + 1).min(self.window.to))?;
        }
        self.file.finish()?;
        Ok(self.cycles)
    }

    fn empty(&self, end: Time) -> WavesError {
        let what = match &self.endpoint {
            Some((_, name)) => format!("nothing happens at {name}"),
            None => "nothing happens at an endpoint with RTL".to_owned(),
        };
        let WaveWindow { from, to } = self.window;
        let window = match to {
            Time::NEVER => format!("from {from} on"),
            to => format!("from {from} to {to}"),
        };
        WavesError::Empty { what, window, end }
    }

    /// Ends the file of a run that has found a difference, which is over at `end`: with the waves of its
    /// endpoint around it alone, where the file has not had them.
    ///
    /// # Errors
    /// It could not be written.
    pub fn finish_with(
        self,
        difference: &Difference,
        name: &str,
        blocks: &[WavesOfBlock<'_>],
        end: Time,
    ) -> Result<WrittenWaves, WavesError> {
        if self.endpoint() == Some(difference.endpoint) && self.has_in_window(difference.edge) {
            return self.finish(end);
        }
        let Waves { path, clock, file, .. } = self;
        // Nothing of it comes into the file that takes its place.
        drop(file);
        let whole_from = blocks.iter().map(|block| block.recent.whole_from());
        let from = whole_from.filter(|cycle| *cycle <= difference.edge).max().unwrap_or_default();
        let window = WaveWindow { from: clock.edge(from), to: Time::NEVER };
        let mut waves = Waves::create(&path, clock, window)?;
        waves.declare(difference.endpoint, name, blocks);
        let mut changes = Vec::new();
        for (block, first) in blocks.iter().zip(&waves.first_signals) {
            let recent = block.recent;
            let kept = recent.values_before(recent.whole_from()).chain(recent.between(0, u64::MAX));
            changes.extend(kept.map(|change| Change { signal: first + change.signal, ..change }));
        }
        changes.iter().for_each(|change| waves.step(change.cycle));
        waves.step(difference.edge);
        waves.put(changes);
        waves.finish(end)
    }
}
