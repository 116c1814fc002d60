//! Waves as VCD, the text of IEEE 1364.

use super::WaveFile;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use weft_units::Time;

/// The file.
pub(super) struct Vcd {
    file: BufWriter<File>,
    declared: usize,
}

impl Vcd {
    pub fn create(path: &Path) -> io::Result<Vcd> {
        let mut file = BufWriter::new(File::create(path)?);
        writeln!(file, "$timescale 1ps $end")?;
        Ok(Vcd { file, declared: 0 })
    }
}

impl WaveFile for Vcd {
    fn begin_module(&mut self, name: &str) -> io::Result<()> {
        writeln!(self.file, "$scope module {name} $end")
    }

    fn end_module(&mut self) -> io::Result<()> {
        writeln!(self.file, "$upscope $end")
    }

    fn declare(&mut self, name: &str, bits: u32) -> io::Result<()> {
        let code = code(self.declared);
        self.declared += 1;
        writeln!(self.file, "$var wire {bits} {code} {name} $end")
    }

    fn end_declarations(&mut self) -> io::Result<()> {
        writeln!(self.file, "$enddefinitions $end")
    }

    fn time(&mut self, time: Time) -> io::Result<()> {
        writeln!(self.file, "#{}", time.as_ps())
    }

    fn change(&mut self, signal: usize, bits: u32, value: u128) -> io::Result<()> {
        let code = code(signal);
        match bits {
            1 => writeln!(self.file, "{value}{code}"),
            _ => writeln!(self.file, "b{value:b} {code}"),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The short name of a signal: digits of the printable characters.
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
