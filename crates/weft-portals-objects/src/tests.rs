//! The whole interface: against a sequential reference of the matching rules, and call by call.

use crate::atomic::{AtomicOperation, DataType};
use crate::counting_event::CountingEvent;
use crate::entry::{EntryOptions, ListEntry};
use crate::error::{Outcome, PortalsError};
use crate::event_queue::{Event, EventKind};
use crate::handle::{CountingHandle, QueueHandle};
use crate::initiator::{DescriptorPlace, Operation};
use crate::limits::Limits;
use crate::match_list::ListKind;
use crate::memory::Region;
use crate::memory_descriptor::{DescriptorOptions, MemoryDescriptor};
use crate::portal_table::TableEntryOptions;
use crate::request::{
    Acknowledgement, Action, Header, Initiator, OutgoingRequest, ProcessId, Request, Response,
};
use crate::triggered::{EntryName, TriggeredOperation};
use crate::{Memory, NetworkInterface, Search};
use proptest::prelude::*;

/// Memory from address 0 on.
struct Bytes(Vec<u8>);

impl Bytes {
    fn new() -> Bytes {
        Bytes(vec![0; 4096])
    }
}

impl Memory for Bytes {
    fn read(&self, address: u64, length: u64) -> Option<Vec<u8>> {
        self.0.get(address as usize..(address + length) as usize).map(<[u8]>::to_vec)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Option<()> {
        self.0.get_mut(address as usize..address as usize + bytes.len())?.copy_from_slice(bytes);
        Some(())
    }
}

fn process(nid: u32) -> Initiator {
    Initiator { process: ProcessId { nid, pid: 0 }, user: 1 }
}

/// A process with an event queue on portal 0.
struct Node {
    interface: NetworkInterface,
    memory: Bytes,
    queue: QueueHandle,
}

impl Node {
    fn new(options: TableEntryOptions, limits: &Limits, events: usize) -> Node {
        let mut interface = NetworkInterface::new(process(0), limits);
        let queue = interface.allocate_queue(events).unwrap();
        assert_eq!(interface.allocate_table_entry(Some(0), options, Some(queue)), Ok(0));
        Node { interface, memory: Bytes::new(), queue }
    }

    fn plain() -> Node {
        Node::new(TableEntryOptions::default(), &Limits::USUAL, 1000)
    }

    fn append(&mut self, list: ListKind, entry: ListEntry) -> super::handle::EntryHandle {
        self.interface.append((0, list), entry, &mut self.memory).unwrap().0
    }

    fn receive(&mut self, request: &Request) -> (u32, Response) {
        let searched = self.interface.request(request, &mut self.memory);
        match self.interface.outgoing() {
            Some(OutgoingRequest::Response(_, response)) => (searched, response),
            other => panic!("no response but {other:?}"),
        }
    }

    fn kinds(&mut self) -> Vec<EventKind> {
        std::iter::from_fn(|| self.interface.take_event(self.queue).ok().map(|(event, _)| event.kind))
            .collect()
    }
}

fn entry(match_bits: u64, word: u64) -> ListEntry {
    ListEntry {
        region: Region::one(0, 64),
        counting: None,
        user: ListEntry::ANY_USER,
        options: EntryOptions { puts: true, gets: true, no_link_events: true, ..EntryOptions::default() },
        source: ProcessId { nid: ProcessId::ANY, pid: ProcessId::ANY },
        match_bits,
        ignore_bits: 0,
        least_free: 0,
        word,
    }
}

fn once(match_bits: u64, word: u64) -> ListEntry {
    let entry = entry(match_bits, word);
    ListEntry { options: EntryOptions { use_once: true, ..entry.options }, ..entry }
}

fn message(action: Action, match_bits: u64, data: &[u8]) -> Request {
    let (initiator, portal, remote_offset, length) = (process(1), 0, 0, data.len() as u64);
    let header = Header { initiator, action, portal, match_bits, remote_offset, length, header_data: 9 };
    Request { header, operation: Some(0), data: data.to_vec(), operand: Vec::new() }
}

/// The matching rules, written once more as plainly as possible: one walk after the other over vectors.
#[derive(Default)]
struct Reference {
    priority: Vec<ListEntry>,
    overflow: Vec<ListEntry>,
    /// Source, match bits, length and the word of the overflow entry.
    unexpected: Vec<(u32, u64, u64)>,
    events: Vec<(EventKind, u64)>,
}

impl Reference {
    fn matches(entry: &ListEntry, (nid, bits, length): (u32, u64, u64)) -> bool {
        let same_bits = entry.match_bits | entry.ignore_bits == bits | entry.ignore_bits;
        let same_source = entry.source.nid == ProcessId::ANY || entry.source.nid == nid;
        same_bits && same_source && !(entry.options.no_truncation && length > entry.region.length())
    }

