//! The keys of congestion control in machine files: those that algorithms share. The others are in the file
//! of the algorithm that has them.

use crate::algorithm::{Algorithm, Path};
use crate::answers::Answering;
use crate::marking::RedParameters;
use crate::points::{Congestion, CongestionKind};
use serde::{Deserialize, Serialize};
use weft_keys::{Condition, CountFromZero};
use weft_units::{Bytes, Span};

/// The condition of keys that belong to some algorithms: the machine has one of them, or a traffic class has.
pub(crate) const fn of(words: &'static [&'static str]) -> Condition<'static> {
    Condition { key: "kind", words, in_rows: Some("switch.classes.congestion") }
}

const ANY: Condition<'static> = of(CongestionKind::NAMES.split_at(1).1);
const WINDOWS: Condition<'static> = of(&["hpcc", "swift", "nscc"]);
const ANSWERED: Condition<'static> = of(&["dcqcn", "hpcc", "swift", "nscc"]);
const TRIMMED: Condition<'static> = of(&["dcqcn", "swift", "nscc"]);
const RED: Condition<'static> = of(&["dcqcn", "nscc"]);
const DELAY: Condition<'static> = of(&["swift", "nscc"]);

weft_keys::keys! {
    /// Congestion control of a machine: the algorithm, and the constants that it gives. What is not given is
    /// as the algorithm's page says.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
    pub struct CongestionKeys {
        /// The algorithm; `none`: flows send as fast as they can.
        kind: CongestionKind;
        /// Whether acknowledgements and notices get a traffic class of the highest priority where the machine
        /// has one class: yes where not given.
        priority: Option<bool>, only_where(ANY);
        /// Input buffer of that class, for each virtual channel of the routing, where channels share the
        /// buffer of a port. Where not given an eighth of it under credits, half under pause and drop.
        answers_buffer: Option<Bytes>, only_where(ANY);
        /// Round trip of a large packet and its answer through the empty network; that of the longest path
        /// where not given.
        round_trip: Option<Span>, not_zero("20us"), only_where(WINDOWS);
        /// From sending a packet until it counts as lost without an answer.
        timeout: Option<Span>, not_zero("20us"), only_where(ANSWERED);
        /// Bytes of packets that destinations answer at once; 0: each packet. Where not given an eighth of
        /// what the path holds, 16,384 at most.
        answer_every: Option<Bytes>, only_where(ANSWERED);
        /// Whether full buffers cut packets down to their headers, which tell the destination: not where not
        /// given. For fabric.flow_control=drop.
        trim: Option<bool>, only_where(TRIMMED);
        /// Those of ACC.
        acc: crate::acc::AccKeys, group();
        /// Queue before a link up to which no packet is marked.
        mark_low: Option<Bytes>, only_where(RED);
        /// Queue from which all are.
        mark_high: Option<Bytes>, only_where(RED);
        /// Thousandths of packets that are marked just below that.
        mark_most: Option<CountFromZero>, within(CountFromZero(0), CountFromZero(1_000)), only_where(RED);
        /// Those of DCQCN.
        dcqcn: crate::dcqcn::DcqcnKeys, group();
        /// Those of HPCC.
        hpcc: crate::hpcc::HpccKeys, group();
        /// Delay that is aimed at: of Swift the round trip without hops and flows, of NSCC that in queues.
        target: Option<Span>, only_where(DELAY);
        /// Those of Swift.
        swift: crate::swift::SwiftKeys, group();
        /// Those of InfiniBand's.
        ib: crate::ib::IbKeys, group();
    }
}

/// An algorithm that machine files name.
pub trait Configured: Algorithm {
    /// The constants that the keys give. What they leave open is as the algorithm's page says.
    fn parameters(keys: &CongestionKeys, flow: &FlowSetting<'_>) -> Self::Parameters;
}

/// A flow whose constants are asked for, with what follows for all algorithms.
pub struct FlowSetting<'a> {
    /// The word of the machine file.
    pub kind: CongestionKind,
    /// The path of the flow.
    pub path: &'a Path,
    /// Round trip of a large packet and its answer through the empty network.
    pub round_trip: Span,
    /// From sending a packet until it counts as lost without an answer.
    pub timeout: Span,
    /// The rule by which destinations answer.
    pub answering: Answering,
    /// Whether full buffers cut packets down to their headers.
    pub trim: bool,
    /// Bandwidth times delay.
    held: Bytes,
}

impl FlowSetting<'_> {
    /// A part of what the path holds, bandwidth times delay.
    pub fn part(&self, numerator: u64, denominator: u64) -> Bytes {
        Bytes::new((self.held.get() * numerator / denominator).max(1))
    }
}

impl CongestionKeys {
    /// The rule by which links mark; what is not given is as in `usual`.
    pub fn red(&self, usual: RedParameters) -> RedParameters {
        RedParameters {
            low: self.mark_low.unwrap_or(usual.low),
            high: self.mark_high.unwrap_or(usual.high),
            most: self.mark_most.map_or(usual.most, |CountFromZero(most)| most),
        }
    }

    /// The algorithm with all its constants for a path; `None`: congestion is not controlled.
    pub fn algorithm(&self, kind: CongestionKind, path: &Path) -> Option<Congestion> {
        let round_trip = self.round_trip.unwrap_or(path.round_trip);
        let held =
            u128::from(path.rate.bits_per_second()) * u128::from(round_trip.as_ps()) / 8_000_000_000_000;
        let held = Bytes::new((held as u64).max(path.packet.get()));
        let timeout = self.timeout.unwrap_or((round_trip * 50).max(Span::from_us(1_000)));
        let (answering, trim) = (Answering::EACH, self.trim.unwrap_or(false));
        let flow = FlowSetting { kind, path, round_trip, timeout, answering, trim, held };
        // 16,384 as uet-htsim has it, where a path holds 150 KB. Of one that holds less an eighth: a window
        // that is smaller than what is answered at once waits for the answer's time.
        let every = self.answer_every.unwrap_or(flow.part(1, 8).min(Bytes::new(16_384)));
        // Twice as long as the line of the source takes for them.
        let wait = (path.rate.span(every) * 2).min(Answering::LONGEST_WAIT);
        Congestion::of(self, &FlowSetting { answering: Answering { every, wait }, ..flow })
    }
}
