//! The ports of the RTL of the receive unit.

use crate::beats::BeatPorts;
use crate::bus::Bus;
use crate::library::{Instance, RtlError, RtlPort};
use crate::ports::RegisterPorts;

/// The ports.
pub(super) struct ReceivePorts {
    /// Cells from the network, and answers to it.
    pub cells: BeatPorts,
    pub answers: BeatPorts,
    pub registers: RegisterPorts,
    pub aw_valid: RtlPort,
    pub aw_address: RtlPort,
    pub aw_length: RtlPort,
    /// Bytes of a word, as each address has it beside it: a power of two.
    pub aw_size: RtlPort,
    pub w_valid: RtlPort,
    pub w_ready: RtlPort,
    pub w_data: Bus,
    pub w_strobe: RtlPort,
    pub w_last: RtlPort,
    pub b_valid: RtlPort,
    pub b_ready: RtlPort,
}

impl ReceivePorts {
    /// The ports, with those set that do not change; buses to network and memory have so many bits.
    pub fn begin(rtl: &mut Instance, bus: u32) -> Result<ReceivePorts, RtlError> {
        let registers = RegisterPorts::begin(rtl, 18)?;
        rtl.set(rtl.port("m_axi_awready", 1)?, 1);
        let port = |name: &str, bits| rtl.port(name, bits);
        Ok(ReceivePorts {
            cells: BeatPorts::of(rtl, "s_axis_net", bus)?,
            answers: BeatPorts::of(rtl, "m_axis_net", bus)?,
            registers,
            aw_valid: port("m_axi_awvalid", 1)?,
            aw_address: port("m_axi_awaddr", 42)?,
            aw_length: port("m_axi_awlen", 8)?,
            aw_size: port("m_axi_awsize", 3)?,
            w_valid: port("m_axi_wvalid", 1)?,
            w_ready: port("m_axi_wready", 1)?,
            w_data: Bus::of_memory(port("m_axi_wdata", bus)?),
            w_strobe: port("m_axi_wstrb", bus / u8::BITS)?,
            w_last: port("m_axi_wlast", 1)?,
            b_valid: port("m_axi_bvalid", 1)?,
            b_ready: port("m_axi_bready", 1)?,
        })
    }
}
