//! Machine files, experiments, results.
//!
//! | module | what it is |
//! |---|---|
//! | [`assembly`] | from a machine to what the model is built of |
//! | [`experiment`] | what can be run, as requests and reports |
//! | [`machine`] | machine files, from text to checked values with their sources |
//! | [`network`] | a simulated network, packet or ideal |
//! | [`results`] | the directory that a run writes |
//! | [`timeline`] | the file that a timeline viewer opens |

pub mod assembly;
pub mod experiment;
pub mod machine;
pub mod network;
pub mod results;
pub mod timeline;
