//! Posts for a packetizer, and answers to its packets: late, refused, damaged, or none, so that it repeats
//! and gives up. Posts are on their way through the port of the host while time-outs end; answers come in the
//! cycles around the end of one, as far apart as their two words are on the bus. No two time-outs end in one
//! cycle: RTL and model serve such in another order. Some of what is refused is posted again at once, by its
//! number, while a second answer to the packet before is on its way. Interfaces are given to other domains
//! while their channels are ongoing.

use crate::{Bench, Bins};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::iter::once;
use weft_fabric::ClassTag;
use weft_nic::gvas::Pdid;
use weft_nic::mailbox::Refusal;
use weft_nic::packetizer::{
    ChannelChange, ChannelId, EnginePacket, Packetizer, PacketizerParameters, Parcel,
};
use weft_nic::ports::{Crossing, SmallAnswer, StoredParcel};
use weft_nic::reliability::Expiry;
use weft_units::{Bytes, EndpointId, Span, Time};

/// Interfaces that post.
const INTERFACES: u64 = 12;

/// Cycles behind a packet that has been answered before its turn: of an answer through the RTL, and of the
/// look-up of another packet, or of the packet where that is on the bus.
const STALE: u64 = 8;

/// Something that happens later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Later {
    Answer { message: u32, from: EndpointId, channel: ChannelId, accepted: bool, damaged: bool },
    Timer(ChannelId),
    Send,
    Post,
}

struct Stimulus<'a> {
    bench: &'a mut Bench,
    parameters: &'a PacketizerParameters,
    packetizer: Packetizer,
    /// By time; at one time answers before timers, as the network has them; then as they were planned.
    later: BinaryHeap<Reverse<(Time, bool, u64, Later)>>,
    order: u64,
    /// When the way of stores is free, and packets that are made, with the time of that.
    port_free: Time,
    made: VecDeque<EnginePacket>,
    link_free: Time,
    /// The time from which on the tail of another answer may come.
    answers_free: Time,
    messages: u32,
    /// The cycle in which the time-out of each channel that has been sent ends, and how often it has been
    /// repeated.
    ends: BTreeMap<ChannelId, u64>,
    repeated: BTreeMap<ChannelId, u32>,
    seen: Bins<11>,
}

pub(crate) fn run(bench: &mut Bench, parameters: &PacketizerParameters, end: Time) -> Result<String, String> {
    let mut packetizer = Packetizer::default();
    for interface in 0..INTERFACES as u16 {
        let domain = Pdid(100 + interface);
        packetizer.open(interface, domain);
        bench.cross(Time::ZERO, Crossing::Opened { interface, domain });
    }
    let begin = bench.clock.edge(400);
    let mut stimulus = Stimulus {
        bench,
        parameters,
        packetizer,
        later: BinaryHeap::new(),
        order: 0,
        port_free: begin,
        made: VecDeque::new(),
        link_free: begin,
        answers_free: begin,
        messages: 0,
        ends: BTreeMap::new(),
        repeated: BTreeMap::new(),
        seen: Bins::default(),
    };
    stimulus.at(begin, Later::Post);
    while let Some(Reverse((now, _, _, later))) = stimulus.later.pop() {
        if now >= end {
            break;
        }
        stimulus.happen(now, later);
        stimulus.bench.advance(now)?;
    }
    let told = stimulus.seen.tell(end >= stimulus.bench.clock.edge(crate::WHOLE_RUN))?;
    Ok(format!("{} messages, {told}", stimulus.messages))
}

