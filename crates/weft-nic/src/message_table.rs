//! Messages that are on their way to an interface, by their source and the number that it gave them.

use crate::key_table::KeyTable;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weft_units::EndpointId;

/// A message: its source, and its number there.
type Name = (EndpointId, u32);

/// The messages, with a `T` for each.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "T: Serialize + DeserializeOwned")]
pub(crate) struct MessageTable<T>(KeyTable<Option<T>>);

impl<T> Default for MessageTable<T> {
    fn default() -> Self {
        MessageTable(KeyTable::default())
    }
}

/// No endpoint has the number 2^32 - 1: each is a key of the table.
#[inline]
fn key((from, number): Name) -> u64 {
    u64::from(from.0) << 32 | u64::from(number)
}

impl<T> MessageTable<T> {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The entries of all messages, in no particular order.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &T> {
        self.0.entries().flatten()
    }

    /// Adds a message, or replaces what is known of it.
    #[inline]
    pub(crate) fn insert(&mut self, name: Name, message: T) {
        *self.0.get_or_add(key(name)) = Some(message);
    }

    #[inline]
    pub(crate) fn get(&self, name: Name) -> Option<&T> {
        self.0.get(key(name))?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, name: Name) -> Option<&mut T> {
        self.0.get_mut(key(name))?.as_mut()
    }

    #[inline]
    pub(crate) fn remove(&mut self, name: Name) -> Option<T> {
        self.0.remove(key(name)).flatten()
    }
}
