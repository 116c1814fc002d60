//! Traces of other programs that record calls of MPI: all that such formats have in common.
//!
//! ```text
//!   a rank's file ── TimedCall ──▶ Translator ── Op ──▶ CallCursor ──▶ replay
//!   (Calls, of a format)              ▲
//!                                  CommTable ◀── the creations of all ranks: read once, when it is opened
//! ```
//!
//! A format brings [`CallFiles`]: the calls of any rank from the first on. It knows nothing of operations,
//! requests or communicators of weft. Opening reads every rank once, for the communicators and for the
//! counts of the summary; nothing is kept of it but those.

mod call;
mod communicators;
mod group;
mod requests;
mod translate;

pub(crate) use call::{
    CallTime, CommRef, Completed, Creation, EMPTY_GROUP, GroupMaking, Manner, Matched, MessageEnd, MpiCall,
    NewComm, OtherSide, RequestKey, TimedCall,
};
pub(crate) use communicators::ranges;

use crate::error::TraceError;
use crate::format::FormatReader;
use crate::header::{FIRST_FORMAT_VERSION, TraceHeader, TraceMetadata};
use communicators::CommTable;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use translate::{CallTally, Seat, Translator};
use weft_trace::op::{Op, StreamId};
use weft_trace::{Cursor, Kind, ReadError, TraceSource};
use weft_units::{Bytes, RankId};

/// Operations that a cursor keeps in memory, as far as a forecast of memory needs to know: its chunk of the
/// file is as large.
const CURSOR_OPERATIONS: u64 = 512;

/// The files of a run, in some format.
pub(crate) trait CallFiles: Send + Sync {
    /// The name of the format.
    fn format(&self) -> &'static str;

    /// The file that was named.
    fn file(&self) -> &str;

    /// The names of all files.
    fn files(&self) -> Vec<&str>;

    /// Number of ranks.
    fn ranks(&self) -> u32;

    /// Size of all files.
    fn bytes(&self) -> u64;

    /// The origin of the run, as the files tell it.
    fn header(&self) -> TraceHeader;

    /// Whether a request whose name comes again has completed: the format does not tell which tests succeed.
    fn reuse_completes(&self) -> bool;

    /// The calls of a rank.
    fn rank(&self, rank: u32) -> Result<Box<dyn Calls>, TraceError>;
}

/// The calls of a rank in their order.
pub(crate) trait Calls: Send + Sync {
    /// The next call; `None`: there are no more.
    fn next(&mut self) -> Result<Option<TimedCall>, TraceError>;

    /// An error at the call that came last.
    fn error(&self, reason: String) -> TraceError;
}

/// A trace of calls that is open for reading.
pub(crate) struct CallTrace {
    files: Arc<dyn CallFiles>,
    communicators: Arc<CommTable>,
    metadata: TraceMetadata,
}

impl CallTrace {
    /// Reads every rank once.
    pub(crate) fn open(files: Arc<dyn CallFiles>) -> Result<CallTrace, TraceError> {
        let mut header = files.header();
        let (mut created, mut rank_operations) = (Vec::new(), Vec::new());
        let mut operations: BTreeMap<Kind, u64> = BTreeMap::new();
        let mut tally = CallTally::default();
        for rank in 0..header.ranks {
            let mut cursor = CallCursor::new(&files, rank, None)?;
            let mut count = 0;
            while let Some(op) = cursor.try_next()? {
                count += 1;
                *operations.entry(op.kind()).or_default() += 1;
            }
            rank_operations.push(count);
            let (made, found) = cursor.translator.into_found();
            created.push(made);
            for (name, count) in found.unread {
                *tally.unread.entry(name).or_default() += count;
            }
            for (note, count) in found.notes {
                *tally.notes.entry(note).or_default() += count;
            }
        }
        header.unrecorded.extend(tally.unread);
        header.notes.extend(tally.notes.into_iter().map(|(note, count)| (note.to_owned(), count)));
        let communicators = CommTable::of(&created)
            .map_err(|reason| TraceError::Run { file: files.file().to_owned(), reason })?;
        let operations =
            operations.into_iter().map(|(kind, count)| (kind.name().to_owned(), count)).collect();
        let metadata = TraceMetadata {
            format_version: FIRST_FORMAT_VERSION,
            header,
            operations,
            rank_operations,
            rank_streams: Vec::new(),
        };
        Ok(CallTrace { files, communicators: Arc::new(communicators), metadata })
    }
}

