//! Parameters of packets, switches and the ideal network: what a machine file says, checked and in units.

use crate::traffic_class::{TrafficClass, TrafficClasses};
use serde::{Deserialize, Serialize};
use std::fmt;
use weft_keys::problem::shorten;
use weft_keys::{KeyType, Magnitude, Problem, Writing, Written};
use weft_topo::{ChannelPlan, LaneChoice, UnevenChannels};
use weft_units::{BitRate, Bytes, Clock, Span};

/// Bytes of every packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PacketFormat {
    /// Header bytes.
    pub header: Bytes,
    /// Footer bytes.
    pub footer: Bytes,
    /// Largest payload of a packet.
    pub payload: Bytes,
}

impl PacketFormat {
    /// Header and footer.
    #[inline]
    pub(crate) fn overhead(&self) -> Bytes {
        self.header + self.footer
    }
}

/// The unit in which room in a buffer is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CreditUnit {
    /// In bytes of the packet (header, payload, footer).
    Bytes,
    /// In cells of this size; a packet takes whole cells.
    Cells(Bytes),
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

/// Organization of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum SwitchKind {
    /// A first-in first-out queue per input and virtual channel.
    InputQueued,
    /// A queue per input, virtual channel and output.
    VirtualOutputQueued,
    /// Queues at the outputs only, behind a crossbar with a speed-up of the number of ports.
    OutputQueued,
    /// A queue per input, virtual channel and output, a crossbar with this speed-up, and a buffer per output.
    CombinedInputOutput(Speedup),
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

/// The rule by which an output chooses among requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ArbiterKind {
    /// Round robin at each output over its requesting inputs.
    RoundRobin,
    /// A uniformly random one of the requesting inputs.
    Random,
    /// iSLIP with a number of iterations (McKeown 1999).
    Islip(u32),
    /// The oldest packet first (Abts and Weisser 2007).
    Age,
    /// The traffic class of the highest priority first.
    StrictPriority,
    /// Traffic classes in the ratio of their weights, by bytes (Shreedhar and Varghese 1996).
    WeightedRoundRobin,
    /// Traffic classes by their guaranteed shares, and what is left by priority (De Sensi et al. 2020).
    MinimumBandwidth,
}

weft_keys::words! {
    /// The condition on which a packet may leave a switch.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub enum Forwarding: "Forwarding", "a way of forwarding" {
        /// The head has come and the next buffer has room for all of it.
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
    /// A sender counts the room that is left, and gets back what becomes free.
    Credits,
    /// A receiver whose buffer fills has the sender pause. A packet that finds no room is lost.
    Pause(PauseParameters),
    /// A sender knows nothing of the buffer. A packet that finds no room is lost.
    Drop,
}

/// Pause frames of each virtual channel, as in priority flow control.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PauseParameters {
    /// Room kept for what still comes after a sender has been asked to pause, per input and virtual channel.
    /// `None`: as much as [can come](crate::Headroom), for each kind of links its own.
    pub headroom: Option<Bytes>,
    /// Bytes that must leave below the mark at which a sender pauses before it may go on. `None`: the
    /// largest packet.
    pub hysteresis: Option<Bytes>,
    /// From a pause frame's arrival until its receiver begins no more packets. Packets that are in the
    /// pipeline of a switch by then still go.
    pub response: Span,
}

/// The virtual channels of links.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ChannelParameters {
    /// Virtual channels of a link; `None`: as many as the routing needs for each traffic class.
    pub total: Option<u32>,
    /// How packets take one of several lanes.
    pub lane: LaneChoice,
    /// The traffic classes.
    pub classes: TrafficClasses,
    /// Whether each lane has one channel more than the routing needs, for packets that [tables route around
    /// failures](crate::Reroutes).
    pub detours: bool,
}

impl ChannelParameters {
    /// Channels of a lane of a class, for a routing that needs `routing` of them.
    pub fn of_lane(&self, routing: u32) -> u32 {
        routing.max(1) + u32::from(self.detours)
    }

    /// The channels of a link, for a routing that needs `routing` of them.
    ///
    /// # Errors
    /// A total that routing and traffic classes cannot share.
    pub fn plan(&self, routing: u32) -> Result<ChannelPlan, UnevenChannels> {
        ChannelPlan::new(self.total, self.of_lane(routing), self.classes.count(), self.lane)
    }
}

/// A switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SwitchParameters {
    /// Organization of buffers.
    pub kind: SwitchKind,
    /// Rule of its arbiters.
    pub arbiter: ArbiterKind,
    /// Clock at whose edges arbitration happens.
    pub clock: Clock,
    /// Cycles from the decision that a packet goes to its head at the output.
    pub pipeline_cycles: u32,
    /// The condition on which a packet may leave.
    pub forwarding: Forwarding,
    /// Rule for a packet that goes on to a faster link.
    pub faster_link: FasterLink,
    /// Input buffer of each virtual channel, or of each port.
    pub buffer: Bytes,
    /// Which of the two.
    pub buffer_per: BufferPer,
    /// Unit in which room in buffers is counted.
    pub credit: CreditUnit,
    /// Output buffer: per port and virtual channel of output queues, per port of combined queues. `None`:
    /// unbounded.
    pub output_buffer: Option<Bytes>,
    /// The way in which its input buffers are kept from overflowing.
    pub flow_control: FlowControl,
    /// Virtual channels of its links.
    pub channels: ChannelParameters,
}

impl SwitchParameters {
    /// The input buffer of each virtual channel of a traffic class, where ports have so many `channels`.
    pub(crate) fn buffer_of_channel(&self, class: &TrafficClass, channels: u32) -> Bytes {
        let shared = match self.buffer_per {
            BufferPer::Channel => self.buffer,
            BufferPer::Port => Bytes::new(self.buffer.get() / u64::from(channels.max(1))),
        };
        class.buffer.unwrap_or(shared)
    }
}

/// The ideal network: LogGP's latency and gaps, no queues (overhead is the host's).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IdealParameters {
    /// L: from the last byte out to the message's arrival.
    pub latency: Span,
    /// g: least time between the starts of two messages of one endpoint.
    pub gap: Span,
    /// 1/G: the rate at which a message leaves; `None`: at once.
    pub rate: Option<BitRate>,
}
