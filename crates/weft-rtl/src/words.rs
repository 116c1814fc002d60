//! Packets as words on a bus.

use weft_nic::Header;
use weft_nic::gvas::Pdid;
use weft_nic::mailbox::Refusal;
use weft_nic::packetizer::ChannelId;
use weft_nic::ports::SmallPayload;
use weft_nic::wire::{ControlWords, PacketFields, PacketTarget};
use weft_units::{Address, Bytes, Clock, EndpointId, Span, Time};

/// A word on a bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BusWord {
    /// The cycle.
    pub cycle: u64,
    /// The bits.
    pub data: u128,
    /// Whether it is the last of its packet.
    pub last: bool,
}

/// A small message, or a request of a read, as it goes over the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SmallMessage {
    pub source: EndpointId,
    pub number: u32,
    pub channel: ChannelId,
    pub is_request: bool,
    pub to: EndpointId,
    pub to_interface: u16,
    pub domain: Pdid,
    pub bytes: Bytes,
    /// The bytes, where they are known.
    pub payload: Option<SmallPayload>,
}

impl SmallMessage {
    /// The words of its packet, header to footer.
    pub fn words(&self) -> Vec<u128> {
        let SmallMessage { source, number, channel, is_request, to, to_interface, domain, .. } = *self;
        let SmallMessage { bytes, payload, .. } = *self;
        let payload = match payload {
            Some(payload) => payload.into_iter().take(bytes.get() as usize).collect(),
            None => made_up(source, number, bytes),
        };
        let target = PacketTarget::new(domain, to, to_interface, Address::default());
        let header = if is_request { Header::ReadRequest(channel) } else { Header::Small(channel) };
        let size = bytes.get() as u32;
        let control = target.and_then(|target| {
            PacketFields { target, header, size, source, number, ends_transfer: false }.encode(&payload)
        });
        // A machine whose nodes do not fit the header is refused before.
        packet_words(&control.expect("nodes and interfaces fit the header"), &payload)
    }

    /// The words that a process stores: payload, then descriptor, which is the header without what the block
    /// adds. It says the kind of a request.
    pub fn stored(&self) -> (Vec<u128>, u128) {
        const ADDED: u128 = 0xFFFF << 112 | ((1 << 22) - 1);
        const KIND: u128 = 0xFF << 40;
        let words = self.words();
        let payload = words[1..words.len() - 1].iter().map(|word| word.swap_bytes()).collect();
        (payload, words[0] & !if self.is_request { ADDED } else { ADDED | KIND })
    }

    /// The entry of a mailbox: the line of memory that it becomes, word by word.
    pub fn entry(&self) -> [u128; 4] {
        let words = self.words();
        let payload = &words[1..words.len() - 1];
        std::array::from_fn(|place| payload.get(place).map_or(0, |word| word.swap_bytes()))
    }
}

/// The answer of `from` to a message that `to` has sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AnswerWords {
    pub from: EndpointId,
    pub to: EndpointId,
    pub number: u32,
    pub channel: ChannelId,
    pub refusal: Option<Refusal>,
}

impl AnswerWords {
    /// Header and footer.
    pub fn words(&self) -> [u128; 2] {
        let AnswerWords { from: source, to, number, channel, refusal } = *self;
        let refused = |refusal| Header::Refused(channel, refusal);
        let header = refusal.map_or(Header::Acknowledgement(channel), refused);
        let target = PacketTarget::new(Pdid(0), to, 0, Address::default());
        let control = target.and_then(|target| {
            PacketFields { target, header, size: 0, source, number, ends_transfer: false }.encode(&[])
        });
        let ControlWords { header, footer } = control.expect("nodes fit the header");
        [header, footer].map(u128::from_be_bytes)
    }
}

/// The refusal in the answer of a mailbox, header and footer; `None`: it acknowledges, or is no answer.
pub(crate) fn answer_of(header: u128, footer: u128) -> Option<Refusal> {
    let control = ControlWords { header: header.to_be_bytes(), footer: footer.to_be_bytes() };
    match PacketFields::decode(&control, &[]).ok()?.header {
        Header::Refused(_, refusal) => Some(refusal),
        _ => None,
    }
}

/// The number and the channel of a small message in the footer of its packet.
pub(crate) fn message_of(footer: u128) -> (u32, ChannelId) {
    let channel = ChannelId { interface: (footer >> 48) as u16, channel: (footer >> 32) as u16 };
    ((footer >> 96) as u32, channel)
}

/// Bytes of a message that nobody knows: by message and offset, so that a word in another's place is found.
fn made_up(source: EndpointId, number: u32, bytes: Bytes) -> Vec<u8> {
    let of_message = (source.0.wrapping_mul(0x9E37_79B1) ^ number.wrapping_mul(0x85EB_CA6B)) >> 16;
    (0..bytes.get()).map(|offset| (of_message as u8).wrapping_add(offset as u8)).collect()
}

/// Header, payload in whole words, footer.
pub(crate) fn packet_words(control: &ControlWords, payload: &[u8]) -> Vec<u128> {
    let mut words = vec![u128::from_be_bytes(control.header)];
    words.extend(payload.chunks(16).map(|chunk| {
        let mut word = [0; 16];
        word[..chunk.len()].copy_from_slice(chunk);
        u128::from_be_bytes(word)
    }));
    words.push(u128::from_be_bytes(control.footer));
    words
}

/// The cycles of a time, if they are whole and every wait of that time is so many edges long.
pub(crate) fn cycles(clock: &Clock, span: Span) -> Option<u64> {
    let cycles = clock.edges_before(Time::ZERO + span);
    (clock.cycles(cycles) == span && clock.edge(cycles + 1) == clock.edge(1) + span).then_some(cycles)
}

/// The number of the edge that `time` is at, or that comes next.
pub(crate) fn edge(clock: &Clock, time: Time) -> u64 {
    clock.edges_before(time)
}
