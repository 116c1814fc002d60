//! Messages, bytes and rounds against closed forms.

use super::collectives::{Setting, Trial, run_trials};
use super::network::Delays;
use crate::collective::ceil_log2;
use crate::{Algorithm, Protocol};
use weft_trace::op::Collective;

const BLOCK: u64 = 96;

/// Messages and bytes of one collective, and how long it takes where a message takes 1.
fn measure(kind: Collective, algorithm: Algorithm, count: u32) -> (u64, u64, u64) {
    let trial = Trial { kind, algorithm, root: count / 3, size: BLOCK, element: 1, seed: 0 };
    let outcome = run_trials(&[trial], &Setting::world(count, Protocol::zero(), Delays::Fixed(1)));
    let bytes = outcome.messages.iter().map(|(.., payload)| payload.get()).sum();
    (outcome.messages.len() as u64, bytes, outcome.end)
}

/// Catches an algorithm that is correct but sends more, or more often, than it may.
#[test]
fn messages_and_bytes_are_those_of_the_algorithm() {
    use Algorithm as A;
    use Collective as C;
    for count in 1..=33u32 {
        let (p, depth) = (u64::from(count), u64::from(ceil_log2(count)));
        let cores = 1u64 << count.ilog2();
        let (log2, rem) = (u64::from(count.ilog2()), p - cores);
        let check = |kind, algorithm, messages: u64, bytes: u64| {
            let (m, b, _) = measure(kind, algorithm, count);
            assert_eq!((m, b), (messages, bytes), "{kind:?} by {algorithm} on {count}");
        };
        let n = BLOCK;
        // Subtree sizes of a binomial tree: every member is in one subtree per ancestor.
        let paths: u64 = (0..p).map(|v| u64::from(v.count_ones())).sum();
        check(C::Barrier, A::Dissemination, p * depth, 0);
        check(C::Broadcast, A::Binomial, p - 1, (p - 1) * n);
        check(C::Broadcast, A::Linear, p - 1, (p - 1) * n);
        check(C::Reduce, A::Binomial, p - 1, (p - 1) * n);
        check(C::Reduce, A::Linear, p - 1, (p - 1) * n);
        check(C::Gather, A::Binomial, p - 1, paths * n);
        check(C::Scatter, A::Binomial, p - 1, paths * n);
        check(C::Gather, A::Linear, p - 1, (p - 1) * n);
        check(C::Scatter, A::Linear, p - 1, (p - 1) * n);
        check(C::Allgather, A::Ring, p * (p - 1), p * (p - 1) * n);
        check(C::Allgather, A::Bruck, p * depth, p * (p - 1) * n);
        check(C::ReduceScatterBlock, A::Ring, p * (p - 1), p * (p - 1) * n);
        check(C::ReduceScatterBlock, A::Pairwise, p * (p - 1), p * (p - 1) * n);
        check(C::Alltoall, A::Pairwise, p * (p - 1), p * (p - 1) * n);
        check(C::Alltoall, A::Linear, p * (p - 1), p * (p - 1) * n);
        check(C::Alltoall, A::Bruck, p * depth, p * paths * n);
        check(C::Allreduce, A::Ring, 2 * p * (p - 1), 2 * (p - 1) * n);
        let exchanges = cores * log2 + 2 * rem;
        check(C::Allreduce, A::RecursiveDoubling, exchanges, exchanges * n);
        check(C::Allreduce, A::Rabenseifner, exchanges + cores * log2, (2 * (cores - 1) + 2 * rem) * n);
        check(C::Scan, A::Linear, p - 1, (p - 1) * n);
        for tree in [A::LocalFirst, A::GlobalFirst] {
            check(C::Allreduce, tree, 2 * (p - 1), 2 * (p - 1) * n);
        }
        for tree in [A::Chain, A::BinaryTree, A::Knomial, A::LocalFirst, A::GlobalFirst] {
            check(C::Broadcast, tree, p - 1, (p - 1) * n);
            check(C::Reduce, tree, p - 1, (p - 1) * n);
        }
        let to_root = u64::from(count / 3 != count - 1);
        check(C::Reduce, A::InOrderBinaryTree, p - 1 + to_root, (p - 1 + to_root) * n);
        check(C::Broadcast, A::SplitBinaryTree, 2 * (p - 1), (p - 1) * n);
        check(C::Allreduce, A::Linear, 2 * (p - 1), 2 * (p - 1) * n);
        // By MPICH's table both halves are binomial trees.
        check(C::Allreduce, A::NonOverlapping, 2 * (p - 1), 2 * (p - 1) * n);
        check(C::Alltoall, A::Scattered, p * (p - 1), p * (p - 1) * n);
        check(C::Barrier, A::Linear, 2 * (p - 1), 0);
        check(C::Barrier, A::Binomial, 2 * (p - 1), 0);
        check(C::Barrier, A::RecursiveDoubling, exchanges, 0);
        if p % 2 == 0 {
            check(C::Allgather, A::NeighborExchange, p * p / 2, p * (p - 1) * n);
        } else {
            check(C::Allgather, A::NeighborExchange, p * (p - 1), p * (p - 1) * n);
        }
        if rem == 0 {
            check(C::ReduceScatterBlock, A::Butterfly, p * log2, p * (p - 1) * n);
            check(C::Allgather, A::RecursiveDoubling, p * log2, p * (p - 1) * n);
            check(C::ReduceScatterBlock, A::RecursiveHalving, p * log2, p * (p - 1) * n);
            check(C::Scan, A::RecursiveDoubling, p * log2, p * log2 * n);
            check(C::Broadcast, A::ScatterDoubling, p - 1 + p * log2, (p - 1) * n + log2 * n / 2);
        }
    }
}

