//! The output of a replay: sums, and the reports that were asked for.

use super::record::Record;
use super::region::RegionReading;
use crate::flow::FlowReport;
use crate::histogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_fabric::HopRecord;
use weft_nic::data::DataError;
use weft_nic::ports::{PortEvent, SmallPayload};
use weft_nic::{Observer, Stage};
use weft_trace::op::StreamId;
use weft_units::{Bytes, EndpointId, RankId, Span, Time};

/// The output of the hosts of a partition. All of it adds up over partitions in any order.
#[derive(Default)]
pub struct ReplayOutput {
    /// By program; programs of which nothing was delivered may be missing at the end.
    pub programs: Vec<Delivery>,
    /// By source and destination, if asked for.
    pub flows: BTreeMap<(EndpointId, EndpointId), FlowReport>,
    /// Every message, if asked for; in no particular order.
    pub messages: Vec<ReplayedMessage>,
    /// Events to be drawn, if asked for: those of each rank are in order.
    pub timeline: Vec<TimelineEvent>,
    /// Readings of ranks' clocks, if asked for: those of each rank are in order.
    pub clocks: Vec<ClockReading>,
    /// Readings of ranks where regions are marked, if asked for: those of each rank are in order.
    pub regions: Vec<RegionReading>,
    /// Ranks that cannot go on because their trace is wrong.
    pub faults: Vec<RankFailure>,
    /// Steps and messages of ranks, if asked for.
    pub record: Record,
    /// Hops of watched messages on links, in no particular order.
    pub hops: Vec<HopRecord>,
    /// Stages of watched messages in interfaces, in no particular order.
    pub stages: Vec<Stage>,
    /// Messages whose real bytes agree, where messages carry them.
    pub compared: Compared,
    /// Messages whose real bytes do not agree, in no particular order.
    pub damages: Vec<Damage>,
    /// Crossings of ports of packetizers and mailboxes, if asked for: those of each endpoint are in order.
    pub ports: Vec<PortEvent>,
    /// The bytes of small messages, by source and number, where they are real and ports are reported.
    pub payloads: Vec<((EndpointId, u32), SmallPayload)>,
}

/// The reports that are wanted beside sums.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wanted {
    /// Every message.
    pub messages: bool,
    /// Flows.
    pub flows: bool,
    /// Events to be drawn in a timeline.
    pub timeline: bool,
    /// Readings where programs mark regions of interest.
    pub regions: bool,
}

impl ReplayOutput {
    /// A message with data was delivered to a rank of a program.
    pub fn delivered(&mut self, program: u32, message: ReplayedMessage, wanted: Wanted) {
        let ReplayedMessage { delivered, posted, bytes, .. } = message;
        let program = program as usize;
        if self.programs.len() <= program {
            self.programs.resize(program + 1, Delivery::default());
        }
        self.programs[program].completion.record(delivered - posted);
        self.programs[program].bytes += bytes;
        if wanted.flows {
            let flow = self.flows.entry((message.source, message.destination)).or_default();
            flow.record(bytes, posted, delivered);
        }
        if wanted.timeline {
            self.timeline.push(TimelineEvent::Arrow {
                rank: message.destination_rank,
                from: message.source_rank,
                sent: posted,
                received: delivered,
                bytes,
            });
        }
        if wanted.messages {
            self.messages.push(message);
        }
    }
}

impl Observer for ReplayOutput {
    fn hop(&mut self, hop: &HopRecord) {
        self.hops.push(*hop);
    }

    fn stage(&mut self, stage: &Stage) {
        self.stages.push(*stage);
    }

    fn port(&mut self, event: &PortEvent) {
        self.ports.push(*event);
    }

    fn compared(&mut self, bytes: Bytes) {
        self.compared.messages += 1;
        self.compared.bytes += bytes;
    }
}

/// Messages and reductions whose bytes agree in the memory of source and target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Compared {
    /// Number of messages, including those by which a rendezvous is agreed on.
    pub messages: u64,
    /// Their bytes, with the headers of messaging.
    pub bytes: Bytes,
}

impl std::ops::AddAssign for Compared {
    fn add_assign(&mut self, other: Compared) {
        self.messages += other.messages;
        self.bytes += other.bytes;
    }
}

/// A message, or a reduction, whose bytes do not agree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Damage {
    /// Who sent it and whom it is for, counted over all programs; `None`: a reduction, or a message that
    /// is over.
    pub ranks: Option<(RankId, RankId)>,
    /// The difference found.
    pub error: DataError,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.ranks {
            Some((from, to)) => write!(f, "from rank {from} to rank {to}: {}", self.error),
            None => self.error.fmt(f),
        }
    }
}

/// The messages of a program that were delivered: those that carry its data, not those by which a
/// rendezvous is agreed on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Delivery {
    /// Times from being posted to being delivered, to a thousandth.
    pub completion: Histogram<10>,
    /// The program's payload.
    pub bytes: Bytes,
}

impl Delivery {
    /// Adds what another part of the run has counted.
    pub fn merge(&mut self, other: &Delivery) {
        self.completion.merge(&other.completion);
        self.bytes += other.bytes;
    }
}

