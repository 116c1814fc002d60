//! Computations of flops and bytes: by hand, and against the roofline.

use super::streams::trace_of_streams;
use super::support::*;
use proptest::prelude::*;
use weft_trace::op::*;
use weft_units::{BitRate, Bytes, Clock, Span, Time};
use weft_workload::replay::*;

/// 2 flops and 10 bytes in a nanosecond, and 15 bytes for all cores of a host.
const SPEED: CoreSpeed = CoreSpeed {
    clock: Clock::from_hertz(1_000_000_000).unwrap(),
    flops_per_cycle: 2_000_000,
    bandwidth: BitRate::from_gigabits(80),
    memory_bandwidth: BitRate::from_gigabits(120),
    recorded_share: 0,
    endpoints_per_host: 1,
};

const RULES: [ProgressRule; 2] = [ProgressRule::Call, ProgressRule::Background];

fn work(flops: u64, bytes: u64) -> Op {
    Op::Work { flops, bytes: Bytes::new(bytes) }
}

/// All ranks on one host, whose cores are so fast.
fn host_of(ranks: u32, progress: ProgressRule, cores: CoreSpeed) -> Setup {
    Setup { per_host: ranks, cores: Some(cores), ..Setup::zero(progress) }
}

/// The ends of ranks on one host, in picoseconds, and how long each has waited for memory.
fn ends(ranks: &[Vec<Op>], progress: ProgressRule, cores: CoreSpeed) -> Vec<(u64, u64)> {
    let outcome = host_of(ranks.len() as u32, progress, cores).run(&[trace_of(ranks)], None);
    outcome.assert_finished();
    outcome.ranks.iter().map(|it| ((it.end - Time::ZERO).as_ps(), it.memory_wait.as_ps())).collect()
}

const US: u64 = 1_000_000;

/// Catches a computation that adds its flops and its bytes, or passes over one of them.
#[test]
fn a_core_alone_is_on_the_roofline() {
    for (flops, bytes, us) in [(1_000_000, 10_000_000, 1000), (4_000_000, 10_000_000, 2000), (2000, 0, 1)] {
        for progress in RULES {
            assert_eq!(ends(&[vec![work(flops, bytes)]], progress, SPEED), [(us * US, 0)]);
        }
    }
    // A part of a cycle is one, and a part of a picosecond too.
    assert_eq!(ends(&[vec![work(1, 0)]], ProgressRule::Call, SPEED), [(1000, 0)]);
    let odd = CoreSpeed { bandwidth: BitRate::from_bits_per_second(7_000_000_000), ..SPEED };
    assert_eq!(ends(&[vec![work(0, 1)]], ProgressRule::Call, odd), [(1143, 0)]);
}

/// Catches a share that does not change when another core begins or ends.
#[test]
fn two_cores_share_the_channel() {
    // From 400 us on each has 7.5 B/ns. Core 1 has its 3 MB after 400 us; core 0 then lacks 3 of 10 MB.
    let ranks = [vec![work(0, 10_000_000)], vec![compute(400), work(0, 3_000_000)]];
    for progress in RULES {
        assert_eq!(ends(&ranks, progress, SPEED), [(1100 * US, 100 * US), (800 * US, 100 * US)]);
    }
    // Hosts of their own have channels of their own.
    let setup = Setup { per_host: 1, ..host_of(1, ProgressRule::Call, SPEED) };
    let outcome = setup.run(&[trace_of(&ranks)], None);
    assert_eq!(outcome.ranks.iter().map(|it| it.end.as_ps()).collect::<Vec<_>>(), [1000 * US, 700 * US]);
}

/// Catches a core that keeps its share while it does nothing but arithmetic.
#[test]
fn a_core_that_is_busy_with_flops_leaves_the_channel() {
    // 5 B/ns each, until core 2 has its 1 MB at 200 us: then 7.5, for 5 MB.
    let memory = || vec![work(0, 6_000_000)];
    let ranks = [memory(), memory(), vec![work(4_000_000, 1_000_000)]];
    let both = 200 * US + 666_666_667;
    let wait = both - 600 * US;
    for progress in RULES {
        assert_eq!(ends(&ranks, progress, SPEED), [(both, wait), (both, wait), (2000 * US, 0)]);
    }
}

/// Catches a recording that is faster or slower alone, and a share that is not shared.
#[test]
fn a_share_of_recorded_computations_is_memory() {
    let cores = CoreSpeed { recorded_share: 250_000, ..SPEED };
    for progress in RULES {
        assert_eq!(ends(&[vec![compute(400)]], progress, cores), [(400 * US, 0)]);
        // 300 us of arithmetic, then what takes 100 us at 10 B/ns, at 7.5.
        let end = (300 * US + 133_333_334, 33_333_334);
        assert_eq!(ends(&[vec![compute(400)], vec![compute(400)]], progress, cores), [end, end]);
        assert_eq!(ends(&[vec![compute(400)], vec![compute(400)]], progress, SPEED), [(400 * US, 0); 2]);
    }
}

