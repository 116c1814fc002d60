//! Pause: a receiver whose buffer fills has its sender stop, by priority flow control (PFC).
//!
//! ```text
//!   held in the buffer of a channel
//!   buffer ┬ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─   beyond it a packet is lost
//!          │  head-room: what still comes
//!   XOFF   ┼ ─ ─ ─ ─╱▔▔▔╲─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─   above it: pause frame
//!   XON    ┼ ─ ─ ─╱─ ─ ─ ─╲ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─   at or below it: the sender may go on
//!          │    ╱           ╲
//!        0 ┴──────────────────────────────────►
//! ```
//! A packet counts from when its head arrives, and leaves when its tail has left the buffer for the crossbar:
//! see `switch/occupancy.rs`. A channel passes XOFF when a head arrives. It reaches XON at an edge of the
//! switch's clock. The frame goes back over the line of the reverse direction. It waits for what is on that
//! line, occupies it, and takes the latency of the link. The sender obeys after the response time. It
//! finishes what it has begun, and what its pipeline holds.
//!
//! # Head-room
//! A packet that arrives at full rate after XOFF has been passed must find space until the last one comes
//! that the sender had begun by the time at which it obeys:
//! ```text
//!   XOFF passed ─ the reverse line's packet ─ frame ─ latency ─ response ─ latency ─► + the last packet
//! ```
//!
//! # Not modelled
//! Pause times: a frame holds until another one ends the pause, as if it were renewed in time. A fault never
//! loses a pause frame.
//!
//! # Source
//! IEEE 802.1Q clause 36 (priority-based flow control) and annex N (buffer requirements); IEEE 802.3
//! annex 31B and 31D (frames of 64 B).

use crate::channel::Channel;
use crate::constants::Constants;
use crate::link::{CreditStall, LinkKind};
use crate::parameters::{
    FasterLink, Forwarding, PacketFormat, PauseParameters, SwitchKind, SwitchParameters,
};
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Span, Time};

/// Bytes of a pause frame besides the link's framing: the smallest frame of Ethernet.
pub(crate) const PAUSE_FRAME: Bytes = Bytes::new(64);

/// A command to the sender of a channel, from when it obeys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Pause {
    /// The sender's port, and the virtual channel.
    pub(crate) channel: Channel,
    /// Whether the sender stops; if not, it goes on.
    pub(crate) stops: bool,
}

/// The head-room of an input buffer behind a link, and the times that it is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Headroom {
    /// Longest time for which packets that go first keep a pause frame from the reverse line, and the line's
    /// longest wake-up, if it sleeps.
    pub wait: Span,
    /// Time of pause frames on the line: two of each virtual channel may be under way.
    pub frames: Span,
    /// Of the link, there and back, with the routing logic before the buffer.
    pub propagation: Span,
    /// From the frame's arrival until the sender's line begins no more packets.
    pub response: Span,
    /// Packets that are beyond recall at the last instant, as they count in the buffer: the largest one, or
    /// with combined queues what the output buffer holds.
    pub last: Bytes,
    /// Bytes that may come in these times at full rate, and the last packets.
    pub bytes: Bytes,
}

/// The thresholds of a channel's input buffer, in units of credit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Thresholds {
    /// Holding more, the buffer has its sender pause.
    pub(crate) xoff: u32,
    /// Holding no more, it has the sender go on.
    pub(crate) xon: u32,
}

/// The parameters that the head-room of every kind of links depends on.
pub(crate) struct HeadroomRule<'a> {
    pub(crate) switch: &'a SwitchParameters,
    pub(crate) format: &'a PacketFormat,
    pub(crate) links: &'a [LinkKind],
    /// Virtual channels of a link.
    pub(crate) vcs: u32,
}

