//! Plain links and switches, and hosts without timers: the machines of all tests are made of them.

use serde::{Deserialize, Serialize};
use weft_engine::Payload;
use weft_fabric::parameters::{
    ArbiterKind, BufferPer, ChannelParameters, CreditUnit, FasterLink, FlowControl, Forwarding, SwitchKind,
    SwitchParameters,
};
use weft_fabric::{LinkLayer, LinkParameters};
use weft_topo::{Dimension, DimensionOrder, Layout, Torus};
use weft_units::{BitRate, Bytes, Clock, LineCode, Span};

/// The timer of a host that sets none.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum NoTimer {}

impl Payload for NoTimer {
    fn tie(&self) -> u128 {
        match *self {}
    }
}

/// A ring of endpoints, so that there is more than one switch to be split over threads.
#[allow(dead_code, reason = "not every binary of tests has a ring")]
pub fn ring(endpoints: u32) -> Layout {
    let torus = Torus::new(&[Dimension { size: u64::from(endpoints), wrap: true }], 1).unwrap();
    Layout::Torus(DimensionOrder::new(torus, true))
}

/// A link that carries bits and nothing else.
pub fn link(rate: BitRate, latency: Span) -> LinkParameters {
    LinkParameters {
        rate,
        code: LineCode::NONE,
        latency,
        framing: Bytes::ZERO,
        routing: Span::ZERO,
        layer: LinkLayer::PLAIN,
    }
}

/// A switch with an input queue for each channel, round robin and credits.
pub fn switch(megahertz: u64, pipeline_cycles: u32, buffer: Bytes) -> SwitchParameters {
    SwitchParameters {
        kind: SwitchKind::InputQueued,
        arbiter: ArbiterKind::RoundRobin,
        clock: Clock::from_hertz(megahertz * 1_000_000).unwrap(),
        pipeline_cycles,
        forwarding: Forwarding::VirtualCutThrough,
        faster_link: FasterLink::Bubble,
        buffer,
        credit: CreditUnit::Bytes,
        output_buffer: None,
        buffer_per: BufferPer::Channel,
        flow_control: FlowControl::Credits,
        channels: ChannelParameters::default(),
    }
}
