//! Readings of results: everything that reads a result directory and neither draws nor prints.
//!
//! ```text
//!  StoredResult ──► report, compare, congestion, picture, view ──► weft-plot: drawings, pages
//!  (weft-results)                                              ──► weft-view: the page in the browser
//!                                                              ──► weft-cli: tables, JSON
//! ```
//!
//! | file | reads |
//! |---|---|
//! | `compare`, `report` | results beside each other; a result in one page |
//! | `congestion` | congestion trees: root, branches, victims |
//! | `link_flows` | the flows that cross a link |
//! | `picture` | what is drawn of results |
//! | `sections` | what one page says on a trace or a study |
//! | `view` | what the page of `weft view` shows of results |

mod compare;
pub mod congestion;
mod link_flows;
pub mod picture;
pub mod report;
pub mod sections;
pub mod view;

pub use compare::{ComparedRow, ComparedValue, Comparison, interval_of, is_case, is_measured};
pub use link_flows::LinkFlow;
