//! Every function and every option of `portals4.h`, by a process that is initiator and target of its own
//! messages: [`crate::fake_weft`] brings them back.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod header;

use crate::abi::*;
use crate::calls::*;
use crate::endpoint::endpoint;
use crate::fake_weft::device;
use crate::operations::*;
use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Calls a function of the interface.
macro_rules! call {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: tests pass null and places of variables that outlive the call and its messages.
        #[allow(unused_unsafe)]
        let returned = unsafe { $function($($argument),*) };
        returned
    }};
}

/// Calls a function that succeeds.
macro_rules! ok {
    ($function:ident($($argument:expr),* $(,)?)) => {
        assert_eq!(call!($function($($argument),*)), OK, stringify!($function))
    };
}

/// Event kinds and outcomes by the numbers of the header.
const GET: i32 = 0;
const PUT: i32 = 2;
const PUT_OVERFLOW: i32 = 3;
const ATOMIC: i32 = 4;
const FETCH_ATOMIC: i32 = 6;
const REPLY: i32 = 8;
const SEND: i32 = 9;
const ACK: i32 = 10;
const PT_DISABLED: i32 = 11;
const LINK: i32 = 12;
const AUTO_UNLINK: i32 = 13;
const AUTO_FREE: i32 = 14;
const SEARCH: i32 = 15;
const NI_DROPPED: i32 = 1;
const NI_PT_DISABLED: i32 = 2;
const NI_PERM_VIOLATION: i32 = 3;
const NI_OP_VIOLATION: i32 = 4;
const NI_UNDELIVERABLE: i32 = 6;
const NI_NO_MATCH: i32 = 7;

const NO_ACK: c_int = 0;
const FULL_ACK: c_int = 3;
const PRIORITY: c_int = 0;
const OVERFLOW: c_int = 1;
const SUM: c_int = 2;
const SWAP: c_int = 10;
const CSWAP: c_int = 11;
const INT32: c_int = 4;

const BITS: u64 = 0xB175;
const NOBODY: Process = Process { nid: ANY, pid: ANY };

/// One test at a time has the process's endpoint.
static TURN: Mutex<()> = Mutex::new(());

/// An interface with a portal table entry, a descriptor's and an entry's reports.
struct Portals {
    _turn: MutexGuard<'static, ()>,
    ni: u32,
    portal: u32,
    /// Of the target.
    events: u32,
    counts: u32,
    /// Of the initiator.
    own_events: u32,
    own_counts: u32,
    process: Process,
}

fn turn() -> MutexGuard<'static, ()> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    *endpoint() = None;
    turn
}

fn new_handle(make: impl FnOnce(*mut u32) -> c_int) -> u32 {
    let mut made = 0;
    assert_eq!(make(&raw mut made), OK);
    made
}

fn queue(ni: u32, events: u64) -> u32 {
    new_handle(|made| call!(PtlEQAlloc(ni, events, made)))
}

fn counting(ni: u32) -> u32 {
    new_handle(|made| call!(PtlCTAlloc(ni, made)))
}

impl Portals {
    /// Of a matching interface.
    fn new(table_options: u32) -> Portals {
        Portals::of(NI_MATCHING | NI_PHYSICAL, table_options)
    }

    fn of(kind: u32, table_options: u32) -> Portals {
        let turn = turn();
        ok!(PtlInit());
        let ni = new_handle(|made| call!(PtlNIInit(0, kind, ANY, null(), null_mut(), made)));
        let (events, own_events) = (queue(ni, 64), queue(ni, 64));
        let portal = new_handle(|made| call!(PtlPTAlloc(ni, table_options, events, ANY, made)));
        let mut process = NOBODY;
        ok!(PtlGetId(ni, &raw mut process));
        let (counts, own_counts) = (counting(ni), counting(ni));
        Portals { _turn: turn, ni, portal, events, counts, own_events, own_counts, process }
    }

    fn me(&self, memory: &mut [u8], options: u32) -> Me {
        let (start, length) = (memory.as_mut_ptr().cast(), memory.len() as u64);
        let (counting, user, match_id) = (self.counts, ANY, NOBODY);
        let (match_bits, ignore_bits, least_free) = (BITS, 0, 0);
        Me { start, length, counting, user, options, match_id, match_bits, ignore_bits, least_free }
    }

    fn append(&self, me: &Me, list: c_int) -> u32 {
        new_handle(|made| call!(PtlMEAppend(self.ni, self.portal, me, list, 7 as *mut c_void, made)))
    }

    fn md(&self, memory: &mut [u8], options: u32) -> u32 {
        let (start, length) = (memory.as_mut_ptr().cast(), memory.len() as u64);
        let md = Md { start, length, options, queue: self.own_events, counting: self.own_counts };
        new_handle(|made| call!(PtlMDBind(self.ni, &md, made)))
    }

    fn put(&self, md: u32, length: u64, acknowledgement: c_int) {
        let Portals { process, portal, .. } = *self;
        ok!(PtlPut(md, 0, length, acknowledgement, process, portal, BITS, 0, null_mut(), 0x11));
    }

