//! Replays on the ideal network, against closed forms and against the longest dependent chain.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod chain;
mod closed_forms;
mod one_sided;
mod osu;
mod path;
mod rendezvous;
mod rules;
mod stepped;
mod streams;
mod support;
mod work;