/// Catches a rank that takes a message while it computes, and one that does not go on behind the computation.
#[test]
fn a_rank_takes_messages_behind_its_work() {
    let ranks = [
        vec![receive(1, 0, 8, 0), work(0, 10_000_000), wait(0)],
        vec![compute(10), send(0, 0, 8, 0), work(0, 10_000_000), wait(0)],
    ];
    for progress in RULES {
        // 10 us alone, then 7.5 B/ns each; the last 100 KB of core 1 alone again.
        let first = 10 * US + 9_900_000 * 1_000_000 / 7_500;
        assert_eq!(ends(&ranks, progress, SPEED), [(first, first - 1000 * US), (first + 10 * US, 330 * US)]);
    }
}

/// Catches streams of a rank that share a core while it waits for memory, and cores of a rank with a channel
/// each.
#[test]
fn streams_share_the_channel_by_core() {
    let memory = || vec![work(0, 6_000_000)];
    for (core, ends) in [(0, 1200), (1, 800)] {
        let streams = vec![(0, memory()), (core, memory())];
        for progress in RULES {
            let outcome =
                host_of(1, progress, SPEED).run(&[trace_of_streams(std::slice::from_ref(&streams))], None);
            outcome.assert_finished();
            assert_eq!(outcome.ranks[0].end.as_ps(), ends * US, "{core}");
        }
    }
}

/// Catches a machine that computes in no time because it does not say how fast it is, and numbers that
/// overflow.
#[test]
fn work_that_cannot_be_timed_is_refused() {
    let fault = |op: Op, cores| {
        let setup = Setup { cores, ..Setup::zero(ProgressRule::Call) };
        let outcome = setup.run(&[trace_of(&[vec![op]])], None);
        outcome.faults[0].to_string()
    };
    let said = fault(work(1, 0), None);
    assert!(said.contains("operation 0") && said.contains("[host.core]") && said.contains("--set"), "{said}");
    for op in [work(u64::MAX, 0), work(0, 1 << 50)] {
        let said = fault(op, Some(SPEED));
        assert!(said.contains("more than 20 hours"), "{said}");
    }
}

/// A rank's computations, with pauses before them.
fn program() -> impl Strategy<Value = Vec<Op>> {
    let size = || prop_oneof![Just(0u64), 1..100_000u64, Just(60_000)];
    let one = (0..3u64, size(), size());
    prop::collection::vec(one, 0..6).prop_map(|all| {
        all.into_iter().flat_map(|(us, flops, bytes)| [compute(us), work(flops, bytes)]).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Catches shares that are not those of processor sharing, by its closed form: of streams that begin at
    /// once the shortest ends first, and until then all have had as much.
    #[test]
    fn streams_that_begin_at_once_end_as_the_closed_form_says(
        mut bytes in prop::collection::vec(1..1_000_000u64, 1..8),
        memory_mbps in 1u64..400_000,
    ) {
        bytes.sort_unstable();
        let memory_bandwidth = BitRate::from_bits_per_second(memory_mbps.max(80_000) * 1_000_000);
        let cores = CoreSpeed { memory_bandwidth, ..SPEED };
        let ranks: Vec<Vec<Op>> = bytes.iter().map(|bytes| vec![work(0, *bytes)]).collect();
        let found = ends(&ranks, ProgressRule::Call, cores);
        let (mut end, mut before) = (0.0, 0);
        for (index, &own) in bytes.iter().enumerate() {
            let sharers = (bytes.len() - index) as f64;
            let share = (memory_bandwidth.bits_per_second() as f64 / sharers).min(80e9);
            end += (own - before) as f64 * 8e12 / share;
            before = own;
            // Each end so far is rounded up to a picosecond.
            let most = end + 1.0 + index as f64 + end * 1e-9;
            prop_assert!((end - end * 1e-9..most).contains(&(found[index].0 as f64)), "{found:?} {end}");
        }
    }

    /// Catches a core that is faster than the roofline, a channel that gives more than it has, a run whose
    /// saved state lacks something of a computation under way, and ranks that depend on their numbers.
    #[test]
    fn nobody_is_faster_than_the_roofline(
        ranks in prop::collection::vec(program(), 1..5),
        period in 1..9_000u64,
        background: bool,
    ) {
        let progress = RULES[usize::from(background)];
        let setup = host_of(ranks.len() as u32, progress, SPEED);
        let trace = trace_of(&ranks);
        let whole = setup.run(std::slice::from_ref(&trace), None);
        whole.assert_finished();
        let mut all = 0;
        for (ops, rank) in ranks.iter().zip(&whole.ranks) {
            let mut least = 0;
            for op in ops {
                least += match op {
                    Op::Compute { span } => span.as_ps(),
                    Op::Work { flops, bytes } => {
                        all += bytes.get();
                        (flops.div_ceil(2) * 1000).max(bytes.get() * 100)
                    }
                    _ => 0,
                };
            }
            prop_assert_eq!(rank.end.as_ps(), least + rank.memory_wait.as_ps());
            prop_assert_eq!(rank.computation.as_ps(), rank.end.as_ps());
        }
        // 15 B/ns.
        prop_assert!(whole.run_time().as_ps() >= all * 1000 / 15);
        let saved = setup.run(std::slice::from_ref(&trace), Some(Span::from_ns(period)));
        prop_assert_eq!(&saved.ranks, &whole.ranks);
        let mut turned = ranks;
        turned.reverse();
        let mut other = setup.run(&[trace_of(&turned)], None);
        other.ranks.reverse();
        let ends = |outcome: &Outcome| outcome.ranks.iter().map(|rank| rank.end).collect::<Vec<_>>();
        prop_assert_eq!(ends(&other), ends(&whole));
    }
}
