//! The functions that move data: put, get, atomic operations, and their triggered forms.

use crate::abi::{self, CtEvent, Process};
use crate::calls::{Trigger, counting_event, on_object};
use crate::endpoint::Open;
use crate::handle::{HandleKind, are_alike, parts};
use crate::process_memory::ProcessMemory;
use std::ffi::{c_int, c_void};
use weft_portals_objects::atomic::AtomicOperation;
use weft_portals_objects::handle::{CountingHandle, DescriptorHandle};
use weft_portals_objects::initiator::{DescriptorPlace, Operation};
use weft_portals_objects::request::{Acknowledgement, Action};
use weft_portals_objects::triggered::TriggeredOperation;

/// The arguments that all operations have.
#[derive(Clone, Copy)]
struct Target {
    length: u64,
    process: Process,
    portal: u32,
    match_bits: u64,
    offset: u64,
    word: *mut c_void,
    header_data: u64,
}

/// Starts an operation of the interface that a descriptor is of, or has it wait.
fn start(descriptor: u32, trigger: Trigger, make: impl FnOnce(&Open) -> Result<Operation, c_int>) -> c_int {
    on_object(descriptor, HandleKind::Descriptor, |open, _| {
        let operation = make(open)?;
        let result = match trigger {
            None => open.interface.start(&operation, &mut ProcessMemory),
            Some((counting, threshold)) => {
                let (_, number) = parts(counting, HandleKind::Counting)?;
                let waits = (CountingHandle(number), threshold);
                open.interface.trigger(waits, TriggeredOperation::Start(operation), &mut ProcessMemory)
            }
        };
        result.map_err(abi::code).map(|()| 0)
    })
}

fn place(descriptor: u32, offset: u64) -> Result<DescriptorPlace, c_int> {
    let (_, number) = parts(descriptor, HandleKind::Descriptor)?;
    Ok(DescriptorPlace { descriptor: DescriptorHandle(number), offset })
}

/// An operation on a target, of the kind that its places and action say.
fn operation(
    open: &Open,
    target: Target,
    action: Action,
    places: (Option<DescriptorPlace>, Option<DescriptorPlace>),
) -> Operation {
    Operation {
        action,
        from: places.0,
        into: places.1,
        length: target.length,
        acknowledgement: Acknowledgement::None,
        target: abi::process_id(target.process, open.is_logical),
        portal: target.portal,
        match_bits: target.match_bits,
        remote_offset: target.offset,
        word: target.word as u64,
        header_data: target.header_data,
        operand: Vec::new(),
    }
}

fn put(from: (u32, u64), acknowledgement: c_int, target: Target, trigger: Trigger) -> c_int {
    start(from.0, trigger, |open| {
        let acknowledgement = abi::acknowledgement(acknowledgement).ok_or(abi::ARG_INVALID)?;
        let places = (Some(place(from.0, from.1)?), None);
        Ok(Operation { acknowledgement, ..operation(open, target, Action::Put, places) })
    })
}

fn get(into: (u32, u64), target: Target, trigger: Trigger) -> c_int {
    start(into.0, trigger, |open| {
        let places = (None, Some(place(into.0, into.1)?));
        Ok(operation(open, target, Action::Get, places))
    })
}

fn atomic(
    (from, acknowledgement): ((u32, u64), c_int),
    target: Target,
    (how, of): (c_int, c_int),
    trigger: Trigger,
) -> c_int {
    start(from.0, trigger, |open| {
        let acknowledgement = abi::acknowledgement(acknowledgement).ok_or(abi::ARG_INVALID)?;
        let (how, of) = abi::atomic(how, of).ok_or(abi::ARG_INVALID)?;
        let places = (Some(place(from.0, from.1)?), None);
        Ok(Operation { acknowledgement, ..operation(open, target, Action::Atomic(how, of), places) })
    })
}

