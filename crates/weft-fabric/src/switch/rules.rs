//! What all switches of a machine share.

use crate::packet::Packet;
use crate::parameters::{PacketFormat, SwitchParameters};
use weft_topo::LinkClass;
use weft_units::{Bytes, LineRate, Span, Time};

/// One kind of link, made ready for the hot loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkKind {
    pub(crate) rate: LineRate,
    pub(crate) latency: Span,
    pub(crate) framing: Bytes,
}

/// What all switches of a machine share.
pub(crate) struct Rules<T> {
    pub(crate) topology: T,
    pub(crate) links: Vec<LinkKind>,
    pub(crate) format: PacketFormat,
    pub(crate) switch: SwitchParameters,
    /// Virtual channels of a link.
    pub(crate) vcs: u32,
    /// Room of an input buffer per virtual channel, in units of credit.
    pub(crate) buffer: u32,
    /// The most that a packet takes of it.
    pub(crate) largest_room: u32,
    /// Whether a packet may always go as soon as its head has come.
    pub(crate) cuts_through: bool,
    /// Whether a packet that is sure to win its output may go on without queueing. Not where more than one order of
    /// requests must be drawn or tried.
    pub(crate) passes: bool,
    /// Requests and credits are numbered `port << vc_shift | vc`.
    pub(crate) vc_shift: u32,
}

impl<T> Rules<T> {
    /// Room that a packet takes in a buffer, in units of credit.
    #[inline]
    pub(crate) fn room(&self, packet: &Packet) -> u32 {
        self.switch.credit.taken_by(self.packet_bytes(packet))
    }

    /// Header, payload and footer.
    #[inline]
    pub(crate) fn packet_bytes(&self, packet: &Packet) -> Bytes {
        packet.payload() + self.format.header + self.format.footer
    }

    /// How long a line of `class` was busy with the bits of so many packets and so much payload.
    pub(crate) fn line_time(&self, class: LinkClass, packets: u64, payload: u64) -> Span {
        let link = &self.links[usize::from(class.0)];
        link.rate
            .span(Bytes::new(payload) + (self.format.header + self.format.footer + link.framing) * packets)
    }

    /// When a packet that wins arbitration at the edge `now` reaches the output's line.
    #[inline]
    pub(crate) fn through_pipeline(&self, now: Time) -> Time {
        self.switch.clock.later_edge(now, u64::from(self.switch.pipeline_cycles))
    }
}
