//! The summary of a trace. Of weft's own format it is read from the footer alone, so a long trace costs no
//! more than a short one; one with events is read.

use crate::error::TraceError;
use crate::rank_order::{PlacedOp, RankOrder};
use crate::trace::Trace;
use serde::Serialize;
use std::collections::BTreeMap;
use weft_trace::has_streams;
use weft_trace::op::Op;
use weft_units::RankId;

/// A trace in a few numbers, as `weft trace info` prints it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TraceInfo {
    /// The file.
    pub file: String,
    /// Size of the file.
    pub file_bytes: u64,
    /// The format, such as `weft` or `dumpi`.
    pub format: &'static str,
    /// Version of weft's own format.
    pub format_version: u64,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The recorder or converter that made the trace.
    pub recorder: String,
    /// The MPI library.
    pub mpi_library: String,
    /// The version of the MPI standard.
    pub mpi_version: String,
    /// Cores of the host that it was recorded on.
    pub host_cores: Option<u32>,
    /// The date of the recording, ISO 8601.
    pub date: Option<String>,
    /// How computation moved clocks where it was recorded in virtual time.
    pub virtual_time: Option<String>,
    /// Number of ranks.
    pub ranks: u32,
    /// Operations of all ranks.
    pub operations: u64,
    /// Fewest operations of a rank.
    pub rank_operations_min: u64,
    /// Most operations of a rank.
    pub rank_operations_max: u64,
    /// Of a trace whose ranks have several streams, or events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<StreamsInfo>,
    /// Operations by name.
    pub operations_by_kind: BTreeMap<String, u64>,
    /// Calls that were seen but not recorded, with their number.
    pub unrecorded: BTreeMap<String, u64>,
    /// Of a trace of another program: where it did not say, or said what cannot be, and how its reader has
    /// helped itself, with the number of times.
    pub notes: BTreeMap<String, u64>,
    /// Whether the recording ended before the program did.
    pub interrupted: bool,
}

/// The streams and events of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct StreamsInfo {
    /// Streams of all ranks.
    pub streams: u64,
    /// Most streams of a rank.
    pub rank_streams_max: u64,
    /// Most cores of a rank.
    pub rank_cores_max: u64,
    /// Events of all ranks.
    pub events: u64,
    /// Most events of a rank that were open at a time: signalled and not awaited, or awaited and not
    /// signalled, in an order in which its streams can be read.
    pub open_events_max: u64,
}

impl StreamsInfo {
    /// Reads the trace, if its ranks have several streams or events.
    ///
    /// # Errors
    /// A trace that cannot be read.
    fn of(trace: &Trace) -> Result<Option<StreamsInfo>, TraceError> {
        if !has_streams(&**trace) {
            return Ok(None);
        }
        let mut info = StreamsInfo::default();
        for rank in (0..trace.ranks()).map(RankId) {
            let cores = trace.stream_cores(rank);
            info.streams += cores.len() as u64;
            info.rank_streams_max = info.rank_streams_max.max(cores.len() as u64);
            let cores = cores.iter().max().map_or(0, |core| u64::from(*core) + 1);
            info.rank_cores_max = info.rank_cores_max.max(cores);
            let mut order = RankOrder::of(&**trace, rank)?;
            while let Some(PlacedOp { op, .. }) = order.next()? {
                info.events += u64::from(matches!(op, Op::Signal { .. }));
                info.open_events_max = info.open_events_max.max(order.open_events() as u64);
            }
        }
        Ok(Some(info))
    }
}

impl TraceInfo {
    /// The summary of an open trace. Operations are read only where there are events.
    ///
    /// # Errors
    /// A trace with events that cannot be read.
    pub fn of(trace: &Trace) -> Result<TraceInfo, TraceError> {
        let metadata = trace.metadata().clone();
        let header = metadata.header;
        Ok(TraceInfo {
            streams: StreamsInfo::of(trace)?,
            file: trace.file().to_owned(),
            file_bytes: trace.file_bytes().get(),
            format: trace.format(),
            format_version: metadata.format_version,
            command: header.command,
            recorder: header.recorder,
            mpi_library: header.mpi_library,
            mpi_version: header.mpi_version,
            host_cores: header.host_cores,
            date: header.date,
            virtual_time: header.virtual_time,
            ranks: header.ranks,
            operations: trace.operations(),
            rank_operations_min: metadata.rank_operations.iter().copied().min().unwrap_or(0),
            rank_operations_max: metadata.rank_operations.iter().copied().max().unwrap_or(0),
            operations_by_kind: metadata.operations,
            unrecorded: header.unrecorded,
            notes: header.notes,
            interrupted: header.interrupted,
        })
    }
}
