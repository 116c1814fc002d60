//! `[congestion]`: the algorithm that controls how much flows send, and its constants.

use super::read::{Entry, Reader, section_of_keys};
use serde::{Deserialize, Serialize};
use weft_congestion::{
    Answering, Congestion, Path, RedParameters, Repair, acc, dcqcn, hpcc, ib, nscc, swift,
};
use weft_fabric::MAX_CLASSES;
use weft_keys::{Condition, CountFromZero, Misfit, Problem};
use weft_units::{BitRate, Bytes, Span};

weft_keys::words! {
    /// The algorithms by their names in machine files.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
    pub enum CongestionKind: "CongestionKind", "a way to control congestion" {
        /// Flows send as fast as they can.
        #[default]
        None = "none",
        /// Accurate Congestion Control.
        Acc = "acc",
        /// The same with flow-rate packets at pulses alone.
        AccFrpOnly = "acc-frp-only",
        /// The same with flow-init messages and no enhancement.
        AccFrpInit = "acc-frp-init",
        /// Marks, notifications and rates.
        Dcqcn = "dcqcn",
        /// Windows by the use of links.
        Hpcc = "hpcc",
        /// Windows by delay.
        Swift = "swift",
        /// Windows by marks and delay, of Ultra Ethernet.
        Nscc = "nscc",
        /// Marks and a table of delays, of InfiniBand.
        Ib = "ib",
    }
}

/// The condition of keys that belong to some algorithms: the machine has one of them, or a traffic class has.
const fn of(words: &'static [&'static str]) -> Condition<'static> {
    Condition { key: "kind", words, in_rows: Some("switch.classes.congestion") }
}

const ANY: Condition<'static> =
    of(&["acc", "acc-frp-only", "acc-frp-init", "dcqcn", "hpcc", "swift", "nscc", "ib"]);
const WINDOWS: Condition<'static> = of(&["hpcc", "swift", "nscc"]);
const ANSWERED: Condition<'static> = of(&["dcqcn", "hpcc", "swift", "nscc"]);
const TRIMMED: Condition<'static> = of(&["dcqcn", "swift", "nscc"]);
const ACC: Condition<'static> = of(&["acc", "acc-frp-only", "acc-frp-init"]);
const RED: Condition<'static> = of(&["dcqcn", "nscc"]);
const DCQCN: Condition<'static> = of(&["dcqcn"]);
const HPCC: Condition<'static> = of(&["hpcc"]);
const DELAY: Condition<'static> = of(&["swift", "nscc"]);
const SWIFT: Condition<'static> = of(&["swift"]);
const IB: Condition<'static> = of(&["ib"]);

