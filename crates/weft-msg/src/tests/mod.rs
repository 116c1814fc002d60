//! Tests of whole programs on a network with arbitrary delays.

mod bad_input;
mod closed_forms;
mod collectives;
mod data_flow;
mod network;
mod point_to_point;
