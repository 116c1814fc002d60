//! The fabric against closed forms, its own laws of conservation, and itself on other threads.

#![allow(clippy::unwrap_used)]

mod arbiters;
mod combined;
mod congestion;
mod credit_words;
mod deadlock;
mod drop;
mod fairness;
mod faults;
mod ideal;
mod link_layers;
mod links;
mod machines;
mod multicast;
mod pause;
mod power;
mod properties;
mod resending;
mod scripted;
mod threads;
mod zero_load;
