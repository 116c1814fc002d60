//! Packets.

use crate::channel::Channel;
use crate::flags::PacketFlags;
use crate::multicast::MulticastGroup;
use crate::traffic_class::ClassTag;
use serde::{Deserialize, Serialize};
use weft_congestion::Stamp;
use weft_topo::{Address, RouteState};
use weft_units::{Bytes, EndpointId, Span, Time};

/// Which part of its message a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum MessagePart {
    /// All of it.
    Whole,
    /// One of several packets.
    Piece,
}

/// Eight bytes of the interface's header: the network carries them and does not read them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HeaderBits(u64);

impl HeaderBits {
    /// Nothing to carry.
    pub const EMPTY: HeaderBits = HeaderBits(0);

    /// The eight bytes as a number.
    #[inline]
    pub const fn from_bits(bits: u64) -> HeaderBits {
        HeaderBits(bits)
    }

    /// The number given to [`HeaderBits::from_bits`].
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The time at which the packet's message was offered to the interface.
    #[inline]
    pub const fn offered(time: Time) -> HeaderBits {
        HeaderBits(time.as_ps())
    }

    /// The time given to [`HeaderBits::offered`].
    #[inline]
    pub const fn time_offered(self) -> Time {
        Time::from_ps(self.0)
    }
}

/// The kind of a packet, by a number that its interface gives it.
///
/// ```text
///    7   6           0
///  ┌───┬──────────────┐
///  │ A │ number       │   A: the packet only answers another
///  └───┴──────────────┘
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PacketLabel(u8);

impl PacketLabel {
    /// Set in the label of an acknowledgement: the one bit that the network reads.
    const ACKNOWLEDGEMENT: u8 = 0x80;

    /// The label of a packet that carries data or asks for something.
    ///
    /// # Panics
    /// A number of 128 or more.
    pub const fn data(number: u8) -> PacketLabel {
        assert!(number < PacketLabel::ACKNOWLEDGEMENT, "a label's number has seven bits");
        PacketLabel(number)
    }

    /// The label of a packet that only answers another: acknowledgements are counted apart on every link.
    ///
    /// # Panics
    /// A number of 126 or more: these are the network's own.
    pub const fn acknowledgement(number: u8) -> PacketLabel {
        assert!(number < PacketLabel::ACKNOWLEDGEMENT - 2, "a label's number is below 126");
        PacketLabel(number | PacketLabel::ACKNOWLEDGEMENT)
    }

    /// The label of notices of congestion control, which the network itself sends and reads.
    pub(crate) const NOTICE: PacketLabel = PacketLabel(u8::MAX);

    /// The label of packets that a full buffer has trimmed. Like answers they go before data.
    pub(crate) const TRIMMED: PacketLabel = PacketLabel(u8::MAX - 1);

    /// The label as it is packed: kinds of packets are ordered by it.
    #[inline]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The label that is packed so.
    #[inline]
    pub const fn from_bits(bits: u8) -> PacketLabel {
        PacketLabel(bits)
    }

    /// Whether the packet only answers another.
    #[inline]
    pub const fn is_acknowledgement(self) -> bool {
        self.0 & PacketLabel::ACKNOWLEDGEMENT != 0
    }
}

/// The end points of a packet, and its message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addressing {
    /// The endpoint that sends the packet.
    pub source: EndpointId,
    /// The endpoint that the packet is for.
    pub destination: EndpointId,
    /// The packet's message, counted by the source.
    pub message: u32,
}

/// Age of a packet since its interface handed it over: 16 bits in the header, in units of 2¹⁴ ps (16.4 ns).
/// Each switch adds the time that the packet was in it and on the link, as hardware does. From 1.07 ms on all
/// packets are as old.
///
/// # Source
/// Abts and Weisser, "Age-Based Packet Arbitration in Large-Radix k-ary n-cubes", SC 2007.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Age(u16);

impl Age {
    /// Binary logarithm of its unit in ps.
    const UNIT: u32 = 14;

    /// The age after another `span`, rounded to the nearest unit.
    #[inline]
    pub(crate) fn after(self, span: Span) -> Age {
        let units = span.as_ps().saturating_add(1 << (Age::UNIT - 1)) >> Age::UNIT;
        Age(self.0.saturating_add(u16::try_from(units).unwrap_or(u16::MAX)))
    }

