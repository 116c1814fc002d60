//! The records of all ranks in one order: each behind what it comes after, messages numbered from 0 on.
//!
//! ```text
//!   rank 0   ─ compute ─ send ┐                          the send of rank 1 comes after the message:
//!   rank 1   ─ compute ─ wait ┴─ compute ─ send          it was there later than the rank
//! ```
//! A record of VEF comes after one thing. A rank that waits goes on when it has computed and when what it
//! waits for is there. So all is carried out on a network that is the same for everybody: a message takes
//! 1 us and 1 ns for each byte, which is 8 Gb/s. What held the rank up last there is what its next records
//! come after. Their order is that of their times, so that a reader that goes through the file once has all
//! that it needs, and little of it at once.

use super::communicators;
use crate::error::TraceError;
use crate::input::{Input, InputReader, chunk_bytes};
use crate::output::{self, unwritable};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fs::File;
use std::io::{BufWriter, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weft_trace::op::{CommId, RankRange};
use weft_units::Bytes;

/// Messages of one communicator, source, destination and tag.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct MessageKey {
    pub(super) comm: CommId,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) tag: i32,
}

/// One of them, by its number among them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct NumberedMessage {
    pub(super) key: MessageKey,
    pub(super) number: u32,
}

/// Time of a message, or of a collective behind its last part, on the network that all is ordered by.
const LATENCY_NS: u64 = 1000;

/// The time at which what begins at `time` with so many bytes is there.
fn arrival(time: u64, bytes: Bytes) -> u64 {
    time.saturating_add(LATENCY_NS).saturating_add(bytes.get())
}

/// Something that a rank waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AwaitedByRank {
    /// A message to the rank, by its place among those that somebody waits for.
    Message(u32),
    /// The rank's part in a collective of a communicator, by its number there.
    Part { communicator: u32, number: u32 },
}

/// The thing that a record comes after.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RecordAfter {
    Start,
    /// A send of the rank, by its ID.
    Send(u64),
    Awaited(AwaitedByRank),
}

/// A record of a rank, or a wait, behind `ns` nanoseconds of computation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KeptRecord {
    Send {
        message: NumberedMessage,
        bytes: Bytes,
        ns: u64,
    },
    Part {
        communicator: u32,
        number: u32,
        /// The number of the collective in the format.
        operation: u8,
        sent: Bytes,
        received: Bytes,
        /// Whether the rank does nothing else until it is over.
        is_blocking: bool,
        ns: u64,
    },
    Wait {
        on: AwaitedByRank,
        ns: u64,
    },
}

/// A message that somebody waits for.
#[derive(Clone, Copy, Debug)]
struct AwaitedMessage {
    message: NumberedMessage,
    /// The message as it was written.
    sent: Option<SentMessage>,
}

#[derive(Clone, Copy, Debug)]
struct SentMessage {
    id: u64,
    arrival: u64,
}

/// The records of all ranks in a temporary file, one rank after the other.
pub(super) struct KeptRecords {
    file: BufWriter<File>,
    len: u64,
    /// The begin of each rank.
    starts: Vec<u64>,
    messages: u64,
    awaited: Vec<AwaitedMessage>,
}

/// Bytes of a record: six words.
const RECORD_BYTES: usize = 48;

impl KeptRecords {
    pub(super) fn new() -> Result<KeptRecords, TraceError> {
        let file = tempfile::tempfile().map_err(|error| unwritable(&std::env::temp_dir(), error))?;
        Ok(KeptRecords {
            file: BufWriter::new(file),
            len: 0,
            starts: Vec::new(),
            messages: 0,
            awaited: Vec::new(),
        })
    }

    pub(super) fn begin_rank(&mut self) {
        self.starts.push(self.len);
    }

    /// The place of a message that somebody waits for.
    pub(super) fn wait_for(&mut self, message: NumberedMessage) -> u32 {
        self.awaited.push(AwaitedMessage { message, sent: None });
        self.awaited.len() as u32 - 1
    }

