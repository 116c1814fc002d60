//! An IntraNode port: aggregator and transmitting FIFOs on the way out, dispatcher on the way in.
//!
//! ```text
//!   messages ─► aggregator ─► FIFOs ─► switch
//!   kernel  ◄─ dispatcher ◄─────────── switch
//! ```
//! # Source
//! D2.8 §2: the IntraNode interface has M ports, each with FIFOs of its own in both directions.

use super::aggregator::{Aggregator, AggregatorInput, AggregatorState};
use super::dispatcher::Dispatcher;
use super::fifo::{FifoPacketKind, Queued, TransmitFifo};
use super::parameters::CommunicationIpParameters;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_fabric::{ClassTag, ReceiveSpace};
use weft_units::{Bytes, EndpointId, Time};

/// A message on its way out.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct FifoMessage {
    pub to: EndpointId,
    pub number: u32,
    pub bytes: Bytes,
    /// Bytes that are in the FIFOs or beyond.
    pub sent: Bytes,
    pub posted: Time,
    pub token: Option<u32>,
    pub watch: bool,
    pub class: ClassTag,
}

/// A port.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Port {
    /// In the order in which they are posted.
    queue: VecDeque<FifoMessage>,
    pub aggregator: Aggregator,
    pub fifo: TransmitFifo,
    pub dispatcher: Dispatcher,
    /// Space in the receiving FIFOs of packets that the kernel has not taken, in the order of their coming.
    pub untaken: VecDeque<ReceiveSpace>,
}

impl Port {
    /// Messages that are not in the FIFOs whole.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Puts a message behind all that are posted no later.
    pub fn post(&mut self, outgoing: FifoMessage) {
        let place = match self.queue.back() {
            Some(last) if last.posted > outgoing.posted => {
                self.queue.partition_point(|other| other.posted <= outgoing.posted)
            }
            _ => self.queue.len(),
        };
        self.queue.insert(place, outgoing);
    }

    /// Writes packets of messages that are posted into the FIFOs, as many as have space. `sent` hears of a
    /// token and when its message was written whole.
    pub fn fill(
        &mut self,
        now: Time,
        threshold: u32,
        parameters: &CommunicationIpParameters,
        mut sent: impl FnMut(u32, Time),
    ) {
        while let Some(outgoing) = self.queue.front_mut().filter(|outgoing| outgoing.posted <= now) {
            if self.aggregator.state() == AggregatorState::Idle {
                self.aggregator.input(AggregatorInput::Message);
            }
            let payload = (outgoing.bytes - outgoing.sent).min(parameters.payload);
            let words = parameters.words(payload);
            if !self.fifo.has_space(words, threshold, parameters) {
                if self.aggregator.state() == AggregatorState::Writing {
                    self.aggregator.input(AggregatorInput::AlmostFull);
                }
                return;
            }
            self.aggregator.input(AggregatorInput::Room);
            let writing = self.aggregator.write(now, payload, parameters);
            let offset = outgoing.sent.get();
            outgoing.sent += payload;
            let FifoMessage { to, number: message, bytes: all, sent: written, token, watch, class, .. } =
                *outgoing;
            let last = written == all;
            let kind =
                FifoPacketKind::Message { is_whole: payload == all, watch: watch && (offset == 0 || last) };
            let bytes = payload.get() as u32;
            let packet = Queued { ready: now, writing, words, to, message, bytes, offset, kind, class };
            self.fifo.push(packet, parameters);
            if last {
                if let Some(token) = token {
                    sent(token, writing.ended);
                }
                self.queue.pop_front();
                if self.queue.front().is_none_or(|next| next.posted > now) {
                    self.aggregator.input(AggregatorInput::NoMessage);
                }
            }
        }
    }
}
