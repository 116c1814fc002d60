//! Studies: a file of parameters becomes commands, and what these measured becomes one data set.
//!
//! ```text
//!  STUDY.toml ──► Study { points: words of a command each } ──► whoever runs them: processes, executors
//!                                                                        │ exit status, JSON document
//!  study.parquet, intervals.parquet ◄── finish ◄── StudyDirectory ◄── keep
//! ```
//! | file | reads |
//! |---|---|
//! | `file` | the study file, and the points that it stands for |
//! | `point` | a point: parameters, the words of its command, the name that its causes give it |
//! | `value` | a value of a parameter |
//! | `directory` | what is done of a study; nothing is done twice |
//! | `change` | the difference between a study file and what is done in its directory |
//! | `case` | means and intervals over seeds |
//! | `form` | the form of the fields of `presentation`, for mistakes |
//! | `presentation` | derived columns, the table and the pictures of a study, the published figure |
//! | `table` | the data set: a row per point and measured row; intervals over seeds |
//! | `stored` | a study's directory that is read: its cases, and which parameters vary |
//! | `picture`, `report` | what is drawn and said of it |
//!
//! Nothing here runs a command: `weft sweep` starts processes, and Python any executor, over the same words.

mod case;
mod change;
mod directory;
mod error;
mod file;
mod form;
mod picture;
mod point;
mod presentation;
mod report;
mod stored;
mod table;
mod value;

pub use case::{Case, Mean};
pub use directory::{Failed, Outcome, StudyDirectory, Summary};
pub use error::StudyError;
pub use file::{Commands, Study};
pub use picture::StudyPicture;
pub use point::Point;
pub use stored::{StoredStudy, StudyAxis, is_study};
pub use value::Value;

/// The version of the data set and of the directory.
pub const FORMAT_VERSION: u32 = 2;

#[cfg(test)]
mod tests;
