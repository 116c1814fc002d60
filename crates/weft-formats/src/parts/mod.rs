//! The parts of a recording: one append-only binary file per rank, written by the MPI recorder while the
//! program runs, and their conversion to one trace file.
//!
//! ```text
//! OUT.parts/rank-00000.part   "weftpart" | version, rank, size, … | record | record | … | end record
//!          /rank-00001.part                                         tag, numbers       or zeros: interrupted
//! ```
//!
//! A record is a tag byte and numbers (LEB128); recorder/PARTS.md describes them all. What lies
//! behind the last whole record is zero or missing, so a part can be read at any time, also while it is
//! written. Parts hold the addresses of the process; what is read from them has those of the trace
//! ([`weft_trace::AddressSpace`]).

mod memory;
mod part;
mod record;
mod source;

pub use part::{PartEnd, PartHeader, PartReader, ThreadLevel};

use crate::{TraceError, TraceHeader, TraceMetadata, TraceWriter};
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use weft_trace::op::Op;
use weft_units::RankId;

/// The version of the parts that is read.
pub const PARTS_VERSION: u32 = 3;

/// Why parts cannot be read or converted.
#[derive(Debug, thiserror::Error)]
pub enum PartsError {
    /// A part or the folder cannot be opened or read.
    #[error("{}: cannot be read: {source}", .path.display())]
    Read {
        /// The part or the folder.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The folder holds no parts.
    #[error("{}: holds no parts of a recording (rank-00000.part and so on)", .path.display())]
    NoParts {
        /// The folder.
        path: PathBuf,
    },
    /// Every part in the folder was stopped within its header, for which there was no room.
    #[error("{}: the parts hold nothing: there was no room for them; record where there is", .path.display())]
    NoRoom {
        /// The folder.
        path: PathBuf,
    },
    /// Not a part, or one of another version.
    #[error("{}: {reason}", .path.display())]
    Header {
        /// The part.
        path: PathBuf,
        /// The fault in the header, and the mend.
        reason: String,
    },
    /// A record makes no sense.
    #[error("{}: byte {offset}: {reason}; the part is damaged, record again", .path.display())]
    Record {
        /// The part.
        path: PathBuf,
        /// The first byte of the record.
        offset: u64,
        /// The fault in the record.
        reason: String,
    },
    /// The trace cannot be written.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// A folder of parts: a recording that is not finished, or was not converted.
#[derive(Clone, Debug)]
pub struct Parts {
    folder: PathBuf,
    /// Header of each rank; `None`: its part is missing or was stopped within its header.
    headers: Vec<Option<PartHeader>>,
    /// Parts that were stopped within their headers.
    headless: u32,
}

/// The outcome of reading all parts to their ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartsRead {
    /// The header of the whole.
    pub header: TraceHeader,
    /// Ranks whose recording ended before they did, as there was no room for it.
    pub without_room: u32,
}

/// Parts that became a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Converted {
    /// Summary of the trace.
    pub metadata: TraceMetadata,
    /// As in [`PartsRead`].
    pub without_room: u32,
}

