//! The ports of the accelerator.

use crate::library::{Instance, RtlError, RtlPort};
use crate::ports::{OfferedWord, RegisterPorts, StreamPorts};

/// The ports that are driven and compared.
pub(super) struct AllreducePorts {
    pub registers: RegisterPorts,
    /// Packets from the network and to it.
    pub coming: StreamPorts,
    pub going: StreamPorts,
    ar_valid: RtlPort,
    ar_id: RtlPort,
    ar_address: RtlPort,
    ar_length: RtlPort,
    pub r_valid: RtlPort,
    pub r_ready: RtlPort,
    pub r_id: RtlPort,
    pub r_data: RtlPort,
    pub r_last: RtlPort,
    aw_valid: RtlPort,
    aw_address: RtlPort,
    aw_length: RtlPort,
    w_valid: RtlPort,
    pub w_ready: RtlPort,
    w_data: RtlPort,
    w_strobe: RtlPort,
    w_last: RtlPort,
    pub b_valid: RtlPort,
    pub b_id: RtlPort,
}

/// The outputs of a cycle, by channel of the buses.
pub(super) struct AllreduceOutputs {
    /// Whether the RTL has taken the store that starts an operation.
    pub started: bool,
    pub ar_valid: u128,
    pub ar_id: u128,
    pub ar_address: u128,
    /// Words but one.
    pub ar_length: u128,
    pub offered: OfferedWord,
    pub aw_valid: u128,
    pub aw_address: u128,
    /// See `ar_length`.
    pub aw_length: u128,
    pub w_valid: u128,
    pub w_data: u128,
    pub w_strobe: u128,
    pub w_last: u128,
}

impl AllreducePorts {
    /// The ports of an instance, with those set that do not change.
    ///
    /// # Errors
    /// It lacks one.
    pub fn begin(rtl: &mut Instance) -> Result<AllreducePorts, RtlError> {
        let registers = RegisterPorts::begin(rtl, 13)?;
        for always in ["m_axi_arready", "m_axi_awready"] {
            rtl.set(rtl.port(always, 1)?, 1);
        }
        let port = |name: &str, bits| rtl.port(name, bits);
        Ok(AllreducePorts {
            registers,
            coming: StreamPorts::from_network(rtl)?,
            going: StreamPorts::to_network(rtl)?,
            ar_valid: port("m_axi_arvalid", 1)?,
            ar_id: port("m_axi_arid", 1)?,
            ar_address: port("m_axi_araddr", 49)?,
            ar_length: port("m_axi_arlen", 8)?,
            r_valid: port("m_axi_rvalid", 1)?,
            r_ready: port("m_axi_rready", 1)?,
            r_id: port("m_axi_rid", 1)?,
            r_data: port("m_axi_rdata", 128)?,
            r_last: port("m_axi_rlast", 1)?,
            aw_valid: port("m_axi_awvalid", 1)?,
            aw_address: port("m_axi_awaddr", 49)?,
            aw_length: port("m_axi_awlen", 8)?,
            w_valid: port("m_axi_wvalid", 1)?,
            w_ready: port("m_axi_wready", 1)?,
            w_data: port("m_axi_wdata", 128)?,
            w_strobe: port("m_axi_wstrb", 16)?,
            w_last: port("m_axi_wlast", 1)?,
            b_valid: port("m_axi_bvalid", 1)?,
            b_id: port("m_axi_bid", 1)?,
        })
    }

    /// The outputs of the cycle that is over, in which an operation was started or was not.
    pub fn outputs(&self, rtl: &Instance, started: bool) -> AllreduceOutputs {
        let get = |port| rtl.get(port);
        AllreduceOutputs {
            started,
            ar_valid: get(self.ar_valid),
            ar_id: get(self.ar_id),
            ar_address: get(self.ar_address),
            ar_length: get(self.ar_length),
            offered: self.going.offered(rtl),
            aw_valid: get(self.aw_valid),
            aw_address: get(self.aw_address),
            aw_length: get(self.aw_length),
            w_valid: get(self.w_valid),
            w_data: get(self.w_data),
            w_strobe: get(self.w_strobe),
            w_last: get(self.w_last),
        }
    }
}
