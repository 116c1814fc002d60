//! The send unit of the RDMA engine as RTL: its ports, what it was built for, and its use.
//!
//! ```text
//!   in_step ── descriptors, memory, answers, the network's turns ──► RTL ──► reads and cells compared
//!     └─ requests ──────────────────────────────────────────────────► RTL ──► answers to them compared
//! ```

mod in_step;
mod ports;
mod requests;
mod turns;

pub(crate) use in_step::SegmentationInStep;

use crate::fit::{BACKOFF, Cycles, Fit, OUTSTANDING_BLOCKS};
use crate::library::{RtlError, RtlLibrary};
use weft_nic::ExanetParameters;
use weft_nic::segmentation::{Cut, SegmentationParameters};
use weft_units::Bytes;

/// The name of the block.
const NAME: &str = "segmentation";
/// Channels of a page.
const PAGE_CHANNELS: u64 = 64;
/// Words of a descriptor.
const DESCRIPTOR: u64 = 4;
/// Bytes of a word.
const WORD: u64 = 16;
/// Channels for writes of a page, and those for reads.
const HALF_PAGE: u32 = 32;
/// Bytes of a burst.
const BURST: u64 = 256;
/// Cycles of the agent in the model; the RTL takes the rest of its own out of the round trip of the read.
const INVOCATION: u64 = 1;
/// Cycles from the last word of a descriptor to the read that it sets off, in the RTL.
const TO_READ: u64 = 7;
/// Cycles of the round trip of a read, at least: what the RTL takes longer than the model to ask for it, and
/// one in which memory answers. Over 512 bits one more is between that and the header.
const LEAST_READ: u64 = TO_READ - INVOCATION + 1;

/// The cut of transfers that the RTL was built for.
fn cut(library: &RtlLibrary) -> Result<Cut, RtlError> {
    let bytes = |parameter| library.parameter(NAME, parameter).map(Bytes::new);
    Ok(Cut { block: bytes("BLOCK")?, cell: bytes("CELL_BYTES")? })
}

/// Checks that the RTL was built for the send unit of a machine.
fn check(library: &RtlLibrary, parameters: &ExanetParameters) -> Result<(), RtlError> {
    let (rdma, port) = (&parameters.rdma, &parameters.host_port);
    let (fit, send) = (Fit::new(library, NAME, parameters)?, &rdma.send);
    fit.has_pages(parameters)?;
    let invocation = match rdma.segmentation {
        SegmentationParameters::Hardware { cycles, .. } => cycles,
        SegmentationParameters::Firmware { .. } => {
            let why = "nic.segmentation.agent is firmware, and in the RTL it is logic".to_owned();
            return Err(fit.unfit(why, "add --set nic.segmentation.agent=hardware"));
        }
    };
    fit.same("nic.rdma.pages", send.pages.into(), "PAGES")?;
    fit.same("nic.rdma.cell_buffers", send.cell_buffers.into(), "CELL_BUFFERS")?;
    fit.same("nic.host_port.outstanding_bursts", port.outstanding.into(), "OUTSTANDING")?;
    fit.same_cycles("nic.rdma.cell_overhead", send.cell_overhead_cycles, "OVERHEAD")?;
    fit.same("nic.rdma.repetitions", rdma.reliability.repetitions.into(), "REPETITIONS")?;
    fit.same("nic.rdma.block", send.cut.block.get(), "BLOCK")?;
    fit.same("packet.payload", send.cut.cell.get(), "CELL_BYTES")?;
    fit.same_time("nic.rdma.timeout", rdma.reliability.timeout, "TIMEOUT")?;
    fit.same_time("nic.rdma.longest_timeout", rdma.reliability.longest, "LONGEST_TIMEOUT")?;
    fit.fixed("nic.rdma.write_channels", send.write_channels, HALF_PAGE)?;
    fit.fixed("nic.rdma.read_channels", send.read_channels, HALF_PAGE)?;
    fit.fixed("nic.rdma.descriptor", send.descriptor, Bytes::new(DESCRIPTOR * WORD))?;
    fit.fixed("nic.rdma.outstanding_blocks", send.outstanding_blocks, OUTSTANDING_BLOCKS)?;
    fit.fixed("nic.rdma.backoff", rdma.reliability.backoff, BACKOFF)?;
    fit.fixed("nic.segmentation.hardware_invocation", Cycles(invocation.into()), Cycles(INVOCATION))?;
    fit.fixed("nic.host_port.burst_words", port.burst_words.into(), BURST / port.word.get())?;
    let least = LEAST_READ + u64::from(library.is_wide());
    fit.at_least("nic.host_port.round_trip", port.round_trip, fit.clock.cycles(least))?;
    fit.maps_all(parameters)
}