/// A fetch-atomic operation, or a swap with its operand.
///
/// # Safety
/// The operand of a swap that compares or masks is null, or an element.
unsafe fn fetch(
    (into, from): ((u32, u64), (u32, u64)),
    target: Target,
    ((how, of), operand): ((c_int, c_int), Option<*const c_void>),
    trigger: Trigger,
) -> c_int {
    start(into.0, trigger, |open| {
        if !are_alike(into.0, from.0) {
            return Err(abi::ARG_INVALID);
        }
        let (how, of) = abi::atomic(how, of).ok_or(abi::ARG_INVALID)?;
        let is_swap = how == AtomicOperation::Swap || how.takes_operand();
        // A fetch-atomic operation may be a plain swap; a swap is nothing else.
        if operand.is_some() && !is_swap || operand.is_none() && how.takes_operand() {
            return Err(abi::ARG_INVALID);
        }
        let places = (Some(place(from.0, from.1)?), Some(place(into.0, into.1)?));
        let mut made = operation(open, target, Action::FetchAtomic(how, of), places);
        if let Some(operand) = operand.filter(|_| how.takes_operand()) {
            if operand.is_null() {
                return Err(abi::ARG_INVALID);
            }
            // SAFETY: not null, so an element.
            made.operand = unsafe { std::slice::from_raw_parts(operand.cast::<u8>(), of.width()) }.to_vec();
        }
        Ok(made)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlPut(
    md: u32,
    local_offset: u64,
    length: u64,
    acknowledgement: c_int,
    process: Process,
    portal: u32,
    match_bits: u64,
    offset: u64,
    word: *mut c_void,
    header_data: u64,
) -> c_int {
    let target = Target { length, process, portal, match_bits, offset, word, header_data };
    put((md, local_offset), acknowledgement, target, None)
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlTriggeredPut(
    md: u32,
    local_offset: u64,
    length: u64,
    acknowledgement: c_int,
    process: Process,
    portal: u32,
    match_bits: u64,
    offset: u64,
    word: *mut c_void,
    header_data: u64,
    counting: u32,
    threshold: u64,
) -> c_int {
    let target = Target { length, process, portal, match_bits, offset, word, header_data };
    put((md, local_offset), acknowledgement, target, Some((counting, threshold)))
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlGet(
    md: u32,
    local_offset: u64,
    length: u64,
    process: Process,
    portal: u32,
    match_bits: u64,
    offset: u64,
    word: *mut c_void,
) -> c_int {
    let target = Target { length, process, portal, match_bits, offset, word, header_data: 0 };
    get((md, local_offset), target, None)
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlTriggeredGet(
    md: u32,
    local_offset: u64,
    length: u64,
    process: Process,
    portal: u32,
    match_bits: u64,
    offset: u64,
    word: *mut c_void,
    counting: u32,
    threshold: u64,
) -> c_int {
    let target = Target { length, process, portal, match_bits, offset, word, header_data: 0 };
    get((md, local_offset), target, Some((counting, threshold)))
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlAtomic(
    md: u32,
    local_offset: u64,
    length: u64,
    acknowledgement: c_int,
    process: Process,
    portal: u32,
    match_bits: u64,
    offset: u64,
    word: *mut c_void,
    header_data: u64,
    how: c_int,
    of: c_int,
) -> c_int {
    let target = Target { length, process, portal, match_bits, offset, word, header_data };
    atomic(((md, local_offset), acknowledgement), target, (how, of), None)
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlTriggeredAtomic(
    md: u32,
    local_offset: u64,
    length: u64,
    acknowledgement: c_int,
    process: Process,
    portal: u32,
    match_bits: u64,
    offset: u64,
    word: *mut c_void,
    header_data: u64,
    how: c_int,
    of: c_int,
    counting: u32,
    threshold: u64,
) -> c_int {
    let target = Target { length, process, portal, match_bits, offset, word, header_data };
    atomic(((md, local_offset), acknowledgement), target, (how, of), Some((counting, threshold)))
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlFetchAtomic(
    get_md: u32,
    get_offset: u64,
    put_md: u32,
    put_offset: u64,
    length: u64,
    process: Process,
    portal: u32,
    match_bits: u64,
    offset: u64,
    word: *mut c_void,
    header_data: u64,
    how: c_int,
    of: c_int,
) -> c_int {
    let target = Target { length, process, portal, match_bits, offset, word, header_data };
    let places = ((get_md, get_offset), (put_md, put_offset));
    // SAFETY: there is no operand.
    unsafe { fetch(places, target, ((how, of), None), None) }
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlTriggeredFetchAtomic(
    get_md: u32,
    get_offset: u64,
    put_md: u32,
    put_offset: u64,
    length: u64,
    process: Process,
    portal: u32,
    match_bits: u64,
    offset: u64,
    word: *mut c_void,
    header_data: u64,
    how: c_int,
    of: c_int,
    counting: u32,
    threshold: u64,
) -> c_int {
    let target = Target { length, process, portal, match_bits, offset, word, header_data };
    let places = ((get_md, get_offset), (put_md, put_offset));
    // SAFETY: there is no operand.
    unsafe { fetch(places, target, ((how, of), None), Some((counting, threshold))) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlSwap(
    get_md: u32,
    get_offset: u64,
    put_md: u32,
    put_offset: u64,
    length: u64,
    process: Process,
    portal: u32,
    match_bits: u64,
    offset: u64,
    word: *mut c_void,
    header_data: u64,
    operand: *const c_void,
    how: c_int,
    of: c_int,
) -> c_int {
    let target = Target { length, process, portal, match_bits, offset, word, header_data };
    let places = ((get_md, get_offset), (put_md, put_offset));
    // SAFETY: as the standard says.
    unsafe { fetch(places, target, ((how, of), Some(operand)), None) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlTriggeredSwap(
    get_md: u32,
    get_offset: u64,
    put_md: u32,
    put_offset: u64,
    length: u64,
    process: Process,
    portal: u32,
    match_bits: u64,
    offset: u64,
    word: *mut c_void,
    header_data: u64,
    operand: *const c_void,
    how: c_int,
    of: c_int,
    counting: u32,
    threshold: u64,
) -> c_int {
    let target = Target { length, process, portal, match_bits, offset, word, header_data };
    let places = ((get_md, get_offset), (put_md, put_offset));
    // SAFETY: as the standard says.
    unsafe { fetch(places, target, ((how, of), Some(operand)), Some((counting, threshold))) }
}

/// Has a change of a counting event wait for another.
fn on_counting(
    counting: u32,
    (trigger, threshold): (u32, u64),
    make: impl FnOnce(CountingHandle) -> TriggeredOperation,
) -> c_int {
    on_object(trigger, HandleKind::Counting, |open, number| {
        if !are_alike(counting, trigger) {
            return Err(abi::ARG_INVALID);
        }
        let operation = make(CountingHandle(parts(counting, HandleKind::Counting)?.1));
        let result =
            open.interface.trigger((CountingHandle(number), threshold), operation, &mut ProcessMemory);
        result.map_err(abi::code).map(|()| 0)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlTriggeredCTInc(counting: u32, by: CtEvent, trigger: u32, threshold: u64) -> c_int {
    let by = counting_event(by);
    on_counting(counting, (trigger, threshold), |counting| TriggeredOperation::Increase(counting, by))
}

#[unsafe(no_mangle)]
pub extern "C" fn PtlTriggeredCTSet(counting: u32, value: CtEvent, trigger: u32, threshold: u64) -> c_int {
    let value = counting_event(value);
    on_counting(counting, (trigger, threshold), |counting| TriggeredOperation::Set(counting, value))
}
