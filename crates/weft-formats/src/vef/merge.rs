//! The records of all ranks in one order: each behind those that it waits for, messages numbered from 0 on.
//!
//! Of the ranks whose next record can come, the one comes first whose record is earliest on a network that
//! takes no time. A reader that goes through the file once has all that it needs, and little of it at once.

use super::communicators;
use super::writer::{MessageKey, NumberedMessage};
use crate::error::TraceError;
use crate::input::{Input, InputReader, chunk_bytes};
use crate::output::{self, unwritable};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weft_trace::op::{CommId, RankRange};
use weft_units::Bytes;

/// The thing that a record of a rank waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RankAfter {
    Start,
    /// The rank's last send.
    Send,
    /// A message to the rank, by its place among those that somebody waits for.
    Reception(u32),
    /// The rank's part in a collective of a communicator, by its number there.
    Part {
        communicator: u32,
        number: u32,
    },
}

/// A record of a rank, `ns` nanoseconds after what it waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KeptRecord {
    Send {
        message: NumberedMessage,
        bytes: Bytes,
        after: RankAfter,
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
        after: RankAfter,
        ns: u64,
    },
}

/// A message that a record waits for.
#[derive(Clone, Copy, Debug)]
struct AwaitedMessage {
    message: NumberedMessage,
    /// The ID and the time of the send, when it has been written.
    sent: Option<(u64, u64)>,
}

/// The records of all ranks in a temporary file, one rank after the other.
pub(super) struct KeptRecords {
    file: BufWriter<File>,
    len: u64,
    /// The begin of each rank.
    starts: Vec<u64>,
    messages: u64,
    /// Whether messages wait for others to be received.
    has_receptions: bool,
    awaited: Vec<AwaitedMessage>,
    bytes: Vec<u8>,
}

