//! The sends of one rank that are not complete.
//!
//! ```text
//!   eager        Posted ───────────────── taken by the interface ──▶ complete
//!   rendezvous   Announced ─ cleared ─▶ Unacknowledged ─── Ack ────▶ complete
//!                          └─────────▶ Posted ─── taken ───────────▶ complete
//!   to itself    Unmatched ─────────────── matched ────────────────▶ complete
//!   one that asks for a receipt, besides
//!                gone out ─▶ Unreceipted ─ receipt ─▶ complete
//!                receipt ──▶ Receipted ── gone out ─▶ complete
//!   one-sided    Access ─────────────────── answer ────────────────▶ complete
//! ```

use crate::envelope::{Access, ActiveMessage, Body, Match, SendEntry};
use crate::matching::Owner;
use serde::{Deserialize, Serialize};
use slab::Slab;
use weft_trace::op::SendMode;
use weft_units::{Address, Bytes, RankId};

/// The content of a message, as far as its receiver looks at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Content {
    /// A message for a receive.
    Matched(Match),
    /// A message for the library at the other side.
    Active(ActiveMessage),
}

impl Content {
    /// The body of a message that is sent without asking.
    pub fn eager(self, receipt: Option<SendEntry>) -> Body {
        match self {
            Content::Matched(matching) => Body::Eager { matching, receipt },
            Content::Active(message) => Body::Active { message },
        }
    }

    /// The body of the announcement of a message.
    pub fn announcement(self, send: SendEntry, receipt: bool) -> Body {
        match self {
            Content::Matched(matching) => Body::RequestToSend { matching, send, receipt },
            Content::Active(message) => Body::AnnounceActive { message, send },
        }
    }
}

/// A message to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageToSend {
    pub to: RankId,
    pub content: Content,
    pub bytes: Bytes,
    pub mode: SendMode,
    pub owner: Owner,
    /// The place of the data in the rank's memory; a real rank's is not known here.
    pub buffer: Address,
}

/// How far a message has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum SendState {
    /// The data is with the interface, which has not taken all of it.
    Posted,
    /// Announced: no receive has answered.
    Announced,
    /// The data is on its way: the receiver has not acknowledged it.
    Unacknowledged,
    /// To the rank itself: no receive has matched.
    Unmatched,
    /// The data is with the interface or has gone out, and no receipt has come.
    Unreceipted,
    /// The receipt has come, before it is known that the data has gone out.
    Receipted,
}

/// The purpose of a send.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Purpose {
    /// A message.
    Message {
        content: Content,
        state: SendState,
        /// Whether it completes only with a receipt.
        receipt: bool,
    },
    /// A one-sided operation on the window of this number: its target has not answered.
    Access { window: u32, access: Access },
}

/// A send that is not complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct PendingSend {
    pub owner: Owner,
    pub to: RankId,
    pub bytes: Bytes,
    pub purpose: Purpose,
    /// The place of the data in the rank's memory.
    pub buffer: Address,
}

impl PendingSend {
    /// Whether it is a message that has come as far as this.
    fn is(&self, expected: SendState) -> bool {
        matches!(self.purpose, Purpose::Message { state, .. } if state == expected)
    }
}

/// The sends of one rank that are not complete.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sends {
    table: Slab<PendingSend>,
    /// The number of announced ones: a rank that waits names them, and the table may be long.
    announced: usize,
}

impl Default for Sends {
    fn default() -> Sends {
        Sends { table: Slab::new(), announced: 0 }
    }
}

impl Sends {
    /// Keeps a message until it completes, in an entry of its own.
    #[inline]
    pub fn keep(&mut self, message: &MessageToSend, state: SendState, receipt: bool) -> SendEntry {
        let MessageToSend { to, content, bytes, owner, buffer, .. } = *message;
        let purpose = Purpose::Message { content, state, receipt };
        self.insert(PendingSend { owner, to, bytes, purpose, buffer })
    }

    /// Keeps anything that waits for an answer, in an entry of its own.
    #[inline]
    pub fn insert(&mut self, send: PendingSend) -> SendEntry {
        self.announced += usize::from(send.is(SendState::Announced));
        SendEntry::new(self.table.insert(send) as u32)
    }

    /// Takes a send out of the table, which must be there.
    #[inline]
    pub fn take(&mut self, entry: SendEntry) -> PendingSend {
        let send = self.table.remove(entry.index() as usize);
        self.announced -= usize::from(send.is(SendState::Announced));
        send
    }

    /// The send in this entry, if there is one.
    pub fn get(&self, entry: SendEntry) -> Option<&PendingSend> {
        self.table.get(entry.index() as usize)
    }

