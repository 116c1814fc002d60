//! The target: requests are matched and carried out.
//!
//! ```text
//!   request ─► enabled? ─► priority list ─► overflow list ─► permissions ─► memory ─► event, response
//!                 │no           │             │ none          │ none
//!                 └► disabled   └► carried    └► header kept   └► dropped, or the table entry is disabled
//! ```

use crate::atomic::apply;
use crate::entry::{Linked, ListEntry};
use crate::error::{Outcome, PortalsError};
use crate::event_queue::{Event, EventKind};
use crate::interface::NetworkInterface;
use crate::match_list::{EntryNumber, ListKind};
use crate::memory::Memory;
use crate::portal_table::UnexpectedHeader;
use crate::request::{Action, Header, OutgoingRequest, ProcessId, Request, Response};

/// The fate of the unexpected headers that a search finds (`ptl_search_op_t`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Search {
    /// `PTL_SEARCH_ONLY`: they stay.
    Only,
    /// `PTL_SEARCH_DELETE`.
    Delete,
}

/// The outcome of a request that has been carried out.
struct Done {
    list: ListKind,
    offset: u64,
    moved: u64,
    silent: bool,
    data: Vec<u8>,
}

impl NetworkInterface {
    /// A request has come. Returns how many entries have been searched for it.
    pub fn request(&mut self, request: &Request, memory: &mut impl Memory) -> u32 {
        let (searched, done) = self.carry_out(request, memory);
        let (outcome, done) = match done {
            Ok(done) => (Outcome::Ok, done),
            Err(outcome) => {
                let list = ListKind::Priority;
                (outcome, Done { list, offset: 0, moved: 0, silent: false, data: Vec::new() })
            }
        };
        match outcome {
            Outcome::Dropped | Outcome::TableEntryDisabled => self.status.dropped += 1,
            Outcome::PermissionViolation => self.status.permission_violations += 1,
            Outcome::OperationViolation => self.status.operation_violations += 1,
            _ => {}
        }
        if let Some(operation) = request.operation {
            let Done { list, offset: remote_offset, moved, silent, data } = done;
            let response = Response { operation, outcome, moved, remote_offset, list, silent, data };
            self.send(OutgoingRequest::Response(request.header.initiator.process, response));
        }
        self.run_triggered(memory);
        searched
    }

    /// Sends a response of another's making, to a request that never came to the table.
    pub fn refuse(&mut self, initiator: ProcessId, response: Response) {
        self.send(OutgoingRequest::Response(initiator, response));
    }

    fn carry_out(&mut self, request: &Request, memory: &mut impl Memory) -> (u32, Result<Done, Outcome>) {
        let header = &request.header;
        let Ok(table_entry) = self.table.get(header.portal) else { return (0, Err(Outcome::Dropped)) };
        if !table_entry.enabled {
            return (0, Err(Outcome::TableEntryDisabled));
        }
        let queue = table_entry.queue;
        let (found, searched) = table_entry.search(header);
        let Some((list, number)) = found else {
            return (searched, Err(self.no_room(header.portal)));
        };
        let Some(linked) = self.table.get_mut(header.portal).ok().and_then(|e| e.list(list).get(number))
        else {
            return (searched, Err(Outcome::Dropped));
        };
        let (entry, used) = (linked.entry.clone(), linked.used);
        if entry.user != ListEntry::ANY_USER && entry.user != header.initiator.user {
            return (searched, Err(Outcome::PermissionViolation));
        }
        if !entry.takes(header.action) {
            return (searched, Err(Outcome::OperationViolation));
        }
        let keeps_header = list == ListKind::Overflow && !entry.options.no_unexpected_headers;
        // A message sets off two full events at most, and a disabled entry reports one more.
        let no_space = keeps_header && self.unexpected >= self.limits().unexpected_headers;
        let controlled = self.table.get(header.portal).is_ok_and(|entry| entry.options.flow_control);
        if no_space || controlled && self.room(queue) < 3 {
            return (searched, Err(self.no_room(header.portal)));
        }
        let (offset, room) = (entry.offset(header, used), entry.room(header, used));
        let moved = header.length.min(room);
        let data = match self.move_data(request, (&entry, offset, moved), memory) {
            Some(data) => data,
            None => return (searched, Err(Outcome::Fault)),
        };
        self.matched(header, (list, number), (offset, moved));
        let silent = entry.options.no_acknowledgements;
        (searched, Ok(Done { list, offset, moved, silent, data }))
    }

    /// A message has no entry, or no room: with flow control the portal table entry takes nothing any more.
    fn no_room(&mut self, portal: u32) -> Outcome {
        let Ok(table_entry) = self.table.get_mut(portal) else { return Outcome::Dropped };
        if !table_entry.options.flow_control {
            return Outcome::Dropped;
        }
        table_entry.enabled = false;
        let queue = table_entry.queue;
        self.report(
            queue,
            Event { portal, ..Event::new(EventKind::TableEntryDisabled, Outcome::TableEntryDisabled) },
        );
        Outcome::TableEntryDisabled
    }

