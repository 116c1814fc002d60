//! Properties of all topologies and routings, on random small machines and on the largest in use.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod deadlock;
mod dragonfly;
mod families;
mod figures;
mod large;
mod machines;
mod megafly;
mod multicast;
mod own_topology;
mod reroute;
mod routes;
mod structure;
mod tree;
