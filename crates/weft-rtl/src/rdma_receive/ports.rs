//! The ports of the RTL of the receive unit.

use crate::library::{Instance, RtlError, RtlPort};
use crate::ports::{RegisterPorts, StreamPorts};

/// The ports.
pub(super) struct ReceivePorts {
    /// Cells from the network, and answers to it.
    pub cells: StreamPorts,
    pub answers: StreamPorts,
    pub registers: RegisterPorts,
    pub aw_valid: RtlPort,
    pub aw_address: RtlPort,
    pub aw_length: RtlPort,
    pub w_valid: RtlPort,
    pub w_ready: RtlPort,
    pub w_data: RtlPort,
    pub w_strobe: RtlPort,
    pub w_last: RtlPort,
    pub b_valid: RtlPort,
    pub b_ready: RtlPort,
}

impl ReceivePorts {
    /// The ports, with those set that do not change.
    pub fn begin(rtl: &mut Instance) -> Result<ReceivePorts, RtlError> {
        let registers = RegisterPorts::begin(rtl, 18)?;
        rtl.set(rtl.port("m_axi_awready", 1)?, 1);
        let port = |name: &str, bits| rtl.port(name, bits);
        Ok(ReceivePorts {
            cells: StreamPorts::from_network(rtl)?,
            answers: StreamPorts::to_network(rtl)?,
            registers,
            aw_valid: port("m_axi_awvalid", 1)?,
            aw_address: port("m_axi_awaddr", 42)?,
            aw_length: port("m_axi_awlen", 8)?,
            w_valid: port("m_axi_wvalid", 1)?,
            w_ready: port("m_axi_wready", 1)?,
            w_data: port("m_axi_wdata", 128)?,
            w_strobe: port("m_axi_wstrb", 16)?,
            w_last: port("m_axi_wlast", 1)?,
            b_valid: port("m_axi_bvalid", 1)?,
            b_ready: port("m_axi_bready", 1)?,
        })
    }
}
