//! The trait of algorithms, and what their points tell each other.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weft_units::{BitRate, Bytes, Span, Time};

/// The part of a data packet that the points of an algorithm write and read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stamp {
    /// Whether a link has marked it: explicit congestion notification (ECN CE), FECN of InfiniBand.
    pub ecn: bool,
    /// A number whose meaning is the algorithm's.
    pub value: u16,
}

/// A packet that leaves over a link, as the block before the link sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crossing {
    /// The time of that.
    pub now: Time,
    /// Bytes of the packet on the line.
    pub bytes: Bytes,
    /// Bytes of other packets that wait for the link.
    pub queue: Bytes,
    /// Rate of the link, in bits of packets.
    pub rate: BitRate,
    /// Rate of packets of the largest size that it carries, each counted with the framing of the link that
    /// adds most.
    pub carries: BitRate,
    /// Bytes of words for credits of the other direction that the link has carried so far.
    pub credit_words: Bytes,
    /// Links that the packet has crossed before.
    pub hop: u8,
    /// Whether packets have waited for space behind the link: the congestion is not here.
    pub starved: bool,
}

/// The fate of a flow's packets that the network loses.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub enum Repair {
    /// Nothing: the algorithm gives them up after a time.
    #[default]
    None,
    /// The source sends them again after a time.
    Resend,
    /// The same, and full buffers cut packets down to their headers, which tell the destination.
    Trim,
}

/// A flow's surroundings, which do not change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Path {
    /// Rate of the source's link.
    pub rate: BitRate,
    /// The same as [`Crossing::carries`] has it.
    pub carries: BitRate,
    /// Round trip of the largest packet and its answer through an empty network.
    pub round_trip: Span,
    /// The largest packet on the line.
    pub packet: Bytes,
    /// The fate of packets that are lost.
    pub repair: Repair,
}

impl Path {
    /// A path that loses no packets, or on which nobody sends them again.
    pub const fn new(rate: BitRate, round_trip: Span, packet: Bytes) -> Path {
        Path { rate, carries: rate, round_trip, packet, repair: Repair::None }
    }
}

/// A data packet that has come to its destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// The time of that.
    pub now: Time,
    /// The packet's stamp.
    pub stamp: Stamp,
    /// Bytes of the packet: header, payload and footer.
    pub bytes: Bytes,
    /// Links that it has crossed.
    pub hops: u8,
}

/// A small packet about a flow: from its source to its destination, or back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notice {
    /// Whether it goes to the flow's source.
    pub to_source: bool,
    /// The flow's traffic class.
    pub class: u8,
    /// Content, as the algorithm packs it.
    pub word: u64,
    /// More of it: [`Notice::TAG_BITS`] bits.
    pub tag: u32,
}

impl Notice {
    /// Bits of a tag.
    pub const TAG_BITS: u32 = 28;

    /// A notice to the flow's source; the caller fills in the class.
    pub fn answer(word: u64, tag: u32) -> Notice {
        Notice { to_source: true, class: 0, word, tag }
    }

    /// Direction, class and tag in 32 bits.
    pub fn head(&self) -> u32 {
        debug_assert!(self.tag >> Notice::TAG_BITS == 0 && self.class < 8, "each has its bits");
        u32::from(self.to_source) << 31 | u32::from(self.class & 7) << Notice::TAG_BITS | self.tag
    }

    /// The notice of a [head](Notice::head) and a word.
    pub fn from_parts(head: u32, word: u64) -> Notice {
        let tag = head & ((1 << Notice::TAG_BITS) - 1);
        Notice { to_source: head >> 31 == 1, class: (head >> Notice::TAG_BITS) as u8 & 7, word, tag }
    }
}

/// An answer to a flow's source from the switch before a link, while the notice that it answers goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShortCircuit {
    /// The answer.
    pub notice: Notice,
    /// The time that it takes to the source.
    pub way: Span,
}

/// An algorithm of congestion control: pure functions on the states of its three points.
pub trait Algorithm {
    /// Constants, from the machine file.
    type Parameters;
    /// State of a link.
    type Link: Default + Serialize + DeserializeOwned;
    /// State of a flow at its source.
    type Flow: Serialize + DeserializeOwned;
    /// State of a flow at its destination.
    type Receiver: Default + Serialize + DeserializeOwned;

    /// Congestion point: a data packet leaves over the link. `random`: uniform over 64 bits.
    fn cross(
        _link: &mut Self::Link,
        _stamp: &mut Stamp,
        _crossing: &Crossing,
        (_random, _parameters): (&mut dyn FnMut() -> u64, &Self::Parameters),
    ) {
    }

    /// Congestion point: whether [`Algorithm::cross`] may do anything to a data packet that leaves so. Asked
    /// first, because the state of links is far from the processor.
    fn concerns(_crossing: &Crossing, _parameters: &Self::Parameters) -> bool {
        true
    }

    /// Whether the congestion point does something to every data packet: its state is then fetched ahead.
    const MEASURES: bool = false;