/// Catches rounds that wait for one another without need, and lost rounds.
#[test]
fn rounds_are_as_deep_as_the_algorithm() {
    use Algorithm as A;
    use Collective as C;
    for count in 1..=33u32 {
        let (p, depth) = (u64::from(count), u64::from(ceil_log2(count)));
        let time = |kind, algorithm| measure(kind, algorithm, count).2;
        assert_eq!(time(C::Barrier, A::Dissemination), depth);
        assert_eq!(time(C::Allgather, A::Bruck), depth);
        assert_eq!(time(C::Alltoall, A::Bruck), depth);
        // Beyond a power of two the members that do not fold are a round ahead of those that do.
        if count.is_power_of_two() {
            assert_eq!(time(C::Allreduce, A::RecursiveDoubling), depth);
            assert_eq!(time(C::Allreduce, A::Rabenseifner), 2 * depth);
        }
        assert_eq!(time(C::Allreduce, A::Ring), 2 * (p - 1));
        assert_eq!(time(C::Alltoall, A::Pairwise), p - 1);
        assert_eq!(time(C::Broadcast, A::Chain), p - 1);
        assert_eq!(time(C::Broadcast, A::BinaryTree), u64::from(count.ilog2()));
        // The digits to the base 4 that are not 0.
        let digits = |v: u32| (0..16).filter(|digit| v >> (2 * digit) & 3 != 0).count() as u64;
        assert_eq!(time(C::Broadcast, A::Knomial), (0..count).map(digits).max().unwrap());
        assert_eq!(time(C::Allgather, A::NeighborExchange), if p % 2 == 0 { p / 2 } else { p - 1 });
        assert_eq!(time(C::Alltoall, A::Linear), u64::from(p > 1), "nobody waits for anybody");
        assert_eq!(time(C::Alltoall, A::Scattered), (p - 1).div_ceil(32));
        assert_eq!(time(C::Barrier, A::Linear), 2 * u64::from(p > 1));
        // Sends cost nothing here: the longest path in the tree decides, not the number of children.
        let longest = (0..count).map(u32::count_ones).max().unwrap();
        assert_eq!(time(C::Broadcast, A::Binomial), u64::from(longest));
    }
}

/// An allreduce by recursive doubling costs what TR-488 §6.1.3 says: the call, a temporary buffer, a copy
/// into it, a sendrecv and a reduction per step, a copy out of it. Catches a step that costs nothing, a call
/// that is paid twice, or a copy too many.
#[test]
fn recursive_doubling_spends_what_the_paper_lists() {
    let gigabyte = Some(weft_units::BitRate::from_gigabits(8)); // 1000 ps per byte
    let ps = weft_units::Span::from_ps;
    let protocol = Protocol {
        collective_call: ps(1),
        send_call: ps(10),
        receive_call: ps(100),
        wait_call: ps(1_000),
        receive_message: ps(10_000),
        temporary_buffer: ps(100_000),
        sendrecv_call: ps(1_000_000),
        copy_call: ps(10_000_000),
        reduce_call: ps(100_000_000),
        memory_copy_rate: gigabyte,
        reduction_rate: Some(weft_units::BitRate::from_gigabits(4)),
        ..Protocol::zero()
    };
    let trial = |kind, algorithm| Trial { kind, algorithm, root: 0, size: BLOCK, element: 4, seed: 0 };
    let delay = Delays::Fixed(10_000_000_000);
    let allreduce = trial(Collective::Allreduce, Algorithm::RecursiveDoubling);
    let outcome = run_trials(&[allreduce], &Setting::world(8, protocol.clone(), delay));
    let (copy, reduction) = (10_000_000 + BLOCK * 1000, 100_000_000 + BLOCK * 2000);
    let step = 1_000_000 + 10 + 100 + 1_000 + 10_000 + reduction;
    assert_eq!(outcome.spent, [1 + 100_000 + copy + 3 * step + copy; 8]);
    // A broadcast neither reduces nor exchanges: of the members of two, one sends and the other receives.
    let broadcast = trial(Collective::Broadcast, Algorithm::Binomial);
    let outcome = run_trials(&[broadcast], &Setting::world(2, protocol, delay));
    assert_eq!(outcome.spent, [1 + 10 + 1_000, 1 + 100 + 1_000 + 10_000]);
}
