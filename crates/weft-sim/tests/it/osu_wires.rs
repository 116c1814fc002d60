//! No bandwidth is above what the wires in use carry.
//!
//! ```text
//!   pair ─┐                 every pair moves as much: where n of p pairs cross a wire,
//!   pair ─┼─► wire ─► …     the bandwidth of all is at most p / n times its payload rate
//!   pair ─┘
//! ```

use crate::common::{InterruptAt, machine, options};
use std::collections::BTreeMap;
use weft_assembly as assembly;
use weft_machine::{Machine, load};
use weft_sim::experiment::Experiment;
use weft_sim::experiment::osu::{Benchmark, Iterations, Layer, OsuRequest, OsuRow, Repetitions};
use weft_sim::experiment::replay::Mapping;
use weft_topo::{Attachment, Layout, Topology as _, idle_path};
use weft_units::{Bytes, EndpointId};

/// A placement of the ranks of a benchmark on a machine of one interface per host.
struct Placement {
    machine: &'static str,
    sets: &'static [&'static str],
    ranks: u32,
    per_host: u32,
    /// Whether the hosts are not taken in order.
    scattered: bool,
}

impl Placement {
    /// Ranks in order.
    const fn linear(machine: &'static str, ranks: u32, per_host: u32) -> Placement {
        Placement { machine, sets: &[], ranks, per_host, scattered: false }
    }

    /// The endpoint of a rank.
    fn at(&self, rank: u32) -> EndpointId {
        let host = rank / self.per_host;
        EndpointId(if self.scattered { host * 37 % 64 } else { host })
    }

    fn map(&self, layout: &Layout) -> Mapping {
        if !self.scattered {
            return Mapping::Linear;
        }
        let line = |rank| format!("{} {}\n", layout.endpoint_name(self.at(rank)), rank % self.per_host);
        Mapping::File((0..self.ranks).map(line).collect())
    }
}

/// The wires of a machine under messages of a size.
struct Wires<'a> {
    machine: &'a Machine,
    layout: &'a Layout,
    bytes: Bytes,
}

impl Wires<'_> {
    /// Payload rate of a link of class `class` in Gb/s.
    fn rate(&self, class: usize) -> f64 {
        let link = assembly::links(self.machine, self.layout).unwrap()[class];
        let time = assembly::message_time(self.machine, &link, self.bytes).as_ps_f64();
        self.bytes.get() as f64 * 8e3 / time
    }

    /// The sum of the wires that leave the endpoints that send.
    fn of_senders(&self, pairs: &[(EndpointId, EndpointId)]) -> f64 {
        let mut senders: Vec<EndpointId> = pairs.iter().map(|pair| pair.0).collect();
        senders.sort_unstable();
        senders.dedup();
        senders.len() as f64 * self.rate(0)
    }

    /// The bandwidth at which the fullest wire on the pairs' paths is full.
    fn of_paths(&self, pairs: &[(EndpointId, EndpointId)]) -> f64 {
        let mut crossings = BTreeMap::new();
        for &(from, to) in pairs {
            crossings.entry((None, from.0)).or_insert((0u32, 0)).0 += 1;
            idle_path(self.layout, from, to, |switch, port| {
                let class = match self.layout.peer(switch, port) {
                    Attachment::Endpoint(_) => 0,
                    _ => usize::from(self.layout.link_class(switch, port).0),
                };
                crossings.entry((Some(switch), port.0)).or_insert((0, class)).0 += 1;
            });
        }
        let full = |(count, class): (u32, usize)| pairs.len() as f64 / f64::from(count) * self.rate(class);
        crossings.into_values().map(full).fold(f64::INFINITY, f64::min)
    }
}

/// Who sends to whom: pairs of endpoints.
fn pairs(benchmark: Benchmark, placement: &Placement) -> Vec<(EndpointId, EndpointId)> {
    let half = placement.ranks / 2;
    let there = (0..half).map(|rank| (placement.at(rank), placement.at(rank + half)));
    match benchmark {
        Benchmark::Bibw => there.flat_map(|(from, to)| [(from, to), (to, from)]).collect(),
        Benchmark::GetBw => there.map(|(from, to)| (to, from)).collect(),
        _ => there.collect(),
    }
}