    /// Whether the congestion point does anything to notices.
    const RELAYS: bool = false;

    /// Whether links tell sources rates: flows then count a packet with the framing of the link that adds
    /// most, and ask when their source has nothing for them.
    const TELLS_RATES: bool = false;

    /// Congestion point: the rate that it offers each flow, where it knows one.
    fn fair_rate(_link: &Self::Link) -> Option<BitRate> {
        None
    }

    /// Congestion point: a notice leaves over the link, where [`Algorithm::RELAYS`] says so. The switch may
    /// answer it at once.
    fn relay(
        _link: &mut Self::Link,
        _notice: &mut Notice,
        _at: &Crossing,
        _parameters: &Self::Parameters,
    ) -> Option<ShortCircuit> {
        None
    }

    /// Reaction point: the source has a first packet for a destination.
    fn open(path: &Path, now: Time, parameters: &Self::Parameters) -> Self::Flow;

    /// Reaction point: when a packet of so many bytes may go, from `now` on. [`Time::NEVER`]: not before a
    /// notice.
    fn earliest(flow: &Self::Flow, bytes: Bytes, now: Time, parameters: &Self::Parameters) -> Time;

    /// Reaction point: its source had nothing for it until then, since its last packet.
    fn rest(_flow: &mut Self::Flow, _until: Time) {}

    /// Reaction point: a packet goes. Returns the value of its stamp.
    fn send(flow: &mut Self::Flow, bytes: Bytes, now: Time, parameters: &Self::Parameters) -> u16;

    /// Reaction point: a notice has come back.
    fn learn(flow: &mut Self::Flow, notice: &Notice, now: Time, parameters: &Self::Parameters);

    /// Time without an answer after which a packet is lost. `None`: the algorithm does not answer each one.
    /// One that does counts from 0 in stamps, and its notices are [answers](crate::Answer). It leaves their
    /// tag to whoever sends lost packets again.
    fn timeout(_parameters: &Self::Parameters) -> Option<Span> {
        None
    }

    /// Whether full buffers are to cut packets down to their headers. Only where it answers each packet.
    fn trims(_parameters: &Self::Parameters) -> bool {
        false
    }

    /// Reaction point: a packet counts as lost, because its header came alone or its time is over. It will be
    /// [sent again](Algorithm::resend). Only where lost packets are.
    fn lose(_flow: &mut Self::Flow, _stamp: u16, _now: Time, _parameters: &Self::Parameters) {}

    /// Reaction point: a lost packet goes again, with the stamp that it had.
    fn resend(_flow: &mut Self::Flow, _stamp: u16, _now: Time) {}

    /// Reaction point: all packets before that of a stamp have come, whatever became of their answers.
    fn confirm(_flow: &mut Self::Flow, _before: u16) {}

    /// Reaction point: the time of its next own step; [`Time::NEVER`]: there is none.
    fn due(_flow: &Self::Flow) -> Time {
        Time::NEVER
    }

    /// Reaction point: the step that was due. Returns a notice to the destination.
    fn step(_flow: &mut Self::Flow, _now: Time, _parameters: &Self::Parameters) -> Option<Notice> {
        None
    }

    /// Reaction point: whether it is as a new one would be, and need not be kept.
    fn is_as_new(flow: &Self::Flow, now: Time, parameters: &Self::Parameters) -> bool;

    /// Reaction point: whether it sends nothing and is only remembered.
    fn is_quiet(_flow: &Self::Flow) -> bool {
        false
    }

    /// Reaction point: the rate that it is held to now; of a window, the window over the round trip.
    fn rate(flow: &Self::Flow, now: Time, parameters: &Self::Parameters) -> BitRate;

    /// Notification point: a data packet has come. Returns a notice to its source.
    fn receive(
        _receiver: &mut Self::Receiver,
        _arrival: &Arrival,
        _parameters: &Self::Parameters,
    ) -> Option<Notice> {
        None
    }

    /// Notification point: when packets that have no answer yet get one; [`Time::NEVER`]: there are none.
    fn answers_by(_receiver: &Self::Receiver, _parameters: &Self::Parameters) -> Time {
        Time::NEVER
    }

    /// Notification point: that time has come. Returns the answer.
    fn answer(_receiver: &mut Self::Receiver, _now: Time, _parameters: &Self::Parameters) -> Option<Notice> {
        None
    }

    /// Notification point: a notice has come. Returns the answer to its source.
    fn reflect(_notice: &Notice, _parameters: &Self::Parameters) -> Option<Notice> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a field of a notice that runs into another.
    #[test]
    fn a_notice_keeps_its_parts() {
        for to_source in [false, true] {
            for (class, tag) in [(0, 0), (7, (1 << 28) - 1), (5, 0x0ab_cdef)] {
                let notice = Notice { to_source, class, word: u64::MAX, tag };
                assert_eq!(Notice::from_parts(notice.head(), notice.word), notice);
            }
        }
    }
}
