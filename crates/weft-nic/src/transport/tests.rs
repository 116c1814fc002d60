//! Conservation, exactly once and order, over a link that loses, damages, repeats and reorders packets.

use super::*;
use std::collections::BTreeMap;
use weft_units::{Span, Time};

fn parameters() -> TransportParameters {
    TransportParameters {
        reliability: ReliabilityParameters {
            timeout: Span::from_us(10),
            backoff: 2,
            longest: Span::from_us(40),
            repetitions: 40,
        },
        window: 64,
        flows: 4096,
        idle: Span::from_us(500),
    }
}

const ORDERED: FlowKind = FlowKind { response: false, unordered: false, service: false, class: 0 };
const UNORDERED: FlowKind = FlowKind { unordered: true, ..ORDERED };

fn flow(peer: u32, kind: FlowKind) -> FlowId {
    FlowId { peer: EndpointId(peer), kind }
}

/// Things on their way, by arrival time and a number that keeps the order of those of one time.
#[derive(Clone, Copy)]
enum Wire {
    Packet(FlowId, Sequence, u64),
    Acknowledgement(FlowId, Sequence),
    Timer,
}

/// A pair of engines and the link between them, whose faults come from a seed, of a million packets each.
struct Link {
    sender: Sender<u64>,
    receiver: Receiver,
    wire: BTreeMap<(Time, u64), Wire>,
    next: u64,
    random: u64,
    faults: [u64; 4],
    now: Time,
    taken: BTreeMap<FlowId, Vec<u64>>,
    failed: Vec<u64>,
}

impl Link {
    fn new(faults: [u64; 4]) -> Link {
        let (sender, receiver) = (Sender::default(), Receiver::default());
        let (wire, taken) = (BTreeMap::new(), BTreeMap::new());
        let (next, random, now, failed) = (0, 88_172_645_463_325_252, Time::ZERO, Vec::new());
        Link { sender, receiver, wire, next, random, faults, now, taken, failed }
    }

    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % 1_000_000
    }

    fn put(&mut self, at: Time, what: Wire) {
        self.wire.insert((at, self.next), what);
        self.next += 1;
    }

    /// Over the link: [lost, damaged, repeated, late] with the probabilities of `faults`. A damaged packet
    /// fails its check, and is as good as lost.
    fn carry(&mut self, what: Wire) {
        let [lost, damaged, repeated, late] = self.faults.map(|of| (of, self.draw()));
        if lost.1 < lost.0 || damaged.1 < damaged.0 {
            return;
        }
        let delay = if late.1 < late.0 { Span::from_ns(9_000) } else { Span::from_ns(1_000) };
        self.put(self.now + delay, what);
        if repeated.1 < repeated.0 {
            self.put(self.now + delay + Span::from_ns(700), what);
        }
    }

    /// Sends a packet as soon as its flow has space.
    fn send(&mut self, id: FlowId, packet: u64) {
        let (sequence, timer) = loop {
            match self.sender.send(id, packet, self.now, &parameters()) {
                Some(sent) => break sent,
                None => assert!(self.step(), "the flow has no room, and nothing will make any"),
            }
        };
        self.carry(Wire::Packet(id, sequence, packet));
        if let Some(at) = timer {
            self.put(at, Wire::Timer);
        }
    }

    /// The next thing that happens; `false`: nothing does.
    fn step(&mut self) -> bool {
        let Some(((at, _), what)) = self.wire.pop_first() else { return false };
        self.now = at;
        match what {
            Wire::Packet(id, sequence, packet) => {
                // The two engines name each other's flows alike: there is one pair.
                let verdict = self.receiver.receive(id, sequence, at, &parameters());
                if verdict == Verdict::Take {
                    self.taken.entry(id).or_default().push(packet);
                }
                if verdict != Verdict::Drop {
                    self.carry(Wire::Acknowledgement(id, sequence));
                }
            }
            Wire::Acknowledgement(id, sequence) => drop(self.sender.acknowledged(id, sequence, at)),
            Wire::Timer => {
                let Some(expired) = self.sender.expired(at, &parameters()) else { return true };
                self.failed.extend(expired.failed.iter().map(|(_, packet)| *packet));
                if let Some(next) = expired.next {
                    self.put(next, Wire::Timer);
                }
                while let Some((repeat, timer)) = self.sender.take_repeat(at, &parameters()) {
                    self.carry(Wire::Packet(repeat.flow, repeat.sequence, repeat.packet));
                    if let Some(at) = timer {
                        self.put(at, Wire::Timer);
                    }
                }
            }
        }
        true
    }

    /// Sends so many packets, taking turns over the flows, and returns what has come.
    fn run(&mut self, flows: &[FlowId], packets: u64) {
        for packet in 0..packets {
            let id = flows[packet as usize % flows.len()];
            self.send(id, packet);
            if packet % 4 == 0 {
                self.step();
            }
        }
        while self.step() {}
        assert_eq!(self.sender.outstanding(), 0);
    }
}

