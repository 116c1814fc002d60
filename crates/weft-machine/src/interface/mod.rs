//! `[nic]` and `[host]`: the endpoints of a machine.
//!
//! ```text
//!  [nic] ── RawNic ── read ──► Nic ── model ──► dyn InterfaceModel ──► limits, pace, … for experiments
//!                               └── match in weft_network ──► the interface of weft_nic
//! ```
//! An interface is a file here and a line in `interfaces!`. Its blocks in `weft_nic` declare their keys; the
//! tables of these are in [`RawNic`].

mod apenetx;
mod carvnet;
mod communication_ip;
mod exanet;
mod overheads;
mod portals;
mod rdma;

pub use apenetx::ApenetxNic;
pub use carvnet::CarvnetNic;
pub use communication_ip::CommunicationIpNic;
pub use exanet::ExanetNic;
pub use rdma::Rdma;

use super::diagnostic::Placed as _;
use super::part_power::RawPartPower;
use super::read::{Reader, section_of_keys};
use super::table::Table;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use weft_fabric::parameters::PacketFormat;
use weft_keys::{Misfit, Problem};
use weft_msg::{PostCosts, Protocol};
use weft_nic::allreduce::AllreduceParameters;
use weft_nic::apenetx::{
    CardParameters, CardToHostParameters, ChosenCompletion, GpuParameters, HostToCardParameters,
    PcieHostParameters, SoftwareParameters,
};
use weft_nic::communication_ip::{ChosenMemory, HostSync, IntraNodeParameters, KernelMemory};
use weft_nic::connection::ConnectionParameters;
use weft_nic::host_port::HostPortParameters;
use weft_nic::iommu::IommuParameters;
use weft_nic::mailbox::MailboxParameters;
use weft_nic::memory::MemoryParameters;
use weft_nic::packetizer::PacketizerParameters;
use weft_nic::rdma::{RdmaParameters, SourceContexts};
use weft_nic::segmentation::SegmentationKeys;
use weft_nic::{CheckParameters, OverheadsParameters, PortalsParameters};
use weft_topo::{MessageClasses, TopologyParameters};
use weft_units::{Bytes, Clock, Span};

weft_keys::keys! {
    /// The model of the interface, with what all of them may need.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct ChosenModel {
        /// The model: `overheads` per message and per packet, or the blocks of a document: `exanet` (TR-488),
        /// `carvnet` (D1.4 §8.2), `communication-ip` (D2.8), `apenetx` (APX), `portals` (D1.4 §2.2 and §10).
        model: NicModel;
        /// The interface's clock, for costs in cycles.
        clock: Option<Clock>;
    }
}

section_of_keys! {
    /// The network interface.
    struct RawNic {
        keys {
            chosen: ChosenModel,
            overheads: OverheadsParameters where "model" = ["overheads", "portals"],
        }
        /// Overheads: reliable connections; nothing is sent again where not given.
        reliability: Option<Table<ConnectionParameters>>,
        /// Power of each interface; nothing is known of it where not given.
        power: Option<RawPartPower>,
        ;
        keys { check: CheckParameters, }
        /// Exanet: the port between processors and memory on one side and the interface on the other.
        host_port: Option<Table<HostPortParameters>>,
        /// Exanet: small messages out.
        packetizer: Option<Table<PacketizerParameters>>,
        /// Exanet: small messages in.
        mailbox: Option<Table<MailboxParameters>>,
        /// Exanet: the send and receive units of RDMA.
        rdma: Option<Table<RdmaParameters>>,
        /// Exanet: the agent that splits transfers into blocks; one for all processes of an interface.
        segmentation: Option<Table<SegmentationKeys>>,
        /// Exanet, apenetx: address translation.
        iommu: Option<Table<IommuParameters>>,
        /// Exanet: the memory channel that cores and interfaces of a host share.
        memory: Option<Table<MemoryParameters>>,
        /// Exanet: the allreduce accelerator; a machine without the section has none.
        allreduce: Option<Table<AllreduceParameters>>,
        /// Communication IP: the IntraNode ports.
        intra_node: Option<Table<IntraNodeParameters>>,
        ;
        keys { memory_of_kernels: ChosenMemory, }
        /// Communication IP: block RAM.
        bram: Option<Table<KernelMemory>>,
        /// Communication IP: DDR of the card.
        ddr: Option<Table<KernelMemory>>,
        /// Communication IP: copies of buffers between host and card; without the section they take no time.
        sync: Option<Table<HostSync>>,
        /// Carvnet: contexts of the send unit, which hardware gives to descriptors and takes back.
        contexts: Option<Table<SourceContexts>>,
        /// Portals: end-to-end reliability.
        transport: Option<Table<PortalsParameters>>,
        ;
        keys { completions: ChosenCompletion, }
        /// Apenetx: the PCIe port and the memory behind it.
        pcie: Option<Table<PcieHostParameters>>,
        /// Apenetx: the logic of the card.
        card: Option<Table<CardParameters>>,
        /// Apenetx: from the host to the network.
        host_to_card: Option<Table<HostToCardParameters>>,
        /// Apenetx: from the network to the host.
        card_to_host: Option<Table<CardToHostParameters>>,
        /// Apenetx: library and driver.
        software: Option<Table<SoftwareParameters>>,
        /// Apenetx: the GPU of a host, and the memory that programs' buffers lie in.
        gpu: Option<Table<GpuParameters>>,
    }
}

