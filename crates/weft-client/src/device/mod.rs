//! The virtual device: what a rank and the simulator share.
//!
//! ```text
//!   one memory file per rank
//!   ├ Page      whose turn, state, clock, costs
//!   ├ protocol  the machine's messaging, as bytes
//!   ├ outbox    [Post]    rank ──► simulator   │ bytes of small payloads
//!   ├ inbox     [Notice]  simulator ──► rank   │ bytes of small payloads
//!   ├ log       [Entry]   rank ──► simulator   what its clock has moved for
//!   └ open      rank ──► simulator   while it waits: receives posted, sends announced
//! ```
//! Exactly one side has the turn; the other sleeps on [`Shared::turn`] and touches nothing. So the lists need
//! no locks: each is a count and an array, filled during one side's turn and emptied in the other's. The
//! simulator believes nothing that it finds: see [`Shared::take_posts`]. Nor can a rank make the file
//! shorter, which would end whoever looks at what was there: its size is sealed.

mod lists;
mod log;
mod open;
mod page;
mod records;

pub use log::{Call, Log, LogEntry, Outside, Reason};
pub use open::{OPEN, OpenReceive, OpenSend};
pub use page::{HostModel, Identity, Sharing, State, Turn};
pub use records::{Awaited, AwaitedKind, Notice, NoticeKind, Post, PostKind, RawEnvelope, token_bits};

use log::{OutsideCounts, RawEntry};
use page::Page;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::process::Resource;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// First word of a device.
const MAGIC: u64 = u64::from_le_bytes(*b"weft-rnk");
/// Changes with the layout.
const VERSION: u32 = 13;
/// The beginning of the name of a device's memory file, by which the mappings of a process tell its device
/// from memory.
pub const NAME: &str = "weft-rank-";
/// Posts of one turn; a rank with more gives its turn away in between.
pub const POSTS: usize = 256;
/// Notices of one turn; more wait at the simulator.
pub const NOTICES: usize = 256;
/// Bytes of the payloads of one turn, each way.
pub const ARENA: usize = 1 << 20;
/// Room for the protocol.
const PROTOCOL: usize = 16 << 10;

/// Operations of a waiting rank that are told of.
pub const AWAITED: usize = 32;
const AWAITED_AT: usize = 2048;
const OUTBOX: usize = 4096 + PROTOCOL;
const OUT_ARENA: usize = OUTBOX + POSTS * size_of::<Post>();
const INBOX: usize = OUT_ARENA + ARENA;
const IN_ARENA: usize = INBOX + NOTICES * size_of::<Notice>();
const LOG_AT: usize = IN_ARENA + ARENA;
const OPEN_AT: usize = LOG_AT + log::ROOM * size_of::<RawEntry>();
const OPEN_SENDS_AT: usize = OPEN_AT + OPEN * size_of::<OpenReceive>();
const LENGTH: usize = (OPEN_SENDS_AT + OPEN * size_of::<OpenSend>()).next_multiple_of(4096);

const _: () = assert!(
    size_of::<Page>() <= AWAITED_AT
        && AWAITED_AT + AWAITED * size_of::<Awaited>() <= 4096
        && size_of::<Post>() % 8 == 0
        && size_of::<Notice>() % 8 == 0
        && size_of::<OpenReceive>() % 8 == 0
);

/// A device that cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The system refuses.
    #[error(
        "shared memory for a rank cannot be {0}: {1}; free some memory, start fewer ranks, or raise the \
         limits of open files, memory and the size of files (ulimit -n, -v, -f)"
    )]
    System(&'static str, std::io::Error),
    /// It is not a device of this version.
    #[error(
        "the job's shared memory is not one of this version of weft; use the libweft.so that came with it"
    )]
    Foreign,
    /// The protocol is too long.
    #[error("the machine's table of algorithms takes {0} bytes, more than a device holds")]
    Protocol(usize),
}

/// A mapped device. Both sides hold one.
pub struct Shared {
    base: NonNull<u8>,
}

// SAFETY: the memory is shared between processes anyway; access to it follows the turns, and both sides
// only move whole `Copy` records and atomics.
#[expect(unsafe_code, reason = "the pointer is to memory that is shared by design")]
unsafe impl Send for Shared {}

