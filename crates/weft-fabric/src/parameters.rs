//! What a machine file says of links and switches, checked and in units.

use serde::{Deserialize, Serialize};
use weft_units::{BitRate, Bytes, Clock, LineCode, Span};

/// One kind of link, per direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LinkParameters {
    /// Bits per second on the line, coding included.
    pub rate: BitRate,
    /// Line code.
    pub code: LineCode,
    /// From the last stage of the sender to the first of the receiver: SERDES and wire. Credits take
    /// the same time back.
    pub latency: Span,
    /// Bytes that the line carries for every packet beside its header, payload and footer
    /// (start and end of packet, inter-packet gap).
    pub framing: Bytes,
}

/// What every packet carries beside its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PacketFormat {
    /// Header bytes.
    pub header: Bytes,
    /// Footer bytes.
    pub footer: Bytes,
    /// Largest payload of a packet.
    pub payload: Bytes,
}

/// How room in a buffer is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CreditUnit {
    /// In bytes of the packet (header, payload, footer).
    Bytes,
    /// In cells of this size; a packet takes whole cells.
    Cells(Bytes),
}

impl CreditUnit {
    /// How many units a packet of so many bytes takes.
    #[inline]
    pub(crate) fn taken_by(self, bytes: Bytes) -> u32 {
        match self {
            CreditUnit::Bytes => bytes.get() as u32,
            CreditUnit::Cells(cell) => bytes.div_ceil(cell) as u32,
        }
    }

    /// How many whole units a buffer of so many bytes has.
    pub(crate) fn held_by(self, buffer: Bytes) -> u32 {
        match self {
            CreditUnit::Bytes => buffer.get() as u32,
            CreditUnit::Cells(cell) => (buffer.get() / cell.get()) as u32,
        }
    }

    /// The bytes that so many units stand for.
    #[inline]
    pub(crate) fn bytes(self, units: u32) -> Bytes {
        match self {
            CreditUnit::Bytes => Bytes::new(units.into()),
            CreditUnit::Cells(cell) => cell * u64::from(units),
        }
    }
}

/// How a switch is built.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum SwitchKind {
    /// A first-in first-out queue per input and virtual channel.
    InputQueued,
    /// A queue per input, virtual channel and output.
    VirtualOutputQueued,
    /// Queues at the outputs only, behind a crossbar with a speed-up of the number of ports.
    OutputQueued,
}

/// Who goes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ArbiterKind {
    /// Round robin at each output over its requesting inputs.
    RoundRobin,
    /// A uniformly random one of the requesting inputs.
    Random,
    /// iSLIP with so many iterations (McKeown 1999).
    Islip(u32),
}

/// When a packet may leave a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Forwarding {
    /// When its head has come and the next buffer has room for all of it.
    VirtualCutThrough,
    /// When all of it has come.
    StoreAndForward,
}

/// What cut-through does when a packet goes on to a faster link than it came by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum FasterLink {
    /// The output stays occupied until the tail has come.
    Bubble,
    /// The packet starts late enough never to run dry.
    Delay,
    /// The packet is stored first.
    Store,
}

/// A switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SwitchParameters {
    /// How it is built.
    pub kind: SwitchKind,
    /// Who goes first.
    pub arbiter: ArbiterKind,
    /// Its clock: arbitration happens at edges of it.
    pub clock: Clock,
    /// Cycles from the decision that a packet goes to its head at the output.
    pub pipeline_cycles: u32,
    /// When a packet may leave.
    pub forwarding: Forwarding,
    /// Onto a faster link.
    pub faster_link: FasterLink,
    /// Input buffer per port and virtual channel.
    pub buffer: Bytes,
    /// How room in buffers is counted.
    pub credit: CreditUnit,
    /// Output buffer per port and virtual channel, for output queues only; `None`: unbounded.
    pub output_buffer: Option<Bytes>,
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
