//! Parameters of packets, switches and the ideal network: what a machine file says, checked and in units.

pub use crate::arbiter::ArbiterKind;

use crate::build::MAX_CHANNELS;
use crate::traffic_class::{TrafficClass, TrafficClasses};
use serde::{Deserialize, Serialize};
use std::fmt;
use weft_keys::problem::shorten;
use weft_keys::{KeyType, Magnitude, Misfit, Problem, RateLimit, Writing, Written};
use weft_topo::{ChannelPlan, LaneChoice, UnevenChannels};
use weft_units::{BitRate, Bytes, Clock, Span};

/// Sizes above this are slips of the unit; sums of them stay far from 64 bits.
pub const MAX_SIZE: Bytes = Bytes::new(1 << 40);

weft_keys::keys! {
    /// Bytes of every packet.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct PacketFormat {
        /// Header bytes.
        header: Bytes, within(Bytes::ZERO, MAX_SIZE);
        /// Footer bytes.
        footer: Bytes, within(Bytes::ZERO, MAX_SIZE);
        /// Largest payload.
        payload: Bytes, within(Bytes::new(1), MAX_SIZE);
    }
}

impl PacketFormat {
    /// The largest packet: header, payload and footer.
    pub fn largest(&self) -> Bytes {
        self.overhead() + self.payload
    }

    /// Header and footer.
    #[inline]
    pub(crate) fn overhead(&self) -> Bytes {
        self.header + self.footer
    }
}

weft_keys::choices! {
    /// The unit in which space in a buffer is counted.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub enum CreditUnit: "CreditUnit", "a unit of credits" {
        /// In bytes of the packet (header, payload, footer).
        Bytes = "bytes",
        /// In cells of this size; a packet takes whole cells.
        Cells = "cells" (
            /// Size of a cell, where credits count cells.
            cell: Bytes, within(Bytes::new(1), MAX_SIZE);
        ),
    }
}

impl CreditUnit {
    /// Units that a packet of `bytes` takes.
    #[inline]
    pub(crate) fn taken_by(self, bytes: Bytes) -> u32 {
        match self {
            CreditUnit::Bytes => bytes.get() as u32,
            CreditUnit::Cells(cell) => bytes.div_ceil(cell) as u32,
        }
    }

    /// Whole units that a `buffer` has.
    pub(crate) fn held_by(self, buffer: Bytes) -> u32 {
        match self {
            CreditUnit::Bytes => buffer.get() as u32,
            CreditUnit::Cells(cell) => (buffer.get() / cell.get()) as u32,
        }
    }

    /// Bytes that `units` stand for.
    #[inline]
    pub(crate) fn bytes(self, units: u32) -> Bytes {
        match self {
            CreditUnit::Bytes => Bytes::new(units.into()),
            CreditUnit::Cells(cell) => cell * u64::from(units),
        }
    }
}

weft_keys::choices! {
    /// Organization of a switch.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub enum SwitchKind: "SwitchKind", "a kind of switch" {
        /// A first-in first-out queue per input and virtual channel.
        InputQueued = "input-queued",
        /// A queue per input, virtual channel and output.
        VirtualOutputQueued = "virtual-output-queued",
        /// Queues at the outputs only, behind a crossbar with a speed-up of the number of ports.
        OutputQueued = "output-queued",
        /// A queue per input, virtual channel and output, a crossbar with this speed-up, and a buffer per
        /// output.
        CombinedInputOutput = "combined-input-output" (
            /// Rate of the crossbar over that of the fastest link, where queues are combined.
            speedup: Speedup;
        ),
    }
}

/// The rate of a crossbar's ports as a multiple of the rate of the fastest line: 1 or more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Speedup(u32);

impl Speedup {
    /// The largest in thousandths: more than the ports of any switch would be of no use.
    const MAX_THOUSANDTHS: u32 = 4_096_000;

    /// A speed-up in thousandths. `None`: it is below 1 or above 4,096.
    pub const fn from_thousandths(thousandths: u32) -> Option<Speedup> {
        if 1_000 <= thousandths && thousandths <= Speedup::MAX_THOUSANDTHS {
            Some(Speedup(thousandths))
        } else {
            None
        }
    }

    /// The speed-up in thousandths.
    pub fn thousandths(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Speedup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 1_000, self.0 % 1_000);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        f.write_str(format!("{whole}.{rest:03}").trim_end_matches('0'))
    }
}

impl KeyType for Speedup {
    const NAME: &'static str = "Speedup";
    const WRITING: Writing =
        Writing::Described(&Writing::Decimal { least: 1, most: 4096 }, "As in 1.5 or 2.");

