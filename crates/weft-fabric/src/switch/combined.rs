//! Combined input and output queues (CIOQ): virtual output queues at the inputs, a crossbar that is faster
//! than the lines, and a buffer at every output.
//!
//! ```text
//!   input buffer             crossbar, speed-up S           output buffer         line
//!    vc 0, to output 0 ▢▢                                  ┌───────────┐
//!    vc 0, to output 1 ▢   ─┐ reading ─────╳───── writing ─►│ ▢ ▢ ▢ ▢ ▢ │──► at its own rate ──►
//!    …                     ─┘                              └───────────┘
//!              one packet at a time   one packet at a time   first come, first served
//! ```
//! A packet takes 1/S of its time on the fastest link to cross. So an input that has lost packets of one line
//! time to a conflict catches up, and an output takes packets from S inputs while its line sends one. With S
//! = 2 and the right order of grants such a switch does all that one with queues at the outputs only can do
//! (Chuang, Goel, McKeown, Prabhakar 1999); with any maximal matching it passes all admissible traffic (Dai
//! and Prabhakar 2000). Without speed-up no output ever receives more than its line sends: the switch is one
//! with virtual output queues.
//!
//! Space in the buffer behind the link is spent when a packet is granted its output, not when it leaves the
//! output buffer. So a packet in an output buffer waits for nothing but the packets before it. Its departure
//! is known at the grant, one buffer serves all virtual channels of the port, and it closes no circle of
//! waiting.
//!
//! An output is granted again when the largest packet would find space: each packet holds its bytes from the
//! grant until its tail is on the line.
//!
//! # Not modelled
//! Cells: packets cross whole. A packet that still comes in holds both its input and its output until its
//! tail has crossed, so that the speed-up serves packets that have queued, as they do under load.
//!
//! # Source
//! S.-T. Chuang, A. Goel, N. McKeown, B. Prabhakar, Matching Output Queueing with a Combined
//! Input/Output-Queued Switch, IEEE J. Sel. Areas Commun. 17(6), 1999. J. G. Dai, B. Prabhakar, The
//! Throughput of Data Switches with and without Speedup, IEEE INFOCOM 2000.

use super::buffer::PacketQueue;
use super::crossbar::InputBuffers;
use super::port::{BufferedOutputs, Crossing};
use super::virtual_output_queued::VirtualOutputQueued;
use crate::constants::Constants;
use crate::link::{Line, LineRate, LinkKind};
use crate::parameters::Speedup;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_units::{Bytes, Clock, Span, Time};

/// Queues of the inputs of a switch whose outputs have buffers too.
pub(crate) struct Combined(VirtualOutputQueued);

impl InputBuffers for Combined {
    const ROUTES_ON_ARRIVAL: bool = true;
    type Outputs = BufferedOutputs;

    fn new(requests: usize, outputs: usize) -> Combined {
        Combined(VirtualOutputQueued::new(requests, outputs))
    }

    #[inline]
    fn queue_mut(&mut self, request: usize, output: usize) -> &mut PacketQueue {
        self.0.queue_mut(request, output)
    }

    #[inline]
    fn queue(&self, request: usize, output: usize) -> &PacketQueue {
        self.0.queue(request, output)
    }

    #[inline]
    fn prefetch(&self) {
        self.0.prefetch();
    }

    fn queues(&self) -> &[PacketQueue] {
        self.0.queues()
    }

    fn queues_mut(&mut self) -> &mut [PacketQueue] {
        self.0.queues_mut()
    }

    fn request_of(&self, place: usize) -> usize {
        self.0.request_of(place)
    }
}

/// The pace at which packets cross.
#[derive(Clone, Copy)]
pub(crate) struct CrossbarPace {
    rate: LineRate,
    /// Bytes that the line carries besides a packet: a packet crosses in its time on the line, by the
    /// speed-up.
    framing: Bytes,
    /// Picoseconds by which the pipeline may be longer from one clock edge than from another.
    rounding: Span,
}

impl CrossbarPace {
    /// The pace of a switch in which crossing takes no time of its own.
    pub(crate) const INSTANT: CrossbarPace =
        CrossbarPace { rate: LineRate::INSTANT, framing: Bytes::ZERO, rounding: Span::ZERO };