    /// Adds a record, or a wait, of the rank that was begun last.
    pub(super) fn push(&mut self, record: &KeptRecord) -> Result<(), TraceError> {
        let words = match *record {
            KeptRecord::Send { message: NumberedMessage { key, number }, bytes, ns } => {
                self.messages += 1;
                let (ends, which) = (pair(key.from, key.to), pair(key.tag.cast_unsigned(), number));
                [0, key.comm.0, ends, which, bytes.get(), ns]
            }
            KeptRecord::Part { communicator, number, operation, sent, received, is_blocking, ns } => {
                let (kind, which) = (if is_blocking { 2 } else { 1 }, pair(communicator, number));
                [kind, operation.into(), which, sent.get(), received.get(), ns]
            }
            KeptRecord::Wait { on: AwaitedByRank::Message(place), ns } => [3, place.into(), 0, 0, 0, ns],
            KeptRecord::Wait { on: AwaitedByRank::Part { communicator, number }, ns } => {
                [4, pair(communicator, number), 0, 0, 0, ns]
            }
        };
        for word in words {
            let bytes = word.to_le_bytes();
            self.file.write_all(&bytes).map_err(|error| unwritable(&std::env::temp_dir(), error))?;
        }
        self.len += RECORD_BYTES as u64;
        Ok(())
    }
}

fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn parts(pair: u64) -> (u32, u32) {
    ((pair >> 32) as u32, pair as u32)
}

/// The next record of a rank; `None`: there are no more.
fn next_record(reader: &mut InputReader) -> Result<Option<KeptRecord>, TraceError> {
    if reader.rest() == 0 {
        return Ok(None);
    }
    let bytes: [u8; RECORD_BYTES] = reader.take()?;
    let word = |place: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[8 * place..8 * place + 8]);
        u64::from_le_bytes(word)
    };
    let ns = word(5);
    Ok(Some(match word(0) {
        0 => {
            let ((from, to), (tag, number)) = (parts(word(2)), parts(word(3)));
            let key = MessageKey { comm: CommId(word(1)), from, to, tag: tag.cast_signed() };
            let message = NumberedMessage { key, number };
            KeptRecord::Send { message, bytes: Bytes::new(word(4)), ns }
        }
        3 => KeptRecord::Wait { on: AwaitedByRank::Message(word(1) as u32), ns },
        4 => {
            let (communicator, number) = parts(word(1));
            KeptRecord::Wait { on: AwaitedByRank::Part { communicator, number }, ns }
        }
        kind => {
            let (communicator, number) = parts(word(2));
            let (sent, received) = (Bytes::new(word(3)), Bytes::new(word(4)));
            let (operation, is_blocking) = (word(1) as u8, kind == 2);
            KeptRecord::Part { communicator, number, operation, sent, received, is_blocking, ns }
        }
    }))
}

/// A collective while it is written.
#[derive(Clone, Copy, Debug, Default)]
struct WrittenCollective {
    id: u64,
    parts: u32,
    /// The time at which all parts that were written are through.
    end: u64,
}

/// A communicator with the collectives of its members.
#[derive(Clone, Debug)]
struct KeptCommunicator {
    members: Vec<RankRange>,
    size: u64,
    /// Ranks that have taken part in any, so far.
    ranks: u64,
    /// Collectives that each of these took part in, and all parts.
    least: u32,
    parts: u64,
    written: Vec<WrittenCollective>,
}

impl KeptCommunicator {
    fn new(members: Vec<RankRange>) -> KeptCommunicator {
        let size = members.iter().map(|range| u64::from(range.count)).sum();
        KeptCommunicator { members, size, ranks: 0, least: u32::MAX, parts: 0, written: Vec::new() }
    }

    /// The collectives that all members take part in.
    fn whole(&self) -> u32 {
        if self.ranks == self.size { self.least } else { 0 }
    }
}

/// The communicators of all ranks, with the collectives of each.
pub(super) struct KeptCollectives {
    list: Vec<KeptCommunicator>,
    by_comm: BTreeMap<CommId, u32>,
    /// Collectives of the rank so far, by communicator.
    of_rank: BTreeMap<u32, u32>,
}

impl KeptCollectives {
    pub(super) fn of_world(world: RankRange) -> KeptCollectives {
        let list = vec![KeptCommunicator::new(vec![world])];
        KeptCollectives { list, by_comm: [(CommId::WORLD, 0)].into(), of_rank: BTreeMap::new() }
    }

    pub(super) fn create(&mut self, comm: CommId, members: &[RankRange]) {
        let next = self.list.len() as u32;
        let place = *self.by_comm.entry(comm).or_insert(next);
        if place == next {
            self.list.push(KeptCommunicator::new(members.to_vec()));
        }
        self.of_rank.insert(place, 0);
    }

