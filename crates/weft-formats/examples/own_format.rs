//! A trace format of one's own: a text that says how long each rank computes.
//!
//! The book's page on adding a trace format walks through it.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use weft_formats::{FilePlace, FormatReader, Trace, TraceError, TraceHeader, TraceMetadata, validate};
use weft_trace::op::{Op, StreamId};
use weft_trace::{Cursor, Kind, ReadError, TraceSource};
use weft_units::{Bytes, RankId, Span};

/// Most ranks; a larger number is taken for damage.
const MAX_RANKS: u32 = 1 << 20;

// ANCHOR: read
/// A text of lines `RANK MICROSECONDS`.
struct SpanLog {
    file: String,
    bytes: Bytes,
    ranks: Vec<Arc<[Op]>>,
    metadata: TraceMetadata,
}

impl SpanLog {
    fn read(file: &str, text: &str) -> Result<SpanLog, TraceError> {
        let mut ranks: Vec<Vec<Op>> = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let (rank, us) = parse(line).ok_or_else(|| TraceError::Foreign {
                file: file.to_owned(),
                place: FilePlace::Line(number),
                reason: format!(
                    "`{line}`: expected a rank and microseconds, such as `0 12`; correct the line"
                ),
            })?;
            if ranks.len() <= rank as usize {
                ranks.resize_with(rank as usize + 1, Vec::new);
            }
            ranks[rank as usize].push(Op::Compute { span: Span::from_us(us) });
        }
        let rank_operations: Vec<u64> = ranks.iter().map(|ops| ops.len() as u64).collect();
        let metadata = TraceMetadata {
            format_version: 1,
            header: TraceHeader { ranks: ranks.len() as u32, ..TraceHeader::default() },
            operations: BTreeMap::from([(Kind::Compute.name().to_owned(), rank_operations.iter().sum())]),
            rank_operations,
            rank_streams: Vec::new(),
        };
        let ranks = ranks.into_iter().map(Arc::from).collect();
        Ok(SpanLog { file: file.to_owned(), bytes: Bytes::new(text.len() as u64), ranks, metadata })
    }
}
// ANCHOR_END: read

fn parse(line: &str) -> Option<(u32, u64)> {
    let (rank, us) = line.split_once(' ')?;
    let rank = rank.parse().ok().filter(|rank| *rank < MAX_RANKS)?;
    Some((rank, us.parse().ok().filter(|us| *us < 1_000_000_000_000)?))
}

// ANCHOR: source
impl TraceSource for SpanLog {
    fn file(&self) -> &str {
        &self.file
    }

    fn ranks(&self) -> u32 {
        self.ranks.len() as u32
    }

    fn operations(&self) -> u64 {
        self.metadata.rank_operations.iter().sum()
    }

    fn operations_of(&self, kind: Kind) -> u64 {
        if kind == Kind::Compute { self.operations() } else { 0 }
    }

    fn cursor_operations(&self) -> u64 {
        0 // all lie in memory once, whoever reads them
    }

    fn is_interrupted(&self) -> bool {
        false
    }

    fn stream_at(&self, rank: RankId, _: StreamId, position: u64) -> Result<Box<dyn Cursor>, ReadError> {
        let (file, ranks) = (self.file.clone(), self.ranks());
        let Some(ops) = self.ranks.get(rank.index()).cloned() else {
            return Err(TraceError::NoSuchRank { file, rank: rank.0, ranks }.into());
        };
        Ok(Box::new(SpanCursor { ops, position }))
    }
}

impl FormatReader for SpanLog {
    fn format(&self) -> &'static str {
        "span-log"
    }

    fn metadata(&self) -> &TraceMetadata {
        &self.metadata
    }

    fn file_bytes(&self) -> Bytes {
        self.bytes
    }
}
// ANCHOR_END: source

/// The operations of a rank from a position on.
struct SpanCursor {
    ops: Arc<[Op]>,
    position: u64,
}

impl Iterator for SpanCursor {
    type Item = Result<Op, ReadError>;

    fn next(&mut self) -> Option<Result<Op, ReadError>> {
        let op = self.ops.get(usize::try_from(self.position).ok()?)?.clone();
        self.position += 1;
        Some(Ok(op))
    }
}

impl Cursor for SpanCursor {
    fn next_position(&self) -> u64 {
        self.position
    }
}

// ANCHOR: use
/// The operations of each rank of a text, which is checked as every trace is.
fn counts(text: &str) -> Result<Vec<u64>, TraceError> {
    let trace = Trace::from(SpanLog::read("spans.txt", text)?);
    validate(&trace)?;
    Ok(trace.metadata().rank_operations.clone())
}
// ANCHOR_END: use

fn main() -> Result<(), Box<dyn Error>> {
    println!("operations by rank: {:?}", counts("0 12\n1 7\n0 3\n")?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches operations of another rank, and a line that is passed over.
    #[test]
    fn lines_are_operations_of_their_ranks() {
        assert_eq!(counts("0 12\n2 7\n0 3\n").unwrap(), [2, 0, 1]);
        let error = counts("0 12\n1 later\n").unwrap_err().to_string();
        assert!(error.starts_with("spans.txt: line 2: `1 later`: expected a rank"), "{error}");
    }

    /// Catches a cursor that does not go on where another stood.
    #[test]
    fn a_cursor_goes_on_from_its_position() {
        let log = SpanLog::read("spans.txt", "0 1\n0 2\n0 3\n").unwrap();
        let mut first = log.stream(RankId(0), StreamId(0)).unwrap();
        first.next().unwrap().unwrap();
        let rest = log.stream_at(RankId(0), StreamId(0), first.next_position()).unwrap();
        let spans: Vec<Op> = rest.map(Result::unwrap).collect();
        assert_eq!(spans, [2, 3].map(|us| Op::Compute { span: Span::from_us(us) }));
    }
}
