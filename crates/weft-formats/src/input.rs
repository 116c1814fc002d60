//! The bytes of a file that others wrote: read in order by many cursors at once, a chunk at a time.
//!
//! A file is opened for each chunk and closed again: a run of 65,536 ranks has as many files, and a process
//! may have far fewer open.

use crate::error::{FilePlace, TraceError};
use std::fs::File;
use std::io::{self, Error, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that all cursors of a trace hold together, at most, where their least chunk allows it.
const CURSORS_BYTES: usize = 64 << 20;

/// Bytes that a cursor reads at once: at least, and at most.
const CHUNK_BYTES: Range<usize> = 4 << 10..64 << 10;

/// Longest line that is believed.
const MAX_LINE_BYTES: usize = 16 << 20;

/// A file, or memory that stands for one.
pub(crate) struct Input {
    name: String,
    stored: Stored,
    len: u64,
}

enum Stored {
    Path(PathBuf),
    /// A file without a name.
    Open(File),
    Memory(bytes::Bytes),
}

impl Input {
    /// A file. A device or a pipe is refused: it may have no end.
    pub(crate) fn open(path: &Path) -> Result<Input, TraceError> {
        let name = path.display().to_string();
        let len = path.metadata().and_then(|found| match found.is_file() {
            true => Ok(found.len()),
            false => {
                let why = "it is not a regular file; copy what it gives into one";
                Err(Error::new(ErrorKind::InvalidInput, why))
            }
        });
        match len {
            Ok(len) => Ok(Input { name, stored: Stored::Path(path.to_owned()), len }),
            Err(source) => Err(TraceError::Read { file: name, source }),
        }
    }

    /// Memory; `name` stands for the file in errors.
    pub(crate) fn memory(name: &str, bytes: bytes::Bytes) -> Input {
        Input { name: name.to_owned(), len: bytes.len() as u64, stored: Stored::Memory(bytes) }
    }

    /// A file without a name, of `len` bytes, that stands for the file of this name.
    pub(crate) fn spooled(name: &str, file: File, len: u64) -> Input {
        Input { name: name.to_owned(), stored: Stored::Open(file), len }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The bytes at `offset`, as many as `buffer` holds.
    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), TraceError> {
        let read = match &self.stored {
            Stored::Path(path) => File::open(path).and_then(|file| file.read_exact_at(buffer, offset)),
            Stored::Open(file) => file.read_exact_at(buffer, offset),
            Stored::Memory(bytes) => {
                let range = usize::try_from(offset).ok().map(|at| at..at.saturating_add(buffer.len()));
                match range.and_then(|range| bytes.get(range)) {
                    Some(found) => {
                        buffer.copy_from_slice(found);
                        Ok(())
                    }
                    None => Err(io::ErrorKind::UnexpectedEof.into()),
                }
            }
        };
        read.map_err(|source| TraceError::Read { file: self.name.clone(), source })
    }

    /// An error at a place in it. `reason` ends with the mend.
    pub(crate) fn error(&self, place: FilePlace, reason: impl Into<String>) -> TraceError {
        TraceError::Foreign { file: self.name.clone(), place, reason: reason.into() }
    }
}

/// Bytes that a cursor reads at once, of a trace of so many ranks.
pub(crate) fn chunk_bytes(ranks: u32) -> usize {
    (CURSORS_BYTES / (ranks as usize).max(1)).clamp(CHUNK_BYTES.start, CHUNK_BYTES.end)
}

/// Reads a part of an input from its begin to its end.
pub(crate) struct InputReader {
    input: Arc<Input>,
    buffer: Vec<u8>,
    /// Bytes of the buffer that have been taken.
    taken: usize,
    /// The place in the file behind the buffer.
    next: u64,
    end: u64,
    chunk: usize,
}

impl InputReader {
    /// Reads `range` of a file, `chunk` bytes at a time.
    pub(crate) fn new(input: &Arc<Input>, range: Range<u64>, chunk: usize) -> InputReader {
        let end = range.end.min(input.len());
        InputReader { input: Arc::clone(input), buffer: Vec::new(), taken: 0, next: range.start, end, chunk }
    }

    pub(crate) fn input(&self) -> &Input {
        &self.input
    }

    /// The place of the next byte in the file.
    pub(crate) fn position(&self) -> u64 {
        self.next - (self.buffer.len() - self.taken) as u64
    }

    /// Bytes that are still to come.
    pub(crate) fn rest(&self) -> u64 {
        self.end.saturating_sub(self.position())
    }

    /// Makes the buffer longer by a chunk, or by what there is; says whether there was anything.
    fn refill(&mut self) -> Result<bool, TraceError> {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        let more = self.end.saturating_sub(self.next).min(self.chunk as u64) as usize;
        let held = self.buffer.len();
        self.buffer.resize(held + more, 0);
        let read = self.input.read_at(&mut self.buffer[held..], self.next);
        if read.is_err() {
            self.buffer.truncate(held);
        }
        read?;
        self.next += more as u64;
        Ok(more > 0)
    }

    /// The next `N` bytes.
    #[inline]
    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N], TraceError> {
        while self.buffer.len() - self.taken < N {
            if !self.refill()? {
                let reason = "the file ends within a record; copy it again, or trace the program again";
                return Err(self.input.error(FilePlace::Byte(self.position()), reason));
            }
        }
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.buffer[self.taken..self.taken + N]);
        self.taken += N;
        Ok(bytes)
    }

    /// The next bytes, as many as are asked for: all of them are in memory.
    pub(crate) fn slice(&mut self, bytes: usize) -> Result<&[u8], TraceError> {
        self.has(bytes as u64)?;
        while self.buffer.len() - self.taken < bytes {
            self.refill()?;
        }
        self.taken += bytes;
        Ok(&self.buffer[self.taken - bytes..self.taken])
    }

    /// Whether so many bytes are still to come.
    fn has(&self, bytes: u64) -> Result<(), TraceError> {
        if bytes <= self.rest() {
            return Ok(());
        }
        let reason = format!(
            "{bytes} bytes announced, {} there; copy the file again, or trace the program again",
            self.rest()
        );
        Err(self.input.error(FilePlace::Byte(self.position()), reason))
    }

    /// Passes over bytes.
    pub(crate) fn skip(&mut self, bytes: u64) -> Result<(), TraceError> {
        self.has(bytes)?;
        let held = (self.buffer.len() - self.taken) as u64;
        if bytes <= held {
            self.taken += bytes as usize;
        } else {
            self.next += bytes - held;
            self.buffer.clear();
            self.taken = 0;
        }
        Ok(())
    }

    /// The next line, without its end; `None`: there are no more. An end as on Windows is taken off too.
    pub(crate) fn line(&mut self) -> Result<Option<&[u8]>, TraceError> {
        let mut searched = 0;
        let length = loop {
            let held = &self.buffer[self.taken..];
            if let Some(found) = held[searched..].iter().position(|&byte| byte == b'\n') {
                break searched + found + 1;
            }
            searched = held.len();
            if searched > MAX_LINE_BYTES {
                let reason = "a line of more than 16 MB; is this a text file?";
                return Err(self.input.error(FilePlace::Byte(self.position()), reason));
            }
            if !self.refill()? {
                if searched == 0 {
                    return Ok(None);
                }
                break searched;
            }
        };
        let line = &self.buffer[self.taken..self.taken + length];
        self.taken += length;
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(text: &'static str, chunk: usize) -> InputReader {
        let input = Arc::new(Input::memory("text", text.into()));
        InputReader::new(&input, 0..u64::MAX, chunk)
    }

    /// Catches lines that are lost, split or joined where a chunk ends.
    #[test]
    fn lines_are_whole_whatever_the_chunks() {
        for chunk in 1..12 {
            let mut reader = reader("one\r\n\nthree\nlast", chunk);
            let mut lines = Vec::new();
            while let Some(line) = reader.line().unwrap() {
                lines.push(String::from_utf8(line.to_vec()).unwrap());
            }
            assert_eq!(lines, ["one", "", "three", "last"], "chunks of {chunk}");
            assert_eq!(reader.position(), 16);
        }
    }

    /// Catches a place that is not that of the bytes, and bytes invented behind the end.
    #[test]
    fn bytes_are_taken_and_skipped_by_place() {
        for chunk in 1..12 {
            let mut reader = reader("0123456789", chunk);
            assert_eq!(&reader.take::<3>().unwrap(), b"012");
            reader.skip(4).unwrap();
            assert_eq!((reader.position(), reader.rest()), (7, 3));
            assert_eq!(reader.slice(2).unwrap(), b"78");
            assert!(reader.slice(2).unwrap_err().to_string().contains("byte 9: 2 bytes announced, 1 there"));
            let error = reader.take::<2>().unwrap_err().to_string();
            assert!(error.contains("text: byte 9: the file ends within a record"), "{error}");
            assert!(reader.skip(1 << 40).unwrap_err().to_string().contains("1 there"));
        }
    }
}
