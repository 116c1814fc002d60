//! The bytes of messages under way.
//!
//! They lie beside the simulation, in the job, and do not influence it: a message's header names them.

use crate::job::Job;
use std::collections::BTreeMap;

/// The payloads of messages under way.
#[derive(Default)]
pub(super) struct Payloads {
    next: u32,
    kept: BTreeMap<u32, Data>,
}

/// A payload.
pub(super) enum Data {
    /// Taken.
    Bytes(Vec<u8>),
    /// It lies in the memory of a rank, which has lent it until the send is complete.
    At { rank: u32, address: u64, length: u64 },
}

impl Data {
    pub(super) fn bytes(self, job: &Job) -> Vec<u8> {
        match self {
            Data::Bytes(bytes) => bytes,
            // A rank that has died has no memory.
            Data::At { rank, address, length } => job.read(rank, address, length).unwrap_or_default(),
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
        self.kept.remove(&number)
    }
}