/// Sends so many packets over 1,000 flows, with a thousandth lost, damaged, repeated and late each.
fn arrive_once_and_in_order(packets: u64) {
    let kinds = [
        ORDERED,
        UNORDERED,
        FlowKind { response: true, ..ORDERED },
        FlowKind { class: 5, service: true, ..UNORDERED },
    ];
    let flows: Vec<FlowId> = (0..1_000).map(|number| flow(number / 4, kinds[number as usize % 4])).collect();
    let mut link = Link::new([1_000; 4]);
    link.run(&flows, packets);
    assert_eq!(link.failed, [0u64; 0]);
    for (number, id) in (0..).zip(&flows) {
        let mut taken = link.taken.remove(id).unwrap_or_default();
        if id.kind.unordered {
            taken.sort_unstable();
        }
        assert!(taken.into_iter().eq((number..packets).step_by(1_000)), "{id:?}");
    }
}

/// Catches packets that are lost, taken twice, or taken out of order where order is promised.
#[test]
fn a_million_packets_arrive_once_and_in_order() {
    arrive_once_and_in_order(1_000_000);
}

/// The same with 10⁸ packets: what happens once in so many.
#[test]
#[ignore = "takes minutes"]
fn a_hundred_million_packets_arrive_once_and_in_order() {
    arrive_once_and_in_order(100_000_000);
}

/// Catches repairs that take longer than time-outs do, and packets behind a lost one that stay lost: a
/// quarter of all packets and acknowledgements.
#[test]
fn heavy_losses_are_repaired() {
    let flows = [flow(0, ORDERED), flow(0, UNORDERED)];
    let mut link = Link::new([200_000, 50_000, 50_000, 100_000]);
    link.run(&flows, 4_000);
    assert_eq!(link.failed, [0u64; 0]);
    for id in flows {
        let mut taken = link.taken[&id].clone();
        if id.kind.unordered {
            taken.sort_unstable();
        }
        assert_eq!(taken.len(), 2_000);
        assert!(taken.is_sorted_by(|a, b| a < b));
    }
}

/// Catches a dead way whose sender is never told, and a flow that is of no use after it.
#[test]
fn what_is_never_acknowledged_is_given_up() {
    let id = flow(0, ORDERED);
    let mut link = Link::new([1_000_000, 0, 0, 0]);
    link.run(&[id], 3);
    assert_eq!(link.failed, [0, 1, 2]);
    link.faults = [0; 4];
    link.run(&[id], 5);
    assert_eq!(link.taken[&id], [0, 1, 2, 3, 4]);
}

/// Catches tables that grow without bound, and a flow whose numbers the two sides count from different
/// beginnings: many more peers than the tables have space for, one after the other, and again.
#[test]
fn tables_are_bounded_and_flows_come_back() {
    let mut link = Link::new([1_000; 4]);
    for round in 0..3 {
        for peer in 0..10_000 {
            let id = flow(peer, ORDERED);
            link.send(id, round);
            link.now += Span::from_ns(400);
            while link.wire.first_key_value().is_some_and(|((at, _), _)| *at <= link.now) {
                let now = link.now;
                link.step();
                link.now = now;
            }
            assert!(link.sender.flows() <= 4096 && link.receiver.flows() <= 4096);
        }
    }
    while link.step() {}
    assert_eq!((link.failed.len(), link.sender.outstanding()), (0, 0));
    let taken: Vec<Vec<u64>> = link.taken.into_values().collect();
    assert_eq!(taken, vec![vec![0, 1, 2]; 10_000]);
}

/// Every row of the receiver's table.
#[test]
fn a_receiver_takes_each_packet_once() {
    use Verdict::{AcknowledgeAgain, Drop, Take};
    let of = |opening, number| Sequence { opening, number };
    let mut receiver = Receiver::default();
    let mut at = |kind, sequence| receiver.receive(flow(0, kind), sequence, Time::ZERO, &parameters());
    // An ordered flow begins with number 0.
    assert_eq!([at(ORDERED, of(7, 1)), at(ORDERED, of(7, 0))], [Drop, Take]);
    assert_eq!(
        [at(ORDERED, of(7, 0)), at(ORDERED, of(7, 2)), at(ORDERED, of(7, 1))],
        [AcknowledgeAgain, Drop, Take]
    );
    // A later opening begins anew, an earlier one is of the past.
    assert_eq!([at(ORDERED, of(8, 1)), at(ORDERED, of(8, 0)), at(ORDERED, of(7, 2))], [Drop, Take, Drop]);
    assert_eq!([at(ORDERED, of(6, 0)), at(ORDERED, of(8, 1))], [Drop, Take]);
    assert_eq!(
        [at(UNORDERED, of(0, 5)), at(UNORDERED, of(0, 5)), at(UNORDERED, of(0, 64))],
        [Take, AcknowledgeAgain, Drop]
    );
    assert_eq!([at(UNORDERED, of(0, 0)), at(UNORDERED, of(0, 64))], [Take, Take]);
    // The opening is counted in a circle.
    let last = (1 << OPENING_BITS) - 1;
    let other = FlowKind { response: true, ..ORDERED };
    assert_eq!([at(other, of(last, 0)), at(other, of(0, 0)), at(other, of(last, 1))], [Take, Take, Drop]);
}

#[test]
fn kinds_are_read_as_they_are_written() {
    for bits in 0..8 {
        assert_eq!(FlowKind::from_bits(bits).bits(), bits);
    }
}
