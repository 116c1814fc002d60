//! Handles: names of the objects of an interface, none of which is given twice.

use crate::error::PortalsError;
use crate::match_list::{EntryNumber, ListKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name of a memory descriptor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct DescriptorHandle(pub u32);

/// The name of an event queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct QueueHandle(pub u32);

/// The name of a counting event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct CountingHandle(pub u32);

/// The name of a list entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct EntryHandle {
    /// The index of the portal table.
    pub portal: u32,
    /// The list.
    pub list: ListKind,
    /// The number in the list.
    pub number: EntryNumber,
}

/// Objects by number, at most so many at a time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Objects<T> {
    objects: BTreeMap<u32, T>,
    next: u32,
    most: u32,
}

impl<T> Objects<T> {
    pub fn new(most: u32) -> Objects<T> {
        Objects { objects: BTreeMap::new(), next: 0, most }
    }

    /// Adds an object.
    pub fn insert(&mut self, object: T) -> Result<u32, PortalsError> {
        if self.objects.len() >= self.most as usize {
            return Err(PortalsError::NoSpace);
        }
        while self.objects.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        let number = self.next;
        self.objects.insert(number, object);
        self.next = number.wrapping_add(1);
        Ok(number)
    }

    pub fn get(&self, number: u32) -> Result<&T, PortalsError> {
        self.objects.get(&number).ok_or(PortalsError::ArgumentInvalid)
    }

    pub fn get_mut(&mut self, number: u32) -> Result<&mut T, PortalsError> {
        self.objects.get_mut(&number).ok_or(PortalsError::ArgumentInvalid)
    }

    #[cfg(test)]
    pub fn insert_count(&self) -> usize {
        self.objects.len()
    }

    pub fn remove(&mut self, number: u32) -> Result<T, PortalsError> {
        self.objects.remove(&number).ok_or(PortalsError::ArgumentInvalid)
    }
}
