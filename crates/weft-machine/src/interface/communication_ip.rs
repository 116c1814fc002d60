//! The keys of `[nic]` for the INFN Communication IP.

use super::{FromSection, InterfaceModel, InterfacePace, ProcessLimits, RankLimit, RawNic};
use crate::read::Reader;
use crate::table::names;
use serde::{Deserialize, Serialize};
use weft_fabric::parameters::PacketFormat;
use weft_keys::{Keys, Misfit, Problem};
use weft_nic::CommunicationIpParameters;
use weft_nic::communication_ip::header::{Field, FieldError};
use weft_nic::communication_ip::{
    ChosenMemory, HostSync, IntraNodeParameters, KernelBuffers, KernelMemory, Lattice, WORD,
};
use weft_topo::{MessageClass, MessageClasses, TopologyParameters};
use weft_units::{Bytes, Clock};

/// The Communication IP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CommunicationIpNic {
    /// The clock of the logic.
    pub clock: Clock,
    /// The ports, with their FIFOs and kernels.
    pub intra_node: IntraNodeParameters,
    /// The memory with the buffers of kernels.
    pub memory: KernelMemory,
    /// Copies between host and card; `None`: the machine does not say what they take.
    pub sync: Option<HostSync>,
    /// Bytes of a packet's header.
    pub header: Bytes,
    /// Bytes of a packet's footer.
    pub footer: Bytes,
    /// Largest payload of a packet.
    pub payload: Bytes,
    /// Bytes of a word.
    #[serde(default = "usual_word")]
    pub word: Bytes,
}

/// The word of a datapath that is not given.
fn usual_word() -> Bytes {
    WORD
}

impl CommunicationIpNic {
    /// The parameters of the simulated interface on this network.
    pub fn parameters(&self, topology: &TopologyParameters) -> CommunicationIpParameters {
        // Checked as the machine was read.
        let node = Lattice { sizes: [1; 3], endpoints_per_node: 1, ports: self.intra_node.ports };
        let lattice = self.lattice(topology).unwrap_or(node);
        let CommunicationIpNic { clock, intra_node, memory, header, footer, payload, word, .. } = *self;
        CommunicationIpParameters { clock, lattice, intra_node, word, header, footer, payload, memory }
    }

    /// The switch has ports of this width.
    ///
    /// # Errors
    /// A width that the IP does not have.
    pub(crate) fn take_datapath(&mut self, word: Bytes) -> Result<(), Problem> {
        if word != WORD && word != WORD * 2 {
            let why = format!("the Communication IP has no datapath of {word}");
            let mend = "write switch.datapath = 16, or the announced 32, or nic.model = \"overheads\"";
            return Err(Problem::new(why, "D2.8 §2, §7: 128 bits, and 256", mend));
        }
        self.word = word;
        Ok(())
    }

    /// Bytes that the receiving FIFOs of an endpoint's ports hold together.
    pub fn receive_fifos(&self) -> Bytes {
        self.intra_node.receive_fifo * u64::from(self.intra_node.ports)
    }

    /// The same without kernels, for the self-test: its generator fills the FIFOs itself.
    pub fn without_kernels(self) -> CommunicationIpNic {
        let intra_node = IntraNodeParameters { aggregator: 0, dispatcher: 0, ..self.intra_node };
        CommunicationIpNic { intra_node, ..self }
    }

    /// The grid of nodes; `None`: the topology is none, or one of more than three dimensions.
    fn lattice(&self, topology: &TopologyParameters) -> Option<Lattice> {
        let (dims, endpoints) = match topology {
            TopologyParameters::Torus(torus) => (&torus.dims, torus.endpoints_per_switch),
            TopologyParameters::Mesh(mesh) => (&mesh.dims, mesh.endpoints_per_switch),
            _ => return None,
        };
        Lattice::new(dims, endpoints, self.intra_node.ports)
    }
}

impl InterfaceModel for CommunicationIpNic {
    fn rank_limits(&self) -> Vec<RankLimit> {
        let ports = self.intra_node.ports;
        let reason = format!("has {ports} IntraNode ports, one for each kernel");
        vec![RankLimit { most: ports, reason, keys: "nic.intra_node.ports" }]
    }

    fn process_limits(&self) -> ProcessLimits {
        ProcessLimits {
            interfaces: self.intra_node.ports,
            pages: self.intra_node.ports,
            // A small message is one packet.
            small: self.payload,
        }
    }