/// A message that was delivered.
#[derive(Clone, Copy, Debug)]
pub struct ReplayedMessage {
    /// The time at which its last byte was delivered.
    pub delivered: Time,
    /// The endpoint that sent it.
    pub source: EndpointId,
    /// The endpoint that received it.
    pub destination: EndpointId,
    /// Counts the messages of the source, those without data included.
    pub number: u32,
    /// The rank that sent it, counted over all programs.
    pub source_rank: RankId,
    /// The rank that received it, counted over all programs.
    pub destination_rank: RankId,
    /// The kind of communication that it is part of.
    pub class: MessageClass,
    /// The tag of a message between two ranks; of a one-sided operation its origin's own number for the
    /// window, where that is known. `None`: it has none.
    pub tag: Option<i32>,
    /// The program's payload.
    pub bytes: Bytes,
    /// The time at which the program posted it.
    pub posted: Time,
    /// Links that its last packet crossed.
    pub hops: u8,
}

/// The kind of communication that a message is part of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum MessageClass {
    /// A send of the program that a receive takes.
    PointToPoint,
    /// A collective.
    Collective,
    /// An operation on the memory of another rank, or what libraries tell each other about such.
    OneSided,
}

impl MessageClass {
    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            MessageClass::PointToPoint => "point-to-point",
            MessageClass::Collective => "collective",
            MessageClass::OneSided => "one-sided",
        }
    }
}

/// The activity of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activity {
    /// It computes.
    Compute,
    /// It is in the software of the messaging layer.
    Communicate,
    /// It waits.
    Wait,
}

/// Something to be drawn. Ranks are counted over all programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TimelineEvent {
    /// A rank did something.
    Slice {
        /// The rank.
        rank: RankId,
        /// Which of its cores did; 0 of a rank with one stream.
        core: u32,
        /// The kind of activity.
        activity: Activity,
        /// The operation's name.
        name: &'static str,
        /// The time at which it begins.
        start: Time,
        /// The time at which it ends.
        end: Time,
    },
    /// A real rank was in an MPI call.
    Call {
        /// The rank.
        rank: RankId,
        /// The name of the MPI call.
        name: &'static str,
        /// The time at which it begins.
        start: Time,
        /// The time at which it ends.
        end: Time,
    },
    /// A message arrived.
    Arrow {
        /// The receiver.
        rank: RankId,
        /// The sender.
        from: RankId,
        /// The time at which it was posted.
        sent: Time,
        /// The time at which it arrived.
        received: Time,
        /// The program's payload.
        bytes: Bytes,
    },
    /// A marker of the program.
    Marker {
        /// The rank.
        rank: RankId,
        /// The time of the marker.
        time: Time,
        /// The text.
        text: String,
    },
}

impl TimelineEvent {
    /// The rank that reports it.
    pub fn rank(&self) -> RankId {
        match self {
            TimelineEvent::Slice { rank, .. }
            | TimelineEvent::Call { rank, .. }
            | TimelineEvent::Arrow { rank, .. }
            | TimelineEvent::Marker { rank, .. } => *rank,
        }
    }
}

/// A marker of its program has a rank read its clock, which takes no time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockReading {
    /// The rank, counted over all programs.
    pub rank: RankId,
    /// The marker's position among the rank's operations.
    pub position: u64,
    /// The reading.
    pub clock: Time,
}

/// A rank that cannot go on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, thiserror::Error)]
#[error("{trace}: rank {rank}{}, operation {position}: {reason}", of_stream(*stream))]
pub struct RankFailure {
    /// Whether the network has lost a message of the rank for good: its program is not wrong, which comes
    /// first in order.
    pub lost: bool,
    /// The program: of a recorded one its trace.
    pub trace: String,
    /// The rank in it.
    pub rank: RankId,
    /// The stream of that rank.
    pub stream: StreamId,
    /// The operation of that stream, counted from 0.
    pub position: u64,
    /// The fault, in words.
    pub reason: String,
}

/// The stream in a message; the first is not named.
fn of_stream(stream: StreamId) -> String {
    match stream {
        StreamId::FIRST => String::new(),
        StreamId(stream) => format!(", stream {stream}"),
    }
}

/// How a rank has spent its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RankReport {
    /// The rank's program.
    pub program: u32,
    /// The rank within its program.
    pub rank: RankId,
    /// The time at which its program began.
    pub start: Time,
    /// When its last operation ended, or how far it has come.
    pub end: Time,
    /// Whether it has done all its operations.
    pub finished: bool,
    /// Operations that it has begun.
    pub operations: u64,
    /// Requests among those that its wait still waits for.
    pub awaited: u32,
    /// Cores that its streams sit on.
    pub cores: u32,
    /// Time in computation.
    pub computation: Span,
    /// The part of it in which the memory of the host had too much to do.
    pub memory_wait: Span,
    /// Time in the software of the messaging layer.
    pub communication: Span,
    /// Messages with data that it sent.
    pub messages_sent: u64,
    /// Messages with data that it received.
    pub messages_received: u64,
    /// The program's payload that it sent.
    pub sent: Bytes,
    /// The program's payload that it received.
    pub received: Bytes,
}

impl RankReport {
    /// Time from the start of its program to its end.
    pub fn run_time(&self) -> Span {
        self.end.saturating_since(self.start)
    }

    /// Time of all its cores, of which its times are parts.
    pub fn core_time(&self) -> Span {
        Span::from_ps(self.run_time().as_ps().saturating_mul(self.cores.into()))
    }

    /// Time waiting: what neither computation nor the messaging layer took, of all its cores.
    pub fn wait(&self) -> Span {
        self.core_time().saturating_sub(self.computation).saturating_sub(self.communication)
    }
}
