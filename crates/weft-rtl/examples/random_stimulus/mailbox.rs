//! Packets for a mailbox: bursts without a gap and with, fields at their limits, queues that fill up and wrap
//! around; some packets are damaged, foreign, for nobody, or repeated; more come than there are slots; queues
//! are opened for another domain with entries in them; and resets in the middle.

use crate::{Bench, Bins};
use std::collections::{BTreeSet, VecDeque};
use weft_nic::gvas::Pdid;
use weft_nic::mailbox::{Envelope, Mailbox, MailboxParameters, Refusal, Taken};
use weft_nic::packetizer::ChannelId;
use weft_nic::ports::{Arrival, Crossing, SmallPacket, Verdict};
use weft_units::{Bytes, EndpointId, Span, Time};

/// The largest number of a node in a header.
const LAST_NODE: u64 = (1 << 22) - 1;
/// Payloads at the limits of words and of the message.
const SIZES: [u64; 10] = [0, 1, 15, 16, 17, 47, 48, 49, 63, 64];
/// Domains at their limits.
const DOMAINS: [u16; 5] = [0, 1, 0x7FFF, 0x8000, 0xFFFF];

/// Packets that may be repeated.
const MOST_REPEATED: usize = 1 << 12;
/// Words of an entry.
const ENTRY_WORDS: u64 = 4;

/// Things that have come about.
#[derive(Default)]
struct Coverage {
    put: Bins<5>,
    refused: Bins<4>,
    bursts: Bins<6>,
    limits: Bins<6>,
    /// Queues that something was put into.
    queues: u64,
}

struct Stimulus<'a> {
    bench: &'a mut Bench,
    parameters: &'a MailboxParameters,
    mailbox: Mailbox,
    /// The domains of queues.
    domains: Vec<Pdid>,
    /// Entries put since the reset, by queue.
    put: Vec<u64>,
    /// The edge of the last tail, and the time of the last answer.
    edge: u64,
    free: Time,
    /// Packets that come before the next pause.
    burst: u64,
    /// Whether they come without a gap.
    dense: bool,
    /// Queues that packets are for: few, so that they fill up, or all.
    queues: u64,
    number: u32,
    /// Packets for which there has been no slot.
    waiting: VecDeque<(SmallPacket, Taken)>,
    /// The packets that were accepted last since the reset, and the numbers of all.
    accepted: VecDeque<SmallPacket>,
    numbers: BTreeSet<(EndpointId, u32)>,
    seen: Coverage,
}

pub(crate) fn run(bench: &mut Bench, parameters: &MailboxParameters, end: Time) -> Result<String, String> {
    let mut stimulus = Stimulus {
        free: Time::ZERO,
        bench,
        parameters,
        mailbox: Mailbox::default(),
        domains: Vec::new(),
        put: Vec::new(),
        edge: 0,
        burst: 0,
        dense: false,
        queues: 2,
        // They wrap around.
        number: u32::MAX - 999,
        waiting: VecDeque::new(),
        accepted: VecDeque::new(),
        numbers: BTreeSet::new(),
        seen: Coverage::default(),
    };
    stimulus.open(Time::ZERO);
    while stimulus.bench.clock.edge(stimulus.edge) < end {
        let now = stimulus.packet();
        stimulus.bench.advance(now)?;
        // Behind half of the time come none, so that the counts of a queue overflow.
        if now.as_ps() < end.as_ps() / 2 && stimulus.bench.below(4000) == 0 {
            stimulus.bench.reset();
            stimulus.open(now);
            stimulus.seen.bursts.count("resets");
        }
    }
    stimulus.take_waiting(Time::NEVER);
    let last = stimulus.free + Span::from_us(2);
    stimulus.bench.finish(last)?;
    let Coverage { put, refused, bursts, limits, queues } = stimulus.seen;
    let whole_run = end >= stimulus.bench.clock.edge(crate::WHOLE_RUN);
    let said =
        [put.tell(whole_run)?, refused.tell(whole_run)?, bursts.tell(whole_run)?, limits.tell(whole_run)?];
    Ok(format!("{}, {} queues", said.join(", "), queues.count_ones()))
}