    fn read(value: &Written) -> Result<Speedup, Problem> {
        let text = match value {
            Written::Text(text) | Written::Float(text) => text.clone(),
            Written::Integer(integer) => integer.to_string(),
            other => {
                let label = format!("this is {}", other.describe());
                return Err(Problem::new("this is not a speed-up", label, "write 1.5 or 2"));
            }
        };
        let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
        let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        let problem = |why: &str| {
            Problem::new(format!("`{}` is not a speed-up", shorten(&text)), why, "write 1.5 or 2")
        };
        if whole.is_empty() || !is_number(whole) || !is_number(rest) {
            return Err(problem("not a decimal number"));
        }
        if rest.len() > 3 {
            return Err(problem("more than three digits behind the point"));
        }
        let thousandths = format!("{whole}{rest:0<3}").parse().ok().and_then(Speedup::from_thousandths);
        thousandths.ok_or_else(|| problem("a crossbar is as fast as its lines or faster, up to 4096 times"))
    }

    fn show(&self) -> String {
        self.to_string()
    }

    fn magnitude(&self) -> Option<Magnitude> {
        Some(Magnitude::of(self.thousandths().into()))
    }
}

weft_keys::words! {
    /// The condition on which a packet may leave a switch.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub enum Forwarding: "Forwarding", "a way of forwarding" {
        /// The head has come and the next buffer has space for all of it.
        VirtualCutThrough = "virtual-cut-through",
        /// All of it has come.
        StoreAndForward = "store-and-forward",
    }
}

weft_keys::words! {
    /// Rule for a packet that cut-through sends on to a faster link than it came by.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub enum FasterLink: "FasterLink", "a way onto a faster link" {
        /// The output stays occupied until the tail has come.
        Bubble = "bubble",
        /// The packet starts late enough never to run dry.
        Delay = "delay",
        /// The packet is stored first.
        Store = "store",
    }
}

weft_keys::words! {
    /// Owner of an input buffer.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub enum BufferPer: "BufferPer", "an owner of a buffer" {
        /// A virtual channel: each has one of its own.
        Channel = "channel",
        /// A port: its virtual channels have equal parts of it.
        Port = "port",
    }
}

/// The way in which a receiver keeps its senders from overrunning its input buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum FlowControl {
    /// A sender counts the space that is left, and gets back what becomes free.
    Credits,
    /// A receiver whose buffer fills has the sender pause. A packet that finds no space is lost.
    Pause(PauseParameters),
    /// A sender knows nothing of the buffer. A packet that finds no space is lost.
    Drop,
}

weft_keys::keys! {
    /// Pause frames of each virtual channel, as in priority flow control.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct PauseParameters {
        /// Part of an input buffer kept for what still comes after its sender has been asked to pause; as
        /// much as can come where not given.
        headroom: Option<Bytes>, key("pause_headroom"), within(Bytes::ZERO, MAX_SIZE),
            only_with("fabric.flow_control", ["pause"]);
        /// Bytes from the mark at which the sender pauses down to where it goes on; the largest packet where
        /// not given.
        hysteresis: Option<Bytes>, key("pause_hysteresis"), within(Bytes::ZERO, MAX_SIZE),
            only_with("fabric.flow_control", ["pause"]);
        /// From the arrival of a pause frame until its receiver begins no more packets, those in the pipeline
        /// of a switch excepted; at once where not given.
        response: Span = Span::ZERO, key("pause_response"), only_with("fabric.flow_control", ["pause"]);
    }
}

weft_keys::keys! {
    /// The virtual channels of links.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub struct ChannelParameters {
        /// Virtual channels of a link, a multiple of what the routing needs for each traffic class; one lane
        /// for each where not given.
        total: Option<u32>, key("virtual_channels");
        /// The way that packets take one of several lanes: `flow` where not given.
        lane: LaneChoice = LaneChoice::Flow, only_with("virtual_channels", []);
        beside {
            /// The traffic classes.
            classes: TrafficClasses = TrafficClasses::default();
            /// Whether each lane has one channel more than the routing needs, for packets that [tables route
            /// around failures](crate::Reroutes).
            failover: bool = false;
        }
    }
}

impl ChannelParameters {
    /// Channels of a lane of a class, for a routing that needs `routing` of them.
    pub fn of_lane(&self, routing: u32) -> u32 {
        routing.max(1) + u32::from(self.failover)
    }

    /// Checks that routing and traffic classes can share the channels; returns how many a link has.
    fn check(&self, routing: u32) -> Result<u32, Misfit> {
        let ChannelParameters { total, classes, failover, .. } = self;
        let needed = self.of_lane(routing).saturating_mul(classes.count());
        let tables = if *failover { ", and those of rerouting one," } else { "" };
        let reason = match self.plan(routing) {
            Ok(plan) if plan.total() <= MAX_CHANNELS => return Ok(plan.total()),
            Ok(plan) => format!("{} virtual channels; a link has at most {MAX_CHANNELS}", plan.total()),
            Err(_) => format!(
                "{} virtual channels cannot be shared evenly: the routing needs {routing}{tables} \
                 for each of {} traffic classes",
                total.unwrap_or(0),
                classes.count()
            ),
        };
        let label = format!("not a multiple of {needed} up to {MAX_CHANNELS}");
        let help = match MAX_CHANNELS / needed {
            0 => "take fewer traffic classes, or a routing that needs fewer virtual channels".to_owned(),
            lanes => {
                let fit: Vec<String> = (1..=lanes.min(4)).map(|lanes| (lanes * needed).to_string()).collect();
                format!("write virtual_channels = {}, or another multiple of {needed}", fit.join(", "))
            }
        };
        Err(Problem::new(reason, label, help).of("virtual_channels"))
    }

