//! Machine files, experiments, results.

pub mod machine;
