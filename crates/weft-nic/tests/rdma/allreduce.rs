//! The allreduce accelerator through the whole interface and a real network.

use crate::machine::{Report, Run, begin_allreduce, parameters};
use crate::{reports, until};
use weft_engine::Progress;
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
    };
    (0..members.len() as u32).map(request).collect()
}

fn run(requests: &[AllreduceRequest], threads: usize) -> (Run, Vec<Report>) {
    let mut run = begin_allreduce(requests, parameters(), threads);
    assert_eq!(until(&mut run, Time::MAX), Progress::Dry);
    let reports = reports(&mut run);
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
