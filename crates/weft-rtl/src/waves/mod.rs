//! The waves of an endpoint's blocks: their ports, as a VCD or FST file.

mod fst;
mod vcd;

use crate::library::{Instance, RtlPort};
use fst::Fst;
use std::collections::BTreeMap;
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

/// A port in the file.
struct Signal {
    number: usize,
    port: RtlPort,
    /// The value that was written last.
    last: Option<u128>,
}

/// The waves of a run. They have their name when they are whole.
pub(crate) struct Waves {
    path: PathBuf,
    part: PathBuf,
    clock: Clock,
    window: WaveWindow,
    /// The endpoint whose blocks are written, when it is known, and its name.
    endpoint: Option<(EndpointId, String)>,
    /// By block.
    signals: BTreeMap<&'static str, Vec<Signal>>,
    file: Box<dyn WaveFile>,
    /// The cycle that was written last.
    cycle: Option<u64>,
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
        let file_error = |error| WavesError::File { path: path.to_path_buf(), error };
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let file: Box<dyn WaveFile> = match path.extension().and_then(|extension| extension.to_str()) {
            Some("vcd") => Box::new(Vcd::create(&part).map_err(file_error)?),
            Some("fst") => Box::new(Fst::create(&part).map_err(file_error)?),
            _ => return Err(WavesError::Format(path.to_path_buf())),
        };
        let (path, signals) = (path.to_path_buf(), BTreeMap::new());
        Ok(Waves { path, part, clock, window, endpoint: None, signals, file, cycle: None, failed: None })
    }

    /// The endpoint whose blocks are written, when it is known.
    pub fn endpoint(&self) -> Option<EndpointId> {
        self.endpoint.as_ref().map(|(endpoint, _)| *endpoint)
    }

    /// Writes what the file is of: the blocks of an endpoint.
    pub fn declare(&mut self, endpoint: EndpointId, name: &str, blocks: &[(&'static str, &Instance)]) {
        self.endpoint = Some((endpoint, name.to_owned()));
        let declared = self.write_declarations(name, blocks);
        self.failed = self.failed.take().or(declared.err());
    }

    fn write_declarations(&mut self, name: &str, blocks: &[(&'static str, &Instance)]) -> io::Result<()> {
        let mut count = 0;
        self.file.begin_module(name)?;
        for &(block, rtl) in blocks {
            self.file.begin_module(block)?;
            let signals = self.signals.entry(block).or_default();
            for (name, port) in rtl.ports() {
                for lane in port.lanes() {
                    // A bus of more words is told word by word.
                    let low = 64 * (lane.word - port.word);
                    let name = if lane == port { name.to_owned() } else { format!("{name}_{low}") };
                    self.file.declare(&name, lane.bits)?;
                    signals.push(Signal { number: count, port: lane, last: None });
                    count += 1;
                }
            }
            self.file.end_module()?;
        }
        self.file.end_module()?;
        self.file.end_declarations()
    }

    /// Writes what has changed in a cycle of a block.
    pub fn sample(&mut self, block: &str, rtl: &Instance, cycle: u64) {
        let at = self.clock.edge(cycle);
        if self.failed.is_none() && self.window.from <= at && at < self.window.to {
            self.failed = self.write_changes(block, rtl, cycle).err();
        }
    }

    fn write_changes(&mut self, block: &str, rtl: &Instance, cycle: u64) -> io::Result<()> {
        let Some(signals) = self.signals.get_mut(block) else { return Ok(()) };
        if self.cycle.replace(cycle) != Some(cycle) {
            self.file.time(self.clock.edge(cycle))?;
        }
        for Signal { number, port, last } in signals {
            let value = rtl.get(*port);
            if last.replace(value) != Some(value) {
                self.file.change(*number, port.bits, value)?;
            }
        }
        Ok(())
    }

    /// Ends the file of a run that is over at `end`.
    ///
    /// # Errors
    /// It could not be written, or nothing is in it.
    pub fn finish(mut self, end: Time) -> Result<(), WavesError> {
        let finished = match self.failed.take() {
            Some(error) => Err(error),
            None => self.file.finish(),
        };
        let is_empty = self.cycle.is_none();
        let named =
            finished.and_then(|()| if is_empty { Ok(()) } else { fs::rename(&self.part, &self.path) });
        if named.is_err() || is_empty {
            // What is not whole is not left.
            let _ = fs::remove_file(&self.part);
        }
        if let Err(error) = named {
            return Err(WavesError::File { path: self.path, error });
        }
        if !is_empty {
            return Ok(());
        }
        let what = match self.endpoint {
            Some((_, name)) => format!("nothing happens at {name}"),
            None => "nothing happens at an endpoint with RTL".to_owned(),
        };
        let WaveWindow { from, to } = self.window;
        let window = match to {
            Time::NEVER => format!("from {from} on"),
            to => format!("from {from} to {to}"),
        };
        Err(WavesError::Empty { what, window, end })
    }
}
