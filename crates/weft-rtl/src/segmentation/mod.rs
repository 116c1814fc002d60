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

use crate::library::{RtlError, RtlLibrary};
use crate::words::cycles;
use weft_nic::ExanetParameters;
use weft_nic::iommu::FaultModel;
use weft_nic::segmentation::{Cut, SegmentationParameters};
use weft_units::{Bytes, Span};

/// The name of the block.
const NAME: &str = "segmentation";
/// Channels of a page.
const PAGE_CHANNELS: u64 = 64;
/// Words of a descriptor.
const DESCRIPTOR: u64 = 4;
/// Bytes of a word.
const WORD: u64 = 16;

/// The cut of transfers that the RTL was built for.
fn cut(library: &RtlLibrary) -> Result<Cut, RtlError> {
    let bytes = |parameter| library.parameter(NAME, parameter).map(Bytes::new);
    Ok(Cut { block: bytes("BLOCK")?, cell: bytes("CELL_BYTES")? })
}

/// Checks that the RTL was built for the send unit of a machine.
fn check(library: &RtlLibrary, parameters: &ExanetParameters) -> Result<(), RtlError> {
    let (rdma, port) = (&parameters.rdma, &parameters.host_port);
    let send = &rdma.send;
    let unfit = |why: String, mend: &str| RtlError::Unfit { block: NAME, why, mend: mend.to_owned() };
    let invocation = match rdma.segmentation {
        SegmentationParameters::Hardware { cycles, .. } => cycles,
        SegmentationParameters::Firmware { .. } => {
            let why = "nic.segmentation.agent is firmware, and in the RTL it is logic".to_owned();
            return Err(unfit(why, "add --set nic.segmentation.agent=hardware"));
        }
    };
    if send.contexts.is_some() {
        let why = "the send unit of this machine has contexts, and the RTL channels of pages".to_owned();
        return Err(unfit(why, "use a machine with nic.model=exanet, such as exanest"));
    }
    let same = |key, machine: u64, parameter, unit: &str| {
        let rtl = library.parameter(NAME, parameter)?;
        let mend = format!("{rtl}{unit}");
        let differs = RtlError::Parameter { block: NAME, key, machine, rtl, mend, parameter };
        if machine == rtl { Ok(()) } else { Err(differs) }
    };
    same("nic.rdma.pages", send.pages.into(), "PAGES", "")?;
    same("nic.rdma.cell_buffers", send.cell_buffers.into(), "CELL_BUFFERS", "")?;
    same("nic.host_port.outstanding_bursts", port.outstanding.into(), "OUTSTANDING", "")?;
    same("nic.rdma.cell_overhead", send.cell_overhead_cycles.into(), "OVERHEAD", " cycles")?;
    same("nic.rdma.repetitions", rdma.reliability.repetitions.into(), "REPETITIONS", "")?;
    same("nic.rdma.block", send.cut.block.get(), "BLOCK", "")?;
    same("packet.payload", send.cut.cell.get(), "CELL_BYTES", "")?;
    let same_time = |key, span: Span, parameter| {
        let why = format!("{key} of {span} is no whole number of cycles of nic.clock");
        let machine = cycles(&send.clock, span).ok_or_else(|| unfit(why, "take a time such as 4ms"))?;
        let rtl = library.parameter(NAME, parameter)?;
        let mend = send.clock.cycles(rtl).to_string();
        let differs = RtlError::Parameter { block: NAME, key, machine, rtl, mend, parameter };
        if machine == rtl { Ok(()) } else { Err(differs) }
    };
    same_time("nic.rdma.timeout", rdma.reliability.timeout, "TIMEOUT")?;
    same_time("nic.rdma.longest_timeout", rdma.reliability.longest, "LONGEST_TIMEOUT")?;
    for (key, machine, rtl) in [
        ("nic.rdma.write_channels", u64::from(send.write_channels), 32),
        ("nic.rdma.read_channels", send.read_channels.into(), 32),
        ("nic.rdma.descriptor", send.descriptor.get(), DESCRIPTOR * WORD),
        ("nic.rdma.outstanding_blocks", send.outstanding_blocks.into(), 2),
        ("nic.rdma.backoff", rdma.reliability.backoff.into(), 2),
        ("nic.segmentation.hardware_invocation", invocation.into(), 1),
        ("nic.host_port.word", port.word.get(), WORD),
        ("nic.host_port.burst_words", port.burst_words.into(), 16),
    ] {
        if machine != rtl {
            let cycles = if key.ends_with("invocation") { " cycles" } else { "" };
            let why = format!("{key} is {machine}, and {rtl} in the RTL");
            return Err(unfit(why, &format!("add --set '{key}={rtl}{cycles}'")));
        }
    }
    if parameters.iommu.faults != FaultModel::Off {
        let why = "the RTL has the addresses of pages that are not mapped from nobody".to_owned();
        return Err(unfit(why, "add --set nic.iommu.faults=off"));
    }
    if port.stores.is_some() {
        let why = "its pages are stored to by words of 16 bytes".to_owned();
        return Err(unfit(why, "use a machine whose port is so, such as exanest"));
    }
    Ok(())
}
