//! Exactly once, and in order where that is promised, over a link that loses, repeats and reorders packets.

use super::sender::NumberedPacket;
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use weft_units::Time;

const TIMEOUT: Span = Span::from_us(10);
/// From one end to the other.
const LATENCY: Span = Span::from_us(1);

fn parameters(kind: Retransmission) -> ConnectionParameters {
    ConnectionParameters {
        kind,
        ack_timeout: TIMEOUT,
        retry_count: 60,
        window: 16,
        ack_every: 8,
        ..ConnectionParameters::NONE
    }
}

fn connection(peer: u32) -> Connection {
    Connection { peer: EndpointId(peer), pair: QueuePair { from: 1, to: 2, class: 3 } }
}

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// Things on their way.
#[derive(Clone, Copy)]
enum Wire {
    Packet(Connection, Psn, bool, u64),
    Answer(Connection, AckState),
    Timer,
}

/// A pair of interfaces and the link between them. Of 256 packets each so many are lost, repeated and late.
struct Link {
    parameters: ConnectionParameters,
    sender: Sender<u64>,
    receiver: Receiver,
    wire: BTreeMap<(Time, u64), Wire>,
    next: u64,
    chances: Vec<u8>,
    drawn: usize,
    faults: [u8; 3],
    now: Time,
    taken: BTreeMap<EndpointId, Vec<u64>>,
    settled: Vec<u64>,
    failed: Vec<u64>,
    /// Packets that were put on the link.
    packets: u64,
    timeouts: u64,
}

impl Link {
    fn new(parameters: ConnectionParameters, faults: [u8; 3], chances: Vec<u8>) -> Link {
        Link {
            parameters,
            sender: Sender::default(),
            receiver: Receiver::default(),
            wire: BTreeMap::new(),
            next: 0,
            chances,
            drawn: 0,
            faults,
            now: Time::ZERO,
            taken: BTreeMap::new(),
            settled: Vec::new(),
            failed: Vec::new(),
            packets: 0,
            timeouts: 0,
        }
    }

    /// Whether chance strikes, of which 256 are all.
    fn strikes(&mut self, of_256: u8) -> bool {
        if of_256 == u8::MAX {
            return true;
        }
        self.drawn += 1;
        of_256 > 0 && self.chances[self.drawn % self.chances.len()] < of_256
    }

    fn put(&mut self, at: Time, what: Wire) {
        self.wire.insert((at, self.next), what);
        self.next += 1;
    }

    fn carry(&mut self, what: Wire) {
        self.packets += u64::from(matches!(what, Wire::Packet(..)));
        let [lost, repeated, late] = self.faults.map(|of| self.strikes(of));
        if lost {
            return;
        }
        let delay = if late { LATENCY * 4 } else { LATENCY };
        self.put(self.now + delay, what);
        if repeated {
            self.put(self.now + delay + Span::from_ns(700), what);
        }
    }

    fn set_timer(&mut self, at: Option<Time>) {
        if let Some(at) = at {
            self.put(at, Wire::Timer);
        }
    }

    /// Sends a packet as soon as its connection has room.
    fn send(&mut self, of: Connection, packet: u64) {
        while !self.sender.has_room(of, &self.parameters) {
            assert!(self.step(), "the window is full, and nothing will make room");
        }
        let NumberedPacket { number, asks, timer } =
            self.sender.send(of, (packet, self.now), &self.parameters);
        self.carry(Wire::Packet(of, number, asks || packet % 4 == 3, packet));
        self.set_timer(timer);
    }