impl Parts {
    /// Opens the folder and reads the header of every part in it. Files of other names are left alone.
    pub fn open(folder: impl AsRef<Path>) -> Result<Parts, PartsError> {
        let folder = folder.as_ref();
        let read = |source| PartsError::Read { path: folder.into(), source };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(read)? {
            let name = entry.map_err(read)?.file_name();
            if let Some(rank) = name.to_str().and_then(rank_of_file) {
                files.push((rank, folder.join(name)));
            }
        }
        files.sort();
        let mut headers: Vec<Option<PartHeader>> = Vec::new();
        let mut headless = 0;
        for (rank, path) in files {
            let header = match PartReader::open(&path) {
                Ok(part) => part.header().clone(),
                Err(PartsError::Header { reason, .. }) if reason.starts_with("ends within") => {
                    headless += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            if headers.is_empty() {
                headers = vec![None; header.size as usize];
            }
            if header.rank.0 != rank || header.size as usize != headers.len() {
                let reason = format!(
                    "is of rank {} of {}, not of rank {rank} of {}: \
                     parts of two recordings are mixed; record again",
                    header.rank.0,
                    header.size,
                    headers.len()
                );
                return Err(PartsError::Header { path, reason });
            }
            headers[rank as usize] = Some(header);
        }
        let path = folder.into();
        match (headers.is_empty(), headless) {
            (true, 0) => Err(PartsError::NoParts { path }),
            (true, _) => Err(PartsError::NoRoom { path }),
            (false, _) => Ok(Parts { folder: path, headers, headless }),
        }
    }

    /// Ranks of the world.
    pub fn ranks(&self) -> u32 {
        self.headers.len() as u32
    }

    /// Header of a rank's part; `None` if the part is missing.
    pub fn header(&self, rank: RankId) -> Option<&PartHeader> {
        self.headers.get(rank.index())?.as_ref()
    }

    /// The operations of a rank; `None` if its part is missing.
    pub fn rank(&self, rank: RankId) -> Result<Option<PartReader<BufReader<File>>>, PartsError> {
        match self.header(rank) {
            Some(_) => PartReader::open(self.folder.join(format!("rank-{:05}.part", rank.0))).map(Some),
            None => Ok(None),
        }
    }

    /// The header of the trace that these parts make, without what only reading them to the end tells
    /// (`unrecorded`, `interrupted`).
    pub fn trace_header(&self) -> TraceHeader {
        let first = self.headers.iter().flatten().next();
        TraceHeader {
            ranks: self.ranks(),
            command: first.map(|part| part.command.clone()).unwrap_or_default(),
            recorder: format!("weft-record {}", env!("CARGO_PKG_VERSION")),
            mpi_library: first.map(|part| part.mpi_library.clone()).unwrap_or_default(),
            mpi_version: first
                .map(|part| format!("{}.{}", part.mpi_version.0, part.mpi_version.1))
                .unwrap_or_default(),
            ..TraceHeader::default()
        }
    }

    /// Reads all parts to their ends, rank by rank. A rank whose part is missing has no operations, and the
    /// recording counts as interrupted, as it does where a part ends neither with MPI_Finalize nor with the
    /// end of the process.
    pub fn read(
        &self,
        mut visit: impl FnMut(PartEvent) -> Result<(), PartsError>,
    ) -> Result<PartsRead, PartsError> {
        let mut header = self.trace_header();
        let mut without_room = self.headless;
        for rank in (0..self.ranks()).map(RankId) {
            visit(PartEvent::Rank(rank))?;
            let Some(mut part) = self.rank(rank)? else {
                header.interrupted = true;
                continue;
            };
            for op in &mut part {
                visit(PartEvent::Op(op?))?;
            }
            header.interrupted |= !matches!(part.end(), Some(PartEnd::Finalized | PartEnd::Exited));
            without_room += u32::from(part.end() == Some(PartEnd::NoRoom));
            for (name, count) in part.unrecorded() {
                *header.unrecorded.entry(name.clone()).or_default() += count;
            }
        }
        Ok(PartsRead { header, without_room })
    }

    /// Writes the parts as one trace file. `complete` may set what the parts do not know (cores of the host,
    /// date).
    pub fn convert(
        &self,
        path: impl AsRef<Path>,
        complete: impl FnOnce(&mut TraceHeader),
    ) -> Result<Converted, PartsError> {
        let mut writer = TraceWriter::create(path, self.trace_header())?;
        let PartsRead { mut header, without_room } = self.read(|event| match event {
            PartEvent::Rank(rank) => Ok(writer.begin_rank(rank)?),
            PartEvent::Op(op) => Ok(writer.push(&op)?),
        })?;
        complete(&mut header);
        *writer.header_mut() = header;
        Ok(Converted { metadata: writer.finish()?, without_room })
    }
}

/// An event of [`Parts::read`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PartEvent {
    /// The operations of this rank follow.
    Rank(RankId),
    /// The next operation of the rank.
    Op(Op),
}

/// The rank in a part's file name.
fn rank_of_file(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("rank-")?.strip_suffix(".part")?;
    if digits.len() < 5 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::part::tests::{ALL, header_bytes};
    use super::*;
    use crate::Trace;

    /// Catches a conversion that loses ranks, the mark of an interruption, or the unrecorded calls.
    #[test]
    fn a_folder_becomes_one_trace() {
        let folder = tempfile::tempdir().unwrap();
        let parts = folder.path().join("x.parts");
        std::fs::create_dir(&parts).unwrap();
        std::fs::write(parts.join("rank-00000.part"), [header_bytes(0, 3), ALL[..10].concat()].concat())
            .unwrap();
        std::fs::write(
            parts.join("rank-00002.part"),
            [header_bytes(2, 3), ALL[0].to_vec(), vec![19, 2]].concat(),
        )
        .unwrap();
        std::fs::write(parts.join("notes.txt"), "x").unwrap();
        // Ranks of the records reach to 3: a world of 3 refuses them.
        let error = Parts::open(&parts).unwrap().convert(folder.path().join("x.weft"), |_| {}).unwrap_err();
        assert!(matches!(error, PartsError::Record { .. }), "{error}");
        assert!(!folder.path().join("x.weft").exists());

        for (rank, records) in [(0, [ALL[0], ALL[7], ALL[8]].concat()), (2, [ALL[0], &[19, 2]].concat())] {
            let bytes = [header_bytes(rank, 3), records].concat();
            std::fs::write(parts.join(format!("rank-{rank:05}.part")), bytes).unwrap();
        }
        let path = folder.path().join("x.weft");
        let Converted { metadata, without_room } =
            Parts::open(&parts).unwrap().convert(&path, |header| header.host_cores = Some(2)).unwrap();
        assert_eq!(without_room, 0);
        assert_eq!(metadata.rank_operations, [1, 0, 1]);
        assert!(metadata.header.interrupted);
        assert_eq!(metadata.header.unrecorded["foo"], 1);
        assert_eq!(metadata.header.mpi_version, "4.1");
        assert_eq!(Trace::open(&path).unwrap().metadata(), &metadata);
    }

    /// Catches a full disk that is taken for a program without MPI, or for one that was killed.
    #[test]
    fn parts_without_room_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let part = |rank: u32, bytes: Vec<u8>| {
            std::fs::write(folder.path().join(format!("rank-{rank:05}.part")), bytes).unwrap();
        };
        part(1, Vec::new());
        assert!(matches!(Parts::open(folder.path()), Err(PartsError::NoRoom { .. })));
        part(0, [header_bytes(0, 3), ALL[0].to_vec(), vec![19, 4]].concat());
        part(2, [header_bytes(2, 3), vec![19, 1]].concat());
        let read = Parts::open(folder.path()).unwrap().read(|_| Ok(())).unwrap();
        assert_eq!((read.without_room, read.header.interrupted), (2, true));
    }

    #[test]
    fn parts_of_two_recordings_are_not_mixed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("rank-00000.part"), header_bytes(0, 2)).unwrap();
        std::fs::write(folder.path().join("rank-00001.part"), header_bytes(1, 3)).unwrap();
        assert!(matches!(Parts::open(folder.path()), Err(PartsError::Header { .. })));
        let empty = tempfile::tempdir().unwrap();
        assert!(matches!(Parts::open(empty.path()), Err(PartsError::NoParts { .. })));
    }
}
