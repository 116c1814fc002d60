//! GOAL, the format of LogGOPSim: for each rank a graph of sends, receives and computations.
//!
//! ```text
//!   rank 1 {                               text (text.rs), or
//!   l1: recv 8b from 0 tag 3               binary, as its txt2bin makes it (binary.rs)
//!   l2: calc 500 cpu 1                          │
//!   l2 requires l1                              ▼
//!   }                                      RankGraph ──▶ streams (graph/)
//! ```
//! Both are written: writer.rs makes graphs of operations, text_file.rs and binary_file.rs put them down.
//!
//! # Source
//! `src/LogGOPSim/txt2bin.re` and `Parser.hpp` of LogGOPSim.
//!
//! # Not modelled
//! The network interface that an operation names (`nic`): an endpoint has the interfaces of its machine.
//! Those that name another than 0 are counted.

mod binary;
mod binary_file;
mod tags;
mod text;
mod text_file;
mod writer;

use crate::format::{BegunTrace, Format, FormatReader, OpenTrace, WrittenAs};
use crate::graph::spool;
use crate::header::TraceHeader;
use crate::input::Input;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use weft_units::Span;

/// The format.
pub(crate) const FORMAT: Format = Format {
    name: "goal",
    knows: |_, head| binary::knows(head) || text::knows(head),
    open: |path, _| open(Input::open(path)?),
    open_bytes: |name, bytes, _| open(Input::memory(name, bytes)),
    writing: Some(WrittenAs { extension: "goal", create: |path, header, _| create(path, header, false) }),
};

/// The binary form, where it is written. Both are read as one format.
pub(crate) const BINARY: Format = Format {
    name: "goal-binary",
    knows: |_, _| false,
    writing: Some(WrittenAs { extension: "bin", create: |path, header, _| create(path, header, true) }),
    ..FORMAT
};

/// Largest number of ranks; a larger one is taken for damage.
const MAX_RANKS: u32 = 1 << 24;

/// Most operations of a rank.
const MAX_NODES: usize = 1 << 28;

/// Longest computation in nanoseconds: 53 days.
const MAX_NANOSECONDS: u64 = (1 << 62) / 1000;

/// Largest message: a pebibyte.
const MAX_BYTES: u64 = crate::weft::MAX_BYTES;

/// A source, or a tag, that stands for any.
const ANY: u32 = u32::MAX;

fn open(input: Input) -> OpenTrace {
    let input = Arc::new(input);
    let mut head = [0; 8];
    let is_binary = input.len() >= 8 && {
        input.read_at(&mut head, 0)?;
        binary::knows(&head)
    };
    let reader: Arc<dyn FormatReader> = match is_binary {
        true => Arc::new(spool(binary::BinaryGoal::open(input)?)?),
        false => Arc::new(spool(text::TextGoal::open(input)?)?),
    };
    Ok(reader)
}

/// Begins a trace at `path`, in one of the two forms.
fn create(path: &Path, header: TraceHeader, is_binary: bool) -> BegunTrace {
    let file: Box<dyn writer::GoalFile> = match is_binary {
        true => Box::new(binary_file::BinaryFile::create(path, header.ranks)?),
        false => Box::new(text_file::TextFile::create(path, header.ranks)?),
    };
    Ok(Box::new(writer::GoalWriter::new(path, header, file)))
}

/// A computation of so many nanoseconds; `None`: too long to be believed.
fn nanoseconds(count: u64) -> Option<Span> {
    (count <= MAX_NANOSECONDS).then(|| Span::from_ns(count))
}

/// Counts of what was passed over, for the notes of the trace.
#[derive(Clone, Debug, Default)]
struct GoalNotes {
    /// Operations that name another network interface than the first.
    interfaces: u64,
}

impl GoalNotes {
    fn notes(&self) -> BTreeMap<String, u64> {
        let note = "operations for another network interface (nic) than 0: given to that of the endpoint";
        let interfaces = (self.interfaces > 0).then(|| (note.to_owned(), self.interfaces));
        interfaces.into_iter().collect()
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod written_tests;
