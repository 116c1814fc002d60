//! The inputs of the RTL of the packetizer, cycle by cycle.
//!
//! The last store of a parcel, its descriptor, is on the bus in the cycle that ends with the edge at which
//! the model has it in the block. The network takes a packet in the cycle in which the model's does, and not
//! before.

use super::NAME;
use crate::library::{Instance, RtlError, RtlLibrary, RtlPort};
use crate::ports::{OfferedWord, PagePorts, StreamPorts, reset};
use crate::words::{AnswerWords, BusWord, SmallMessage, edge};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use weft_nic::gvas::Pdid;
use weft_nic::packetizer::ChannelId;
use weft_nic::ports::{SmallAnswer, StoredParcel};
use weft_units::{Clock, EndpointId, Time};

/// Registers of the system behind the pages of processes.
const SYSTEM: u32 = 1 << 18;
/// The place of a channel's descriptor.
const DESCRIPTOR: u32 = 0x40;
/// Cycles after which the block is at rest, where nothing comes and no answer is awaited.
const REST: u64 = 40;
/// The states of channels that are answered, as the RTL numbers them: acknowledged, refused, timed out.
const ANSWERED: std::ops::RangeInclusive<u128> = 2..=4;

/// The ports.
pub(super) struct PacketizerPorts {
    pages: PagePorts,
    number: RtlPort,
    /// Packets to the network, and answers from it.
    packets: StreamPorts,
    answers: StreamPorts,
    offered_number: RtlPort,
    change_valid: RtlPort,
    change_channel: RtlPort,
    change_state: RtlPort,
}

/// A word that is stored in a cycle, or later.
#[derive(Clone, Copy)]
struct PageStore {
    cycle: u64,
    address: u32,
    data: u128,
    /// The number of the message, of a descriptor.
    number: u32,
}

impl PageStore {
    /// The interface of the page.
    fn interface(&self) -> u16 {
        (self.address >> 12 & 0x3F) as u16
    }
}

/// A post to a channel.
#[derive(Clone, Copy)]
struct HeldPost {
    small: SmallMessage,
    /// The cycle of its last store.
    stored: u64,
}

/// A packet that the engine has made, and that the network has not taken.
#[derive(Clone)]
struct MadePacket {
    cycle: u64,
    channel: ChannelId,
    message: u32,
    /// The cycle of the last store of its post.
    stored: u64,
    words: VecDeque<u128>,
}

/// A packet that the network takes from a cycle on.
#[derive(Clone)]
struct Sending {
    channel: ChannelId,
    message: u32,
    /// The cycle of the last store of its post.
    stored: u64,
    /// The cycle in which the engine has made it.
    made: u64,
    from: u64,
    words: VecDeque<u128>,
    use_of_it: PacketUse,
}

/// The use of a packet whose turn has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PacketUse {
    /// The network takes it.
    Sent,
    /// The model has not sent it. The RTL has seen the answer too, or offers the packet already.
    Stale,
    /// The RTL offers it: it is taken and dropped.
    Dropped,
}

/// The rule by which the network takes words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NetworkTakes {
    /// Those whose turn has come.
    InTurn,
    /// Whatever is offered: of a look ahead.
    All,
}

/// The outputs of a cycle.
pub(super) struct PacketizerOutputs {
    /// Whether the network takes a word.
    pub taken: bool,
    pub valid: u128,
    pub data: u128,
    pub last: u128,
    /// The number of the message whose packet is offered, where its header is on the bus.
    pub offered: Option<u32>,
    /// The word that it takes in the model, and whether it is the last; `None`: it takes none, or drops it.
    pub expected: Option<(u128, bool)>,
    /// Whether a packet may be offered that the network does not take yet.
    pub may_be_offered: bool,
    /// The number of a channel that changes, and that of its state.
    pub change: Option<(usize, u128)>,
}

/// The inputs that are to come, and what the RTL has not done.
#[derive(Clone)]
pub(super) struct PacketizerInputs {
    channels: u32,
    /// The next cycle.
    pub cycle: u64,
    rests_from: u64,
    stores: VecDeque<PageStore>,
    /// Stores that give interfaces to domains: they may come later than they are due, and give way to others.
    openings: VecDeque<PageStore>,
    /// By interface: the domain that it is given to last.
    domains: Vec<Pdid>,
    answers: VecDeque<BusWord>,
    made: VecDeque<MadePacket>,
    sending: VecDeque<Sending>,
    /// By channel: the last post to it.
    held: Vec<Option<HeldPost>>,
    /// Channels of the RTL that are ongoing, by their numbers among all.
    ongoing: BTreeSet<usize>,
}

/// The RTL of the packetizer of an endpoint, after its reset.
pub(super) fn begin(
    library: &Arc<RtlLibrary>,
    endpoint: EndpointId,
) -> Result<(Instance, PacketizerPorts, PacketizerInputs), RtlError> {
    let mut rtl = library.create(NAME)?;
    let channels = library.parameter(NAME, "CHANNELS")? as u32;
    let all = library.parameter(NAME, "INTERFACES")? as u32 * channels;
    let ports = PacketizerPorts::begin(&mut rtl, all)?;
    reset(&mut rtl, endpoint, u64::from(all) + 2)?;
    Ok((rtl, ports, PacketizerInputs::new(channels, all)))
}

