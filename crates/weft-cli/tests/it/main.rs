//! The `weft` program, run as its users run it.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod apenetx;
mod breakdown;
mod classes;
mod command;
mod common;
mod explain;
mod failures;
mod flow_control;
mod formats;
mod jobs;
mod machine;
mod machine_draw;
mod machine_files;
mod multicast;
mod osu;
mod outlets;
mod pages;
mod patterns;
mod plot;
mod power;
mod record;
mod region;
mod replay;
mod run;
mod run_addresses;
mod run_calls;
mod run_endpoints;
mod run_rails;
mod run_results;
mod run_standstill;
mod scenario;
mod seams;
mod shares;
mod skipped;
mod support;
mod sweep;
mod telemetry;
mod throughput;
mod topology_trees;
mod trace_stats;
mod traffic;
mod tutorial;
mod validate;
mod view;
