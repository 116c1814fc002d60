//! The sections of a machine file on the interface.

use super::header::Field;
use super::lattice::Lattice;
use super::memory::KernelMemory;
use serde::{Deserialize, Serialize};
use weft_keys::{Misfit, Problem};
use weft_units::{Bytes, Clock};

/// Bytes of a word of the datapath in use: the width of a FIFO, 128 bits (D2.8 §2, §5.2.1).
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
        /// Bytes that a port's two receiving FIFOs hold together, headers and footers included, in whole
        /// words: the switch counts them as credits.
        receive_fifo: Bytes;
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

    /// Checks that the receiving FIFOs have whole words, and room for the largest packet.
    ///
    /// # Errors
    /// The key to change, and how.
    pub fn check_receive_fifo(&self, largest: Bytes) -> Result<(), Misfit> {
        whole_words("receive_fifo", self.receive_fifo, LEAST_FIFO)?;
        if largest <= self.receive_fifo {
            return Ok(());
        }
        let why = format!("a receiving FIFO of {} holds no packet of {largest}", self.receive_fifo);
        let least = WORD * largest.div_ceil(WORD);
        Err(Problem::new(why, "too small", format!("write {least} or more")).of("receive_fifo"))
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
    /// Bytes of a word.
    pub word: Bytes,
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
    pub fn words(&self, bytes: Bytes) -> u32 {
        u32::try_from(bytes.div_ceil(self.word)).unwrap_or(u32::MAX)
    }

    /// Words of header and footer.
    pub fn envelope_words(&self) -> u32 {
        self.words(self.header) + self.words(self.footer)
    }

    /// Words of the largest packet.
    pub fn largest_words(&self) -> u32 {
        self.envelope_words() + self.words(self.payload)
    }

    /// Cycles that a kernel and its aggregator take for a packet of `payload`, one packet after the other.
    pub fn packet_cycles(&self, payload: Bytes) -> u64 {
        let read = self.memory.read((payload, self.word), &self.clock);
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
            let receive_fifo = fifo;
            let (fifo_latency, aggregator, dispatcher) = (0, 0, 0);
            let own = IntraNodeParameters {
                ports,
                fifo,
                receive_fifo,
                fifo_latency,
                threshold,
                aggregator,
                dispatcher,
            };
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

    /// Catches receiving FIFOs that would never take a packet, and a limit that is off by one.
    #[test]
    fn a_receiving_fifo_holds_a_packet() {
        let own = |receive_fifo| IntraNodeParameters {
            ports: 1,
            fifo: Bytes::new(64),
            receive_fifo: Bytes::new(receive_fifo),
            fifo_latency: 0,
            threshold: Bytes::ZERO,
            aggregator: 0,
            dispatcher: 0,
        };
        let mend = |receive_fifo, largest| {
            own(receive_fifo).check_receive_fifo(Bytes::new(largest)).err().map(|misfit| misfit.help)
        };
        assert_eq!(mend(128, 128), None);
        assert_eq!(mend(128, 129).unwrap(), "write 144 or more");
        assert!(mend(120, 64).unwrap().contains("a multiple of 16"));
    }

    /// Catches a payload that the size field of the header cannot tell.
    #[test]
    fn the_header_tells_the_payload() {
        assert_eq!(CommunicationIpParameters::check_payload(Bytes::new((1 << 14) - 1)), Ok(()));
        let problem = CommunicationIpParameters::check_payload(Bytes::new(1 << 14)).unwrap_err();
        assert!(problem.help.contains("packet.payload of at most 16383"), "{problem:?}");
    }
}