/// The rows of a benchmark: size and bandwidth.
fn measured(
    benchmark: Benchmark,
    (placement, layout): (&Placement, &Layout),
    sizes: &[u64],
    iterations: Iterations,
) -> Vec<(Bytes, f64)> {
    let request = OsuRequest {
        machine: machine(placement.machine, placement.sets),
        benchmark,
        sizes: sizes.iter().copied().map(Bytes::new).collect(),
        between: None,
        ranks: Some(placement.ranks),
        map: placement.map(layout),
        ranks_per_host: Some(placement.per_host).filter(|_| !placement.scattered),
        repetitions: Repetitions { iterations, ..Repetitions::default() },
        layer: Layer::Mpi,
        algorithm: None,
        seed: 3,
        breakdown: false,
        data: false,
        telemetry: None,
    };
    let report = request.run(&options(2, None), InterruptAt::new(u32::MAX).control()).unwrap();
    let row = |row: &OsuRow| (row.size_bytes, row.bandwidth_gbps.unwrap());
    report.rows.iter().map(|measured| row(&measured.row)).collect()
}

/// Catches bytes that count and have not crossed the wires within the time that they are divided by: of ranks
/// whose clocks begin or end apart, of messages that are still in a buffer. And a bound that nothing reaches.
#[test]
fn no_bandwidth_is_above_the_wires_in_use() {
    let two = [Benchmark::Bw, Benchmark::Bibw, Benchmark::PutBw, Benchmark::GetBw];
    let mut cases: Vec<(Benchmark, Placement)> = Vec::new();
    for name in ["exanest", "communication-ip"] {
        cases.extend(two.map(|benchmark| (benchmark, Placement::linear(name, 2, 1))));
    }
    let many = [
        Placement::linear("exanest", 8, 1),
        Placement::linear("exanest", 8, 2),
        Placement::linear("exanest", 16, 4),
        Placement { scattered: true, ..Placement::linear("exanest", 32, 4) },
        Placement::linear("communication-ip", 4, 2),
        Placement { sets: &["topology.dims=[8]"], ..Placement::linear("communication-ip", 8, 1) },
        Placement::linear("bxi3-fattree", 16, 1),
    ];
    cases.extend(many.into_iter().map(|placement| (Benchmark::MbwMr, placement)));
    let mut fullest = 0f64;
    for (benchmark, placement) in &cases {
        let sets: Vec<String> = placement.sets.iter().map(|&set| set.to_owned()).collect();
        let machine = load(placement.machine, &sets).unwrap();
        let layout = assembly::layout(&machine).unwrap();
        let pairs = pairs(*benchmark, placement);
        // Of more ranks a few iterations are as strict, and the usual ones take long.
        let usual = if placement.ranks < 8 { Iterations::Usual } else { Iterations::Exactly(2) };
        for iterations in [usual, Iterations::Exactly(1)] {
            let sizes = [64, 2048, 20_000];
            for (bytes, bandwidth) in measured(*benchmark, (placement, &layout), &sizes, iterations) {
                let wires = Wires { machine: &machine, layout: &layout, bytes };
                let bound = wires.of_senders(&pairs).min(wires.of_paths(&pairs));
                let place =
                    format!("{benchmark} of {bytes} on {}, {} ranks", placement.machine, placement.ranks);
                assert!(
                    bandwidth <= bound * 1.000_001,
                    "{place}, {iterations:?}: {bandwidth} of {bound} Gb/s"
                );
                fullest = fullest.max(bandwidth / bound);
            }
        }
    }
    assert!(fullest > 0.98, "no wire is ever full: {fullest}");
}

/// Catches a default of iterations that is too small: twice as many measure the same to a hundredth.
#[test]
fn usual_iterations_are_enough() {
    for placement in [
        Placement::linear("exanest", 8, 2),
        Placement::linear("communication-ip", 4, 2),
        Placement::linear("bxi3-fattree", 8, 1),
    ] {
        let layout = assembly::layout(&load(placement.machine, &[] as &[&str]).unwrap()).unwrap();
        for size in [64, 8192, 16_384, 66_000] {
            let measure =
                |iterations| measured(Benchmark::MbwMr, (&placement, &layout), &[size], iterations)[0].1;
            let usual = Iterations::Usual.counts(Benchmark::MbwMr, Bytes::new(size)).iterations;
            let (usual, twice) = (measure(Iterations::Usual), measure(Iterations::Exactly(2 * usual)));
            let place = format!("{size} B on {}, {} ranks", placement.machine, placement.ranks);
            assert!((twice / usual - 1.0).abs() < 0.01, "{place}: {usual}, then {twice} Gb/s");
        }
    }
}
