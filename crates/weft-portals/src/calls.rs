//! The functions on objects: interfaces, tables, descriptors, entries, queues and counting events.

use crate::abi::{self, CtEvent, FullEvent, Iovec, Le, Md, Me, NiLimits, Process};
use crate::endpoint::{Endpoint, KINDS, Open, endpoint};
use crate::handle::{self, HandleKind, NUMBER, handle, parts};
use crate::process_memory::ProcessMemory;
use std::ffi::{c_int, c_void};
use weft_portals_objects::counting_event::CountingEvent;
use weft_portals_objects::entry::{EntryOptions, ListEntry};
use weft_portals_objects::event_queue::EventKind;
use weft_portals_objects::handle::{CountingHandle, DescriptorHandle, QueueHandle};
use weft_portals_objects::limits::Limits;
use weft_portals_objects::memory::{Piece, Region};
use weft_portals_objects::memory_descriptor::{DescriptorOptions, MemoryDescriptor};
use weft_portals_objects::portal_table::TableEntryOptions;
use weft_portals_objects::request::{Initiator, ProcessId};
use weft_portals_objects::triggered::{EntryName, TriggeredOperation};
use weft_portals_objects::{NetworkInterface, Search};

/// The counting event and threshold that an operation waits for; `None`: it starts now.
pub type Trigger = Option<(u32, u64)>;

/// Turns a result into a return code.
pub fn status(result: Result<(), c_int>) -> c_int {
    result.err().unwrap_or(abi::OK)
}

/// Runs a call on the process's endpoint.
pub fn on_endpoint(call: impl FnOnce(&mut Endpoint) -> Result<(), c_int>) -> c_int {
    match endpoint().as_mut() {
        None => abi::NO_INIT,
        Some(endpoint) => status(call(endpoint)),
    }
}

/// Runs a call on the interface that an object of this kind belongs to, with the object's number; then sends
/// what it has to send.
pub fn on_object(
    object: u32,
    kind: HandleKind,
    call: impl FnOnce(&mut Open, u32) -> Result<u32, c_int>,
) -> c_int {
    on_endpoint(|endpoint| {
        let (slot, number) = parts(object, kind)?;
        let open = endpoint.interfaces[slot].as_mut().ok_or(abi::ARG_INVALID)?;
        let searched = call(open, number)? + open.interface.take_searched();
        endpoint.charge(searched);
        endpoint.send();
        Ok(())
    })
}

/// Writes a result for C.
///
/// # Safety
/// The place is null, or has room.
unsafe fn put<T>(place: *mut T, value: T) -> Result<(), c_int> {
    if place.is_null() {
        return Err(abi::ARG_INVALID);
    }
    // SAFETY: not null; the caller's promise.
    unsafe { place.write(value) };
    Ok(())
}

/// Reads a record of C.
///
/// # Safety
/// The place is null, or holds a record.
unsafe fn get<'a, T>(place: *const T) -> Result<&'a T, c_int> {
    // SAFETY: the caller's promise.
    unsafe { place.as_ref() }.ok_or(abi::ARG_INVALID)
}

/// The queue of a handle on this interface; `None`: of no queue.
fn queue_of(queue: u32, slot: usize) -> Result<Option<QueueHandle>, c_int> {
    match queue {
        0 => Ok(None),
        _ => match parts(queue, HandleKind::Queue)? {
            (of, number) if of == slot => Ok(Some(QueueHandle(number))),
            _ => Err(abi::ARG_INVALID),
        },
    }
}

/// The counting event of a handle on this interface; `None`: of none.
fn counting_of(counting: u32, slot: usize) -> Result<Option<CountingHandle>, c_int> {
    match counting {
        0 => Ok(None),
        _ => match parts(counting, HandleKind::Counting)? {
            (of, number) if of == slot => Ok(Some(CountingHandle(number))),
            _ => Err(abi::ARG_INVALID),
        },
    }
}