weft_keys::keys! {
    /// Congestion control of a machine: the algorithm, and the constants that it gives. What is not given is
    /// as the algorithm's page says.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
    pub struct CongestionRule {
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
        /// Between two rate re-evaluation pulses.
        period: Option<Span>, not_zero("20us"), only_where(ACC);
        /// Thousandths of a link that flows do not get.
        margin: Option<CountFromZero>, within(CountFromZero(0), CountFromZero(999)), only_where(ACC);
        /// Whether a new flow waits for its first answer.
        wait_for_feedback: Option<bool>, only_where(ACC);
        /// Whether links find flows that are bottlenecked there and say otherwise.
        mind_the_gap: Option<bool>, only_where(ACC);
        /// Whether a rate rises step by step until it is confirmed.
        wait_to_rise: Option<bool>, only_where(ACC);
        /// Whether switches answer a flow from inside the fabric where they offer it less than it uses.
        short_circuit: Option<bool>, only_where(ACC);
        /// Queue before a link up to which no packet is marked.
        mark_low: Option<Bytes>, only_where(RED);
        /// Queue from which all are.
        mark_high: Option<Bytes>, only_where(RED);
        /// Thousandths of packets that are marked just below that.
        mark_most: Option<CountFromZero>, within(CountFromZero(0), CountFromZero(1_000)), only_where(RED);
        /// Least time between two notifications about a flow.
        notification_interval: Option<Span>, only_where(DCQCN);
        /// Least time between two cuts of a rate.
        cut_interval: Option<Span>, only_where(DCQCN);
        /// Power of two that g is one over.
        gain_shift: Option<CountFromZero>, within(CountFromZero(0), CountFromZero(16)), only_where(DCQCN);
        /// Between two steps of alpha without a notification.
        alpha_timer: Option<Span>, not_zero("20us"), only_where(DCQCN);
        /// Between two increases by time.
        increase_timer: Option<Span>, not_zero("20us"), only_where(DCQCN);
        /// Bytes between two increases by bytes.
        increase_bytes: Option<Bytes>, only_where(DCQCN);
        /// Increases of fast recovery.
        fast_steps: Option<u32>, only_where(DCQCN);
        /// Step of additive increase.
        additive_rate: Option<BitRate>, only_where(DCQCN);
        /// Step of hyper increase.
        hyper_rate: Option<BitRate>, only_where(DCQCN);
        /// The least rate of a flow.
        least_rate: Option<BitRate>, only_where(DCQCN);
        /// Thousandths of a link that are to be used.
        aim: Option<u32>, within(1, 1_000), only_where(HPCC);
        /// Rounds of additive increase before a multiplicative one.
        stages: Option<u32>, only_where(HPCC);
        /// Bytes by which a window grows at once.
        additive_bytes: Option<Bytes>, only_where(HPCC);
        /// Delay that is aimed at: of Swift the round trip without hops and flows, of NSCC that in queues.
        target: Option<Span>, only_where(DELAY);
        /// Target per link crossed.
        hop_target: Option<Span>, only_where(SWIFT);
        /// The most that is added to the target for small windows.
        target_range: Option<Span>, only_where(SWIFT);
        /// Queue before a link beyond which packets are marked.
        threshold: Option<Bytes>, only_where(IB);
        /// Unmarked packets between two that are marked.
        marking_rate: Option<CountFromZero>, only_where(IB);
        /// Smaller packets are not marked.
        packet_size: Option<Bytes>, only_where(IB);
        /// Whether links that wait for credits mark too.
        marks_victims: Option<bool>, only_where(IB);
        /// Steps in the table of delays for each notification.
        increase: Option<u32>, only_where(IB);
        /// The last place of the table.
        limit: Option<u32>, only_where(IB);
        /// Between two steps back.
        timer: Option<Span>, not_zero("20us"), only_where(IB);
        /// Places of the table for each packet's time of delay, as a power of two from 0 to 3.
        shift: Option<CountFromZero>, within(CountFromZero(0), CountFromZero(3)), only_where(IB);
        beside {
            /// Of traffic classes that have another: theirs.
            by_class: [Option<CongestionKind>; MAX_CLASSES] = [None; MAX_CLASSES];
        }
    }
}

section_of_keys! {
    /// Congestion control. Each algorithm has keys of its own; what is not given is as its page says.
    struct RawCongestion {
        keys {
            rule: CongestionRule,
        }
    }
}

impl RawCongestion {
    /// The buffer of the class for answers, with its place; `None`: it is not given.
    pub(super) fn answers_buffer(&self) -> Option<Entry<Bytes>> {
        let value = self.rule?.answers_buffer?;
        Some(Entry { value, location: self.locations.of("answers_buffer") })
    }
}

/// The network whose congestion is controlled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ControlledNetwork {
    Ideal,
    /// Full buffers lose no packets.
    Lossless,
    /// They do.
    Lossy,
}