impl KeptRecords {
    pub(super) fn new() -> Result<KeptRecords, TraceError> {
        let file = tempfile::tempfile().map_err(|error| unwritable(&std::env::temp_dir(), error))?;
        Ok(KeptRecords {
            file: BufWriter::new(file),
            len: 0,
            starts: Vec::new(),
            messages: 0,
            has_receptions: false,
            awaited: Vec::new(),
            bytes: Vec::new(),
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

    /// Adds a record of the rank that was begun last.
    pub(super) fn push(&mut self, record: &KeptRecord) -> Result<(), TraceError> {
        self.bytes.clear();
        let bytes = &mut self.bytes;
        let mut put = |numbers: &[u64]| numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        let (after, ns) = match *record {
            KeptRecord::Send { message: NumberedMessage { key, number }, bytes, after, ns } => {
                self.messages += 1;
                self.has_receptions |= matches!(after, RankAfter::Reception(_));
                put(&[
                    0,
                    key.comm.0,
                    pair(key.from, key.to),
                    pair(key.tag.cast_unsigned(), number),
                    bytes.get(),
                ]);
                (after, ns)
            }
            KeptRecord::Part { communicator, number, operation, sent, received, is_blocking, after, ns } => {
                put(&[
                    if is_blocking { 2 } else { 1 },
                    operation.into(),
                    pair(communicator, number),
                    sent.get(),
                    received.get(),
                ]);
                (after, ns)
            }
        };
        let (kind, on) = match after {
            RankAfter::Start => (0, 0),
            RankAfter::Send => (1, 0),
            RankAfter::Reception(place) => (2, place.into()),
            RankAfter::Part { communicator, number } => (3, pair(communicator, number)),
        };
        put(&[kind, on, ns]);
        self.len += self.bytes.len() as u64;
        self.file.write_all(&self.bytes).map_err(|error| unwritable(&std::env::temp_dir(), error))
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
    let bytes: [u8; 64] = reader.take()?;
    let number = |place: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[8 * place..8 * place + 8]);
        u64::from_le_bytes(word)
    };
    let after = match number(5) {
        0 => RankAfter::Start,
        1 => RankAfter::Send,
        2 => RankAfter::Reception(number(6) as u32),
        _ => {
            let (communicator, number) = parts(number(6));
            RankAfter::Part { communicator, number }
        }
    };
    let ns = number(7);
    Ok(Some(if number(0) == 0 {
        let ((from, to), (tag, count)) = (parts(number(2)), parts(number(3)));
        let key = MessageKey { comm: CommId(number(1)), from, to, tag: tag.cast_signed() };
        let message = NumberedMessage { key, number: count };
        KeptRecord::Send { message, bytes: Bytes::new(number(4)), after, ns }
    } else {
        let (communicator, count) = parts(number(2));
        let (sent, received) = (Bytes::new(number(3)), Bytes::new(number(4)));
        KeptRecord::Part {
            communicator,
            number: count,
            operation: number(1) as u8,
            sent,
            received,
            is_blocking: number(0) == 2,
            after,
            ns,
        }
    }))
}

/// A collective while it is written.
#[derive(Clone, Copy, Debug, Default)]
struct WrittenCollective {
    id: u64,
    parts: u32,
    /// The latest begin of a part.
    time: u64,
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
    next: Option<KeptRecord>,
    /// The time of its last record.
    time: u64,
    /// The last message that it has sent, with the time.
    last_send: Option<(u64, u64)>,
    /// The collective that it is in, if that keeps it.
    inside: Option<(u32, u32)>,
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
    unmatched: u64,
}

/// Writes the file at `path`. Returns the number of records that wait for what never comes.
pub(super) fn write(path: &Path, kept: KeptRecords, collectives: KeptCollectives) -> Result<u64, TraceError> {
    let KeptRecords { file, len, starts, messages, has_receptions, awaited, .. } = kept;
    let temporary = |error: std::io::Error| unwritable(&std::env::temp_dir(), error);
    let file = file.into_inner().map_err(|error| temporary(error.into_error()))?;
    let input = Arc::new(Input::spooled("records", file, len));
    let count = starts.len() as u32;
    let ends = starts.iter().skip(1).copied().chain([len]);
    let rank = |(start, end): (&u64, u64)| MergedRank {
        reader: InputReader::new(&input, *start..end, chunk_bytes(count)),
        next: None,
        time: 0,
        last_send: None,
        inside: None,
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
        unmatched: 0,
    };
    merge.head(messages, !has_receptions)?;
    merge.body()?;
    let file = merge.file.into_inner().map_err(|error| unwritable(path, error.into_error()))?;
    output::finish(file, path)?;
    Ok(merge.unmatched)
}

impl RecordMerge {
    fn line(&mut self, line: std::fmt::Arguments<'_>) -> Result<(), TraceError> {
        writeln!(self.file, "{line}").map_err(|error| unwritable(&self.path, error))
    }

    /// The header and the communicators.
    fn head(&mut self, messages: u64, only_sends: bool) -> Result<(), TraceError> {
        let (ranks, list) = (self.ranks.len(), std::mem::take(&mut self.collectives.list));
        let whole = || list.iter().map(|communicator| u64::from(communicator.whole()));
        let collectives: u64 = whole().sum();
        let parts: u64 = whole().zip(&list).map(|(whole, communicator)| whole * communicator.size).sum();
        let only_sends = if only_sends { "TRUE" } else { "FALSE" };
        let communicators = list.len();
        self.line(format_args!("VEF {ranks} {messages} {communicators} {collectives} {parts} {only_sends}"))?;
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
                self.record(rank, time)?;
                self.advance(rank)?;
            }
            // What they wait for comes never.
            let message = self.for_message.pop_first().map(|(_, rank)| vec![rank]);
            let ranks = message.or_else(|| self.for_collective.pop_first().map(|(_, ranks)| ranks));
            let Some(ranks) = ranks else { return Ok(()) };
            for rank in ranks {
                self.unmatched += 1;
                match self.ranks[rank as usize].inside.take() {
                    None => self.give_up(rank),
                    Some(_) => self.advance(rank)?,
                }
            }
        }
    }

    /// The next record of the rank waits for its last send instead, or for nothing.
    fn give_up(&mut self, rank: u32) {
        let MergedRank { next, time, last_send, .. } = &mut self.ranks[rank as usize];
        if let Some(KeptRecord::Send { after, .. } | KeptRecord::Part { after, .. }) = next {
            *after = if last_send.is_some() { RankAfter::Send } else { RankAfter::Start };
        }
        self.ready.push(Reverse((*time, rank)));
    }

    /// Reads the next record of a rank, and finds when it can come.
    fn advance(&mut self, rank: u32) -> Result<(), TraceError> {
        let of_rank = &mut self.ranks[rank as usize];
        if let Some(collective) = of_rank.inside {
            self.for_collective.entry(collective).or_default().push(rank);
            return Ok(());
        }
        of_rank.next = loop {
            match next_record(&mut of_rank.reader)? {
                // One in which not all members take part is left out.
                Some(KeptRecord::Part { communicator, number, .. })
                    if number >= self.collectives.list[communicator as usize].whole() => {}
                next => break next,
            }
        };
        if of_rank.next.is_some() {
            self.schedule(rank);
        }
        Ok(())
    }

