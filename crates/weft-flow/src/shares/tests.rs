//! Shares against progressive filling in floating point, of all fluids at once.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn rate(bits: u64) -> BitRate {
    BitRate::from_bits_per_second(bits)
}

/// The lines of a fluid, the most that it can go, and its weight.
type Own = (Vec<u32>, u64, u32);

fn wish(most: u64, weight: u32) -> Wish {
    Wish { most: rate(most), weight }
}

/// Water filling as in a textbook: all rise in step until a line is full or a fluid as fast as it can.
fn oracle(capacities: &[u64], fluids: &BTreeMap<u32, Own>) -> BTreeMap<u32, f64> {
    let mut shares: BTreeMap<u32, f64> = fluids.keys().map(|id| (*id, 0.0)).collect();
    let mut rising: Vec<u32> = fluids.keys().copied().collect();
    let mut level = 0.0;
    while !rising.is_empty() {
        let crosses = |id: &u32, line: usize| fluids[id].0.contains(&(line as u32));
        let full = |line: usize, capacity: u64| {
            let stopped: f64 = shares
                .iter()
                .filter(|(id, _)| !rising.contains(id) && crosses(id, line))
                .map(|(_, s)| s)
                .sum();
            let weight: u32 = rising.iter().filter(|id| crosses(id, line)).map(|id| fluids[id].2).sum();
            if weight == 0 { f64::INFINITY } else { (capacity as f64 - stopped) / f64::from(weight) }
        };
        let lines: Vec<f64> = capacities.iter().enumerate().map(|(line, c)| full(line, *c)).collect();
        let most = |id: &u32| fluids[id].1 as f64 / f64::from(fluids[id].2);
        let fastest = rising.iter().map(most).fold(f64::INFINITY, f64::min);
        level = lines.iter().copied().fold(fastest, f64::min).max(level);
        let (stop, on): (Vec<u32>, Vec<u32>) = rising.iter().partition(|id| {
            most(id) <= level * (1.0 + 1e-12)
                || fluids[id].0.iter().any(|line| lines[*line as usize] <= level * (1.0 + 1e-12))
        });
        stop.iter().for_each(|id| *shares.get_mut(id).unwrap() = level * f64::from(fluids[id].2));
        rising = on;
    }
    shares
}

#[derive(Clone, Debug)]
enum Step {
    Begin(Own),
    /// The one of this place among those that there are.
    End(usize),
    Solve,
}

