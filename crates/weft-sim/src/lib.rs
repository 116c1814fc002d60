//! Machine files, experiments, results.
//!
//! | module | what it is |
//! |---|---|
//! | [`experiment`] | what can be run, as requests and reports |
//! | [`machine`] | machine files, from text to checked values with their sources |
//! | [`results`] | the directory that a run writes |
//! | [`timeline`] | the file that a timeline viewer opens |

pub mod experiment;
pub mod machine;
pub mod results;
pub mod timeline;
