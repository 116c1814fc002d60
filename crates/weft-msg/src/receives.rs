//! The receives of one rank that have met an announced message, and wait for its data.

use crate::envelope::{Body, Envelope, ReceiveEntry, SendEntry};
use crate::matching::Owner;
use serde::{Deserialize, Serialize};
use slab::Slab;
use weft_units::{Address, Bytes, RankId};

/// A matched receive whose data is on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct PendingReceive {
    pub owner: Owner,
    /// The envelope that announced it.
    pub announced: Envelope,
    /// The place that the data goes to in the rank's memory.
    pub buffer: Address,
}

/// The receives of one rank whose data is on its way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Receives {
    table: Slab<PendingReceive>,
}

impl Default for Receives {
    fn default() -> Receives {
        Receives { table: Slab::new() }
    }
}

impl Receives {
    /// An announced message has met its receive.
    #[inline]
    pub fn insert(&mut self, receive: PendingReceive) -> ReceiveEntry {
        ReceiveEntry(self.table.insert(receive) as u32)
    }

    /// The data has come for this entry, which must be there.
    #[inline]
    pub fn take(&mut self, entry: ReceiveEntry) -> PendingReceive {
        self.table.remove(entry.0 as usize)
    }

    /// The receive in this entry, if there is one.
    pub fn get(&self, entry: ReceiveEntry) -> Option<&PendingReceive> {
        self.table.get(entry.0 as usize)
    }

    /// Whether the receive in this entry expects the data of the message that `source` announced from `send`.
    pub fn awaits(&self, entry: ReceiveEntry, source: RankId, send: SendEntry) -> bool {
        self.get(entry).is_some_and(|receive| {
            let Envelope { source: announcer, body, .. } = receive.announced;
            announcer == source
                && matches!(body, Body::RequestToSend { send: announced, .. } if announced == send)
        })
    }

    /// The entries of the next `count` announced messages that meet a receive, if none completes meanwhile.
    pub fn next_entries(&self, count: usize) -> Vec<ReceiveEntry> {
        if count <= 1 {
            return (0..count).map(|_| ReceiveEntry(self.table.vacant_key() as u32)).collect();
        }
        let mut receives = self.clone();
        let (send, source) = (SendEntry::new(0), RankId(0));
        let any = Envelope::new(source, Bytes::ZERO, Body::Receipt { send });
        let receive = PendingReceive { owner: Owner::Nobody, announced: any, buffer: Address::default() };
        (0..count).map(|_| receives.insert(receive)).collect()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &PendingReceive> {
        self.table.iter().map(|(_, receive)| receive)
    }

    /// Whose receives these are, to be changed.
    pub fn owners_mut(&mut self) -> impl Iterator<Item = &mut Owner> {
        self.table.iter_mut().map(|(_, receive)| &mut receive.owner)
    }
}
