//! The keys of `[nic]` for the INFN Communication IP.

use super::{FromSection, InterfaceModel, InterfacePace, ProcessLimits, RankLimit, RawNic};
use crate::Fabric;
use crate::read::{Entry, Reader, section};
use serde::{Deserialize, Serialize};
use weft_fabric::parameters::PacketFormat;
use weft_keys::Misfit;
use weft_keys::{Cost, Problem};
use weft_nic::CommunicationIpParameters;
use weft_nic::communication_ip::header::{Field, FieldError};
use weft_nic::communication_ip::{KernelMemory, Lattice, WORD};
use weft_topo::{MessageClass, MessageClasses, TopologyParameters};
use weft_units::{BitRate, Bytes, Clock};

/// Largest payload of a small message of a real process: as on interfaces without a limit of their own.
const SMALL: Bytes = Bytes::new(64);

section! {
    /// The IntraNode ports of the Communication IP.
    struct RawIntraNode {
        /// Ports of an endpoint, each for one kernel.
        ports: Entry<u32>,
        /// Bytes of each of a port's two transmitting FIFOs.
        fifo: Entry<Bytes>,
        /// From the writing of a word into a FIFO until it can be read, in whole cycles.
        fifo_latency: Entry<Cost>,
        /// Register `threshold`: free bytes of a FIFO of data below which its aggregator stops.
        threshold: Entry<Bytes>,
        /// Of the aggregator and its kernel, before the header of a packet, in whole cycles.
        aggregator: Entry<Cost>,
        /// From a packet's footer to its kernel's having it, in whole cycles.
        dispatcher: Entry<Cost>,
    }
}

section! {
    /// A memory of kernels.
    struct RawKernelMemory {
        /// From a request to its first word, in whole cycles.
        latency: Entry<Cost>,
        /// Of reading, and of writing.
        rate: Entry<BitRate>,
    }
}

weft_keys::words! {
    /// The memory with the buffers of kernels.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) enum BuffersName: "KernelBuffers", "a memory of kernels" {
        Bram = "bram",
        Ddr = "ddr",
    }
}

/// The Communication IP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CommunicationIpNic {
    /// The clock of the logic.
    pub clock: Clock,
    /// IntraNode ports of an endpoint.
    pub ports: u32,
    /// Words of each transmitting FIFO.
    pub fifo_words: u32,
    /// From the writing of a word into a FIFO until it can be read, in cycles.
    pub fifo_latency: u32,
    /// Free words of a FIFO of data below which its aggregator stops.
    pub threshold: u32,
    /// Of the aggregator and its kernel, before the header of a packet, in cycles.
    pub aggregator: u32,
    /// From a packet's footer to its kernel's having it, in cycles.
    pub dispatcher: u32,
    /// The memory with the buffers of kernels.
    pub memory: KernelMemory,
    /// Bytes of a packet's header.
    pub header: Bytes,
    /// Bytes of a packet's footer.
    pub footer: Bytes,
    /// Largest payload of a packet.
    pub payload: Bytes,
}

impl CommunicationIpNic {
    /// The parameters of the simulated interface on this network.
    pub fn parameters(&self, topology: &TopologyParameters, fabric: &Fabric) -> CommunicationIpParameters {
        let credit = match fabric {
            Fabric::Packet { switch, .. } => CommunicationIpParameters::words(switch.buffer),
            Fabric::Ideal(_) => 0,
        };
        // Checked as the machine was read.
        let node = Lattice { sizes: [1; 3], endpoints_per_node: 1, ports: self.ports };
        let lattice = self.lattice(topology).unwrap_or(node);
        let CommunicationIpNic { clock, fifo_words, fifo_latency, threshold, .. } = *self;
        let CommunicationIpNic { aggregator, dispatcher, memory, header, footer, payload, .. } = *self;
        CommunicationIpParameters {
            clock,
            lattice,
            fifo_latency,
            fifo_words,
            threshold,
            credit,
            aggregator,
            dispatcher,
            header,
            footer,
            payload,
            memory,
        }
    }

