//! The trace format, its checks and its statistics, from outside.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;
mod critical_chain;
mod fuzz_corpus;
mod hostile;
mod real;
mod round_trip;
mod stats;
mod validate;