    /// The events of a queue, kind and outcome of each, until there are no more.
    fn events(&self, queue: u32) -> Vec<(i32, i32)> {
        let mut events = Vec::new();
        // A message and its answer take a few polls.
        for _ in 0..8 {
            while let Some(event) = self.event(queue) {
                events.push((event.kind, event.outcome));
            }
        }
        events
    }

    fn event(&self, queue: u32) -> Option<FullEvent> {
        let mut event = std::mem::MaybeUninit::<FullEvent>::uninit();
        match call!(PtlEQGet(queue, event.as_mut_ptr())) {
            // SAFETY: the call has written an event.
            OK => Some(unsafe { event.assume_init() }),
            status => {
                assert_eq!(status, EQ_EMPTY);
                None
            }
        }
    }

    fn kinds(&self, queue: u32) -> Vec<i32> {
        self.events(queue).into_iter().map(|(kind, _)| kind).collect()
    }

    /// Events of the initiator after all that is under way has come.
    fn own(&self) -> Vec<(i32, i32)> {
        self.events(self.own_events)
    }

    fn counted(&self, counting: u32) -> (u64, u64) {
        self.own();
        let mut value = CtEvent { success: 9, failure: 9 };
        ok!(PtlCTGet(counting, &raw mut value));
        (value.success, value.failure)
    }

    /// Counts one more, on which operations may wait.
    fn count(&self, counting: u32) {
        ok!(PtlCTInc(counting, CtEvent { success: 1, failure: 0 }));
    }

    fn status(&self, register: c_int) -> i64 {
        let mut value = -1;
        ok!(PtlNIStatus(self.ni, register, &raw mut value));
        value
    }
}

/// Catches an interface that opens with a kind that there is not, a handle of a closed interface that works,
/// names of the process that are not those of the job, and a map that is taken twice.
#[test]
fn interfaces_open_close_and_know_their_process() {
    let turn = turn();
    assert_eq!(call!(PtlAtomicSync()), NO_INIT);
    ok!(PtlInit());
    ok!(PtlInit());
    ok!(PtlAtomicSync());
    call!(PtlAbort());
    let mut ni = 0;
    for kind in
        [0, NI_MATCHING, NI_MATCHING | NI_NO_MATCHING | NI_LOGICAL, NI_MATCHING | NI_LOGICAL | NI_PHYSICAL]
    {
        assert_eq!(call!(PtlNIInit(0, kind, ANY, null(), null_mut(), &raw mut ni)), ARG_INVALID);
    }
    assert_eq!(
        call!(PtlNIInit(1, NI_MATCHING | NI_PHYSICAL, ANY, null(), null_mut(), &raw mut ni)),
        ARG_INVALID
    );
    let mut wanted = NiLimits {
        counts: [5; 9],
        message: 100,
        atomic: 8,
        fetch_atomic: 8,
        write_after_write: 4,
        write_after_read: 4,
        volatile: 4,
        features: 0,
    };
    let mut granted = NiLimits { counts: [0; 9], ..wanted };
    ok!(PtlNIInit(0, NI_MATCHING | NI_PHYSICAL, 9, &wanted, &raw mut granted, &raw mut ni));
    assert_eq!((granted.counts, granted.message), ([5; 9], 100));
    // The second opening is of the same interface, with its limits.
    wanted.message = 7;
    let again =
        new_handle(|made| call!(PtlNIInit(0, NI_MATCHING | NI_PHYSICAL, 9, &wanted, &raw mut granted, made)));
    assert_eq!((call!(PtlHandleIsEqual(ni, again)), granted.message), (OK, 100));
    let mut process = NOBODY;
    ok!(PtlGetId(ni, &raw mut process));
    assert_eq!((process.nid, process.pid), (0, 9));
    ok!(PtlGetPhysId(ni, &raw mut process));
    assert_eq!((process.nid, process.pid), (0, 9));
    let mut user = 0;
    ok!(PtlGetUid(ni, &raw mut user));
    // SAFETY: it always succeeds.
    assert_eq!(user, unsafe { libc::getuid() });
    assert_eq!(call!(PtlSetMap(ni, 1, &process)), ARG_INVALID, "of physical addresses");

    let logical =
        new_handle(|made| call!(PtlNIInit(ANY, NI_NO_MATCHING | NI_LOGICAL, ANY, null(), null_mut(), made)));
    assert_eq!(call!(PtlHandleIsEqual(ni, logical)), FAIL);
    let map = [Process { nid: 1, pid: 1 }, Process { nid: 0, pid: 1 }];
    let (mut read, mut size) = ([NOBODY; 2], 9);
    assert_eq!(call!(PtlSetMap(logical, 3, map.as_ptr())), ARG_INVALID);
    ok!(PtlSetMap(logical, 2, map.as_ptr()));
    assert_eq!(call!(PtlSetMap(logical, 2, map.as_ptr())), IGNORED);
    ok!(PtlGetMap(logical, 1, read.as_mut_ptr(), &raw mut size));
    assert!(size == 2 && read[0] == map[0] && read[1] == NOBODY, "room for one");
    ok!(PtlGetId(logical, &raw mut process));
    assert_eq!(process.nid, 1, "the place in the map");
    ok!(PtlGetPhysId(logical, &raw mut process));
    assert_eq!((process.nid, process.pid), (0, 1));

    // Nothing has the memory for so many events.
    let mut made = 0;
    for events in [1 << 40, u64::MAX, (1 << 24) + 1] {
        assert_eq!(call!(PtlEQAlloc(ni, events, &raw mut made)), NO_SPACE, "{events}");
    }
    ok!(PtlEQFree(queue(ni, 1 << 24)));
    let mut of = 0;
    for object in [ni, queue(ni, 1), counting(ni)] {
        ok!(PtlNIHandle(object, &raw mut of));
        assert_eq!(call!(PtlHandleIsEqual(of, ni)), OK);
    }
    assert_eq!(call!(PtlNIHandle(0, &raw mut of)), ARG_INVALID);
    ok!(PtlNIFini(ni));
    ok!(PtlGetUid(ni, &raw mut user));
    ok!(PtlNIFini(ni));
    assert_eq!(call!(PtlGetUid(ni, &raw mut user)), ARG_INVALID);
    call!(PtlFini());
    assert_eq!(call!(PtlNIFini(logical)), ARG_INVALID);
    drop(turn);
}