/// The region of a descriptor or entry.
///
/// # Safety
/// With `PTL_IOVEC`, `start` holds `length` pieces.
unsafe fn region(start: *mut c_void, length: u64, options: u32) -> Result<Region, c_int> {
    if options & abi::IOVEC == 0 {
        return Ok(Region::one(start as u64, length));
    }
    if start.is_null() || length > u64::from(Limits::MOST.pieces) {
        return Err(abi::ARG_INVALID);
    }
    // SAFETY: the caller's promise.
    let pieces = unsafe { std::slice::from_raw_parts(start.cast::<Iovec>(), length as usize) };
    let piece = |piece: &Iovec| Piece { start: piece.start as u64, length: piece.length };
    Region::of(pieces.iter().map(piece).collect()).map_err(abi::code)
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlInit() -> c_int {
    let mut own = endpoint();
    if own.is_none() {
        *own = Endpoint::open();
    }
    if own.is_some() { abi::OK } else { abi::FAIL }
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlFini() {
    if let Some(endpoint) = endpoint().as_mut() {
        endpoint.interfaces = [const { None }; KINDS];
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlAbort() {}

#[unsafe(no_mangle)]
pub extern "C" fn PtlHandleIsEqual(one: u32, other: u32) -> c_int {
    if one == other { abi::OK } else { abi::FAIL }
}

fn limits_of(limits: &NiLimits) -> Limits {
    let count = |place: usize| u32::try_from(limits.counts[place]).unwrap_or(0);
    Limits {
        entries: count(0),
        unexpected_headers: count(1),
        memory_descriptors: count(2),
        event_queues: count(3),
        counting_events: count(4),
        portal_index: count(5),
        pieces: count(6),
        list: count(7),
        triggered: count(8),
        message: limits.message,
        atomic: limits.atomic,
        fetch_atomic: limits.fetch_atomic,
        write_after_write: limits.write_after_write,
        write_after_read: limits.write_after_read,
        volatile: limits.volatile,
    }
}

fn limits_for_c(limits: &Limits) -> NiLimits {
    let counts = [
        limits.entries,
        limits.unexpected_headers,
        limits.memory_descriptors,
        limits.event_queues,
        limits.counting_events,
        limits.portal_index,
        limits.pieces,
        limits.list,
        limits.triggered,
    ];
    NiLimits {
        counts: counts.map(|count| count as i32),
        message: limits.message,
        atomic: limits.atomic,
        fetch_atomic: limits.fetch_atomic,
        write_after_write: limits.write_after_write,
        write_after_read: limits.write_after_read,
        volatile: limits.volatile,
        features: 0,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlNIInit(
    interface: u32,
    options: u32,
    pid: u32,
    desired: *const NiLimits,
    actual: *mut NiLimits,
    ni: *mut u32,
) -> c_int {
    on_endpoint(|endpoint| {
        let one_of = |a, b| (options & a == 0) != (options & b == 0);
        let kinds =
            one_of(abi::NI_MATCHING, abi::NI_NO_MATCHING) && one_of(abi::NI_LOGICAL, abi::NI_PHYSICAL);
        if !(interface == 0 || interface == abi::ANY) || !kinds || ni.is_null() {
            return Err(abi::ARG_INVALID);
        }
        let (is_matching, is_logical) = (options & abi::NI_MATCHING != 0, options & abi::NI_LOGICAL != 0);
        let slot = usize::from(is_matching) + 2 * usize::from(is_logical);
        let number = endpoint.number;
        let open = endpoint.interfaces[slot].get_or_insert_with(|| {
            let pid = if pid == abi::ANY { abi::USUAL_PID } else { pid };
            let process = ProcessId { nid: number, pid: if is_logical { 0 } else { pid } };
            // SAFETY: `getuid` always succeeds.
            let user = unsafe { libc::getuid() };
            // SAFETY: null or a record, as the standard says.
            let limits = unsafe { desired.as_ref() }.map_or(Limits::USUAL, limits_of);
            let interface = NetworkInterface::new(Initiator { process, user }, &limits);
            let map = Vec::new();
            Open { interface, opened: 0, is_matching, is_logical, process, map, next_entry: 0 }
        });
        open.opened += 1;
        if !actual.is_null() {
            // SAFETY: not null, so a record.
            unsafe { actual.write(limits_for_c(open.interface.limits())) };
        }
        // SAFETY: not null, so room for a handle.
        unsafe { put(ni, handle(HandleKind::Interface, slot, 0)) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlNIFini(ni: u32) -> c_int {
    on_endpoint(|endpoint| {
        let (slot, _) = parts(ni, HandleKind::Interface)?;
        let open = endpoint.interfaces[slot].as_mut().ok_or(abi::ARG_INVALID)?;
        open.opened -= 1;
        if open.opened == 0 {
            endpoint.interfaces[slot] = None;
        }
        Ok(())
    })
}

/// A call on an interface, which looks at no list.
fn on_interface(ni: u32, call: impl FnOnce(&mut Open, usize) -> Result<(), c_int>) -> c_int {
    let slot = parts(ni, HandleKind::Interface).map_or(0, |(slot, _)| slot);
    on_object(ni, HandleKind::Interface, |open, _| call(open, slot).map(|()| 0))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlNIStatus(ni: u32, register: c_int, value: *mut i64) -> c_int {
    on_interface(ni, |open, _| {
        let status = open.interface.status();
        let registers = [status.dropped, status.permission_violations, status.operation_violations];
        let register = usize::try_from(register).ok().and_then(|place| registers.get(place));
        // SAFETY: as the standard says.
        unsafe { put(value, *register.ok_or(abi::ARG_INVALID)? as i64) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlNIHandle(object: u32, ni: *mut u32) -> c_int {
    on_endpoint(|endpoint| {
        let slot = handle::slot(object).ok_or(abi::ARG_INVALID)?;
        if endpoint.interfaces[slot].is_none() {
            return Err(abi::ARG_INVALID);
        }
        // SAFETY: as the standard says.
        unsafe { put(ni, handle(HandleKind::Interface, slot, 0)) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlSetMap(ni: u32, size: u64, mapping: *const Process) -> c_int {
    on_endpoint(|endpoint| {
        let (slot, _) = parts(ni, HandleKind::Interface)?;
        let number = endpoint.number;
        let open = endpoint.interfaces[slot].as_mut().ok_or(abi::ARG_INVALID)?;
        if !open.is_logical || mapping.is_null() || size == 0 || size > u64::from(endpoint.count) {
            return Err(abi::ARG_INVALID);
        }
        if !open.map.is_empty() {
            return Err(abi::IGNORED);
        }
        // SAFETY: as the standard says, so many processes.
        let mapping = unsafe { std::slice::from_raw_parts(mapping, size as usize) };
        open.map = mapping.iter().map(|process| ProcessId { nid: process.nid, pid: process.pid }).collect();
        let own = open.map.iter().position(|process| process.nid == number).ok_or(abi::ARG_INVALID)?;
        open.process = ProcessId { nid: own as u32, pid: 0 };
        open.interface.rename(open.process);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlGetMap(ni: u32, size: u64, mapping: *mut Process, actual: *mut u64) -> c_int {
    on_interface(ni, |open, _| {
        if !open.is_logical || mapping.is_null() && size > 0 {
            return Err(abi::ARG_INVALID);
        }
        for (place, process) in open.map.iter().take(usize::try_from(size).unwrap_or(0)).enumerate() {
            let process = Process { nid: process.nid, pid: process.pid };
            // SAFETY: as the standard says, room for `size`.
            unsafe { mapping.add(place).write(process) };
        }
        // SAFETY: as the standard says.
        unsafe { put(actual, open.map.len() as u64) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlGetUid(ni: u32, user: *mut u32) -> c_int {
    // SAFETY: as the standard says.
    on_interface(ni, |open, _| unsafe { put(user, open.interface.initiator().user) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlGetId(ni: u32, id: *mut Process) -> c_int {
    // SAFETY: as the standard says.
    on_interface(ni, |open, _| unsafe { put(id, open.process(open.process)) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlGetPhysId(ni: u32, id: *mut Process) -> c_int {
    on_endpoint(|endpoint| {
        let (slot, _) = parts(ni, HandleKind::Interface)?;
        let open = endpoint.interfaces[slot].as_ref().ok_or(abi::ARG_INVALID)?;
        let pid = if open.is_logical { abi::USUAL_PID } else { open.process.pid };
        // SAFETY: as the standard says.
        unsafe { put(id, Process { nid: endpoint.number, pid }) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlPTAlloc(ni: u32, options: u32, queue: u32, wish: u32, index: *mut u32) -> c_int {
    on_interface(ni, |open, slot| {
        let has = |option: u32| options & option != 0;
        let options = TableEntryOptions {
            only_use_once: has(abi::PT_ONLY_USE_ONCE),
            flow_control: has(abi::PT_FLOWCTRL),
            only_truncate: has(abi::PT_ONLY_TRUNCATE),
            match_unordered: has(abi::PT_MATCH_UNORDERED) && open.is_matching,
            begins_disabled: has(abi::PT_ALLOC_DISABLED),
        };
        let (wish, queue) = ((wish != abi::ANY).then_some(wish), queue_of(queue, slot)?);
        let found = open.interface.allocate_table_entry(wish, options, queue).map_err(abi::code)?;
        // SAFETY: as the standard says.
        unsafe { put(index, found) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlPTFree(ni: u32, index: u32) -> c_int {
    on_interface(ni, |open, _| open.interface.free_table_entry(index).map_err(abi::code))
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlPTDisable(ni: u32, index: u32) -> c_int {
    on_interface(ni, |open, _| open.interface.enable_table_entry(index, false).map_err(abi::code))
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlPTEnable(ni: u32, index: u32) -> c_int {
    on_interface(ni, |open, _| open.interface.enable_table_entry(index, true).map_err(abi::code))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlMDBind(ni: u32, md: *const Md, made: *mut u32) -> c_int {
    on_interface(ni, |open, slot| {
        // SAFETY: as the standard says.
        let md = unsafe { get(md) }?;
        let has = |option: u32| md.options & option != 0;
        let options = DescriptorOptions {
            no_success_events: has(abi::MD_EVENT_SUCCESS_DISABLE),
            counts_sends: has(abi::MD_EVENT_CT_SEND),
            counts_replies: has(abi::MD_EVENT_CT_REPLY),
            counts_acknowledgements: has(abi::MD_EVENT_CT_ACK),
            counts_bytes: has(abi::MD_EVENT_CT_BYTES),
            no_send_events: has(abi::MD_EVENT_SEND_DISABLE),
        };
        let (queue, counting) = (queue_of(md.queue, slot)?, counting_of(md.counting, slot)?);
        // SAFETY: as the standard says.
        let region = unsafe { region(md.start, md.length, md.options) }?;
        let descriptor = MemoryDescriptor { region, options, queue, counting };
        let bound = open.interface.bind(descriptor).map_err(abi::code)?;
        // SAFETY: as the standard says.
        unsafe { put(made, handle(HandleKind::Descriptor, slot, bound.0)) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlMDRelease(md: u32) -> c_int {
    on_object(md, HandleKind::Descriptor, |open, number| {
        open.interface.release(DescriptorHandle(number)).map_err(abi::code).map(|()| 0)
    })
}

/// The entry of a record.
///
/// # Safety
/// With `PTL_IOVEC`, `start` holds `length` pieces.
unsafe fn entry_of(
    me: &Me,
    slot: usize,
    (word, is_logical): (*mut c_void, bool),
) -> Result<ListEntry, c_int> {
    let has = |option: u32| me.options & option != 0;
    let options = EntryOptions {
        puts: has(abi::ME_OP_PUT),
        gets: has(abi::ME_OP_GET),
        use_once: has(abi::ME_USE_ONCE),
        no_acknowledgements: has(abi::ME_ACK_DISABLE),
        no_unexpected_headers: has(abi::ME_UNEXPECTED_HDR_DISABLE),
        no_link_events: has(abi::ME_EVENT_LINK_DISABLE),
        no_communication_events: has(abi::ME_EVENT_COMM_DISABLE),
        no_flow_control_events: has(abi::ME_EVENT_FLOWCTRL_DISABLE),
        no_success_events: has(abi::ME_EVENT_SUCCESS_DISABLE),
        no_overflow_events: has(abi::ME_EVENT_OVER_DISABLE),
        no_unlink_events: has(abi::ME_EVENT_UNLINK_DISABLE),
        counts_communication: has(abi::ME_EVENT_CT_COMM),
        counts_overflow: has(abi::ME_EVENT_CT_OVERFLOW),
        counts_bytes: has(abi::ME_EVENT_CT_BYTES),
        local_offset: has(abi::ME_MANAGE_LOCAL),
        no_truncation: has(abi::ME_NO_TRUNCATE),
    };
    Ok(ListEntry {
        // SAFETY: the caller's promise.
        region: unsafe { region(me.start, me.length, me.options) }?,
        counting: counting_of(me.counting, slot)?,
        user: me.user,
        options,
        source: abi::pattern(me.match_id, is_logical),
        match_bits: me.match_bits,
        ignore_bits: me.ignore_bits,
        least_free: me.least_free,
        word: word as u64,
    })
}

/// A list entry as one that matches whatever comes.
fn matching(le: &Le) -> Me {
    Me {
        start: le.start,
        length: le.length,
        counting: le.counting,
        user: le.user,
        options: le.options,
        match_id: Process { nid: abi::ANY, pid: abi::ANY },
        match_bits: 0,
        ignore_bits: u64::MAX,
        least_free: 0,
    }
}

/// Appends an entry to an interface of the right kind, now or when a counting event has reached a threshold.
///
/// # Safety
/// As the standard says of `PtlMEAppend`.
unsafe fn append(
    (ni, portal, list): (u32, u32, c_int),
    me: Result<Me, c_int>,
    (word, is_matching): (*mut c_void, bool),
    (made, trigger): (*mut u32, Trigger),
) -> c_int {
    let slot = parts(ni, HandleKind::Interface).map_or(0, |(slot, _)| slot);
    on_object(ni, HandleKind::Interface, |open, _| {
        let list = abi::list(list).filter(|_| open.is_matching == is_matching).ok_or(abi::ARG_INVALID)?;
        // SAFETY: the caller's promise.
        let entry = unsafe { entry_of(&me?, slot, (word, open.is_logical)) }?;
        let name = EntryName(open.next_entry & NUMBER);
        let searched = match trigger {
            None => {
                let appended = open.interface.append((portal, list), entry, &mut ProcessMemory);
                let (entry, searched) = appended.map_err(abi::code)?;
                open.interface.name(name, entry);
                searched
            }
            Some((counting, threshold)) => {
                let waits = (counting_of(counting, slot)?.ok_or(abi::ARG_INVALID)?, threshold);
                let operation = TriggeredOperation::Append(name, (portal, list), entry);
                open.interface.trigger(waits, operation, &mut ProcessMemory).map_err(abi::code)?;
                0
            }
        };
        open.next_entry = name.0 + 1;
        // SAFETY: as the standard says.
        unsafe { put(made, handle(HandleKind::Entry, slot, name.0)) }?;
        Ok(searched)
    })
}

/// Searches the unexpected headers of an interface of the right kind.
///
/// # Safety
/// As the standard says of `PtlMESearch`.
unsafe fn search(
    (ni, portal, how): (u32, u32, c_int),
    me: Result<Me, c_int>,
    (word, is_matching): (*mut c_void, bool),
) -> c_int {
    let slot = parts(ni, HandleKind::Interface).map_or(0, |(slot, _)| slot);
    on_object(ni, HandleKind::Interface, |open, _| {
        let how = match how {
            abi::SEARCH_ONLY => Search::Only,
            abi::SEARCH_DELETE => Search::Delete,
            _ => return Err(abi::ARG_INVALID),
        };
        if open.is_matching != is_matching {
            return Err(abi::ARG_INVALID);
        }
        // SAFETY: the caller's promise.
        let entry = unsafe { entry_of(&me?, slot, (word, open.is_logical)) }?;
        open.interface.search(portal, how, entry, &mut ProcessMemory).map_err(abi::code)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlMEAppend(
    ni: u32,
    portal: u32,
    me: *const Me,
    list: c_int,
    word: *mut c_void,
    made: *mut u32,
) -> c_int {
    // SAFETY: as the standard says.
    unsafe { append((ni, portal, list), get(me).copied(), (word, true), (made, None)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlLEAppend(
    ni: u32,
    portal: u32,
    le: *const Le,
    list: c_int,
    word: *mut c_void,
    made: *mut u32,
) -> c_int {
    // SAFETY: as the standard says.
    unsafe { append((ni, portal, list), get(le).map(matching), (word, false), (made, None)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlMESearch(
    ni: u32,
    portal: u32,
    me: *const Me,
    how: c_int,
    word: *mut c_void,
) -> c_int {
    // SAFETY: as the standard says.
    unsafe { search((ni, portal, how), get(me).copied(), (word, true)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlLESearch(
    ni: u32,
    portal: u32,
    le: *const Le,
    how: c_int,
    word: *mut c_void,
) -> c_int {
    // SAFETY: as the standard says.
    unsafe { search((ni, portal, how), get(le).map(matching), (word, false)) }
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlMEUnlink(me: u32) -> c_int {
    on_object(me, HandleKind::Entry, |open, number| {
        open.interface.unlink_named(EntryName(number)).map_err(abi::code).map(|()| 0)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlTriggeredMEAppend(
    ni: u32,
    portal: u32,
    me: *const Me,
    list: c_int,
    word: *mut c_void,
    made: *mut u32,
    counting: u32,
    threshold: u64,
) -> c_int {
    let trigger = Some((counting, threshold));
    // SAFETY: as of `PtlMEAppend`.
    unsafe { append((ni, portal, list), get(me).copied(), (word, true), (made, trigger)) }
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlTriggeredMEUnlink(me: u32, counting: u32, threshold: u64) -> c_int {
    let slot = parts(me, HandleKind::Entry).map_or(0, |(slot, _)| slot);
    on_object(me, HandleKind::Entry, |open, number| {
        let waits = (counting_of(counting, slot)?.ok_or(abi::ARG_INVALID)?, threshold);
        let operation = TriggeredOperation::Unlink(EntryName(number));
        open.interface.trigger(waits, operation, &mut ProcessMemory).map_err(abi::code).map(|()| 0)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlLEUnlink(le: u32) -> c_int {
    PtlMEUnlink(le)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlEQAlloc(ni: u32, count: u64, made: *mut u32) -> c_int {
    on_interface(ni, |open, slot| {
        let count = usize::try_from(count).map_err(|_| abi::ARG_INVALID)?;
        let queue = open.interface.allocate_queue(count).map_err(abi::code)?;
        // SAFETY: as the standard says.
        unsafe { put(made, handle(HandleKind::Queue, slot, queue.0)) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlEQFree(queue: u32) -> c_int {
    on_object(queue, HandleKind::Queue, |open, number| {
        open.interface.free_queue(QueueHandle(number)).map_err(abi::code).map(|()| 0)
    })
}

/// Takes an event of the first queue that has one. `None`: none has.
///
/// # Safety
/// The place for the event is null, or has room.
unsafe fn take_event(
    endpoint: &mut Endpoint,
    queues: &[u32],
    event: *mut FullEvent,
) -> Result<Option<(usize, bool)>, c_int> {
    for (place, queue) in queues.iter().enumerate() {
        let (slot, number) = parts(*queue, HandleKind::Queue)?;
        let is_sending = endpoint.is_sending();
        let open = endpoint.interfaces[slot].as_mut().ok_or(abi::ARG_INVALID)?;
        // Who has seen that it is sent may make no more calls, and no message goes on without them.
        if is_sending && open.interface.next_event(QueueHandle(number)) == Ok(EventKind::Send) {
            continue;
        }
        match open.interface.take_event(QueueHandle(number)) {
            Ok((taken, lost)) => {
                let initiator = open.process(taken.initiator.process);
                // SAFETY: the caller's promise.
                unsafe { put(event, FullEvent::of(&taken, initiator)) }?;
                return Ok(Some((place, lost)));
            }
            Err(error) if abi::code(error) == abi::EQ_EMPTY => {}
            Err(error) => return Err(abi::code(error)),
        }
    }
    Ok(None)
}

/// Waits for something, up to a time in ms: makes progress until `look` finds it.
fn wait_for<T>(
    endpoint: &mut Endpoint,
    timeout: u64,
    mut look: impl FnMut(&mut Endpoint) -> Result<Option<T>, c_int>,
) -> Result<Option<T>, c_int> {
    let until = if timeout == abi::FOREVER { u64::MAX } else { endpoint.now_ms().saturating_add(timeout) };
    loop {
        if let Some(found) = look(endpoint)? {
            return Ok(Some(found));
        }
        let happened = endpoint.progress();
        if timeout == 0 || timeout != abi::FOREVER && endpoint.now_ms() >= until {
            return look(endpoint);
        }
        // Who waits for a time polls on; who waits for ever says so, and sleeps until something comes.
        if !happened && timeout == abi::FOREVER {
            endpoint.wait();
        }
    }
}

fn lost_or_ok(lost: bool) -> Result<(), c_int> {
    if lost { Err(abi::EQ_DROPPED) } else { Ok(()) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlEQGet(queue: u32, event: *mut FullEvent) -> c_int {
    // SAFETY: as the standard says.
    on_endpoint(|endpoint| match wait_for(endpoint, 0, |own| unsafe { take_event(own, &[queue], event) })? {
        Some((_, lost)) => lost_or_ok(lost),
        None => Err(abi::EQ_EMPTY),
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlEQWait(queue: u32, event: *mut FullEvent) -> c_int {
    on_endpoint(|endpoint| {
        // SAFETY: as the standard says.
        let found = wait_for(endpoint, abi::FOREVER, |own| unsafe { take_event(own, &[queue], event) })?;
        lost_or_ok(found.is_some_and(|(_, lost)| lost))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlEQPoll(
    queues: *const u32,
    size: u32,
    timeout: u64,
    event: *mut FullEvent,
    which: *mut u32,
) -> c_int {
    on_endpoint(|endpoint| {
        if queues.is_null() || size == 0 {
            return Err(abi::ARG_INVALID);
        }
        // SAFETY: as the standard says.
        let queues = unsafe { std::slice::from_raw_parts(queues, size as usize) };
        let look = |own: &mut Endpoint| {
            // SAFETY: likewise.
            unsafe { take_event(own, queues, event) }
        };
        let (place, lost) = wait_for(endpoint, timeout, look)?.ok_or(abi::EQ_EMPTY)?;
        // SAFETY: likewise.
        unsafe { put(which, place as u32) }?;
        lost_or_ok(lost)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlCTAlloc(ni: u32, made: *mut u32) -> c_int {
    on_interface(ni, |open, slot| {
        let counting = open.interface.allocate_counting().map_err(abi::code)?;
        // SAFETY: as the standard says.
        unsafe { put(made, handle(HandleKind::Counting, slot, counting.0)) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlCTFree(counting: u32) -> c_int {
    on_object(counting, HandleKind::Counting, |open, number| {
        open.interface.free_counting(CountingHandle(number)).map_err(abi::code).map(|()| 0)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlCTCancelTriggeredOps(counting: u32) -> c_int {
    on_object(counting, HandleKind::Counting, |open, number| {
        open.interface.cancel_triggered(CountingHandle(number)).map_err(abi::code).map(|()| 0)
    })
}

/// The first counting event that ends its wait. `None`: none does.
fn counted(endpoint: &Endpoint, countings: &[u32], tests: &[u64]) -> Result<Option<(usize, CtEvent)>, c_int> {
    for (place, (counting, test)) in countings.iter().zip(tests).enumerate() {
        let (slot, number) = parts(*counting, HandleKind::Counting)?;
        let open = endpoint.interfaces[slot].as_ref().ok_or(abi::ARG_INVALID)?;
        let value = open.interface.counted(CountingHandle(number)).map_err(abi::code)?;
        if value.ends_wait(*test) {
            return Ok(Some((place, CtEvent { success: value.success, failure: value.failure })));
        }
    }
    Ok(None)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlCTGet(counting: u32, event: *mut CtEvent) -> c_int {
    on_endpoint(|endpoint| {
        endpoint.progress();
        let (_, value) = counted(endpoint, &[counting], &[0])?.ok_or(abi::ARG_INVALID)?;
        // SAFETY: as the standard says.
        unsafe { put(event, value) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlCTWait(counting: u32, test: u64, event: *mut CtEvent) -> c_int {
    on_endpoint(|endpoint| {
        let found = wait_for(endpoint, abi::FOREVER, |own| counted(own, &[counting], &[test]))?;
        let (_, value) = found.ok_or(abi::FAIL)?;
        // SAFETY: as the standard says.
        unsafe { put(event, value) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlCTPoll(
    countings: *const u32,
    tests: *const u64,
    size: u32,
    timeout: u64,
    event: *mut CtEvent,
    which: *mut u32,
) -> c_int {
    on_endpoint(|endpoint| {
        if countings.is_null() || tests.is_null() || size == 0 {
            return Err(abi::ARG_INVALID);
        }
        // SAFETY: as the standard says.
        let (countings, tests) = unsafe {
            (
                std::slice::from_raw_parts(countings, size as usize),
                std::slice::from_raw_parts(tests, size as usize),
            )
        };
        match wait_for(endpoint, timeout, |own| counted(own, countings, tests))? {
            None => Err(abi::CT_NONE_REACHED),
            Some((place, value)) => {
                // SAFETY: as the standard says.
                unsafe { put(event, value).and_then(|()| put(which, place as u32)) }
            }
        }
    })
}

/// A value of a counting event.
pub fn counting_event(event: CtEvent) -> CountingEvent {
    CountingEvent { success: event.success, failure: event.failure }
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlCTSet(counting: u32, value: CtEvent) -> c_int {
    on_object(counting, HandleKind::Counting, |open, number| {
        let set =
            open.interface.set_counting(CountingHandle(number), counting_event(value), &mut ProcessMemory);
        set.map_err(abi::code).map(|()| 0)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlCTInc(counting: u32, by: CtEvent) -> c_int {
    on_object(counting, HandleKind::Counting, |open, number| {
        let (counting, by) = (CountingHandle(number), counting_event(by));
        let increased = open.interface.increase_counting(counting, by, &mut ProcessMemory);
        increased.map_err(abi::code).map(|()| 0)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlStartBundle(ni: u32) -> c_int {
    on_interface(ni, |open, _| {
        open.interface.start_bundle();
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlEndBundle(ni: u32) -> c_int {
    on_interface(ni, |open, _| open.interface.end_bundle().map_err(abi::code))
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlAtomicSync() -> c_int {
    // Every operation is carried out on the process's own memory: there is nothing to make coherent.
    on_endpoint(|_| Ok(()))
}