    /// Whether the send in this entry goes to `to` and has come as far as this.
    pub fn awaits(&self, entry: SendEntry, to: RankId, state: SendState) -> bool {
        self.get(entry).is_some_and(|send| send.to == to && send.is(state))
    }

    /// An announced send is cleared, and goes on in `next`: the bytes to be sent.
    #[inline]
    pub fn clear(&mut self, entry: SendEntry, next: SendState) -> Bytes {
        self.set_state(entry, next);
        self.table[entry.index() as usize].bytes
    }

    /// The data of a send has gone out, and need not be kept: whose send is complete, if it waits for nothing
    /// else.
    #[inline]
    pub fn gone_out(&mut self, entry: SendEntry) -> Option<Owner> {
        match self.table[entry.index() as usize].purpose {
            Purpose::Message { state, receipt: true, .. } if state != SendState::Receipted => {
                self.set_state(entry, SendState::Unreceipted);
                None
            }
            _ => Some(self.take(entry).owner),
        }
    }

    /// The receipt of a send has come: whose send is complete, if its data has gone out.
    pub fn receipted(&mut self, entry: SendEntry) -> Option<Owner> {
        match self.table[entry.index() as usize].purpose {
            Purpose::Message { state, .. } if state != SendState::Unreceipted => {
                self.set_state(entry, SendState::Receipted);
                None
            }
            _ => Some(self.take(entry).owner),
        }
    }

    /// A message goes on in another state; anything else stays as it is.
    fn set_state(&mut self, entry: SendEntry, next: SendState) {
        let send = &mut self.table[entry.index() as usize];
        let was_announced = send.is(SendState::Announced);
        if let Purpose::Message { state, .. } = &mut send.purpose {
            *state = next;
        }
        self.announced =
            self.announced - usize::from(was_announced) + usize::from(send.is(SendState::Announced));
    }

    /// Whether an operation on `target` in the window of this number has no answer.
    pub fn accesses(&self, target: RankId, window: u32) -> bool {
        self.iter().any(|send| {
            send.to == target && matches!(send.purpose, Purpose::Access { window: own, .. } if own == window)
        })
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &PendingSend> {
        self.table.iter().map(|(_, send)| send)
    }

    /// The announced messages that no receive has answered, with their entries.
    pub fn announced(&self) -> impl Iterator<Item = (SendEntry, &PendingSend)> {
        let announced = self.table.iter().filter(|(_, send)| send.is(SendState::Announced));
        announced.take(self.announced).map(|(index, send)| (SendEntry::new(index as u32), send))
    }

    /// Whose sends these are, to be changed.
    pub fn owners_mut(&mut self) -> impl Iterator<Item = &mut Owner> {
        self.table.iter_mut().map(|(_, send)| &mut send.owner)
    }

    /// The number of sends.
    pub fn len(&self) -> usize {
        self.table.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RankEndpoints;
    use proptest::prelude::*;

    /// Steps of sends: kept, cleared, gone out, receipted, by an entry's place among those that there are.
    fn step() -> impl Strategy<Value = (u8, usize, bool)> {
        (0..5u8, 0..64usize, any::<bool>())
    }

    proptest! {
        /// Catches a count of announced sends that a change of state leaves behind: a rank that waits would
        /// not name one, and nobody would answer for it.
        #[test]
        fn all_announced_sends_are_found(steps in prop::collection::vec(step(), 0..200)) {
            let mut sends = Sends::default();
            for (action, which, receipt) in steps {
                let entries: Vec<SendEntry> =
                    sends.table.iter().map(|(index, _)| SendEntry::new(index as u32)).collect();
                let entry = entries.get(which % entries.len().max(1)).copied();
                match (action, entry) {
                    (0 | 1, _) | (_, None) => {
                        let state = if action == 0 { SendState::Announced } else { SendState::Posted };
                        let endpoints = RankEndpoints::FIRST;
                        let content = Content::Matched(Match::of_real_rank(endpoints, true, 0));
                        let (to, bytes) = (RankId(1), Bytes::new(8));
                        let purpose = Purpose::Message { content, state, receipt };
                        let owner = Owner::Nobody;
                        sends.insert(PendingSend { owner, to, bytes, purpose, buffer: Address::default() });
                    }
                    (2, Some(entry)) => { sends.clear(entry, SendState::Posted); }
                    (3, Some(entry)) => { sends.gone_out(entry); }
                    (_, Some(entry)) => { sends.receipted(entry); }
                }
                let all = sends.iter().filter(|send| send.is(SendState::Announced)).count();
                prop_assert_eq!(sends.announced().count(), all);
                prop_assert_eq!(sends.announced, all);
            }
        }
    }
}
