//! Critical paths of runs, with names: what `weft explain` and `weft osu --breakdown` print.
//!
//! | module | what it is |
//! |---|---|
//! | `recorder` | collects what a run records, within a limit of memory |
//! | `names` | ranks, links, switches and blocks in words |
//! | `rows` | pieces and categories as rows of reports |
//! | `split` | latency by leg: host, injection, fabric, ejection |

mod names;
mod recorder;
mod rows;
mod split;

pub(crate) use names::Names;
pub(crate) use recorder::{PathRecorder, pace};
pub use rows::{CategoryRow, PieceRow, PlaceRow, RankTimeRow};
pub(crate) use rows::{category_rows, longest, mean_rows, piece_rows, place_rows, rank_time_row};
pub use split::LatencySplit;
pub(crate) use split::leg_times;