impl Stimulus<'_> {
    fn at(&mut self, at: Time, later: Later) {
        self.order += 1;
        let is_answer = matches!(later, Later::Answer { .. });
        self.later.push(Reverse((at, !is_answer, self.order, later)));
    }

    fn happen(&mut self, now: Time, later: Later) {
        match later {
            Later::Post => {
                self.post(now);
                // Bursts, with pauses in which packets time out.
                let most = if self.bench.in_thousand(3) { 400_000 } else { 150 };
                let gap = Span::from_ns(1 + self.bench.below(most));
                self.at(now + gap, Later::Post);
            }
            Later::Send => self.send(now),
            Later::Timer(channel) => self.expired(now, channel),
            Later::Answer { .. } if now < self.answers_free => self.at(self.answers_free, later),
            Later::Answer { message, from, channel, accepted, damaged } => {
                self.answers_free = now + self.bench.clock.cycles(2);
                let refusal = (!accepted).then_some(Refusal::Full);
                let answer = SmallAnswer { from, message, channel, refusal, damaged };
                self.bench.cross(now, Crossing::Answered(answer));
                if damaged {
                    return;
                }
                let cycle = self.bench.clock.edges_before(now);
                if self.ends.get(&channel).is_some_and(|end| (cycle..cycle + 3).contains(end)) {
                    self.seen.count("answers as a time-out ends");
                }
                let mut changes = Vec::new();
                let answered = self.packetizer.answered(now, &answer, &mut |change| changes.push(change));
                self.report(now, changes);
                let Some(parcel) = answered else {
                    if self.packetizer.parcel(channel).is_some_and(|parcel| parcel.message == message) {
                        self.seen.count("answers to the post before");
                    }
                    return;
                };
                self.seen.count(if accepted { "acknowledged" } else { "refused" });
                self.ends.remove(&channel);
                self.serve_waiting(now, channel.interface);
                if !accepted && self.bench.in_thousand(500) {
                    self.post_parcel(now, parcel);
                }
            }
        }
    }

    fn report(&mut self, now: Time, changes: Vec<ChannelChange>) {
        changes.into_iter().for_each(|change| self.bench.cross(now, Crossing::Channel(change)));
    }

    fn post(&mut self, now: Time) {
        if self.packetizer.waiting() > 100 {
            return;
        }
        self.messages += 1;
        let interface = self.bench.below(INTERFACES) as u16;
        if self.bench.in_thousand(5) {
            self.seen.count("interfaces given to another domain");
            let domain = Pdid(100 + self.bench.below(1000) as u16);
            self.packetizer.open(interface, domain);
            self.bench.cross(now, Crossing::Opened { interface, domain });
        }
        let parcel = Parcel {
            interface,
            domain: self.packetizer.domain(interface),
            to: EndpointId(1000 + self.bench.below(9) as u32),
            to_interface: self.bench.below(64) as u16,
            is_request: self.messages.is_multiple_of(5),
            message: self.messages,
            bytes: Bytes::new(self.bench.below(65)),
            created_at: now,
            refused: 0,
            token: None,
            acknowledged: false,
            watch: false,
            class: ClassTag::default(),
        };
        self.post_parcel(now, parcel);
    }

    fn post_parcel(&mut self, now: Time, parcel: Parcel) {
        let mut changes = Vec::new();
        let channel = self.packetizer.post(now, parcel, self.parameters, &mut |change| changes.push(change));
        self.report(now, changes);
        if let Some(channel) = channel {
            self.store(now, channel, parcel);
        }
    }

    fn serve_waiting(&mut self, now: Time, interface: u16) {
        let mut changes = Vec::new();
        let next =
            self.packetizer.next_waiting(interface, self.parameters, &mut |change| changes.push(change));
        self.report(now, changes);
        if let Some((_, parcel, channel)) = next {
            self.store(now, channel, parcel);
        }
    }

    fn store(&mut self, now: Time, channel: ChannelId, parcel: Parcel) {
        // A store for each word, one after the other, as the port of the host has them; and cycles for stores
        // that clear channels which were refused: they come behind all else at the table.
        let words = 5 + parcel.bytes.div_ceil(Bytes::new(16));
        self.repeated.remove(&channel);
        let came = self.port_free.max(now + Span::from_ns(100)) + self.bench.clock.cycles(words);
        self.port_free = came;
        let edge = self.bench.clock.edge_at_or_after(came);
        self.packetizer.store(channel, edge);
        let made = self.packetizer.start(came, self.parameters).ended;
        let stored = StoredParcel { channel, parcel, came, payload: None };
        self.bench.cross(now, Crossing::Stored { parcel: stored, made });
        self.make(EnginePacket { came: edge, made, channel, message: parcel.message });
    }

    fn make(&mut self, packet: EnginePacket) {
        self.made.push_back(packet);
        let at = packet.made.max(self.link_free);
        self.at(at, Later::Send);
    }

    /// The engine makes a packet again, before those whose stores are still on their way.
    fn make_again(&mut self, now: Time, channel: ChannelId, message: u32) {
        let up = Packetizer::repetition(now, &self.parameters.clock);
        let later = self.packetizer.take_back(up, &mut self.made);
        later.iter().for_each(|_| self.seen.count("posts behind a repetition"));
        let repeated = EnginePacket { came: now, made: up, channel, message };
        for (packet, came) in
            once((repeated, up)).chain(later.into_iter().map(|packet| (packet, packet.came)))
        {
            let EnginePacket { channel, message, .. } = packet;
            let made = self.packetizer.start(came, self.parameters).ended;
            self.bench.cross(now, Crossing::Made { channel, message, made });
            self.make(EnginePacket { made, ..packet });
        }
    }

    fn send(&mut self, now: Time) {
        let Some(packet) = self.made.front().copied() else { return };
        let EnginePacket { made, channel, message, .. } = packet;
        if now < made.max(self.link_free) {
            let at = made.max(self.link_free);
            return self.at(at, Later::Send);
        }
        let repeated = self.repeated.get(&channel).copied().unwrap_or_default();
        let wait = self.parameters.reliability.timeout_after(repeated);
        let clock = &self.bench.clock;
        let end = clock.edges_before(now) + clock.edges_before(Time::ZERO + wait);
        if self.ends.values().any(|other| *other == end) {
            let next = clock.edge_after(now);
            return self.at(next, Later::Send);
        }
        self.made.pop_front();
        let Some(parcel) = self.packetizer.parcel_of(&packet).copied() else {
            let is_posted_again =
                self.packetizer.parcel(channel).is_some_and(|parcel| parcel.message == message);
            self.seen.count(match is_posted_again {
                false => "answered before their repetition",
                true => "posted again before their repetition",
            });
            // The RTL takes cycles to drop it, as the page has it, and a packet that is due in them is late.
            self.link_free = self.link_free.max(now + self.bench.clock.cycles(STALE));
            return self.bench.cross(now, Crossing::Stale { channel, message });
        };
        self.seen.count("sent");
        self.ends.insert(channel, end);
        if let Some(at) = self.packetizer.sent(now, channel, self.parameters) {
            self.at(at, Later::Timer(channel));
        }
        self.bench.cross(now, Crossing::Sent { channel, message });
        let words = 2 + parcel.bytes.div_ceil(Bytes::new(16));
        // The network has no place at times.
        let most = if self.bench.in_thousand(2) { 2_000 } else { 20 };
        let wait = words + self.bench.below(most);
        self.link_free = now + self.bench.clock.cycles(wait);
        // Some are never answered, and given up.
        if !self.bench.in_thousand(60) && !message.is_multiple_of(5000) {
            let mut at = self.link_free + Span::from_ns(300 + self.bench.below(2_000));
            if self.bench.in_thousand(30) {
                at = self.link_free + Span::from_ns(300 + self.bench.below(80_000));
            } else if self.bench.in_thousand(20) {
                // About as the time-out ends.
                at = self.bench.clock.edge(end - 6) + Span::from_ns(self.bench.below(60));
            }
            let (accepted, damaged) = (!self.bench.in_thousand(60), self.bench.in_thousand(30));
            let answer = Later::Answer { message, from: parcel.to, channel, accepted, damaged };
            self.at(at, answer);
            // A copy of the packet is answered in the same way.
            if !accepted && self.bench.in_thousand(500) {
                let again = at + Span::from_ns(self.bench.below(400));
                self.at(again, answer);
            }
        }
    }

    fn expired(&mut self, now: Time, channel: ChannelId) {
        let mut changes = Vec::new();
        let (expiry, _) =
            self.packetizer.expired(now, channel, self.parameters, &mut |change| changes.push(change));
        self.report(now, changes);
        match expiry {
            Expiry::Settled => {}
            Expiry::NotBefore(at) => self.at(at, Later::Timer(channel)),
            Expiry::Repeat => {
                let Some(message) = self.packetizer.parcel(channel).map(|parcel| parcel.message) else {
                    return;
                };
                self.seen.count("repeated");
                *self.repeated.entry(channel).or_default() += 1;
                self.make_again(now, channel, message);
            }
            Expiry::GiveUp => {
                self.seen.count("given up");
                self.ends.remove(&channel);
                self.serve_waiting(now, channel.interface);
            }
        }
    }
}