// SAFETY: by `&Shared` only atomics change; lists need `&mut`.
#[expect(unsafe_code, reason = "the pointer is to memory that is shared by design")]
unsafe impl Sync for Shared {}

impl Drop for Shared {
    #[expect(unsafe_code, reason = "unmapping")]
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nothing that borrows from it outlives it.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), LENGTH) };
    }
}

impl Shared {
    /// A new device in a memory file of its own, which lies in no folder and goes with its last holder.
    ///
    /// # Errors
    /// No memory, or a protocol that does not fit.
    pub fn create(identity: &Identity, protocol: &[u8]) -> Result<(Shared, OwnedFd), DeviceError> {
        if protocol.len() > PROTOCOL {
            return Err(DeviceError::Protocol(protocol.len()));
        }
        let name = format!("{NAME}{}", identity.rank);
        // Closed on exec: a rank opens its own by its path, and inherits none of its peers'.
        let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(|error| DeviceError::System("created", error.into()))?;
        if rustix::process::getrlimit(Resource::Fsize).current.is_some_and(|most| most < LENGTH as u64) {
            // Asking for it would end the process by a signal.
            return Err(DeviceError::System("sized", std::io::ErrorKind::FileTooLarge.into()));
        }
        ftruncate(&file, LENGTH as u64).map_err(|error| DeviceError::System("sized", error.into()))?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(|error| DeviceError::System("sealed", error.into()))?;
        let mut shared = Shared::map(&file)?;
        let (host_model, host_value) = match identity.host {
            HostModel::None => (0, 0),
            HostModel::Cpu(scale) => (1, scale.into()),
            HostModel::Fixed(span) => (2, span.as_ps()),
        };
        shared.set_page(Page {
            magic: MAGIC,
            version: VERSION,
            rank: identity.rank,
            ranks: identity.ranks,
            endpoint: identity.endpoint,
            domain: identity.domain.into(),
            host_model,
            process: AtomicU32::new(0),
            simulator: std::process::id(),
            host_value,
            turn: AtomicU32::new(Turn::Rank as u32),
            asleep: AtomicU32::new(0),
            core: AtomicU32::new(0),
            sharing: AtomicU32::new(Sharing::One as u32),
            state: AtomicU32::new(State::Real as u32),
            clock: AtomicU64::new(0),
            until: AtomicU64::new(0),
            quiet_until: AtomicU64::new(0),
            poll: identity.poll.as_ps(),
            clock_read: identity.clock_read.as_ps(),
            jumps: identity.jumps.into(),
            small: identity.small,
            rails: identity.rails,
            protocol_length: protocol.len() as u32,
            posts: 0,
            notices: 0,
            awaited: 0,
            within: AtomicU32::new(0),
            calls: AtomicU32::new(0),
            polls: AtomicU32::new(0),
            open_receives: AtomicU32::new(open::UNTOLD),
            open_sends: AtomicU32::new(0),
            logged: 0,
            outside: OutsideCounts { slept: AtomicU64::new(0), looked: AtomicU64::new(0) },
        });
        shared.write(4096, protocol);
        Ok((shared, file))
    }

    /// The device in a memory file.
    ///
    /// # Errors
    /// A file that is none.
    pub fn open(file: impl AsFd) -> Result<Shared, DeviceError> {
        let size = rustix::fs::fstat(&file).map_err(|error| DeviceError::System("read", error.into()))?;
        if size.st_size != LENGTH as i64 {
            return Err(DeviceError::Foreign);
        }
        let shared = Shared::map(file)?;
        let page = shared.page();
        if page.magic == MAGIC && page.version == VERSION { Ok(shared) } else { Err(DeviceError::Foreign) }
    }