impl RawNic {
    /// The interface's clock, if it has one.
    fn clock(&self) -> Option<Clock> {
        self.chosen?.clock
    }

    /// Reports the keys that a model needs and that are not there. A machine that has them says `what` they
    /// are, as the one that ships under this name does.
    fn report_lacks(&self, needs: &[(&str, bool)], (what, example): (&str, &str), reader: &mut Reader<'_>) {
        let lacks = needs.iter().filter(|(_, is_there)| !is_there).map(|(key, _)| format!("nic.{key}"));
        let lacks: Vec<String> = lacks.collect();
        let Some(ChosenModel { model, .. }) = self.chosen.filter(|_| !lacks.is_empty()) else { return };
        let problem = Problem::new(
            format!("`nic.model = \"{}\"` needs {}", model.name(), lacks.join(", ")),
            format!("this machine does not say {what}"),
            format!("add these keys, as machines/{example}.toml has them, or write model = \"overheads\""),
        );
        reader.report(self.locations.of("model"), problem);
    }
}

/// Properties of an interface that experiments ask for, whichever interface it is.
pub trait InterfaceModel {
    /// The limits on the ranks of an endpoint; none where the interface serves any number.
    fn rank_limits(&self) -> Vec<RankLimit> {
        Vec::new()
    }

    /// The limits that a real process finds at its endpoint.
    fn process_limits(&self) -> ProcessLimits;

    /// The time that a post to a virtual interface takes a real process: what messaging says of such posts,
    /// where the interface says nothing of its own.
    fn post_costs(&self, protocol: &Protocol) -> PostCosts {
        PostCosts::of_messaging(protocol)
    }

    /// The pace at which packets of one message follow each other, for packets with `payload`.
    fn pace(&self, payload: Bytes) -> InterfacePace;

    /// Whether messages carry real bytes, so that hosts can check what arrives.
    fn carries_data(&self) -> bool;

    /// Whether it sends messages to multicast groups.
    fn multicasts(&self) -> bool {
        false
    }

    /// The longest message that it carries. By default what leaves room for sums of bytes.
    fn longest_message(&self) -> Bytes {
        Bytes::new(1 << 62)
    }

    /// Whether it takes the packets of a connection in order alone, so that a routing of several paths has
    /// them sent again. Some do only where links may lose packets.
    fn wants_order(&self, _links_may_fail: bool) -> bool {
        false
    }

    /// Checks that it can name every endpoint of a topology.
    ///
    /// # Errors
    /// The key of `[topology]` that it cannot work with.
    fn check_topology(&self, _topology: &TopologyParameters) -> Result<(), Misfit> {
        Ok(())
    }

    /// Whether ranks may use several of it, as rails of their host.
    fn is_rail(&self) -> bool {
        false
    }

    /// The treatment of each class of messages, on a network with so many virtual channels.
    fn message_classes(&self, virtual_channels: u32) -> MessageClasses;
}

/// A limit on the ranks of an endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RankLimit {
    /// Ranks that an endpoint may have.
    pub most: u32,
    /// The property of the interface behind the limit, as the predicate of a sentence.
    pub reason: String,
    /// The keys that raise the limit, in words.
    pub keys: &'static str,
}

/// The limits that a real process finds at its endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessLimits {
    /// Virtual interfaces: processes of an endpoint.
    pub interfaces: u32,
    /// Those of them that have a page of RDMA channels: the first so many. Only they write, and are read.
    pub pages: u32,
    /// Largest payload of a small message.
    pub small: Bytes,
}

/// The pace at which packets of one message follow each other in an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfacePace {
    /// Least time between packets sent.
    pub send_packet: Span,
    /// Least time between packets taken.
    pub receive_packet: Span,
    /// A cycle of the interface, by which a packet may come late; zero where it has no clock.
    pub cycle: Span,
}

/// An interface as its keys of `[nic]` give it.
trait FromSection: Sized {
    /// The keys that the interface has and others may not have.
    fn keys() -> Vec<&'static str>;

