//! The receive unit of the RDMA engine as RTL: its ports, what it was built for, and its use.
//!
//! ```text
//!   in_step ── cells, memory, the network's turns ──► RTL ──► writes, notifications and answers compared
//! ```

mod in_step;
mod ports;

pub(crate) use in_step::RdmaReceiveInStep;

use crate::library::{RtlError, RtlLibrary};
use crate::words::cycles;
use weft_nic::ExanetParameters;
use weft_nic::iommu::FaultModel;
use weft_nic::rdma::{REMEMBERED_CHANNELS, REMEMBERED_WAYS, WAITING_BLOCKS};
use weft_nic::segmentation::Cut;
use weft_units::Bytes;

/// The name of the block.
const NAME: &str = "rdma_receive";
/// Bytes of a word.
const WORD: u64 = 16;
/// The cut of transfers: blocks have up to 64 cells, and cells up to 256 bytes.
const CUT: Cut = Cut { block: Bytes::new(16384), cell: Bytes::new(256) };

/// Checks that the RTL was built for the receive unit of a machine.
fn check(library: &RtlLibrary, parameters: &ExanetParameters) -> Result<(), RtlError> {
    let (receive, send) = (&parameters.rdma.receive, &parameters.rdma.send);
    let unfit = |why: String, mend: &str| RtlError::Unfit { block: NAME, why, mend: mend.to_owned() };
    let same = |key, machine: u64, parameter| {
        let rtl = library.parameter(NAME, parameter)?;
        let differs =
            RtlError::Parameter { block: NAME, key, machine, rtl, mend: rtl.to_string(), parameter };
        if machine == rtl { Ok(()) } else { Err(differs) }
    };
    if send.contexts.is_some() {
        let why = "the receive unit of this machine is another".to_owned();
        return Err(unfit(why, "use a machine with nic.model=exanet, such as exanest"));
    }
    same("nic.packetizer.interfaces", parameters.packetizer.interfaces.into(), "INTERFACES")?;
    same("nic.rdma.contexts", receive.contexts.into(), "CONTEXTS")?;
    for (what, model, parameter) in [
        ("channels that are remembered", REMEMBERED_CHANNELS as u64, "CHANNELS"),
        ("ways of a set", REMEMBERED_WAYS as u64, "WAYS"),
        ("blocks that wait for a context", WAITING_BLOCKS as u64, "WAITING"),
    ] {
        let rtl = library.parameter(NAME, parameter)?;
        if model != rtl {
            let why = format!("the model has {model} {what}, and the RTL {rtl}");
            return Err(unfit(why, &format!("build it with {parameter}={model}")));
        }
    }
    let timeout = library.parameter(NAME, "CONTEXT_TIMEOUT")?;
    if cycles(&send.clock, receive.context_timeout) != Some(timeout) {
        let mend = send.clock.cycles(timeout);
        let why = format!("nic.rdma.context_timeout is {}, and {mend} in the RTL", receive.context_timeout);
        return Err(unfit(why, &format!("add --set 'nic.rdma.context_timeout={mend}'")));
    }
    for (key, machine, rtl) in [
        ("nic.rdma.notification", receive.notification.get(), WORD),
        ("nic.host_port.word", parameters.host_port.word.get(), WORD),
        ("nic.rdma.block", send.cut.block.get(), CUT.block.get()),
        ("packet.payload", send.cut.cell.get(), CUT.cell.get()),
        ("nic.rdma.outstanding_blocks", send.outstanding_blocks.into(), 2),
    ] {
        if machine != rtl {
            let why = format!("{key} is {machine}, and {rtl} in the RTL");
            return Err(unfit(why, &format!("add --set {key}={rtl}")));
        }
    }
    if parameters.iommu.faults != FaultModel::Off {
        let why = "the RTL is not told which pages are mapped".to_owned();
        return Err(unfit(why, "add --set nic.iommu.faults=off"));
    }
    Ok(())
}
