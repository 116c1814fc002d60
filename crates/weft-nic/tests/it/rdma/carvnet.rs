//! RDMA of caRVnet's interface: times in closed form at zero load, descriptors that wait, contexts.

use super::machine::{Planned, begin, carvnet};
use super::{planned, reports, until};
use crate::rdma::machine::Report;
use weft_engine::Progress;
use weft_nic::host_port::HOST_PORT;
use weft_nic::iommu::IOMMU;
use weft_nic::rdma::{DESCRIPTOR_CHANNEL, RDMA_RECEIVE, RDMA_SEND, SOURCE_CONTEXT};
use weft_nic::{Block, Stage};
use weft_units::{Bytes, EndpointId, Span, Time};

/// The stages of the messages of endpoint 0 at `endpoint`, in their order.
fn stages(plan: Vec<Planned>, endpoint: u32) -> Vec<Stage> {
    let mut run = begin(&[plan], carvnet(), 1);
    assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
    let mut stages: Vec<_> = run.outputs_mut().flat_map(|it| std::mem::take(&mut it.stages)).collect();
    stages.retain(|stage| stage.endpoint.0 == endpoint && stage.source.0 == 0);
    stages.sort_by_key(|stage| (stage.message, stage.came, stage.ended));
    stages
}

fn deliveries(plan: Vec<Planned>) -> Vec<(Time, u64)> {
    let mut run = begin(&[plan], carvnet(), 1);
    assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
    let of = |report| match report {
        Report::Delivered(at, .., header) => Some((at, header)),
        _ => None,
    };
    reports(&mut run).into_iter().filter_map(of).collect()
}

/// D1.4 §8.2, Fig. 23, stage by stage: four stores and seven cycles of a core of 100 MHz, ten cycles of
/// 200 MHz to the first read, whose page is walked for, and the read over the port.
#[test]
fn the_source_of_a_write_takes_what_its_blocks_take() {
    let parameters = carvnet();
    let (core, logic) = (parameters.host_port.store_path().clock, parameters.host_port.clock);
    let found = stages(vec![Planned { watch: true, ..planned(1, 64) }], 0);
    let at = |span: Span| Time::ZERO + span;
    let stored = core.cycles(11);
    let allocated = stored + logic.cycles(10);
    let translated = allocated + parameters.iommu.walk;
    let read = translated + parameters.host_port.round_trip + logic.cycles(1);
    let expected = [
        (HOST_PORT, Span::ZERO, stored),
        (SOURCE_CONTEXT, stored, allocated),
        (RDMA_SEND, allocated, allocated),
        (IOMMU, allocated, translated),
        (Block::MEMORY, translated, read),
        (RDMA_SEND, read, read),
    ];
    let found: Vec<_> = found.iter().map(|stage| (stage.block, stage.came, stage.ended)).collect();
    assert_eq!(found, expected.map(|(block, came, ended)| (block, at(came), at(ended))));
}

/// The same at the destination: two cycles, the walk of its page, a word of data and one of the notification
/// over the port, and the poll.
#[test]
fn the_destination_of_a_write_takes_what_its_blocks_take() {
    let parameters = carvnet();
    let logic = parameters.host_port.clock;
    let found = stages(vec![Planned { watch: true, ..planned(1, 64) }], 1);
    let [received, polled] = &found[..] else { panic!("{found:?}") };
    let translated = received.came + logic.cycles(2) + parameters.iommu.walk;
    // The word of data has left while it came; that of the notification follows it.
    let word = Time::from_ps(translated.as_ps() - logic.cycles(1).as_ps());
    let issued = logic.later_edge(logic.edge_at_or_after(word), 2);
    let in_memory = issued + parameters.host_port.one_way();
    assert_eq!((received.block, received.ended), (RDMA_RECEIVE, in_memory));
    assert_eq!((polled.block, polled.came), (Block::POLLING, received.ended));
    assert_eq!(polled.ended, received.ended + parameters.rdma.receive.poll);
}

