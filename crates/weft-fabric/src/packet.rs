//! Packets, and the events that move them.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weft_engine::Payload;
use weft_topo::{Address, RouteState};
use weft_units::{Bytes, EndpointId, Span, Time};

/// Which part of its message a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Part {
    /// All of it.
    Whole,
    /// One of several packets.
    Piece,
}

/// A packet. Its identity is (source, message, offset of the piece), never where it is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Packet {
    /// Where it comes from.
    pub source: EndpointId,
    /// Where it goes.
    pub destination: EndpointId,
    /// Its message, counted by the source.
    pub message: u32,
    /// Payload bytes.
    pub bytes: u32,
    /// When its message was offered to the interface, or what else the interface writes there: the network
    /// carries it and does not read it.
    pub born: Time,
    /// The destination's packed address.
    pub(crate) address: Address,
    /// What the routing remembers.
    pub(crate) route: RouteState,
    /// From its head to its tail on the last link, in ps.
    pub(crate) stretch: u32,
    /// On its way: the port it comes in by. In a buffer, once routed: the port it leaves by.
    pub(crate) port: u16,
    /// The virtual channel on that port's link.
    pub(crate) vc: u8,
    /// Links crossed so far, saturating.
    pub hops: u8,
    /// Which part of its message it is.
    pub part: Part,
    /// The interface's own mark, of which the network reads one bit: [`Packet::ACKNOWLEDGEMENT`].
    pub label: u8,
    /// Whether every link that it crosses is to be [reported](crate::Interface::hop).
    pub watch: bool,
    /// Whether a link has corrupted it. It travels on; the interface that receives it finds out.
    pub bad: bool,
}

impl Packet {
    /// Set in the label of a packet that only answers another: the links that it crosses are counted apart.
    pub const ACKNOWLEDGEMENT: u8 = 0x80;

    /// Whether it only answers another, as a number.
    #[inline]
    pub(crate) fn acknowledges(&self) -> u64 {
        u64::from(self.label >> 7)
    }

    /// A packet that has not been injected. `bytes` is its payload.
    pub fn new(
        source: EndpointId,
        destination: EndpointId,
        message: u32,
        bytes: u32,
        born: Time,
        part: Part,
    ) -> Packet {
        Packet {
            source,
            destination,
            message,
            bytes,
            born,
            address: Address::default(),
            route: RouteState::default(),
            stretch: 0,
            port: 0,
            vc: 0,
            hops: 0,
            part,
            label: 0,
            watch: false,
            bad: false,
        }
    }

    /// The payload.
    #[inline]
    pub fn payload(&self) -> Bytes {
        Bytes::new(u64::from(self.bytes))
    }

    /// From head to tail on the last link that it has crossed.
    #[inline]
    pub fn stretch(&self) -> Span {
        Span::from_ps(u64::from(self.stretch))
    }
}

/// What an event of the fabric carries. `T`: an interface's timer; `A`: its announcement.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(bound = "T: Serialize + DeserializeOwned, A: Serialize + DeserializeOwned")]
pub enum Wire<T, A> {
    /// At a switch: the head of a packet has come. At an endpoint: its tail has.
    Packet(Packet),
    /// The endpoint may be able to inject.
    Pump,
    /// The interface begins.
    Start,
    /// A timer that the interface set.
    Timer(T),
    /// What an interface tells the destination of a message beside its packets: the simulation's
    /// stand-in for header fields, so that they need not travel in every packet. It arrives before the
    /// first packet and costs no virtual time.
    Announcement {
        /// Who announces.
        from: EndpointId,
        /// The message, counted by the source.
        message: u32,
        /// What.
        what: A,
    },
}

/// Room becomes free in the buffer behind a link of a switch. When is known as soon as the packet that
/// leaves the buffer is granted its output, so that the switch is told ahead, by a note of the engine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Credit {
    /// The port of the switch that may send again.
    pub(crate) port: u16,
    /// The virtual channel.
    pub(crate) vc: u8,
    /// How much, in the machine's unit of credit.
    pub(crate) amount: u32,
}

impl Credit {
    /// Its place among the credits of a switch.
    #[inline]
    pub(crate) fn channel(&self, vc_shift: u32) -> usize {
        usize::from(self.port) << vc_shift | usize::from(self.vc)
    }
}

/// Kinds of events, in the order in which an entity handles them at one instant.
pub(crate) mod kind {
    pub(crate) const ANNOUNCEMENT: u32 = 0;
    pub(crate) const PACKET: u32 = 1;
    pub(crate) const TIMER: u32 = 2;
    pub(crate) const START: u32 = 3;
    pub(crate) const PUMP: u32 = 4;
}

impl<T: Payload, A: Payload> Payload for Wire<T, A> {
    #[inline]
    fn tie(&self) -> u128 {
        match self {
            Wire::Packet(p) => {
                let link = u128::from(p.port) << 8 | u128::from(p.vc);
                let label = u128::from(p.label) << 64;
                link << 96 | label | u128::from(p.source.0) << 32 | u128::from(p.message)
            }
            Wire::Pump | Wire::Start => 0,
            Wire::Timer(timer) => timer.tie(),
            Wire::Announcement { from, message, what } => {
                // What is announced of one message at one instant has an order as well, in 64 bits.
                u128::from(from.0) << 96 | u128::from(*message) << 64 | what.tie()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_engine::Event;

    #[derive(Clone, Copy)]
    struct Never;
    impl Payload for Never {
        fn tie(&self) -> u128 {
            0
        }
    }

    /// Catches a field that pushes the event of the hot path over a cache line.
    #[test]
    fn an_event_is_a_cache_line() {
        assert_eq!(size_of::<Packet>(), 48);
        assert_eq!(size_of::<Event<Wire<Never, ()>>>(), 64);
    }
}
