//! The allreduce accelerator through the whole interface and a real network.

use crate::rdma::machine::{Execution, Report, Run, begin_allreduce, parameters};
use crate::rdma::{agreed, reports, until};
use proptest::prelude::*;
use weft_engine::Progress;
use weft_fabric::{FaultParameters, OffTimes};
use weft_nic::Nic as _;
use weft_nic::allreduce::{AcceleratorError, AllreduceRequest, DataType, Operation};
use weft_units::{Bytes, EndpointId, Span, Time};

fn requests(members: impl IntoIterator<Item = u32>, bytes: u64) -> Vec<AllreduceRequest> {
    let members: Vec<EndpointId> = members.into_iter().map(EndpointId).collect();
    let request = |own| AllreduceRequest {
        group: 3,
        sequence: 9,
        members: members.clone(),
        own,
        bytes: Bytes::new(bytes),
        operation: Operation::Sum,
        data_type: DataType::Float,
        token: own,
        interface: 0,
        watch: true,
    };
    (0..members.len() as u32).map(request).collect()
}

fn run(requests: &[AllreduceRequest], threads: usize) -> (Run, Vec<Report>) {
    let execution = Execution { threads, seed: 1 };
    let mut run = begin_allreduce(requests, parameters(), execution, |_| FaultParameters::default());
    assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
    let reports = reports(&mut run);
    assert_eq!(agreed(&mut run), reports.len(), "every result is that of the documented order");
    (run, reports)
}

fn last(reports: &[Report]) -> Span {
    let times = reports.iter().map(|report| match report {
        Report::Reduced(at, ..) => *at - Time::ZERO,
        other => panic!("{other:?}"),
    });
    times.max().unwrap()
}

/// Catches members that are not told, and modules that wait for ever. Beyond start and finish, 256 bytes on
/// 16 ranks take what Fig. 10 has: to F1 and back over a link of the board, two exchanges between boards.
#[test]
fn sixteen_ranks_reduce() {
    let (whole, reports) = run(&requests(0..16, 256), 1);
    assert_eq!(reports.len(), 16);
    for (_, site) in whole.sites() {
        assert!(site.interfaces().all(|(_, interface)| interface.unfinished() == (0, 0)));
    }
    let network = last(&reports) - Span::from_us(2);
    assert!(network > Span::from_ns(2_500) && network < Span::from_us(4), "{network}");
    let (_, threaded) = run(&requests(0..16, 256), 3);
    assert_eq!(threaded, reports);
    let smaller = last(&run(&requests(0..4, 256), 1).1);
    assert!(smaller + Span::from_us(1) < last(&reports), "a board alone does without exchanges");
    assert!(last(&run(&requests(0..16, 1024), 1).1) > last(&reports) * 3, "an operation per 256 bytes");
}

/// Catches groups that the accelerator takes and never finishes.
#[test]
fn groups_beyond_its_limits_are_refused_by_name() {
    let (mut run, reports) = run(&requests(0..12, 256), 1);
    assert_eq!(reports, []);
    let refused: Vec<AcceleratorError> =
        run.outputs_mut().flat_map(|it| std::mem::take(&mut it.refused)).collect();
    assert_eq!(refused, vec![AcceleratorError::Unpaired { ranks: 12, boards: 3, board: 4 }; 12]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// On links that lose and damage packets every member has the result of the documented order, bit by bit.
    #[test]
    fn lossy_links_change_no_bit(
        levels in 0u32..3,
        bytes in 0u64..1200,
        (drop, corrupt) in (0u32..30_000, 0u32..30_000),
        seed in any::<u64>(),
    ) {
        let ranks = 4u32 << levels;
        let mut parameters = parameters();
        parameters.allreduce.as_mut().unwrap().reliability.repetitions = 100;
        let faults = FaultParameters { drop, corrupt, ..Default::default() };
        let (requests, execution) = (requests(0..ranks, bytes * 4), Execution { threads: 1, seed });
        let mut run = begin_allreduce(&requests, parameters, execution, |_| faults.clone());
        prop_assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
        let reports = reports(&mut run);
        prop_assert!(reports.iter().all(|report| matches!(report, Report::Reduced(..))), "{:?}", reports);
        prop_assert_eq!(reports.len() as u32, ranks);
        prop_assert_eq!(agreed(&mut run) as u32, ranks);
    }
}

/// Catches members that wait for ever when a link is dead.
#[test]
fn all_members_are_told_of_a_dead_link() {
    let off = FaultParameters { off: OffTimes::after(Time::ZERO + Span::from_us(1)), ..Default::default() };
    let execution = Execution { threads: 2, seed: 1 };
    let mut run = begin_allreduce(&requests(0..16, 256), parameters(), execution, |from| match from {
        weft_fabric::LinkEnd::Endpoint(EndpointId(6)) => off.clone(),
        _ => FaultParameters::default(),
    });
    assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
    let reports = reports(&mut run);
    let told = reports.iter().filter(|report| matches!(report, Report::Failed(..))).count();
    assert_eq!((told, reports.len()), (16, 16), "{reports:?}");
}
