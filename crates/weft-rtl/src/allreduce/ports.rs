//! The ports of the accelerator.

use super::packets::OfferedWord;
use crate::library::{Instance, RtlError, RtlPort};

/// The ports that are driven and compared.
pub(super) struct AllreducePorts {
    pub reset: RtlPort,
    pub node: RtlPort,
    pub net_valid: RtlPort,
    pub net_ready: RtlPort,
    pub net_data: RtlPort,
    pub net_last: RtlPort,
    out_valid: RtlPort,
    pub out_ready: RtlPort,
    out_data: RtlPort,
    out_last: RtlPort,
    ar_valid: RtlPort,
    pub ar_ready: RtlPort,
    ar_id: RtlPort,
    ar_address: RtlPort,
    pub r_valid: RtlPort,
    pub r_ready: RtlPort,
    pub r_id: RtlPort,
    pub r_data: RtlPort,
    pub r_last: RtlPort,
    aw_valid: RtlPort,
    pub aw_ready: RtlPort,
    aw_address: RtlPort,
    w_valid: RtlPort,
    pub w_ready: RtlPort,
    w_data: RtlPort,
    w_strobe: RtlPort,
    w_last: RtlPort,
    pub b_valid: RtlPort,
    pub b_id: RtlPort,
    register_address: RtlPort,
    register_data: RtlPort,
    pub register_strobe: RtlPort,
    register_valid: [RtlPort; 2],
    pub register_ready: RtlPort,
    pub register_answer_ready: RtlPort,
}

/// The outputs of a cycle, by channel of the buses.
pub(super) struct AllreduceOutputs {
    /// Whether the RTL has taken the store that starts an operation.
    pub started: bool,
    pub ar_valid: u128,
    pub ar_id: u128,
    pub ar_address: u128,
    pub offered: OfferedWord,
    pub aw_valid: u128,
    pub aw_address: u128,
    pub w_valid: u128,
    pub w_data: u128,
    pub w_strobe: u128,
    pub w_last: u128,
}

impl AllreducePorts {
    /// The ports of an instance.
    ///
    /// # Errors
    /// It lacks one.
    pub fn of(rtl: &Instance) -> Result<AllreducePorts, RtlError> {
        let port = |name: &str, bits| rtl.port(name, bits);
        Ok(AllreducePorts {
            reset: port("reset", 1)?,
            node: port("node", 22)?,
            net_valid: port("s_axis_net_tvalid", 1)?,
            net_ready: port("s_axis_net_tready", 1)?,
            net_data: port("s_axis_net_tdata", 128)?,
            net_last: port("s_axis_net_tlast", 1)?,
            out_valid: port("m_axis_net_tvalid", 1)?,
            out_ready: port("m_axis_net_tready", 1)?,
            out_data: port("m_axis_net_tdata", 128)?,
            out_last: port("m_axis_net_tlast", 1)?,
            ar_valid: port("m_axi_arvalid", 1)?,
            ar_ready: port("m_axi_arready", 1)?,
            ar_id: port("m_axi_arid", 1)?,
            ar_address: port("m_axi_araddr", 49)?,
            r_valid: port("m_axi_rvalid", 1)?,
            r_ready: port("m_axi_rready", 1)?,
            r_id: port("m_axi_rid", 1)?,
            r_data: port("m_axi_rdata", 128)?,
            r_last: port("m_axi_rlast", 1)?,
            aw_valid: port("m_axi_awvalid", 1)?,
            aw_ready: port("m_axi_awready", 1)?,
            aw_address: port("m_axi_awaddr", 49)?,
            w_valid: port("m_axi_wvalid", 1)?,
            w_ready: port("m_axi_wready", 1)?,
            w_data: port("m_axi_wdata", 128)?,
            w_strobe: port("m_axi_wstrb", 16)?,
            w_last: port("m_axi_wlast", 1)?,
            b_valid: port("m_axi_bvalid", 1)?,
            b_id: port("m_axi_bid", 1)?,
            register_address: port("s_axil_awaddr", 13)?,
            register_data: port("s_axil_wdata", 64)?,
            register_strobe: port("s_axil_wstrb", 8)?,
            register_valid: [port("s_axil_awvalid", 1)?, port("s_axil_wvalid", 1)?],
            register_ready: port("s_axil_awready", 1)?,
            register_answer_ready: port("s_axil_bready", 1)?,
        })
    }

    /// Puts the store of a register onto the bus, or none.
    pub fn write_register(&self, rtl: &mut Instance, write: Option<(u32, u64)>) {
        if let Some((address, value)) = write {
            rtl.set(self.register_address, address.into());
            rtl.set(self.register_data, value.into());
        }
        for port in self.register_valid {
            rtl.set(port, write.is_some().into());
        }
    }

    /// The outputs of the cycle that is over, in which an operation was started or was not.
    pub fn outputs(&self, rtl: &Instance, started: bool) -> AllreduceOutputs {
        let get = |port| rtl.get(port);
        AllreduceOutputs {
            started,
            ar_valid: get(self.ar_valid),
            ar_id: get(self.ar_id),
            ar_address: get(self.ar_address),
            offered: OfferedWord {
                valid: get(self.out_valid),
                data: get(self.out_data),
                last: get(self.out_last),
            },
            aw_valid: get(self.aw_valid),
            aw_address: get(self.aw_address),
            w_valid: get(self.w_valid),
            w_data: get(self.w_data),
            w_strobe: get(self.w_strobe),
            w_last: get(self.w_last),
        }
    }
}
