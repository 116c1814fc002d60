//! Machine files, experiments, results.
//!
//! | module | what it is |
//! |---|---|
//! | [`experiment`] | what can be run, as requests and reports |
//! | [`results`] | the directory that a run writes |
//! | [`timeline`] | the file that a timeline viewer opens |

pub mod experiment;
pub mod results;
pub mod timeline;