/// D1.4 §8.2, item 5: a packet per four cycles of the core, the stores of its descriptor. Catches contexts,
/// acknowledgements and engines that do not keep up. Packets are short, as the links are those of ExaNeSt.
#[test]
fn a_packet_per_four_cycles_of_the_core() {
    let deliveries = deliveries(vec![planned(1, 16); 200]);
    assert_eq!(deliveries.len(), 200);
    let core = carvnet().host_port.store_path().clock;
    // The first ones wait for the walks of their pages, and the next ones with them.
    let steady = &deliveries[50..];
    for (number, (at, _)) in (0..).zip(steady) {
        // Switches work at edges of a clock of their own.
        let cycles = core.cycles(4 * number);
        assert!((*at - steady[0].0).as_ps().abs_diff(cycles.as_ps()) <= 10_000, "{number}: {at:?}");
    }
}

/// Catches a descriptor that is lost or overtakes another of its process while all contexts are taken and
/// channels in SRAM are full, and a process that is passed over.
#[test]
fn processes_take_turns_for_few_contexts() {
    let mut parameters = carvnet();
    let send = &mut parameters.rdma.send;
    send.contexts.as_mut().unwrap().count = 2;
    send.write_channels = 3;
    let post = |interface, watch| Planned { interface, watch, ..planned(1, 4096) };
    // One process has posted all of its own before the other begins.
    let plan = [vec![post(0, true); 12], vec![post(1, true); 12]].concat();
    let mut run = begin(&[plan], parameters, 1);
    assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
    let stages: Vec<_> = run.outputs_mut().flat_map(|it| std::mem::take(&mut it.stages)).collect();
    let at_source = |stage: &&Stage| stage.endpoint.0 == 0;
    let waits = |block: Block| stages.iter().filter(at_source).filter(move |stage| stage.block == block);
    assert!(waits(DESCRIPTOR_CHANNEL).any(|stage| stage.ended > stage.came));
    assert_eq!(waits(SOURCE_CONTEXT).count(), 24, "each has had a context once");
    let order: Vec<u64> = reports(&mut run)
        .into_iter()
        .filter_map(|report| match report {
            Report::Delivered(.., header) => Some(header),
            _ => None,
        })
        .collect();
    let of = |interface: u64| order.iter().filter(move |header| **header & 0xFFFF == interface);
    for interface in [0, 1] {
        assert!(of(interface).is_sorted() && of(interface).count() == 12, "{order:?}");
    }
    // The channel of the second process is served in turn from its first descriptor on.
    let first = order.iter().position(|header| header & 0xFFFF == 1).unwrap();
    assert!(order[first..first + 8].iter().filter(|header| **header & 0xFFFF == 1).count() >= 3, "{order:?}");
    for (_, site) in run.sites() {
        for (_, interface) in site.interfaces() {
            assert_eq!(weft_nic::Nic::unfinished(interface), (0, 0));
        }
    }
}

/// Catches a stage that overlaps another or leaves a gap, also where a process waits for room.
#[test]
fn stages_are_a_chain_for_every_descriptor() {
    let post = Planned { watch: true, ..planned(1, 300) };
    let mut parameters = carvnet();
    parameters.rdma.send.contexts.as_mut().unwrap().count = 1;
    parameters.rdma.send.write_channels = 1;
    let mut run = begin(&[vec![post; 5]], parameters, 1);
    until(&mut run, Time::NEVER);
    let mut stages: Vec<_> = run.outputs_mut().flat_map(|it| std::mem::take(&mut it.stages)).collect();
    stages.retain(|stage| stage.endpoint == EndpointId(0));
    stages.sort_by_key(|stage| (stage.message, stage.came, stage.ended));
    for message in 0..5 {
        let of_message: Vec<_> = stages.iter().filter(|stage| stage.message == message).collect();
        assert_eq!(of_message[0].came, Time::ZERO);
        // The first cell and the last one go side by side behind the context.
        let context = of_message.iter().position(|stage| stage.block == SOURCE_CONTEXT).unwrap();
        for pair in of_message[..=context].windows(2) {
            assert_eq!(pair[0].ended, pair[1].came, "{pair:?}");
        }
    }
    assert!(stages.iter().any(|stage| stage.block == DESCRIPTOR_CHANNEL && stage.began > stage.came));
    assert_eq!(stages.iter().filter(|stage| stage.block == HOST_PORT).count(), 5);
    assert_eq!(carvnet().rdma.send.descriptor, Bytes::new(32));
}