    /// The next record of a rank comes as soon as what it waits for is there.
    fn schedule(&mut self, rank: u32) {
        let of_rank = &self.ranks[rank as usize];
        let Some(KeptRecord::Send { after, ns, .. } | KeptRecord::Part { after, ns, .. }) = of_rank.next
        else {
            return;
        };
        let since = match after {
            RankAfter::Start => Some(0),
            RankAfter::Send => Some(of_rank.last_send.map_or(0, |(_, time)| time)),
            RankAfter::Reception(place) => self.awaited[place as usize].sent.map(|(_, time)| time),
            RankAfter::Part { communicator, number } => {
                let communicator = &self.collectives.list[communicator as usize];
                let written = communicator.written.get(number as usize);
                written
                    .filter(|written| u64::from(written.parts) == communicator.size)
                    .map(|written| written.time)
            }
        };
        match (since, after) {
            (Some(since), _) => {
                let time = of_rank.time.max(since.saturating_add(ns));
                self.ready.push(Reverse((time, rank)));
            }
            (None, RankAfter::Part { communicator, number }) => {
                self.for_collective.entry((communicator, number)).or_default().push(rank);
            }
            (None, RankAfter::Reception(place)) => drop(self.for_message.insert(place, rank)),
            (None, RankAfter::Start | RankAfter::Send) => {}
        }
    }

    /// Writes the next record of a rank.
    fn record(&mut self, rank: u32, time: u64) -> Result<(), TraceError> {
        let of_rank = &mut self.ranks[rank as usize];
        of_rank.time = time;
        let last_send = of_rank.last_send;
        match of_rank.next.take() {
            None => Ok(()),
            Some(KeptRecord::Send { message, bytes, after, ns }) => {
                let id = self.messages;
                self.messages += 1;
                of_rank.last_send = Some((id, time));
                let when = self.when(after, last_send);
                let NumberedMessage { key: MessageKey { from, to, .. }, .. } = message;
                let (kind, on) = (when.0, when.1);
                self.line(format_args!("{id} {from} {to} {} {kind} {ns} {on}", bytes.get()))?;
                self.has_been_sent(message, id, time);
                Ok(())
            }
            Some(KeptRecord::Part {
                communicator,
                number,
                operation,
                sent,
                received,
                is_blocking,
                after,
                ns,
            }) => {
                let (kind, on) = self.when(after, last_send);
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
                written.time = written.time.max(time);
                let (id, is_whole) = (written.id, u64::from(written.parts) == of.size);
                let (sent, received) = (sent.get(), received.get());
                self.line(format_args!(
                    "G{id} {communicator} {operation} {rank} {sent} {received} {kind} {ns} {on}"
                ))?;
                let collective = (communicator, number);
                if !is_whole {
                    self.ranks[rank as usize].inside = is_blocking.then_some(collective);
                    return Ok(());
                }
                for rank in self.for_collective.remove(&collective).into_iter().flatten() {
                    match self.ranks[rank as usize].inside.take() {
                        None => self.schedule(rank),
                        Some(_) => self.advance(rank)?,
                    }
                }
                Ok(())
            }
        }
    }

    /// The kind of a dependency, and the ID of what it names.
    fn when(&self, after: RankAfter, last_send: Option<(u64, u64)>) -> (u8, String) {
        match (after, last_send) {
            (RankAfter::Send, Some((id, _))) => (1, id.to_string()),
            (RankAfter::Reception(place), _) => {
                let sent = self.awaited[place as usize].sent;
                sent.map_or((0, "-1".to_owned()), |(id, _)| (2, id.to_string()))
            }
            (RankAfter::Part { communicator, number }, _) => {
                let written = &self.collectives.list[communicator as usize].written;
                written
                    .get(number as usize)
                    .map_or((0, "-1".to_owned()), |found| (3, format!("G{}", found.id)))
            }
            (RankAfter::Start, _) | (RankAfter::Send, None) => (0, "-1".to_owned()),
        }
    }

    /// A rank may wait for a message that has been sent.
    fn has_been_sent(&mut self, message: NumberedMessage, id: u64, time: u64) {
        let RecordMerge { awaited, by_message, .. } = self;
        let found = by_message.binary_search_by_key(&message, |place| awaited[*place as usize].message);
        let Ok(found) = found else { return };
        let place = by_message[found];
        awaited[place as usize].sent = Some((id, time));
        if let Some(rank) = self.for_message.remove(&place) {
            self.schedule(rank);
        }
    }
}
