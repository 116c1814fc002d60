//! The constants of a packet network: links, packet format, switches.

use crate::arbiter::{ArbiterState, RequestGroups, SwitchOutputs};
use crate::channel::ChannelNumbers;
use crate::congestion::CongestionControl;
use crate::credit::Credits;
use crate::link::{LinkKind, Size};
use crate::multicast::Trees;
use crate::packet::Packet;
use crate::parameters::{PacketFormat, SwitchParameters};
use crate::pause::Thresholds;
use crate::queue_board::QueueBoard;
use crate::reroute::Reroutes;
use crate::switch::CrossbarPace;
use crate::wake_signal::WakeSignal;
use weft_topo::{ChannelPlan, LinkClass};
use weft_units::{Bytes, Span, Time};

/// The use of the bits of a packet's age. Congestion control, where there is some, writes them beside these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AgeBits {
    /// None.
    Unused,
    /// The age.
    Age,
    /// The lead of the signal that wakes links ahead of packets.
    Lead(WakeSignal),
}

/// The constants that all switches and endpoints of a packet network share.
pub(crate) struct Constants {
    /// By [`LinkClass`].
    pub(crate) links: Vec<LinkKind>,
    pub(crate) format: PacketFormat,
    /// Header and footer.
    pub(crate) overhead: Bytes,
    pub(crate) switch: SwitchParameters,
    /// Virtual channels of a link.
    pub(crate) vcs: u32,
    /// The uses of the virtual channels.
    pub(crate) plan: ChannelPlan,
    /// Whether they are the routing's, and no others.
    pub(crate) plain_channels: bool,
    /// Whether packets choose a lane at each hop.
    pub(crate) mixes_lanes: bool,
    /// Priorities or traffic classes, where the arbiter tells them apart.
    pub(crate) groups: RequestGroups,
    /// The use of the bits that packets have for their age.
    pub(crate) age_bits: AgeBits,
    /// The numbers of a switch's channels.
    pub(crate) channels: ChannelNumbers,
    /// By virtual channel: space of its input buffer, in units of credit. As many as a port has numbers of
    /// channels; those beyond the virtual channels have none.
    pub(crate) buffers: Vec<u32>,
    /// Space of the receiving buffer of an endpoint, in units of credit; `None`: endpoints consume whatever
    /// arrives.
    pub(crate) receive_buffer: Option<u32>,
    /// Header, footer and payload of the largest packet.
    pub(crate) largest: Bytes,
    /// Space that it takes, in units of credit.
    pub(crate) largest_space: u32,
    /// Under pause: the thresholds of an input buffer by class of the link that leads to it and virtual
    /// channel.
    pub(crate) thresholds: Vec<Thresholds>,
    /// Whether every packet is followed, as those that their interface wants watched are.
    pub(crate) follows_packets: bool,
    /// Whether senders count credits. If not, a switch counts what its buffers hold.
    pub(crate) has_credits: bool,
    /// Whether a packet may always go as soon as its head has come.
    pub(crate) cuts_through: bool,
    /// Whether a packet that is sure to win its output may go on without queueing. Not where more than one
    /// order of requests must be drawn or tried.
    pub(crate) passes: bool,
    /// Of a crossbar with speed-up.
    pub(crate) crossbar: CrossbarPace,
    /// The trees of multicast groups.
    pub(crate) trees: Trees,
    /// All bits where the routing spreads blocks, and none where packets begin without.
    pub(crate) block_mask: u32,
    /// The queues that switches have published. Between pulses they are as constant as the rest.
    pub(crate) board: QueueBoard,
    /// Congestion control; `None`: there is none.
    pub(crate) congestion: Option<Box<CongestionControl>>,
    /// Tables by which switches route while links are off; `None`: routes never change.
    pub(crate) reroutes: Option<Box<Reroutes>>,
}

impl Constants {
    /// The memory of the arbiter of outputs with links of these classes, where a turn is not enough.
    pub(crate) fn arbiter_state(&self, links: &[LinkClass]) -> Option<Box<ArbiterState>> {
        ArbiterState::new(&SwitchOutputs { arbiter: self.switch.arbiter, links, groups: &self.groups })
    }

    /// Whether packets carry their age.
    #[inline(always)]
    pub(crate) fn keeps_ages(&self) -> bool {
        self.age_bits == AgeBits::Age
    }

    /// The virtual channels on which endpoints inject.
    pub(crate) fn injection_channels(&self) -> impl Iterator<Item = u8> {
        (0..self.vcs as u8).step_by(self.plan.routing as usize)
    }

    /// The channel of a lane for packets that tables route, as routings know it, where there are tables.
    pub(crate) fn failover_channel(&self) -> u32 {
        self.plan.routing - 1
    }

    /// Whether a channel is one of those of the tables, where there are tables.
    pub(crate) fn is_failover(&self, vc: u8) -> bool {
        self.plan.of_routing(vc.into()) == self.failover_channel()
    }

    /// The credits with which the sender to the input buffer of a virtual channel begins.
    pub(crate) fn initial_credits(&self, vc: u8) -> Credits {
        if self.has_credits { Credits::new(self.buffer(vc)) } else { Credits::UNLIMITED }
    }

    /// Space of the input buffer of a virtual channel, in units of credit.
    #[inline]
    pub(crate) fn buffer(&self, vc: u8) -> u32 {
        self.buffers[usize::from(vc)]
    }

    /// Under pause: the thresholds of the input buffer of a virtual channel behind links of a class.
    #[inline]
    pub(crate) fn thresholds(&self, link: LinkClass, vc: u8) -> Option<&Thresholds> {
        self.thresholds.get(usize::from(link.0) * self.vcs as usize + usize::from(vc))
    }

    /// The links of a class.
    #[inline(always)]
    pub(crate) fn link(&self, class: LinkClass) -> &LinkKind {
        &self.links[usize::from(class.0)]
    }

    /// Space that a packet takes in a buffer, in units of credit.
    #[inline]
    pub(crate) fn space(&self, packet: &Packet) -> u32 {
        self.switch.credit.taken_by(self.packet_bytes(packet))
    }

    /// Header, payload and footer.
    #[inline]
    pub(crate) fn packet_bytes(&self, packet: &Packet) -> Bytes {
        packet.payload() + self.overhead
    }

    /// Bytes and space of a packet.
    #[inline]
    pub(crate) fn size(&self, packet: &Packet) -> Size {
        Size { bytes: self.packet_bytes(packet), space: self.space(packet) }
    }

    /// Time of the largest packet on a line.
    pub(crate) fn largest_span(&self, link: &LinkKind) -> Span {
        link.rate.span(self.format.overhead() + self.format.payload + link.framing)
    }

    /// The time at which a packet that wins arbitration at the edge `now` reaches the output's line.
    #[inline]
    pub(crate) fn through_pipeline(&self, now: Time) -> Time {
        self.switch.clock.later_edge(now, u64::from(self.switch.pipeline_cycles))
    }
}