    /// Reads and writes the entry's memory; the data for the initiator, `None` where memory is not there.
    fn move_data(
        &self,
        request: &Request,
        (entry, offset, moved): (&ListEntry, u64, u64),
        memory: &mut impl Memory,
    ) -> Option<Vec<u8>> {
        let region = &entry.region;
        let data = request.data.get(..usize::try_from(moved).ok()?);
        match request.header.action {
            Action::Put => region.write(offset, data?, memory).map(|()| Vec::new()),
            Action::Get => region.read(offset, moved, memory),
            Action::Atomic(how, of) | Action::FetchAtomic(how, of) => {
                let before = region.read(offset, moved, memory)?;
                let mut after = before.clone();
                apply(&mut after, (data?, &request.operand), how, of);
                region.write(offset, &after, memory)?;
                let fetches = matches!(request.header.action, Action::FetchAtomic(..));
                Some(if fetches { before } else { Vec::new() })
            }
        }
    }

    /// A message has been carried out in an entry: its events and counts, and the entry's end.
    fn matched(
        &mut self,
        header: &Header,
        (list, number): (ListKind, EntryNumber),
        (offset, moved): (u64, u64),
    ) {
        let Ok(table_entry) = self.table.get_mut(header.portal) else { return };
        let queue = table_entry.queue;
        let lists = table_entry.list(list);
        let Some(linked) = lists.get_mut(number) else { return };
        let options = linked.entry.options;
        if options.local_offset {
            linked.used += moved;
        }
        let start = linked.entry.region.address(offset);
        let keeps_header = list == ListKind::Overflow && !options.no_unexpected_headers;
        if keeps_header {
            linked.headers += 1;
        }
        let is_done = linked.entry.is_done(linked.used);
        let (counting, word) = (linked.entry.counting, linked.entry.word);
        let goes = is_done && !keeps_header;
        linked.unlinked = is_done;
        if goes {
            lists.remove(number);
            self.entries -= 1;
        }
        if keeps_header {
            let kept = UnexpectedHeader { header: *header, entry: number, start, offset, moved };
            if let Ok(table_entry) = self.table.get_mut(header.portal) {
                table_entry.unexpected.append(kept);
                self.unexpected += 1;
            }
        }
        let happened = Happened { header, list, word, start, offset, moved };
        if !options.no_communication_events && !options.no_success_events {
            self.report(queue, happened.event(kind_of(header.action, false)));
        }
        if options.counts_communication {
            self.count(counting, (Outcome::Ok, options.counts_bytes.then_some(moved)));
        }
        if is_done && !options.no_unlink_events {
            self.report(queue, happened.event(EventKind::AutoUnlink));
            if goes && list == ListKind::Overflow {
                self.report(queue, happened.event(EventKind::AutoFree));
            }
        }
    }

    /// An entry is linked.
    pub(super) fn report_link(&mut self, portal: u32, entry: &ListEntry) {
        if !entry.options.no_link_events {
            let queue = self.table.get(portal).ok().and_then(|table_entry| table_entry.queue);
            let event = Event::new(EventKind::Link, Outcome::Ok);
            self.report(queue, Event { portal, user: entry.word, ..event });
        }
    }

    /// An entry for the priority list takes the messages that came before it. Returns how many headers were
    /// looked at, and whether it is still to be linked.
    pub(super) fn take_unexpected(&mut self, portal: u32, linked: &mut Linked) -> (u32, bool) {
        let mut searched = 0;
        loop {
            let (found, looked_at) = self.find_unexpected(portal, linked);
            searched += looked_at;
            let Some((number, kept)) = found else { return (searched, true) };
            self.delete_unexpected(portal, number, &kept, &linked.entry);
            let options = linked.entry.options;
            if options.counts_overflow {
                let bytes = options.counts_bytes.then_some(kept.moved);
                self.count(linked.entry.counting, (Outcome::Ok, bytes));
            }
            if options.local_offset {
                linked.used += kept.moved;
            }
            if linked.entry.is_done(linked.used) {
                if !options.no_unlink_events {
                    let queue = self.table.get(portal).ok().and_then(|entry| entry.queue);
                    let word = linked.entry.word;
                    self.report(queue, Happened::of(&kept, word).event(EventKind::AutoUnlink));
                }
                return (searched, false);
            }
        }
    }

    /// The oldest unexpected header that an entry accepts.
    fn find_unexpected(
        &self,
        portal: u32,
        linked: &Linked,
    ) -> (Option<(EntryNumber, UnexpectedHeader)>, u32) {
        let Ok(table_entry) = self.table.get(portal) else { return (None, 0) };
        let entry = &linked.entry;
        let accepts = |kept: &UnexpectedHeader| is_for(kept, linked);
        let bits = (entry.ignore_bits == 0).then_some(entry.match_bits);
        let found = table_entry.unexpected.find(bits, accepts);
        let kept = found.entry.and_then(|number| Some((number, *table_entry.unexpected.get(number)?)));
        (kept, found.searched)
    }