    /// Checks the keys. `format` is that of packets, where it is known.
    fn read(raw: RawNic, format: Option<&PacketFormat>, reader: &mut Reader<'_>) -> Option<Self>;
}

/// Registers the interfaces of machine files: variant, name in `nic.model`, type.
macro_rules! interfaces {
    ($($(#[$doc:meta])* $variant:ident = $name:literal: $type:ty;)*) => {
        weft_keys::words! {
            /// The models by their names in machine files, in the order of registration.
            #[derive(Clone, Copy, PartialEq, Eq, Debug)]
            pub(super) enum NicModel: "NicModel", "a model of the interface" {
                $($variant = $name,)*
            }
        }

        impl NicModel {
            /// The keys that the model has and others may not have.
            fn keys(self) -> Vec<&'static str> {
                match self {
                    $(NicModel::$variant => <$type as FromSection>::keys(),)*
                }
            }

            /// Checks the section of this model.
            fn read(
                self,
                raw: RawNic,
                format: Option<&PacketFormat>,
                reader: &mut Reader<'_>,
            ) -> Option<Nic> {
                match self {
                    $(NicModel::$variant => FromSection::read(raw, format, reader).map(Nic::$variant),)*
                }
            }
        }

        /// A network interface.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
        pub enum Nic {
            $($(#[$doc])* $variant($type),)*
        }

        impl Nic {
            /// The properties that experiments ask for.
            pub fn model(&self) -> &dyn InterfaceModel {
                match self {
                    $(Nic::$variant(nic) => nic,)*
                }
            }
        }
    };
}

interfaces! {
    /// Overheads per message and per packet.
    Overheads = "overheads": OverheadsParameters;
    /// Block by block.
    Exanet = "exanet": ExanetNic;
    /// The INFN Communication IP, block by block.
    CommunicationIp = "communication-ip": CommunicationIpNic;
    /// The same blocks with descriptors in SRAM, contexts, and hardware in place of a co-processor.
    Carvnet = "carvnet": CarvnetNic;
    /// Commands, events and the transport of BXI.
    Portals = "portals": PortalsParameters;
    /// The card behind PCIe, block by block.
    Apenetx = "apenetx": ApenetxNic;
}

weft_keys::words! {
    /// Places of the messages of real ranks, as their interface sees them.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
    pub enum MessageBuffers: "MessageBuffers", "places of messages" {
        /// One buffer for each direction and partner. Nothing depends on where the process has its memory.
        #[default]
        Partner = "partner",
        /// The program's own, in the order of first use.
        Program = "program",
    }
}

/// The least memory of a host. What does not fit into it says so.
const LEAST_HOST_MEMORY: Bytes = Bytes::new(1);
/// The most: 1 PiB.
const MOST_HOST_MEMORY: Bytes = Bytes::new(1 << 50);

weft_keys::keys! {
    /// The hosts that endpoints are attached to.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct Host {
        /// Cores, each for one rank.
        cores: u32;
        /// Interfaces of a host; 1 where not given.
        endpoints_per_host: u32 = 1;
        /// Memory of a host, which what its ranks keep must fit into; not looked at where not given.
        memory: Option<Bytes>, within(LEAST_HOST_MEMORY, MOST_HOST_MEMORY);
        /// Time of a poll for messages that finds none. `weft run` needs it.
        poll: Option<Span>;
        /// Time of a reading of the clock. `weft run` needs it.
        clock_read: Option<Span>;
        /// Places of the messages of real ranks, as their interface sees them; `partner` where not given.
        message_buffers: MessageBuffers = MessageBuffers::Partner;
    }
}

impl Host {
    /// Checks that so many endpoints are whole hosts; `None`: their number is not known.
    pub(super) fn check(&self, endpoints: Option<u64>) -> Result<(), Misfit> {
        let per_host = self.endpoints_per_host;
        match endpoints.filter(|endpoints| endpoints % u64::from(per_host) != 0) {
            None => Ok(()),
            Some(endpoints) => Err(Problem::new(
                format!("{endpoints} endpoints are no whole number of hosts"),
                format!("{per_host} each"),
                "write a divisor of the number of endpoints",
            )
            .of("endpoints_per_host")),
        }
    }
}

/// Checks `[nic]`. The keys of other models may stand in the file, and are not in use; a `--set` of one is
/// refused, since whoever writes it expects that something changes.
pub(super) fn check_nic(raw: RawNic, format: Option<&PacketFormat>, reader: &mut Reader<'_>) -> Option<Nic> {
    let model = raw.chosen?.model;
    let own = model.keys();
    let others: BTreeSet<&str> = NicModel::ALL.iter().flat_map(|other| other.keys()).collect();
    for key in others.into_iter().filter(|key| !own.contains(key)) {
        if let Some(path) = reader.forget(&format!("nic.{key}")) {
            let having = NicModel::ALL.iter().filter(|other| other.keys().contains(&key));
            let having: Vec<String> = having.map(|other| format!("\"{}\"", other.name())).collect();
            let problem = Problem::new(
                format!("`{path}` has no effect with nic.model = \"{}\"", model.name()),
                "asked for by --set",
                format!("leave it out, or choose a model that has it: nic.model = {}", having.join(" or ")),
            );
            reader.diagnostics.push(problem.nowhere());
        }
    }
    model.read(raw, format, reader)
}
