//! VEF, the trace format of VEF-TraceLIB and SAURON: a header, communicators, and a line for each message and
//! for each task's part of a collective.
//!
//! ```text
//!   VEF3 2 1 1 1 2 FALSE          2 tasks, 1 message, 1 communicator, 1 collective of 2 tasks
//!   C0 0 1
//!   0 0 1 64 0 500 -1             message 0 from 0 to 1: 64 bytes, 500 ns after the start
//!   G0 0 2 0 8 8 1 20 0           allreduce of task 0: 20 ns after message 0 was sent
//!   G0 0 2 1 8 8 2 10 0           of task 1: 10 ns after message 0 was received
//!
//!   text ── line.rs ──▶ file.rs ──▶ split.rs, by task ──▶ task.rs ──▶ streams, kept by graph/spool.rs
//!   Op ──▶ writer.rs, a record list for each rank ──▶ merge.rs ──▶ text
//! ```
//! A task is one process. Its records are done in the order of the file as far as that says nothing else than
//! their dependencies (task.rs). Receives are implicit: they are posted at the start of the first stream.
//!
//! # Source
//! `src/TraceManager.h` of VEF-TraceLIB (Universities of Castilla-La Mancha and Valencia), as the open
//! simulator Taz repeats it in `src/simulate/parsers/VEFParser.hpp`.
//!
//! # Not modelled
//! The extensions for data centres, and self-related traces: their syntax is not public. The parts that
//! VEF-Prospector leaves for each task (`VEFT`), whose layout is not public either.

mod collectives;
mod communicators;
mod file;
mod line;
mod merge;
mod order;
mod split;
mod task;
mod writer;

use crate::error::{FilePlace, TraceError};
use crate::format::{Format, OpenTrace, WrittenAs};
use crate::graph::spool_streams;
use crate::input::Input;
use std::path::Path;
use std::sync::Arc;

/// The format.
pub(crate) const FORMAT: Format = Format {
    name: "vef",
    knows: |path, head| head.starts_with(b"VEF") || is_part(path) || path.join(PARTS).exists(),
    open: |path, _| open_file(path),
    open_bytes: |name, bytes, _| open(Input::memory(name, bytes)),
    writing: Some(WrittenAs {
        extension: "vef",
        create: |path, header, _| Ok(Box::new(writer::RecordWriter::create(path, header)?)),
    }),
};

/// The first of the files that VEF-Prospector leaves of a run.
const PARTS: &str = "VEFT.main";

/// Largest message: a pebibyte.
const MAX_BYTES: u64 = crate::weft::MAX_BYTES;

/// Whether a file is one of those that VEF-Prospector leaves of a run, by its name.
fn is_part(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"VEFT"))
}

fn open_file(path: &Path) -> OpenTrace {
    if is_part(path) || path.is_dir() {
        return Err(parts_of_tasks(&path.display().to_string()));
    }
    open(Input::open(path)?)
}

fn open(input: Input) -> OpenTrace {
    let input = Arc::new(input);
    let mut head = [0; 4];
    if input.len() >= 4 {
        input.read_at(&mut head, 0)?;
    }
    if &head == b"VEFT" {
        return Err(parts_of_tasks(input.name()));
    }
    Ok(Arc::new(spool_streams(file::VefFile::read(input)?)?))
}

fn parts_of_tasks(file: &str) -> TraceError {
    let reason = "VEFT: a part of a trace, for one task, in a layout that is not public; \
                  mix the parts with vef_mixer -i VEFT.main -o NAME.vef, and name that file";
    TraceError::Foreign { file: file.to_owned(), place: FilePlace::Byte(0), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests;
