//! The Communication IP on the machine that has it.

use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use weft_assembly as assembly;
use weft_engine::Payload;
use weft_fabric::HopRecord;
use weft_machine::{Machine, Nic, load};
use weft_network::{NetworkSetup, SimulatedNetwork};
use weft_nic::communication_ip::{AGGREGATOR, DISPATCHER, TRANSMIT_FIFO};
use weft_nic::{
    Block, CommunicationIpNic, Delivered, Failure, FailureReason, Host, HostContext, Message, NicParameters,
    Observer, Offer, Stage,
};
use weft_topo::Topology as _;
use weft_units::{Bytes, EndpointId, Time};

/// Messages of one endpoint: all at once.
#[derive(Clone, Default)]
struct Plan {
    messages: Vec<(EndpointId, Order)>,
}

/// A message.
#[derive(Clone, Copy)]
struct Order {
    to: EndpointId,
    bytes: u64,
    from_port: u16,
    to_port: u16,
}

/// Sends what is planned, and notes what comes.
#[derive(Default, Serialize, Deserialize)]
struct Sender {
    arrived: Vec<(Time, EndpointId, u32, Bytes)>,
    failed: Vec<FailureReason>,
    taken: Vec<(Time, u32)>,
}

#[derive(Default)]
struct Log {
    stages: Vec<Stage>,
    hops: Vec<HopRecord>,
}

