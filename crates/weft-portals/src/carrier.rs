//! Messages between processes: a header of bounded size, and longer data behind it.
//!
//! ```text
//!   header ── tag HEADER ──► one of the buffers that are always posted
//!   data   ── tag DATA + number ──► a buffer of its size, posted when its header has come
//! ```
//! Messages of one process are handed over in the order in which it sent them, each when it is whole.

use crate::weft::{
    ANY_SOURCE, COMPLETION, Completion, RECEIVED, SENT, TAGGED, WeftRank, weft_poll, weft_receive, weft_send,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_void;
use weft_portals_objects::request::OutgoingRequest;

/// Tags of this library: those of other users of `weft.h` do not begin so.
const HEADER: u64 = 0x5054_4C34_0000_0000;
const DATA: u64 = 0x5054_4C35_0000_0000;
/// Data up to this size goes with the header.
const INLINE: usize = 4096;
/// Room for a header with such data.
const BUFFER: usize = INLINE + 1024;
/// Buffers that are posted for headers.
const BUFFERS: usize = 32;

/// A message as it is sent: to which interface of the process, and how much data follows.
#[derive(Serialize, Deserialize)]
struct Header {
    slot: u8,
    data: Option<(u32, u64)>,
    message: OutgoingRequest,
}

/// A message that has come, or whose data has not.
struct Arrival {
    slot: u8,
    message: OutgoingRequest,
    /// The number of the data that is missing.
    missing: Option<u32>,
}

/// The carrier of this process.
pub struct Carrier {
    rank: *mut WeftRank,
    /// Buffers of receives and sends under way, by their contexts.
    buffers: BTreeMap<usize, Vec<u8>>,
    next_context: usize,
    next_data: u32,
    outbox: VecDeque<(u32, u64, Vec<u8>)>,
    /// Sends that are not complete.
    under_way: usize,
    arrivals: BTreeMap<u32, VecDeque<Arrival>>,
}

impl Carrier {
    /// The carrier of an open rank.
    pub fn new(rank: *mut WeftRank) -> Carrier {
        let (buffers, arrivals) = (BTreeMap::new(), BTreeMap::new());
        let mut carrier = Carrier {
            rank,
            buffers,
            next_context: 1,
            next_data: 0,
            outbox: VecDeque::new(),
            under_way: 0,
            arrivals,
        };
        (0..BUFFERS).for_each(|_| carrier.post(ANY_SOURCE, HEADER, BUFFER));
        carrier
    }

    fn take_context(&mut self) -> usize {
        let context = self.next_context;
        self.next_context += 1;
        context
    }

    /// Posts a receive.
    fn post(&mut self, from: u32, tag: u64, length: usize) {
        let context = self.take_context();
        let buffer = self.buffers.entry(context).or_insert(vec![0; length]);
        let (place, flags) = (buffer.as_mut_ptr().cast(), TAGGED | COMPLETION);
        // SAFETY: the rank is open, and the buffer stays in the map until its completion.
        unsafe { weft_receive(self.rank, from, tag, 0, place, length, flags, context as *mut c_void) };
    }

    /// Sends a message to the interface `slot` of a rank.
    pub fn send(&mut self, to: u32, slot: u8, mut message: OutgoingRequest) {
        let (OutgoingRequest::Request(_, weft_portals_objects::request::Request { data, .. })
        | OutgoingRequest::Response(_, weft_portals_objects::request::Response { data, .. })) = &mut message;
        let long = (data.len() > INLINE).then(|| std::mem::take(data));
        let number = self.next_data;
        let header = Header { slot, data: long.as_ref().map(|long| (number, long.len() as u64)), message };
        // A header of numbers and bytes has no reason to fail.
        let Ok(bytes) = postcard::to_stdvec(&header) else { return };
        self.outbox.push_back((to, HEADER, bytes));
        if let Some(long) = long {
            self.next_data = number.wrapping_add(1);
            self.outbox.push_back((to, DATA | u64::from(number), long));
        }
        self.flush();
    }

    /// Whether a message has not left this process.
    pub fn is_sending(&self) -> bool {
        self.under_way > 0 || !self.outbox.is_empty()
    }

    /// Sends what waits, in order, as far as the device takes it.
    fn flush(&mut self) {
        while let Some((to, tag, bytes)) = self.outbox.pop_front() {
            let context = self.take_context();
            let (place, length) = (bytes.as_ptr().cast(), bytes.len());
            // SAFETY: the rank is open; the bytes do not move while the vector is in the map, until
            // completion.
            let status = unsafe {
                weft_send(self.rank, to, tag, place, length, 0, TAGGED | COMPLETION, context as *mut c_void)
            };
            if status == -libc::EAGAIN {
                return self.outbox.push_front((to, tag, bytes));
            }
            if status == 0 {
                self.buffers.insert(context, bytes);
                self.under_way += 1;
            }
        }
    }

    /// Makes progress, and returns the messages that are whole now. Says too whether anything has happened.
    pub fn poll(&mut self) -> (Vec<(u8, OutgoingRequest)>, bool) {
        self.flush();
        let none = Completion {
            context: std::ptr::null_mut(),
            flags: 0,
            length: 0,
            buffer: std::ptr::null_mut(),
            data: 0,
            tag: 0,
            source: 0,
            error: 0,
            overflow: 0,
        };
        let mut completions = [none; 16];
        // SAFETY: the rank is open, and there is room for as many.
        let count = unsafe { weft_poll(self.rank, completions.as_mut_ptr(), completions.len()) };
        let count = usize::try_from(count).unwrap_or(0);
        for completion in &completions[..count] {
            self.complete(completion);
        }
        (self.take_whole(), count > 0)
    }

    fn complete(&mut self, completion: &Completion) {
        let Some(mut bytes) = self.buffers.remove(&(completion.context as usize)) else { return };
        if completion.flags & SENT != 0 || completion.flags & RECEIVED == 0 {
            self.under_way = self.under_way.saturating_sub(1);
            return;
        }
        bytes.truncate(completion.length);
        let source = completion.source;
        if completion.tag == HEADER {
            self.post(ANY_SOURCE, HEADER, BUFFER);
            if completion.error != 0 {
                return;
            }
            // Bytes of a process that has made up its own headers are ignored.
            let Ok(Header { slot, data, message }) = postcard::from_bytes(&bytes) else { return };
            let arrival = Arrival { slot, message, missing: data.map(|(number, _)| number) };
            self.arrivals.entry(source).or_default().push_back(arrival);
            if let Some((number, length)) = data {
                self.post(source, DATA | u64::from(number), usize::try_from(length).unwrap_or(0));
            }
            return;
        }
        let number = completion.tag as u32;
        let of_source = self.arrivals.entry(source).or_default();
        if let Some(arrival) = of_source.iter_mut().find(|arrival| arrival.missing == Some(number)) {
            arrival.missing = None;
            let (OutgoingRequest::Request(_, weft_portals_objects::request::Request { data, .. })
            | OutgoingRequest::Response(_, weft_portals_objects::request::Response { data, .. })) =
                &mut arrival.message;
            *data = bytes;
        }
    }

    fn take_whole(&mut self) -> Vec<(u8, OutgoingRequest)> {
        let mut whole = Vec::new();
        for of_source in self.arrivals.values_mut() {
            while of_source.front().is_some_and(|arrival| arrival.missing.is_none()) {
                whole.extend(of_source.pop_front().map(|arrival| (arrival.slot, arrival.message)));
            }
        }
        whole
    }
}
