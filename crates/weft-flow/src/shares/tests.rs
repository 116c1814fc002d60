//! Shares against progressive filling in floating point, of all fluids at once.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn rate(bits: u64) -> BitRate {
    BitRate::from_bits_per_second(bits)
}

/// The lines of a fluid, and the most that it can go.
type Wish = (Vec<u32>, u64);

/// Water filling as in a textbook: all rise in step until a line is full or a fluid as fast as it can.
fn oracle(capacities: &[u64], fluids: &BTreeMap<u32, Wish>) -> BTreeMap<u32, f64> {
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
            let count = rising.iter().filter(|id| crosses(id, line)).count();
            if count == 0 { f64::INFINITY } else { (capacity as f64 - stopped) / count as f64 }
        };
        let lines: Vec<f64> = capacities.iter().enumerate().map(|(line, c)| full(line, *c)).collect();
        let fastest = rising.iter().map(|id| fluids[id].1 as f64).fold(f64::INFINITY, f64::min);
        level = lines.iter().copied().fold(fastest, f64::min).max(level);
        let (stop, on): (Vec<u32>, Vec<u32>) = rising.iter().partition(|id| {
            fluids[id].1 as f64 <= level * (1.0 + 1e-12)
                || fluids[id].0.iter().any(|line| lines[*line as usize] <= level * (1.0 + 1e-12))
        });
        stop.iter().for_each(|id| *shares.get_mut(id).unwrap() = level);
        rising = on;
    }
    shares
}

#[derive(Clone, Debug)]
enum Step {
    Begin(Wish),
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
            4 => (crosses, most).prop_map(Step::Begin),
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
                Step::Begin((crosses, most)) => {
                    let lines: Vec<_> = crosses.iter().map(|line| LineId(*line)).collect();
                    let id = shares.begin(&lines, rate(most));
                    prop_assert!(fluids.insert(id.0, (crosses, most)).is_none());
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
        let wish = |step| match step {
            Step::Begin(wish) => Some(wish),
            Step::End(_) | Step::Solve => None,
        };
        let wishes: Vec<Wish> = steps.into_iter().filter_map(wish).collect();
        let run = |order: &[usize]| {
            let mut shares = Shares::new(capacities.iter().map(|capacity| rate(*capacity)));
            let mut begun: Vec<(usize, FluidId)> = order
                .iter()
                .map(|place| {
                    let (crosses, most) = &wishes[*place];
                    let crosses: Vec<_> = crosses.iter().map(|line| LineId(*line)).collect();
                    (*place, shares.begin(&crosses, rate(*most)))
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
    let long = shares.begin(&[LineId(0), LineId(1)], rate(100));
    let first = shares.begin(&[LineId(0)], rate(100));
    let second = [(); 2].map(|()| shares.begin(&[LineId(1)], rate(100)));
    shares.solve();
    let of = |shares: &Shares, fluid| shares.share(fluid).bits_per_second();
    assert_eq!([long, first, second[0], second[1]].map(|fluid| of(&shares, fluid)), [3, 7, 3, 3]);
    shares.end(second[0]);
    let changed = shares.solve();
    assert_eq!([long, first, second[1]].map(|fluid| of(&shares, fluid)), [4, 6, 4]);
    assert_eq!(changed.len(), 3);
    shares.end(long);
    shares.solve();
    assert_eq!([first, second[1]].map(|fluid| of(&shares, fluid)), [10, 9]);
}