/// Catches an option of a portal table entry that does nothing, or something else.
#[test]
fn table_entries_heed_their_options() {
    let (mut memory, mut data) = ([0; 8], *b"weft");
    let both = ME_OP_PUT | ME_OP_GET;
    for (option, refused) in
        [(PT_ONLY_USE_ONCE, both), (PT_ONLY_TRUNCATE, both | ME_USE_ONCE | ME_NO_TRUNCATE)]
    {
        let own = Portals::new(option);
        let (mut made, me) = (0, own.me(&mut memory, refused));
        let status = call!(PtlMEAppend(own.ni, own.portal, &me, PRIORITY, null_mut(), &raw mut made));
        assert_eq!(status, ARG_INVALID, "option {option}");
        own.append(&own.me(&mut memory, both | ME_USE_ONCE), PRIORITY);
    }

    let own = Portals::new(PT_FLOWCTRL);
    let mut index = 0;
    assert_eq!(call!(PtlPTAlloc(own.ni, PT_FLOWCTRL, 0, ANY, &raw mut index)), PT_EQ_NEEDED);
    assert_eq!(call!(PtlPTAlloc(own.ni, 0, 0, own.portal, &raw mut index)), PT_IN_USE);
    assert_eq!(call!(PtlPTAlloc(own.ni, 0, 0, 64, &raw mut index)), ARG_INVALID);
    let md = own.md(&mut data, 0);
    own.put(md, 4, FULL_ACK);
    assert_eq!(own.own(), [(SEND, 0), (ACK, NI_PT_DISABLED)], "there is no entry");
    assert_eq!(own.kinds(own.events), [PT_DISABLED]);
    let entry = own.append(&own.me(&mut memory, both), PRIORITY);
    assert_eq!(call!(PtlPTFree(own.ni, own.portal)), PT_IN_USE);
    own.put(md, 4, FULL_ACK);
    assert_eq!(own.own(), [(SEND, 0), (ACK, NI_PT_DISABLED)], "it stays disabled");
    ok!(PtlPTEnable(own.ni, own.portal));
    own.put(md, 4, FULL_ACK);
    assert_eq!(own.own(), [(SEND, 0), (ACK, 0)]);
    ok!(PtlPTDisable(own.ni, own.portal));
    own.put(md, 4, FULL_ACK);
    assert_eq!(own.own(), [(SEND, 0), (ACK, NI_PT_DISABLED)]);
    assert_eq!(own.status(0), 3, "dropped");
    ok!(PtlMEUnlink(entry));
    assert_eq!(call!(PtlMEUnlink(entry)), ARG_INVALID);
    ok!(PtlPTFree(own.ni, own.portal));
    assert_eq!(call!(PtlPTEnable(own.ni, own.portal)), ARG_INVALID);
    drop(own);

    let own = Portals::new(PT_ALLOC_DISABLED);
    let md = own.md(&mut data, 0);
    own.append(&own.me(&mut memory, both), PRIORITY);
    own.put(md, 4, FULL_ACK);
    assert_eq!(own.own(), [(SEND, 0), (ACK, NI_PT_DISABLED)]);
    ok!(PtlPTEnable(own.ni, own.portal));
    own.put(md, 4, FULL_ACK);
    assert_eq!(own.own(), [(SEND, 0), (ACK, 0)]);
    drop(own);

    for (option, searched) in [(0, 3), (PT_MATCH_UNORDERED, 1)] {
        let own = Portals::new(option);
        for match_bits in [1, 2, BITS] {
            own.append(&Me { match_bits, ..own.me(&mut memory, both) }, PRIORITY);
        }
        let (md, before) = (own.md(&mut data, 0), device(|device| device.searched));
        own.put(md, 4, NO_ACK);
        own.own();
        assert_eq!(device(|device| device.searched) - before, searched, "option {option}");
    }
}

