//! Services: programs of hosts that answer requests, and clients that make them.

pub mod key_value;
