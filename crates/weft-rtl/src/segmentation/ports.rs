//! The ports of the RTL of the send unit.

use crate::library::{Instance, RtlError, RtlPort};
use crate::ports::{PagePorts, StreamPorts};

/// The ports.
pub(super) struct SegmentationPorts {
    pub pages: PagePorts,
    pub store_answer_valid: RtlPort,
    pub store_answer: RtlPort,
    pub read_valid: RtlPort,
    pub read_address: RtlPort,
    pub read_length: RtlPort,
    pub data_valid: RtlPort,
    pub data: RtlPort,
    pub data_last: RtlPort,
    /// Cells to the network, and answers from it.
    pub cells: StreamPorts,
    pub answers: StreamPorts,
    /// Requests of reads from the network, and the answers to them.
    pub requests: StreamPorts,
    pub request_answers: StreamPorts,
}

impl SegmentationPorts {
    /// The ports, with those set that do not change.
    pub fn begin(rtl: &mut Instance) -> Result<SegmentationPorts, RtlError> {
        let pages = PagePorts::begin(rtl, 17)?;
        rtl.set(rtl.port("m_axi_arready", 1)?, 1);
        let port = |name: &str, bits| rtl.port(name, bits);
        Ok(SegmentationPorts {
            pages,
            store_answer_valid: port("s_axi_bvalid", 1)?,
            store_answer: port("s_axi_bresp", 2)?,
            read_valid: port("m_axi_arvalid", 1)?,
            read_address: port("m_axi_araddr", 42)?,
            read_length: port("m_axi_arlen", 8)?,
            data_valid: port("m_axi_rvalid", 1)?,
            data: port("m_axi_rdata", 128)?,
            data_last: port("m_axi_rlast", 1)?,
            cells: StreamPorts::to_network(rtl)?,
            answers: StreamPorts::from_network(rtl)?,
            requests: StreamPorts::of(rtl, "s_axis_request")?,
            request_answers: StreamPorts::of(rtl, "m_axis_answer")?,
        })
    }
}
