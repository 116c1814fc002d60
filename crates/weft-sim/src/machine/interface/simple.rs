//! The keys of `[nic]` for the simple interface.

use super::RawNic;
use crate::machine::diagnostic::Problem;
use crate::machine::read::{Entry, Reader};
use crate::machine::value::Cost;
use serde::{Deserialize, Serialize};
use weft_units::Span;

/// Keys that only this model has.
pub(super) const KEYS: [&str; 7] = [
    "message_send",
    "write_start",
    "message_gap",
    "message_receive",
    "packet_send",
    "packet_receive",
    "concurrent_messages",
];

/// The interface as overheads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SimpleNic {
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

/// Checks the keys of the simple interface.
pub(super) fn check(raw: RawNic, reader: &mut Reader<'_>) -> Option<SimpleNic> {
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
    let write_start = match raw.write_start {
        None => message_send,
        cost => span("write_start", cost),
    };
    let message_gap = span("message_gap", raw.message_gap);
    let message_receive = span("message_receive", raw.message_receive);
    let packet_send = span("packet_send", raw.packet_send);
    let packet_receive = span("packet_receive", raw.packet_receive);
    if raw.concurrent_messages.is_none() {
        reader.missing(raw.location, "nic", "concurrent_messages");
    }
    Some(SimpleNic {
        message_send: message_send?,
        write_start: write_start?,
        message_gap: message_gap?,
        message_receive: message_receive?,
        packet_send: packet_send?,
        packet_receive: packet_receive?,
        concurrent_messages: raw.concurrent_messages?.value,
    })
}
