//! A result directory: Parquet tables with a JSON manifest, written as the run goes.
//!
//! ```text
//!  run ──rows, in order──► ResultsWriter ──► messages, flows, links, ranks, calls, pieces, … .parquet
//!      ──RunManifest─────►               ──► run.json          (same inputs, same bytes)
//!      ──Performance─────►               ──► performance.json  (outside the digest)
//! ```
//!
//! | file | reads |
//! |---|---|
//! | `tables` | what each row says |
//! | `row`, `cell` | how a row becomes columns |
//! | `table` | one table on its way to a file |
//! | `directory` | the directory: refused, written, saved, resumed, finished |
//! | `live` | what can be read of a result while it is written |
//! | `lock`, `previous` | one writer at a time; the result that it replaces |
//! | `manifest` | `run.json` and `performance.json` |
//! | `digest` | whether two results are the same |
//! | `ending` | how a run ended |
//! | `stored` | a finished result that is read: manifest, rows of tables |
//! | `wall_clock` | wall time, for `performance.json` only |
//!
//! What was asked for, and what is explained of a run, are of types that only who runs experiments knows:
//! here they are anything that serializes.

mod cell;
mod digest;
mod directory;
mod ending;
mod error;
mod live;
mod lock;
mod manifest;
mod open_tables;
mod previous;
mod row;
mod stored;
mod table;
mod tables;
mod wall_clock;

pub use cell::{Cell, DataType};
pub use digest::{Digest, digest, file_digest};
pub use directory::{Existing, ResultsWriter, StoredRequest, check_files, read_manifest, read_request};
pub use ending::{Conclusion, Ending};
pub use error::ResultsError;
pub use live::{forget_live, is_whole, live_generation};
pub use manifest::{AssumedConstant, FORMAT_VERSION, Performance, RunManifest, TableSummary, Totals};
pub use row::{Column, Row, Unreadable};
pub use stored::{RunOf, StoredResult};
pub use table::{GROUP_ROWS, GROUP_ROWS_LIMIT};
pub use tables::{
    CallRow, FlowRateRow, FlowRow, INTERVALS_PER_COARSER, JobLinkRow, JobRateRow, LinkRow, MessagePieceRow,
    MessageRow, PacketRow, PartRow, QueueRow, RankRow, RateRow, TELEMETRY_LEVELS, Table,
};
pub use wall_clock::{Beginning, Stopwatch, date};

#[cfg(test)]
mod tests;