impl HeadroomRule<'_> {
    /// The head-room that loses no packet behind a link whose sender obeys `pause`.
    pub(crate) fn of(&self, link: &LinkKind, pause: &PauseParameters) -> Headroom {
        let HeadroomRule { switch, format, links, vcs } = *self;
        let largest = format.overhead() + format.payload;
        let span = |link: &LinkKind| link.longest(largest);
        // A packet from a slow line may keep a faster one occupied for as long as it takes to come.
        let bubbles =
            switch.forwarding == Forwarding::VirtualCutThrough && switch.faster_link == FasterLink::Bubble;
        let on_line = if bubbles { links.iter().map(span).max().unwrap_or(Span::ZERO) } else { span(link) };
        let committed = switch.output_buffer_under_pause(largest);
        // A frame goes behind what is beyond recall on the reverse line. Small packets take longer there.
        let reverse = committed.map_or(Span::ZERO, |bytes| {
            let sizes = [format.overhead().max(Bytes::new(1)), largest];
            sizes
                .map(|size| link.longest(size) * bytes.div_ceil(size))
                .into_iter()
                .max()
                .unwrap_or(Span::ZERO)
        });
        let on_line = on_line.max(reverse);
        // A grant looks ahead by the pipeline, and the next one falls on an edge.
        let pipeline = switch.clock.cycles(u64::from(switch.pipeline_cycles) + 1);
        // A line that sleeps wakes once, for the frame or for the packets before it.
        let waking = link.layer.as_deref().map_or(Span::ZERO, |kind| kind.layer.longest_wake());
        let wait = pipeline + waking + on_line;
        let frames = link.rate.span((PAUSE_FRAME + link.framing) * u64::from(2 * vcs));
        let propagation = link.latency * 2 + link.routing;
        let response = pause.response.max(pipeline);
        let carried = link.rate.bytes_in(wait + frames + propagation + response);
        let whole = |packet| packet;
        let last = match committed {
            Some(bytes) => self.space_of(bytes, whole),
            None => switch.credit.bytes(switch.credit.taken_by(largest)),
        };
        let bytes = self.space_of(carried, |packet| link.least_on_line(packet)) + last;
        Headroom { wait, frames, propagation, response, last, bytes }
    }

    /// The most space that packets take that count so many bytes together, each as many as `counted` says: on
    /// a line with its framing. Cells of buffers and words of lines both round sizes up, so that every size
    /// is tried: of those that are very large only the first and the last.
    fn space_of(&self, bytes: Bytes, counted: impl Fn(Bytes) -> Bytes) -> Bytes {
        const TRIED: u64 = 1 << 14;
        let (credit, least) = (self.switch.credit, self.format.overhead().get().max(1));
        let largest = least.max((self.format.overhead() + self.format.payload).get());
        let first = least..=largest.min(least + TRIED);
        let last = largest.saturating_sub(TRIED).max(least)..=largest;
        let space = |size: u64| {
            let packet = Bytes::new(size);
            let held = u128::from(credit.bytes(credit.taken_by(packet)).get());
            (u128::from(bytes.get()) * held).div_ceil(u128::from(counted(packet).get()))
        };
        let most = first.chain(last).map(space).max().unwrap_or(0);
        Bytes::new(u64::try_from(most).unwrap_or(u64::MAX))
    }

    /// The head-room that a machine has behind a link: the one that it gives, or else the one that it needs.
    pub(crate) fn kept(&self, link: &LinkKind, pause: &PauseParameters) -> Bytes {
        pause.headroom.unwrap_or_else(|| self.of(link, pause).bytes)
    }

    /// The thresholds of a buffer of `capacity` units behind a link. `None`: it does not hold the head-room
    /// and a packet.
    pub(crate) fn thresholds(
        &self,
        link: &LinkKind,
        pause: &PauseParameters,
        capacity: u32,
    ) -> Option<Thresholds> {
        let credit = self.switch.credit;
        let units = |bytes: Bytes| u32::try_from(bytes.div_ceil(credit.bytes(1))).unwrap_or(u32::MAX);
        let largest = credit.taken_by(self.format.overhead() + self.format.payload);
        let xoff = capacity.checked_sub(units(self.kept(link, pause))).filter(|xoff| *xoff >= largest)?;
        Some(Thresholds { xoff, xon: xoff.saturating_sub(pause.hysteresis.map_or(largest, units)) })
    }
}

impl SwitchParameters {
    /// The space of an output buffer behind a crossbar under pause: of two packets of the `largest` size at
    /// most. A packet that has crossed leaves at a time that is known, and a pause does not reach it. What
    /// the buffer could hold beyond that waits in the inputs. `None`: no queues are combined.
    pub(crate) fn output_buffer_under_pause(&self, largest: Bytes) -> Option<Bytes> {
        let two = largest * 2;
        let is_combined = matches!(self.kind, SwitchKind::CombinedInputOutput(_));
        is_combined.then(|| self.output_buffer.map_or(two, |space| space.min(two)))
    }
}

impl Constants {
    /// From a pause frame's arrival at a switch until the arbiter knows: grants look ahead by the pipeline.
    pub(crate) fn pause_known_after(&self, pause: &PauseParameters) -> Span {
        pause.response.saturating_sub(self.switch.clock.cycles(u64::from(self.switch.pipeline_cycles)))
    }
}

/// Pauses of one sender.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Paused {
    /// Virtual channels that are paused.
    channels: u32,
    /// Time during which one was.
    time: CreditStall,
    /// Commands that the sender has obeyed since the counters were last reset.
    frames: u64,
}

impl Paused {
    /// The sender of one more channel obeys at `now`.
    pub(crate) fn on_pause(&mut self, stops: bool, now: Time) {
        self.frames += 1;
        if stops {
            if self.channels == 0 {
                self.time.begin(now);
            }
            self.channels += 1;
        } else {
            self.channels -= 1;
            if self.channels == 0 {
                self.time.end(now);
            }
        }
    }

    /// Time during which a channel was paused, until `now`.
    pub(crate) fn total(&self, now: Time) -> Span {
        self.time.total(self.channels > 0, now)
    }

    /// Pause frames that the sender has obeyed.
    pub(crate) fn frames(&self) -> u64 {
        self.frames
    }

    /// Counts anew; a pause that holds counts from `now` on.
    pub(crate) fn reset(&mut self, now: Time) {
        self.time.reset(now);
        self.frames = 0;
    }
}