/// Catches an option of a list entry that does nothing, or something else: events and counts of a put of four
/// bytes with a full acknowledgement, at target and initiator.
#[test]
fn entries_heed_their_options() {
    const INTO: u32 = ME_OP_PUT;
    const IS_ACCESSIBLE: u32 = 32;
    const MAY_ALIGN: u32 = 131_072;
    let acknowledged = [(SEND, 0), (ACK, 0)];
    let usual = [LINK, PUT];
    for (options, events, counted, own_events) in [
        (INTO, &usual[..], 0, &acknowledged[..]),
        (INTO | IS_ACCESSIBLE | MAY_ALIGN | ME_EVENT_FLOWCTRL_DISABLE, &usual, 0, &acknowledged),
        (ME_OP_GET, &[LINK], 0, &[(SEND, 0), (ACK, NI_OP_VIOLATION)]),
        (INTO | ME_USE_ONCE, &[LINK, PUT, AUTO_UNLINK], 0, &acknowledged),
        (INTO | ME_USE_ONCE | ME_EVENT_UNLINK_DISABLE, &usual, 0, &acknowledged),
        (INTO | ME_ACK_DISABLE, &usual, 0, &acknowledged[..1]),
        (INTO | ME_EVENT_LINK_DISABLE, &[PUT], 0, &acknowledged),
        (INTO | ME_EVENT_COMM_DISABLE, &[LINK], 0, &acknowledged),
        (INTO | ME_EVENT_SUCCESS_DISABLE, &[LINK], 0, &acknowledged),
        (INTO | ME_EVENT_CT_COMM, &usual, 1, &acknowledged),
        (INTO | ME_EVENT_CT_COMM | ME_EVENT_CT_BYTES, &usual, 4, &acknowledged),
        (INTO | ME_EVENT_CT_OVERFLOW | ME_EVENT_CT_BYTES, &usual, 0, &acknowledged),
    ] {
        let own = Portals::new(0);
        let (mut memory, mut data) = ([0; 8], *b"weft");
        own.append(&own.me(&mut memory, options), PRIORITY);
        own.put(own.md(&mut data, 0), 4, FULL_ACK);
        assert_eq!(own.own(), own_events, "options {options}");
        assert_eq!(own.kinds(own.events), events, "options {options}");
        assert_eq!(own.counted(own.counts), (counted, 0), "options {options}");
        let comes = options & INTO != 0;
        assert_eq!(memory, if comes { *b"weft\0\0\0\0" } else { [0; 8] }, "options {options}");
        assert_eq!(own.status(2), i64::from(!comes));
    }

    // The overflow list takes the put first, an entry of the priority list its header.
    let freed = [LINK, PUT, AUTO_UNLINK, PUT_OVERFLOW, AUTO_FREE, LINK];
    let quiet = [LINK, PUT, AUTO_UNLINK, AUTO_FREE, LINK];
    for (overflow, options, events, counted) in [
        (0, 0, &freed[..], 0),
        (0, ME_EVENT_CT_OVERFLOW, &freed, 1),
        (0, ME_EVENT_CT_OVERFLOW | ME_EVENT_CT_BYTES, &freed, 4),
        (0, ME_EVENT_OVER_DISABLE, &quiet, 0),
        (0, ME_EVENT_SUCCESS_DISABLE, &quiet, 0),
        (ME_UNEXPECTED_HDR_DISABLE, 0, &quiet, 0),
        (ME_EVENT_UNLINK_DISABLE, 0, &[LINK, PUT, PUT_OVERFLOW, LINK], 0),
    ] {
        let own = Portals::new(0);
        let (mut early, mut memory, mut data) = ([0; 8], [0; 8], *b"weft");
        own.append(&own.me(&mut early, INTO | ME_USE_ONCE | overflow), OVERFLOW);
        own.put(own.md(&mut data, 0), 4, FULL_ACK);
        assert_eq!(own.own(), acknowledged);
        own.append(&own.me(&mut memory, INTO | options), PRIORITY);
        assert_eq!(own.kinds(own.events), events, "options {overflow}, {options}");
        assert_eq!(own.counted(own.counts), (counted, 0), "options {overflow}, {options}");
        assert_eq!((early, memory), (*b"weft\0\0\0\0", [0; 8]));
    }

    // A put of four bytes, and one of three to the same place: with local offsets behind it. Then there is
    // room for one byte.
    const BEHIND: u32 = INTO | ME_MANAGE_LOCAL;
    for (options, expected, outcome) in [
        (INTO, b"eftt\0\0\0\0", 0),
        (BEHIND, b"wefteft\0", 0),
        (BEHIND | ME_NO_TRUNCATE, b"wefteft\0", NI_DROPPED),
        (BEHIND | ME_NO_TRUNCATE | IOVEC, b"wefteft\0", NI_DROPPED),
    ] {
        let own = Portals::new(0);
        let (mut memory, mut data) = ([0; 8], *b"weft");
        let mut me = own.me(&mut memory, options);
        let piece = |at, length| Iovec { start: me.start.wrapping_byte_add(at), length };
        let mut pieces = [piece(0, 3), piece(3, 5)];
        if options & IOVEC != 0 {
            (me.start, me.length) = (pieces.as_mut_ptr().cast(), 2);
        }
        own.append(&me, PRIORITY);
        let md = own.md(&mut data, 0);
        own.put(md, 4, NO_ACK);
        ok!(PtlPut(md, 1, 3, NO_ACK, own.process, own.portal, BITS, 0, null_mut(), 0));
        own.own();
        assert_eq!(&memory, expected, "options {options}");
        own.put(md, 4, FULL_ACK);
        assert_eq!(own.own(), [(SEND, 0), (ACK, outcome)], "options {options}");
    }
    let own = Portals::new(0);
    let (mut memory, mut data) = ([0; 8], *b"weft");
    own.append(&Me { user: 1 + ANY / 2, ..own.me(&mut memory, INTO) }, PRIORITY);
    own.put(own.md(&mut data, 0), 4, FULL_ACK);
    assert_eq!((own.own(), own.status(1)), (vec![(SEND, 0), (ACK, NI_PERM_VIOLATION)], 1));
}

