//! The signal that goes ahead of a packet and wakes the links of its way.
//!
//! ```text
//!   handed over      signal: wires and `delay` of each switch, no queue
//!        ├──────────────────┬──────────────────┬─────────► link 3 begins to wake
//!        │  waits, wakes    │  switch, queue   │
//!        └────────────── link 1 ──────────── link 2 ──── … ──────────► packet at link 3
//!                                              ├── lead ─┤
//! ```
//! The signal needs no event. A packet carries by how much its signal is ahead of it; a link that gets the
//! packet finds out since when it has been waking ([`power`](crate::LinkPower)). The lead lies in the 16 bits
//! of the header that arbiters by age use otherwise. Its unit is the finest power of two in picoseconds in
//! which eight of the longest wake-ups fit; it is rounded down, and what is longer counts as the longest.
//!
//! # Not modelled
//! A packet that comes to a link before the signal of another has arrived there, or that is dealt with
//! before, gains nothing from that signal, even where it would find the link awake by then. Energy and
//! bandwidth of the signal itself.
//!
//! # Source
//! Ours: links woken along the route of a packet by a message that runs ahead.

use crate::build::BuildError;
use crate::link::{LinkParameters, SentPacket};
use crate::packet::Packet;
use weft_units::{Span, Time};

/// Wake-ups of the slowest link that a lead holds.
const MAX_LEAD_WAKE_UPS: u64 = 8;

/// The constants of the signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WakeSignal {
    /// Logic of a switch, from the signal on one link to that on the next.
    delay: Span,
    /// Binary logarithm of the unit of leads in ps.
    unit: u32,
}

impl WakeSignal {
    /// The signal of a network with these links; `None`: none of them wakes ahead of packets.
    ///
    /// # Errors
    /// Links that do not agree how long the signal takes.
    pub(crate) fn new(links: &[LinkParameters]) -> Result<Option<WakeSignal>, BuildError> {
        let sleeps = links.iter().filter_map(|link| link.layer.power?.sleep);
        let mut delays = sleeps.clone().filter_map(|sleep| sleep.signal);
        let Some(delay) = delays.next() else { return Ok(None) };
        if let Some(other) = delays.find(|other| *other != delay) {
            return Err(BuildError::SignalDelays { one: delay, other });
        }
        let longest = sleeps.map(|sleep| sleep.longest_wake()).max();
        let longest = longest.map_or(0, Span::as_ps).saturating_mul(MAX_LEAD_WAKE_UPS);
        let units = longest.div_ceil(u64::from(u16::MAX)).max(1);
        // The largest power of two is 2^63.
        Ok(Some(WakeSignal { delay, unit: units.next_power_of_two().ilog2() }))
    }

    /// When an output of a switch is told of a packet whose head came to the switch at `came`, and comes to
    /// the line at `head`.
    pub(crate) fn told(&self, packet: &Packet, came: Time, head: Time) -> Time {
        let lead = Span::from_ps(u64::from(packet.lead()) << self.unit);
        let told = Time::from_ps(came.as_ps().saturating_sub(lead.as_ps()));
        (told + self.delay).min(head)
    }

    /// Writes into a packet how far the signal is ahead at the other end of a link that was told at `told`.
    /// The signal crosses the wire as fast as the packet and does not pass the routing logic behind it.
    pub(crate) fn stamp(&self, packet: &mut Packet, told: Time, sent: &SentPacket) {
        let lead = sent.began.saturating_since(told) + (sent.latency - sent.wire);
        packet.set_lead(u16::try_from(lead.as_ps() >> self.unit).unwrap_or(u16::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link_layer::{LinkLayer, LinkPower, SleepParameters};
    use crate::packet::{Addressing, HeaderBits, MessagePart};
    use weft_units::{BitRate, Bytes, EndpointId, EnergyPerBit, LineCode, Power};

    fn link(wake: Span, signal: Option<Span>) -> LinkParameters {
        let low = Power::ZERO;
        let sleep = SleepParameters { low, idle_after: Span::ZERO, wake, off: None, signal };
        let power = LinkPower { active: low, per_bit: EnergyPerBit::ZERO, sleep: Some(sleep) };
        LinkParameters {
            rate: BitRate::from_gigabits(10),
            code: LineCode::NONE,
            latency: Span::ZERO,
            routing: Span::ZERO,
            framing: Bytes::ZERO,
            layer: LinkLayer { power: Some(power), ..LinkLayer::PLAIN },
        }
    }

    /// Catches a unit in which the longest wake-up does not fit or that is coarser than need be, and delays
    /// of which one is taken.
    #[test]
    fn leads_hold_eight_wake_ups() {
        let unit = |wake| {
            let links = [link(Span::from_ps(1), None), link(wake, Some(Span::ZERO))];
            WakeSignal::new(&links).unwrap().unwrap().unit
        };
        assert_eq!((unit(Span::ZERO), unit(Span::from_ps(8_191))), (0, 0));
        assert_eq!((unit(Span::from_ps(8_192)), unit(Span::from_us(3))), (1, 9));
        assert_eq!(WakeSignal::new(&[link(Span::from_us(1), None)]), Ok(None));
        let links = [Span::from_ps(1), Span::from_ps(2)].map(|delay| link(Span::ZERO, Some(delay)));
        let (one, other) = (Span::from_ps(1), Span::from_ps(2));
        assert_eq!(WakeSignal::new(&links), Err(BuildError::SignalDelays { one, other }));
    }

    /// Catches a lead that begins anew at a link or comes to nothing where it is too long for the header,
    /// and a signal behind its packet.
    #[test]
    fn leads_add_up() {
        let signal = WakeSignal { delay: Span::from_ps(5), unit: 2 };
        let (source, destination) = (EndpointId(0), EndpointId(1));
        let addressing = Addressing { source, destination, message: 0 };
        let mut packet = Packet::new(addressing, 64, HeaderBits::default(), MessagePart::Whole);
        let at = Time::from_ps;
        assert_eq!(signal.told(&packet, at(100), at(103)), at(103), "no lead: the packet is faster");
        assert_eq!(signal.told(&packet, at(100), at(110)), at(105));
        packet.set_lead(10);
        assert_eq!(signal.told(&packet, at(100), at(110)), at(65));
        packet.set_lead(u16::MAX);
        assert_eq!(signal.told(&packet, at(100), at(110)), at(5));
    }
}