    pub(super) fn begin_rank(&mut self) {
        self.of_rank = [(0, 0)].into();
    }

    pub(super) fn end_rank(&mut self) {
        for (place, count) in std::mem::take(&mut self.of_rank) {
            let communicator = &mut self.list[place as usize];
            communicator.ranks += 1;
            communicator.least = communicator.least.min(count);
            communicator.parts += u64::from(count);
        }
    }

    /// Number of members.
    pub(super) fn members(&self, comm: CommId) -> u64 {
        self.by_comm.get(&comm).map_or(0, |place| self.list[*place as usize].size)
    }

    /// The place of a communicator, and the number of the rank's next collective there.
    pub(super) fn part(&mut self, comm: CommId) -> Option<(u32, u32)> {
        let place = *self.by_comm.get(&comm)?;
        let count = self.of_rank.get_mut(&place)?;
        *count += 1;
        Some((place, *count - 1))
    }

    /// Parts in collectives in which not all members take part. Those of the rank that is being written count
    /// as the last ones.
    pub(super) fn incomplete(&self) -> u64 {
        let of = |(place, communicator): (u32, &KeptCommunicator)| {
            let mut communicator =
                KeptCommunicator { members: Vec::new(), written: Vec::new(), ..*communicator };
            if let Some(count) = self.of_rank.get(&place) {
                communicator.ranks += 1;
                communicator.least = communicator.least.min(*count);
                communicator.parts += u64::from(*count);
            }
            communicator.parts - u64::from(communicator.whole()) * communicator.size
        };
        (0..).zip(&self.list).map(of).sum()
    }
}

/// A rank whose records are written.
struct MergedRank {
    reader: InputReader,
    /// The record that comes next.
    next: Option<KeptRecord>,
    /// How far the rank has come.
    clock: u64,
    /// The thing that its next record comes after, and its time.
    after: RecordAfter,
    since: u64,
    /// The thing that it waits for now.
    waits: Option<AwaitedByRank>,
}

/// All ranks while they are written.
struct RecordMerge {
    path: PathBuf,
    file: BufWriter<tempfile::NamedTempFile>,
    ranks: Vec<MergedRank>,
    awaited: Vec<AwaitedMessage>,
    /// The places of the awaited messages, by message.
    by_message: Vec<u32>,
    collectives: KeptCollectives,
    /// Ranks whose next record can come, by its time.
    ready: BinaryHeap<Reverse<(u64, u32)>>,
    /// Ranks that wait for a message, and those that wait for a collective.
    for_message: BTreeMap<u32, u32>,
    for_collective: BTreeMap<(u32, u32), Vec<u32>>,
    messages: u64,
    begun_collectives: u64,
    /// The place of `onlySendFlag` in the file, and whether it is false: a message comes after a reception.
    flag_at: u64,
    has_receptions: bool,
    merged: Merged,
}

/// The waits that the file lacks.
#[derive(Clone, Copy, Default)]
pub(super) struct Merged {
    /// Waits for what never comes.
    pub(super) unmatched: u64,
    /// Waits of a rank that had something else to do before it goes on.
    pub(super) waits: u64,
}

/// Writes the file at `path`.
pub(super) fn write(
    path: &Path,
    kept: KeptRecords,
    collectives: KeptCollectives,
) -> Result<Merged, TraceError> {
    let KeptRecords { file, len, starts, messages, awaited, .. } = kept;
    let temporary = |error: std::io::Error| unwritable(&std::env::temp_dir(), error);
    let file = file.into_inner().map_err(|error| temporary(error.into_error()))?;
    let input = Arc::new(Input::spooled("records", file, len));
    let count = starts.len() as u32;
    let ends = starts.iter().skip(1).copied().chain([len]);
    let rank = |(start, end): (&u64, u64)| MergedRank {
        reader: InputReader::new(&input, *start..end, chunk_bytes(count)),
        next: None,
        clock: 0,
        after: RecordAfter::Start,
        since: 0,
        waits: None,
    };
    let ranks: Vec<MergedRank> = starts.iter().zip(ends).map(rank).collect();
    let mut by_message: Vec<u32> = (0..awaited.len() as u32).collect();
    by_message.sort_unstable_by_key(|place| awaited[*place as usize].message);
    let mut merge = RecordMerge {
        path: path.to_owned(),
        file: BufWriter::new(output::unfinished(path)?),
        ranks,
        awaited,
        by_message,
        collectives,
        ready: BinaryHeap::new(),
        for_message: BTreeMap::new(),
        for_collective: BTreeMap::new(),
        messages: 0,
        begun_collectives: 0,
        flag_at: 0,
        has_receptions: false,
        merged: Merged::default(),
    };
    merge.head(messages)?;
    merge.body()?;
    let mut file = merge.file.into_inner().map_err(|error| unwritable(path, error.into_error()))?;
    if !merge.has_receptions {
        // Known only now; both words take five bytes with the blank behind the shorter.
        let flag = file.seek(SeekFrom::Start(merge.flag_at)).and_then(|_| file.write_all(b"TRUE "));
        flag.map_err(|error| unwritable(path, error))?;
    }
    output::finish(file, path)?;
    Ok(merge.merged)
}

