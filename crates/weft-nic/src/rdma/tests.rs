//! Properties that the engine keeps, whatever the network does.

mod world;

use super::*;
use crate::gvas::Pdid;
use crate::host_port::HostPort;
use crate::iommu::{FaultModel, Iommu};
use crate::memory::{MemoryChannel, MemoryParameters};
use crate::segmentation::Cut;
use proptest::prelude::*;
use weft_fabric::{Addressing, HeaderBits, MessagePart, Packet};
use weft_units::{Address, BitRate, Bytes, Span};
use world::{Asked, DOMAIN, Happening, LATENCY, MEMORY, Trouble, World, Write, iommu, parameters};

/// The engine's cadence: 16 words, header, footer and 5 cycles for each 256 bytes, whatever the firmware
/// does meanwhile, with two blocks outstanding; with one the firmware is seen.
#[test]
fn a_long_transfer_runs_at_the_cells_cadence() {
    let gigabits = |outstanding_blocks| {
        let mut parameters = parameters();
        parameters.send.outstanding_blocks = outstanding_blocks;
        let mut world = World::new(2, parameters, Trouble::default(), 1);
        let bytes = 200 << 10;
        world.post(Write { at: Time::ZERO, page: 0, from: 0, to: 1, bytes, place: (0, 0) });
        world.run();
        world.check_all_arrived();
        bytes as f64 * 8e3 / (world.notified[&(0, 0)][0].as_ps() - 2_000_000) as f64
    };
    let cadence = 2048.0 / (23.0 / 0.150);
    assert!((gigabits(2) / cadence - 1.0).abs() < 0.01, "{} Gb/s", gigabits(2));
    assert!(gigabits(1) < 11.0, "{} Gb/s", gigabits(1));
}

/// The cost of a small write, stage by stage: a chain without gaps up to the link and from it on.
#[test]
fn the_stages_of_a_write_are_a_chain() {
    let mut world = World::new(2, parameters(), Trouble::default(), 1);
    let at = Time::ZERO + Span::from_ns(5);
    world.post(Write { at, page: 0, from: 0, to: 1, bytes: 64, place: (0, 0) });
    world.run();
    let sent = world.stages.iter().filter(|stage| stage.source.is_none());
    let mut at = Time::ZERO + Span::from_ns(5);
    for stage in sent {
        assert_eq!(stage.came, at, "{stage:?}");
        assert!(stage.began >= stage.came && stage.ended >= stage.began);
        at = stage.ended;
    }
    let wire = BitRate::from_bits_per_second(19_200_000_000).span(Bytes::new(96));
    let received = world.stages.iter().find(|stage| stage.source.is_some()).unwrap();
    assert_eq!(received.came, at + wire + LATENCY);
    assert_eq!(received.ended, world.notified[&(0, 0)][0]);
}

/// Catches a channel that starves: two transfers that share the engine end at about the same time.
#[test]
fn channels_take_turns_cell_by_cell() {
    let mut parameters = parameters();
    parameters.segmentation = SegmentationParameters::Hardware { clock: parameters.send.clock, cycles: 1 };
    let mut world = World::new(3, parameters, Trouble::default(), 1);
    world.post(Write { at: Time::ZERO, page: 0, from: 0, to: 1, bytes: 65536, place: (0, 0) });
    world.post(Write { at: Time::ZERO, page: 1, from: 0, to: 2, bytes: 65536, place: (0, 0) });
    world.run();
    let ends = [0, 1].map(|message| world.notified[&(0, message)][0].as_ps());
    // The first has filled the cell buffers before the second comes.
    assert!(ends[0].abs_diff(ends[1]) < 2_000_000, "{ends:?}");
}

/// Catches a channel that is read on while others have cells, where several buffers are free.
#[test]
fn free_buffers_are_filled_from_all_channels() {
    let (parameters, port, mut send) = (parameters().send, world::port(), SendUnit::default());
    for page in 0..3 {
        let descriptor =
            world::descriptor(Write { at: Time::ZERO, page, from: 0, to: 1, bytes: 600, place: (0, 0) });
        let (id, _) = send.channels.post(page, ChannelKind::Write, &descriptor, &parameters).unwrap();
        send.channels.start(id, Time::ZERO, &parameters);
    }
    let mut path = MemoryPath {
        port: &mut Default::default(),
        port_parameters: &port,
        memory: &mut Default::default(),
        memory_parameters: &MemoryParameters::new(BitRate::from_gigabits(130)).unwrap(),
        iommu: &mut Default::default(),
        iommu_parameters: &iommu(FaultModel::Off),
    };
    assert!(send.fetch(Time::ZERO, &parameters, &mut path).is_none());
    let reliability = world::parameters().reliability;
    let cells = std::iter::from_fn(|| send.take(send.next_cell(), &parameters, &reliability));
    let cells = cells.map(|sent| (parameters.place(sent.cell.id.channel).0, sent.cell.id.index));
    // There are eight buffers, and three cells of each.
    let turns = [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1), (0, 2), (1, 2)];
    assert_eq!(cells.collect::<Vec<_>>(), turns);
}

