//! The ports of the RTL of the send unit.

use crate::library::{Instance, RtlError, RtlPort};
use weft_units::EndpointId;

/// The ports.
pub(super) struct SegmentationPorts {
    pub reset: RtlPort,
    pub node: RtlPort,
    pub store_valid: [RtlPort; 2],
    pub store_ready: RtlPort,
    pub store_address: RtlPort,
    pub store_data: RtlPort,
    pub store_strobe: RtlPort,
    pub store_last: RtlPort,
    pub store_answer_ready: RtlPort,
    pub store_answer_valid: RtlPort,
    pub store_answer: RtlPort,
    pub read_valid: RtlPort,
    pub read_ready: RtlPort,
    pub read_address: RtlPort,
    pub read_length: RtlPort,
    pub data_valid: RtlPort,
    pub data: RtlPort,
    pub data_last: RtlPort,
    pub net_valid: RtlPort,
    pub net_ready: RtlPort,
    pub net_data: RtlPort,
    pub net_last: RtlPort,
    pub answer_valid: RtlPort,
    pub answer_ready: RtlPort,
    pub answer_data: RtlPort,
    pub answer_last: RtlPort,
}

impl SegmentationPorts {
    pub fn new(rtl: &Instance) -> Result<SegmentationPorts, RtlError> {
        let port = |name: &str, bits| rtl.port(name, bits);
        Ok(SegmentationPorts {
            reset: port("reset", 1)?,
            node: port("node", 22)?,
            store_valid: [port("s_axi_awvalid", 1)?, port("s_axi_wvalid", 1)?],
            store_ready: port("s_axi_awready", 1)?,
            store_address: port("s_axi_awaddr", 17)?,
            store_data: port("s_axi_wdata", 128)?,
            store_strobe: port("s_axi_wstrb", 16)?,
            store_last: port("s_axi_wlast", 1)?,
            store_answer_ready: port("s_axi_bready", 1)?,
            store_answer_valid: port("s_axi_bvalid", 1)?,
            store_answer: port("s_axi_bresp", 2)?,
            read_valid: port("m_axi_arvalid", 1)?,
            read_ready: port("m_axi_arready", 1)?,
            read_address: port("m_axi_araddr", 42)?,
            read_length: port("m_axi_arlen", 8)?,
            data_valid: port("m_axi_rvalid", 1)?,
            data: port("m_axi_rdata", 128)?,
            data_last: port("m_axi_rlast", 1)?,
            net_valid: port("m_axis_net_tvalid", 1)?,
            net_ready: port("m_axis_net_tready", 1)?,
            net_data: port("m_axis_net_tdata", 128)?,
            net_last: port("m_axis_net_tlast", 1)?,
            answer_valid: port("s_axis_net_tvalid", 1)?,
            answer_ready: port("s_axis_net_tready", 1)?,
            answer_data: port("s_axis_net_tdata", 128)?,
            answer_last: port("s_axis_net_tlast", 1)?,
        })
    }

    /// Resets the RTL, before the run's first cycle.
    pub fn reset(&self, rtl: &mut Instance, node: EndpointId, clearing: u64) {
        rtl.set(self.node, node.0.into());
        rtl.set(self.store_strobe, 0xFFFF);
        rtl.set(self.store_last, 1);
        rtl.set(self.store_answer_ready, 1);
        rtl.set(self.read_ready, 1);
        rtl.set(self.reset, 1);
        rtl.cycle();
        rtl.cycle();
        rtl.set(self.reset, 0);
        (0..clearing).for_each(|_| rtl.cycle());
    }
}