    /// The age in ps, after another `span` that the header does not have yet. The oldest of all where the
    /// header is full.
    #[inline]
    pub(crate) fn exact_after(self, span: Span) -> u64 {
        if self.0 == u16::MAX {
            u64::MAX
        } else {
            (u64::from(self.0) << Age::UNIT).saturating_add(span.as_ps())
        }
    }
}

/// A packet. Its identity is (source, message, offset of the piece), never where it is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Packet {
    /// The endpoint that sends it.
    pub source: EndpointId,
    /// The endpoint that it is for.
    pub destination: EndpointId,
    /// The message that it belongs to, counted by the source.
    pub message: u32,
    /// Payload bytes.
    pub bytes: u32,
    /// The part of the interface's header that travels with the packet.
    pub carried: HeaderBits,
    /// The destination's packed address.
    pub(crate) address: Address,
    /// State of the routing: what it remembers from switch to switch.
    pub(crate) route: RouteState,
    /// Serialization time on the last link, from head to tail, in ps.
    pub(crate) serialization: u32,
    /// Port of a channel of a switch: see [`Packet::channel`].
    port: u16,
    /// Virtual channel of the same. Until the packet is injected, its [`ClassTag`].
    vc: u8,
    /// Links crossed so far, saturating.
    pub hops: u8,
    flags: PacketFlags,
    /// The kind of packet, as the interface numbers them.
    pub label: PacketLabel,
    /// Age when its head came to where it is, counted only where arbiters ask for it. Under congestion
    /// control the value of the packet's stamp; where links wake ahead of packets, the lead of its signal.
    pub(crate) age: Age,
}

impl Packet {
    /// A packet that has not been injected, with a payload of `bytes`. Its label is 0.
    pub fn new(addressing: Addressing, bytes: u32, carried: HeaderBits, part: MessagePart) -> Packet {
        let Addressing { source, destination, message } = addressing;
        Packet {
            source,
            destination,
            message,
            bytes,
            carried,
            address: Address::default(),
            route: RouteState::default(),
            serialization: 0,
            port: 0,
            vc: 0,
            hops: 0,
            flags: PacketFlags::of(part),
            label: PacketLabel::default(),
            age: Age::default(),
        }
    }

    /// The same packet as part of a block of its message: where the routing
    /// [spreads blocks](weft_topo::Routing::spreads_blocks), packets of equal numbers between two endpoints
    /// stay in order, and others take other paths. 0: of no block.
    #[inline]
    pub fn in_block(self, block: u32) -> Packet {
        Packet { route: RouteState(block), ..self }
    }

    /// The same packet in the traffic class of its message.
    #[inline]
    pub fn of_class(self, tag: ClassTag) -> Packet {
        Packet { vc: tag.bits(), ..self }
    }

    /// The traffic class that its interface gave it. Only until it is injected: then its virtual channel says
    /// the class, and lies where this did.
    #[inline]
    pub(crate) fn class_tag(&self) -> ClassTag {
        ClassTag::from_bits(self.vc)
    }

    /// Which part of its message it is.
    #[inline(always)]
    pub fn part(&self) -> MessagePart {
        self.flags.part()
    }

    /// Whether every link that it crosses is to be [reported](crate::Interface::hop).
    #[inline(always)]
    pub fn is_watched(&self) -> bool {
        self.flags.is_watched()
    }

    /// Has every link that it crosses reported, or not.
    #[inline(always)]
    pub fn watch(&mut self, is_watched: bool) {
        self.flags = self.flags.watched(is_watched);
    }

    /// Whether a link has corrupted it. It travels on; the interface that receives it finds out.
    #[inline(always)]
    pub fn is_corrupted(&self) -> bool {
        self.flags.is_corrupted()
    }

    /// A link has corrupted it.
    #[inline(always)]
    pub fn corrupt(&mut self) {
        self.flags = self.flags.corrupted(true);
    }

    /// The channel of a switch that concerns the packet now. On its way to a switch, and until that has
    /// routed it: the channel of the input that it arrives by. From then until it has been sent: that of the
    /// output that it leaves by.
    #[inline(always)]
    pub(crate) fn channel(&self) -> Channel {
        Channel { port: self.port, vc: self.vc }
    }