    /// The next thing that happens; `false`: nothing does.
    fn step(&mut self) -> bool {
        let Some(((at, _), what)) = self.wire.pop_first() else { return false };
        self.now = at;
        match what {
            Wire::Packet(of, number, asks, packet) => {
                let (verdict, answer) = self.receiver.receive(of, (number, asks), &self.parameters);
                if verdict == Verdict::Take {
                    self.taken.entry(of.peer).or_default().push(packet);
                }
                if let Some(answer) = answer {
                    self.carry(Wire::Answer(of, answer));
                }
            }
            Wire::Answer(of, answer) => {
                if let Some(settled) = self.sender.acknowledged(of, answer, at, &self.parameters) {
                    self.settled.extend(settled.packets);
                    self.set_timer(settled.timer);
                }
            }
            Wire::Timer => {
                if let Some(expired) = self.sender.expired(at, &self.parameters) {
                    for failed in expired.failed {
                        self.receiver.skip_to(failed.connection, failed.next);
                        self.failed.extend(failed.packets);
                    }
                    self.timeouts += expired.timeouts;
                    self.set_timer(expired.timer);
                }
            }
        }
        while let Some((repeat, timer)) = self.sender.take_repeat(self.now, &self.parameters) {
            self.carry(Wire::Packet(repeat.connection, repeat.number, true, repeat.packet));
            self.set_timer(timer);
        }
        true
    }

    fn run(&mut self) {
        while self.step() {}
        assert_eq!(self.sender.outstanding(), 0);
    }
}

const KINDS: [Retransmission; 2] = [Retransmission::GoBackN, Retransmission::SelectiveRepeat];

proptest! {
    /// Catches packets that are lost, taken twice, or out of order where order is promised, also beyond the
    /// numbers that 24 bits tell apart; and a sender that never learns of what has come.
    #[test]
    fn every_packet_arrives_once_and_in_order(
        kind in prop::sample::select(KINDS.to_vec()),
        start in prop::sample::select(vec![0u32, Psn::MASK - 20]),
        (peers, packets, faults) in (1u32..4, 1u64..120, [0u8..80, 0u8..60, 0u8..80]),
        chances in prop::collection::vec(any::<u8>(), 1_009),
    ) {
        let mut link = Link::new(parameters(kind), faults, chances);
        for peer in 0..peers {
            // Both ends have got as far as that.
            link.receiver.start_at(connection(peer), Psn(start));
            link.sender.start_at(connection(peer), Psn(start));
        }
        for packet in 0..packets {
            for peer in 0..peers {
                link.send(connection(peer), packet);
            }
            if packet % 3 == 0 {
                link.step();
            }
        }
        link.run();
        prop_assert!(link.failed.is_empty());
        prop_assert_eq!(link.settled.len() as u64, packets * u64::from(peers));
        for peer in 0..peers {
            let mut taken = link.taken.remove(&EndpointId(peer)).unwrap_or_default();
            if kind == Retransmission::SelectiveRepeat {
                taken.sort_unstable();
            }
            prop_assert!(taken.into_iter().eq(0..packets), "peer {peer}");
        }
    }
}

/// Catches a lost packet that is repaired at another time than its own: alone, a time-out and the way after
/// it was sent; where others follow and order counts, as soon as the NAK is back.
#[test]
fn a_lost_packet_arrives_when_it_should() {
    for kind in KINDS {
        let mut link = Link::new(parameters(kind), [u8::MAX, 0, 0], vec![0]);
        link.send(connection(0), 3);
        link.faults = [0; 3];
        while link.taken.is_empty() {
            assert!(link.step());
        }
        assert_eq!((link.now, link.timeouts), (Time::ZERO + TIMEOUT + LATENCY, 1), "{kind:?}");
    }
    // All four go again, or the first alone: the acknowledgement of the last says that the others have come.
    for (kind, packets, arrival) in
        [(Retransmission::GoBackN, 8, LATENCY * 3), (Retransmission::SelectiveRepeat, 5, TIMEOUT + LATENCY)]
    {
        let mut link = Link::new(parameters(kind), [u8::MAX, 0, 0], vec![0]);
        link.send(connection(0), 0);
        link.faults = [0; 3];
        (1..4).for_each(|packet| link.send(connection(0), packet));
        while !link.taken.get(&EndpointId(0)).is_some_and(|taken| taken.contains(&0)) {
            assert!(link.step());
        }
        assert_eq!((link.now, link.packets), (Time::ZERO + arrival, packets), "{kind:?}");
    }
}

