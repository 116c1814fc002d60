//! Every algorithm of every collective: the right data everywhere, exactly once.

use super::data_flow::{DataFlow, DataFlows};
use super::network::{Delays, MAX_ACCELERATED_RANKS, Network, Outcome, place, splitmix};
use crate::algorithms::CollectiveSize;
use crate::collective::member_part::{MemberPart, MemberPlace};
use crate::collective::non_overlapping::stages;
use crate::collective::registry::neighbours;
use crate::{
    Algorithm, AlgorithmTable, COLLECTIVE_NAMES, ClearToSend, Hierarchy, Protocol, Rendezvous, Rule,
    SynchronousSends,
};
use proptest::prelude::*;
use weft_trace::op::{Collective, CollectiveSizes, CommId, Op, RankRange, RequestId};
use weft_units::{Bytes, RankId};

/// A collective to be run.
#[derive(Clone, Debug)]
pub struct Trial {
    pub kind: Collective,
    pub algorithm: Algorithm,
    pub root: u32,
    /// Bytes of a vector or block; scale of the counts.
    pub size: u64,
    pub element: u32,
    /// Seed of the counts.
    pub seed: u64,
}

/// The sizes that member `me` of `members` gives and takes.
pub fn sizes(trial: &Trial, members: u32, me: u32) -> CollectiveSizes {
    // What member i gives member j, where that differs between pairs.
    let pair = |i: u32, j: u32| splitmix(trial.seed ^ u64::from(i << 8 | j)) % (trial.size + 1);
    let counts = |count: &dyn Fn(u32) -> u64| (0..members).map(count).collect::<Vec<u64>>();
    let (mut send_counts, mut receive_counts) = (vec![], vec![]);
    let (mut send, mut receive) = (trial.size, trial.size);
    match trial.kind {
        Collective::Barrier => (send, receive) = (0, 0),
        Collective::Gatherv => {
            send = pair(me, 0);
            if me == trial.root {
                receive_counts = counts(&|i| pair(i, 0));
            }
        }
        Collective::Scatterv => {
            receive = pair(0, me);
            if me == trial.root {
                send_counts = counts(&|j| pair(0, j));
            }
        }
        Collective::Allgatherv | Collective::ReduceScatter => {
            receive_counts = counts(&|i| pair(i, 0) / 8 * u64::from(trial.element));
            send = receive_counts.iter().sum();
        }
        Collective::ReduceScatterBlock => send = trial.size * u64::from(members),
        Collective::NeighborAllgather
        | Collective::NeighborAllgatherv
        | Collective::NeighborAlltoall
        | Collective::NeighborAlltoallv => {
            // Everybody has those as neighbours whose number differs by one or four.
            let near = |i: u32, j: u32| matches!(i.abs_diff(j), 1 | 4);
            send_counts = counts(&|j| if near(me, j) { pair(me, j) } else { 0 });
            receive_counts = counts(&|i| if near(i, me) { pair(i, me) } else { 0 });
        }
        Collective::Alltoallv => {
            send_counts = counts(&|j| pair(me, j));
            receive_counts = counts(&|i| pair(i, me));
        }
        // Only one side of these is significant away from the root.
        Collective::Gather if me != trial.root => receive = 0,
        Collective::Scatter if me != trial.root => send = 0,
        _ => {}
    }
    let element = trial.element;
    CollectiveSizes {
        send: Bytes::new(send),
        receive: Bytes::new(receive),
        send_counts,
        receive_counts,
        element,
        ..CollectiveSizes::default()
    }
}

/// The communicator, the machine and the manner in which trials are run.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The number of members.
    pub members: u32,
    /// The place of the communicator in the world, see [`Setting::communicator`].
    pub shape: u32,
    /// Whether the trials are run one after the other, and not all at once.
    pub blocking: bool,
    pub protocol: Protocol,
    pub delays: Delays,
    /// Whether every process is saved and loaded before every event.
    pub reloads: bool,
}