    /// The channels of a link, for a routing that needs `routing` of them.
    ///
    /// # Errors
    /// A total that routing and traffic classes cannot share.
    pub fn plan(&self, routing: u32) -> Result<ChannelPlan, UnevenChannels> {
        ChannelPlan::new(self.total, self.of_lane(routing), self.classes.count(), self.lane)
    }
}

weft_keys::keys! {
    /// A switch.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct SwitchParameters {
        /// The place where packets wait.
        kind: SwitchKind;
        /// The rule that says who goes first.
        arbiter: ArbiterKind;
        /// The clock at whose edges arbitration happens.
        clock: Clock;
        /// Cycles from the decision to the head at the output.
        pipeline_cycles: u32;
        /// The moment from which a packet may leave.
        forwarding: Forwarding;
        /// The way that cut-through goes onto a faster link.
        faster_link: FasterLink;
        /// Input buffer of each virtual channel, or of each port.
        buffer: Bytes, within(Bytes::new(1), MAX_SIZE);
        /// Which of the two: `channel` where not given. Virtual channels have equal parts of a port's buffer.
        buffer_per: BufferPer = BufferPer::Channel;
        /// The unit in which space in buffers is counted.
        credit: CreditUnit, key("credit_unit");
        /// Output buffer, per port and virtual channel of an output-queued switch, per port of one with
        /// combined queues; unbounded where not given.
        output_buffer: Option<Bytes>, within(Bytes::new(1), MAX_SIZE),
            only_with("kind", ["combined-input-output", "output-queued"]);
        beside {
            /// The way in which its input buffers are kept from overflowing.
            flow_control: FlowControl = FlowControl::Credits;
            /// Virtual channels of its links.
            channels: ChannelParameters = ChannelParameters::default();
        }
    }
}

impl SwitchParameters {
    /// The space that `bytes` of a packet take in a buffer: whole cells, where credits count cells.
    pub fn space_of(&self, bytes: Bytes) -> Bytes {
        match self.credit {
            CreditUnit::Bytes => bytes,
            CreditUnit::Cells(cell) => Bytes::new(bytes.div_ceil(cell).saturating_mul(cell.get())),
        }
    }

    /// Checks that its keys fit together where the largest packet has `largest` bytes and the routing needs
    /// so many virtual channels; `None`: that is not known.
    ///
    /// # Errors
    /// The key to change, and how.
    pub fn check(&self, largest: Bytes, routing_channels: Option<u32>) -> Result<(), Misfit> {
        let channels = routing_channels.map_or(Ok(1), |routing| self.channels.check(routing))?;
        let takes = self.space_of(largest);
        let parts = if self.buffer_per == BufferPer::Port { u64::from(channels) } else { 1 };
        let takes_all = Bytes::new(takes.get().saturating_mul(parts));
        if takes_all > self.buffer {
            let of_each =
                if parts > 1 { format!(" for each of {parts} virtual channels") } else { String::new() };
            return Err(Problem::new(
                format!("a buffer of {} cannot hold a whole packet{of_each}", self.buffer),
                format!("the largest packet takes {takes}"),
                format!("write buffer = \"{takes_all}\" or more, or make packet.payload smaller"),
            )
            .of("buffer"));
        }
        let FlowControl::Pause(PauseParameters { headroom: Some(headroom), .. }) = self.flow_control else {
            return Ok(());
        };
        let least = self.space_of(headroom) + takes;
        if least <= self.buffer {
            return Ok(());
        }
        Err(Problem::new(
            format!("a head-room of {headroom} does not fit in a buffer of {}", self.buffer),
            format!("the largest packet takes {takes} besides"),
            format!("write a smaller head-room, or buffer = \"{least}\" or more"),
        )
        .of("pause_headroom"))
    }

    /// The input buffer of each virtual channel of a traffic class, where ports have so many `channels`.
    pub(crate) fn buffer_of_channel(&self, class: &TrafficClass, channels: u32) -> Bytes {
        let shared = match self.buffer_per {
            BufferPer::Channel => self.buffer,
            BufferPer::Port => Bytes::new(self.buffer.get() / u64::from(channels.max(1))),
        };
        class.buffer.unwrap_or(shared)
    }
}

weft_keys::keys! {
    /// The ideal network: LogGP's latency and gaps, no queues (overhead is the host's).
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct IdealParameters {
        /// L: from the last byte out to the message's arrival.
        latency: Span;
        /// g: least time between the starts of two messages of one endpoint.
        gap: Span;
        /// 1/G: the rate at which a message leaves, or `unlimited`.
        rate: Option<BitRate>, read_as(RateLimit);
    }
}
