//! `[nic]` and `[host]`: what the endpoints are.

use super::diagnostic::Problem;
use super::read::{Entry, Reader, names, section};
use super::value::Cost;
use serde::{Deserialize, Serialize};
use weft_units::{Clock, Span};

section! {
    /// The network interface.
    struct RawNic {
        /// Which model: `simple` has overheads per message and per packet.
        model: Entry<NicModel>,
        /// The interface's clock, for costs in cycles.
        clock: Option<Entry<Clock>>,
        /// Simple: from a message's descriptor to its first packet; messages overlap in it.
        message_send: Option<Entry<Cost>>,
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
    }
}

/// The models by their names in machine files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NicModel {
    Simple,
}

names!(NicModel, "NicModel", "a model of the interface", {
    NicModel::Simple => NicModel::Simple, "simple";
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
pub enum Nic {
    /// Overheads per message and per packet.
    Simple(SimpleNic),
}

/// The interface as overheads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SimpleNic {
    /// From a message's descriptor to its first packet; messages overlap in it.
    pub message_send: Span,
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

/// Checks `[nic]`.
pub(super) fn check_nic(raw: RawNic, reader: &mut Reader<'_>) -> Option<Nic> {
    let NicModel::Simple = raw.model.value;
    let clock = raw.clock.map(|entry| entry.value);
    let mut span = |key: &str, cost: Option<Entry<Cost>>| match cost {
        None => {
            reader.missing(raw.location, "nic", key);
            None
        }
        Some(Entry { value: Cost::Time(span), .. }) => Some(span),
        Some(Entry { value: Cost::Cycles(cycles), location }) => {
            if clock.is_none() {
                let problem = Problem::new(
                    format!("`nic.{key}` counts cycles of no clock"),
                    "which clock?",
                    "add `clock = \"150MHz\"` to [nic], or write a time",
                );
                reader.report(location, problem);
            }
            clock.map(|clock| clock.cycles(u64::from(cycles)))
        }
    };
    let message_send = span("message_send", raw.message_send);
    let message_gap = span("message_gap", raw.message_gap);
    let message_receive = span("message_receive", raw.message_receive);
    let packet_send = span("packet_send", raw.packet_send);
    let packet_receive = span("packet_receive", raw.packet_receive);
    if raw.concurrent_messages.is_none() {
        reader.missing(raw.location, "nic", "concurrent_messages");
    }
    Some(Nic::Simple(SimpleNic {
        message_send: message_send?,
        message_gap: message_gap?,
        message_receive: message_receive?,
        packet_send: packet_send?,
        packet_receive: packet_receive?,
        concurrent_messages: raw.concurrent_messages?.value,
    }))
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
