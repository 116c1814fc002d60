//! `[nic]` and `[host]`: what the endpoints are.

mod full;
mod rdma;
mod simple;

pub use full::FullNic;
pub use rdma::Rdma;
pub use simple::SimpleNic;

use super::diagnostic::Problem;
use super::faults::Millionths;
use super::read::{Entry, Reader, names, section};
use super::value::Cost;
use serde::{Deserialize, Serialize};
use weft_fabric::parameters::PacketFormat;
use weft_units::{Clock, Span};

section! {
    /// The network interface.
    struct RawNic {
        /// Which model: `simple` has overheads per message and per packet, `full` has the blocks.
        model: Entry<NicModel>,
        /// The interface's clock, for costs in cycles.
        clock: Option<Entry<Clock>>,
        /// Simple: from a message's descriptor to its first packet; messages overlap in it.
        message_send: Option<Entry<Cost>>,
        /// Simple: from the descriptor of an RDMA write to its first packet; `message_send` where not said.
        write_start: Option<Entry<Cost>>,
        /// Simple: for each message before its first packet, during which nothing else is sent.
        message_gap: Option<Entry<Cost>>,
        /// Simple: from a message's last packet to its notification.
        message_receive: Option<Entry<Cost>>,
        /// Simple: least time between packets sent.
        packet_send: Option<Entry<Cost>>,
        /// Simple: least time between packets taken.
        packet_receive: Option<Entry<Cost>>,
        /// Simple: messages whose packets take turns on the link.
        concurrent_messages: Option<Entry<u32>>,
        /// Full: of a million corrupted packets with data so many are taken for whole; 0 where not said.
        undetected: Option<Entry<Millionths>>,
        /// Full: the port between processors, memory and interface.
        host_port: Option<full::RawHostPort>,
        /// Full: small messages out.
        packetizer: Option<full::RawPacketizer>,
        /// Full: small messages in.
        mailbox: Option<full::RawMailbox>,
        /// Full: RDMA.
        rdma: Option<rdma::RawRdma>,
        /// Full: the agent that splits transfers into blocks.
        segmentation: Option<rdma::RawSegmentation>,
        /// Full: address translation.
        iommu: Option<rdma::RawIommu>,
        /// Full: the memory channel.
        memory: Option<rdma::RawMemory>,
        /// Full: reductions without processors.
        allreduce: Option<rdma::RawAllreduce>,
    }
}

/// The models by their names in machine files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NicModel {
    Simple,
    Full,
}

names!(NicModel, "NicModel", "a model of the interface", {
    NicModel::Simple => NicModel::Simple, "simple";
    NicModel::Full => NicModel::Full, "full";
});

section! {
    /// What an endpoint is attached to.
    struct RawHost {
        /// Cores, each for one rank.
        cores: Entry<u32>,
        /// Interfaces of a host; 1 where not said.
        endpoints_per_host: Option<Entry<u32>>,
        /// Time of a look for messages that finds none. `weft run` needs it.
        poll: Option<Entry<Span>>,
        /// Time of a look at the clock. `weft run` needs it.
        clock_read: Option<Entry<Span>>,
    }
}

/// A network interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "a machine has one")]
pub enum Nic {
    /// Overheads per message and per packet.
    Simple(SimpleNic),
    /// Block by block.
    Full(FullNic),
}

/// What endpoints are attached to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Host {
    /// Cores, each for one rank.
    pub cores: u32,
    /// Interfaces.
    pub endpoints_per_host: u32,
    /// Time of a look for messages that finds none. Real programs need it.
    pub poll: Option<Span>,
    /// Time of a look at the clock. Real programs need it.
    pub clock_read: Option<Span>,
}

/// Checks `[nic]`. The keys of the other model may stand in the file, and are not in use.
pub(super) fn check_nic(raw: RawNic, format: Option<&PacketFormat>, reader: &mut Reader<'_>) -> Option<Nic> {
    match raw.model.value {
        NicModel::Simple => {
            reader.forget("nic.undetected");
            full::SECTIONS.iter().for_each(|section| reader.forget(&format!("nic.{section}")));
            simple::check(raw, reader).map(Nic::Simple)
        }
        NicModel::Full => {
            simple::KEYS.iter().for_each(|key| reader.forget(&format!("nic.{key}")));
            full::check(raw, format, reader).map(Nic::Full)
        }
    }
}

/// Checks `[host]` against the number of endpoints, where that is known.
pub(super) fn check_host(raw: RawHost, endpoints: Option<u64>, reader: &mut Reader<'_>) -> Option<Host> {
    let host = Host {
        cores: raw.cores.value,
        endpoints_per_host: raw.endpoints_per_host.as_ref().map_or(1, |entry| entry.value),
        poll: raw.poll.map(|entry| entry.value),
        clock_read: raw.clock_read.map(|entry| entry.value),
    };
    let Some(per_host) = raw.endpoints_per_host else { return Some(host) };
    if endpoints.is_some_and(|endpoints| endpoints % u64::from(per_host.value) != 0) {
        let problem = Problem::new(
            format!("{} endpoints are no whole number of hosts", endpoints.unwrap_or(0)),
            format!("{} each", per_host.value),
            "write a divisor of the number of endpoints",
        );
        reader.report(per_host.location, problem);
        return None;
    }
    Some(host)
}