fn steps() -> impl Strategy<Value = (Vec<u64>, Vec<Step>)> {
    (2usize..9).prop_flat_map(|lines| {
        let capacities = prop::collection::vec(1_000_000u64..100_000_000_000, lines);
        let crosses = prop::sample::subsequence((0..lines as u32).collect::<Vec<_>>(), 0..lines.min(5));
        let most = prop_oneof![Just(u64::MAX >> 8), 1_000_000u64..50_000_000_000];
        let step = prop_oneof![
            4 => (crosses, most, 1u32..9).prop_map(Step::Begin),
            2 => any::<usize>().prop_map(Step::End),
            3 => Just(Step::Solve),
        ];
        (capacities, prop::collection::vec(step, 1..60))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Catches a solution of a part that differs from one of the whole: a fluid that is not reached, or one
    /// that must give way and does not.
    #[test]
    fn shares_are_max_min_fair((capacities, steps) in steps()) {
        let mut shares = Shares::new(capacities.iter().map(|capacity| rate(*capacity)));
        let mut fluids = BTreeMap::new();
        for step in steps.into_iter().chain([Step::Solve]) {
            match step {
                Step::Begin((crosses, most, weight)) => {
                    let lines: Vec<_> = crosses.iter().map(|line| LineId(*line)).collect();
                    let id = shares.begin(&lines, wish(most, weight));
                    prop_assert!(fluids.insert(id.0, (crosses, most, weight)).is_none());
                }
                Step::End(place) => {
                    let ends = fluids.keys().copied().nth(place % fluids.len().max(1));
                    if let Some(id) = ends {
                        fluids.remove(&id);
                        shares.end(FluidId(id));
                    }
                }
                Step::Solve => {
                    shares.solve();
                    for (id, expected) in oracle(&capacities, &fluids) {
                        let found = shares.share(FluidId(id)).bits_per_second() as f64;
                        // Each rounding takes less than a bit per second for each fluid of a line.
                        prop_assert!((found - expected).abs() <= 1e-9 * expected + 4000.0,
                            "fluid {id}: {found}, not {expected}; {fluids:?} on {capacities:?}");
                    }
                    prop_assert_eq!(shares.overfull(), None);
                }
            }
        }
    }

    /// Catches shares that depend on the order in which fluids of one instant begin.
    #[test]
    fn the_order_of_an_instant_does_not_matter(
        (capacities, steps) in steps(),
        swaps in prop::collection::vec(any::<prop::sample::Index>(), 60),
    ) {
        let own = |step| match step {
            Step::Begin(own) => Some(own),
            Step::End(_) | Step::Solve => None,
        };
        let wishes: Vec<Own> = steps.into_iter().filter_map(own).collect();
        let run = |order: &[usize]| {
            let mut shares = Shares::new(capacities.iter().map(|capacity| rate(*capacity)));
            let mut begun: Vec<(usize, FluidId)> = order
                .iter()
                .map(|place| {
                    let (crosses, most, weight) = &wishes[*place];
                    let crosses: Vec<_> = crosses.iter().map(|line| LineId(*line)).collect();
                    (*place, shares.begin(&crosses, wish(*most, *weight)))
                })
                .collect();
            shares.solve();
            begun.sort_unstable();
            begun.into_iter().map(|(_, fluid)| shares.share(fluid)).collect::<Vec<_>>()
        };
        let in_order: Vec<usize> = (0..wishes.len()).collect();
        let mut other = in_order.clone();
        for (place, swap) in swaps.iter().take(other.len()).enumerate() {
            let with = swap.index(in_order.len());
            other.swap(place, with);
        }
        prop_assert_eq!(run(&in_order), run(&other));
    }
}

/// Three fluids over two lines: the long one gets what the fuller line leaves it.
#[test]
fn a_long_fluid_gets_its_tightest_line() {
    let mut shares = Shares::new([rate(10), rate(9)]);
    let long = shares.begin(&[LineId(0), LineId(1)], wish(100, 1));
    let first = shares.begin(&[LineId(0)], wish(100, 1));
    let second = [(); 2].map(|()| shares.begin(&[LineId(1)], wish(100, 1)));
    shares.solve();
    let of = |shares: &Shares, fluid| shares.share(fluid).bits_per_second();
    assert_eq!([long, first, second[0], second[1]].map(|fluid| of(&shares, fluid)), [3, 7, 3, 3]);
    shares.end(second[0]);
    let changed = shares.solve().len();
    assert_eq!([long, first, second[1]].map(|fluid| of(&shares, fluid)), [4, 6, 4]);
    assert_eq!(changed, 3);
    shares.end(long);
    shares.solve();
    assert_eq!([first, second[1]].map(|fluid| of(&shares, fluid)), [10, 9]);
}

/// Catches a weight that counts otherwise than so many fluids of one path: in shares, where it stops, and in
/// what a routing sees on a line.
#[test]
fn a_fluid_of_weight_is_as_many_as_it_counts_for() {
    let run = |together: bool| {
        let mut shares = Shares::new([rate(1000), rate(800), rate(90)]);
        let mut three = || match together {
            true => vec![shares.begin(&[LineId(0), LineId(1)], wish(900, 3))],
            false => [(); 3].map(|()| shares.begin(&[LineId(0), LineId(1)], wish(300, 1))).to_vec(),
        };
        let three = three();
        let others = [0, 1, 1, 2].map(|line| shares.begin(&[LineId(line)], wish(250, 1)));
        let all = |shares: &mut Shares| {
            shares.solve();
            let share = |id: &FluidId| shares.share(*id).bits_per_second();
            let waiting = shares.waiting_on(0..3).to_vec();
            (three.iter().map(share).sum::<u64>(), others.map(|id| share(&id)), waiting)
        };
        all(&mut shares)
    };
    assert_eq!(run(true), run(false));
    assert_eq!(run(true).0, 480);
}
