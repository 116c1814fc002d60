//! The Communication IP on the machine that has it.

use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use weft_assembly as assembly;
use weft_engine::Payload;
use weft_fabric::HopRecord;
use weft_machine::{Machine, Nic, load};
use weft_network::{NetworkSetup, SimulatedNetwork};
use weft_nic::communication_ip::header::Header;
use weft_nic::communication_ip::registers::Register;
use weft_nic::communication_ip::{AGGREGATOR, DISPATCHER, TRANSMIT_FIFO};
use weft_nic::{
    Block, CommunicationIpNic, Delivered, Failure, FailureReason, Host, HostContext, Message, NicParameters,
    Observer, Offer, Primitive, Stage,
};
use weft_topo::Topology as _;
use weft_units::{Bytes, EndpointId, Span, Time};

/// Messages of one endpoint: all at once.
#[derive(Clone, Default)]
struct Plan {
    messages: Vec<(EndpointId, Order)>,
    /// Kernels send packets of their own, each of which its kernel takes when it reads.
    is_read: bool,
    /// The time from which kernels read; [`Time::NEVER`]: they do not.
    reads_from: Time,
    /// Registers that endpoint 0 writes first, and those that it then reads.
    written: Vec<(Register, u32)>,
    read: Vec<Register>,
    /// The same of endpoint 1.
    written_at_1: Vec<(Register, u32)>,
}

impl Plan {
    /// These messages, which dispatchers take as they come.
    fn of(messages: Vec<(EndpointId, Order)>) -> Plan {
        Plan { messages, ..Plan::default() }
    }

