//! The receive unit of the RDMA engine as RTL: its ports, what it was built for, and its use.
//!
//! ```text
//!   in_step ── cells, memory, the network's turns ──► RTL ──► writes, notifications and answers compared
//! ```

mod in_step;
mod ports;

pub(crate) use in_step::RdmaReceiveInStep;

use crate::fit::{Cycles, Fit, OUTSTANDING_BLOCKS};
use crate::library::{RtlError, RtlLibrary};
use weft_nic::ExanetParameters;
use weft_nic::rdma::{REMEMBERED_CHANNELS, REMEMBERED_WAYS, WAITING_BLOCKS};
use weft_nic::segmentation::Cut;
use weft_units::Bytes;

/// The name of the block.
const NAME: &str = "rdma_receive";
/// Bytes of a notification.
const NOTIFICATION: u64 = 16;
/// Cycles of `nic.rdma.receive`, of which the RTL takes one on its ports.
const RECEIVE: u64 = 2;
/// Cycles of the way of a write to memory, half of the round trip, at least: those of the RTL from the answer
/// of memory to its own, 2, and one in which memory answers.
const LEAST_WRITE: u64 = 2 + 1;
/// The cut of transfers: blocks have up to 64 cells, and cells up to 256 bytes.
const CUT: Cut = Cut { block: Bytes::new(16384), cell: Bytes::new(256) };

/// Checks that the RTL was built for the receive unit of a machine.
fn check(library: &RtlLibrary, parameters: &ExanetParameters) -> Result<(), RtlError> {
    let (receive, send) = (&parameters.rdma.receive, &parameters.rdma.send);
    let fit = Fit::new(library, NAME, parameters)?;
    fit.same("nic.packetizer.interfaces", parameters.packetizer.interfaces.into(), "INTERFACES")?;
    fit.same("nic.rdma.contexts", receive.contexts.into(), "CONTEXTS")?;
    fit.same_as_model("channels that are remembered", REMEMBERED_CHANNELS, "CHANNELS")?;
    fit.same_as_model("ways of a set", REMEMBERED_WAYS, "WAYS")?;
    fit.same_as_model("blocks that wait for a context", WAITING_BLOCKS, "WAITING")?;
    fit.same_time("nic.rdma.context_timeout", receive.context_timeout, "CONTEXT_TIMEOUT")?;
    fit.fixed("nic.rdma.receive", Cycles(receive.cycles.into()), Cycles(RECEIVE))?;
    let (round_trip, way) = (parameters.host_port.round_trip, fit.clock.cycles(LEAST_WRITE));
    fit.at_least("nic.host_port.round_trip", round_trip, way + way)?;
    fit.fixed("nic.rdma.notification", receive.notification, Bytes::new(NOTIFICATION))?;
    fit.fixed("nic.rdma.block", send.cut.block, CUT.block)?;
    fit.fixed("packet.payload", send.cut.cell, CUT.cell)?;
    fit.fixed("nic.rdma.outstanding_blocks", send.outstanding_blocks, OUTSTANDING_BLOCKS)?;
    fit.maps_all(parameters)
}
