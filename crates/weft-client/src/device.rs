//! The virtual device: what a rank and the simulator share.
//!
//! ```text
//!   one memory file per rank
//!   ├ Page      whose turn, state, clock, costs
//!   ├ protocol  the machine's messaging, as bytes
//!   ├ outbox    [Post]    rank ──► simulator   │ bytes of small payloads
//!   ├ inbox     [Notice]  simulator ──► rank   │ bytes of small payloads
//!   └ log       [Entry]   rank ──► simulator   what its clock has moved for
//! ```
//! Exactly one side has the turn; the other sleeps on [`Page::turn`] and touches nothing. So the lists need
//! no locks: each is a count and an array, filled during one side's turn and emptied in the other's. The
//! simulator believes nothing that it finds: see [`Shared::take_posts`].

mod log;

pub use log::{Call, Entry, Log, Outside, Reason};

use log::{OutsideCounts, RawEntry};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::thread::futex;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{NonNull, addr_of, addr_of_mut};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use weft_msg::{Envelope, EnvelopeKind, SendToken};
use weft_units::{Bytes, RankId, Span};

/// First word of a device.
const MAGIC: u64 = u64::from_le_bytes(*b"weft-rnk");
/// Changes with the layout.
const VERSION: u32 = 3;
/// Posts of one turn; a rank with more gives its turn away in between.
pub const POSTS: usize = 256;
/// Notices of one turn; more wait at the simulator.
pub const NOTICES: usize = 256;
/// Bytes of the payloads of one turn, each way.
pub const ARENA: usize = 1 << 20;
/// How often a side without the turn looks whether it has it before it sleeps, since waking takes longer than most
/// turns last: so often without giving its core to others,
const LOOKS_WITH_CORE: u32 = 20;
/// and so often in all.
const LOOKS: u32 = 220;
/// Room for the protocol.
const PROTOCOL: usize = 16 << 10;

/// Who may run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Turn {
    /// The simulator.
    Simulator = 0,
    /// The rank.
    Rank = 1,
}

/// What a rank that does not have the turn wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum State {
    /// It runs in real time, outside virtual time: it has not joined yet.
    Real = 0,
    /// To go on when virtual time has reached its clock.
    Ready = 1,
    /// It has the turn.
    Run = 2,
    /// To go on when there is a notice.
    Wait = 3,
    /// It is in a barrier of the process manager.
    Fence = 4,
    /// It has left.
    Exit = 5,
}

impl State {
    fn of(word: u32) -> Option<State> {
        [State::Real, State::Ready, State::Run, State::Wait, State::Fence, State::Exit]
            .into_iter()
            .find(|state| *state as u32 == word)
    }
}

/// How computation moves a rank's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostModel {
    /// It takes no time.
    None,
    /// The thread's CPU time, times a scale in millionths.
    Cpu(u32),
    /// So much for each call of the library.
    Fixed(Span),
}

/// The first page.
#[repr(C)]
struct Page {
    magic: u64,
    version: u32,
    rank: u32,
    ranks: u32,
    endpoint: u32,
    domain: u32,
    host_model: u32,
    /// The rank's process, as it says.
    process: AtomicU32,
    /// The simulator's process.
    simulator: u32,
    /// Of [`HostModel`]: millionths, or picoseconds.
    host_value: u64,
    turn: AtomicU32,
    /// How many sleep until the turn changes: who gives it away need not wake anybody where nobody sleeps.
    asleep: AtomicU32,
    /// The core on which all of the job runs, plus one; 0: wherever the system puts it.
    core: AtomicU32,
    state: AtomicU32,
    /// The rank's clock, in ps.
    clock: AtomicU64,
    /// No notice can come before this time, in ps, beside those in the inbox.
    quiet_until: AtomicU64,
    /// Virtual time of an empty poll, of a clock read, in ps.
    poll: u64,
    clock_read: u64,
    /// Whether a rank that only polls is taken to wait from its first empty poll on.
    jumps: u32,
    protocol_length: u32,
    posts: u32,
    notices: u32,
    /// Entries of the log.
    logged: u32,
    outside: OutsideCounts,
    /// What the rank waits for: how many of the entries behind the page's beginning count.
    awaited: u32,
}