impl RecordMerge {
    fn line(&mut self, line: std::fmt::Arguments<'_>) -> Result<(), TraceError> {
        writeln!(self.file, "{line}").map_err(|error| unwritable(&self.path, error))
    }

    /// The header and the communicators.
    fn head(&mut self, messages: u64) -> Result<(), TraceError> {
        let (ranks, list) = (self.ranks.len(), std::mem::take(&mut self.collectives.list));
        let whole = || list.iter().map(|communicator| u64::from(communicator.whole()));
        let collectives: u64 = whole().sum();
        let parts: u64 = whole().zip(&list).map(|(whole, communicator)| whole * communicator.size).sum();
        let communicators = list.len();
        let counts = format!("VEF {ranks} {messages} {communicators} {collectives} {parts} ");
        self.flag_at = counts.len() as u64;
        self.line(format_args!("{counts}FALSE"))?;
        for (id, communicator) in list.iter().enumerate() {
            self.line(format_args!("{}", communicators::line(id, &communicator.members)))?;
        }
        self.collectives.list = list;
        Ok(())
    }

    fn body(&mut self) -> Result<(), TraceError> {
        for rank in 0..self.ranks.len() as u32 {
            self.advance(rank)?;
        }
        loop {
            while let Some(Reverse((time, rank))) = self.ready.pop() {
                self.ranks[rank as usize].clock = time;
                self.record(rank)?;
                self.advance(rank)?;
            }
            let message = self.for_message.pop_first().map(|(_, rank)| vec![rank]);
            let ranks = message.or_else(|| self.for_collective.pop_first().map(|(_, ranks)| ranks));
            let Some(ranks) = ranks else { return Ok(()) };
            for rank in ranks {
                self.merged.unmatched += 1;
                self.ranks[rank as usize].waits = None;
                self.advance(rank)?;
            }
        }
    }

    /// A rank goes on to its next record, or to a wait for what is not there.
    fn advance(&mut self, rank: u32) -> Result<(), TraceError> {
        loop {
            let of_rank = &mut self.ranks[rank as usize];
            if let Some(on) = of_rank.waits {
                let Some(arrival) = self.arrival(on) else {
                    match on {
                        AwaitedByRank::Message(place) => drop(self.for_message.insert(place, rank)),
                        AwaitedByRank::Part { communicator, number } => {
                            self.for_collective.entry((communicator, number)).or_default().push(rank);
                        }
                    }
                    return Ok(());
                };
                self.has_waited(rank, on, arrival);
                continue;
            }
            match next_record(&mut of_rank.reader)? {
                None => return Ok(()),
                // One in which not all members take part is left out.
                Some(
                    KeptRecord::Part { communicator, number, .. }
                    | KeptRecord::Wait { on: AwaitedByRank::Part { communicator, number }, .. },
                ) if number >= self.collectives.list[communicator as usize].whole() => {}
                Some(KeptRecord::Wait { on, ns }) => {
                    of_rank.clock = of_rank.clock.saturating_add(ns);
                    of_rank.waits = Some(on);
                }
                Some(record @ (KeptRecord::Send { ns, .. } | KeptRecord::Part { ns, .. })) => {
                    self.ready.push(Reverse((of_rank.clock.saturating_add(ns), rank)));
                    of_rank.next = Some(record);
                    return Ok(());
                }
            }
        }
    }

    /// The time at which something is there, if that is known.
    fn arrival(&self, on: AwaitedByRank) -> Option<u64> {
        match on {
            AwaitedByRank::Message(place) => self.awaited[place as usize].sent.map(|sent| sent.arrival),
            AwaitedByRank::Part { communicator, number } => {
                let communicator = &self.collectives.list[communicator as usize];
                let written = communicator.written.get(number as usize);
                written.filter(|it| u64::from(it.parts) == communicator.size).map(|it| it.end)
            }
        }
    }