impl PacketizerPorts {
    /// The ports, with those set that do not change.
    fn begin(rtl: &mut Instance, channels: u32) -> Result<PacketizerPorts, RtlError> {
        let pages = PagePorts::begin(rtl, 19)?;
        let port = |name: &str, bits| rtl.port(name, bits);
        Ok(PacketizerPorts {
            pages,
            number: port("number", 32)?,
            packets: StreamPorts::to_network(rtl)?,
            answers: StreamPorts::from_network(rtl)?,
            offered_number: port("offered_number", 32)?,
            change_valid: port("change_valid", 1)?,
            change_channel: port("change_channel", channels.trailing_zeros())?,
            change_state: port("change_state", 3)?,
        })
    }
}

impl PacketizerInputs {
    fn new(channels: u32, all: u32) -> PacketizerInputs {
        PacketizerInputs {
            channels,
            cycle: 0,
            rests_from: 0,
            stores: VecDeque::new(),
            openings: VecDeque::new(),
            domains: vec![Pdid(0); (all / channels) as usize],
            answers: VecDeque::new(),
            made: VecDeque::new(),
            sending: VecDeque::new(),
            held: vec![None; all as usize],
            ongoing: BTreeSet::new(),
        }
    }

    /// The number of a channel among those of all interfaces.
    pub fn index(&self, channel: ChannelId) -> usize {
        usize::from(channel.interface) * self.channels as usize + usize::from(channel.channel)
    }

    /// Channels of all interfaces.
    pub fn all(&self) -> usize {
        self.held.len()
    }

    /// System software gives an interface to a domain, behind what has been stored.
    pub fn open(&mut self, interface: u16, domain: Pdid, cycle: u64) {
        let known = &mut self.domains[usize::from(interface)];
        if *known == domain {
            return;
        }
        *known = domain;
        let address = SYSTEM | u32::from(interface) << 12;
        let before = self.stores.iter().chain(&self.openings).filter(|store| store.interface() == interface);
        let cycle = before.map(|store| store.cycle + 1).max().unwrap_or(0).max(cycle);
        self.openings.push_back(PageStore { cycle, address, data: domain.0.into(), number: 0 });
    }

    /// A process of the endpoint stores a parcel: its payload, and then its descriptor in the cycle that ends
    /// when it came.
    pub fn stored(&mut self, stored: &StoredParcel, endpoint: EndpointId, clock: &Clock) {
        let StoredParcel { channel, parcel, came, payload } = *stored;
        let small = SmallMessage {
            source: endpoint,
            number: parcel.message,
            channel,
            is_request: parcel.is_request,
            to: parcel.to,
            to_interface: parcel.to_interface,
            domain: parcel.domain,
            bytes: parcel.bytes,
            payload,
        };
        let behind = edge(clock, came);
        let (payload, descriptor) = small.stored();
        let place = u32::from(channel.interface) << 12 | u32::from(channel.channel) << 8;
        let count = payload.len() as u64;
        // A process that has ended has its messages sent, when the interface may be another's.
        self.open(channel.interface, parcel.domain, self.cycle);
        for (word, data) in payload.into_iter().enumerate() {
            let cycle = (behind + word as u64).saturating_sub(1 + count);
            self.stores.push_back(PageStore { cycle, address: place + 16 * word as u32, data, number: 0 });
        }
        let (cycle, address) = (behind.saturating_sub(1), place + DESCRIPTOR);
        self.stores.push_back(PageStore { cycle, address, data: descriptor, number: parcel.message });
        let index = self.index(channel);
        self.held[index] = Some(HeldPost { small, stored: cycle });
    }

    /// The engine has made a packet by this cycle, and not by that of which it was said before.
    pub fn made(&mut self, channel: ChannelId, message: u32, cycle: u64) {
        let held = self.held[self.index(channel)].filter(|held| held.small.number == message);
        let Some(HeldPost { small, stored }) = held else { return };
        let is_it = |made: &&mut MadePacket| (made.channel, made.stored) == (channel, stored);
        match self.made.iter_mut().find(is_it) {
            Some(made) => made.cycle = cycle,
            None => {
                let words = small.words().into();
                self.made.push_back(MadePacket { cycle, channel, message, stored, words });
            }
        }
    }

    /// The network takes a packet from a cycle on, or its turn has come and it is stale.
    pub fn turn(&mut self, channel: ChannelId, message: u32, from: u64, stale: bool) {
        let is_it = |made: &MadePacket| (made.channel, made.message) == (channel, message);
        let Some(place) = self.made.iter().position(is_it) else { return };
        if let Some(made) = self.made.remove(place) {
            let use_of_it = if stale { PacketUse::Stale } else { PacketUse::Sent };
            let MadePacket { cycle: made, stored, words, .. } = made;
            self.sending.push_back(Sending { channel, message, stored, made, from, words, use_of_it });
        }
    }