/// What an outbox entry asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum PostKind {
    /// A message of messaging.
    Message = 1,
    /// Memory becomes reachable for peers.
    Register = 2,
    /// And no more.
    Unregister = 3,
    /// RDMA write.
    Write = 4,
    /// RDMA read.
    Read = 5,
    /// Buffers of announced messages and registered memory are the program's again.
    Forget = 6,
}

/// An entry of the outbox.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Post {
    /// A [`PostKind`].
    pub kind: u32,
    /// The peer.
    pub to: u32,
    /// The rank's clock, in ps.
    pub at: u64,
    /// Its clock when the call began in which it posts, in ps.
    pub begun: u64,
    /// Of a message.
    pub envelope: RawEnvelope,
    /// Bytes on the wire beside packet headers.
    pub payload: u64,
    /// Names the operation in the notice of its completion; 0: none is wanted.
    pub token: u32,
    /// Bits: see `Post::WITH_DATA`, …
    pub flags: u32,
    /// Where in the outbox's arena the bytes lie.
    pub bytes_at: u32,
    /// How many.
    pub bytes: u32,
    /// An address in the rank's memory: the source of announced data, the buffer of a clear to send.
    pub local: u64,
    /// Length there.
    pub length: u64,
    /// An address in the peer's memory.
    pub remote: u64,
    /// Of registered memory.
    pub key: u64,
    /// Travels into the receiver's completion.
    pub data: u64,
    /// Entries of the log before it.
    pub logged: u32,
}

impl Post {
    /// [`Post::data`] counts.
    pub const WITH_DATA: u32 = 1;
    /// Registration: peers may read.
    pub const MAY_READ: u32 = 2;
    /// Registration: peers may write.
    pub const MAY_WRITE: u32 = 4;
}

/// What kind of operation a rank waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum AwaitedKind {
    /// A send that is not complete.
    Send = 1,
    /// A posted receive.
    Receive = 2,
    /// An RDMA write or read.
    Remote = 3,
}

/// An operation that a waiting rank waits for, for the report of a deadlock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Awaited {
    /// An [`AwaitedKind`].
    pub kind: u32,
    /// The peer; `u32::MAX`: any.
    pub peer: u32,
    /// Of a message.
    pub tag: u64,
    /// Of the message or the buffer.
    pub bytes: u64,
}

/// What an inbox entry tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum NoticeKind {
    /// A message has come.
    Message = 1,
    /// The interface has taken a message.
    Sent = 2,
    /// An RDMA write or read of this rank is complete.
    Done = 3,
    /// A peer has written into registered memory, with data.
    Written = 4,
}

/// An entry of the inbox.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Notice {
    /// A [`NoticeKind`].
    pub kind: u32,
    /// Of the operation.
    pub token: u32,
    /// When the interface had it, in ps.
    pub at: u64,
    /// Of a message.
    pub envelope: RawEnvelope,
    /// Where in the inbox's arena the bytes lie.
    pub bytes_at: u32,
    /// How many.
    pub bytes: u32,
    /// Travelled with it.
    pub data: u64,
    /// As in [`Post::flags`].
    pub flags: u32,
    /// 0, or an errno.
    pub error: i32,
}

/// An [`Envelope`] as plain numbers.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct RawEnvelope {
    kind: u32,
    untagged: u32,
    tag: u64,
    bytes: u64,
    source: u32,
    send: u32,
    receive: u32,
    unused: u32,
}

const KINDS: [EnvelopeKind; 5] = [
    EnvelopeKind::Eager,
    EnvelopeKind::RequestToSend,
    EnvelopeKind::ClearToSend,
    EnvelopeKind::Data,
    EnvelopeKind::Ack,
];

impl From<&Envelope> for RawEnvelope {
    fn from(envelope: &Envelope) -> RawEnvelope {
        let kind = KINDS.iter().position(|kind| *kind == envelope.kind).map_or(u32::MAX, |k| k as u32);
        RawEnvelope {
            kind,
            untagged: u32::from(!envelope.is_tagged()),
            tag: envelope.tag64(),
            bytes: envelope.bytes.get(),
            source: envelope.source.0,
            send: envelope.send,
            receive: envelope.receive,
            unused: 0,
        }
    }
}

