//! Synthetic traffic: each endpoint draws messages from an arrival process and a pattern.
//!
//! Sources are open: messages arrive whether or not the network keeps up. What it has not taken yet is
//! not stored, since it follows from the arrival process: a message is drawn when the interface can
//! send it, and its latency counts from when it arrived.

use crate::arrival::Arrival;
pub use crate::flow::FlowReport;
use crate::histogram::Histogram;
use crate::host::Never;
use crate::pattern::Pattern;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_engine::Stream;
use weft_fabric::HopRecord;
use weft_nic::edge_form::PortUse;
use weft_nic::ports::PortEvent;
use weft_nic::{Delivered, Failure, Host, HostContext, Message, Observer, Offer, Stage};
use weft_units::{Bytes, EndpointId, Span, Time};

/// The parameters that all sources of a run share.
pub struct TrafficParameters {
    /// The pattern that chooses destinations.
    pub pattern: Pattern,
    /// Payload of a message.
    pub bytes: Bytes,
    /// Messages that a source sends in all; `None`: as many as arrive.
    pub messages: Option<u64>,
    /// Virtual interfaces that the messages of a source take in turn, as if it were so many processes.
    pub interfaces: u16,
    /// Whether every message is to be reported.
    pub report_messages: bool,
    /// Whether stages and hops of every message are to be reported.
    pub report_ways: bool,
    /// Whether flows are to be reported.
    pub report_flows: bool,
    /// Whether a flow is a (source, destination) pair; if not, it is all of a source's messages.
    pub flows_have_destinations: bool,
    /// The use of the ports of packetizers and mailboxes.
    pub ports: PortUse,
}

/// The host of one endpoint under synthetic traffic.
#[derive(Serialize, Deserialize)]
pub struct TrafficSource {
    endpoint: EndpointId,
    arrival: Arrival,
    rng: Stream,
    /// The arrival of the next message; [`Time::NEVER`]: this endpoint sends nothing.
    next: Time,
    messages: u64,
}

/// A message that was delivered.
#[derive(Clone, Copy, Debug)]
pub struct MessageReport {
    /// The time at which its last byte was delivered.
    pub delivered: Time,
    /// The endpoint that sent it.
    pub source: EndpointId,
    /// The endpoint that received it.
    pub destination: EndpointId,
    /// Counts the messages of the source.
    pub number: u32,
    /// Payload.
    pub bytes: Bytes,
    /// The time at which it arrived at the source.
    pub created_at: Time,
    /// Links crossed, injection and ejection included.
    pub hops: u8,
}

/// The output of the sources of a partition. All of it adds up over partitions in any order.
#[derive(Default)]
pub struct TrafficOutput {
    /// Latencies, to a thousandth.
    pub latency: Histogram<10>,
    /// Payload delivered.
    pub bytes: Bytes,
    /// The time of the last delivery.
    pub last: Time,
    /// By source and, where flows have them, destination.
    pub flows: BTreeMap<(EndpointId, Option<EndpointId>), FlowReport>,
    /// Every message, if asked for; in no particular order.
    pub messages: Vec<MessageReport>,
    /// Messages that failed.
    pub failed: u64,
    /// The links that watched packets crossed, if asked for; in no particular order.
    pub hops: Vec<HopRecord>,
    /// The work of blocks on messages, likewise.
    pub stages: Vec<Stage>,
    /// Crossings of ports of packetizers and mailboxes, likewise: those of each endpoint are in order.
    pub ports: Vec<PortEvent>,
}

impl Observer for TrafficOutput {
    fn failed(&mut self, _: &Failure) {
        self.failed += 1;
    }

    fn hop(&mut self, hop: &HopRecord) {
        self.hops.push(*hop);
    }

    fn stage(&mut self, stage: &Stage) {
        self.stages.push(*stage);
    }

    fn port(&mut self, event: &PortEvent) {
        self.ports.push(*event);
    }
}

const PURPOSE_TRAFFIC: u32 = 2;

impl TrafficSource {
    /// The source of `endpoint`, whose gaps `arrival` draws.
    pub fn new(endpoint: EndpointId, mut arrival: Arrival, pattern: &Pattern, seed: u64) -> TrafficSource {
        let mut rng = Stream::new(seed, u64::from(endpoint.0), PURPOSE_TRAFFIC);
        let first = if pattern.sends(endpoint) {
            Time::ZERO + arrival.next_gap(&mut || rng.next_u64())
        } else {
            Time::NEVER
        };
        TrafficSource { endpoint, arrival, rng, next: first, messages: 0 }
    }

    /// Messages that the interface has taken.
    pub fn taken(&self) -> u64 {
        self.messages
    }

    /// How long the oldest message that the network has not taken has waited by `now`.
    pub fn backlog(&self, now: Time) -> Span {
        now.saturating_since(self.next)
    }
}

impl Host for TrafficSource {
    type Parameters = TrafficParameters;
    type Timer = Never;
    type Header = ();
    type Output = TrafficOutput;

    const PASSIVE: bool = true;

    fn is_active(&self) -> bool {
        self.next != Time::NEVER
    }

    fn start(&mut self, _: &TrafficParameters, context: &mut impl HostContext<Self>) {
        context.request_offer();
    }

    fn ports(parameters: &TrafficParameters) -> PortUse {
        parameters.ports.clone()
    }

    fn timer(&mut self, timer: Never, _: &TrafficParameters, _: &mut impl HostContext<Self>) {
        match timer {}
    }

    fn sent(&mut self, _: u32, _: &TrafficParameters, _: &mut impl HostContext<Self>) {}

    #[inline]
    fn delivered(
        &mut self,
        message: &Delivered<()>,
        parameters: &TrafficParameters,
        context: &mut impl HostContext<Self>,
    ) {
        let (now, destination) = (message.noticed, context.endpoint());
        let output = context.output();
        output.latency.record(now - message.created_at);
        output.bytes += message.bytes;
        output.last = output.last.max(now);
        if parameters.report_flows {
            let to = parameters.flows_have_destinations.then_some(destination);
            let flow = output.flows.entry((message.from, to)).or_default();
            flow.record(message.bytes, message.created_at, now);
        }
        if parameters.report_messages {
            output.messages.push(MessageReport {
                delivered: now,
                source: message.from,
                destination,
                number: message.number,
                bytes: message.bytes,
                created_at: message.created_at,
                hops: message.hops,
            });
        }
    }

    fn next_offer(&self) -> Time {
        self.next
    }

    #[inline]
    fn offer(&mut self, parameters: &TrafficParameters, now: Time) -> Offer<()> {
        if self.next > now {
            return if self.next == Time::NEVER { Offer::Nothing } else { Offer::NotBefore(self.next) };
        }
        let rng = &mut self.rng;
        let mut random = || rng.next_u64();
        let to = parameters.pattern.destination(self.endpoint, self.messages, &mut random);
        let created_at = self.next;
        self.next = created_at.saturating_add(self.arrival.next_gap(&mut random));
        let interface = (self.messages % u64::from(parameters.interfaces.max(1))) as u16;
        self.messages += 1;
        if parameters.messages == Some(self.messages) {
            self.next = Time::NEVER;
        }
        Offer::Message(Message {
            interface,
            to_interface: interface,
            watch: parameters.report_ways,
            ..Message::new(to, parameters.bytes, created_at)
        })
    }
}
