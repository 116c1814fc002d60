//! The keys of `[nic]` for the Portals interface of BXI machines.
//!
//! The costs of commands, packets and events are those of the overheads interface, under the same keys: a
//! machine may name either model. `[nic.transport]` is its own.

use super::overheads::{Costs, PROCESS_LIMITS};
use super::{FromSection, InterfaceModel, InterfacePace, ProcessLimits, RawNic};
use crate::read::{Entry, Reader, section};
use serde::{Deserialize, Serialize};
use weft_fabric::parameters::PacketFormat;
use weft_keys::Problem;
use weft_nic::PortalsParameters;
use weft_nic::reliability::ReliabilityParameters;
use weft_nic::transport::TransportParameters;
use weft_topo::MessageClasses;
use weft_units::{Bytes, Span};

/// The largest packet, header and footer included: RED-SEA D1.4 §2.2.
const LARGEST_PACKET: Bytes = Bytes::new(9 << 10);

section! {
    /// End-to-end reliability.
    struct RawTransport {
        /// Whether messages go by ordered flows, where the routing keeps the packets of a pair in order:
        /// packets that come out of order all the same are then dropped, and repeated.
        ordered: Entry<bool>,
        /// From sending a packet to its first repetition.
        timeout: Entry<Span>,
        /// By what the time-out grows with each repetition.
        backoff: Entry<u32>,
        /// Longest time-out.
        longest_timeout: Entry<Span>,
        /// Repetitions after which a flow is given up.
        repetitions: Entry<u32>,
        /// Packets of a flow that may be unacknowledged.
        window: Entry<u32>,
        /// Flows that each side has room for.
        flows: Entry<u32>,
        /// After this time without a packet a flow ends.
        idle: Entry<Span>,
    }
}

/// The interface of BXI machines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PortalsNic {
    /// From a message's command to its first packet; commands overlap in it.
    pub message_send: Span,
    /// From the command of an RDMA write to its first packet, instead.
    pub write_start: Span,
    /// From a message's last packet to its event.
    pub message_receive: Span,
    /// The transmit engine's time for a packet.
    pub packet_send: Span,
    /// The receive engine's time for a packet.
    pub packet_receive: Span,
    /// Messages whose packets take turns on the link.
    pub concurrent_messages: u32,
    /// Whether messages go by ordered flows, where the routing keeps the packets of a pair in order.
    pub ordered: bool,
    /// End-to-end reliability.
    pub transport: TransportParameters,
}

impl PortalsNic {
    /// The parameters of the simulated interface, for packets with `payload`.
    pub fn parameters(&self, payload: Bytes) -> PortalsParameters {
        PortalsParameters {
            send_message: self.message_send,
            send_write: self.write_start,
            send_packet: self.packet_send,
            receive_packet: self.packet_receive,
            receive_message: self.message_receive,
            payload,
            channels: self.concurrent_messages,
            ordered: self.ordered,
            transport: self.transport,
        }
    }
}

impl InterfaceModel for PortalsNic {
    fn process_limits(&self) -> ProcessLimits {
        PROCESS_LIMITS
    }

    fn pace(&self, _payload: Bytes) -> InterfacePace {
        InterfacePace { send_packet: Span::ZERO, receive_packet: self.packet_receive, cycle: Span::ZERO }
    }

    fn is_rail(&self) -> bool {
        true
    }

    fn carries_data(&self) -> bool {
        false
    }

    fn multicasts(&self) -> bool {
        true
    }

    /// The interface takes or drops whatever comes. The acknowledgements that it owes have a place: as many
    /// as its table of flows and their windows allow.
    fn message_classes(&self, virtual_channels: u32) -> MessageClasses {
        MessageClasses::consumed(virtual_channels)
    }
}

impl FromSection for PortalsNic {
    const KEYS: &'static [&'static str] = &[
        "message_send",
        "write_start",
        "message_receive",
        "packet_send",
        "packet_receive",
        "concurrent_messages",
        "transport",
    ];

    fn read(raw: RawNic, format: Option<&PacketFormat>, reader: &mut Reader<'_>) -> Option<PortalsNic> {
        if raw.transport.is_none() {
            let problem = Problem::new(
                "`nic.model = \"portals\"` needs nic.transport",
                "this machine does not say how packets are repeated",
                "add this section, as machines/bxi3-fattree.toml has it, or write model = \"overheads\"",
            );
            reader.report(raw.model.location, problem);
        }
        if let Some(PacketFormat { header, payload, footer }) = format
            && *header + *payload + *footer > LARGEST_PACKET
        {
            let problem = Problem::new(
                format!("a packet of {} is too long for this interface", *header + *payload + *footer),
                format!("{LARGEST_PACKET} at most"),
                "write a smaller packet.payload",
            );
            reader.report(raw.model.location, problem);
        }
        let costs = Costs::read(&raw, reader);
        let concurrent = raw.concurrent_messages.as_ref().map(|entry| entry.value);
        let transport = raw.transport?;
        for count in [&transport.window, &transport.flows, &transport.backoff] {
            if count.value == 0 || count.value > 1 << 20 {
                let problem = Problem::new(
                    format!("{} is not a number of the transport", count.value),
                    "",
                    format!("write a number from 1 to {}", 1 << 20),
                );
                reader.report(count.location, problem);
            }
        }
        if transport.longest_timeout.value < transport.timeout.value || transport.timeout.value == Span::ZERO
        {
            let problem = Problem::new(
                format!("the longest time-out is {}", transport.longest_timeout.value),
                format!("and the first one {}", transport.timeout.value),
                "write a time-out above zero, and a longest one that is at least as long",
            );
            reader.report(transport.longest_timeout.location, problem);
        }
        if transport.idle.value < transport.longest_timeout.value {
            let problem = Problem::new(
                format!("a flow ends after {} without a packet", transport.idle.value),
                format!("but a packet may wait {} to be repeated", transport.longest_timeout.value),
                "write an idle time that is at least nic.transport.longest_timeout",
            );
            reader.report(transport.idle.location, problem);
        }
        let costs = costs?;
        Some(PortalsNic {
            message_send: costs.message_send,
            write_start: costs.write_start,
            message_receive: costs.message_receive,
            packet_send: costs.packet_send,
            packet_receive: costs.packet_receive,
            concurrent_messages: concurrent?,
            ordered: transport.ordered.value,
            transport: TransportParameters {
                reliability: ReliabilityParameters {
                    timeout: transport.timeout.value,
                    backoff: transport.backoff.value,
                    longest: transport.longest_timeout.value,
                    repetitions: transport.repetitions.value,
                },
                window: transport.window.value,
                flows: transport.flows.value,
                idle: transport.idle.value,
            },
        })
    }
}
