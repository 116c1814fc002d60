//! The receive engine's side: which packets are taken, acknowledged again or dropped.
//!
//! ```text
//!   number of the packet      ordered flow                 unordered flow
//!   below the expected one    taken before: acknowledge    taken before: acknowledge
//!   the expected one          take, acknowledge            take, acknowledge
//!   above                     drop                         in the window: take once, acknowledge; else drop
//! ```

use super::{FlowId, OPENING_BITS, Sequence, TransportParameters};
use crate::key_table::KeyTable;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use weft_units::Time;

/// The fate of a packet that has passed its checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is taken, and acknowledged.
    Take,
    /// It has been taken before; it is acknowledged again.
    AcknowledgeAgain,
    /// It is dropped in silence.
    Drop,
}

#[derive(Clone, Default, Debug, Serialize, Deserialize)]
struct ReceiverFlow {
    opening: u32,
    /// All below have been taken.
    expected: u32,
    /// Taken beyond that, at most a window; most flows have none.
    #[expect(clippy::box_collection, reason = "most flows have none, which are 8 bytes instead of 24")]
    beyond: Option<Box<BTreeSet<u32>>>,
    used: Time,
}

impl ReceiverFlow {
    /// A packet of the present opening has come.
    #[inline(never)]
    fn receive(&mut self, number: u32, unordered: bool, window: u32) -> Verdict {
        if number == self.expected {
            self.expected += 1;
            if let Some(beyond) = &mut self.beyond {
                while beyond.remove(&self.expected) {
                    self.expected += 1;
                }
                if beyond.is_empty() {
                    self.beyond = None;
                }
            }
            return Verdict::Take;
        }
        if number < self.expected || self.beyond.as_ref().is_some_and(|beyond| beyond.contains(&number)) {
            return Verdict::AcknowledgeAgain;
        }
        if !unordered || number - self.expected >= window {
            return Verdict::Drop;
        }
        self.beyond.get_or_insert_default().insert(number);
        Verdict::Take
    }
}

/// All flows of a receive engine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Receiver {
    /// By [`FlowId::key`].
    flows: KeyTable<ReceiverFlow>,
}

impl Receiver {
    /// Flows in the table.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// A packet has come undamaged.
    #[inline]
    pub fn receive(
        &mut self,
        id: FlowId,
        sequence: Sequence,
        now: Time,
        parameters: &TransportParameters,
    ) -> Verdict {
        match self.flows.get_mut(id.key()) {
            Some(flow) if flow.opening == sequence.opening => {
                flow.used = now;
                if flow.expected == sequence.number && flow.beyond.is_none() {
                    flow.expected += 1;
                    return Verdict::Take;
                }
                flow.receive(sequence.number, id.kind.unordered, parameters.window)
            }
            _ => self.begin(id, sequence, now, parameters),
        }
    }

    /// A packet of another opening than the present one has come, or of a flow that is not in the table.
    #[cold]
    #[inline(never)]
    fn begin(
        &mut self,
        id: FlowId,
        sequence: Sequence,
        now: Time,
        parameters: &TransportParameters,
    ) -> Verdict {
        let begins = sequence.number == 0 || id.kind.unordered && sequence.number < parameters.window;
        let opens = match self.flows.get(id.key()) {
            Some(known) => is_newer(sequence.opening, known.opening),
            None => self.has_space(now, parameters),
        };
        if !begins || !opens {
            return Verdict::Drop;
        }
        let flow = self.flows.get_or_add(id.key());
        *flow = ReceiverFlow { opening: sequence.opening, used: now, ..ReceiverFlow::default() };
        flow.receive(sequence.number, id.kind.unordered, parameters.window)
    }

    /// Whether there is space for another flow, when those that are over have been forgotten.
    fn has_space(&mut self, now: Time, parameters: &TransportParameters) -> bool {
        let most = parameters.flows as usize;
        if self.flows.len() >= most {
            let kept = parameters.idle.saturating_add(parameters.idle);
            self.flows.retain(|flow| now <= flow.used.saturating_add(kept));
        }
        self.flows.len() < most
    }
}

/// Whether an opening comes after another; they are counted in a circle.
fn is_newer(opening: u32, than: u32) -> bool {
    let ahead = opening.wrapping_sub(than) & ((1 << OPENING_BITS) - 1);
    ahead != 0 && ahead < 1 << (OPENING_BITS - 1)
}