impl RawEnvelope {
    /// The envelope; `None`: it is of no kind.
    pub fn envelope(&self) -> Option<Envelope> {
        let kind = *KINDS.get(self.kind as usize)?;
        let (tagged, bytes) = (self.untagged == 0, Bytes::new(self.bytes));
        let mut envelope = Envelope::of_real_rank(kind, tagged, RankId(self.source), self.tag, bytes);
        (envelope.send, envelope.receive) = (self.send, self.receive);
        Some(envelope)
    }
}

/// The token of a message as a number; 0: it is not awaited.
pub fn token_bits(token: SendToken) -> u32 {
    token.bits().map_or(0, NonZeroU32::get)
}

/// What a device tells its rank for good.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// The rank's number.
    pub rank: u32,
    /// Ranks of the job.
    pub ranks: u32,
    /// Its endpoint.
    pub endpoint: u32,
    /// The job's protection domain.
    pub domain: u16,
    /// How computation moves its clock.
    pub host: HostModel,
    /// Virtual time of an empty poll.
    pub poll: Span,
    /// Virtual time of a clock read.
    pub clock_read: Span,
    /// Whether a rank that only polls is taken to wait from its first empty poll on.
    pub jumps: bool,
}

/// Operations of a waiting rank that are told of.
pub const AWAITED: usize = 32;
const AWAITED_AT: usize = 2048;
const OUTBOX: usize = 4096 + PROTOCOL;
const OUT_ARENA: usize = OUTBOX + POSTS * size_of::<Post>();
const INBOX: usize = OUT_ARENA + ARENA;
const IN_ARENA: usize = INBOX + NOTICES * size_of::<Notice>();
const LOG_AT: usize = IN_ARENA + ARENA;
const LENGTH: usize = (LOG_AT + log::ROOM * size_of::<RawEntry>()).next_multiple_of(4096);

const _: () = assert!(
    size_of::<Page>() <= AWAITED_AT
        && AWAITED_AT + AWAITED * size_of::<Awaited>() <= 4096
        && size_of::<Post>().is_multiple_of(8)
        && size_of::<Notice>().is_multiple_of(8)
);

