//! The width of a switch's ports: bytes per cycle of its clock.
//!
//! ```text
//!   switch ── datapath × clock ──► link layer ── lanes × rate × code ──► line
//!             └─ the slower of both is what a link carries ─┘
//! ```
//! Header and footer fill words of their own, since they pass the switch apart from the payload.
//!
//! # Source
//! TEXTAROSSA D2.8 §2, §5.2.1: FIFOs of 128 bits at 100 MHz carry 12.8 Gb/s; §7: 256 bits are announced. That
//! header and footer of 128 bits fill a word of 256 each is ours.

use super::constant::{Constant, Kind};
use super::read::Reader;
use weft_fabric::parameters::PacketFormat;
use weft_fabric::{GapRule, LineRate, LinkLayer, LinkParameters};
use weft_keys::KeyType as _;
use weft_units::{BitRate, Bytes, Clock, LineCode};

/// Wider ports than those of any switch.
pub(super) const MAX_DATAPATH: Bytes = Bytes::new(1024);

/// The ports of a switch.
#[derive(Clone, Copy)]
pub(super) struct Datapath {
    /// Bytes of a word.
    pub word: Bytes,
    /// Rate of a word per cycle.
    pub rate: BitRate,
}

impl Datapath {
    /// Ports that take a word per cycle; `None`: the rate is no whole number of bits.
    pub fn new(word: Bytes, clock: Clock) -> Option<Datapath> {
        let rate = clock.hertz()?.checked_mul(8 * word.get())?;
        Some(Datapath { word, rate: BitRate::from_bits_per_second(rate) })
    }

    /// Enters the rate as that of links at `path`, which have none of their own.
    pub fn note(&self, path: String, reader: &mut Reader<'_>) {
        reader.constants.push(Constant {
            path,
            value: self.rate.show(),
            kind: Kind::Derived,
            source: None,
            how: Some("switch.datapath in each cycle of switch.clock".to_owned()),
            row: None,
            range: None,
            range_source: None,
        });
    }

    /// Keeps links from carrying more than the ports at their ends: whichever takes longer for the largest
    /// packet of this format decides.
    pub fn limit(&self, links: &mut LinkParameters, format: &PacketFormat) {
        let padding = |part: Bytes| self.word * part.div_ceil(self.word) - part;
        let framing = padding(format.header) + padding(format.footer);
        let layer = LinkLayer {
            word: self.word,
            framed: framing,
            smallest: Bytes::ZERO,
            gap: GapRule::RoundUp,
            ..links.layer
        };
        let ports = LinkParameters { rate: self.rate, code: LineCode::NONE, framing, layer, ..*links };
        let largest = format.header + format.payload + format.footer;
        let takes = |links: &LinkParameters| {
            LineRate::new(links.rate, links.code).map(|rate| rate.span(links.bytes_on_line(largest)))
        };
        if takes(links).zip(takes(&ports)).is_some_and(|(line, ports)| line <= ports) {
            *links = ports;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Fabric, Machine, load};
    use weft_fabric::LinkParameters;

    fn links(machine: &Machine, class: &str) -> LinkParameters {
        let Fabric::Packet { links, .. } = &machine.fabric else { panic!("no links") };
        links[class]
    }

    /// Rates by hand: a lane of 10.3125 Gb/s carries 10 Gb/s, 128 bits at 100 MHz are 12.8 Gb/s and 256 bits
    /// 25.6. Catches the faster of both that decides, and words of packets that are not whole.
    #[test]
    fn the_slower_of_line_and_ports_decides() {
        for (datapath, lanes, megabits, on_line) in [
            // Aurora: 32 B of header and footer, 100 B of payload and 1 B, in blocks of 8 B per lane.
            (16, 1, 10_000, 136),
            (16, 2, 12_800, 144),
            (16, 4, 12_800, 144),
            (32, 1, 10_000, 136),
            (32, 2, 20_000, 144),
            // A word for the header, four for the payload, one for the footer.
            (32, 4, 25_600, 192),
        ] {
            let sets = [format!("switch.datapath={datapath}"), format!("links.default.lanes={lanes}")];
            let machine = load("communication-ip", &sets).unwrap();
            let link = links(&machine, "x");
            let carried = link.rate.bits_per_second() * link.code.payload as u64 / link.code.wire as u64;
            assert_eq!(carried / 1_000_000, megabits, "{sets:?}");
            assert_eq!(link.bytes_on_line(weft_units::Bytes::new(132)).get(), on_line, "{sets:?}");
            let port = links(&machine, "endpoint").rate.bits_per_second();
            assert_eq!(port, 8 * datapath * 100_000_000, "{sets:?}");
            assert_eq!(machine.get("links.endpoint.rate").unwrap().kind.name(), "derived");
        }
    }

    /// Catches framing of the line that is forgotten where the ports carry less than its rate.
    #[test]
    fn what_is_around_a_packet_counts() {
        let machine = load("communication-ip", &["links.default.framing=8K"]).unwrap();
        assert_eq!(links(&machine, "x").rate.bits_per_second(), 2 * 10_312_500_000);
    }

    /// Catches a width that nobody takes, one whose rate is not exact, and a rate of their own that links
    /// lose.
    #[test]
    fn a_width_is_checked() {
        for (set, told) in [
            ("switch.datapath=0", "switch.datapath"),
            ("switch.datapath=2K", "switch.datapath"),
            ("switch.datapath=24", "write switch.datapath = 16, or the announced 32"),
        ] {
            let error = load("communication-ip", &[set]).unwrap_err().to_string();
            assert!(error.contains(told), "{set}: {error}");
        }
        let slow = load("communication-ip", &["links.endpoint.rate=1Gb/s"]).unwrap();
        assert_eq!(links(&slow, "endpoint").rate.bits_per_second(), 1_000_000_000);
    }
}