    fn pace(&self, payload: Bytes) -> InterfacePace {
        let read = self.memory.read((payload, self.word), &self.clock);
        let envelope = self.header.div_ceil(self.word) + self.footer.div_ceil(self.word);
        let cycles = u64::from(read.first) + u64::from(self.intra_node.aggregator) + envelope + read.words;
        let receive = envelope + self.memory.cycles((payload, self.word), &self.clock);
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
        let Some(lattice) = Lattice::new(dims, endpoints, self.intra_node.ports) else {
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
        let tables = ["intra_node", "bram", "ddr", "sync"];
        names(ChosenMemory::KEYS).into_iter().chain(tables).collect()
    }

    fn read(
        raw: RawNic,
        format: Option<&PacketFormat>,
        reader: &mut Reader<'_>,
    ) -> Option<CommunicationIpNic> {
        let ChosenMemory { buffers } = raw.memory_of_kernels?;
        raw.report_lacks(
            &[
                ("clock", raw.clock().is_some()),
                ("intra_node", raw.intra_node.is_some()),
                ("buffers", buffers.is_some()),
                ("bram", raw.bram.is_some()),
                ("ddr", raw.ddr.is_some()),
            ],
            ("what the ports of its interface are", "communication-ip"),
            reader,
        );
        let clock = raw.clock();
        let payload = format.map(|format| CommunicationIpParameters::check_payload(format.payload));
        if let Some(Err(problem)) = payload {
            // The place is that of the model, which asks for it.
            reader.report(raw.locations.of("model"), problem);
        }
        let largest = format.map_or(Bytes::ZERO, PacketFormat::largest);
        let checks = |own: &IntraNodeParameters| {
            [own.check_ports(), own.check_fifo(), own.check_receive_fifo(largest)]
        };
        let intra_node = raw.intra_node.and_then(|table| table.check(checks, reader));
        let (memory, other) = match buffers? {
            KernelBuffers::Bram => (raw.bram, "nic.ddr"),
            KernelBuffers::Ddr => (raw.ddr, "nic.bram"),
        };
        reader.forget(other);
        let PacketFormat { header, footer, payload } = *format?;
        let sync = raw.sync.and_then(|table| table.keys);
        let (clock, intra_node, memory) = (clock?, intra_node?, memory?.keys?);
        let word = usual_word();
        Some(CommunicationIpNic { clock, intra_node, memory, sync, header, footer, payload, word })
    }
}

#[cfg(test)]
mod tests {
    use crate::load;

    /// Catches mistakes of one run of which only some are told, and mistakes in tables that are not in use.
    #[test]
    fn all_that_does_not_fit_is_told_at_once() {
        let sets = [
            "nic.intra_node.ports=17",
            "nic.intra_node.threshold=8",
            "packet.payload=16384",
            "switch.buffer=64K",
        ];
        let error = load("communication-ip", &sets).unwrap_err().to_string();
        for told in [
            "names no 17 ports",
            "8 are no words of a FIFO",
            "write a multiple of 16, from 0 to 268435440",
            "a payload of 16K does not fit",
        ] {
            assert!(error.contains(told), "{told}: {error}");
        }
        let others: Vec<&str> = sets.into_iter().filter(|set| !set.starts_with("nic.")).collect();
        load("communication-ip", &[&others[..], &["nic.model=overheads"]].concat()).unwrap();
    }

    /// Catches keys of a model that are not missed, and an error that does not name all of them.
    #[test]
    fn what_makes_the_interface_is_needed() {
        let error = load("exanest", &["nic.model=communication-ip"]).unwrap_err().to_string();
        assert!(error.contains("needs nic.intra_node, nic.buffers, nic.bram, nic.ddr"), "{error}");
        let error = load("communication-ip", &["nic.buffers=sram"]).unwrap_err().to_string();
        assert!(error.contains("not a memory of kernels") && !error.contains("needs"), "{error}");
    }

    /// Catches constants of a memory that is not in use, and an order that is not that of the format.
    #[test]
    fn the_memory_in_use_stands_behind_its_choice() {
        for (buffers, memory) in [("bram", "nic.bram.latency"), ("ddr", "nic.ddr.latency")] {
            let machine = load("communication-ip", &[format!("nic.buffers={buffers}")]).unwrap();
            let paths: Vec<&str> = machine.constants.iter().map(|constant| constant.path.as_str()).collect();
            let at = paths.iter().position(|path| *path == "nic.buffers").unwrap();
            assert_eq!(paths[at - 1..at + 2], ["nic.intra_node.dispatcher", "nic.buffers", memory]);
            let of_memories = |path: &&&str| path.starts_with("nic.bram.") || path.starts_with("nic.ddr.");
            assert_eq!(paths.iter().filter(of_memories).count(), 2);
        }
    }
}