/// A device that cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The system refuses.
    #[error("shared memory for a rank cannot be {0}: {1}; free some memory, or start fewer ranks")]
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
        let name = format!("weft-rank-{}", identity.rank);
        // Closed on exec: a rank opens its own by its path, and inherits none of its peers'.
        let file = memfd_create(name, MemfdFlags::CLOEXEC)
            .map_err(|error| DeviceError::System("created", error.into()))?;
        ftruncate(&file, LENGTH as u64).map_err(|error| DeviceError::System("sized", error.into()))?;
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
            state: AtomicU32::new(State::Real as u32),
            clock: AtomicU64::new(0),
            quiet_until: AtomicU64::new(0),
            poll: identity.poll.as_ps(),
            clock_read: identity.clock_read.as_ps(),
            jumps: identity.jumps.into(),
            protocol_length: protocol.len() as u32,
            posts: 0,
            notices: 0,
            awaited: 0,
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

    #[expect(unsafe_code, reason = "the count lies in the page")]
    fn set_awaited_count(&mut self, count: u32) {
        let page = self.base.cast::<Page>().as_ptr();
        // SAFETY: as in `page`; the count belongs to the rank, in its turn.
        unsafe { addr_of_mut!((*page).awaited).write_volatile(count) };
    }

    #[expect(unsafe_code, reason = "the counts lie in the page")]
    fn set_counts(&mut self, posts: Option<u32>, notices: Option<u32>) {
        let page = self.base.cast::<Page>().as_ptr();
        // SAFETY: as in `page`; the counts belong to the side that has the turn.
        unsafe {
            if let Some(posts) = posts {
                addr_of_mut!((*page).posts).write_volatile(posts);
            }
            if let Some(notices) = notices {
                addr_of_mut!((*page).notices).write_volatile(notices);
            }
        }
    }

    #[expect(unsafe_code, reason = "the count lies in the page")]
    fn logged(&self) -> usize {
        let page = self.base.cast::<Page>().as_ptr();
        // SAFETY: as in `page`.
        unsafe { addr_of!((*page).logged).read_volatile() as usize }
    }

    #[expect(unsafe_code, reason = "the count lies in the page")]
    fn set_logged(&mut self, count: usize) {
        let page = self.base.cast::<Page>().as_ptr();
        // SAFETY: as in `page`; the count belongs to the side that has the turn.
        unsafe { addr_of_mut!((*page).logged).write_volatile(count as u32) };
    }

    #[expect(unsafe_code, reason = "the counts lie in the page")]
    fn counts(&self) -> (usize, usize) {
        let page = self.base.cast::<Page>().as_ptr();
        // SAFETY: as in `page`.
        let (posts, notices) =
            unsafe { (addr_of!((*page).posts).read_volatile(), addr_of!((*page).notices).read_volatile()) };
        ((posts as usize).min(POSTS), (notices as usize).min(NOTICES))
    }

    #[expect(unsafe_code, reason = "records are copied in and out, never borrowed")]
    fn read_at<T: Copy>(&self, offset: usize) -> T {
        assert!(offset + size_of::<T>() <= LENGTH && offset.is_multiple_of(align_of::<T>()));
        // SAFETY: within the mapping and aligned, both asserted; callers read types of plain numbers, for
        // which any bits are valid.
        unsafe { self.base.add(offset).cast::<T>().read_volatile() }
    }

    #[expect(unsafe_code, reason = "records are copied in and out, never borrowed")]
    fn write_at<T: Copy>(&mut self, offset: usize, value: T) {
        assert!(offset + size_of::<T>() <= LENGTH && offset.is_multiple_of(align_of::<T>()));
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

    /// What the device tells its rank for good.
    pub fn identity(&self) -> Identity {
        let page = self.page();
        Identity {
            rank: page.rank,
            ranks: page.ranks,
            endpoint: page.endpoint,
            domain: page.domain as u16,
            host: match page.host_model {
                1 => HostModel::Cpu(page.host_value as u32),
                2 => HostModel::Fixed(Span::from_ps(page.host_value)),
                _ => HostModel::None,
            },
            poll: Span::from_ps(page.poll),
            clock_read: Span::from_ps(page.clock_read),
            jumps: page.jumps != 0,
        }
    }

    /// The rank's process, as the rank says; `None`: it has not said. Not to be believed.
    pub fn process(&self) -> Option<u32> {
        Some(self.page().process.load(Ordering::Acquire)).filter(|process| *process != 0)
    }

    /// Whether the simulator's process is there. Without it the rank never gets another turn.
    pub fn has_simulator(&self) -> bool {
        let simulator = i32::try_from(self.page().simulator).ok().and_then(rustix::process::Pid::from_raw);
        simulator.is_some_and(|process| rustix::process::test_kill_process(process).is_ok())
    }

    /// Says which process the rank is.
    pub fn set_process(&self, process: u32) {
        self.page().process.store(process, Ordering::Release);
    }

    /// The machine's messaging, as it was given.
    pub fn protocol(&self) -> Vec<u8> {
        self.read(4096, (self.page().protocol_length as usize).min(PROTOCOL))
    }

    /// The rank's state; `None`: it has written nonsense there.
    pub fn state(&self) -> Option<State> {
        State::of(self.page().state.load(Ordering::Acquire))
    }

    /// Changes it.
    pub fn set_state(&self, state: State) {
        self.page().state.store(state as u32, Ordering::Release);
    }

    /// The rank's clock, in ps.
    pub fn clock(&self) -> u64 {
        self.page().clock.load(Ordering::Acquire)
    }

    /// Changes it.
    pub fn set_clock(&self, ps: u64) {
        self.page().clock.store(ps, Ordering::Release);
    }

    /// Until when no notice can come, in ps.
    pub fn quiet_until(&self) -> u64 {
        self.page().quiet_until.load(Ordering::Acquire)
    }

    /// Says until when no notice can come, in ps.
    pub fn set_quiet_until(&self, ps: u64) {
        self.page().quiet_until.store(ps, Ordering::Release);
    }

    /// The core on which all of the job is to run, while it is in virtual time.
    pub fn core(&self) -> Option<usize> {
        self.page().core.load(Ordering::Acquire).checked_sub(1).map(|core| core as usize)
    }

    /// Says on which core all of the job is to run.
    pub fn set_core(&self, core: Option<usize>) {
        self.page().core.store(core.map_or(0, |core| core as u32 + 1), Ordering::Release);
    }

    /// Whose turn it is.
    pub fn turn(&self) -> Turn {
        if self.page().turn.load(Ordering::Acquire) == Turn::Rank as u32 {
            Turn::Rank
        } else {
            Turn::Simulator
        }
    }

    /// Gives the turn away and wakes the other side.
    pub fn give_turn(&self, to: Turn) {
        let page = self.page();
        page.turn.store(to as u32, Ordering::SeqCst);
        if page.asleep.load(Ordering::SeqCst) > 0 {
            let _ = futex::wake(&page.turn, futex::Flags::empty(), 1);
        }
    }

    /// Wakes whoever waits for the turn, so that it looks around.
    pub fn nudge(&self) {
        let _ = futex::wake(&self.page().turn, futex::Flags::empty(), u32::MAX);
    }

    /// Looks and then sleeps until the turn is not `not` any more, or for so long. A sleep that somebody disturbs
    /// ends early.
    pub fn sleep_while(&self, not: Turn, at_most: Option<std::time::Duration>) {
        let Page { turn, asleep, .. } = self.page();
        // On one core the other side cannot run before this one sleeps.
        let looks = if self.core().is_some() { 1 } else { LOOKS };
        for look in 0..looks {
            if turn.load(Ordering::Acquire) != not as u32 {
                return;
            }
            if look < LOOKS_WITH_CORE {
                std::hint::spin_loop();
            } else {
                // The other side may be waiting for this core.
                rustix::thread::sched_yield();
            }
        }
        let timeout = at_most.and_then(|span| rustix::time::Timespec::try_from(span).ok());
        asleep.fetch_add(1, Ordering::SeqCst);
        let _ = futex::wait(turn, futex::Flags::empty(), not as u32, timeout.as_ref());
        asleep.fetch_sub(1, Ordering::SeqCst);
    }

    /// Puts bytes into an arena: where, or `None` if they do not fit.
    fn put_bytes(&mut self, arena: usize, used: &mut usize, bytes: &[u8]) -> Option<u32> {
        let at = *used;
        if bytes.len() > ARENA - at {
            return None;
        }
        self.write(arena + at, bytes);
        *used = at + bytes.len().next_multiple_of(8);
        Some(at as u32)
    }

    /// The rank's side: adds a post with its bytes; says whether it found room.
    pub fn post(&mut self, post: &Post, bytes: &[u8], used: &mut usize) -> bool {
        let (posts, _) = self.counts();
        if posts == POSTS {
            return false;
        }
        let Some(bytes_at) = self.put_bytes(OUT_ARENA, used, bytes) else { return false };
        let post = Post { bytes_at, bytes: bytes.len() as u32, ..*post };
        self.write_at(OUTBOX + posts * size_of::<Post>(), post);
        self.set_counts(Some(posts as u32 + 1), None);
        true
    }

    /// The rank's side: takes all notices with their bytes.
    pub fn take_notices(&mut self) -> Vec<(Notice, Vec<u8>)> {
        let (_, notices) = self.counts();
        let taken = (0..notices).map(|index| {
            let notice: Notice = self.read_at(INBOX + index * size_of::<Notice>());
            (notice, self.read_arena(IN_ARENA, notice.bytes_at, notice.bytes))
        });
        let taken = taken.collect();
        self.set_counts(None, Some(0));
        taken
    }

    /// The rank's side: says what it waits for. What does not fit is left out.
    pub fn set_awaited(&mut self, awaited: impl Iterator<Item = Awaited>) {
        let mut count = 0;
        for (index, operation) in awaited.take(AWAITED).enumerate() {
            self.write_at(AWAITED_AT + index * size_of::<Awaited>(), operation);
            count = index as u32 + 1;
        }
        self.set_awaited_count(count);
    }

    /// The simulator's side: what a waiting rank says that it waits for. Not to be believed.
    pub fn awaited(&self) -> Vec<Awaited> {
        let count = (self.page().awaited as usize).min(AWAITED);
        (0..count).map(|index| self.read_at(AWAITED_AT + index * size_of::<Awaited>())).collect()
    }

    /// Bytes of an arena; those that claim to lie outside it are none.
    fn read_arena(&self, arena: usize, at: u32, length: u32) -> Vec<u8> {
        let (at, length) = (at as usize, length as usize);
        if at > ARENA || length > ARENA - at { Vec::new() } else { self.read(arena + at, length) }
    }

    /// The simulator's side: takes all posts with their bytes. What a rank has written there is not
    /// trusted: counts and places are cut to what there is, and each post is copied once and then looked at.
    pub fn take_posts(&mut self) -> Vec<(Post, Vec<u8>)> {
        let (posts, _) = self.counts();
        let taken = (0..posts).map(|index| {
            let post: Post = self.read_at(OUTBOX + index * size_of::<Post>());
            (post, self.read_arena(OUT_ARENA, post.bytes_at, post.bytes))
        });
        let taken = taken.collect();
        self.set_counts(Some(0), None);
        taken
    }

    /// The simulator's side: adds a notice with its bytes; says whether it found room.
    pub fn notify(&mut self, mut notice: Notice, bytes: &[u8], used: &mut usize) -> bool {
        let (_, notices) = self.counts();
        if notices == NOTICES {
            return false;
        }
        let Some(at) = self.put_bytes(IN_ARENA, used, bytes) else { return false };
        (notice.bytes_at, notice.bytes) = (at, bytes.len() as u32);
        self.write_at(INBOX + notices * size_of::<Notice>(), notice);
        self.set_counts(None, Some(notices as u32 + 1));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_msg::TaggedSend;

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
            assert!(rank.post(&post, &number.to_le_bytes(), &mut out_used));
            let notice = Notice { at: number, ..Notice::default() };
            assert!(simulator.notify(notice, &[number as u8; 9], &mut in_used));
        }
        assert!(!rank.post(&Post::default(), &[], &mut out_used));
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
        assert!(rank.post(&Post { kind: 99, ..Post::default() }, &[], &mut 0));
        let lying = Post { bytes_at: u32::MAX - 3, bytes: u32::MAX, ..Post::default() };
        rank.write_at(OUTBOX, lying);
        rank.set_counts(Some(u32::MAX), None);
        let posts = simulator.take_posts();
        assert_eq!(posts.len(), POSTS);
        assert!(posts[0].1.is_empty());
        rank.page().state.store(77, Ordering::Relaxed);
        assert_eq!(simulator.state(), None);
    }

    #[test]
    fn envelopes_survive_the_way() {
        let mut process = weft_msg::Process::new(RankId(3), 4);
        let send = TaggedSend {
            to: RankId(1),
            tagged: true,
            tag: 0xdead_beef_8765_4321,
            bytes: Bytes::new(12),
            synchronous: true,
            key: Some(1),
        };
        struct Catch(Vec<Envelope>);
        impl weft_msg::Nic for Catch {
            fn spend(&mut self, _: weft_msg::Work, _: Span) {}
            fn post(&mut self, _: RankId, envelope: Envelope, _: Bytes, _: SendToken) {
                self.0.push(envelope);
            }
        }
        let mut caught = Catch(Vec::new());
        process.send_tagged(&send, &weft_msg::Protocol::zero(), &mut caught);
        let back = RawEnvelope::from(&caught.0[0]).envelope().unwrap();
        assert_eq!(back, caught.0[0]);
        assert_eq!(back.tag64(), send.tag);
        assert!(RawEnvelope { kind: 9, ..RawEnvelope::default() }.envelope().is_none());
    }
}
