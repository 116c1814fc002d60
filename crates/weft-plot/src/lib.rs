//! Draws pictures of results, and writes pages of them.
//!
//! ```text
//!  weft_analysis::picture::Picture ──► svg ──► text          plotters, by one function for both
//!                                  └─► png ──► bytes         three times as large, then smoothed
//! ```
//! | file | reads |
//! |---|---|
//! | `draw` | a picture on any backend: headings, axes, contents, legends |
//! | `axis` | an axis of numbers, linear or logarithmic, or of names |
//! | `colour` | colours that people with any kind of sight tell apart |
//! | `image` | the two formats |
//! | `page` | reports and comparisons as HTML |
//! | `sections_page` | the same of a trace or a study |
//!
//! The font of bitmaps is Noto Sans (SIL Open Font License), so that no font need be installed.

mod axis;
mod colour;
mod draw;
mod image;
pub mod page;
mod sections_page;

pub use image::{DrawError, png, svg};
pub use sections_page::sectioned_report;
