//! The ports of the RTL of the receive unit.

use crate::library::{Instance, RtlError, RtlPort};
use weft_units::EndpointId;

/// The ports.
pub(super) struct ReceivePorts {
    pub reset: RtlPort,
    pub node: RtlPort,
    pub net_valid: RtlPort,
    pub net_ready: RtlPort,
    pub net_data: RtlPort,
    pub net_last: RtlPort,
    pub answer_valid: RtlPort,
    pub answer_ready: RtlPort,
    pub answer_data: RtlPort,
    pub answer_last: RtlPort,
    pub aw_valid: RtlPort,
    pub aw_ready: RtlPort,
    pub aw_address: RtlPort,
    pub aw_length: RtlPort,
    pub w_valid: RtlPort,
    pub w_ready: RtlPort,
    pub w_data: RtlPort,
    pub w_strobe: RtlPort,
    pub w_last: RtlPort,
    pub b_valid: RtlPort,
    pub b_ready: RtlPort,
    pub register_address: RtlPort,
    pub register_data: RtlPort,
    pub register_strobe: RtlPort,
    pub register_valid: [RtlPort; 2],
    pub register_ready: RtlPort,
    pub register_answer_ready: RtlPort,
}

impl ReceivePorts {
    pub fn new(rtl: &Instance) -> Result<ReceivePorts, RtlError> {
        let port = |name: &str, bits| rtl.port(name, bits);
        Ok(ReceivePorts {
            reset: port("reset", 1)?,
            node: port("node", 22)?,
            net_valid: port("s_axis_net_tvalid", 1)?,
            net_ready: port("s_axis_net_tready", 1)?,
            net_data: port("s_axis_net_tdata", 128)?,
            net_last: port("s_axis_net_tlast", 1)?,
            answer_valid: port("m_axis_net_tvalid", 1)?,
            answer_ready: port("m_axis_net_tready", 1)?,
            answer_data: port("m_axis_net_tdata", 128)?,
            answer_last: port("m_axis_net_tlast", 1)?,
            aw_valid: port("m_axi_awvalid", 1)?,
            aw_ready: port("m_axi_awready", 1)?,
            aw_address: port("m_axi_awaddr", 42)?,
            aw_length: port("m_axi_awlen", 8)?,
            w_valid: port("m_axi_wvalid", 1)?,
            w_ready: port("m_axi_wready", 1)?,
            w_data: port("m_axi_wdata", 128)?,
            w_strobe: port("m_axi_wstrb", 16)?,
            w_last: port("m_axi_wlast", 1)?,
            b_valid: port("m_axi_bvalid", 1)?,
            b_ready: port("m_axi_bready", 1)?,
            register_address: port("s_axil_awaddr", 18)?,
            register_data: port("s_axil_wdata", 64)?,
            register_strobe: port("s_axil_wstrb", 8)?,
            register_valid: [port("s_axil_awvalid", 1)?, port("s_axil_wvalid", 1)?],
            register_ready: port("s_axil_awready", 1)?,
            register_answer_ready: port("s_axil_bready", 1)?,
        })
    }

    /// Resets the RTL, before the run's first cycle.
    pub fn reset(&self, rtl: &mut Instance, node: EndpointId, clearing: u64) {
        rtl.set(self.node, node.0.into());
        rtl.set(self.register_strobe, 0xFF);
        rtl.set(self.register_answer_ready, 1);
        rtl.set(self.aw_ready, 1);
        rtl.set(self.reset, 1);
        rtl.cycle();
        rtl.cycle();
        rtl.set(self.reset, 0);
        (0..clearing).for_each(|_| rtl.cycle());
    }

    /// Writes a register in the next cycle, or none.
    pub fn write_register(&self, rtl: &mut Instance, write: Option<(u32, u64)>) {
        if let Some((address, value)) = write {
            rtl.set(self.register_address, address.into());
            rtl.set(self.register_data, value.into());
        }
        for port in self.register_valid {
            rtl.set(port, write.is_some().into());
        }
    }
}