impl Observer for Log {
    fn hop(&mut self, hop: &HopRecord) {
        self.hops.push(*hop);
    }
    fn stage(&mut self, stage: &Stage) {
        self.stages.push(*stage);
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Never {}
impl Payload for Never {
    fn tie(&self) -> u128 {
        match *self {}
    }
}

impl Host for Sender {
    type Parameters = Plan;
    type Timer = Never;
    type Header = ();
    type Output = Log;

    fn is_active(&self) -> bool {
        true
    }

    fn start(&mut self, plan: &Plan, context: &mut impl HostContext<Self>) {
        let (here, at) = (context.endpoint(), context.now());
        let own = plan.messages.iter().filter(|(from, _)| *from == here);
        for (token, (_, order)) in (0..).zip(own) {
            let message = Message {
                header: Some(()),
                token: Some(token),
                interface: order.from_port,
                to_interface: order.to_port,
                watch: true,
                ..Message::new(order.to, Bytes::new(order.bytes), at)
            };
            context.send(message, at);
        }
    }

    fn timer(&mut self, timer: Never, _: &Plan, _: &mut impl HostContext<Self>) {
        match timer {}
    }

    fn sent(&mut self, token: u32, _: &Plan, context: &mut impl HostContext<Self>) {
        self.taken.push((context.now(), token));
    }

    fn delivered(&mut self, message: &Delivered<()>, _: &Plan, context: &mut impl HostContext<Self>) {
        self.arrived.push((context.now(), message.from, message.number, message.bytes));
    }

    fn failed(&mut self, failure: &Failure, _: &Plan, _: &mut impl HostContext<Self>) {
        self.failed.push(failure.reason);
    }

    fn next_offer(&self) -> Time {
        Time::NEVER
    }

    fn offer(&mut self, _: &Plan, _: Time) -> Offer<()> {
        Offer::Nothing
    }
}

/// A network of the machine with these changes, and its endpoints.
fn network(sets: &[&str], plan: Plan, threads: usize) -> Box<dyn SimulatedNetwork<Sender>> {
    let machine = load("communication-ip", sets).unwrap();
    let layout = assembly::layout(&machine).unwrap();
    let setup = NetworkSetup { threads, ..NetworkSetup::new(&machine, layout, 1) };
    build(setup, plan)
}

fn build(setup: NetworkSetup<'_>, plan: Plan) -> Box<dyn SimulatedNetwork<Sender>> {
    let Machine { nic: Nic::CommunicationIp(nic), topology, .. } = setup.machine else {
        panic!("the Communication IP")
    };
    let interface = NicParameters { interface: nic.parameters(topology), host: plan };
    setup.build_over::<Sender, CommunicationIpNic<Sender>>(interface, |_| Sender::default()).unwrap()
}

/// The messages that hosts have noted at the end of a run, by endpoint.
fn noted(network: &mut dyn SimulatedNetwork<Sender>) -> Vec<Vec<(Time, EndpointId, u32, Bytes)>> {
    network.run_until(Time::NEVER, &AtomicBool::new(false));
    let mut arrived = Vec::new();
    network.visit_hosts(&mut |endpoint, host| arrived.push((endpoint, host.arrived.clone())));
    arrived.sort_by_key(|(endpoint, _)| *endpoint);
    arrived.into_iter().map(|(_, arrived)| arrived).collect()
}

fn order(to: u32, bytes: u64) -> Order {
    Order { to: EndpointId(to), bytes, from_port: 0, to_port: 0 }
}

fn one(from: u32, order: Order) -> Plan {
    Plan { messages: vec![(EndpointId(from), order)] }
}

/// When a message of `bytes` from endpoint 0 to `to` is there, in ns.
fn arrival(sets: &[&str], to: u32, bytes: u64) -> u64 {
    let mut network = network(sets, one(0, order(to, bytes)), 1);
    let arrived = noted(&mut *network);
    let (time, ..) = arrived[to as usize][0];
    assert_eq!(time.as_ps() % 1000, 0);
    time.as_ps() / 1000
}

/// The closed form of the page at zero load: catches a cycle too many or too few anywhere on the way.
#[test]
fn latencies_in_closed_form() {
    let ring: &[&str] = &["topology.dims=[8]"];
    let ddr: &[&str] = &["topology.dims=[8]", "nic.buffers=ddr"];
    for (sets, memory) in [(ring, 0), (ddr, 30)] {
        for (to, links) in [(0, 0), (1, 1), (3, 3), (6, 2)] {
            for bytes in [0, 16, 64, 4096] {
                let words = 2 + bytes / 16;
                let memory = if bytes == 0 { 0 } else { memory };
                let cycles = memory + 6 + 6 + 2 + 20 * (links + 1) + 22 * links + words + 13 + memory;
                assert_eq!(arrival(sets, to, bytes), 10 * cycles, "{bytes} B over {links} links");
            }
        }
    }
}

/// A message of several packets: the kernel takes a packet after the other, and the last one arrives as the
/// only one of its message would.
#[test]
fn packets_of_a_message_follow_each_other() {
    // The buffer that ships holds one packet of this size with its header, so that others wait for credits.
    let sets = ["switch.buffer=16K"];
    let one = arrival(&sets, 1, 4096);
    for packets in [2, 5] {
        assert_eq!(
            arrival(&sets, 1, 4096 * packets),
            one + (packets - 1) * 10 * (6 + 258),
            "{packets} packets"
        );
    }
}

/// Catches a FIFO that holds more than it has words for: a kernel that sends a lot to a slow link has the
/// data taken no faster than the link carries it, behind what fits the FIFO.
#[test]
fn the_fifo_stops_its_kernel() {
    let slow = ["links.endpoint.rate=1.28Gb/s", "nic.intra_node.fifo=1K", "nic.intra_node.threshold=0"];
    let messages: Vec<_> = (0..20).map(|_| (EndpointId(0), order(1, 256))).collect();
    let taken_at = |sets: &[&str]| {
        let mut network = network(sets, Plan { messages: messages.clone() }, 1);
        noted(&mut *network);
        let mut taken = Vec::new();
        network.visit_hosts(&mut |endpoint, host| {
            if endpoint == EndpointId(0) {
                taken = host.taken.iter().map(|(time, _)| time.as_ps() / 10_000).collect();
            }
        });
        taken
    };
    let free: Vec<u64> = taken_at(&[]);
    assert_eq!(free, (1..=20).map(|nth| nth * (6 + 18)).collect::<Vec<u64>>());
    let stopped = taken_at(&slow);
    // Four of 16 words each fill it; each other one waits for 180 cycles of the line.
    let gaps: Vec<u64> = stopped.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps[..3], [24, 24, 24]);
    assert_eq!(gaps[5..], [180; 14]);
    // A register stops it earlier.
    let threshold = [&slow[..2], &["nic.intra_node.threshold=512"]].concat();
    assert_eq!((stopped[3], taken_at(&threshold)[3]), (96, 216));
}

/// Two ports of an endpoint take turns: catches one that starves, and FIFOs that are shared.
#[test]
fn ports_take_turns() {
    let from_port = |from_port| (EndpointId(0), Order { from_port, ..order(1, 4096) });
    let messages = [0, 0, 0, 0, 1].map(from_port).to_vec();
    let arrived = noted(&mut *network(&[], Plan { messages }, 1));
    let numbers: Vec<u32> = arrived[1].iter().map(|(_, _, number, _)| *number).collect();
    assert_eq!(numbers, [0, 4, 1, 2, 3], "the fifth message is of the other port");
}

/// Catches bad descriptors that stop the simulation or are carried.
#[test]
fn what_cannot_be_sent_fails_at_its_sender() {
    let messages = vec![
        (EndpointId(0), order(7, 16)),
        (EndpointId(0), Order { from_port: 2, ..order(1, 16) }),
        (EndpointId(0), Order { to_port: u16::MAX, ..order(1, 16) }),
        (EndpointId(0), order(1, 16)),
    ];
    let mut network = network(&[], Plan { messages }, 1);
    let arrived = noted(&mut *network);
    assert_eq!(arrived[1].len(), 1);
    let mut failed = Vec::new();
    network.visit_hosts(&mut |_, host| failed.extend(host.failed.iter().copied()));
    assert_eq!(failed, [FailureReason::NoNode, FailureReason::NoInterface, FailureReason::NoInterface]);
}

/// Many messages between all endpoints.
fn crowd(endpoints: u32, messages: u32) -> Plan {
    let pick = |number: u32, salt: u32| {
        let mixed = number.wrapping_mul(97).wrapping_add(salt).wrapping_mul(2_654_435_761);
        (mixed ^ mixed >> 15).wrapping_mul(0x85EB_CA6B) >> 13
    };
    let messages = (0..messages).map(|number| {
        let (from_port, to_port) = ((pick(number, 3) % 2) as u16, (pick(number, 5) % 2) as u16);
        let bytes = u64::from(pick(number, 1) % 20_000);
        let to = EndpointId(pick(number, 2) % endpoints);
        (EndpointId(number % endpoints), Order { to, bytes, from_port, to_port })
    });
    Plan { messages: messages.collect() }
}

/// Nothing is lost or repeated where links repeat packets and bring them out of order; where they lose or
/// damage some, whole messages are missing, and none comes twice or with other bytes.
#[test]
fn messages_come_once() {
    let plan = crowd(16, 2000);
    let mut sent: Vec<(u32, u64)> =
        plan.messages.iter().map(|(_, order)| (order.to.0, order.bytes)).collect();
    sent.sort_unstable();
    for (fault, all) in [
        ("duplicate=100000, reorder=100000", true),
        ("drop=10000, corrupt=10000, duplicate=10000, reorder=10000", false),
    ] {
        let sets = ["topology.dims=[4,4]", &format!("faults=[{{{fault}}}]")];
        let arrived = noted(&mut *network(&sets, plan.clone(), 1));
        let mut came = std::collections::BTreeSet::new();
        let mut bytes: Vec<(u32, u64)> = Vec::new();
        for (to, messages) in (0..).zip(&arrived) {
            for (_, from, number, size) in messages {
                assert!(came.insert((*from, *number)), "twice: message {number} of {from:?}");
                bytes.push((to, size.get()));
            }
        }
        bytes.sort_unstable();
        if all {
            assert_eq!(bytes, sent, "{fault}");
        } else {
            assert!(bytes.len() < sent.len() && bytes.len() > sent.len() / 2, "{}", bytes.len());
        }
    }
}

/// Catches results that depend on threads, and a saved state that lacks something.
#[test]
fn threads_and_interruptions_change_nothing() {
    let sets = ["topology.dims=[4,4,2]"];
    let plan = crowd(32, 1500);
    let expected = noted(&mut *network(&sets, plan.clone(), 1));
    assert_eq!(expected.iter().map(Vec::len).sum::<usize>(), 1500);
    for threads in [2, 3, 8] {
        assert_eq!(noted(&mut *network(&sets, plan.clone(), threads)), expected, "{threads} threads");
    }
    let mut first = network(&sets, plan.clone(), 2);
    first.run_until(Time::from_ps(40_000_000), &AtomicBool::new(false));
    let saved = first.save().unwrap();
    let machine = load("communication-ip", &sets).unwrap();
    let layout = assembly::layout(&machine).unwrap();
    let setup = NetworkSetup { saved: Some(&saved), ..NetworkSetup::new(&machine, layout.clone(), 1) };
    let mut second = build(setup, plan);
    assert_eq!(noted(&mut *second), expected, "saved and resumed");
    assert_eq!(layout.endpoints(), 32);
}

/// Stages and hops of a message are a chain without gaps from its post to its notice: breakdowns rely on it.
#[test]
fn stages_and_hops_are_a_chain() {
    for (sets, blocks) in [
        (&[][..], &[AGGREGATOR, TRANSMIT_FIFO, Block::TRANSMIT, DISPATCHER][..]),
        (
            &["nic.buffers=ddr"],
            &[Block::MEMORY, AGGREGATOR, TRANSMIT_FIFO, Block::TRANSMIT, DISPATCHER, Block::MEMORY],
        ),
    ] {
        let mut network = network(sets, one(0, order(1, 64)), 1);
        let arrived = noted(&mut *network);
        let mut log = Log::default();
        network.visit_outputs(&mut |output| {
            log.stages.append(&mut output.stages);
            log.hops.append(&mut output.hops);
        });
        log.stages.sort_by_key(|stage| (stage.came, stage.ended));
        assert_eq!(log.stages.iter().map(|stage| stage.block).collect::<Vec<_>>(), blocks);
        let (out, back) = log.stages.split_at(blocks.iter().position(|b| *b == DISPATCHER).unwrap());
        for stages in [out, back] {
            assert!(stages.windows(2).all(|pair| pair[0].ended == pair[1].came), "{stages:?}");
        }
        assert_eq!(out[0].came, Time::ZERO);
        log.hops.sort_by_key(|hop| hop.came);
        assert_eq!((log.hops.len(), log.hops[0].came), (3, out[out.len() - 1].ended));
        let last = &log.hops[2];
        assert_eq!(last.ended + last.latency + last.routing, back[0].came);
        assert_eq!(arrived[1][0].0, back[back.len() - 1].ended);
    }
}

/// Catches headers that are too narrow for a machine that is taken all the same, and errors that do not name
/// the field of the header and the key of the file.
#[test]
fn a_machine_beyond_the_header_is_refused() {
    for (sets, field, key) in [
        (&["topology.dims=[65]"][..], "dest_x", "topology.dims"),
        (&["topology.dims=[64,33]"], "dest_y", "topology.dims"),
        (&["topology.dims=[2,2,33]"], "dest_z", "topology.dims"),
        (&["topology.dims=[2,2,2,2]"], "three dimensions", "topology.dims"),
        (&["topology.endpoints_per_switch=9"], "intra_dest", "topology.endpoints_per_switch"),
        (&["nic.intra_node.ports=17"], "intra_dest", "nic.intra_node.ports"),
        (&["topology.kind=star", "topology.endpoints=4"], "name no node of a star", "topology.kind"),
        (&["packet.payload=16384", "switch.buffer=64K"], "packet_size", "packet.payload"),
    ] {
        let error = load("communication-ip", sets).unwrap_err().to_string();
        assert!(error.contains(field) && error.contains(key), "{sets:?}: {error}");
        let others: Vec<&str> = sets.iter().copied().filter(|set| !set.starts_with("nic.")).collect();
        load("communication-ip", &[&others[..], &["nic.model=overheads"]].concat()).unwrap();
    }
    load("communication-ip", &["topology.dims=[64,32,32]", "nic.intra_node.ports=16"]).unwrap();
    load("communication-ip", &["topology.kind=mesh"]).unwrap();
}
