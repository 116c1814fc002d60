//! The process's side: its interfaces of the four kinds, their names, and progress.

use crate::abi::Process;
use crate::carrier::Carrier;
use crate::process_memory::ProcessMemory;
use crate::weft::{WeftRank, weft_clock_ps, weft_count, weft_number, weft_open, weft_search, weft_yield};
use std::sync::{Mutex, MutexGuard, PoisonError};
use weft_portals_objects::NetworkInterface;
use weft_portals_objects::request::{OutgoingRequest, ProcessId};

/// Kinds of interfaces: matching or not, logical or physical addresses.
pub const KINDS: usize = 4;

/// An interface that is open.
pub struct Open {
    pub interface: NetworkInterface,
    /// How often the program has opened it.
    pub opened: u32,
    pub is_matching: bool,
    pub is_logical: bool,
    pub process: ProcessId,
    /// The physical process of each rank, with logical addresses.
    pub map: Vec<ProcessId>,
    /// The number of the next entry's handle.
    pub next_entry: u32,
}

impl Open {
    /// The rank of the job that a process is.
    pub fn rank_of(&self, process: ProcessId) -> Option<u32> {
        if !self.is_logical {
            return Some(process.nid);
        }
        self.map.get(process.nid as usize).map(|physical| physical.nid)
    }

    /// A process as the standard's union.
    pub fn process(&self, id: ProcessId) -> Process {
        Process { nid: id.nid, pid: if self.is_logical { 0 } else { id.pid } }
    }
}

/// This process.
pub struct Endpoint {
    rank: *mut WeftRank,
    pub number: u32,
    pub count: u32,
    carrier: Carrier,
    pub interfaces: [Option<Open>; KINDS],
}

// SAFETY: the rank is one of `weft.h`, which one thread calls at a time: the lock of [`ENDPOINT`] sees to it.
unsafe impl Send for Endpoint {}

static ENDPOINT: Mutex<Option<Endpoint>> = Mutex::new(None);

/// The process's endpoint, if it has been initialized.
pub fn endpoint() -> MutexGuard<'static, Option<Endpoint>> {
    ENDPOINT.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Endpoint {
    /// Joins the job. `None`: the process was not started by `weft run`.
    pub fn open() -> Option<Endpoint> {
        let mut rank = std::ptr::null_mut();
        // SAFETY: room for a pointer; then an open rank.
        let (number, count) = unsafe {
            if weft_open(&raw mut rank) != 0 {
                return None;
            }
            (weft_number(rank), weft_count(rank))
        };
        Some(Endpoint {
            rank,
            number,
            count,
            carrier: Carrier::new(rank),
            interfaces: [const { None }; KINDS],
        })
    }

    /// Virtual time, in ms.
    pub fn now_ms(&self) -> u64 {
        // SAFETY: the rank is open.
        unsafe { weft_clock_ps(self.rank) / 1_000_000_000 }
    }

    /// There is nothing to do until something comes.
    pub fn wait(&self) {
        // SAFETY: as above.
        unsafe { weft_yield(self.rank) };
    }

    /// Whether messages of this process have not left it.
    pub fn is_sending(&self) -> bool {
        self.carrier.is_sending()
    }

    /// Charges the search of list entries.
    pub fn charge(&self, entries: u32) {
        if entries > 0 {
            // SAFETY: as above.
            unsafe { weft_search(self.rank, u64::from(entries)) };
        }
    }

    /// Sends what interfaces have to send. What is for nobody comes back as undeliverable.
    pub fn send(&mut self) {
        for slot in 0..KINDS {
            while let Some(open) = &mut self.interfaces[slot] {
                let Some(message) = open.interface.outgoing() else { break };
                let (OutgoingRequest::Request(to, _) | OutgoingRequest::Response(to, _)) = &message;
                match open.rank_of(*to).filter(|rank| *rank < self.count) {
                    Some(rank) => self.carrier.send(rank, slot as u8, message),
                    None => undeliverable(open, &message),
                }
            }
        }
    }

    /// Makes progress. Returns whether anything has happened.
    pub fn progress(&mut self) -> bool {
        self.send();
        let (messages, happened) = self.carrier.poll();
        for (slot, message) in messages {
            let Some(Some(open)) = self.interfaces.get_mut(usize::from(slot)) else { continue };
            let mut searched = 0;
            match message {
                OutgoingRequest::Request(to, request) if to == open.process => {
                    searched = open.interface.request(&request, &mut ProcessMemory);
                }
                OutgoingRequest::Request(to, request) => {
                    // No process of that number is here.
                    undeliverable_there(open, to, &request);
                }
                OutgoingRequest::Response(_, response) => {
                    open.interface.respond(&response, &mut ProcessMemory)
                }
            }
            searched += open.interface.take_searched();
            self.charge(searched);
        }
        self.send();
        happened
    }
}

fn refusal(operation: u32) -> weft_portals_objects::request::Response {
    weft_portals_objects::request::Response {
        operation,
        outcome: weft_portals_objects::error::Outcome::Undeliverable,
        moved: 0,
        remote_offset: 0,
        list: weft_portals_objects::match_list::ListKind::Priority,
        silent: false,
        data: Vec::new(),
    }
}

/// A message of this process is for a process that does not exist.
fn undeliverable(open: &mut Open, message: &OutgoingRequest) {
    let OutgoingRequest::Request(_, request) = message else { return };
    if let Some(operation) = request.operation {
        open.interface.respond(&refusal(operation), &mut ProcessMemory);
    }
}

/// A request has come for another process than this one.
fn undeliverable_there(open: &mut Open, _: ProcessId, request: &weft_portals_objects::request::Request) {
    if let Some(operation) = request.operation {
        open.interface.refuse(request.header.initiator.process, refusal(operation));
    }
}
