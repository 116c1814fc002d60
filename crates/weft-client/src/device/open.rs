//! The open receives and announced sends of a rank that waits: the part of its messaging with which the
//! simulator can answer in its place.
//!
//! The rank writes it before it gives its turn away, and only where nothing but notices can make it go on
//! otherwise than by polling. A rank with more than there is room for says nothing, and takes its turns.

use super::{OPEN_AT, OPEN_SENDS_AT, Shared};
use std::sync::atomic::Ordering;
use weft_msg::{AnnouncedSend, Envelope, RankEndpoints, SendEntry, TaggedReceive};
use weft_units::{Bytes, RankId};

/// Receives, and sends, of a waiting rank that there is room for.
pub const OPEN: usize = 64;
/// The count of a list that the rank has not written.
pub(super) const UNTOLD: u32 = u32::MAX;
const REPEATS: u32 = 1;
const UNTAGGED: u32 = 2;
/// The lowest bits of the endpoints of the sender and of this rank.
const FROM_SHIFT: u32 = 8;
const AT_SHIFT: u32 = 16;

/// A posted receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct OpenReceive {
    tag: u64,
    ignore: u64,
    bytes: u64,
    /// Address of the buffer, in the rank's memory.
    pub address: u64,
    /// Length there.
    pub length: u64,
    from: u32,
    /// The rank's name for the receive.
    pub key: u32,
    /// The number of the announced message that is the so-manieth to meet a receive.
    pub number: u32,
    flags: u32,
}

impl OpenReceive {
    /// A receive with its buffer. `number`: that of the announced message that is the so-manieth to meet a
    /// receive.
    pub fn new(receive: &TaggedReceive, (address, length): (u64, u64), number: u32) -> OpenReceive {
        let TaggedReceive { from, endpoints, tagged, tag, ignore, bytes, repeats, key } = *receive;
        let from = from.map_or(u32::MAX, |from| from.0);
        let flags = if repeats { REPEATS } else { 0 }
            | if tagged { 0 } else { UNTAGGED }
            | u32::from(endpoints.from()) << FROM_SHIFT
            | u32::from(endpoints.to()) << AT_SHIFT;
        OpenReceive { tag, ignore, bytes: bytes.get(), address, length, from, key, number, flags }
    }

    /// The receive. Endpoints that no rank has are taken for its first.
    pub fn receive(&self) -> TaggedReceive {
        let endpoints = RankEndpoints::new((self.flags >> FROM_SHIFT) as u8, (self.flags >> AT_SHIFT) as u8);
        TaggedReceive {
            from: (self.from != u32::MAX).then_some(RankId(self.from)),
            endpoints: endpoints.unwrap_or(RankEndpoints::FIRST),
            tagged: self.flags & UNTAGGED == 0,
            tag: self.tag,
            ignore: self.ignore,
            bytes: Bytes::new(self.bytes),
            repeats: self.flags & REPEATS != 0,
            key: self.key,
        }
    }
}

/// An announced send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct OpenSend {
    bytes: u64,
    /// Address of the data, in the rank's memory.
    pub address: u64,
    /// Length there.
    pub length: u64,
    /// The send's number in messaging.
    pub number: u32,
    to: u32,
}

impl OpenSend {
    /// A send with its data.
    pub fn new(send: &AnnouncedSend, (address, length): (u64, u64)) -> OpenSend {
        OpenSend { bytes: send.bytes.get(), address, length, number: send.send.index(), to: send.to.0 }
    }

    /// The send.
    pub fn send(&self) -> AnnouncedSend {
        AnnouncedSend {
            send: SendEntry::new(self.number),
            to: RankId(self.to),
            bytes: Bytes::new(self.bytes),
        }
    }
}

impl Shared {
    /// The rank's side: says what it has open while it waits, if there is room for all of it.
    pub fn set_open(
        &mut self,
        receives: impl Iterator<Item = OpenReceive>,
        sends: impl Iterator<Item = OpenSend>,
    ) {
        let (mut receive_count, mut send_count) = (0, 0);
        for receive in receives {
            if receive_count == OPEN {
                return self.set_nothing_open();
            }
            self.write_at(OPEN_AT + receive_count * size_of::<OpenReceive>(), receive);
            receive_count += 1;
        }
        for send in sends {
            if send_count == OPEN {
                return self.set_nothing_open();
            }
            self.write_at(OPEN_SENDS_AT + send_count * size_of::<OpenSend>(), send);
            send_count += 1;
        }
        self.page().open_sends.store(send_count as u32, Ordering::Release);
        self.page().open_receives.store(receive_count as u32, Ordering::Release);
    }

    /// The rank's side: does not say what it has open.
    pub fn set_nothing_open(&mut self) {
        self.page().open_receives.store(UNTOLD, Ordering::Release);
    }

    /// The simulator's side: whether a receive that a waiting rank says it has open takes a message. Not to
    /// be believed.
    pub fn may_receive(&self, envelope: &Envelope) -> bool {
        let receives = self.page().open_receives.load(Ordering::Acquire) as usize;
        let receive =
            |index| self.read_at::<OpenReceive>(OPEN_AT + index * size_of::<OpenReceive>()).receive();
        receives <= OPEN && (0..receives).map(receive).any(|receive| receive.accepts(envelope))
    }

    /// The simulator's side: what a waiting rank has open; `None`: it does not say. Not to be believed.
    pub fn open_operations(&self) -> Option<(Vec<OpenReceive>, Vec<OpenSend>)> {
        let (receives, sends) = (
            self.page().open_receives.load(Ordering::Acquire),
            self.page().open_sends.load(Ordering::Acquire),
        );
        let (receives, sends) = (receives as usize, sends as usize);
        (receives <= OPEN && sends <= OPEN).then(|| {
            let receive = |index| self.read_at(OPEN_AT + index * size_of::<OpenReceive>());
            let send = |index| self.read_at(OPEN_SENDS_AT + index * size_of::<OpenSend>());
            ((0..receives).map(receive).collect(), (0..sends).map(send).collect())
        })
    }
}