/// Catches an option of a descriptor that does nothing, or something else: events and counts of a put and a
/// get of four bytes at their initiator.
#[test]
fn descriptors_heed_their_options() {
    const UNORDERED_VOLATILE: u32 = 32 | 64;
    let usual = [SEND, ACK, REPLY];
    for (options, events, counted) in [
        (0, &usual[..], 0),
        (UNORDERED_VOLATILE, &usual, 0),
        (MD_EVENT_SUCCESS_DISABLE, &[], 0),
        (MD_EVENT_SEND_DISABLE, &[ACK, REPLY], 0),
        (MD_EVENT_CT_SEND, &usual, 1),
        (MD_EVENT_CT_ACK, &usual, 1),
        (MD_EVENT_CT_REPLY, &usual, 1),
        (MD_EVENT_CT_SEND | MD_EVENT_CT_ACK | MD_EVENT_CT_REPLY, &usual, 3),
        (MD_EVENT_CT_SEND | MD_EVENT_CT_ACK | MD_EVENT_CT_REPLY | MD_EVENT_CT_BYTES, &usual, 12),
        (IOVEC, &usual, 0),
    ] {
        let own = Portals::new(0);
        let (mut memory, mut data) = (*b"0123fabric", *b"weft");
        own.append(&own.me(&mut memory, ME_OP_PUT | ME_OP_GET), PRIORITY);
        let place = data.as_mut_ptr();
        let pieces = [
            Iovec { start: place.cast(), length: 1 },
            Iovec { start: place.wrapping_add(1).cast(), length: 3 },
        ];
        let md = if options & IOVEC == 0 {
            own.md(&mut data, options)
        } else {
            let start = pieces.as_ptr().cast_mut().cast();
            let md = Md { start, length: 2, options, queue: own.own_events, counting: own.own_counts };
            new_handle(|made| call!(PtlMDBind(own.ni, &md, made)))
        };
        own.put(md, 4, FULL_ACK);
        let mut kinds = own.kinds(own.own_events);
        ok!(PtlGet(md, 0, 4, own.process, own.portal, BITS, 4, null_mut()));
        kinds.extend(own.kinds(own.own_events));
        assert_eq!(kinds, events, "options {options}");
        assert_eq!(own.counted(own.own_counts), (counted, 0), "options {options}");
        assert_eq!((&memory, &data), (b"weftfabric", b"fabr"), "options {options}");
        ok!(PtlMDRelease(md));
        assert_eq!(call!(PtlMDRelease(md)), ARG_INVALID);
    }
}