    #[expect(unsafe_code, reason = "mapping")]
    fn map(file: impl AsFd) -> Result<Shared, DeviceError> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the system's choice overlaps nothing.
        let base = unsafe { mmap(std::ptr::null_mut(), LENGTH, protection, flags, file, 0) };
        let base = base.map_err(|error| DeviceError::System("mapped", error.into()))?;
        let base = NonNull::new(base.cast());
        base.map(|base| Shared { base }).ok_or(DeviceError::Foreign)
    }

    #[expect(unsafe_code, reason = "the page lies at the beginning of the mapping")]
    fn page(&self) -> &Page {
        // SAFETY: the mapping is longer than a page and aligned to one; any bits are a `Page`. What the other
        // side changes while this one looks is atomic; the rest changes only in the other's turn.
        unsafe { self.base.cast::<Page>().as_ref() }
    }

    #[expect(unsafe_code, reason = "the page lies at the beginning of the mapping")]
    fn set_page(&mut self, page: Page) {
        // SAFETY: as in `page`; nobody else has the mapping yet.
        unsafe { self.base.cast::<Page>().write(page) };
    }

    #[expect(unsafe_code, reason = "records are copied in and out, never borrowed")]
    fn read_at<T: Copy>(&self, offset: usize) -> T {
        assert!(offset + size_of::<T>() <= LENGTH && offset % align_of::<T>() == 0);
        // SAFETY: within the mapping and aligned, both asserted; callers read types of plain numbers, for
        // which any bits are valid.
        unsafe { self.base.add(offset).cast::<T>().read_volatile() }
    }

    #[expect(unsafe_code, reason = "records are copied in and out, never borrowed")]
    fn write_at<T: Copy>(&mut self, offset: usize, value: T) {
        assert!(offset + size_of::<T>() <= LENGTH && offset % align_of::<T>() == 0);
        // SAFETY: within the mapping and aligned, both asserted.
        unsafe { self.base.add(offset).cast::<T>().write_volatile(value) };
    }

    #[expect(unsafe_code, reason = "bytes are copied in")]
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset <= LENGTH && bytes.len() <= LENGTH - offset);
        // SAFETY: the destination lies within the mapping, asserted; the source is somebody else's memory.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.add(offset).as_ptr(), bytes.len()) };
    }

    #[expect(unsafe_code, reason = "bytes are copied out")]
    fn read(&self, offset: usize, length: usize) -> Vec<u8> {
        assert!(offset <= LENGTH && length <= LENGTH - offset);
        let mut bytes = vec![0; length];
        // SAFETY: the source lies within the mapping, asserted; the destination is as long.
        unsafe { std::ptr::copy_nonoverlapping(self.base.add(offset).as_ptr(), bytes.as_mut_ptr(), length) };
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;
    use weft_msg::{Body, Envelope, Match, RankEndpoints, TaggedReceive, TaggedSend};
    use weft_units::{Bytes, RankId, Span};

    pub(super) fn identity() -> Identity {
        Identity {
            rank: 3,
            ranks: 4,
            endpoint: 2,
            domain: 7,
            host: HostModel::Fixed(Span::from_ns(5)),
            poll: Span::from_ns(50),
            clock_read: Span::from_ns(20),
            jumps: false,
            small: 64,
            rails: 1,
        }
    }

    /// Catches a layout in which lists or arenas overlap.
    #[test]
    fn what_one_side_puts_in_the_other_takes_out() {
        let (mut simulator, file) = Shared::create(&identity(), b"protocol").unwrap();
        let mut rank = Shared::open(&file).unwrap();
        assert_eq!(rank.protocol(), b"protocol");
        let told = rank.identity();
        assert_eq!(
            (told.rank, told.ranks, told.endpoint, told.domain, told.host),
            (3, 4, 2, 7, identity().host)
        );
        let (mut out_used, mut in_used) = (0, 0);
        for number in 0..POSTS as u64 {
            let post = Post { at: number, data: !number, ..Post::default() };
            assert!(rank.post(post, &number.to_le_bytes(), &mut out_used));
            let notice = Notice { at: number, ..Notice::default() };
            assert!(simulator.notify(notice, &[number as u8; 9], &mut in_used));
        }
        assert!(!rank.post(Post::default(), &[], &mut out_used));
        assert!(!simulator.notify(Notice::default(), &[], &mut in_used));
        for (number, (post, bytes)) in (0u64..).zip(simulator.take_posts()) {
            assert_eq!((post.at, post.data, bytes), (number, !number, number.to_le_bytes().to_vec()));
        }
        for (number, (notice, bytes)) in (0u64..).zip(rank.take_notices()) {
            assert_eq!((notice.at, bytes), (number, vec![number as u8; 9]));
        }
        assert!(simulator.take_posts().is_empty() && rank.take_notices().is_empty());
    }

    /// Catches trust in what a hostile rank writes.
    #[test]
    fn nonsense_is_cut_to_what_there_is() {
        let (mut simulator, file) = Shared::create(&identity(), &[]).unwrap();
        let mut rank = Shared::open(&file).unwrap();
        assert!(rank.post(Post { kind: 99, ..Post::default() }, &[], &mut 0));
        let lying = Post { bytes_at: u32::MAX - 3, bytes: u32::MAX, ..Post::default() };
        rank.write_at(OUTBOX, lying);
        rank.set_counts(Some(u32::MAX), None);
        let posts = simulator.take_posts();
        assert_eq!(posts.len(), POSTS);
        assert!(posts[0].1.is_empty());
        rank.page().state.store(77, Ordering::Relaxed);
        assert_eq!(simulator.state(), None);
    }

    /// Catches a receive that a rank has open at one endpoint and that the simulator takes for one of
    /// another; and a lie of a rank that the simulator falls over.
    #[test]
    fn open_receives_are_those_of_their_endpoints() {
        let endpoints = RankEndpoints::new(3, 15).unwrap();
        let (tag, bytes, from) = (7, Bytes::new(8), Some(RankId(1)));
        let receive =
            TaggedReceive { from, endpoints, tagged: true, tag, ignore: 0, bytes, repeats: false, key: 2 };
        let (mut simulator, file) = Shared::create(&identity(), &[]).unwrap();
        let mut rank = Shared::open(&file).unwrap();
        rank.set_open([OpenReceive::new(&receive, (0, 8), 0)].into_iter(), std::iter::empty());
        let (open, _) = simulator.open_operations().unwrap();
        assert_eq!(open[0].receive().endpoints, endpoints);
        let message = |endpoints| {
            let matching = Match::of_real_rank(endpoints, true, tag);
            Envelope::new(RankId(1), bytes, Body::Eager { matching, receipt: None })
        };
        assert!(simulator.may_receive(&message(endpoints)));
        assert!(!simulator.may_receive(&message(endpoints.reversed())));
        simulator.write_at(OPEN_AT, [u64::MAX; size_of::<OpenReceive>() / 8]);
        let (open, _) = simulator.open_operations().unwrap();
        assert_eq!(open[0].receive().endpoints, RankEndpoints::FIRST);
    }

    #[test]
    fn envelopes_survive_the_way() {
        let mut process = weft_msg::Process::new(RankId(3), 4);
        let send = TaggedSend {
            to: RankId(1),
            endpoints: RankEndpoints::new(3, 15).unwrap(),
            tagged: true,
            tag: 0xdead_beef_8765_4321,
            bytes: Bytes::new(12),
            synchronous: true,
            key: Some(1),
        };
        struct Catch(Vec<Envelope>);
        impl weft_msg::Transport for Catch {
            fn spend(&mut self, _: weft_msg::Work, _: Span) {}
            fn post(&mut self, posting: weft_msg::Posting) {
                self.0.push(posting.envelope);
            }
        }
        let mut caught = Catch(Vec::new());
        process.on(&weft_msg::Protocol::zero(), &mut caught).send_tagged(&send);
        let back = RawEnvelope::from(&caught.0[0]).envelope().unwrap();
        assert_eq!(back, caught.0[0]);
        assert_eq!(back.matching().map(|matching| matching.tag64()), Some(send.tag));
        for nonsense in [
            RawEnvelope { kind: 9, ..RawEnvelope::default() },
            RawEnvelope { endpoints: 16, ..RawEnvelope::default() },
            RawEnvelope { endpoints: 16 << 8, ..RawEnvelope::default() },
            RawEnvelope { endpoints: 1 << 16, ..RawEnvelope::default() },
        ] {
            assert!(nonsense.envelope().is_none(), "{nonsense:?}");
        }
    }
}
