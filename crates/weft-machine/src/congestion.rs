//! `[congestion]`: the algorithm that controls how much flows send, and its constants.

use super::read::{Entry, Reader, section};
use super::source::Location;
use serde::{Deserialize, Serialize};
use weft_congestion::{
    Answering, Congestion, Path, RedParameters, Repair, acc, dcqcn, hpcc, ib, nscc, swift,
};
use weft_fabric::MAX_CLASSES;
use weft_keys::{CountFromZero, KeyType, Problem};
use weft_units::{BitRate, Bytes, Span};

weft_keys::words! {
    /// The algorithms by their names in machine files.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub enum CongestionKind: "CongestionKind", "a way to control congestion" {
        /// Flows send as fast as they can.
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

macro_rules! keys {
    ($($(#[$doc:meta])* $key:ident: $type:ty, $($kind:ident)*;)*) => {
        section! {
            /// Congestion control. Each algorithm has keys of its own; what is not given is as its page says.
            struct RawCongestion {
                /// The algorithm; `none`: flows send as fast as they can.
                kind: Entry<CongestionKind>,
                $($(#[$doc])* $key: Option<Entry<$type>>,)*
            }
        }

        /// Congestion control of a machine: the algorithm, and the constants that it gives.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
        #[expect(missing_docs, reason = "the section's keys, with their meaning")]
        pub struct CongestionRule {
            pub kind: CongestionKind,
            /// Of traffic classes that have another: theirs.
            pub by_class: [Option<CongestionKind>; MAX_CLASSES],
            $(pub $key: Option<$type>,)*
        }

        impl CongestionRule {
            /// An algorithm with the constants of its page.
            pub const fn new(kind: CongestionKind) -> CongestionRule {
                CongestionRule { kind, by_class: [None; MAX_CLASSES], $($key: None,)* }
            }
        }

        /// Refuses keys of an algorithm that no traffic class has.
        fn read(
            raw: RawCongestion,
            by_class: [Option<CongestionKind>; MAX_CLASSES],
            reader: &mut Reader<'_>,
        ) -> Option<CongestionRule> {
            use CongestionKind::*;
            let kind = raw.kind.value;
            let of_classes = || by_class.iter().flatten();
            let is_used = |of: &[CongestionKind]| of.contains(&kind) || of_classes().any(|k| of.contains(k));
            let mut fits = true;
            $(if let Some(entry) = &raw.$key {
                let of: &[CongestionKind] = &[$($kind),*];
                if !is_used(of) {
                    let path = concat!("congestion.", stringify!($key));
                    if !entry.location.is_set() && raw.kind.location.is_set() {
                        reader.forget(path);
                    } else {
                        fits = false;
                        let names: Vec<String> = of.iter().map(KeyType::show).collect();
                        let problem = Problem::new(
                            format!("`{path}` means nothing with congestion.kind = {}", kind.show()),
                            "not used",
                            format!("remove it, or write kind = one of {}", names.join(", ")),
                        );
                        reader.report(entry.location, problem);
                    }
                }
            })*
            fits.then(|| CongestionRule {
                kind,
                by_class,
                $($key: raw.$key.filter(|_| is_used(&[$($kind),*])).map(|entry| entry.value),)*
            })
        }
    };
}

keys! {
    /// Whether acknowledgements and notices get a traffic class of the highest priority where the machine has
    /// one class: yes where not given.
    priority: bool, Acc AccFrpOnly AccFrpInit Dcqcn Hpcc Swift Nscc Ib;
    /// Input buffer of that class, for each virtual channel of the routing, where channels share the buffer
    /// of a port. Where not given an eighth of it under credits, half under pause and drop.
    answers_buffer: Bytes, Acc AccFrpOnly AccFrpInit Dcqcn Hpcc Swift Nscc Ib;
    /// Round trip of a large packet and its answer through the empty network; that of the longest path where
    /// not given.
    round_trip: Span, Hpcc Swift Nscc;
    /// From sending a packet until it counts as lost without an answer.
    timeout: Span, Dcqcn Hpcc Swift Nscc;
    /// Bytes of packets that destinations answer at once; 0: each packet. Where not given an eighth of what
    /// the path holds, 16,384 at most.
    answer_every: Bytes, Dcqcn Hpcc Swift Nscc;
    /// Whether full buffers cut packets down to their headers, which tell the destination: not where not
    /// given. For fabric.flow_control=drop.
    trim: bool, Dcqcn Swift Nscc;
    /// Between two rate re-evaluation pulses.
    period: Span, Acc AccFrpOnly AccFrpInit;
    /// Thousandths of a link that flows do not get.
    margin: CountFromZero, Acc AccFrpOnly AccFrpInit;
    /// Whether a new flow waits for its first answer.
    wait_for_feedback: bool, Acc AccFrpInit AccFrpOnly;
    /// Whether links find flows that are bottlenecked there and say otherwise.
    mind_the_gap: bool, Acc AccFrpInit AccFrpOnly;
    /// Whether a rate rises step by step until it is confirmed.
    wait_to_rise: bool, Acc AccFrpInit AccFrpOnly;
    /// Whether switches answer a flow from inside the fabric where they offer it less than it uses.
    short_circuit: bool, Acc AccFrpInit AccFrpOnly;
    /// Queue before a link up to which no packet is marked.
    mark_low: Bytes, Dcqcn Nscc;
    /// Queue from which all are.
    mark_high: Bytes, Dcqcn Nscc;
    /// Thousandths of packets that are marked just below that.
    mark_most: CountFromZero, Dcqcn Nscc;
    /// Least time between two notifications about a flow.
    notification_interval: Span, Dcqcn;
    /// Least time between two cuts of a rate.
    cut_interval: Span, Dcqcn;
    /// Power of two that g is one over.
    gain_shift: CountFromZero, Dcqcn;
    /// Between two steps of alpha without a notification.
    alpha_timer: Span, Dcqcn;
    /// Between two increases by time.
    increase_timer: Span, Dcqcn;
    /// Bytes between two increases by bytes.
    increase_bytes: Bytes, Dcqcn;
    /// Increases of fast recovery.
    fast_steps: u32, Dcqcn;
    /// Step of additive increase.
    additive_rate: BitRate, Dcqcn;
    /// Step of hyper increase.
    hyper_rate: BitRate, Dcqcn;
    /// The least rate of a flow.
    least_rate: BitRate, Dcqcn;
    /// Thousandths of a link that are to be used.
    aim: u32, Hpcc;
    /// Rounds of additive increase before a multiplicative one.
    stages: u32, Hpcc;
    /// Bytes by which a window grows at once.
    additive_bytes: Bytes, Hpcc;
    /// Delay that is aimed at: of Swift the round trip without hops and flows, of NSCC that in queues.
    target: Span, Swift Nscc;
    /// Target per link crossed.
    hop_target: Span, Swift;
    /// The most that is added to the target for small windows.
    target_range: Span, Swift;
    /// Queue before a link beyond which packets are marked.
    threshold: Bytes, Ib;
    /// Unmarked packets between two that are marked.
    marking_rate: CountFromZero, Ib;
    /// Smaller packets are not marked.
    packet_size: Bytes, Ib;
    /// Whether links that wait for credits mark too.
    marks_victims: bool, Ib;
    /// Steps in the table of delays for each notification.
    increase: u32, Ib;
    /// The last place of the table.
    limit: u32, Ib;
    /// Between two steps back.
    timer: Span, Ib;
    /// Places of the table for each packet's time of delay, as a power of two from 0 to 3.
    shift: CountFromZero, Ib;
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
    let is_ideal = network == ControlledNetwork::Ideal;
    let mut by_class = [None; MAX_CLASSES];
    if !is_ideal {
        by_class.iter_mut().zip(classes).for_each(|(place, kind)| *place = kind);
    }
    let is_controlled = by_class.iter().flatten().any(|kind| *kind != CongestionKind::None);
    let Some(raw) = raw else {
        let rule = CongestionRule { by_class, ..CongestionRule::new(CongestionKind::None) };
        return Some(is_controlled.then_some(rule));
    };
    let at = raw.kind.location;
    let from_zero = |entry: &Option<Entry<CountFromZero>>| {
        entry.as_ref().map(|Entry { value: CountFromZero(value), location, .. }| (*value, *location))
    };
    let shift = from_zero(&raw.shift);
    let shares = [
        ("margin", from_zero(&raw.margin), 0..=999),
        ("mark_most", from_zero(&raw.mark_most), 0..=1_000),
        ("aim", raw.aim.as_ref().map(|entry| (entry.value, entry.location)), 1..=1_000),
        ("gain_shift", from_zero(&raw.gain_shift), 0..=16),
    ];
    let mut is_good = true;
    for (key, entry, bounds) in shares {
        if let Some((value, location)) = entry.filter(|(value, _)| !bounds.contains(value)) {
            let title = format!("`congestion.{key}` of {value} is too large");
            let mend = format!("write {} to {}", bounds.start(), bounds.end());
            reader.report(location, Problem::new(title, "too large", mend));
            is_good = false;
        }
    }
    if let Some((value, location)) = shift.filter(|(value, _)| *value > 3) {
        let title = format!("`congestion.shift` of {value} has no two bits");
        reader.report(location, Problem::new(title, "too large", "write 0, 1, 2 or 3"));
        is_good = false;
    }
    let spans =
        [&raw.period, &raw.round_trip, &raw.alpha_timer, &raw.increase_timer, &raw.timer, &raw.timeout];
    for entry in spans.into_iter().flatten().filter(|entry| entry.value == Span::ZERO) {
        let problem = Problem::new(
            "this time of congestion control is zero",
            "never ends",
            "write a time, such as 20us",
        );
        reader.report(entry.location, problem);
        is_good = false;
    }
    let red = [raw.mark_low.as_ref(), raw.mark_high.as_ref()];
    if let [Some(low), Some(high)] = red
        && low.value >= high.value
    {
        let title = format!("`congestion.mark_low` of {} is not below mark_high, {}", low.value, high.value);
        reader.report(low.location, Problem::new(title, "too large", "write less"));
        is_good = false;
    }
    let trims_at = raw.trim.as_ref().filter(|entry| entry.value).map(|entry| entry.location);
    let rule = read(raw, by_class, reader)?;
    if rule.kind == CongestionKind::None {
        return is_good.then_some(is_controlled.then_some(rule));
    }
    if is_ideal {
        let help = "write fabric.kind = \"packet\", or congestion.kind = \"none\"";
        let problem = Problem::new(
            "the ideal network has no queues, and nothing whose congestion could be controlled",
            "not on this network",
            help,
        );
        reader.report(at, problem);
        return None;
    }
    is_good &= fits(&rule, network, (at, trims_at), reader);
    is_good.then_some(Some(rule))
}

/// Whether algorithms fit what full buffers do. `at`: where the kind is, and where packets are to be trimmed.
fn fits(
    rule: &CongestionRule,
    network: ControlledNetwork,
    (at, trims_at): (Location, Option<Location>),
    reader: &mut Reader<'_>,
) -> bool {
    if let Some(trims_at) = trims_at.filter(|_| network == ControlledNetwork::Lossless) {
        let problem = Problem::new(
            "full buffers trim packets where they would lose them, and these lose none",
            "nothing to trim",
            "write fabric.flow_control = \"drop\", or leave it out",
        );
        reader.report(trims_at, problem);
        return false;
    }
    // Which path it is does not matter.
    let path = Path::new(BitRate::from_gigabits(100), Span::from_us(1), Bytes::new(1));
    let mut algorithms = (0..MAX_CLASSES as u8).filter_map(|class| rule.algorithm(&path, class));
    let misfit = algorithms.find(|algorithm| algorithm.need().lossless);
    let Some(misfit) = misfit.filter(|_| network == ControlledNetwork::Lossy) else { return true };
    let problem = Problem::new(
        format!(
            "congestion control by {} needs a network that loses no packets in full buffers",
            misfit.name()
        ),
        "fabric.flow_control is \"drop\"",
        "write fabric.flow_control = \"credits\" or \"pause\", or another algorithm",
    );
    reader.report(at, problem);
    false
}

impl CongestionRule {
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

    /// The names that machine files give to algorithms.
    pub const NAMES: [(&'static str, CongestionKind); 9] = [
        ("none", CongestionKind::None),
        ("acc", CongestionKind::Acc),
        ("acc-frp-only", CongestionKind::AccFrpOnly),
        ("acc-frp-init", CongestionKind::AccFrpInit),
        ("dcqcn", CongestionKind::Dcqcn),
        ("hpcc", CongestionKind::Hpcc),
        ("swift", CongestionKind::Swift),
        ("nscc", CongestionKind::Nscc),
        ("ib", CongestionKind::Ib),
    ];
}