/// Catches an operation that moves or computes other bytes, data that is lost behind a long message, an event
/// without its fields, and arguments that are taken although they are wrong.
#[test]
fn operations_move_and_compute() {
    let own = Portals::new(0);
    let Portals { process, portal, .. } = own;
    let (mut memory, mut data) = (vec![0; 10_000], (0..10_000).map(|byte| byte as u8).collect::<Vec<u8>>());
    own.append(&own.me(&mut memory, ME_OP_PUT | ME_OP_GET), PRIORITY);
    let md = own.md(&mut data, 0);
    own.put(md, 10_000, FULL_ACK);
    assert_eq!(own.own(), [(SEND, 0), (ACK, 0)]);
    assert_eq!(memory, data);
    let link = own.event(own.events).unwrap();
    assert_eq!((link.kind, link.user as usize), (LINK, 7));
    let put = own.event(own.events).unwrap();
    assert_eq!((put.kind, put.user as usize, put.header_data, put.match_bits), (PUT, 7, 0x11, BITS));
    assert_eq!((put.requested, put.moved, put.remote_offset, put.portal), (10_000, 10_000, 0, portal));
    assert!(put.initiator == process && put.start as *const u8 == memory.as_ptr());

    let (mut sum, mut before) = (5i32.to_ne_bytes(), 0i32.to_ne_bytes());
    memory[..4].copy_from_slice(&40i32.to_ne_bytes());
    let value = |bytes: &[u8]| i32::from_ne_bytes(bytes[..4].try_into().unwrap());
    let (from, into) = (own.md(&mut sum, 0), own.md(&mut before, 0));
    ok!(PtlAtomic(from, 0, 4, FULL_ACK, process, portal, BITS, 0, null_mut(), 0, SUM, INT32));
    assert_eq!(own.own(), [(SEND, 0), (ACK, 0)]);
    assert_eq!(value(&memory), 45);
    ok!(PtlFetchAtomic(into, 0, from, 0, 4, process, portal, BITS, 0, null_mut(), 0, SUM, INT32));
    assert_eq!(own.own(), [(SEND, 0), (REPLY, 0)]);
    assert_eq!((value(&memory), value(&before)), (50, 45));
    let operand = |value: &i32| (value as *const i32).cast::<c_void>();
    for (wanted, after) in [(51, 50), (50, 5)] {
        ok!(PtlSwap(
            into,
            0,
            from,
            0,
            4,
            process,
            portal,
            BITS,
            0,
            null_mut(),
            0,
            operand(&wanted),
            CSWAP,
            INT32
        ));
        assert_eq!(own.own(), [(SEND, 0), (REPLY, 0)]);
        assert_eq!((value(&memory), value(&before)), (after, 50));
    }
    assert_eq!(own.kinds(own.events), [ATOMIC, FETCH_ATOMIC, FETCH_ATOMIC, FETCH_ATOMIC]);

    let put = |md, offset, length, ack| {
        call!(PtlPut(md, offset, length, ack, process, portal, BITS, 0, null_mut(), 0))
    };
    assert_eq!(put(md, 0, 10_001, NO_ACK), ARG_INVALID);
    assert_eq!(put(md, u64::MAX, 2, NO_ACK), ARG_INVALID);
    assert_eq!(put(md, 0, 4, 4), ARG_INVALID);
    assert_eq!(put(own.ni, 0, 4, NO_ACK), ARG_INVALID, "an interface is no descriptor");
    let atomic =
        |how, of| call!(PtlAtomic(from, 0, 4, NO_ACK, process, portal, BITS, 0, null_mut(), 0, how, of));
    assert_eq!((atomic(99, INT32), atomic(SUM, 99), atomic(SUM, 6)), (ARG_INVALID, ARG_INVALID, ARG_INVALID));
    let swap = |operand, how| {
        call!(PtlSwap(into, 0, from, 0, 4, process, portal, BITS, 0, null_mut(), 0, operand, how, INT32))
    };
    assert_eq!((swap(null(), CSWAP), swap(null(), SUM)), (ARG_INVALID, ARG_INVALID));
    assert_eq!(swap(null(), SWAP), OK, "a plain swap has no operand");
    assert_eq!(own.own(), [(SEND, 0), (REPLY, 0)]);
}

/// Catches a message for nobody whose initiator waits for ever.
#[test]
fn messages_for_nobody_come_back() {
    let own = Portals::new(0);
    let md = own.md(&mut *Box::leak(Box::new(*b"weft")), MD_EVENT_CT_ACK);
    let beyond = Process { nid: 2, pid: 1 };
    let other = Process { nid: 0, pid: 2 };
    for (failures, nobody) in [(1, beyond), (2, other)] {
        ok!(PtlPut(md, 0, 4, FULL_ACK, nobody, own.portal, BITS, 0, null_mut(), 0));
        assert_eq!(own.own(), [(SEND, 0), (ACK, NI_UNDELIVERABLE)]);
        assert_eq!(own.counted(own.own_counts), (0, failures));
    }
    ok!(PtlPut(md, 0, 4, FULL_ACK, own.process, 60, BITS, 0, null_mut(), 0));
    assert_eq!(own.own(), [(SEND, 0), (ACK, NI_DROPPED)], "no table entry");
}