impl Setting {
    /// Blocking trials on the world of `members` ranks.
    pub fn world(members: u32, protocol: Protocol, delays: Delays) -> Setting {
        Setting { members, shape: 0, blocking: true, protocol, delays, reloads: false }
    }

    /// The communicator: the world, or members that are spread over it in several ways.
    fn communicator(&self) -> (CommId, Vec<RankRange>) {
        let members = self.members;
        let range = |first, stride, count| RankRange { first, stride, count };
        match self.shape {
            0 => (CommId::WORLD, vec![range(0, 1, members)]),
            1 => (CommId(9), vec![range(members, -1, members)]),
            2 => (CommId(9), vec![range(1, 2, members)]),
            _ => (CommId(9), vec![range(members, 1, members / 2), range(0, 1, members - members / 2)]),
        }
    }
}

/// Any setting with so many members, in which messages arrive in any order.
fn settings(members: impl Strategy<Value = u32>) -> impl Strategy<Value = Setting> {
    (members, 0u32..4, any::<bool>(), protocols(), any::<u64>()).prop_map(
        |(members, shape, blocking, protocol, seed)| {
            let delays = Delays::Random(seed);
            Setting { members, shape, blocking, protocol, delays, reloads: false }
        },
    )
}

/// Runs trials on one communicator, one after the other or all at once, and checks their data.
pub fn run_trials(trials: &[Trial], setting: &Setting) -> Outcome {
    let &Setting { members: count, shape, blocking, delays, reloads, .. } = setting;
    let (comm, ranges) = setting.communicator();
    let ranks: Vec<RankId> = ranges
        .iter()
        .flat_map(|range| {
            (0..range.count).map(|i| RankId((range.first as i32 + range.stride * i as i32) as u32))
        })
        .collect();
    let world = if shape == 0 { count } else { 2 * count + 1 };
    let mut programs = vec![vec![]; world as usize];
    for (me, rank) in ranks.iter().enumerate() {
        let program = &mut programs[rank.index()];
        if comm != CommId::WORLD {
            program.push(Op::Communicator { comm, members: ranges.clone() });
        }
        for (number, trial) in trials.iter().enumerate() {
            program.push(Op::Collective {
                kind: trial.kind,
                comm,
                root: Some(ranks[(trial.root % count) as usize]),
                sizes: sizes(trial, count, me as u32),
                request: (!blocking).then_some(RequestId(number as u32)),
                buffers: Default::default(),
            });
        }
        if !blocking {
            program.push(Op::Waitall { requests: (0..trials.len() as u32).map(RequestId).collect() });
        }
    }
    let mut protocol = setting.protocol.clone();
    // The last one preferred goes first: a collective that comes twice goes by one algorithm.
    for trial in trials {
        protocol.algorithms.prefer(Rule::always(trial.kind, trial.algorithm)).unwrap();
    }
    let flows = trials.iter().enumerate().map(|(number, trial)| {
        let member = |me| MemberPlace { members: count, me, root: trial.root };
        let parts = (0..count).map(|me| MemberPart::new(trial.kind, member(me), &sizes(trial, count, me)));
        let mut parts: Vec<MemberPart> = parts.collect::<Result<_, _>>().unwrap();
        let size = CollectiveSize { non_blocking: !blocking, ..parts[0].size() };
        let mut algorithm = protocol.algorithms.choose(trial.kind, size).unwrap();
        if algorithm == Algorithm::Accelerator && count > MAX_ACCELERATED_RANKS {
            algorithm = protocol.algorithms.choose_software(trial.kind, size).unwrap();
        }
        if algorithm == Algorithm::NonOverlapping {
            parts.iter_mut().for_each(|part| {
                part.stages = stages(part, |kind, size| protocol.algorithms.choose_stage(kind, size))
            });
        }
        if algorithm.follows_topology() {
            let hierarchy = Hierarchy::new(ranks.iter().copied().map(place));
            for part in &mut parts {
                let MemberPart { members, me, root, .. } = *part;
                part.neighbours = neighbours(algorithm, MemberPlace { members, me, root }, &hierarchy);
            }
        }
        DataFlow::new(ranks.iter().copied().zip(parts), comm, number as i32, algorithm)
    });
    let mut flows = DataFlows::new(flows.collect());
    let outcome = Network::new(&protocol, delays).reloading(reloads).observe(programs, &mut flows).unwrap();
    outcome.assert_clean();
    flows.assert_complete();
    outcome
}

