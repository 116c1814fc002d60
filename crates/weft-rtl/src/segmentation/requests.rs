//! Requests of reads at the send unit's mailbox, in step with its model.
//!
//! ```text
//!   a request starts ─► its descriptor ─► words ─►┌─────┐
//!   a request does not ─────────────────► words ─►│ RTL │─► answer compared
//!                                                 └─────┘
//! ```
//! The header is on the bus when it comes in the model, and the footer in the cycle that ends with the edge
//! of the tail; over 512 bits both are. One request is looked at at a time, here and in the model: the next
//! header is taken behind its answer.
//!
//! # Not modelled
//! A request that is acknowledged, and refused by the host with a message of its own: the RTL, which would
//! start it, does not get it.

use crate::beats::{Beat, OfferedBeat, beats};
use crate::difference::Difference;
use crate::endpoint::BlockPlace;
use crate::words::{AnswerWords, SmallMessage, edge};
use std::collections::{BTreeSet, VecDeque};
use weft_nic::ports::{Arrival, SmallPacket, Verdict};
use weft_units::{EndpointId, Time};

/// Cycles from the edge of a footer to the header of its answer: see `segmentation_requests.sv`.
const ANSWERED_AFTER: u64 = 4;
/// A beat of a request.
#[derive(Clone, Copy)]
pub(super) struct RequestBeat {
    pub beat: Beat,
    /// Whether it has the footer of a request that starts.
    pub starts: bool,
}

/// Requests that are to come, and what the RTL answers.
pub(super) struct RequestsInStep {
    /// Words of the bus.
    lanes: usize,
    /// A request that starts, whose descriptor comes in the same instant.
    starting: Option<(Time, Arrival)>,
    beats: VecDeque<RequestBeat>,
    answers: VecDeque<Beat>,
    /// The first cycle in which the RTL takes another header.
    takes_from: u64,
    /// Requests that the host has refused.
    refused_by_host: BTreeSet<(EndpointId, u32)>,
}

impl RequestsInStep {
    /// None, on buses of so many words.
    pub fn new(lanes: usize) -> RequestsInStep {
        RequestsInStep {
            lanes,
            starting: None,
            beats: VecDeque::new(),
            answers: VecDeque::new(),
            takes_from: 0,
            refused_by_host: BTreeSet::new(),
        }
    }

    /// The model has its verdict on a request whose tail came at `tail`.
    pub fn arrived(&mut self, place: &BlockPlace, tail: Time, arrival: &Arrival) {
        if let Some((_, Arrival { packet, .. })) = self.starting.take() {
            self.refused_by_host.insert((packet.from, packet.message));
        }
        let SmallPacket { from, message, .. } = arrival.packet;
        if arrival.verdict.put {
            self.starting = Some((tail, *arrival));
        } else if !self.refused_by_host.contains(&(from, message)) {
            self.comes(place, (tail, arrival), None);
        }
    }

    /// A read channel has got a descriptor of these words: those of the request that starts.
    pub fn described(&mut self, place: &BlockPlace, words: [u128; 4]) {
        if let Some((tail, arrival)) = self.starting.take() {
            self.comes(place, (tail, &arrival), Some(words));
        }
    }

    /// The words of a request, and of its answer.
    fn comes(
        &mut self,
        place: &BlockPlace,
        (tail, arrival): (Time, &Arrival),
        descriptor: Option<[u128; 4]>,
    ) {
        let BlockPlace { clock, endpoint: to, .. } = *place;
        let Arrival { packet, verdict: Verdict { refusal, .. } } = *arrival;
        let SmallPacket { head, from: source, message: number, channel, bytes, damaged, .. } = packet;
        let (to_interface, domain) = packet.target.unwrap_or_default();
        let payload = descriptor.map(|[source, destination, ..]| {
            let mut payload = [0; 64];
            payload[..16].copy_from_slice(&source.to_le_bytes());
            payload[16..32].copy_from_slice(&destination.to_le_bytes());
            payload
        });
        let request = SmallMessage {
            source,
            number,
            channel,
            is_request: true,
            to,
            to_interface,
            domain,
            bytes,
            payload,
        };
        let mut words = request.words();
        if damaged && let Some(footer) = words.last_mut() {
            *footer ^= 1;
        }
        let mut next = self.takes_from;
        for beat in beats(&words, self.lanes, edge(&clock, head), edge(&clock, tail)) {
            let cycle = beat.cycle.max(next);
            let starts = beat.last && descriptor.is_some();
            self.beats.push_back(RequestBeat { beat: Beat { cycle, ..beat }, starts });
            next = cycle + 1;
        }
        let answer = AnswerWords { from: to, to: source, number, channel, refusal }.words();
        let count = answer.len().div_ceil(self.lanes) as u64;
        self.takes_from = next + ANSWERED_AFTER + count;
        let cycle = next + ANSWERED_AFTER;
        self.answers.extend(beats(&answer, self.lanes, cycle, cycle + count));
    }

    /// The next cycle in which a beat comes or is awaited.
    pub fn next_cycle(&self) -> Option<u64> {
        let beat = self.beats.front().map(|request| request.beat.cycle);
        beat.into_iter().chain(self.answers.front().map(|answer| answer.cycle)).min()
    }

    /// The beat that is on the bus in a cycle.
    pub fn beat(&self, cycle: u64) -> Option<RequestBeat> {
        self.beats.front().copied().filter(|request| request.beat.cycle <= cycle)
    }

    /// The RTL has taken it.
    pub fn take_beat(&mut self) {
        self.beats.pop_front();
    }

    /// Compares what the RTL answers.
    ///
    /// # Errors
    /// A signal that differs.
    pub fn compare(&mut self, place: &BlockPlace, cycle: u64, found: &OfferedBeat) -> Result<(), Difference> {
        let expected = self.answers.front().copied().filter(|answer| answer.cycle <= cycle);
        place.compare(cycle, "m_axis_answer_tvalid", found.valid, expected.is_some().into())?;
        let Some(expected) = expected else { return Ok(()) };
        self.answers.pop_front();
        let names = ["m_axis_answer_tdata", "m_axis_answer_tlast"];
        found.compare(place, names, &Beat { cycle, ..expected })
    }
}