    /// The same without kernels, for the self-test: its generator fills the FIFOs itself.
    pub fn without_kernels(self) -> CommunicationIpNic {
        CommunicationIpNic { aggregator: 0, dispatcher: 0, ..self }
    }

    /// The grid of nodes; `None`: the topology is none, or one of more than three dimensions.
    fn lattice(&self, topology: &TopologyParameters) -> Option<Lattice> {
        let (dims, endpoints) = match topology {
            TopologyParameters::Torus(torus) => (&torus.dims, torus.endpoints_per_switch),
            TopologyParameters::Mesh(mesh) => (&mesh.dims, mesh.endpoints_per_switch),
            _ => return None,
        };
        Lattice::new(dims, endpoints, self.ports)
    }
}

impl InterfaceModel for CommunicationIpNic {
    fn rank_limits(&self) -> Vec<RankLimit> {
        let ports = self.ports;
        let reason = format!("has {ports} IntraNode ports, one for each kernel");
        vec![RankLimit { most: ports, reason, keys: "nic.intra_node.ports" }]
    }

    fn process_limits(&self) -> ProcessLimits {
        ProcessLimits { interfaces: self.ports, pages: self.ports, small: SMALL.min(self.payload) }
    }

    fn pace(&self, payload: Bytes) -> InterfacePace {
        let read = self.memory.read(payload, &self.clock);
        let envelope = self.header.div_ceil(WORD) + self.footer.div_ceil(WORD);
        let cycles = u64::from(read.first) + u64::from(self.aggregator) + envelope + read.words;
        let receive = envelope + self.memory.cycles(payload, &self.clock);
        InterfacePace {
            send_packet: self.clock.cycles(cycles),
            receive_packet: self.clock.cycles(receive),
            cycle: self.clock.cycles(1),
        }
    }

    fn carries_data(&self) -> bool {
        false
    }

    /// Headers name nodes by x, y and z and ports by `intra_dest`: D2.8 appendix B.
    fn check_topology(&self, topology: &TopologyParameters) -> Result<(), Misfit> {
        let (dims, endpoints) = match topology {
            TopologyParameters::Torus(torus) => (&torus.dims, torus.endpoints_per_switch),
            TopologyParameters::Mesh(mesh) => (&mesh.dims, mesh.endpoints_per_switch),
            other => {
                return Err(Misfit {
                    key: "kind",
                    title: format!(
                        "headers of the Communication IP name no node of a {}",
                        other.family().name
                    ),
                    label: "they have x, y and z".to_owned(),
                    help: "write kind = \"torus\" or \"mesh\", or nic.model = \"overheads\"".to_owned(),
                });
            }
        };
        let Some(lattice) = Lattice::new(dims, endpoints, self.ports) else {
            return Err(Misfit {
                key: "dims",
                title: "headers of the Communication IP have three dimensions, x, y and z".to_owned(),
                label: format!("these are {}", dims.len()),
                help: "write at most three sizes, or nic.model = \"overheads\"".to_owned(),
            });
        };
        let Err(FieldError { field, value }) = lattice.check() else { return Ok(()) };
        let (bits, name, most) = (field.bits(), field.name(), field.values());
        let (key, what) = match field {
            Field::IntraDest => ("endpoints_per_switch", "IntraNode ports of a node"),
            _ => ("dims", "nodes along the dimension"),
        };
        let keys = match field {
            Field::IntraDest => "endpoints_per_switch times nic.intra_node.ports",
            _ => "that size",
        };
        Err(Misfit {
            key,
            title: format!(
                "`{name}` of the header has {bits} bits, and {value} does not fit (D2.8 appendix B)"
            ),
            label: format!("{} {what}", value + 1),
            help: format!("write at most {most} for {keys}, or nic.model = \"overheads\""),
        })
    }

    /// Kernels send data, and what messaging makes of it; the interface itself answers nothing.
    fn message_classes(&self, virtual_channels: u32) -> MessageClasses {
        let MessageClasses(mut classes) = MessageClasses::consumed(virtual_channels);
        classes.retain(|known| !matches!(known.class, MessageClass::Ack | MessageClass::Nack));
        MessageClasses(classes)
    }
}

