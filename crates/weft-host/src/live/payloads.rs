//! The bytes of messages under way.
//!
//! They lie beside the simulation, in the job, and do not influence it: a message's header names them.

use crate::job::Job;
use crate::nonsense::Nonsense;
use crate::rank_memory::{RankMemory, Unread};
use std::collections::BTreeMap;

/// The payloads of messages under way.
#[derive(Default)]
pub(super) struct Payloads {
    next: u32,
    /// Bytes that ranks have posted and nobody has received.
    posted: usize,
    kept: BTreeMap<u32, Data>,
}

/// A payload.
pub(super) enum Data {
    /// Posted with its message.
    Posted(Vec<u8>),
    /// Taken from memory.
    Bytes(Vec<u8>),
    /// It lies in the memory of a rank, which has lent it until the send is complete.
    At { rank: u32, address: u64, length: u64 },
}

impl Data {
    pub(super) fn bytes(self, job: &Job) -> Vec<u8> {
        match self {
            Data::Posted(bytes) | Data::Bytes(bytes) => bytes,
            Data::At { rank, address, length } => match RankMemory::of(job, rank).read(address, length) {
                Ok(bytes) => bytes,
                // A rank that has died has no memory.
                Err(Unread::Gone) => Vec::new(),
                Err(Unread::NoSuchMemory) => {
                    job.accuse(rank, Nonsense::Memory { address, length });
                    Vec::new()
                }
            },
        }
    }
}

impl Payloads {
    /// Keeps a payload until its message has arrived.
    pub(super) fn store(&mut self, data: Data) -> u32 {
        let mut number = self.next;
        while self.kept.contains_key(&number) {
            number = number.wrapping_add(1);
        }
        self.next = number.wrapping_add(1);
        if let Data::Posted(bytes) = &data {
            self.posted += bytes.len();
        }
        self.kept.insert(number, data);
        number
    }

    /// The interface has taken the data of a message: its bytes are those that lie there now.
    pub(super) fn capture(&mut self, number: u32, job: &Job) {
        if let Some(data @ Data::At { .. }) = self.kept.get_mut(&number) {
            let bytes = std::mem::replace(data, Data::Bytes(Vec::new())).bytes(job);
            *data = Data::Bytes(bytes);
        }
    }

    /// A payload, whose message has arrived.
    pub(super) fn take(&mut self, number: u32) -> Option<Data> {
        let data = self.kept.remove(&number);
        if let Some(Data::Posted(bytes)) = &data {
            self.posted -= bytes.len();
        }
        data
    }

    /// The bytes of a payload that was posted with its message.
    pub(super) fn posted_bytes(&self, number: u32) -> Option<&[u8]> {
        match self.kept.get(&number)? {
            Data::Posted(bytes) => Some(bytes),
            Data::Bytes(_) | Data::At { .. } => None,
        }
    }

    /// Bytes that ranks have posted and nobody has received.
    pub(super) fn posted(&self) -> usize {
        self.posted
    }
}
