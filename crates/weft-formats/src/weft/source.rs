//! Where the bytes of a trace come from: a file read at given positions, or memory.

use bytes::{Buf, Bytes};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::FileExt;

/// Bytes that many cursors read at once: nothing here has a position.
pub(crate) enum Source {
    File { file: File, len: u64 },
    Memory(Bytes),
}

impl Length for Source {
    fn len(&self) -> u64 {
        match self {
            Source::File { len, .. } => *len,
            Source::Memory(bytes) => bytes.len() as u64,
        }
    }
}

impl ChunkReader for Source {
    type T = bytes::buf::Reader<Bytes>;

    /// The whole rest: used by nothing but the reading of the footer, which is at the end.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        let rest = self.len().saturating_sub(start);
        let rest = usize::try_from(rest).map_err(|error| ParquetError::External(Box::new(error)))?;
        Ok(self.get_bytes(start, rest)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // Checked before anything is allocated: a hostile length must cost nothing.
        let end = start.checked_add(length as u64).filter(|&end| end <= self.len());
        let Some(end) = end else {
            let len = self.len();
            return Err(ParquetError::EOF(format!("{length} bytes at {start} of a file of {len} bytes")));
        };
        match self {
            Source::File { file, .. } => {
                let mut buffer = vec![0; length];
                file.read_exact_at(&mut buffer, start)
                    .map_err(|error| ParquetError::External(Box::new(error)))?;
                Ok(buffer.into())
            }
            Source::Memory(bytes) => Ok(bytes.slice(start as usize..end as usize)),
        }
    }
}

impl Source {
    /// Opens a file. A device or a pipe is refused before it is opened: it may have no end, or nobody may
    /// write.
    pub(crate) fn open(path: &std::path::Path) -> std::io::Result<Source> {
        if !path.metadata()?.is_file() {
            let why = "it is not a regular file; copy what it gives into one";
            return Err(Error::new(ErrorKind::InvalidInput, why));
        }
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        Ok(Source::File { file, len })
    }
}
