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
//! | `tables` | what each row says: a file for each table, and the list of them |
//! | `row`, `cell` | how a row becomes columns |
//! | `table`, `open_tables` | one table on its way to a file; all that a run writes |
//! | `directory` | the directory: refused, written, saved, resumed, finished |
//! | `files` | the names of its files, and how one is written as a whole |
//! | `snapshot` | the file from which a run is resumed |
//! | `reading` | what a directory says of itself: request, manifest, files as they were written |
//! | `live` | what can be read of a result while it is written |
//! | `lock`, `previous` | one writer at a time; the result that it replaces |
//! | `manifest` | `run.json` and `performance.json` |
//! | `digest` | whether two results are the same |
//! | `ending` | how a run ended |
//! | `stored` | a finished result that is read: manifest, rows of tables; `weft-analysis` reads more of it |
//! | `wall_clock` | wall time, for `performance.json` only |
//!
//! What was asked for, and what is explained of a run, are of types that only who runs experiments knows:
//! here they are anything that serializes.

mod cell;
mod digest;
mod directory;
mod ending;
mod error;
mod files;
mod live;
mod lock;
mod manifest;
mod open_tables;
mod previous;
mod reading;
mod row;
mod snapshot;
mod stored;
mod table_writer;
mod tables;
mod wall_clock;

pub use cell::{Cell, DataType};
pub use digest::{Digest, digest, file_digest};
pub use directory::{Existing, ResultsWriter};
pub use ending::{Conclusion, Ending};
pub use error::ResultsError;
pub use live::{forget_live, is_whole, live_generation};
pub use manifest::{AssumedConstant, FORMAT_VERSION, Performance, RunManifest, TableSummary, Totals};
pub use reading::{StoredRequest, check_files, read_manifest, read_request};
pub use row::{Column, Row, Unreadable, WrittenBy};
pub use stored::{RunOf, StoredResult};
pub use table_writer::{GROUP_ROWS, GROUP_ROWS_LIMIT};
pub use tables::*;
pub use wall_clock::{Beginning, Stopwatch, date};

#[cfg(test)]
mod tests;
