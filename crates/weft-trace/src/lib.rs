//! Operations of a rank, the trace format, readers and writers.
//!
//! A trace is what each rank of a parallel program did: computation, messages, collectives, in the
//! order of the program. It says nothing of the network that it was recorded on.

pub mod op;
