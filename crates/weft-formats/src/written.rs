//! The account of a trace that becomes a file of another format: its header, its ranks in order, and counts.

use crate::error::TraceError;
use crate::header::{FIRST_FORMAT_VERSION, TraceHeader, TraceMetadata};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use weft_trace::Kind;
use weft_trace::op::Op;
use weft_units::RankId;

/// A trace while it is written.
pub(crate) struct WrittenTrace {
    pub(crate) path: PathBuf,
    pub(crate) header: TraceHeader,
    left_out: BTreeMap<String, u64>,
    operations: BTreeMap<Kind, u64>,
    rank_operations: Vec<u64>,
}

impl WrittenTrace {
    /// One that becomes `path`, of which nothing is written.
    pub(crate) fn new(path: &Path, header: TraceHeader) -> WrittenTrace {
        WrittenTrace {
            path: path.to_owned(),
            header,
            left_out: BTreeMap::new(),
            operations: BTreeMap::new(),
            rank_operations: Vec::new(),
        }
    }

    /// The error for a writer that is used wrongly.
    pub(crate) fn misuse(&self, reason: String) -> TraceError {
        TraceError::Misuse { path: self.path.clone(), reason }
    }

    /// The error for a computation of flops and bytes, in a format that has computations by time alone.
    pub(crate) fn no_work(&self) -> TraceError {
        let reason = "the format has no work of flops and bytes, whose time is the machine's: keep the trace \
                      as .weft";
        self.misuse(reason.to_owned())
    }

    /// Counts something that the format cannot carry.
    pub(crate) fn leave_out(&mut self, what: impl Into<String>, count: u64) {
        if count > 0 {
            *self.left_out.entry(what.into()).or_default() += count;
        }
    }

    /// All of that.
    pub(crate) fn left_out(&self) -> &BTreeMap<String, u64> {
        &self.left_out
    }

    /// The rank that was begun last.
    pub(crate) fn rank(&self) -> Option<RankId> {
        self.rank_operations.len().checked_sub(1).map(RankId::from)
    }

    /// Makes sure that this rank comes next.
    pub(crate) fn check_next(&self, rank: RankId) -> Result<(), TraceError> {
        let (expected, ranks) = (self.rank_operations.len(), self.header.ranks);
        if rank.index() == expected && rank.0 < ranks {
            return Ok(());
        }
        Err(self.misuse(format!("rank {rank} begun where rank {expected} of {ranks} comes next")))
    }

    /// Begins the next rank.
    pub(crate) fn begin_next(&mut self) {
        self.rank_operations.push(0);
    }

    /// Counts an operation of the rank that was begun last.
    pub(crate) fn count(&mut self, op: &Op) -> Result<(), TraceError> {
        let Some(count) = self.rank_operations.last_mut() else {
            return Err(self.misuse("an operation before the first rank was begun".to_owned()));
        };
        *count += 1;
        *self.operations.entry(op.kind()).or_default() += 1;
        Ok(())
    }

    /// Makes sure that all ranks were begun.
    pub(crate) fn check_whole(&self) -> Result<(), TraceError> {
        let (begun, ranks) = (self.rank_operations.len(), self.header.ranks);
        if begun == ranks as usize {
            return Ok(());
        }
        Err(self.misuse(format!("finished after {begun} of {ranks} ranks")))
    }

    /// The summary of the trace, when it is written.
    pub(crate) fn into_metadata(self) -> TraceMetadata {
        let name = |(kind, count): (Kind, u64)| (kind.name().to_owned(), count);
        TraceMetadata {
            format_version: FIRST_FORMAT_VERSION,
            header: self.header,
            operations: self.operations.into_iter().map(name).collect(),
            rank_operations: self.rank_operations,
            rank_streams: Vec::new(),
        }
    }
}