/// Catches a retry too many or too few, packets whose sender is never told, and a connection that is of no
/// use after it has failed.
#[test]
fn a_connection_fails_after_its_retries_and_goes_on() {
    for kind in KINDS {
        let own = ConnectionParameters { retry_count: 3, ..parameters(kind) };
        let mut link = Link::new(own, [u8::MAX, 0, 0], vec![0]);
        (0..2).for_each(|packet| link.send(connection(0), packet));
        link.run();
        assert_eq!((link.failed.clone(), link.packets), (vec![0, 1], 2 * 4), "{kind:?}");
        assert_eq!((link.now, link.timeouts), (at(40), 4));
        link.faults = [0; 3];
        (2..9).for_each(|packet| link.send(connection(0), packet));
        link.run();
        assert_eq!(link.taken[&EndpointId(0)], (2..9).collect::<Vec<u64>>());
    }
}

/// Catches more packets under way than the window allows, and a window that waits for an acknowledgement
/// which nobody has asked for.
#[test]
fn a_full_window_asks_for_an_acknowledgement() {
    let own = ConnectionParameters { window: 3, ack_every: 1 << 20, ..parameters(Retransmission::GoBackN) };
    let mut sender = Sender::default();
    let sent = [0, 1, 2].map(|packet| sender.send(connection(7), (packet, at(0)), &own));
    assert_eq!(sent.map(|sent| (sent.number.bits(), sent.asks)), [(0, false), (1, false), (2, true)]);
    assert_eq!(sent.map(|sent| sent.timer), [Some(Time::ZERO + TIMEOUT), None, None]);
    assert!(!sender.has_room(connection(7), &own) && sender.has_room(connection(8), &own));
    let answer = AckState { expected: Psn(1), beyond: 0, is_negative: false };
    let settled = sender.acknowledged(connection(7), answer, at(4), &own).unwrap();
    // The timer that is pending fires first.
    assert_eq!((settled.packets, settled.timer), (vec![0], None));
    assert!(sender.has_room(connection(7), &own));
    let expired = sender.expired(at(10), &own).unwrap();
    assert_eq!((expired.timeouts, expired.timer), (0, Some(at(14))), "anew with the acknowledgement");
}

/// Every row of the receiver's table.
#[test]
fn a_receiver_takes_each_packet_once() {
    use Verdict::{OutOfOrder, Repeated, Take};
    let said = |kind| {
        let mut receiver = Receiver::default();
        [0u32, 2, 3, 2, 0, 1, 4].map(|number| {
            let of = (Psn(number), number == 3);
            let (verdict, answer) = receiver.receive(connection(0), of, &parameters(kind));
            let answer = answer.map(|a| (a.expected.bits(), a.beyond, a.is_negative));
            (verdict, answer)
        })
    };
    assert_eq!(
        said(Retransmission::GoBackN),
        [
            (Take, None),
            (OutOfOrder, Some((1, 0, true))),
            (OutOfOrder, None),
            (OutOfOrder, None),
            (Repeated, Some((1, 0, false))),
            (Take, None),
            (OutOfOrder, Some((2, 0, true))),
        ]
    );
    assert_eq!(
        said(Retransmission::SelectiveRepeat),
        [
            (Take, None),
            (Take, None),
            (Take, Some((1, 0b11, false))),
            (Repeated, Some((1, 0b11, false))),
            (Repeated, Some((1, 0b11, false))),
            (Take, None),
            (Take, None),
        ]
    );
}

proptest! {
    /// Catches fields of a connection's name that overlap.
    #[test]
    fn a_connection_is_read_as_it_was_written(peer in 0u32..1 << 28, from: u16, to: u16, class in 0u8..16) {
        let connection = Connection { peer: EndpointId(peer), pair: QueuePair { from, to, class } };
        prop_assert_eq!(Connection::of_key(connection.key()), connection);
    }
}
