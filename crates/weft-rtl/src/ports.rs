//! Ports that several blocks have: packets, stores into registers and into pages, and the reset.

use crate::library::{Instance, RtlError, RtlPort};
use crate::words::BusWord;
use weft_units::EndpointId;

/// A stream of words of 128 bits: AXI4-Stream.
pub(crate) struct StreamPorts {
    valid: RtlPort,
    ready: RtlPort,
    data: RtlPort,
    last: RtlPort,
}

/// The word that a block offers on a stream in a cycle, if it is valid.
pub(crate) struct OfferedWord {
    pub valid: u128,
    pub data: u128,
    pub last: u128,
}

impl StreamPorts {
    /// Packets that come from the network.
    pub fn from_network(rtl: &Instance) -> Result<StreamPorts, RtlError> {
        StreamPorts::of(rtl, "s_axis_net")
    }

    /// Packets that go to it.
    pub fn to_network(rtl: &Instance) -> Result<StreamPorts, RtlError> {
        StreamPorts::of(rtl, "m_axis_net")
    }

    /// The stream of this name.
    pub fn of(rtl: &Instance, name: &str) -> Result<StreamPorts, RtlError> {
        let port = |signal: &str, bits| rtl.port(&format!("{name}_t{signal}"), bits);
        let (valid, ready) = (port("valid", 1)?, port("ready", 1)?);
        Ok(StreamPorts { valid, ready, data: port("data", 128)?, last: port("last", 1)? })
    }

    /// Offers the block a word in the next cycle, or none.
    pub fn offer(&self, rtl: &mut Instance, word: Option<BusWord>) {
        rtl.set(self.valid, word.is_some().into());
        if let Some(word) = word {
            rtl.set(self.data, word.data);
            rtl.set(self.last, word.last.into());
        }
    }

    /// Whether the block takes a word in the cycle that is over.
    pub fn is_ready(&self, rtl: &Instance) -> bool {
        rtl.get(self.ready) != 0
    }

    /// Whether a word of the block is taken in the next cycle.
    pub fn set_ready(&self, rtl: &mut Instance, ready: bool) {
        rtl.set(self.ready, ready.into());
    }

    /// The word that the block offers in the cycle that is over.
    pub fn offered(&self, rtl: &Instance) -> OfferedWord {
        OfferedWord { valid: rtl.get(self.valid), data: rtl.get(self.data), last: rtl.get(self.last) }
    }
}

/// Stores into registers: AXI4-Lite, which is only written.
pub(crate) struct RegisterPorts(StorePorts);

/// Stores into pages: AXI4, in bursts of one word.
pub(crate) struct PagePorts(StorePorts);

/// The address and the word of a store.
struct StorePorts {
    address: RtlPort,
    data: RtlPort,
    strobe: RtlPort,
    valid: [RtlPort; 2],
    ready: RtlPort,
    answer_ready: RtlPort,
}

impl StorePorts {
    fn of(rtl: &Instance, name: &str, [address, data]: [u32; 2]) -> Result<StorePorts, RtlError> {
        let port = |signal: &str, bits| rtl.port(&format!("{name}_{signal}"), bits);
        Ok(StorePorts {
            address: port("awaddr", address)?,
            data: port("wdata", data)?,
            strobe: port("wstrb", data / 8)?,
            valid: [port("awvalid", 1)?, port("wvalid", 1)?],
            ready: port("awready", 1)?,
            answer_ready: port("bready", 1)?,
        })
    }

    fn store(&self, rtl: &mut Instance, store: Option<(u32, u128)>) {
        if let Some((address, data)) = store {
            rtl.set(self.address, address.into());
            rtl.set(self.data, data);
        }
        for port in self.valid {
            rtl.set(port, store.is_some().into());
        }
    }

    fn is_ready(&self, rtl: &Instance) -> bool {
        rtl.get(self.ready) != 0
    }
}

impl RegisterPorts {
    /// The registers of a block, with addresses of so many bits. They are written whole.
    pub fn begin(rtl: &mut Instance, address: u32) -> Result<RegisterPorts, RtlError> {
        let ports = StorePorts::of(rtl, "s_axil", [address, 64])?;
        rtl.set(ports.strobe, 0xFF);
        rtl.set(ports.answer_ready, 1);
        Ok(RegisterPorts(ports))
    }

    /// Writes a register in the next cycle, or none.
    pub fn store(&self, rtl: &mut Instance, store: Option<(u32, u64)>) {
        self.0.store(rtl, store.map(|(address, value)| (address, value.into())));
    }

    /// Whether the block takes a store in the cycle that is over.
    pub fn is_ready(&self, rtl: &Instance) -> bool {
        self.0.is_ready(rtl)
    }
}

impl PagePorts {
    /// The pages of a block, with addresses of so many bits. Words are written whole.
    pub fn begin(rtl: &mut Instance, address: u32) -> Result<PagePorts, RtlError> {
        let ports = StorePorts::of(rtl, "s_axi", [address, 128])?;
        let last = rtl.port("s_axi_wlast", 1)?;
        rtl.set(ports.strobe, 0xFFFF);
        rtl.set(ports.answer_ready, 1);
        rtl.set(last, 1);
        Ok(PagePorts(ports))
    }

    /// Stores a word in the next cycle, or none.
    pub fn store(&self, rtl: &mut Instance, store: Option<(u32, u128)>) {
        self.0.store(rtl, store);
    }

    /// Whether the block takes a store in the cycle that is over.
    pub fn is_ready(&self, rtl: &Instance) -> bool {
        self.0.is_ready(rtl)
    }
}

/// Resets a block of an endpoint, which clears its memories for so many cycles, before the run's first cycle.
pub(crate) fn reset(rtl: &mut Instance, node: EndpointId, clearing: u64) -> Result<(), RtlError> {
    let (reset, number) = (rtl.port("reset", 1)?, rtl.port("node", 22)?);
    rtl.set(number, node.0.into());
    rtl.set(reset, 1);
    rtl.cycle();
    rtl.cycle();
    rtl.set(reset, 0);
    (0..clearing).for_each(|_| rtl.cycle());
    Ok(())
}