    /// The tail of an answer to the endpoint has come at `at`.
    pub fn answered(&mut self, answer: &SmallAnswer, endpoint: EndpointId, at: Time, clock: &Clock) {
        let SmallAnswer { from, message: number, channel, refusal, damaged } = *answer;
        let answer = AnswerWords { from, to: endpoint, number, channel, refusal };
        let behind = edge(clock, at);
        let [header, footer] = answer.words();
        let footer = footer ^ u128::from(damaged);
        self.answers.push_back(BusWord { cycle: behind.saturating_sub(2), data: header, last: false });
        self.answers.push_back(BusWord { cycle: behind.saturating_sub(1), data: footer, last: true });
    }

    /// The next cycle in which something comes or is awaited; `None`: the block is idle.
    pub fn next_cycle(&self) -> Option<u64> {
        if !self.ongoing.is_empty() || self.cycle < self.rests_from {
            return Some(self.cycle);
        }
        let stores = [&self.stores, &self.openings];
        let stores = stores.into_iter().filter_map(|stores| stores.iter().map(|store| store.cycle).min());
        let answer = self.answers.front().map(|word| word.cycle);
        let sending = self.sending.front().map(|sending| sending.from);
        Some(stores.chain(answer).chain(sending).min()?.max(self.cycle))
    }

    /// A cycle of the RTL.
    pub fn step(
        &mut self,
        rtl: &mut Instance,
        ports: &PacketizerPorts,
        cycle: u64,
        takes: NetworkTakes,
    ) -> PacketizerOutputs {
        let is_due = |store: &PageStore| store.cycle <= cycle;
        let urgent = self.stores.front().copied().filter(is_due);
        let opening = self.openings.iter().position(is_due).filter(|_| urgent.is_none());
        let store = urgent.or_else(|| self.openings.get(opening?).copied());
        let answer = self.answers.front().copied().filter(|word| word.cycle <= cycle);
        let in_turn = |sending: &Sending| sending.from <= cycle && sending.use_of_it != PacketUse::Stale;
        let ready = takes == NetworkTakes::All || self.sending.front().is_some_and(in_turn);
        ports.pages.store(rtl, store.map(|store| (store.address, store.data)));
        if let Some(store) = store {
            rtl.set(ports.number, store.number.into());
        }
        ports.answers.offer(rtl, answer);
        ports.packets.set_ready(rtl, ready);
        rtl.cycle();
        self.cycle = cycle + 1;
        if store.is_some() || answer.is_some() || ready {
            self.rests_from = cycle + REST;
        }
        if let Some(store) = store
            && ports.pages.is_ready(rtl)
        {
            match opening {
                Some(place) => drop(self.openings.remove(place)),
                None => drop(self.stores.pop_front()),
            }
            if store.address & (SYSTEM | 0xFF) == DESCRIPTOR {
                let channel = (store.address >> 8 & 0xF) as u16;
                self.ongoing.insert(self.index(ChannelId { interface: store.interface(), channel }));
            }
        }
        if answer.is_some() && ports.answers.is_ready(rtl) {
            self.answers.pop_front();
        }
        let change = (rtl.get(ports.change_valid) != 0)
            .then(|| (rtl.get(ports.change_channel) as usize, rtl.get(ports.change_state)));
        if let Some((channel, state)) = change
            && ANSWERED.contains(&state)
        {
            self.ongoing.remove(&channel);
        }
        let OfferedWord { valid, data, last } = ports.packets.offered(rtl);
        let mut outputs = PacketizerOutputs {
            taken: ready,
            valid,
            data,
            last,
            offered: (valid != 0).then(|| rtl.get(ports.offered_number) as u32),
            expected: None,
            may_be_offered: self.made.iter().any(|made| made.cycle <= cycle)
                || self.sending.iter().any(|sending| sending.made <= cycle),
            change,
        };
        if takes == NetworkTakes::InTurn {
            self.take_word(cycle, &mut outputs);
        }
        outputs
    }

    /// The network takes a word, or a packet turns out to be stale: before its turn, or in it where it is
    /// made then.
    fn take_word(&mut self, cycle: u64, outputs: &mut PacketizerOutputs) {
        let Some(sending) = self.sending.front() else { return };
        let last = self.held[self.index(sending.channel)].map(|held| held.stored);
        let Some(sending) = self.sending.front_mut() else { return };
        if outputs.taken && sending.use_of_it == PacketUse::Dropped && outputs.valid == 0 {
            // It is withdrawn meanwhile.
            self.sending.pop_front();
        } else if outputs.taken {
            let word = sending.words.pop_front().unwrap_or_default();
            if sending.use_of_it == PacketUse::Sent {
                outputs.expected = Some((word, sending.words.is_empty()));
            }
            if sending.words.is_empty() {
                self.sending.pop_front();
            }
        } else if sending.use_of_it == PacketUse::Stale && sending.from.max(sending.made + 1) <= cycle + 1 {
            // Where the channel has been stored to since, it is a packet of that post which is offered.
            let is_last = last.is_none_or(|last| last == sending.stored || last > cycle);
            if is_last && outputs.offered == Some(sending.message) {
                sending.use_of_it = PacketUse::Dropped;
            } else {
                self.sending.pop_front();
            }
        }
    }
}