    /// A rank has waited for something, which is there at `arrival`.
    fn has_waited(&mut self, rank: u32, on: AwaitedByRank, arrival: u64) {
        let of_rank = &mut self.ranks[rank as usize];
        of_rank.waits = None;
        let holds_up = arrival >= of_rank.clock;
        self.merged.waits += u64::from(!holds_up || of_rank.clock > of_rank.since);
        if holds_up {
            (of_rank.clock, of_rank.since, of_rank.after) = (arrival, arrival, RecordAfter::Awaited(on));
        }
    }

    /// Writes the next record of a rank, which comes now.
    fn record(&mut self, rank: u32) -> Result<(), TraceError> {
        let of_rank = &mut self.ranks[rank as usize];
        let (clock, after, ns) = (of_rank.clock, of_rank.after, of_rank.clock - of_rank.since);
        let (kind, on) = match after {
            RecordAfter::Start => (0, "-1".to_owned()),
            RecordAfter::Send(id) => (1, id.to_string()),
            RecordAfter::Awaited(on) => self.name(on),
        };
        let of_rank = &mut self.ranks[rank as usize];
        match of_rank.next.take() {
            None | Some(KeptRecord::Wait { .. }) => Ok(()),
            Some(KeptRecord::Send { message, bytes, .. }) => {
                let id = self.messages;
                self.messages += 1;
                self.has_receptions |= matches!(after, RecordAfter::Awaited(AwaitedByRank::Message(_)));
                (of_rank.after, of_rank.since) = (RecordAfter::Send(id), clock);
                let NumberedMessage { key: MessageKey { from, to, .. }, .. } = message;
                self.line(format_args!("{id} {from} {to} {} {kind} {ns} {on}", bytes.get()))?;
                self.has_been_sent(message, SentMessage { id, arrival: arrival(clock, bytes) })
            }
            Some(KeptRecord::Part {
                communicator, number, operation, sent, received, is_blocking, ..
            }) => {
                let of = &mut self.collectives.list[communicator as usize];
                let place = number as usize;
                if place >= of.written.len() {
                    of.written.resize(place + 1, WrittenCollective::default());
                }
                let written = &mut of.written[place];
                if written.parts == 0 {
                    written.id = self.begun_collectives;
                    self.begun_collectives += 1;
                }
                written.parts += 1;
                written.end = written.end.max(arrival(clock, sent.max(received)));
                let (id, is_whole) = (written.id, u64::from(written.parts) == of.size);
                if is_blocking {
                    // Nothing of the rank's own lies between the part and its end.
                    (of_rank.waits, of_rank.since) =
                        (Some(AwaitedByRank::Part { communicator, number }), clock);
                }
                let (sent, received) = (sent.get(), received.get());
                self.line(format_args!(
                    "G{id} {communicator} {operation} {rank} {sent} {received} {kind} {ns} {on}"
                ))?;
                if is_whole {
                    for rank in self.for_collective.remove(&(communicator, number)).into_iter().flatten() {
                        self.advance(rank)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// The kind of a dependency, and the ID of what it names.
    fn name(&self, on: AwaitedByRank) -> (u8, String) {
        let unknown = || (0, "-1".to_owned());
        match on {
            AwaitedByRank::Message(place) => {
                self.awaited[place as usize].sent.map_or_else(unknown, |sent| (2, sent.id.to_string()))
            }
            AwaitedByRank::Part { communicator, number } => {
                let written = &self.collectives.list[communicator as usize].written;
                written.get(number as usize).map_or_else(unknown, |found| (3, format!("G{}", found.id)))
            }
        }
    }

    /// A rank may wait for a message that has been sent.
    fn has_been_sent(&mut self, message: NumberedMessage, sent: SentMessage) -> Result<(), TraceError> {
        let RecordMerge { awaited, by_message, .. } = self;
        let found = by_message.binary_search_by_key(&message, |place| awaited[*place as usize].message);
        let Ok(found) = found else { return Ok(()) };
        let place = by_message[found];
        awaited[place as usize].sent = Some(sent);
        match self.for_message.remove(&place) {
            Some(rank) => self.advance(rank),
            None => Ok(()),
        }
    }
}