/// Eager or rendezvous, buffered or not, acknowledged or not, written or read, with any table.
pub fn protocols() -> impl Strategy<Value = Protocol> {
    let table = prop::sample::select(AlgorithmTable::NAMES.to_vec());
    let limit = prop::sample::select(vec![0, 16, u64::MAX]);
    let sends = prop::sample::select(vec![SynchronousSends::Announced, SynchronousSends::Receipt]);
    (limit, any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), sends, table).prop_map(
        |(eager_limit, eager_buffered, rendezvous_ack, read, by_interface, synchronous_sends, table)| {
            Protocol {
                eager_limit: Bytes::new(eager_limit),
                eager_buffered,
                rendezvous_ack,
                synchronous_sends,
                rendezvous: if read { Rendezvous::Read } else { Rendezvous::Write },
                clear_to_send: if by_interface { ClearToSend::Interface } else { ClearToSend::Sender },
                algorithms: AlgorithmTable::named(table).unwrap(),
                ..Protocol::zero()
            }
        },
    )
}

/// All pairs of a collective and an algorithm that carries it out.
pub fn pairs() -> Vec<(Collective, Algorithm)> {
    let kinds = COLLECTIVE_NAMES.iter().map(|(kind, _)| *kind);
    kinds
        .flat_map(|kind| Algorithm::ALL.into_iter().filter(move |a| a.performs(kind)).map(move |a| (kind, a)))
        .collect()
}

fn trial(count: u32) -> impl Strategy<Value = Trial> {
    (prop::sample::select(pairs()), 0..count, 0u64..70, prop::sample::select(vec![1, 4, 8]), any::<u64>())
        .prop_map(|((kind, algorithm), root, size, element, seed)| Trial {
            kind,
            algorithm,
            root,
            size,
            element,
            seed,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Catches a schedule that loses, repeats or misplaces a byte, a rank that sends before it has
    /// received, and a message that nobody receives: on any number of members, for any root and size.
    #[test]
    fn every_algorithm_brings_the_right_data(setting in settings(1u32..=33), any in trial(33)) {
        let root = any.root % setting.members;
        for (kind, algorithm) in pairs() {
            run_trials(&[Trial { kind, algorithm, root, ..any }], &setting);
        }
    }

    /// Catches windows that overlap or leave members out: the others have at most one window.
    #[test]
    fn linear_algorithms_reach_everybody_in_several_windows(
        setting in settings(34u32..=63), root in 0u32..34, size in 0u64..9, seed in any::<u64>(),
    ) {
        let setting = Setting { shape: 0, blocking: true, ..setting };
        let several = [Algorithm::Linear, Algorithm::Scattered, Algorithm::NonOverlapping];
        for (kind, algorithm) in pairs().into_iter().filter(|(_, a)| several.contains(a)) {
            run_trials(&[Trial { kind, algorithm, root, size, element: 1, seed }], &setting);
        }
    }


    /// Catches messages of one collective that match in another of the same communicator.
    #[test]
    fn collectives_at_the_same_time_keep_apart(
        (setting, trials) in settings(1u32..12).prop_flat_map(|setting| {
            let trials = prop::collection::vec(trial(setting.members), 1..8);
            (Just(Setting { reloads: true, ..setting }), trials)
        }),
    ) {
        run_trials(&trials, &setting);
    }
}