impl FromSection for CommunicationIpNic {
    fn keys() -> Vec<&'static str> {
        vec!["intra_node", "buffers", "bram", "ddr"]
    }

    fn read(
        raw: RawNic,
        format: Option<&PacketFormat>,
        reader: &mut Reader<'_>,
    ) -> Option<CommunicationIpNic> {
        let lacks = [
            raw.clock().is_none().then_some("clock"),
            raw.intra_node.is_none().then_some("intra_node"),
            raw.buffers.is_none().then_some("buffers"),
            raw.bram.is_none().then_some("bram"),
            raw.ddr.is_none().then_some("ddr"),
        ];
        let lacks: Vec<String> = lacks.into_iter().flatten().map(|key| format!("nic.{key}")).collect();
        if !lacks.is_empty() {
            let problem = Problem::new(
                format!("`nic.model = \"communication-ip\"` needs {}", lacks.join(", ")),
                "this machine does not say what the ports of its interface are",
                "add these keys, as machines/communication-ip.toml has them, or write model = \"overheads\"",
            );
            reader.report(raw.locations.of("model"), problem);
        }
        let clock: Clock = raw.clock()?;
        let (intra, bram, ddr) = (raw.intra_node?, raw.bram?, raw.ddr?);
        let memory = match raw.buffers?.value {
            BuffersName::Bram => {
                reader.forget("nic.ddr");
                &bram
            }
            BuffersName::Ddr => {
                reader.forget("nic.bram");
                &ddr
            }
        };
        let memory = KernelMemory { latency: memory.latency.value.cycles(&clock), rate: memory.rate.value };
        let PacketFormat { header, footer, payload } = *format?;
        if payload.get() >= Field::PacketSize.values() {
            // Its place is that of the model, which asks for it.
            let problem = Problem::new(
                format!("`packet_size` of the header has 14 bits, and a payload of {payload} does not fit"),
                "D2.8 appendix B",
                "write a packet.payload of at most 16383, or nic.model = \"overheads\"",
            );
            reader.report(raw.locations.of("model"), problem);
            return None;
        }
        if intra.ports.value == 0 || u64::from(intra.ports.value) > Field::IntraDest.values() {
            let problem = Problem::new(
                format!("`intra_dest` of the header names no {} ports", intra.ports.value),
                "D2.8 appendix B",
                format!("write a number from 1 to {}", Field::IntraDest.values()),
            );
            reader.report(intra.ports.location, problem);
            return None;
        }
        let fifo_words = whole_words(&intra.fifo, 4, reader)?;
        let threshold = whole_words(&intra.threshold, 0, reader)?;
        if threshold >= fifo_words {
            let problem = Problem::new(
                format!("a threshold of {} leaves no room in the FIFO", intra.threshold.value),
                "",
                format!("write less than {}, which is nic.intra_node.fifo", intra.fifo.value),
            );
            reader.report(intra.threshold.location, problem);
            return None;
        }
        Some(CommunicationIpNic {
            clock,
            ports: intra.ports.value,
            fifo_words,
            fifo_latency: intra.fifo_latency.value.cycles(&clock),
            threshold,
            aggregator: intra.aggregator.value.cycles(&clock),
            dispatcher: intra.dispatcher.value.cycles(&clock),
            memory,
            header,
            footer,
            payload,
        })
    }
}

/// The words of a FIFO, `least` of them at least.
fn whole_words(entry: &Entry<Bytes>, least: u64, reader: &mut Reader<'_>) -> Option<u32> {
    let words = entry.value.get() / WORD.get();
    let is_whole = entry.value.get().is_multiple_of(WORD.get());
    match u32::try_from(words).ok().filter(|words| is_whole && u64::from(*words) >= least && *words < 1 << 24)
    {
        Some(words) => Some(words),
        None => {
            let problem = Problem::new(
                format!("{} are no words of a FIFO", entry.value),
                "D2.8 §2: a word has 128 bits",
                format!("write a multiple of {WORD}, {} or more", WORD * least),
            );
            reader.report(entry.location, problem);
            None
        }
    }
}
