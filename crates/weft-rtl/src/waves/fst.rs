//! Waves as FST, the compressed format of GTKWave, which Surfer reads as well.

use super::WaveFile;
use fst_writer::{
    FstBodyWriter, FstFileType, FstHeaderWriter, FstInfo, FstScopeType, FstSignalId, FstSignalType,
    FstVarDirection, FstVarType, FstWriteError,
};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use weft_units::Time;

/// Bytes of changes that are kept before they are compressed.
const MOST_KEPT_BYTES: usize = 16 << 20;

/// The file: first its declarations, then its values.
pub(super) struct Fst {
    declarations: Option<FstHeaderWriter<BufWriter<File>>>,
    values: Option<FstBodyWriter<BufWriter<File>>>,
    signals: Vec<FstSignalId>,
}

impl Fst {
    pub fn create(path: &Path) -> io::Result<Fst> {
        let info = FstInfo {
            start_time: 0,
            // Picoseconds.
            timescale_exponent: -12,
            version: format!("weft {}", env!("CARGO_PKG_VERSION")),
            // The same run writes the same file.
            date: String::new(),
            file_type: FstFileType::Verilog,
        };
        let declarations = Some(fst_writer::open_fst(path, &info).map_err(io_error)?);
        Ok(Fst { declarations, values: None, signals: Vec::new() })
    }

    fn values(&mut self) -> io::Result<&mut FstBodyWriter<BufWriter<File>>> {
        self.values.as_mut().ok_or_else(out_of_order)
    }
}

fn io_error(error: FstWriteError) -> io::Error {
    match error {
        FstWriteError::Io(error) => error,
        error => io::Error::other(error.to_string()),
    }
}

fn out_of_order() -> io::Error {
    io::Error::other("values come behind declarations")
}

impl WaveFile for Fst {
    fn begin_module(&mut self, name: &str) -> io::Result<()> {
        let declarations = self.declarations.as_mut().ok_or_else(out_of_order)?;
        declarations.scope(name, "", FstScopeType::Module).map_err(io_error)
    }

    fn end_module(&mut self) -> io::Result<()> {
        self.declarations.as_mut().ok_or_else(out_of_order)?.up_scope().map_err(io_error)
    }

    fn declare(&mut self, name: &str, bits: u32) -> io::Result<()> {
        let declarations = self.declarations.as_mut().ok_or_else(out_of_order)?;
        let (kind, way) = (FstVarType::Wire, FstVarDirection::Implicit);
        let signal = declarations.var(name, FstSignalType::bit_vec(bits), kind, way, None);
        self.signals.push(signal.map_err(io_error)?);
        Ok(())
    }

    fn end_declarations(&mut self) -> io::Result<()> {
        let declarations = self.declarations.take().ok_or_else(out_of_order)?;
        self.values = Some(declarations.finish().map_err(io_error)?);
        Ok(())
    }

    fn time(&mut self, time: Time) -> io::Result<()> {
        let values = self.values()?;
        if values.size() > MOST_KEPT_BYTES {
            values.flush().map_err(io_error)?;
        }
        values.time_change(time.as_ps()).map_err(io_error)
    }

    fn change(&mut self, signal: usize, bits: u32, value: u128) -> io::Result<()> {
        let signal = *self.signals.get(signal).ok_or_else(out_of_order)?;
        let digits: Vec<u8> = (0..bits).rev().map(|bit| b'0' + (value >> bit & 1) as u8).collect();
        self.values()?.signal_change(signal, &digits).map_err(io_error)
    }

    fn finish(&mut self) -> io::Result<()> {
        if self.declarations.is_some() {
            self.end_declarations()?;
        }
        if let Some(values) = self.values.take() {
            let file = values.finish().map_err(io_error)?;
            file.into_inner().map_err(io::IntoInnerError::into_error)?;
        }
        Ok(())
    }
}