impl TraceSource for CallTrace {
    fn file(&self) -> &str {
        self.files.file()
    }

    fn ranks(&self) -> u32 {
        self.metadata.header.ranks
    }

    fn operations(&self) -> u64 {
        self.metadata.rank_operations.iter().sum()
    }

    fn operations_of(&self, kind: Kind) -> u64 {
        self.metadata.operations.get(kind.name()).copied().unwrap_or(0)
    }

    fn cursor_operations(&self) -> u64 {
        CURSOR_OPERATIONS
    }

    fn is_interrupted(&self) -> bool {
        self.metadata.header.interrupted
    }

    fn unrecorded(&self) -> BTreeMap<String, u64> {
        self.metadata.header.unrecorded.clone()
    }

    /// A position is found by reading the rank from its begin.
    fn stream_at(&self, rank: RankId, stream: StreamId, position: u64) -> Result<Box<dyn Cursor>, ReadError> {
        let file = || self.file().to_owned();
        if rank.0 >= self.ranks() {
            return Err(TraceError::NoSuchRank { file: file(), rank: rank.0, ranks: self.ranks() }.into());
        }
        if stream != StreamId::FIRST {
            let (rank, stream) = (rank.0, stream.0);
            return Err(TraceError::NoSuchStream { file: file(), rank, stream, streams: 1 }.into());
        }
        let mut cursor = CallCursor::new(&self.files, rank.0, Some(Arc::clone(&self.communicators)))?;
        while cursor.position < position && cursor.try_next()?.is_some() {}
        Ok(Box::new(cursor))
    }
}

impl FormatReader for CallTrace {
    fn format(&self) -> &'static str {
        self.files.format()
    }

    fn metadata(&self) -> &TraceMetadata {
        &self.metadata
    }

    fn file_bytes(&self) -> Bytes {
        Bytes::new(self.files.bytes())
    }

    fn files(&self) -> Vec<PathBuf> {
        self.files.files().into_iter().map(PathBuf::from).collect()
    }
}

/// The operations of a rank, made of its calls as they are read.
struct CallCursor {
    calls: Box<dyn Calls>,
    translator: Translator,
    position: u64,
    /// No calls are left, or an error has ended it.
    ended: bool,
    failed: bool,
}

impl CallCursor {
    fn new(
        files: &Arc<dyn CallFiles>,
        rank: u32,
        communicators: Option<Arc<CommTable>>,
    ) -> Result<CallCursor, TraceError> {
        let (ranks, reuse_completes) = (files.ranks(), files.reuse_completes());
        let translator = Translator::new(Seat { rank, ranks, communicators, reuse_completes });
        Ok(CallCursor { calls: files.rank(rank)?, translator, position: 0, ended: false, failed: false })
    }

    fn try_next(&mut self) -> Result<Option<Op>, TraceError> {
        loop {
            if let Some(op) = self.translator.pop() {
                self.position += 1;
                return Ok(Some(op));
            }
            if self.ended {
                return Ok(None);
            }
            match self.calls.next()? {
                Some(call) => self.translator.call(call).map_err(|reason| self.calls.error(reason))?,
                None => {
                    self.translator.end();
                    self.ended = true;
                }
            }
        }
    }
}

impl Iterator for CallCursor {
    type Item = Result<Op, ReadError>;

    fn next(&mut self) -> Option<Result<Op, ReadError>> {
        if self.failed {
            return None;
        }
        let next = self.try_next().transpose();
        self.failed = matches!(next, Some(Err(_)));
        Some(next?.map_err(ReadError::from))
    }
}

impl Cursor for CallCursor {
    fn next_position(&self) -> u64 {
        self.position
    }
}