impl Stimulus<'_> {
    /// All queues are empty, and each is of a domain.
    fn open(&mut self, now: Time) {
        self.mailbox = Mailbox::default();
        self.put = vec![0; self.parameters.interfaces as usize];
        self.burst = 0;
        self.waiting.clear();
        self.accepted.clear();
        self.numbers.clear();
        // System software opens one in each cycle.
        self.edge += u64::from(self.parameters.interfaces) + 40;
        self.domains.clear();
        for interface in 0..self.parameters.interfaces as u16 {
            self.domains.push(domain_of(interface));
            self.give(interface, now);
        }
    }

    /// System software gives a queue to its domain.
    fn give(&mut self, interface: u16, now: Time) {
        let domain = self.domains[usize::from(interface)];
        self.mailbox.open(interface, domain);
        self.bench.cross(now, Crossing::Opened { interface, domain });
    }

    /// A queue is given to another domain behind the packets so far, whatever is in it.
    fn open_again(&mut self, now: Time) {
        let interface = self.bench.below(self.queues) as u16;
        self.domains[usize::from(interface)].0 ^= 1 << self.bench.below(16);
        self.give(interface, now);
        self.seen.bursts.count("queues opened again");
    }

    /// A value at one of its limits, or any below the second.
    fn at_limit_or_any(&mut self, most: u64) -> u64 {
        match self.bench.below(4) {
            0 => 0,
            1 => most,
            _ => self.bench.below(most + 1),
        }
    }

    /// The packet that was accepted last, or one that was before.
    fn accepted_before(&mut self) -> Option<SmallPacket> {
        let count = self.accepted.len() as u64;
        let back = if self.bench.below(2) == 0 || count == 0 { 0 } else { self.bench.below(count) };
        self.accepted.get(back as usize).copied()
    }

    fn any_packet(&mut self) -> SmallPacket {
        self.number = self.number.wrapping_add(1);
        let interfaces = u64::from(self.parameters.interfaces);
        let interface = match self.bench.below(100) {
            0 => interfaces as u16,
            // The last that a header can name.
            1 => (1 << 11) - 1,
            _ => self.bench.below(self.queues) as u16,
        };
        let own = self.domains.get(usize::from(interface)).copied().unwrap_or_default().0;
        let foreign = self.bench.in_thousand(20);
        let domain = if foreign { own ^ 1 << self.bench.below(16) } else { own };
        let small = self.bench.below(2) == 0;
        let bytes = if small { SIZES[self.bench.below(10) as usize] } else { self.bench.below(65) };
        let channel = ChannelId {
            interface: self.at_limit_or_any(0xFFFF) as u16,
            channel: self.at_limit_or_any(0xFFFF) as u16,
        };
        SmallPacket {
            head: Time::ZERO,
            from: EndpointId(self.at_limit_or_any(LAST_NODE) as u32),
            message: self.number,
            channel,
            bytes: Bytes::new(bytes),
            target: Some((interface, Pdid(domain))),
            damaged: false,
            payload: None,
        }
    }

    /// A time that the edge of this number is the first behind.
    fn before(&mut self, edge: u64) -> Time {
        let at = self.bench.clock.edge(edge);
        if self.bench.below(2) == 0 { at } else { Time::from_ps(at.as_ps() - self.bench.below(6000)) }
    }

    /// The next packet comes. Returns the time of its tail.
    fn packet(&mut self) -> Time {
        if self.burst == 0 {
            // Some bursts bring more packets than there are slots, faster than they are checked.
            self.dense = self.bench.below(8) == 0;
            self.burst = 1 + self.bench.below(if self.dense { 600 } else { 100 });
            self.take_waiting(Time::NEVER);
            self.edge = self.edge.max(self.bench.clock.edges_before(self.free)) + self.bench.below(200);
            self.queues = [1, 2, 6, u64::from(self.parameters.interfaces)][self.bench.below(4) as usize];
        }
        self.burst -= 1;
        let again = if self.bench.in_thousand(30) { self.accepted_before() } else { None };
        let packet = again.unwrap_or_else(|| self.any_packet());
        let words = words_of(&packet);
        let gap = if self.dense || self.bench.below(2) == 0 { 0 } else { 1 + self.bench.below(8) };
        self.seen.bursts.count(if gap == 0 { "without a gap" } else { "with one" });
        let first = self.edge + gap;
        let slow = !self.dense && self.bench.below(3) == 0;
        self.edge = first + words + if slow { self.bench.below(30) } else { 0 };
        let (head, tail) = (self.before(first), self.before(self.edge));
        let packet = SmallPacket { head, damaged: self.bench.in_thousand(30), ..packet };
        if slow {
            self.seen.bursts.count("tails that come late");
        }
        self.take_waiting(tail);
        if self.bench.in_thousand(10) {
            self.open_again(tail);
        }
        let came = Taken { head, tail };
        if self.waiting.is_empty() && self.mailbox.takes(came, words, self.parameters) == came {
            self.take(packet, came, came);
        } else {
            self.seen.bursts.count("packets without a slot");
            self.bench.cross(tail, Crossing::Waits(packet));
            self.waiting.push_back((packet, came));
        }
        tail
    }

    /// Takes packets that have waited, as far as there are slots by `until`.
    fn take_waiting(&mut self, until: Time) {
        while let Some((packet, came)) = self.waiting.front().copied() {
            let taken = self.mailbox.takes(came, words_of(&packet), self.parameters);
            if taken.tail > until {
                break;
            }
            self.waiting.pop_front();
            self.take(packet, came, taken);
        }
    }

    /// A packet is taken.
    fn take(&mut self, packet: SmallPacket, came: Taken, taken: Taken) {
        let packet = SmallPacket { head: taken.head, ..packet };
        let verdict = self.verdict(&packet, taken.tail);
        let free = self.bench.clock.later_edge(verdict.checked, if verdict.put { ENTRY_WORDS } else { 0 });
        self.mailbox.hold_slot(taken, came, free, self.parameters);
        self.bench.cross(taken.tail, Crossing::Arrived(Arrival { packet, verdict }));
        self.free = verdict.checked;
        self.note(&packet, &verdict);
    }

    /// The model's verdict on a packet, and what its process does with it.
    fn verdict(&mut self, packet: &SmallPacket, tail: Time) -> Verdict {
        let SmallPacket { head, target, damaged, from, message, .. } = *packet;
        let checked = self.mailbox.check(head, tail, self.parameters).ended;
        let (mut changes, (interface, domain)) = (Vec::new(), target.unwrap_or_default());
        if !damaged && self.mailbox.has_accepted(from, message) {
            return Verdict { checked, refusal: None, put: false };
        }
        let envelope = Envelope { interface, domain, damaged };
        let put = self.mailbox.put(tail, &envelope, self.parameters, &mut |change| changes.push(change));
        let refusal = put.err();
        changes.into_iter().for_each(|change| self.bench.cross(tail, Crossing::Queue(change)));
        let put = refusal.is_none();
        if put {
            self.mailbox.accept(from, message, self.parameters);
            // The first queue wraps around soonest; some entries are never taken.
            if interface == 0 || !self.bench.in_thousand(50) {
                self.mailbox.take(interface, tail + Span::from_ns(self.bench.below(20_000)));
            }
        }
        Verdict { checked, refusal, put }
    }

    fn note(&mut self, packet: &SmallPacket, verdict: &Verdict) {
        let seen = &mut self.seen;
        let Verdict { refusal, put, .. } = *verdict;
        match refusal {
            Some(Refusal::Damaged) => seen.refused.count("damaged"),
            Some(Refusal::Domain) => seen.refused.count("foreign"),
            Some(Refusal::Interface) => seen.refused.count("for nobody"),
            Some(Refusal::Full) => seen.refused.count("for a full queue"),
            None if !put => seen.put.count("repeated"),
            None => seen.put.count("put"),
        }
        let limits = [
            ("of 0 B", packet.bytes == Bytes::ZERO),
            ("of 1 B", packet.bytes == Bytes::new(1)),
            ("of 64 B", packet.bytes == Bytes::new(64)),
            ("domain 0xFFFF", packet.target.is_some_and(|(_, domain)| domain == Pdid(0xFFFF))),
            ("last node", u64::from(packet.from.0) == LAST_NODE),
            ("message 0", packet.message == 0),
        ];
        limits.into_iter().filter(|(_, is)| *is).for_each(|(name, _)| seen.limits.count(name));
        if put && let Some((interface, _)) = packet.target {
            if self.numbers.insert((packet.from, packet.message)) {
                self.accepted.push_front(*packet);
                self.accepted.truncate(MOST_REPEATED);
            } else {
                seen.put.count("repeated and forgotten");
            }
            seen.queues |= 1 << interface;
            let put = &mut self.put[usize::from(interface)];
            *put += 1;
            if put.is_multiple_of(u64::from(self.parameters.entries)) {
                seen.put.count("indices wrapped around");
            }
            if *put == 1 << 16 {
                seen.put.count("counts overflown");
            }
        }
    }
}

/// Words of a packet.
fn words_of(packet: &SmallPacket) -> u64 {
    2 + packet.bytes.div_ceil(Bytes::new(16))
}

/// The domain of an interface.
fn domain_of(interface: u16) -> Pdid {
    Pdid(DOMAINS.get(usize::from(interface)).copied().unwrap_or(100 + interface))
}