    /// The packet has been routed, or injected: from now on `channel` is its [channel](Packet::channel).
    #[inline(always)]
    pub(crate) fn set_channel(&mut self, channel: Channel) {
        Channel { port: self.port, vc: self.vc } = channel;
    }

    /// The virtual channel of the routing by which it came to the switch of its endpoint. Only where
    /// endpoints have [receiving buffers](crate::ReceiveSpace): its routing is over, so that it lies where
    /// the routing's state did.
    #[inline]
    pub fn last_channel(&self) -> u8 {
        self.route.0 as u8
    }

    /// The packet is injected: its routing begins with its block, or with nothing.
    #[inline(always)]
    pub(crate) fn start_route(&mut self, block_mask: u32) {
        self.route.0 &= block_mask;
    }

    /// The packet has been sent to this port of a switch, on the virtual channel that it leaves by.
    #[inline(always)]
    pub(crate) fn set_arrival_port(&mut self, port: u16) {
        self.port = port;
    }

    /// The part of it that congestion control writes. A value lies where arbiters by age keep the age.
    #[inline]
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp { ecn: self.flags.has_ecn(), value: self.age.0 }
    }

    /// Writes [`Packet::stamp`].
    #[inline]
    pub(crate) fn set_stamp(&mut self, stamp: Stamp) {
        self.flags = self.flags.ecn(stamp.ecn);
        self.age = Age(stamp.value);
    }

    /// The time by which its [wake-up signal](crate::wake_signal) is ahead, in units of the network.
    #[inline]
    pub(crate) fn lead(&self) -> u16 {
        self.age.0
    }

    /// Writes [`Packet::lead`].
    #[inline]
    pub(crate) fn set_lead(&mut self, lead: u16) {
        self.age = Age(lead);
    }

    /// The header of the packet alone. It keeps the stamp, and has the packet's traffic class where the
    /// interface's bits were.
    pub(crate) fn trimmed(&self, class: u8) -> Packet {
        let mut header = Packet { bytes: 0, carried: HeaderBits::from_bits(class.into()), ..*self };
        header.label = PacketLabel::TRIMMED;
        header
    }

    /// The traffic class of the packet that this header is [left of](Packet::trimmed).
    pub(crate) fn class_before(&self) -> u8 {
        debug_assert!(self.label == PacketLabel::TRIMMED, "headers alone say so");
        self.carried.bits() as u8
    }

    /// Whether it is for a [group](MulticastGroup), and switches copy it. To a member comes a packet for that
    /// member.
    #[inline(always)]
    pub fn is_multicast(&self) -> bool {
        MulticastGroup::of(self.destination).is_some()
    }

    /// The payload.
    #[inline]
    pub fn payload(&self) -> Bytes {
        Bytes::new(u64::from(self.bytes))
    }

    /// Serialization time on the last link that it has crossed: from head to tail.
    #[inline]
    pub fn serialization(&self) -> Span {
        Span::from_ps(u64::from(self.serialization))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches an age that begins anew when its bits are used up, or loses what each link adds.
    #[test]
    fn ages_add_up_and_stay_at_their_end() {
        let unit = Span::from_ps(1 << 14);
        let mut age = Age::default();
        (0..1_000).for_each(|_| age = age.after(unit));
        assert_eq!(age, Age(1_000));
        assert_eq!(age.after(Span::from_ps(8_191)), age);
        assert_eq!(age.after(Span::from_ps(8_192)), Age(1_001));
        assert_eq!(age.exact_after(Span::from_ps(5)), (1_000 << 14) + 5);
        let oldest = age.after(Span::from_us(1_100));
        assert_eq!((oldest, oldest.after(unit), oldest.exact_after(unit)), (Age(u16::MAX), oldest, u64::MAX));
    }

    /// Catches a label whose kinds collide, and an acknowledgement that is counted as data.
    #[test]
    fn labels_of_data_and_of_acknowledgements_are_apart() {
        for number in 0..126 {
            let (data, answer) = (PacketLabel::data(number), PacketLabel::acknowledgement(number));
            assert_eq!((data.0, answer.0), (number, number | 0x80));
            assert_eq!((data.is_acknowledgement(), answer.is_acknowledgement()), (false, true));
        }
    }
}