/// Checks the section. `classes`: the algorithms that traffic classes name. `None`: a problem was reported;
/// of the inner, that congestion is not controlled.
pub(super) fn check(
    raw: Option<RawCongestion>,
    classes: impl Iterator<Item = Option<CongestionKind>>,
    network: ControlledNetwork,
    reader: &mut Reader<'_>,
) -> Option<Option<CongestionRule>> {
    let (rule, locations) = match raw {
        Some(raw) => (raw.rule?, Some(raw.locations)),
        None => (CongestionRule::default(), None),
    };
    let mut by_class = [None; MAX_CLASSES];
    if network != ControlledNetwork::Ideal {
        by_class.iter_mut().zip(classes).for_each(|(place, kind)| *place = kind);
    }
    let rule = CongestionRule { by_class, ..rule };
    if rule.kind == CongestionKind::None {
        let is_controlled = by_class.iter().flatten().any(|kind| *kind != CongestionKind::None);
        return Some(is_controlled.then_some(rule));
    }
    match rule.check(network) {
        Ok(()) => Some(Some(rule)),
        Err(misfit) => {
            locations?.report(misfit, reader);
            None
        }
    }
}

impl CongestionRule {
    /// Checks that the constants fit together, and the algorithms what full buffers do.
    fn check(&self, network: ControlledNetwork) -> Result<(), Misfit> {
        if let (Some(low), Some(high)) = (self.mark_low, self.mark_high)
            && low >= high
        {
            let title = format!("`congestion.mark_low` of {low} is not below mark_high, {high}");
            return Err(Problem::new(title, "too large", "write less").of("mark_low"));
        }
        if network == ControlledNetwork::Ideal {
            return Err(Problem::new(
                "the ideal network has no queues, and nothing whose congestion could be controlled",
                "not on this network",
                "write fabric.kind = \"packet\", or congestion.kind = \"none\"",
            )
            .of("kind"));
        }
        if self.trim == Some(true) && network == ControlledNetwork::Lossless {
            return Err(Problem::new(
                "full buffers trim packets where they would lose them, and these lose none",
                "nothing to trim",
                "write fabric.flow_control = \"drop\", or leave it out",
            )
            .of("trim"));
        }
        // Which path it is does not matter.
        let path = Path::new(BitRate::from_gigabits(100), Span::from_us(1), Bytes::new(1));
        let mut algorithms = (0..MAX_CLASSES as u8).filter_map(|class| self.algorithm(&path, class));
        let needs_lossless = algorithms.find(|algorithm| algorithm.need().lossless);
        let Some(algorithm) = needs_lossless.filter(|_| network == ControlledNetwork::Lossy) else {
            return Ok(());
        };
        Err(Problem::new(
            format!(
                "congestion control by {} needs a network that loses no packets in full buffers",
                algorithm.name()
            ),
            "fabric.flow_control is \"drop\"",
            "write fabric.flow_control = \"credits\" or \"pause\", or another algorithm",
        )
        .of("kind"))
    }