    /// The same as packets that kernels read from `us` on.
    fn read_from(messages: Vec<(EndpointId, Order)>, us: u64) -> Plan {
        let reads_from = if us == u64::MAX { Time::NEVER } else { Time::ZERO + Span::from_us(us) };
        Plan { is_read: true, reads_from, ..Plan::of(messages) }
    }
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
    registers: Vec<u32>,
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
        let written = [&plan.written, &plan.written_at_1].into_iter().zip(0..);
        let written: Vec<_> = written.filter(|(_, of)| *of == here.0).flat_map(|(all, _)| all).collect();
        if let Some(registers) = context.capabilities().registers() {
            for (register, value) in written {
                registers.write_register(register.address(), *value).unwrap();
            }
            let read = plan.read.iter().map(|register| registers.read_register(register.address()).unwrap());
            self.registers = read.collect();
        }
        let own = plan.messages.iter().filter(|(from, _)| *from == here);
        for (token, (_, order)) in (0..).zip(own) {
            let message = Message {
                header: Some(()),
                token: Some(token),
                interface: order.from_port,
                to_interface: order.to_port,
                primitive: if plan.is_read { Primitive::Small } else { Primitive::Automatic },
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

    fn delivered(&mut self, message: &Delivered<()>, plan: &Plan, context: &mut impl HostContext<Self>) {
        let now = context.now();
        self.arrived.push((now, message.from, message.number, message.bytes));
        assert_eq!(message.in_mailbox, plan.is_read);
        if message.in_mailbox && plan.reads_from < Time::NEVER {
            context.capabilities().take(message.interface, plan.reads_from.max(now));
        }
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
    Plan::of(vec![(EndpointId(from), order)])
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
        let mut network = network(sets, Plan::of(messages.clone()), 1);
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
    // A threshold stops it earlier, the file's or that of the register.
    let threshold = [&slow[..2], &["nic.intra_node.threshold=512"]].concat();
    assert_eq!((stopped[3], taken_at(&threshold)[3]), (96, 216));
    let written = vec![(Register::Threshold, 32)];
    let mut network = network(&slow, Plan { written, ..Plan::of(messages.clone()) }, 1);
    noted(&mut *network);
    assert_eq!(taken_by(&mut *network)[3], Time::ZERO + Span::from_ns(2160));
}

/// The times at which the aggregator of endpoint 0 had written each message.
fn taken_by(network: &mut dyn SimulatedNetwork<Sender>) -> Vec<Time> {
    let mut taken = Vec::new();
    network.visit_hosts(&mut |endpoint, host| {
        if endpoint == EndpointId(0) {
            taken = host.taken.iter().map(|(time, _)| *time).collect();
        }
    });
    taken
}

/// One port of an endpoint, whose receiving FIFOs hold two packets of the largest size.
const ONE_PORT: &str = "nic.intra_node.ports=1";

/// A kernel that does not read for 100 us: its FIFOs hold two packets, each of both switches on the way two,
/// and the sender the one that it wants to send and the one in its FIFO. All others wait as long as the
/// kernel does. Catches FIFOs without an end, and space that comes back early, late or twice.
#[test]
fn a_kernel_that_does_not_read_holds_its_sender_up() {
    let messages = vec![(EndpointId(0), order(1, 4096)); 20];
    let mut network = network(&[ONE_PORT], Plan::read_from(messages, 100), 1);
    network.run_until(Time::ZERO + Span::from_us(99), &AtomicBool::new(false));
    network.check().unwrap();
    let arrived = noted(&mut *network).swap_remove(1);
    network.check().unwrap();
    let ns: Vec<u64> = arrived.iter().map(|(time, ..)| time.as_ps() / 1000).collect();
    assert_eq!(ns.len(), 20);
    // Alone: 92 cycles with its 3 words, and 255 words more.
    assert_eq!(ns[0], 10 * (92 + 255));
    // The credit comes back over a link of a cycle; the switch's pipeline has 20, the packet 258 words, the
    // link to the port 1, and the dispatcher 13.
    assert_eq!(ns[2], 100_000 + 10 * (1 + 20 + 258 + 1 + 13));
    assert_eq!(ns[3], ns[2] + 2580, "there is space for two");
    let taken = taken_by(&mut *network);
    let before = taken.iter().filter(|time| **time < Time::ZERO + Span::from_us(100)).count();
    assert_eq!(before, 2 + 2 + 2 + 1 + 1);
}

/// The head of a line holds up what waits behind it: on a chain of four, packets to endpoint 2, which does
/// not read, keep back those to endpoint 3 that pass its switch from the same side, and no others.
#[test]
fn packets_behind_a_full_port_wait_in_the_network() {
    let sets = ["topology.kind=mesh", "topology.dims=[4]", ONE_PORT];
    let mut messages = vec![(EndpointId(0), order(2, 4096)); 4];
    messages.extend([(EndpointId(2), order(3, 4096)), (EndpointId(3), order(1, 4096))]);
    messages.push((EndpointId(1), order(3, 16)));
    let mut network = network(&sets, Plan::read_from(messages, 200), 1);
    let arrived = noted(&mut *network);
    network.check().unwrap();
    let times = |to: usize, from: u32| -> Vec<u64> {
        let of = arrived[to].iter().filter(|(_, sender, ..)| sender.0 == from);
        of.map(|(time, ..)| time.as_ps() / 1_000_000).collect()
    };
    assert_eq!(times(2, 0)[..2].iter().filter(|us| **us < 100).count(), 2);
    assert!(times(2, 0)[2..].iter().all(|us| *us >= 200), "{:?}", times(2, 0));
    assert!(times(3, 2)[0] < 100 && times(1, 3)[0] < 100);
    // It may have passed before those packets; the next one does not.
    let late = vec![(EndpointId(0), order(2, 4096)); 8];
    let late = [late, vec![(EndpointId(0), order(3, 16))]].concat();
    let mut network = self::network(&sets, Plan::read_from(late, 200), 1);
    let arrived = noted(&mut *network);
    assert!(arrived[3][0].0 > Time::ZERO + Span::from_us(200));
}

/// Two kernels that send to each other and do not read: the run ends, and says whose FIFOs are full.
#[test]
fn kernels_that_wait_for_each_other_stand_still() {
    let both = [(EndpointId(0), order(1, 4096)), (EndpointId(1), order(0, 4096))];
    let messages = both.iter().copied().cycle().take(60).collect();
    let mut network = network(&[ONE_PORT], Plan::read_from(messages, u64::MAX), 1);
    let arrived = noted(&mut *network);
    network.check().unwrap();
    assert_eq!(arrived.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
    let told = network.stuck().unwrap().to_string();
    for endpoint in 0..2 {
        let line = format!("the receiving buffer of endpoint {endpoint} is full");
        assert!(told.contains(&line), "{told}");
    }
}

/// Register `credit` of one packet: the switch sends the next when the kernel has read the one before.
/// Catches a register that does nothing, and space that it loses for ever.
#[test]
fn register_credit_bounds_what_the_switch_sends() {
    let gaps = |written_at_1: Vec<(Register, u32)>| {
        let messages = vec![(EndpointId(0), order(1, 4096)); 12];
        let plan = Plan { written_at_1, ..Plan::read_from(messages, 0) };
        let mut network = network(&[ONE_PORT, "switch.buffer=32K"], plan, 1);
        let arrived = noted(&mut *network).swap_remove(1);
        network.check().unwrap();
        let ns: Vec<u64> = arrived.iter().map(|(time, ..)| time.as_ps() / 1000).collect();
        ns.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<u64>>()
    };
    let free = gaps(Vec::new());
    assert_eq!(free[4..], [2640; 7], "a packet of 258 words and six cycles of the aggregator");
    // Pipeline, words, link, dispatcher, and the credit's way back.
    let one = gaps(vec![(Register::Credit, 258)]);
    assert_eq!(one[4..], [10 * (20 + 258 + 1 + 13 + 1); 7]);
    assert_eq!(gaps(vec![(Register::Credit, 258), (Register::Credit, 516)]), free);
}

/// Headers at their receiver: catches hops that are not counted, a virtual channel that is not that of the
/// last link between nodes, and packets for no node that are sent, or leave no trace.
#[test]
fn switches_write_into_headers() {
    let start = |x| {
        let values = [(Register::TestPackets, 3), (Register::TestSize, 16), (Register::TestDestX, x)];
        [&values[..], &[(Register::TestStart, 1)]].concat()
    };
    let headers =
        [Register::TestHeader3, Register::TestHeader2, Register::TestHeader1, Register::TestHeader0];
    let read = [&[Register::TestOutside][..], &headers].concat();
    let outside = Plan { written: start(9), read, ..Plan::default() };
    let mut network = network(&["topology.dims=[4]"], outside, 1);
    noted(&mut *network);
    let mut registers = Vec::new();
    network.visit_hosts(&mut |endpoint, host| {
        if endpoint == EndpointId(0) {
            registers = host.registers.clone();
        }
    });
    let header = registers[1..].iter().fold(0u128, |word, part| word << 32 | u128::from(*part));
    let header = Header::unpack(header).unwrap();
    assert_eq!((registers[0], header.out_of_lattice, header.destination.x, header.hops), (3, true, 9, 0));
}

/// Network_IP: one, two and four lanes under a datapath of 128 and of 256 bits, between two FPGAs. By hand:
/// a kernel has a packet of 2 KB each 6 cycles and its words, or as often as lanes of 10 Gb/s carry it in
/// blocks of 8 B per lane; 16 B take 92 cycles, and what the link takes longer than a port. The page has the
/// same.
#[test]
fn lanes_and_datapath_by_hand() {
    let page = include_str!("../../../../docs/src/nic/communication-ip.md");
    for (datapath, lanes, packet_ns, latency_ns) in [
        // 2,080 B and one more in blocks of 8 B at 10 Gb/s; 56 B of it for 48.
        (16u64, 1u64, 2088.0 * 0.8, 940),
        (16, 2, 10.0 * (6.0 + 130.0), 920),
        (16, 4, 10.0 * (6.0 + 130.0), 920),
        (32, 1, 2088.0 * 0.8, 940),
        (32, 2, 2096.0 * 0.4, 920),
        (32, 4, 10.0 * (6.0 + 66.0), 920),
    ] {
        let sets = [format!("switch.datapath={datapath}"), format!("links.default.lanes={lanes}")];
        let memory = "nic.bram.rate=25.6Gb/s";
        let sets: Vec<&str> = sets.iter().map(String::as_str).chain([memory]).collect();
        assert_eq!(arrival(&sets, 1, 16), latency_ns, "{sets:?}");
        let messages = vec![(EndpointId(0), order(1, 2048)); 60];
        let arrived = noted(&mut *network(&sets, Plan::of(messages), 1)).swap_remove(1);
        let span = (arrived[59].0 - arrived[19].0).as_ns_f64() / 40.0;
        assert!((span - packet_ns).abs() < 0.3, "{sets:?}: {span} {packet_ns}");
        let (bits, gigabits) = (8 * datapath, 2048.0 * 8.0 / packet_ns);
        let row = format!("| {bits} | {lanes} | {gigabits:.2} Gb/s | {latency_ns} ns |");
        assert!(page.contains(&row), "{row}");
    }
}

/// Two ports of an endpoint take turns: catches one that starves, and FIFOs that are shared.
#[test]
fn ports_take_turns() {
    let from_port = |from_port| (EndpointId(0), Order { from_port, ..order(1, 4096) });
    let messages = [0, 0, 0, 0, 1].map(from_port).to_vec();
    let arrived = noted(&mut *network(&[], Plan::of(messages), 1));
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
    let mut network = network(&[], Plan::of(messages), 1);
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
    Plan::of(messages.collect())
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