/// A receive unit with the way to its memory.
#[derive(Default)]
struct Receiver {
    unit: ReceiveUnit,
    port: HostPort,
    memory: MemoryChannel,
    iommu: Iommu,
}

impl Receiver {
    /// Cell `index` of block `block` of a transfer of 1 KB, whose blocks have two cells, comes at `us`.
    fn take(&mut self, block: u32, index: u8, us: u64, damaged: bool) -> Option<Receipt> {
        let (parameters, port, iommu) = (parameters().receive, world::port(), iommu(FaultModel::Off));
        let cut = Cut::new(Bytes::new(512), Bytes::new(256)).unwrap();
        let location = Location { space: 0, address: Address::new(0) };
        let (bytes, domain) = (Bytes::new(1024), DOMAIN);
        let transfer =
            TransferHeader { destination: location, bytes, domain, first: 0, message: 0, watch: false };
        let channel = ChannelId(0);
        let id = CellId { channel, transaction: block, index, last: index == 1, attempt: 0 };
        let tail = Time::ZERO + Span::from_us(us);
        let source = EndpointId(1);
        let arrival = Arrival { source, id, transfer: &transfer, owner: Some(domain), tail };
        let mut path = MemoryPath {
            port: &mut self.port,
            port_parameters: &port,
            memory: &mut self.memory,
            memory_parameters: &MemoryParameters::new(BitRate::from_gigabits(130)).unwrap(),
            iommu: &mut self.iommu,
            iommu_parameters: &iommu,
        };
        if damaged {
            return self.unit.damaged(&arrival, &cut, &parameters, &mut path).then_some(Receipt::Again);
        }
        Some(self.unit.cell(&arrival, &cut, &parameters, &mut path))
    }

    /// Words that it has written.
    fn words(&self) -> u64 {
        words_written(&self.port)
    }
}

/// Words that a port has carried to memory: three cycles are 20 ns.
fn words_written(port: &HostPort) -> u64 {
    (port.worked()[2].1.as_ps() * 3 + 10_000) / 20_000
}

/// Catches a damaged cell that writes nothing, and a block that is acknowledged with the bytes of one.
#[test]
fn a_damaged_cell_leaves_what_it_has_written_over_missing() {
    let mut receiver = Receiver::default();
    assert!(matches!(receiver.take(0, 0, 1, false), Some(Receipt::Written(_))));
    assert!(receiver.take(0, 0, 2, true).is_some());
    assert_eq!(receiver.words(), 32);
    assert!(matches!(receiver.take(0, 1, 3, false), Some(Receipt::Written(_))), "the first is missing again");
    assert!(matches!(receiver.take(0, 0, 4, false), Some(Receipt::Block { notified: None, .. })));
    // Its block has come: the words are written all the same.
    let before = receiver.words();
    assert!(receiver.take(0, 1, 5, true).is_none());
    assert_eq!(receiver.take(0, 1, 6, false), Some(Receipt::Duplicate { acknowledge: true }));
    assert_eq!(receiver.words(), before + 32);
}

/// Catches blocks without a notification of their own, and one of caRVnet, which has none.
#[test]
fn each_block_is_notified() {
    for (contexts, notifications) in [(None, 3), (Some(SourceContexts { count: 4, allocation: 10 }), 1)] {
        let mut parameters = parameters();
        parameters.send.contexts = contexts;
        let mut world = World::new(2, parameters, Trouble::default(), 1);
        world.post(Write { at: Time::ZERO, page: 0, from: 0, to: 1, bytes: 40_000, place: (0, 0) });
        world.run();
        world.check_all_arrived();
        assert_eq!(words_written(&world.nodes[1].port), 2500 + notifications);
    }
}

