//! The waves of an endpoint's blocks: their ports, as a VCD file.

use crate::library::{Instance, RtlPort};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use weft_units::{Clock, EndpointId};

/// A port in the file.
struct Signal {
    port: RtlPort,
    code: String,
    /// The value that was written last.
    last: Option<u128>,
}

/// The file, while it is written.
pub(crate) struct Waves {
    path: PathBuf,
    clock: Clock,
    /// The endpoint whose blocks are written, when it is known.
    pub endpoint: Option<EndpointId>,
    /// By block.
    signals: BTreeMap<&'static str, Vec<Signal>>,
    file: BufWriter<File>,
    /// The cycle that was written last.
    cycle: Option<u64>,
    /// The first error: it is told at the end.
    failed: Option<io::Error>,
}

impl Waves {
    /// Begins a file; the blocks come with [`Waves::declare`].
    pub fn create(path: &Path, clock: Clock) -> io::Result<Waves> {
        let file = BufWriter::new(File::create(path)?);
        let (path, signals) = (path.to_path_buf(), BTreeMap::new());
        Ok(Waves { path, clock, endpoint: None, signals, file, cycle: None, failed: None })
    }

    /// Writes what the file is of: the blocks of an endpoint.
    pub fn declare(&mut self, endpoint: EndpointId, name: &str, blocks: &[(&'static str, &Instance)]) {
        self.endpoint = Some(endpoint);
        let mut text = format!("$timescale 1ps $end\n$scope module {name} $end\n");
        let mut count = 0;
        for &(block, rtl) in blocks {
            // A file of one's own: what cannot be written is seen at the end.
            let _ = writeln!(text, "$scope module {block} $end");
            let signals = rtl.ports().map(|(name, port)| {
                let code = code(count);
                count += 1;
                let _ = writeln!(text, "$var wire {} {code} {name} $end", port.bits);
                Signal { port, code, last: None }
            });
            self.signals.insert(block, signals.collect());
            text.push_str("$upscope $end\n");
        }
        text.push_str("$upscope $end\n$enddefinitions $end\n");
        self.write(&text);
    }

    /// Writes what has changed in a cycle of a block.
    pub fn sample(&mut self, block: &str, rtl: &Instance, cycle: u64) {
        let Some(signals) = self.signals.get_mut(block) else { return };
        let mut text = String::new();
        if self.cycle != Some(cycle) {
            self.cycle = Some(cycle);
            let _ = writeln!(text, "#{}", self.clock.edge(cycle).as_ps());
        }
        for signal in signals {
            let value = rtl.get(signal.port);
            if signal.last.replace(value) != Some(value) {
                let _ = match signal.port.bits {
                    1 => writeln!(text, "{value}{}", signal.code),
                    _ => writeln!(text, "b{value:b} {}", signal.code),
                };
            }
        }
        self.write(&text);
    }

    fn write(&mut self, text: &str) {
        if self.failed.is_none() {
            self.failed = self.file.write_all(text.as_bytes()).err();
        }
    }

    /// Ends the file.
    ///
    /// # Errors
    /// It could not be written.
    pub fn finish(mut self) -> Result<(), (PathBuf, io::Error)> {
        let error = self.failed.take().or_else(|| self.file.flush().err());
        error.map_or(Ok(()), |error| Err((self.path, error)))
    }
}

/// The short name of a signal in the file: digits of the printable characters.
fn code(mut number: usize) -> String {
    let mut code = String::new();
    loop {
        code.push(char::from(b'!' + (number % 94) as u8));
        number /= 94;
        if number == 0 {
            return code;
        }
    }
}
