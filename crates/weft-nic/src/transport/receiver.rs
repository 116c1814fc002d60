//! The receive engine's side: which packets are taken, acknowledged again or dropped.
//!
//! ```text
//!   number of the packet      ordered flow                 unordered flow
//!   below the expected one    taken before: acknowledge    taken before: acknowledge
//!   the expected one          take, acknowledge            take, acknowledge
//!   above                     drop                         in the window: take once, acknowledge; else drop
//! ```

use super::{FlowId, OPENING_BITS, Sequence, TransportParameters};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
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

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Flow {
    opening: u32,
    /// All below have been taken.
    expected: u32,
    /// Taken beyond that, at most a window.
    beyond: BTreeSet<u32>,
    used: Time,
}

/// All flows of a receive engine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Receiver {
    flows: BTreeMap<FlowId, Flow>,
}

impl Receiver {
    /// Flows in the table.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// A packet has come undamaged.
    pub fn receive(
        &mut self,
        id: FlowId,
        sequence: Sequence,
        now: Time,
        parameters: &TransportParameters,
    ) -> Verdict {
        let begins = sequence.number == 0 || id.kind.unordered && sequence.number < parameters.window;
        let known = self.flows.get(&id).map(|flow| flow.opening);
        if known != Some(sequence.opening) {
            let opens = match known {
                Some(opening) => is_newer(sequence.opening, opening),
                None => self.has_room(now, parameters),
            };
            if !begins || !opens {
                return Verdict::Drop;
            }
            let (opening, beyond) = (sequence.opening, BTreeSet::new());
            self.flows.insert(id, Flow { opening, expected: 0, beyond, used: now });
        }
        let Some(flow) = self.flows.get_mut(&id) else { return Verdict::Drop };
        flow.used = now;
        if sequence.number < flow.expected || flow.beyond.contains(&sequence.number) {
            return Verdict::AcknowledgeAgain;
        }
        if sequence.number == flow.expected {
            flow.expected += 1;
            while flow.beyond.remove(&flow.expected) {
                flow.expected += 1;
            }
            return Verdict::Take;
        }
        if !id.kind.unordered || sequence.number - flow.expected >= parameters.window {
            return Verdict::Drop;
        }
        flow.beyond.insert(sequence.number);
        Verdict::Take
    }

    /// Whether there is room for another flow, when those that are over have been forgotten.
    fn has_room(&mut self, now: Time, parameters: &TransportParameters) -> bool {
        let most = parameters.flows as usize;
        if self.flows.len() >= most {
            let kept = parameters.idle.saturating_add(parameters.idle);
            self.flows.retain(|_, flow| now <= flow.used.saturating_add(kept));
        }
        self.flows.len() < most
    }
}

/// Whether an opening comes after another; they are counted in a circle.
fn is_newer(opening: u32, than: u32) -> bool {
    let ahead = opening.wrapping_sub(than) & ((1 << OPENING_BITS) - 1);
    ahead != 0 && ahead < 1 << (OPENING_BITS - 1)
}