    fn append(&mut self, entry: ListEntry) {
        let mut place = 0;
        while place < self.unexpected.len() {
            if Reference::matches(&entry, self.unexpected[place]) {
                self.unexpected.remove(place);
                self.events.push((EventKind::PutOverflow, entry.word));
                if entry.options.use_once {
                    self.events.push((EventKind::AutoUnlink, entry.word));
                    return;
                }
            } else {
                place += 1;
            }
        }
        self.priority.push(entry);
    }

    fn put(&mut self, message: (u32, u64, u64)) -> (u32, Outcome) {
        for (place, entry) in self.priority.iter().enumerate() {
            if Reference::matches(entry, message) {
                self.events.push((EventKind::Put, entry.word));
                if entry.options.use_once {
                    self.events.push((EventKind::AutoUnlink, entry.word));
                    self.priority.remove(place);
                }
                return (place as u32 + 1, Outcome::Ok);
            }
        }
        let walked = self.priority.len() as u32;
        for (place, entry) in self.overflow.iter().enumerate() {
            if Reference::matches(entry, message) {
                self.events.push((EventKind::Put, entry.word));
                self.unexpected.push(message);
                return (walked + place as u32 + 1, Outcome::Ok);
            }
        }
        (walked + self.overflow.len() as u32, Outcome::Dropped)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Append { bits: u64, ignored: u64, from: Option<u32>, once: bool, short: bool, overflow: bool },
    Put { bits: u64, from: u32, length: u64 },
    Unlink(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let flags = (any::<bool>(), any::<bool>(), prop::bool::weighted(0.15));
    let ignored = prop_oneof![3 => Just(0u64), 1 => 0u64..16];
    let step = prop_oneof![
        3 => (0u64..6, ignored, prop::option::weighted(0.3, 1u32..3), flags).prop_map(
            |(bits, ignored, from, (once, short, overflow))| {
                Step::Append { bits, ignored, from, once, short, overflow }
            }
        ),
        4 => (0u64..8, 1u32..4, 0u64..12).prop_map(|(bits, from, length)| Step::Put { bits, from, length }),
        1 => any::<usize>().prop_map(Step::Unlink),
    ];
    prop::collection::vec(step, 1..250)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Catches a message that another entry takes than the rules say, an event too many, too few or out of
    /// order, and searches that are counted wrongly.
    #[test]
    fn messages_go_where_the_rules_say(steps in steps()) {
        let (mut node, mut reference) = (Node::plain(), Reference::default());
        node.queue = node.interface.allocate_queue(100_000).unwrap();
        node.interface.free_table_entry(0).unwrap();
        let options = TableEntryOptions::default();
        node.interface.allocate_table_entry(Some(0), options, Some(node.queue)).unwrap();
        let mut linked = Vec::new();
        for (word, step) in (0u64..).zip(steps) {
            match step {
                Step::Append { bits, ignored, from, once: is_once, short, overflow } => {
                    let of = if is_once && !overflow { once(bits, word) } else { entry(bits, word) };
                    let length = if short { 6 } else { 64 };
                    let nid = from.unwrap_or(ProcessId::ANY);
                    let added = ListEntry {
                        region: Region::one(0, length),
                        ignore_bits: ignored,
                        source: ProcessId { nid, pid: ProcessId::ANY },
                        options: EntryOptions { no_truncation: short, ..of.options },
                        ..of
                    };
                    let list = if overflow { ListKind::Overflow } else { ListKind::Priority };
                    linked.push((word, node.append(list, added.clone())));
                    if overflow { reference.overflow.push(added) } else { reference.append(added) }
                }
                Step::Put { bits, from, length } => {
                    let mut put = message(Action::Put, bits, &vec![7; length as usize]);
                    put.header.initiator = process(from);
                    let (searched, response) = node.receive(&put);
                    let (walked, outcome) = reference.put((from, bits, length));
                    prop_assert_eq!((searched, response.outcome), (walked, outcome));
                }
                Step::Unlink(place) if !linked.is_empty() => {
                    let (word, handle) = linked.remove(place % linked.len());
                    let there = reference.priority.iter().position(|entry| entry.word == word);
                    if let Some(there) = there {
                        reference.priority.remove(there);
                        prop_assert_eq!(node.interface.unlink(handle), Ok(()));
                    } else if handle.list == ListKind::Priority {
                        prop_assert_eq!(node.interface.unlink(handle), Err(PortalsError::ArgumentInvalid));
                    }
                }
                Step::Unlink(_) => {}
            }
        }
        let events: Vec<_> =
            std::iter::from_fn(|| node.interface.take_event(node.queue).ok().map(|(e, _)| (e.kind, e.user)))
                .collect();
        prop_assert_eq!(events, reference.events);
    }
}

/// Catches bytes that go elsewhere, more of them than there is room for, and a wrong account of them.
#[test]
fn a_message_is_truncated_to_its_entry() {
    let mut node = Node::plain();
    let short = ListEntry { region: Region::one(100, 3), ..entry(5, 77) };
    node.append(ListKind::Priority, short);
    let (_, response) = node.receive(&message(Action::Put, 5, &[1, 2, 3, 4, 5]));
    assert_eq!((response.outcome, response.moved), (Outcome::Ok, 3));
    assert_eq!(node.memory.0[99..105], [0, 1, 2, 3, 0, 0]);
    let (event, _) = node.interface.take_event(node.queue).unwrap();
    let Event { kind, user, requested, moved, start, header_data, .. } = event;
    assert_eq!((kind, user, requested, moved, start, header_data), (EventKind::Put, 77, 5, 3, 100, 9));
}

/// Catches messages that lie on each other, and an entry that stays although it is used up.
#[test]
fn local_offsets_lay_messages_one_behind_the_other() {
    let mut node = Node::plain();
    let of = entry(5, 0);
    let options = EntryOptions { local_offset: true, ..of.options };
    node.append(ListKind::Priority, ListEntry { region: Region::one(0, 10), options, least_free: 4, ..of });
    node.receive(&message(Action::Put, 5, &[1; 4]));
    assert_eq!(node.kinds(), [EventKind::Put]);
    node.receive(&message(Action::Put, 5, &[2; 4]));
    assert_eq!(node.kinds(), [EventKind::Put, EventKind::AutoUnlink]);
    assert_eq!(node.memory.0[..10], [1, 1, 1, 1, 2, 2, 2, 2, 0, 0]);
    assert_eq!(node.receive(&message(Action::Put, 5, &[3; 4])).1.outcome, Outcome::Dropped);
}

/// Catches an overflow entry that goes before its headers are taken, or stays after.
#[test]
fn an_overflow_entry_is_free_when_its_headers_are_taken() {
    let mut node = Node::plain();
    let handle = node.append(ListKind::Overflow, ListEntry { ignore_bits: u64::MAX, ..once(0, 1) });
    node.receive(&message(Action::Put, 5, &[1; 4]));
    assert_eq!(node.kinds(), [EventKind::Put, EventKind::AutoUnlink]);
    assert_eq!(node.interface.unlink(handle), Err(PortalsError::InUse));
    assert_eq!(node.receive(&message(Action::Put, 6, &[1; 4])).1.outcome, Outcome::Dropped);
    node.append(ListKind::Priority, once(5, 2));
    let taken = [EventKind::PutOverflow, EventKind::AutoFree, EventKind::AutoUnlink];
    assert_eq!(node.kinds(), taken);
    assert_eq!(node.interface.unlink(handle), Err(PortalsError::ArgumentInvalid));
    assert_eq!(node.interface.free_table_entry(0), Ok(()));
}

/// Catches a search that takes what it should leave, or says nothing.
#[test]
fn a_search_finds_and_deletes_headers() {
    let mut node = Node::plain();
    node.append(ListKind::Overflow, ListEntry { ignore_bits: u64::MAX, ..entry(0, 1) });
    node.receive(&message(Action::Put, 5, &[1; 4]));
    node.kinds();
    let mut search = |how, bits| {
        node.interface.search(0, how, once(bits, 3), &mut node.memory).unwrap();
        node.interface.take_event(node.queue).map(|(event, _)| (event.kind, event.outcome)).unwrap()
    };
    assert_eq!(search(Search::Only, 6), (EventKind::Search, Outcome::NoMatch));
    assert_eq!(search(Search::Only, 5), (EventKind::Search, Outcome::Ok));
    assert_eq!(search(Search::Delete, 5), (EventKind::PutOverflow, Outcome::Ok));
    assert_eq!(search(Search::Delete, 5), (EventKind::Search, Outcome::NoMatch));
    // One that is not used once tells of each header.
    (0..3).for_each(|_| drop(node.receive(&message(Action::Put, 7, &[1; 4]))));
    node.kinds();
    let searched = node.interface.search(0, Search::Only, entry(7, 3), &mut node.memory);
    assert_eq!((searched, node.kinds()), (Ok(3), vec![EventKind::Search; 3]));
}

/// Catches an entry that another user writes to, or that is read although it is for writing.
#[test]
fn users_and_operations_are_checked() {
    let mut node = Node::plain();
    let of = entry(5, 0);
    let options = EntryOptions { gets: false, ..of.options };
    node.append(ListKind::Priority, ListEntry { options, ..of });
    node.append(ListKind::Priority, ListEntry { user: 2, ..entry(6, 0) });
    let outcome = |node: &mut Node, action, bits| node.receive(&message(action, bits, &[1; 8])).1.outcome;
    let fetch = Action::FetchAtomic(AtomicOperation::Sum, DataType::Int64);
    assert_eq!(outcome(&mut node, Action::Get, 5), Outcome::OperationViolation);
    assert_eq!(outcome(&mut node, fetch, 5), Outcome::OperationViolation);
    assert_eq!(outcome(&mut node, Action::Put, 5), Outcome::Ok);
    assert_eq!(outcome(&mut node, Action::Put, 6), Outcome::PermissionViolation);
    let status = node.interface.status();
    assert_eq!((status.operation_violations, status.permission_violations, status.dropped), (2, 1, 0));
    node.append(ListKind::Priority, ListEntry { region: Region::one(1 << 40, 8), ..entry(7, 0) });
    assert_eq!(outcome(&mut node, Action::Put, 7), Outcome::Fault);
}

/// Catches an entry that goes on taking messages for which there was no room, and one that is not told of.
#[test]
fn flow_control_disables_an_entry_until_it_is_enabled() {
    let options = TableEntryOptions { flow_control: true, ..TableEntryOptions::default() };
    let limits = Limits { unexpected_headers: 1, ..Limits::USUAL };
    let mut node = Node::new(options, &limits, 8);
    node.append(ListKind::Overflow, ListEntry { ignore_bits: u64::MAX, ..entry(0, 1) });
    let put = |node: &mut Node| node.receive(&message(Action::Put, 5, &[1; 4])).1.outcome;
    assert_eq!(put(&mut node), Outcome::Ok);
    assert_eq!([put(&mut node), put(&mut node)], [Outcome::TableEntryDisabled; 2]);
    assert_eq!(node.kinds(), [EventKind::Put, EventKind::TableEntryDisabled]);
    node.append(ListKind::Priority, once(5, 2));
    assert_eq!(put(&mut node), Outcome::TableEntryDisabled);
    node.interface.enable_table_entry(0, true).unwrap();
    assert_eq!(put(&mut node), Outcome::Ok);
    // A queue that runs full disables too, and the last event says so.
    node.append(ListKind::Priority, entry(5, 3));
    let outcomes: Vec<_> = (0..9).map(|_| put(&mut node)).collect();
    assert_eq!(outcomes.last(), Some(&Outcome::TableEntryDisabled));
    assert_eq!(node.kinds().last(), Some(&EventKind::TableEntryDisabled));
    let no_queue = NetworkInterface::new(process(0), &limits).allocate_table_entry(None, options, None);
    assert_eq!(no_queue, Err(PortalsError::QueueNeeded));
}

/// Catches a list that an entry joins or leaves before its time, or at its time does not.
#[test]
fn entries_come_and_go_when_they_are_triggered() {
    let mut node = Node::plain();
    let counting = node.interface.allocate_counting().unwrap();
    let place = (0, ListKind::Priority);
    let by_one = CountingEvent { success: 1, failure: 0 };
    let mut trigger = |threshold, operation| {
        node.interface.trigger((counting, threshold), operation, &mut node.memory).unwrap();
    };
    trigger(2, TriggeredOperation::Unlink(EntryName(7)));
    trigger(1, TriggeredOperation::Append(EntryName(7), place, entry(5, 1)));
    let mut outcomes = Vec::new();
    for _ in 0..3 {
        outcomes.push(node.receive(&message(Action::Put, 5, &[1; 4])).1.outcome);
        node.interface.increase_counting(counting, by_one, &mut node.memory).unwrap();
    }
    assert_eq!(outcomes, [Outcome::Dropped, Outcome::Ok, Outcome::Dropped]);
    assert_eq!(node.interface.unlink_named(EntryName(7)), Err(PortalsError::ArgumentInvalid));
    // What could not be appended is refused when it is asked for.
    let wrong = TriggeredOperation::Append(EntryName(8), (9, ListKind::Priority), entry(5, 1));
    let refused = node.interface.trigger((counting, 9), wrong, &mut node.memory);
    assert_eq!(refused, Err(PortalsError::ArgumentInvalid));
}

/// Catches an unordered search that pays for a walk, or finds what does not match.
#[test]
fn an_unordered_search_looks_at_one_exact_entry() {
    let options = TableEntryOptions { match_unordered: true, ..TableEntryOptions::default() };
    let mut node = Node::new(options, &Limits::USUAL, 64);
    for bits in 0..50 {
        node.append(ListKind::Priority, entry(bits, bits));
    }
    node.append(ListKind::Priority, ListEntry { ignore_bits: 1, ..entry(100, 100) });
    let mut searched = |bits| {
        let (searched, response) = node.receive(&message(Action::Put, bits, &[1; 4]));
        (searched, response.outcome)
    };
    assert_eq!((searched(49), searched(101)), ((1, Outcome::Ok), (2, Outcome::Ok)));
    assert_eq!(searched(70), (3, Outcome::Dropped));
    let options = TableEntryOptions { begins_disabled: true, ..options };
    let mut node = Node::new(options, &Limits::USUAL, 64);
    assert_eq!(node.receive(&message(Action::Put, 5, &[1])).1.outcome, Outcome::TableEntryDisabled);
}

/// Two processes that carry each other's messages until none is left.
struct Pair([NetworkInterface; 2], [Bytes; 2]);

impl Pair {
    fn new() -> Pair {
        let interface = |nid| NetworkInterface::new(process(nid), &Limits::USUAL);
        Pair([interface(0), interface(1)], [Bytes::new(), Bytes::new()])
    }

    fn settle(&mut self) {
        let mut quiet = 0;
        while quiet < 2 {
            quiet += 1;
            for side in 0..2 {
                while let Some(message) = self.0[side].outgoing() {
                    quiet = 0;
                    let (OutgoingRequest::Request(to, _) | OutgoingRequest::Response(to, _)) = &message;
                    let to = to.nid as usize;
                    match &message {
                        OutgoingRequest::Request(_, request) => {
                            _ = self.0[to].request(request, &mut self.1[to])
                        }
                        OutgoingRequest::Response(_, response) => {
                            self.0[to].respond(response, &mut self.1[to])
                        }
                    }
                }
            }
        }
    }

    fn counted(&mut self, side: usize) -> (CountingHandle, super::handle::DescriptorHandle, QueueHandle) {
        let interface = &mut self.0[side];
        let (counting, queue) =
            (interface.allocate_counting().unwrap(), interface.allocate_queue(64).unwrap());
        let options = DescriptorOptions {
            counts_acknowledgements: true,
            counts_replies: true,
            ..DescriptorOptions::default()
        };
        let region = Region::one(0, 64);
        let descriptor = MemoryDescriptor { region, options, queue: Some(queue), counting: Some(counting) };
        (counting, interface.bind(descriptor).unwrap(), queue)
    }
}

fn put(descriptor: super::handle::DescriptorHandle, target: u32, length: u64) -> Operation {
    Operation {
        action: Action::Put,
        from: Some(DescriptorPlace { descriptor, offset: 0 }),
        into: None,
        length,
        acknowledgement: Acknowledgement::Full,
        target: ProcessId { nid: target, pid: 0 },
        portal: 0,
        match_bits: 5,
        remote_offset: 0,
        word: 3,
        header_data: 0,
        operand: Vec::new(),
    }
}

/// Catches data that does not come back, events of an initiator that are missing, and swaps of other bytes.
#[test]
fn operations_come_back_to_their_initiator() {
    let mut pair = Pair::new();
    let (counting, descriptor, queue) = pair.counted(0);
    let table = TableEntryOptions::default();
    pair.0[1].allocate_table_entry(Some(0), table, None).unwrap();
    let Pair(interfaces, memories) = &mut pair;
    interfaces[1].append((0, ListKind::Priority), entry(5, 0), &mut memories[1]).unwrap();
    memories[0].0[..8].copy_from_slice(&7u64.to_le_bytes());
    memories[0].0[8..16].copy_from_slice(&30u64.to_le_bytes());
    let put = put(descriptor, 1, 8);
    pair.0[0].start(&put, &mut pair.1[0]).unwrap();
    pair.settle();
    let fetch = Operation {
        action: Action::FetchAtomic(AtomicOperation::SwapIfEqual, DataType::Uint64),
        from: Some(DescriptorPlace { descriptor, offset: 8 }),
        into: Some(DescriptorPlace { descriptor, offset: 16 }),
        operand: 7u64.to_le_bytes().to_vec(),
        ..put.clone()
    };
    pair.0[0].start(&fetch, &mut pair.1[0]).unwrap();
    pair.settle();
    assert_eq!(pair.1[0].0[16..24], 7u64.to_le_bytes());
    assert_eq!(pair.1[1].0[..8], 30u64.to_le_bytes());
    let get = Operation {
        action: Action::Get,
        from: None,
        into: Some(DescriptorPlace { descriptor, offset: 24 }),
        ..put.clone()
    };
    pair.0[0].start(&get, &mut pair.1[0]).unwrap();
    pair.settle();
    assert_eq!(pair.1[0].0[24..32], 30u64.to_le_bytes());
    let missed = Operation { match_bits: 6, ..put };
    pair.0[0].start(&missed, &mut pair.1[0]).unwrap();
    pair.settle();
    let events: Vec<_> = std::iter::from_fn(|| pair.0[0].take_event(queue).ok())
        .map(|(event, _)| (event.kind, event.outcome))
        .collect();
    use EventKind::{Ack, Reply, Send};
    let ok = Outcome::Ok;
    let expected =
        [(Send, ok), (Ack, ok), (Send, ok), (Reply, ok), (Reply, ok), (Send, ok), (Ack, Outcome::Dropped)];
    assert_eq!(events, expected);
    assert_eq!(pair.0[0].counted(counting), Ok(CountingEvent { success: 3, failure: 1 }));
    assert_eq!(pair.0[0].pending.insert_count(), 0);
}

/// Catches triggered operations that start too early, never, or in another order.
#[test]
fn triggered_operations_start_at_their_threshold() {
    let mut pair = Pair::new();
    let (counting, descriptor, _) = pair.counted(0);
    let (queue, table) = (pair.0[1].allocate_queue(64).unwrap(), TableEntryOptions::default());
    pair.0[1].allocate_table_entry(Some(0), table, Some(queue)).unwrap();
    let Pair([first, second], [memory, other]) = &mut pair;
    second.append((0, ListKind::Priority), entry(5, 0), other).unwrap();
    let trigger = first.allocate_counting().unwrap();
    for (threshold, length) in [(3, 30), (1, 10), (2, 20), (2, 21)] {
        let operation = TriggeredOperation::Start(put(descriptor, 1, length));
        first.trigger((trigger, threshold), operation, memory).unwrap();
    }
    let again = TriggeredOperation::Increase(trigger, CountingEvent { success: 1, failure: 0 });
    first.trigger((counting, 3), again, memory).unwrap();
    assert!(first.outgoing().is_none());
    first.increase_counting(trigger, CountingEvent { success: 1, failure: 1 }, memory).unwrap();
    pair.settle();
    let lengths: Vec<u64> =
        std::iter::from_fn(|| pair.0[1].take_event(queue).ok()).map(|(event, _)| event.moved).collect();
    assert_eq!(lengths, [10, 20, 21, 30]);
    assert_eq!(pair.0[0].cancel_triggered(trigger), Ok(()));
    pair.0[0].free_counting(trigger).unwrap();
    assert_eq!(pair.0[0].counted(trigger), Err(PortalsError::ArgumentInvalid));
}

/// Catches messages that leave before their bundle ends.
#[test]
fn a_bundle_holds_messages_back() {
    let mut pair = Pair::new();
    let (_, descriptor, _) = pair.counted(0);
    pair.0[0].start_bundle();
    pair.0[0].start(&put(descriptor, 1, 8), &mut pair.1[0]).unwrap();
    assert!(pair.0[0].outgoing().is_none());
    pair.0[0].end_bundle().unwrap();
    assert!(pair.0[0].outgoing().is_some());
    assert_eq!(pair.0[0].end_bundle(), Err(PortalsError::ArgumentInvalid));
}

/// Catches arguments that reach beyond their memory, and limits that do not hold.
#[test]
fn bad_arguments_are_refused() {
    let mut pair = Pair::new();
    let (_, descriptor, _) = pair.counted(0);
    let Pair([interface, _], [memory, _]) = &mut pair;
    let good = put(descriptor, 1, 64);
    let sum = Action::Atomic(AtomicOperation::Sum, DataType::Int64);
    let float_or = Action::Atomic(AtomicOperation::BitOr, DataType::Double);
    let compare = Action::FetchAtomic(AtomicOperation::SwapIfEqual, DataType::Int64);
    let beyond = Some(DescriptorPlace { descriptor, offset: u64::MAX });
    for bad in [
        Operation { length: 65, ..good.clone() },
        Operation { from: beyond, ..good.clone() },
        Operation { action: sum, length: 12, ..good.clone() },
        Operation { action: float_or, ..good.clone() },
        Operation { action: compare, length: 8, ..good.clone() },
    ] {
        assert_eq!(interface.start(&bad, memory), Err(PortalsError::ArgumentInvalid), "{bad:?}");
    }
    assert_eq!(interface.start(&good, memory), Ok(()));
    interface.release(descriptor).unwrap();
    assert_eq!(interface.start(&good, memory), Err(PortalsError::ArgumentInvalid));
    let mut small = NetworkInterface::new(process(0), &Limits { list: 2, entries: 3, ..Limits::USUAL });
    small.allocate_table_entry(Some(0), TableEntryOptions::default(), None).unwrap();
    let results: Vec<_> = [ListKind::Priority, ListKind::Priority, ListKind::Priority, ListKind::Overflow]
        .into_iter()
        .chain([ListKind::Overflow])
        .map(|list| small.append((0, list), entry(1, 0), memory).map(drop))
        .collect();
    let (long, full) = (Err(PortalsError::ListTooLong), Err(PortalsError::NoSpace));
    assert_eq!(results, [Ok(()), Ok(()), long, Ok(()), full]);
}

/// Catches a search whose wall time grows with the list: of 10,000 exact entries, the last is found as fast
/// as the first. Entries that were looked at are counted all the same.
#[test]
fn the_last_of_many_exact_entries_costs_no_walk() {
    let mut node = Node::plain();
    for bits in 0..10_000 {
        let of = entry(bits, bits);
        let options = EntryOptions { no_communication_events: true, ..of.options };
        node.append(ListKind::Priority, ListEntry { options, ..of });
    }
    let mut looked_at = |bits| node.receive(&message(Action::Put, bits, &[1])).0;
    assert_eq!([looked_at(0), looked_at(9_999), looked_at(10_000)], [1, 10_000, 10_000]);
}
