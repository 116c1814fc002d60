//! The receiving ends of connections: which packets are taken, and how they are acknowledged.
//!
//! ```text
//!   number of the packet      go-back-n                        selective-repeat
//!   the expected one          take; acknowledge if asked       take; acknowledge if asked
//!   before it, or taken       acknowledge again                acknowledge again
//!   beyond it                 drop; the first of them: NAK     take; acknowledge if asked
//! ```

use super::{AckState, Connection, ConnectionParameters, MOST_UNACKNOWLEDGED, Psn, Retransmission};
use crate::key_table::KeyTable;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The fate of a packet that has come undamaged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// It is taken.
    Take,
    /// It has been taken before.
    Repeated,
    /// It is dropped, as one before it is missing.
    OutOfOrder,
}

#[derive(Clone, Default, Debug, Serialize, Deserialize)]
struct ReceivingEnd {
    /// All before it have been taken.
    expected: Psn,
    /// Whether a NAK has gone for it.
    has_refused: bool,
    /// Packets that have been taken beyond it; most ends have none.
    #[expect(clippy::box_collection, reason = "most ends have none, which are 8 bytes instead of 24")]
    beyond: Option<Box<BTreeSet<Psn>>>,
}

impl ReceivingEnd {
    fn has_beyond(&self, number: Psn) -> bool {
        self.beyond.as_ref().is_some_and(|beyond| beyond.contains(&number))
    }

    /// The expected packet has come: goes on past it, and past those that have come before their turn.
    fn advance(&mut self) {
        self.has_refused = false;
        self.expected = self.expected.after(1);
        while let Some(beyond) = &mut self.beyond {
            if !beyond.remove(&self.expected) {
                return;
            }
            if beyond.is_empty() {
                self.beyond = None;
            }
            self.expected = self.expected.after(1);
        }
    }

    fn acknowledgement(&self, is_negative: bool) -> AckState {
        let expected = self.expected;
        let has = |place: u32| u32::from(self.has_beyond(expected.after(place + 1))) << place;
        let beyond = if self.beyond.is_some() { (0..u32::BITS).map(has).sum() } else { 0 };
        AckState { expected, beyond, is_negative }
    }
}

/// All receiving ends of an interface.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Receiver {
    /// By [`Connection::key`].
    ends: KeyTable<ReceivingEnd>,
}

impl Receiver {
    /// A packet has come undamaged, which may ask for an acknowledgement. Returns its fate, and the
    /// acknowledgement that is to be sent.
    #[inline]
    pub fn receive(
        &mut self,
        connection: Connection,
        (number, asks): (Psn, bool),
        parameters: &ConnectionParameters,
    ) -> (Verdict, Option<AckState>) {
        let end = self.ends.get_or_add(connection.key());
        let ahead = number.since(end.expected);
        if ahead == 0 {
            end.advance();
            return (Verdict::Take, asks.then(|| end.acknowledgement(false)));
        }
        if ahead >= MOST_UNACKNOWLEDGED || end.has_beyond(number) {
            return (Verdict::Repeated, Some(end.acknowledgement(false)));
        }
        if parameters.kind == Retransmission::SelectiveRepeat {
            end.beyond.get_or_insert_default().insert(number);
            return (Verdict::Take, asks.then(|| end.acknowledgement(false)));
        }
        let is_first = !std::mem::replace(&mut end.has_refused, true);
        (Verdict::OutOfOrder, is_first.then(|| end.acknowledgement(true)))
    }

    /// The sender has given up all packets before this one: none of them is expected any more.
    pub fn skip_to(&mut self, connection: Connection, number: Psn) {
        let end = self.ends.get_or_add(connection.key());
        while end.expected != number && number.since(end.expected) < MOST_UNACKNOWLEDGED {
            end.advance();
        }
    }

    /// A connection begins with another number.
    #[cfg(test)]
    pub fn start_at(&mut self, connection: Connection, number: Psn) {
        self.ends.get_or_add(connection.key()).expected = number;
    }
}
