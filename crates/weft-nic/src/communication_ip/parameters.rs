//! The sections of a machine file on the interface.

use super::header::Field;
use super::lattice::Lattice;
use super::memory::KernelMemory;
use serde::{Deserialize, Serialize};
use weft_keys::{Misfit, Problem};
use weft_units::{Bytes, Clock};

/// Bytes of a word: the width of a FIFO, 128 bits (D2.8 §2, §5.2.1).
pub const WORD: Bytes = Bytes::new(16);

/// Fewest words of a transmitting FIFO.
const LEAST_FIFO: u32 = 4;

/// Bytes that no FIFO has.
const MOST_FIFO: Bytes = Bytes::new(WORD.get() << 24);

weft_keys::keys! {
    /// The IntraNode ports.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct IntraNodeParameters {
        /// Ports of an endpoint, each for one kernel.
        ports: u32;
        /// Bytes of each of a port's two transmitting FIFOs, in whole words.
        fifo: Bytes;
        /// From the writing of a word into a FIFO until it can be read, in whole cycles.
        fifo_latency: u32, cycles_of("nic.clock");
        /// Register `threshold`: free bytes of a FIFO of data below which its aggregator stops, in whole
        /// words.
        threshold: Bytes;
        /// Of the aggregator and its kernel, before the header of a packet, in whole cycles.
        aggregator: u32, cycles_of("nic.clock");
        /// From a packet's footer to its kernel's having it, in whole cycles: dispatcher and kernel.
        dispatcher: u32, cycles_of("nic.clock");
    }
}

impl IntraNodeParameters {
    /// Checks that headers can name every port of an endpoint.
    ///
    /// # Errors
    /// The key to change, and how.
    pub fn check_ports(&self) -> Result<(), Misfit> {
        let most = Field::IntraDest.values();
        if u64::from(self.ports) <= most {
            return Ok(());
        }
        let why = format!("`intra_dest` of the header names no {} ports", self.ports);
        Err(Problem::new(why, "D2.8 appendix B", format!("write a number from 1 to {most}")).of("ports"))
    }

    /// Checks that a FIFO has whole words, and that its threshold leaves room for some.
    ///
    /// # Errors
    /// The key to change, and how.
    pub fn check_fifo(&self) -> Result<(), Misfit> {
        whole_words("fifo", self.fifo, LEAST_FIFO)?;
        whole_words("threshold", self.threshold, 0)?;
        if self.threshold < self.fifo {
            return Ok(());
        }
        let why = format!("a threshold of {} leaves no room in the FIFO", self.threshold);
        let mend = format!("write less than {}, which is nic.intra_node.fifo", self.fifo);
        Err(Problem::new(why, "", mend).of("threshold"))
    }
}

/// Checks that a key is whole words of a FIFO, so many or more.
fn whole_words(key: &'static str, bytes: Bytes, least: u32) -> Result<(), Misfit> {
    let least = WORD * u64::from(least);
    if bytes.get().is_multiple_of(WORD.get()) && (least..MOST_FIFO).contains(&bytes) {
        return Ok(());
    }
    let why = format!("{bytes} are no words of a FIFO");
    let mend = format!("write a multiple of {WORD}, from {least} to {}", MOST_FIFO - WORD);
    Err(Problem::new(why, "D2.8 §2: a word has 128 bits", mend).of(key))
}

weft_keys::words! {
    /// The memories that may have the buffers of kernels.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum KernelBuffers: "KernelBuffers", "a memory of kernels" {
        /// Block RAM beside the kernel.
        Bram = "bram",
        /// The card's DDR.
        Ddr = "ddr",
    }
}

weft_keys::keys! {
    /// The choice among the memories.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct ChosenMemory {
        /// Communication IP: the memory with the buffers of kernels, `bram` or `ddr`.
        buffers: Option<KernelBuffers>;
    }
}

/// The interface, block by block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CommunicationIpParameters {
    /// The clock of the logic.
    pub clock: Clock,
    /// Nodes and ports.
    pub lattice: Lattice,
    /// The ports, with their FIFOs and kernels.
    pub intra_node: IntraNodeParameters,
    /// Register `credit`: words of the buffer behind a port of the switch.
    pub credit: u32,
    /// Bytes of header, in whole words.
    pub header: Bytes,
    /// Bytes of footer, in whole words.
    pub footer: Bytes,
    /// Largest payload of a packet.
    pub payload: Bytes,
    /// The memory with the buffers of kernels.
    pub memory: KernelMemory,
}

impl CommunicationIpParameters {
    /// Checks that headers can tell the size of a packet with so much payload.
    ///
    /// # Errors
    /// The mistake and the mend; the key to change is that of packets.
    pub fn check_payload(payload: Bytes) -> Result<(), Problem> {
        let (bits, values) = (Field::PacketSize.bits(), Field::PacketSize.values());
        if payload.get() < values {
            return Ok(());
        }
        let why =
            format!("`packet_size` of the header has {bits} bits, and a payload of {payload} does not fit");
        let most = values - 1;
        let mend = format!("write a packet.payload of at most {most}, or nic.model = \"overheads\"");
        Err(Problem::new(why, "D2.8 appendix B", mend))
    }

    /// Words that carry so many bytes.
    pub fn words(bytes: Bytes) -> u32 {
        u32::try_from(bytes.div_ceil(WORD)).unwrap_or(u32::MAX)
    }

    /// Words of a packet's header.
    pub fn header_words(&self) -> u32 {
        CommunicationIpParameters::words(self.header)
    }

    /// Words of header and footer.
    pub fn envelope_words(&self) -> u32 {
        self.header_words() + CommunicationIpParameters::words(self.footer)
    }

    /// Cycles that a kernel and its aggregator take for a packet of `payload`, one packet after the other.
    pub fn packet_cycles(&self, payload: Bytes) -> u64 {
        let read = self.memory.read(payload, &self.clock);
        u64::from(read.first)
            + u64::from(self.intra_node.aggregator)
            + u64::from(self.envelope_words())
            + read.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches FIFOs that are taken though they have parts of words, too few or too many, thresholds that
    /// leave no room, and limits that are off by one.
    #[test]
    fn a_fifo_has_whole_words_and_room() {
        let refused = |fifo, threshold, ports| {
            let [fifo, threshold] = [fifo, threshold].map(Bytes::new);
            let own =
                IntraNodeParameters { ports, fifo, fifo_latency: 0, threshold, aggregator: 0, dispatcher: 0 };
            [own.check_fifo(), own.check_ports()].map(|check| check.err().map(|misfit| misfit.key))
        };
        assert_eq!(refused(64, 48, 16), [None, None]);
        assert_eq!(refused((1 << 28) - 16, 0, 17), [None, Some("ports")]);
        for (fifo, threshold, key) in [
            (48, 0, "fifo"),
            (72, 0, "fifo"),
            (1 << 28, 0, "fifo"),
            (64, 8, "threshold"),
            (64, 64, "threshold"),
        ] {
            assert_eq!(refused(fifo, threshold, 1), [Some(key), None], "{fifo} {threshold}");
        }
    }

    /// Catches a payload that the size field of the header cannot tell.
    #[test]
    fn the_header_tells_the_payload() {
        assert_eq!(CommunicationIpParameters::check_payload(Bytes::new((1 << 14) - 1)), Ok(()));
        let problem = CommunicationIpParameters::check_payload(Bytes::new(1 << 14)).unwrap_err();
        assert!(problem.help.contains("packet.payload of at most 16383"), "{problem:?}");
    }
}