/// Catches transfers that are lost instead of waiting where all channels of a page are in use.
#[test]
fn posts_wait_for_a_channel_of_their_page() {
    let mut parameters = parameters();
    parameters.send.write_channels = 2;
    let mut world = World::new(2, parameters, Trouble::default(), 1);
    for post in 0..7 {
        world.post(Write { at: Time::ZERO, page: 3, from: 0, to: 1, bytes: 1000, place: (0, post * 1000) });
    }
    world.run();
    world.check_all_arrived();
    let order: Vec<Time> = (0..7).map(|message| world.notified[&(0, message)][0]).collect();
    assert!(order.is_sorted(), "{order:?}");
}

/// Catches a sender that is never told, and one that goes on for ever.
#[test]
fn the_sender_is_told_of_a_dead_peer() {
    let mut parameters = parameters();
    parameters.reliability.repetitions = 3;
    let trouble = Trouble { dead: Some(1), ..Trouble::default() };
    let mut world = World::new(2, parameters, trouble, 1);
    world.post(Write { at: Time::ZERO, page: 0, from: 0, to: 1, bytes: 40_000, place: (0, 0) });
    world.run();
    assert_eq!(world.ended[&(0, 0)].len(), 1);
    assert_eq!(world.ended[&(0, 0)][0].1, Err(TransferError::TimedOut));
    assert!(world.notified.is_empty());
    // Two blocks of 64 cells, four times each.
    assert_eq!(world.cells, 4 * 128);
    assert_eq!(world.nodes[0].rdma.under_way(), 0, "the channel is free again");
}

/// A sender whose cells nobody answers, but for what a test does.
#[derive(Default)]
struct Sender {
    rdma: Rdma,
    port: HostPort,
    memory: MemoryChannel,
    iommu: Iommu,
    asked: Asked,
    /// The times at which cells have gone.
    gone: Vec<Time>,
}

impl Sender {
    fn call<R>(
        &mut self,
        now: Time,
        call: impl FnOnce(&mut Rdma, &mut MemoryPath<'_>, &mut EngineContext<'_, Asked>) -> R,
    ) -> R {
        let (parameters, port, iommu) = (parameters(), world::port(), iommu(FaultModel::Off));
        let mut path = MemoryPath {
            port: &mut self.port,
            port_parameters: &port,
            memory: &mut self.memory,
            memory_parameters: &MemoryParameters::new(BitRate::from_gigabits(130)).unwrap(),
            iommu: &mut self.iommu,
            iommu_parameters: &iommu,
        };
        let mut context = EngineContext { now, parameters: &parameters, callbacks: &mut self.asked };
        call(&mut self.rdma, &mut path, &mut context)
    }

    fn post(&mut self, at: Time) {
        let write = Write { at, page: 0, from: 0, to: 1, bytes: 256, place: (0, 0) };
        self.call(at, |rdma, _, context| rdma.post(0, ChannelKind::Write, world::descriptor(write), context));
    }

    /// Goes on up to a time.
    fn run(&mut self, until: Time) {
        loop {
            let wakes = self.asked.wakes.iter().enumerate();
            let wake = wakes.min_by_key(|(_, (at, _))| *at).map(|(place, (at, _))| (place, *at));
            let cell = self.rdma.next_outgoing();
            match wake {
                Some((place, at)) if at < cell && at <= until => {
                    let (_, task) = self.asked.wakes.swap_remove(place);
                    self.call(at, |rdma, path, context| rdma.wake(task, path, context));
                }
                _ if cell <= until => {
                    self.call(cell, |rdma, path, context| {
                        rdma.take_outgoing(context);
                        rdma.fetch(path, context);
                    });
                    self.gone.push(cell);
                }
                _ => return,
            }
        }
    }
}

/// Catches a damaged cell of a transfer that is over which does not take its way to memory, or is answered.
#[test]
fn a_damaged_cell_that_comes_late_is_written_and_not_answered() {
    for damaged in [false, true] {
        let mut node = Sender::default();
        let id = CellId { channel: ChannelId(0), transaction: 0, index: 0, last: true, attempt: 1 };
        let (tail, bytes) = (Time::ZERO + Span::from_us(1), Bytes::new(256));
        let late = LateCell { source: EndpointId(1), message: 3, id, bytes, tail, damaged };
        node.call(tail, |rdma, path, _| rdma.late_cell(late, path));
        assert_eq!(words_written(&node.port), 16);
        assert_eq!(node.rdma.replies.len(), usize::from(!damaged));
    }
}