    /// All unexpected headers that an entry accepts, the oldest first.
    fn all_unexpected(&self, portal: u32, linked: &Linked) -> Vec<UnexpectedHeader> {
        let table_entry = self.table.get(portal).ok();
        let all = table_entry.into_iter().flat_map(|table_entry| table_entry.unexpected.iter());
        all.filter(|kept| is_for(kept, linked)).copied().collect()
    }

    /// An unexpected header is taken by an entry or a search.
    fn delete_unexpected(
        &mut self,
        portal: u32,
        number: EntryNumber,
        kept: &UnexpectedHeader,
        by: &ListEntry,
    ) {
        let Ok(table_entry) = self.table.get_mut(portal) else { return };
        let queue = table_entry.queue;
        table_entry.unexpected.remove(number);
        self.unexpected -= 1;
        let mut freed = None;
        if let Some(overflow) = table_entry.overflow.get_mut(kept.entry) {
            overflow.headers -= 1;
            if overflow.headers == 0 && overflow.unlinked {
                freed = Some((overflow.entry.word, overflow.entry.options));
                table_entry.overflow.remove(kept.entry);
                self.entries -= 1;
            }
        }
        if !by.options.no_overflow_events && !by.options.no_success_events {
            let kind = kind_of(kept.header.action, true);
            self.report(queue, Happened::of(kept, by.word).event(kind));
        }
        match freed {
            Some((word, options)) if !options.no_unlink_events => {
                self.report(queue, Happened::of(kept, word).event(EventKind::AutoFree));
            }
            _ => {}
        }
    }

    /// `PtlMESearch`, `PtlLESearch`: looks among the headers of messages that came before an entry for them.
    /// Returns how many were looked at.
    ///
    /// # Errors
    /// A portal table entry that is not allocated.
    pub fn search(
        &mut self,
        portal: u32,
        how: Search,
        entry: ListEntry,
        memory: &mut impl Memory,
    ) -> Result<u32, PortalsError> {
        let queue = self.table.get(portal)?.queue;
        let linked = Linked::new(entry);
        let (mut found, mut searched) = self.find_unexpected(portal, &linked);
        let any = found.is_some();
        if let (Search::Only, Some((_, first))) = (how, &found) {
            let once = linked.entry.options.use_once;
            let all = if once { vec![*first] } else { self.all_unexpected(portal, &linked) };
            if !once {
                searched = self.table.get(portal)?.unexpected.len() as u32;
            }
            for kept in &all {
                self.report(queue, Happened::of(kept, linked.entry.word).event(EventKind::Search));
            }
        }
        while let (Search::Delete, Some((number, kept))) = (how, found) {
            self.delete_unexpected(portal, number, &kept, &linked.entry);
            if linked.entry.options.use_once {
                break;
            }
            let (next, looked_at) = self.find_unexpected(portal, &linked);
            (found, searched) = (next, searched + looked_at);
        }
        if !any {
            let event = Event::new(EventKind::Search, Outcome::NoMatch);
            self.report(queue, Event { portal, user: linked.entry.word, ..event });
        }
        self.run_triggered(memory);
        Ok(searched)
    }
}

/// Whether an entry accepts the message of an unexpected header.
fn is_for(kept: &UnexpectedHeader, linked: &Linked) -> bool {
    let entry = &linked.entry;
    let of_user = entry.user == ListEntry::ANY_USER || entry.user == kept.header.initiator.user;
    of_user && entry.takes(kept.header.action) && entry.accepts(&kept.header, linked.used)
}

/// A message that was carried out, for its events.
struct Happened<'a> {
    header: &'a Header,
    list: ListKind,
    word: u64,
    start: u64,
    offset: u64,
    moved: u64,
}

impl Happened<'_> {
    /// The message of a kept header, for an entry with this word.
    fn of(kept: &UnexpectedHeader, word: u64) -> Happened<'_> {
        let UnexpectedHeader { header, start, offset, moved, .. } = kept;
        Happened { header, list: ListKind::Overflow, word, start: *start, offset: *offset, moved: *moved }
    }

    fn event(&self, kind: EventKind) -> Event {
        let header = self.header;
        Event {
            kind,
            outcome: Outcome::Ok,
            list: self.list,
            portal: header.portal,
            user: self.word,
            initiator: header.initiator,
            match_bits: header.match_bits,
            requested: header.length,
            moved: self.moved,
            remote_offset: self.offset,
            start: self.start,
            header_data: header.header_data,
            atomic: match header.action {
                Action::Atomic(how, of) | Action::FetchAtomic(how, of) => Some((how, of)),
                _ => None,
            },
        }
    }
}

/// The event of an action, at once or by an entry that came later.
fn kind_of(action: Action, overflow: bool) -> EventKind {
    match (action, overflow) {
        (Action::Put, false) => EventKind::Put,
        (Action::Put, true) => EventKind::PutOverflow,
        (Action::Get, false) => EventKind::Get,
        (Action::Get, true) => EventKind::GetOverflow,
        (Action::Atomic(..), false) => EventKind::Atomic,
        (Action::Atomic(..), true) => EventKind::AtomicOverflow,
        (Action::FetchAtomic(..), false) => EventKind::FetchAtomic,
        (Action::FetchAtomic(..), true) => EventKind::FetchAtomicOverflow,
    }
}
