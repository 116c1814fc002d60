//! Posts for a packetizer, and answers to its packets: late, refused, damaged, or none, so that it repeats
//! and gives up.

use crate::Bench;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use weft_fabric::ClassTag;
use weft_nic::gvas::Pdid;
use weft_nic::mailbox::Refusal;
use weft_nic::packetizer::{ChannelChange, ChannelId, Packetizer, PacketizerParameters, Parcel};
use weft_nic::ports::{Crossing, SmallAnswer, StoredParcel};
use weft_nic::reliability::Expiry;
use weft_units::{Bytes, EndpointId, Span, Time};

/// Interfaces that post.
const INTERFACES: u64 = 12;

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
    later: BinaryHeap<Reverse<(Time, u64, Later)>>,
    order: u64,
    /// When the way of stores is free, and packets that are made, with the time of that.
    port_free: Time,
    made: VecDeque<(Time, ChannelId, u32)>,
    link_free: Time,
    messages: u32,
    sent: u32,
    given_up: u32,
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
        messages: 0,
        sent: 0,
        given_up: 0,
    };
    stimulus.at(begin, Later::Post);
    while let Some(Reverse((now, _, later))) = stimulus.later.pop() {
        if now >= end {
            break;
        }
        stimulus.happen(now, later);
        stimulus.bench.advance(now)?;
    }
    let Stimulus { messages, sent, given_up, .. } = stimulus;
    Ok(format!("{messages} messages, {sent} packets, {given_up} given up"))
}

impl Stimulus<'_> {
    fn at(&mut self, at: Time, later: Later) {
        self.order += 1;
        self.later.push(Reverse((at, self.order, later)));
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
            Later::Answer { message, from, channel, accepted, damaged } => {
                let refusal = (!accepted).then_some(Refusal::Full);
                let answer = SmallAnswer { from, message, channel, refusal, damaged };
                self.bench.cross(now, Crossing::Answered(answer));
                if damaged {
                    return;
                }
                let mut changes = Vec::new();
                let answered =
                    self.packetizer.answered(message, accepted, &mut |change| changes.push(change));
                self.report(now, changes);
                if let Some((channel, _)) = answered {
                    self.serve_waiting(now, channel.interface);
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
        let parcel = Parcel {
            interface: self.bench.below(INTERFACES) as u16,
            to: EndpointId(1000 + self.bench.below(9) as u32),
            to_interface: self.bench.below(64) as u16,
            message: self.messages,
            bytes: Bytes::new(self.bench.below(65)),
            created_at: now,
            refused: 0,
            token: None,
            acknowledged: false,
            watch: false,
            class: ClassTag::default(),
        };
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
        // A store for each word, one after the other, as the port of the host has them.
        let words = 1 + parcel.bytes.div_ceil(Bytes::new(16));
        let came = self.port_free.max(now + Span::from_ns(100)) + self.bench.clock.cycles(words);
        self.port_free = came;
        let made = self.packetizer.start(came, self.parameters).ended;
        let domain = self.packetizer.domain(channel.interface);
        let stored = StoredParcel { channel, parcel, domain, came, payload: None };
        self.bench.cross(now, Crossing::Stored { parcel: stored, made });
        self.make(made, channel, parcel.message);
    }

    fn make(&mut self, made: Time, channel: ChannelId, message: u32) {
        self.made.push_back((made, channel, message));
        let at = made.max(self.link_free);
        self.at(at, Later::Send);
    }

    fn send(&mut self, now: Time) {
        let Some((made, channel, message)) = self.made.front().copied() else { return };
        if now < made.max(self.link_free) {
            let at = made.max(self.link_free);
            return self.at(at, Later::Send);
        }
        self.made.pop_front();
        let parcel = self.packetizer.parcel(channel).copied().filter(|parcel| parcel.message == message);
        let Some(parcel) = parcel else {
            return self.bench.cross(now, Crossing::Stale { channel, message });
        };
        self.sent += 1;
        if let Some(at) = self.packetizer.sent(now, channel, self.parameters) {
            self.at(at, Later::Timer(channel));
        }
        self.bench.cross(now, Crossing::Sent { channel, message });
        let words = 2 + parcel.bytes.div_ceil(Bytes::new(16));
        let wait = words + self.bench.below(20);
        self.link_free = now + self.bench.clock.cycles(wait);
        if !self.bench.in_thousand(60) {
            let delay = if self.bench.in_thousand(30) { 80_000 } else { 2_000 };
            let at = self.link_free + Span::from_ns(300 + self.bench.below(delay));
            let (accepted, damaged) = (!self.bench.in_thousand(60), self.bench.in_thousand(30));
            self.at(at, Later::Answer { message, from: parcel.to, channel, accepted, damaged });
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
                let made = self.packetizer.start(now, self.parameters).ended;
                self.bench.cross(now, Crossing::Repeated { channel, message, made });
                self.make(made, channel, message);
            }
            Expiry::GiveUp => {
                self.given_up += 1;
                self.serve_waiting(now, channel.interface);
            }
        }
    }
}