/// Catches a block that is sent again only when the timer of an earlier one fires: that had waited longer.
#[test]
fn a_block_is_sent_again_when_its_own_time_is_up() {
    let us = |us| Time::ZERO + Span::from_us(us);
    let mut sender = Sender::default();
    sender.post(us(0));
    sender.run(us(60));
    // It was sent again after 50 us, and its second wait is of 100 us; but now it is acknowledged.
    assert_eq!(sender.gone.len(), 2);
    let id = CellId { channel: ChannelId(0), transaction: 0, index: 0, last: true, attempt: 1 };
    sender.call(us(60), |rdma, _, context| rdma.answer(id, Answer::Ack, context));
    sender.run(us(70));
    sender.post(us(70));
    sender.run(us(140));
    assert_eq!(sender.gone.len(), 4);
    let waited = sender.gone[3] - sender.gone[2];
    assert!((Span::from_us(52)..Span::from_us(53)).contains(&waited), "{waited}");
    // The earlier one's timer fires in vain.
    sender.run(us(170));
    assert_eq!((sender.gone.len(), sender.asked.wakes.len()), (4, 1));
}

/// Catches memory that is changed for a foreign domain or beyond all addresses, and a sender that is not told
/// so.
#[test]
fn a_foreign_domain_and_an_address_of_nobody_change_nothing() {
    let changes: [fn(&mut Descriptor); 2] =
        [|of| of.domain = Pdid(8), |of| of.destination.address = Address::new((1 << 39) - 39_999)];
    for change in changes {
        let mut world = World::new(2, parameters(), Trouble::default(), 1);
        world.post(Write { at: Time::ZERO, page: 0, from: 0, to: 1, bytes: 40_000, place: (0, 0) });
        let Some((_, Happening::Post(_, _, descriptor))) = world.agenda.values_mut().next() else { panic!() };
        change(descriptor);
        let before = world.nodes[1].bytes.clone();
        world.run();
        assert_eq!(world.ended[&(0, 0)][0].1, Err(TransferError::Protection));
        assert!(world.notified.is_empty() && world.nodes[1].bytes == before);
    }
}

/// Catches page faults that are not repaired by the replay of blocks, at either side.
#[test]
fn faulting_pages_are_replayed() {
    let mut world = World::new(2, parameters(), Trouble::default(), 1);
    world.faults = iommu(FaultModel::FirstTouch);
    world.post(Write { at: Time::ZERO, page: 0, from: 0, to: 1, bytes: 40_000, place: (100, 4000) });
    world.run();
    world.check_all_arrived();
    let faults = world.nodes.iter().map(|node| node.iommu.misses_and_faults().1);
    assert_eq!(faults.collect::<Vec<_>>(), [10, 11], "each page once, on both sides");
    let first = world.now;
    world.post(Write { at: first, page: 0, from: 0, to: 1, bytes: 40_000, place: (100, 4000) });
    world.run();
    assert!(world.now - first < first - Time::ZERO, "what was touched does not fault again");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever is lost, doubled, reordered, faults, or finds no context or channel: every transfer
    /// arrives once and whole, its notification not before its data, and its sender is told.
    #[test]
    fn everything_arrives_once_and_whole(
        posts in prop::collection::vec((0u64..300, 0u32..2, 0u32..3, 0u32..3, 0u64..40_000), 1..12),
        (lost, doubled, jitter_ns) in (0u8..60, 0u8..60, 0u64..3_000),
        (contexts, channels, outstanding_blocks, dynamic) in (
            1u32..5, 1u32..3, 1u32..4, prop::option::of(1u32..4)),
        (faulting, firmware, seed) in (any::<bool>(), any::<bool>(), any::<u64>()),
    ) {
        let mut parameters = parameters();
        parameters.receive.contexts = contexts;
        parameters.send.write_channels = channels;
        parameters.send.contexts = dynamic.map(|count| SourceContexts { count, allocation: 10 });
        parameters.send.outstanding_blocks = outstanding_blocks;
        // Small blocks, so that they come through: of 64 cells nearly every one would lose some.
        parameters.send.cut = Cut::new(Bytes::new(2048), Bytes::new(256)).unwrap();
        if !firmware {
            parameters.segmentation =
                SegmentationParameters::Hardware { clock: parameters.send.clock, cycles: 1 };
        }
        let faults = if faulting { FaultModel::FirstTouch } else { FaultModel::Off };
        let trouble = Trouble { lost, doubled, jitter_ns, dead: None };
        let mut world = World::new(3, parameters, trouble, seed);
        world.faults = iommu(faults);
        for (index, (us, page, from, to, bytes)) in posts.into_iter().enumerate() {
            // Sources in the lower half of memory, destinations apart from each other in the upper.
            let place = (page as u64 * 50_000, (MEMORY / 2) as u64 + index as u64 * 10_000);
            let bytes = bytes.min(10_000);
            world.post(Write { at: Time::ZERO + Span::from_us(us), page, from, to, bytes, place });
        }
        world.run();
        world.check_all_arrived();
    }
}

