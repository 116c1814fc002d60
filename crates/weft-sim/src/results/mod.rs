//! Results: a directory of Parquet tables with a JSON manifest, written as the run goes.
//!
//! ```text
//!  run ──rows, in order──► ResultsWriter ──► messages, flows, links, ranks, pieces .parquet
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
//! | `manifest` | `run.json` and `performance.json` |
//! | `digest` | whether two results are the same |
//! | `wall` | wall clock and memory, for `performance.json` only |

mod cell;
mod digest;
mod directory;
mod error;
mod manifest;
mod row;
mod table;
mod tables;
mod wall;

pub use cell::Cell;
pub use digest::{Digest, digest, file_digest};
pub use directory::{Existing, ResultsWriter, read_manifest, read_request};
pub use error::ResultsError;
pub use manifest::{AssumedConstant, Ending, FORMAT_VERSION, Performance, RunManifest, TableSummary, Totals};
pub use row::{Column, Row};
pub use table::{GROUP_ROWS, GROUP_ROWS_LIMIT};
pub use tables::{FlowRow, LinkRow, MessagePieceRow, MessageRow, RankRow, Table};
pub use wall::{Stopwatch, available_memory, date, peak_memory};

#[cfg(test)]
mod tests;
