//! The table `kernels`.

use crate::row::row;
use weft_units::{EndpointId, RankId, Span, Time};

row! {
    /// The time of one kernel of a dataflow design in one activity.
    KernelRow version 1
        written by Default: "--tables kernels (of weft apeiron run)"
        ordered by |row| (row.run, Time::ZERO, row.rank.0.into(), 0);
    /// Index of the run in `run.json`.
    run: u32,
    /// The rank of the kernel's host program.
    rank: RankId,
    /// The endpoint of the kernel's node.
    endpoint: EndpointId,
    /// The kernel.
    kernel: String,
    /// `works`, or what it waits to do: `reads` from an empty stream, `writes` to a full one.
    activity: String,
    /// The stream; null where it works.
    stream: Option<String>,
    /// Time in that.
    time_ps: Span,
}