/// Catches a triggered operation that starts before its threshold, never, or after it was called off.
#[test]
fn triggered_operations_wait_for_their_threshold() {
    let own = Portals::new(0);
    let Portals { process, portal, ni, .. } = own;
    let (mut memory, mut data, mut into) = ([0u8; 8], 5i32.to_ne_bytes(), [0u8; 4]);
    own.append(&own.me(&mut memory, ME_OP_PUT | ME_OP_GET), PRIORITY);
    let (from, back, waits) = (own.md(&mut data, 0), own.md(&mut into, 0), counting(ni));
    let word = null_mut();
    let operand = 5i32;
    let place = (&raw const operand).cast();
    type Start<'a> = &'a dyn Fn(u64) -> c_int;
    let starts: [(Start<'_>, i32); 5] = [
        (&|at| call!(PtlTriggeredPut(from, 0, 4, NO_ACK, process, portal, BITS, 0, word, 0, waits, at)), PUT),
        (&|at| call!(PtlTriggeredGet(back, 0, 4, process, portal, BITS, 0, word, waits, at)), GET),
        (
            &|at| {
                call!(PtlTriggeredAtomic(
                    from, 0, 4, NO_ACK, process, portal, BITS, 0, word, 0, SUM, INT32, waits, at
                ))
            },
            ATOMIC,
        ),
        (
            &|at| {
                call!(PtlTriggeredFetchAtomic(
                    back, 0, from, 0, 4, process, portal, BITS, 0, word, 0, SUM, INT32, waits, at
                ))
            },
            FETCH_ATOMIC,
        ),
        (
            &|at| {
                call!(PtlTriggeredSwap(
                    back, 0, from, 0, 4, process, portal, BITS, 0, word, 0, place, CSWAP, INT32, waits, at
                ))
            },
            FETCH_ATOMIC,
        ),
    ];
    assert_eq!(own.kinds(own.events), [LINK]);
    let mut count = 0;
    for (start, kind) in starts {
        count += 2;
        assert_eq!(start(count), OK);
        own.count(waits);
        assert_eq!(own.kinds(own.events), [], "kind {kind} at {count}");
        own.count(waits);
        assert_eq!(own.kinds(own.events), [kind]);
        assert_eq!(start(count), OK, "a threshold that is reached");
        assert_eq!(own.kinds(own.events), [kind]);
        assert_eq!(start(count + 1), OK);
        ok!(PtlCTCancelTriggeredOps(waits));
        own.count(waits);
        count += 1;
        assert_eq!(own.kinds(own.events), [], "kind {kind} was called off");
    }
    // The puts leave 5; two sums make 15, two that fetch 25. The swaps find no 5, and read 25.
    assert_eq!((i32::from_ne_bytes(memory[..4].try_into().unwrap()), i32::from_ne_bytes(into)), (25, 25));

    let (entry_memory, at) = (&mut [0u8; 4], count + 1);
    let me = Me { match_bits: 2, ..own.me(entry_memory, ME_OP_PUT) };
    let entry =
        new_handle(|made| call!(PtlTriggeredMEAppend(ni, portal, &me, PRIORITY, word, made, waits, at)));
    ok!(PtlTriggeredMEUnlink(entry, waits, at + 1));
    assert_eq!(call!(PtlMEUnlink(entry)), ARG_INVALID, "it is not there yet");
    own.count(waits);
    assert_eq!(own.kinds(own.events), [LINK]);
    own.count(waits);
    assert_eq!(call!(PtlMEUnlink(entry)), ARG_INVALID, "it is gone");

    let (other, at) = (counting(ni), count + 3);
    ok!(PtlTriggeredCTInc(other, CtEvent { success: 3, failure: 0 }, waits, at));
    ok!(PtlTriggeredCTSet(other, CtEvent { success: 7, failure: 1 }, waits, at + 1));
    assert_eq!(own.counted(other), (0, 0));
    own.count(waits);
    assert_eq!(own.counted(other), (3, 0));
    own.count(waits);
    assert_eq!(own.counted(other), (7, 1));
    assert_eq!(call!(PtlTriggeredCTInc(ni, CtEvent { success: 1, failure: 0 }, waits, 0)), ARG_INVALID);
    ok!(PtlCTFree(other));
    assert_eq!(call!(PtlCTFree(other)), ARG_INVALID);
}

/// Catches a wait that ends too early, late or with another event, and an event that is lost in silence.
#[test]
fn queues_and_counting_events_are_waited_for() {
    let own = Portals::new(0);
    let Portals { ni, portal, .. } = own;
    let (mut memory, mut data) = ([0; 8], *b"weft");
    own.append(&own.me(&mut memory, ME_OP_PUT), PRIORITY);
    let md = own.md(&mut data, MD_EVENT_CT_ACK);
    let mut event = std::mem::MaybeUninit::<FullEvent>::uninit();
    let (place, mut which, queues) = (event.as_mut_ptr(), 9, [own.own_events, own.events]);
    assert_eq!(call!(PtlEQGet(own.own_events, place)), EQ_EMPTY);
    ok!(PtlEQWait(own.events, place));
    assert_eq!(call!(PtlEQPoll(queues.as_ptr(), 2, 3, place, &raw mut which)), EQ_EMPTY);
    assert_eq!(call!(PtlEQPoll(queues.as_ptr(), 0, 0, place, &raw mut which)), ARG_INVALID);
    assert_eq!(call!(PtlEQPoll(null(), 1, 0, place, &raw mut which)), ARG_INVALID);
    own.put(md, 4, FULL_ACK);
    for (expected, of) in [(SEND, 0), (PUT, 1), (ACK, 0)] {
        // The acknowledgement may come before the target's queue is looked at.
        let queues = if of == 1 { [own.events; 2] } else { [own.own_events; 2] };
        ok!(PtlEQPoll(queues.as_ptr(), 2, FOREVER, place, &raw mut which));
        // SAFETY: the call has written an event.
        assert_eq!((unsafe { (*place).kind }, which), (expected, 0));
    }
    own.put(md, 4, NO_ACK);
    assert_eq!(own.kinds(own.own_events), [SEND]);
    ok!(PtlEQPoll(queues.as_ptr(), 2, 5, place, &raw mut which));
    assert_eq!(which, 1);

    let mut value = CtEvent { success: 0, failure: 0 };
    ok!(PtlCTWait(own.own_counts, 1, &raw mut value));
    assert_eq!((value.success, value.failure), (1, 0));
    let (counts, tests) = ([own.counts, own.own_counts], [1, 2]);
    let poll = |value, which| call!(PtlCTPoll(counts.as_ptr(), tests.as_ptr(), 2, 3, value, which));
    assert_eq!(poll(&raw mut value, &raw mut which), CT_NONE_REACHED);
    ok!(PtlCTSet(own.own_counts, CtEvent { success: 2, failure: 0 }));
    ok!(PtlCTPoll(counts.as_ptr(), tests.as_ptr(), 2, FOREVER, &raw mut value, &raw mut which));
    assert_eq!((which, value.success), (1, 2));
    ok!(PtlCTInc(own.counts, CtEvent { success: 0, failure: 1 }));
    assert_eq!(poll(&raw mut value, &raw mut which), OK, "a failure ends a wait");
    assert_eq!((which, value.success, value.failure), (0, 0, 1));
    assert_eq!(call!(PtlCTPoll(null(), tests.as_ptr(), 1, 0, &raw mut value, &raw mut which)), ARG_INVALID);
    assert_eq!(call!(PtlCTGet(own.events, &raw mut value)), ARG_INVALID, "a queue is no counting event");

    // A queue of one event: the second is lost, and the third says so.
    let short = queue(ni, 1);
    let table_entry = new_handle(|made| call!(PtlPTAlloc(ni, 0, short, ANY, made)));
    let me = own.me(&mut memory, ME_OP_PUT);
    let mut made = 0;
    for status in [OK, EQ_DROPPED] {
        ok!(PtlMEAppend(ni, table_entry, &me, PRIORITY, null_mut(), &raw mut made));
        assert_eq!(call!(PtlEQGet(short, place)), status);
        for _ in 0..2 * u32::from(status == OK) {
            ok!(PtlMEAppend(ni, table_entry, &me, PRIORITY, null_mut(), &raw mut made));
        }
        if status == OK {
            ok!(PtlEQGet(short, place));
        }
    }
    assert_ne!(table_entry, portal);
    ok!(PtlEQFree(short));
    assert_eq!(call!(PtlEQFree(short)), ARG_INVALID);
    assert_eq!(call!(PtlEQWait(short, place)), ARG_INVALID);
}

/// Catches messages that leave before their bundle ends.
#[test]
fn a_bundle_holds_messages_back() {
    let own = Portals::new(0);
    let (mut memory, mut data) = ([0; 8], *b"weft");
    own.append(&own.me(&mut memory, ME_OP_PUT | ME_EVENT_LINK_DISABLE), PRIORITY);
    let md = own.md(&mut data, 0);
    ok!(PtlStartBundle(own.ni));
    ok!(PtlStartBundle(own.ni));
    own.put(md, 4, NO_ACK);
    ok!(PtlEndBundle(own.ni));
    assert_eq!(own.kinds(own.events), []);
    ok!(PtlEndBundle(own.ni));
    assert_eq!(own.kinds(own.events), [PUT]);
    assert_eq!(call!(PtlEndBundle(own.ni)), ARG_INVALID);
}

/// Catches a search that takes what it should leave, and list entries of an interface that does not match.
#[test]
fn searches_find_and_delete_what_came_early() {
    let (mut early, mut data) = ([0; 8], *b"weft");
    let word = null_mut();
    let own = Portals::new(0);
    own.append(&own.me(&mut early, ME_OP_PUT | ME_EVENT_LINK_DISABLE), OVERFLOW);
    let me = own.me(&mut [], ME_OP_PUT);
    own.put(own.md(&mut data, 0), 4, NO_ACK);
    own.own();
    assert_eq!(own.kinds(own.events), [PUT]);
    for (how, events) in [
        (SEARCH_ONLY, [(SEARCH, 0)]),
        (SEARCH_DELETE, [(PUT_OVERFLOW, 0)]),
        (SEARCH_ONLY, [(SEARCH, NI_NO_MATCH)]),
    ] {
        ok!(PtlMESearch(own.ni, own.portal, &me, how, word));
        assert_eq!(own.events(own.events), events);
    }
    assert_eq!(call!(PtlMESearch(own.ni, own.portal, &me, 2, word)), ARG_INVALID);
    assert_eq!(call!(PtlMESearch(own.ni, own.portal, null(), SEARCH_ONLY, word)), ARG_INVALID);
    drop(own);

    let own = Portals::of(NI_NO_MATCHING | NI_LOGICAL, 0);
    ok!(PtlSetMap(own.ni, 1, &Process { nid: 0, pid: 1 }));
    let Me { start, length, counting, user, .. } = own.me(&mut early, 0);
    let le = Le { start, length, counting, user, options: ME_OP_PUT };
    let mut made = 0;
    let refused = call!(PtlMEAppend(own.ni, own.portal, &me, PRIORITY, word, &raw mut made));
    assert_eq!(refused, ARG_INVALID, "the interface does not match");
    let append = |list| new_handle(|made| call!(PtlLEAppend(own.ni, own.portal, &le, list, word, made)));
    let overflow = append(OVERFLOW);
    own.put(own.md(&mut data, 0), 4, NO_ACK);
    own.own();
    assert_eq!(own.kinds(own.events), [LINK, PUT]);
    assert_eq!(call!(PtlLEUnlink(overflow)), IN_USE, "a header is to be taken");
    ok!(PtlLESearch(own.ni, own.portal, &le, SEARCH_DELETE, word));
    assert_eq!(own.events(own.events), [(PUT_OVERFLOW, 0)]);
    ok!(PtlLEUnlink(overflow));
    ok!(PtlLEUnlink(append(PRIORITY)));
    assert_eq!(call!(PtlLEUnlink(overflow)), ARG_INVALID);
}
