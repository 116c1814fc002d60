//! The ports of the RTL of the send unit.

use crate::beats::BeatPorts;
use crate::bus::Bus;
use crate::library::{Instance, RtlError, RtlPort};
use crate::ports::PagePorts;

/// The ports.
pub(super) struct SegmentationPorts {
    pub pages: PagePorts,
    pub store_answer_valid: RtlPort,
    pub store_answer: RtlPort,
    pub read_valid: RtlPort,
    pub read_address: RtlPort,
    pub read_length: RtlPort,
    pub data_valid: RtlPort,
    pub data: Bus,
    pub data_last: RtlPort,
    /// Cells to the network, and answers from it.
    pub cells: BeatPorts,
    pub answers: BeatPorts,
    /// Requests of reads from the network, and the answers to them.
    pub requests: BeatPorts,
    pub request_answers: BeatPorts,
}

impl SegmentationPorts {
    /// The ports, with buses of so many bits, and with those set that do not change.
    pub fn begin(rtl: &mut Instance, bus: u32) -> Result<SegmentationPorts, RtlError> {
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
            data: Bus::of_memory(port("m_axi_rdata", bus)?),
            data_last: port("m_axi_rlast", 1)?,
            cells: BeatPorts::of(rtl, "m_axis_net", bus)?,
            answers: BeatPorts::of(rtl, "s_axis_net", bus)?,
            requests: BeatPorts::of(rtl, "s_axis_request", bus)?,
            request_answers: BeatPorts::of(rtl, "m_axis_answer", bus)?,
        })
    }
}
