//! Requests of reads at the send unit's mailbox, in step with its model.
//!
//! ```text
//!   a request starts ─► its descriptor ─► words ─►┌─────┐
//!   a request does not ─────────────────► words ─►│ RTL │─► answer compared
//!                                                 └─────┘
//! ```
//! The header is on the bus when it comes in the model, and the footer in the cycle that ends with the edge
//! of the tail. The RTL looks at one request at a time: the next header is taken [`BUSY`] cycles behind a
//! footer, and a request that comes sooner has its answer later than in the model.
//!
//! # Not modelled
//! A request that is acknowledged, and refused by the host with a message of its own: the RTL, which would
//! start it, does not get it.

use crate::difference::Difference;
use crate::endpoint::BlockPlace;
use crate::ports::OfferedWord;
use crate::words::{AnswerWords, BusWord, SmallMessage, edge};
use std::collections::{BTreeSet, VecDeque};
use weft_nic::ports::{Arrival, SmallPacket, Verdict};
use weft_units::{EndpointId, Time};

/// Cycles from the edge of a footer to the header of its answer: see `segmentation_requests.sv`.
const ANSWERED_AFTER: u64 = 4;
/// Cycles from the edge of a footer until the next header is taken.
const BUSY: u64 = 6;

/// A word of a request.
#[derive(Clone, Copy)]
pub(super) struct RequestWord {
    pub word: BusWord,
    /// Whether it is the footer of a request that starts.
    pub starts: bool,
}

/// Requests that are to come, and what the RTL answers.
#[derive(Default)]
pub(super) struct RequestsInStep {
    /// A request that starts, whose descriptor comes in the same instant.
    starting: Option<(Time, Arrival)>,
    words: VecDeque<RequestWord>,
    answers: VecDeque<BusWord>,
    /// The first cycle in which the RTL takes another header.
    takes_from: u64,
    /// Requests that the host has refused.
    refused_by_host: BTreeSet<(EndpointId, u32)>,
}

impl RequestsInStep {
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
        let words = request.words();
        let (count, behind) = (words.len() as u64, edge(&clock, tail));
        let mut next = self.takes_from;
        for (at, data) in (0..).zip(words) {
            let last = at + 1 == count;
            let due = if at == 0 { edge(&clock, head) } else { (behind + at).saturating_sub(count) };
            let cycle = due.max(next);
            let word = BusWord { cycle, data: data ^ u128::from(last && damaged), last };
            self.words.push_back(RequestWord { word, starts: last && descriptor.is_some() });
            next = cycle + 1;
        }
        self.takes_from = next + BUSY;
        let answer = AnswerWords { from: to, to: source, number, channel, refusal };
        let [header, footer] = answer.words();
        let cycle = next + ANSWERED_AFTER;
        self.answers.push_back(BusWord { cycle, data: header, last: false });
        self.answers.push_back(BusWord { cycle: cycle + 1, data: footer, last: true });
    }

    /// The next cycle in which a word comes or is awaited.
    pub fn next_cycle(&self) -> Option<u64> {
        let word = self.words.front().map(|request| request.word.cycle);
        word.into_iter().chain(self.answers.front().map(|answer| answer.cycle)).min()
    }

    /// The word that is on the bus in a cycle.
    pub fn word(&self, cycle: u64) -> Option<RequestWord> {
        self.words.front().copied().filter(|request| request.word.cycle <= cycle)
    }

    /// The RTL has taken it.
    pub fn take_word(&mut self) {
        self.words.pop_front();
    }

    /// Compares what the RTL answers.
    ///
    /// # Errors
    /// A signal that differs.
    pub fn compare(&mut self, place: &BlockPlace, cycle: u64, found: &OfferedWord) -> Result<(), Difference> {
        let expected = self.answers.front().copied().filter(|answer| answer.cycle <= cycle);
        place.compare(cycle, "m_axis_answer_tvalid", found.valid, expected.is_some().into())?;
        let Some(expected) = expected else { return Ok(()) };
        self.answers.pop_front();
        place.compare(cycle, "m_axis_answer_tdata", found.data, expected.data)?;
        place.compare(cycle, "m_axis_answer_tlast", found.last, expected.last.into())
    }
}
