//! Where nothing costs anything, a replay takes as long as the longest dependent chain of the trace,
//! which `weft-trace` finds without any part of messaging.

use super::support::*;
use proptest::prelude::*;
use weft_formats::critical_chain::{Dependence, critical_chain};
use weft_trace::op::*;
use weft_units::{Bytes, RankId, Span};
use weft_workload::replay::ProgressRule;

/// A step of a program, in an order in which all could be carried out one after the other: so that
/// no program made of them can deadlock.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Compute { rank: u32, ps: u64 },
    Message { from: u32, to: u32, tag: i32, bytes: u64, mode: SendMode, wildcard: bool },
    Waitall { rank: u32 },
    Waitany { rank: u32, choice: usize },
    Wait { rank: u32, choice: usize },
    Everybody { kind: Collective, bytes: u64 },
}

const RANKS: u32 = 5;

fn mode(synchronous: bool) -> BoxedStrategy<SendMode> {
    let eager = prop_oneof![Just(SendMode::Standard), Just(SendMode::Buffered), Just(SendMode::Ready)];
    if synchronous { prop_oneof![eager, Just(SendMode::Synchronous)].boxed() } else { eager.boxed() }
}

pub fn step(synchronous: bool) -> impl Strategy<Value = Step> {
    let rank = || 0..RANKS;
    let kinds = prop_oneof![
        Just(Collective::Barrier),
        Just(Collective::Allreduce),
        Just(Collective::Allgather),
        Just(Collective::Alltoall),
    ];
    let wildcard = any::<bool>();
    let message = (rank(), rank(), 0..3, prop_oneof![0..9u64, 0..2000u64], mode(synchronous), wildcard);
    prop_oneof![
        4 => (rank(), 0..5_000_000u64).prop_map(|(rank, ps)| Step::Compute { rank, ps }),
        6 => message.prop_map(|(from, to, tag, bytes, mode, wildcard)| {
            Step::Message { from, to, tag, bytes, mode, wildcard }
        }),
        2 => rank().prop_map(|rank| Step::Waitall { rank }),
        1 => (rank(), any::<usize>()).prop_map(|(rank, choice)| Step::Waitany { rank, choice }),
        1 => (rank(), any::<usize>()).prop_map(|(rank, choice)| Step::Wait { rank, choice }),
        1 => (kinds, 1..3000u64).prop_map(|(kind, bytes)| Step::Everybody { kind, bytes }),
    ]
}

/// The programs of the steps: each rank waits for all that is left at its end.
pub fn programs(steps: &[Step]) -> Vec<Vec<Op>> {
    let mut ranks: Vec<Vec<Op>> = vec![vec![]; RANKS as usize];
    let mut pending: Vec<Vec<u32>> = vec![vec![]; RANKS as usize];
    let mut next = [0; RANKS as usize];
    let mut request = |rank: u32, pending: &mut Vec<Vec<u32>>| {
        next[rank as usize] += 1;
        pending[rank as usize].push(next[rank as usize]);
        next[rank as usize]
    };
    let waitall =
        |requests: &mut Vec<u32>| Op::Waitall { requests: requests.drain(..).map(RequestId).collect() };
    for &step in steps {
        match step {
            Step::Compute { rank, ps } => ranks[rank as usize].push(Op::Compute { span: Span::from_ps(ps) }),
            Step::Message { from, to, tag, bytes, mode, wildcard } => {
                let sent = request(from, &mut pending);
                let received = request(to, &mut pending);
                ranks[from as usize].push(in_mode(mode, send(to, tag, bytes, sent)));
                ranks[to as usize].push(if wildcard {
                    let (comm, bytes, request) = (CommId::WORLD, Bytes::new(bytes), RequestId(received));
                    Op::Irecv {
                        from: None,
                        tag: None,
                        comm,
                        bytes,
                        matched: Some((RankId(from), tag)),
                        request,
                        buffer: None,
                    }
                } else {
                    receive(from, tag, bytes, received)
                });
            }
            Step::Waitall { rank } => {
                let all = waitall(&mut pending[rank as usize]);
                ranks[rank as usize].push(all);
            }
            Step::Waitany { rank, choice } if !pending[rank as usize].is_empty() => {
                let pending = &mut pending[rank as usize];
                let completed = choice % pending.len();
                let requests = pending.iter().copied().map(RequestId).collect();
                pending.remove(completed);
                ranks[rank as usize].push(Op::Waitany { requests, completed: completed as u32 });
            }
            Step::Wait { rank, choice } if !pending[rank as usize].is_empty() => {
                let pending = &mut pending[rank as usize];
                let request = pending.remove(choice % pending.len());
                ranks[rank as usize].push(wait(request));
            }
            Step::Wait { .. } | Step::Waitany { .. } => {}
            Step::Everybody { kind, bytes } => {
                ranks.iter_mut().for_each(|ops| ops.push(collective(kind, bytes)));
            }
        }
    }
    for (ops, pending) in ranks.iter_mut().zip(&mut pending) {
        ops.push(waitall(pending));
    }
    ranks
}

fn check(steps: &[Step], progress: ProgressRule, per_host: u32) {
    let trace = trace_of(&programs(steps));
    weft_formats::validate(&trace).unwrap();
    let chain = critical_chain(&trace, Bytes::new(u64::MAX), Dependence::AllMembers).unwrap();
    let setup = Setup { per_host, ..Setup::zero(progress) };
    let outcome = setup.run(&[trace], None);
    outcome.assert_finished();
    for (rank, expected) in outcome.ranks.iter().zip(&chain.ranks) {
        assert_eq!(rank.computation, expected.computation);
        assert_eq!((rank.rank, rank.end), (rank.rank, expected.end));
        assert_eq!(rank.communication, Span::ZERO);
    }
    assert_eq!(outcome.run_time(), chain.run_time);
}

proptest! {
    /// Catches time that passes where none should, a message that is matched with the wrong receive, and
    /// a wait that ends too early or too late. Every rank ends exactly when the chain says.
    #[test]
    fn calls_that_make_progress_end_with_the_chain(
        steps in prop::collection::vec(step(false), 1..120), per_host in 1u32..4,
    ) {
        check(&steps, ProgressRule::Call, per_host);
    }

    /// Also for synchronous sends, which are over as soon as the receive is posted, whatever the
    /// receiver does then.
    #[test]
    fn background_progress_ends_with_the_chain(
        steps in prop::collection::vec(step(true), 1..120), per_host in 1u32..4,
    ) {
        check(&steps, ProgressRule::Background, per_host);
    }

    /// Catches state that is not saved: a run that is saved and resumed again and again ends the same
    /// as one that is not, where everything costs something.
    #[test]
    fn a_saved_run_ends_the_same(
        steps in prop::collection::vec(step(true), 1..60), per_host in 1u32..3, background: bool,
        every_ns in 100u64..20_000,
    ) {
        let progress = if background { ProgressRule::Background } else { ProgressRule::Call };
        let trace = trace_of(&programs(&steps));
        let setup = Setup { per_host, ..Setup::costly(progress) };
        let whole = setup.run(std::slice::from_ref(&trace), None);
        whole.assert_finished();
        let pieces = setup.run(&[trace], Some(Span::from_ns(every_ns)));
        prop_assert_eq!(whole.ranks, pieces.ranks);
        let messages = |outcome: &[weft_workload::replay::ReplayedMessage]| format!("{outcome:?}");
        prop_assert_eq!(messages(&whole.messages), messages(&pieces.messages));
    }
}