/// Catches a check of a request that is left out or comes in another order, and a channel that counts as free
/// while it has a transfer: each line of the drawing of `requests.rs`.
#[test]
fn a_request_is_judged_line_by_line() {
    use crate::mailbox::{Envelope, Refusal};
    let send = SendParameters { pages: 2, read_channels: 1, ..parameters().send };
    let mut rdma = Rdma::default();
    let judge = |rdma: &Rdma, interface, domain, damaged| {
        let request = Envelope { interface, domain: Pdid(domain), damaged };
        rdma.judge(&request, Pdid(7), &send)
    };
    assert_eq!(judge(&rdma, 1, 7, false), Ok(()));
    let location = Location { space: 1, address: Address::new(0) };
    let descriptor = Descriptor {
        source: location,
        to: EndpointId(1),
        destination: location,
        bytes: Bytes::new(64),
        domain: Pdid(7),
        message: 0,
        posted: Time::ZERO,
        token: None,
        watch: false,
        class: ClassTag::default(),
    };
    let channels = &mut rdma.send.channels;
    channels.post(1, ChannelKind::Write, &descriptor, &send).unwrap();
    let (channel, _) = channels.post(1, ChannelKind::Read, &descriptor, &send).unwrap();
    assert_eq!(judge(&rdma, 1, 7, false), Err(Refusal::Full));
    // A request may have more than one fault: the first line of the drawing tells.
    assert_eq!(judge(&rdma, 1, 8, false), Err(Refusal::Domain));
    assert_eq!(judge(&rdma, 2, 8, false), Err(Refusal::Interface));
    assert_eq!(judge(&rdma, 2, 8, true), Err(Refusal::Damaged));
    assert_eq!(judge(&rdma, 0, 7, false), Ok(()), "another page");
    rdma.send.channels.start(channel, Time::ZERO, &send);
    assert_eq!(judge(&rdma, 1, 7, false), Err(Refusal::Full));
    rdma.send.channels.finish(channel, &send).unwrap();
    assert_eq!(judge(&rdma, 1, 7, false), Ok(()));
    // One that waits for a channel comes first.
    rdma.descriptors.push((1, ChannelKind::Read), descriptor);
    assert_eq!(judge(&rdma, 1, 7, false), Err(Refusal::Full));
    // With contexts that is what a descriptor channel is for, as long as it has space.
    let contexts = Some(SourceContexts { count: 1, allocation: 10 });
    let send = SendParameters { contexts, read_channels: 2, ..send };
    let request = Envelope { interface: 1, domain: Pdid(7), damaged: false };
    assert_eq!(rdma.judge(&request, Pdid(7), &send), Ok(()));
    rdma.descriptors.push((1, ChannelKind::Read), descriptor);
    assert_eq!(rdma.judge(&request, Pdid(7), &send), Err(Refusal::Full));
}

/// Catches a verdict at another time than four cycles behind the edge of the footer, and a request whose
/// words are taken before the two of the answer ahead of it have gone.
#[test]
fn requests_have_their_verdicts_one_after_the_other() {
    let send = parameters().send;
    let clock = send.clock;
    let mut mailbox = RequestMailbox::default();
    let mut arrive = |message, tail| {
        let ends = Addressing { source: EndpointId(1), destination: EndpointId(2), message };
        let packet = Packet::new(ends, 32, HeaderBits::from_bits(0), MessagePart::Whole);
        mailbox.arrive(packet, tail, &send)
    };
    assert_eq!(arrive(5, clock.edge(10) + Span::from_ps(1)), clock.edge(15));
    assert_eq!(arrive(3, clock.edge(13)), clock.edge(25), "its four words come behind edge 17");
    assert_eq!(arrive(4, clock.edge(31)), clock.edge(35));
    let order = std::iter::from_fn(|| mailbox.take_due()).map(|came| came.packet.message);
    assert_eq!(order.collect::<Vec<u32>>(), [5, 3, 4]);
}
