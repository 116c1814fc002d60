//! Tests of whole programs on a network with arbitrary delays.

mod accelerator;
mod bad_input;
mod closed_forms;
mod collectives;
mod data_flow;
mod multicast;
mod network;
mod one_sided;
mod point_to_point;
mod rendezvous;
