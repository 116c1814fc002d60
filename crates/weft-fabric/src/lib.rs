//! Packets, links, switches, arbiters and flow control; the ideal network.

pub mod parameters;
