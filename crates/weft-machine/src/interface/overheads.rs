//! The keys of `[nic]` for the overheads interface.

use super::{FromSection, InterfaceModel, InterfacePace, ProcessLimits, RawNic};
use crate::read::{Entry, Reader};
use serde::{Deserialize, Serialize};
use weft_fabric::parameters::PacketFormat;
use weft_keys::{Cost, Problem};
use weft_nic::OverheadsParameters;
use weft_topo::MessageClasses;
use weft_units::{Bytes, Span};

/// The limits of real processes at an interface that has no blocks: those of TR-488 §5.1 and §4.4.
pub(super) const PROCESS_LIMITS: ProcessLimits =
    ProcessLimits { interfaces: 64, pages: 64, small: Bytes::new(64) };

/// The interface as overheads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OverheadsNic {
    /// From a message's descriptor to its first packet; messages overlap in it.
    pub message_send: Span,
    /// From the descriptor of an RDMA write to its first packet, instead.
    pub write_start: Span,
    /// For each message before its first packet, during which nothing else is sent.
    pub message_gap: Span,
    /// From a message's last packet to its notification.
    pub message_receive: Span,
    /// Least time between packets sent.
    pub packet_send: Span,
    /// Least time between packets taken.
    pub packet_receive: Span,
    /// Messages whose packets take turns on the link.
    pub concurrent_messages: u32,
}

impl OverheadsNic {
    /// An interface that costs nothing: packets are on their endpoint's link as soon as that is free, those
    /// of one message after another's.
    pub const FREE: OverheadsNic = OverheadsNic {
        message_send: Span::ZERO,
        write_start: Span::ZERO,
        message_gap: Span::ZERO,
        message_receive: Span::ZERO,
        packet_send: Span::ZERO,
        packet_receive: Span::ZERO,
        concurrent_messages: 1,
    };

    /// The parameters of the simulated interface, for packets with `payload`.
    pub fn parameters(&self, payload: Bytes) -> OverheadsParameters {
        OverheadsParameters {
            send_message: self.message_send,
            send_write: self.write_start,
            message_gap: self.message_gap,
            send_packet: self.packet_send,
            receive_packet: self.packet_receive,
            receive_message: self.message_receive,
            payload,
            channels: self.concurrent_messages,
        }
    }
}

impl InterfaceModel for OverheadsNic {
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

    /// The interface has room for whatever comes, and for the messages that its host sends in answer.
    fn message_classes(&self, virtual_channels: u32) -> MessageClasses {
        MessageClasses::consumed(virtual_channels)
    }
}

impl FromSection for OverheadsNic {
    const KEYS: &'static [&'static str] = &[
        "message_send",
        "write_start",
        "message_gap",
        "message_receive",
        "packet_send",
        "packet_receive",
        "concurrent_messages",
    ];

    fn read(raw: RawNic, _format: Option<&PacketFormat>, reader: &mut Reader<'_>) -> Option<OverheadsNic> {
        let costs = Costs::read(&raw, reader);
        let message_gap = raw.cost("message_gap", raw.message_gap.as_ref(), reader);
        let costs = costs?;
        Some(OverheadsNic {
            message_send: costs.message_send,
            write_start: costs.write_start,
            message_gap: message_gap?,
            message_receive: costs.message_receive,
            packet_send: costs.packet_send,
            packet_receive: costs.packet_receive,
            concurrent_messages: raw.concurrent_messages?.value,
        })
    }
}

/// The costs of messages and packets: keys of every interface that has overheads.
pub(super) struct Costs {
    pub message_send: Span,
    pub write_start: Span,
    pub message_receive: Span,
    pub packet_send: Span,
    pub packet_receive: Span,
}

impl Costs {
    /// Checks the keys, and that there are concurrent messages.
    pub fn read(raw: &RawNic, reader: &mut Reader<'_>) -> Option<Costs> {
        let message_send = raw.cost("message_send", raw.message_send.as_ref(), reader);
        let write_start = match &raw.write_start {
            None => message_send,
            cost => raw.cost("write_start", cost.as_ref(), reader),
        };
        let message_receive = raw.cost("message_receive", raw.message_receive.as_ref(), reader);
        let packet_send = raw.cost("packet_send", raw.packet_send.as_ref(), reader);
        let packet_receive = raw.cost("packet_receive", raw.packet_receive.as_ref(), reader);
        if raw.concurrent_messages.is_none() {
            reader.missing(raw.location, "nic", "concurrent_messages");
        }
        Some(Costs {
            message_send: message_send?,
            write_start: write_start?,
            message_receive: message_receive?,
            packet_send: packet_send?,
            packet_receive: packet_receive?,
        })
    }
}

impl RawNic {
    /// A cost of this section, which counts cycles only where there is a clock.
    fn cost(&self, key: &str, cost: Option<&Entry<Cost>>, reader: &mut Reader<'_>) -> Option<Span> {
        let clock = self.clock.as_ref().map(|entry| entry.value);
        match cost {
            None => {
                reader.missing(self.location, "nic", key);
                None
            }
            Some(Entry { value: Cost::Time(span), .. }) => Some(*span),
            Some(Entry { value: Cost::Cycles(cycles), location }) => {
                if clock.is_none() {
                    let problem = Problem::new(
                        format!("`nic.{key}` counts cycles of no clock"),
                        "which clock?",
                        "add `clock = \"150MHz\"` to [nic], or write a time",
                    );
                    reader.report(*location, problem);
                }
                clock.map(|clock| clock.cycles(u64::from(*cycles)))
            }
        }
    }
}