    /// The pace of a crossbar that is faster by `speedup` than the one of `links` on which a packet of
    /// `largest` takes least time. `None`: its time per byte is not exact in 64 bits.
    pub(crate) fn new(
        links: &[LinkKind],
        speedup: Speedup,
        largest: Bytes,
        clock: Clock,
    ) -> Option<CrossbarPace> {
        let fastest = links.iter().min_by_key(|link| link.rate.span(largest + link.framing));
        let Some(link) = fastest else { return Some(CrossbarPace::INSTANT) };
        let is_even = clock.hertz().is_some_and(|hertz| 1_000_000_000_000u64.is_multiple_of(hertz));
        let rounding = if is_even { Span::ZERO } else { Span::from_ps(1) };
        Some(CrossbarPace { rate: link.rate.sped_up(speedup)?, framing: link.framing, rounding })
    }

    /// Time at which the head of a packet, granted its output at an edge from which the pipeline takes
    /// `pipeline`, comes to the line. One that has waited for the crossbar since must not come late by
    /// rounding: it would break the line's busy period.
    #[inline]
    pub(crate) fn head(&self, passage: &Passage, edge: Time, pipeline: Span) -> Time {
        let rounding = if passage.began > edge { self.rounding } else { Span::ZERO };
        passage.began + pipeline.saturating_sub(rounding)
    }

    /// Time in which `bytes` of a packet cross.
    pub(crate) fn span(&self, bytes: Bytes) -> Span {
        self.rate.span(bytes + self.framing)
    }
}

/// A packet's crossing, as the input sees it.
#[derive(Clone, Copy)]
pub(crate) struct Passage {
    /// Time at which its head leaves the input buffer: the grant, or less than a clock cycle later.
    pub(crate) began: Time,
    /// Time at which its tail has.
    pub(crate) ended: Time,
}

/// A port as the crossbar sees it: the reading side of its input buffer, and its output buffer.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct CrossbarPort {
    /// Busy while a packet leaves the input buffer.
    reading: Line,
    /// Busy while a packet comes into the output buffer, and until there is space for another.
    writing: Line,
    /// Bytes of packets that hold space in the output buffer.
    filled: Bytes,
    /// These packets, in the order in which they leave. None are kept where the buffer has no bound.
    departures: VecDeque<OutputDeparture>,
}

/// A packet in an output buffer.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct OutputDeparture {
    /// Time at which its tail is on the line.
    ended: Time,
    bytes: Bytes,
}

impl CrossbarPort {
    /// Lets a packet, whose tail comes to the input at `tail`, cross from the input of a grant to its output.
    pub(crate) fn cross(
        ports: &mut [CrossbarPort],
        crossing: &Crossing,
        (bytes, tail): (Bytes, Time),
        pace: &CrossbarPace,
    ) -> Passage {
        let input = crossing.input.map_or(crossing.output, |from| usize::from(from.port));
        let free = ports[input].reading.busy_until().max(ports[crossing.output].writing.busy_until());
        let began = crossing.edge.max(free);
        let occupy = |line: &mut Line| {
            line.send(&pace.rate, began, bytes + pace.framing);
            line.hold(tail);
            line.busy_until()
        };
        let written = occupy(&mut ports[crossing.output].writing);
        let read = occupy(&mut ports[input].reading);
        Passage { began, ended: read.max(written) }
    }

    /// Enters a packet of `bytes` that leaves the output buffer at `ended`, and says from when on the next
    /// may begin to cross. Its head is in the buffer a `pipeline` later.
    pub(crate) fn fill(&mut self, bytes: Bytes, ended: Time, pipeline: Span, constants: &Constants) -> Time {
        if let Some(limit) = constants.switch.output_buffer {
            self.departures.push_back(OutputDeparture { ended, bytes });
            self.filled += bytes;
            // The next packet is not in the buffer before this one has crossed.
            let mut next = self.writing.busy_until() + pipeline;
            while let Some(&OutputDeparture { ended, bytes }) = self.departures.front()
                && (ended <= next || self.filled + constants.largest > limit)
            {
                next = next.max(ended);
                self.filled -= bytes;
                self.departures.pop_front();
            }
            self.writing.hold(next - pipeline);
        }
        self.writing.busy_until()
    }
}