    /// The algorithm of a traffic class with all its constants, for a path. `None`: congestion of that class
    /// is not controlled.
    pub fn algorithm(&self, path: &Path, class: u8) -> Option<Congestion> {
        let kind = self.by_class[usize::from(class)].unwrap_or(self.kind);
        let round_trip = self.round_trip.unwrap_or(path.round_trip);
        let held =
            u128::from(path.rate.bits_per_second()) * u128::from(round_trip.as_ps()) / 8_000_000_000_000;
        // Bandwidth times delay.
        let held = Bytes::new((held as u64).max(path.packet.get()));
        let part =
            |numerator: u64, denominator: u64| Bytes::new((held.get() * numerator / denominator).max(1));
        let timeout = self.timeout.unwrap_or((round_trip * 50).max(Span::from_us(1_000)));
        // 16,384 as uet-htsim has it, where a path holds 150 KB. Of one that holds less an eighth: a window
        // that is smaller than what is answered at once waits for the answer's time.
        let every = self.answer_every.unwrap_or(part(1, 8).min(Bytes::new(16_384)));
        // Twice as long as the line of the source takes for them.
        let wait = (path.rate.span(every) * 2).min(Answering::LONGEST_WAIT);
        let answering = Answering { every, wait };
        Some(match kind {
            CongestionKind::None => return None,
            CongestionKind::Acc | CongestionKind::AccFrpOnly | CongestionKind::AccFrpInit => {
                let is_whole = kind == CongestionKind::Acc;
                Congestion::Acc(acc::Parameters {
                    period: self.period.unwrap_or(Span::from_us(20)),
                    margin: self.margin.map_or(50, |CountFromZero(margin)| margin),
                    flow_init: kind != CongestionKind::AccFrpOnly,
                    wait_for_feedback: self.wait_for_feedback.unwrap_or(false),
                    mind_the_gap: self.mind_the_gap.unwrap_or(is_whole),
                    wait_to_rise: self.wait_to_rise.unwrap_or(is_whole),
                    short_circuit: self.short_circuit.unwrap_or(is_whole),
                })
            }
            CongestionKind::Dcqcn => Congestion::Dcqcn(dcqcn::Parameters {
                red: RedParameters {
                    low: self.mark_low.unwrap_or(Bytes::new(5_000)),
                    high: self.mark_high.unwrap_or(Bytes::new(200_000)),
                    most: self.mark_most.map_or(10, |CountFromZero(most)| most),
                },
                notification_interval: self.notification_interval.unwrap_or(Span::from_us(50)),
                cut_interval: self.cut_interval.unwrap_or(Span::ZERO),
                gain_shift: self.gain_shift.map_or(8, |CountFromZero(shift)| shift),
                alpha_timer: self.alpha_timer.unwrap_or(Span::from_us(55)),
                increase_timer: self.increase_timer.unwrap_or(Span::from_us(55)),
                increase_bytes: self.increase_bytes.unwrap_or(Bytes::new(10_000_000)),
                fast_steps: self.fast_steps.unwrap_or(5),
                additive: self.additive_rate.unwrap_or(BitRate::from_bits_per_second(40_000_000)),
                hyper: self.hyper_rate.unwrap_or(BitRate::from_bits_per_second(400_000_000)),
                least: self.least_rate.unwrap_or(BitRate::from_bits_per_second(100_000_000)),
                answering: (path.repair != Repair::None).then_some(answering),
                timeout,
                trim: self.trim.unwrap_or(false),
            }),
            CongestionKind::Hpcc => Congestion::Hpcc(hpcc::Parameters {
                round_trip,
                aim: self.aim.unwrap_or(950),
                most_stages: self.stages.unwrap_or(5),
                additive: self.additive_bytes.unwrap_or(part(50, 1_000 * 20)),
                timeout,
                answering,
            }),
            CongestionKind::Swift => Congestion::Swift(swift::Parameters {
                base: self.target.unwrap_or(round_trip),
                per_hop: self.hop_target.unwrap_or(Span::from_ps(round_trip.as_ps() / 16)),
                range: self.target_range.unwrap_or(round_trip * 5),
                least: 100,
                most: 100,
                increase: 1_000,
                decrease: 800,
                most_decrease: 500,
                timeout,
                answering,
                trim: self.trim.unwrap_or(false),
            }),
            CongestionKind::Nscc => Congestion::Nscc(nscc::Parameters {
                red: RedParameters {
                    low: self.mark_low.unwrap_or(part(1, 5)),
                    high: self.mark_high.unwrap_or(part(4, 5)),
                    most: self.mark_most.map_or(1_000, |CountFromZero(most)| most),
                },
                target: self.target,
                decrease: 800,
                timeout,
                answering,
                trim: self.trim.unwrap_or(false),
            }),
            CongestionKind::Ib => Congestion::Ib(ib::Parameters {
                threshold: self.threshold.unwrap_or(path.packet * 8),
                marking_rate: self.marking_rate.map_or(0, |CountFromZero(rate)| rate),
                packet_size: self.packet_size.unwrap_or(Bytes::ZERO),
                marks_victims: self.marks_victims.unwrap_or(false),
                increase: self.increase.unwrap_or(1),
                limit: self.limit.unwrap_or(127),
                timer: self.timer.unwrap_or(Span::from_ps(153_600_000)),
                shift: self.shift.map_or(3, |CountFromZero(shift)| shift),
            }),
        })
    }
}
