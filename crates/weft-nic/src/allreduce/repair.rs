//! Lost packets between modules: a module keeps the packets it has sent, and asks for those that do not come.
//!
//! ```text
//!   waits ── time is up ──► asks whom it waits for ──┬─ has sent it ──► sends it again
//!     ▲                                              ├─ is not so far ─► says so: it is alive
//!     └── asks again later ◄─────────────────────────┴─ has failed ───► says so: this one fails, too
//! ```
//! Who waits asks, since only it knows what is missing; so nothing is sent that would not be sent without
//! losses. In one operation a module sends another one vector at most: to ask, the operation's name is
//! enough. Who does not answer until the limit is given up; who answers that it is not so far, since its rank
//! has not called yet, is asked again after twice the time. A vector whose receiver is still looked up is not
//! so far: it comes without being sent again.
//!
//! Time is counted from edge to edge of the module's clock: a vector that comes in the cycle in which time is
//! up is not asked for.
//!
//! A module keeps the vectors of an operation until it has finished a later one of the group: by then all to
//! whom it has sent have taken part in that, and so have finished the earlier one.
//!
//! # Source
//! TR-488 §4.7 has no retransmission between modules. Times and limits are those of the packetizer (§4.4),
//! whose packets theirs are like; the asking is ours.

use super::{ModulePacket, OperationId};
use crate::reliability::{Expiry, ReliabilityParameters, Retry};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_units::{EndpointId, Span, Time};

/// Whoever is not there within this time is not waited for with a timer any more.
const LONGEST_PATIENCE: Span = Span::from_us(3_600_000_000);

/// The bookkeeping of one module.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Repair {
    /// Of the operation under way: how long it has waited.
    retry: Retry,
    /// How long whoever is late is left alone; `None`: nobody has said so.
    patience: Option<Span>,
    /// Packets that were sent, by operation.
    sent: BTreeMap<OperationId, Vec<ModulePacket>>,
    /// By group: the last operation that is finished.
    done: BTreeMap<u32, OperationId>,
    /// By group: the operation that has failed, and with it all later ones.
    failed: BTreeMap<u32, OperationId>,
}

impl Repair {
    /// An operation waits from an edge on, having come a step further. Returns when a timer is to be set.
    pub fn waits(&mut self, since: Time, parameters: &ReliabilityParameters) -> Option<Time> {
        self.settled();
        self.retry.sent(since, parameters)
    }

    /// It waits on, having asked. Returns when a timer is to be set.
    pub fn asked(&mut self, now: Time, parameters: &ReliabilityParameters) -> Option<Time> {
        self.retry.sent(now, parameters)
    }

    /// It waits for nothing.
    pub fn settled(&mut self) {
        self.retry.settled();
        self.patience = None;
    }

    /// The timer has fired.
    pub fn expired(&mut self, now: Time, parameters: &ReliabilityParameters) -> Expiry {
        self.retry.expired(now, parameters)
    }

    /// Whom it waits for is alive and not so far, as is known at an edge. Returns when a timer is to be set.
    pub fn alive(&mut self, since: Time, parameters: &ReliabilityParameters) -> Option<Time> {
        let doubled = self.patience.map_or(parameters.timeout, |patience| patience.saturating_add(patience));
        let patience = doubled.min(LONGEST_PATIENCE);
        self.patience = Some(patience);
        if patience == LONGEST_PATIENCE {
            self.retry.settled();
            return None;
        }
        self.retry.put_off(since.saturating_add(patience))
    }

    /// Keeps what is sent.
    pub fn keep(&mut self, packet: &ModulePacket) {
        self.sent.entry(packet.id).or_default().push(packet.clone());
    }

    /// The packet that was sent to a module in an operation.
    pub fn sent_to(&self, to: EndpointId, id: OperationId) -> Option<&ModulePacket> {
        self.sent.get(&id)?.iter().find(|packet| packet.to == to)
    }

    /// An operation is finished.
    pub fn finished(&mut self, id: OperationId) {
        self.settled();
        self.done.insert(id.group, id);
        self.sent.retain(|other, _| other.group != id.group || *other >= id);
    }

    /// An operation has failed.
    pub fn failed(&mut self, id: OperationId) {
        self.settled();
        self.failed.entry(id.group).or_insert(id);
    }

    /// Whether an operation has failed here.
    pub fn has_failed(&self, id: OperationId) -> bool {
        self.failed.get(&id.group).is_some_and(|failed| *failed <= id)
    }

    /// Whether what comes for an operation comes too late.
    pub fn is_over(&self, id: OperationId) -> bool {
        self.has_failed(id) || self.done.get(&id.group).is_some_and(|done| *done >= id)
    }
}
