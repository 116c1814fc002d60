//! A VEF file: read once from its begin to its end, checked, and split by task.

use super::collectives::VefCollectives;
use super::communicators::VefCommunicators;
use super::line::{self, After, LineFault, MessageLine, PartLine, VefHeader, VefLine, When, printable};
use super::order;
use super::split::{SplitEntries, TaskEntry};
use super::task::TaskRecords;
use crate::error::{FilePlace, TraceError};
use crate::format::FormatWriter;
use crate::graph::StreamFiles;
use crate::header::TraceHeader;
use crate::input::{Input, InputReader};
use std::collections::BTreeMap;
use std::sync::Arc;
use weft_units::RankId;

/// Bytes that are read at once.
const CHUNK: usize = 256 << 10;

/// A file that has been read.
pub(super) struct VefFile {
    input: Arc<Input>,
    tasks: u32,
    communicators: VefCommunicators,
    collectives: VefCollectives,
    entries: SplitEntries,
    notes: BTreeMap<String, u64>,
    /// Whether each record stands behind those that it waits for.
    is_in_order: bool,
}

/// A file while it is read.
struct VefReading {
    reader: InputReader,
    /// The number of the last line.
    number: u64,
}

impl VefReading {
    /// The next line that says something; `None`: the file is over.
    fn next(&mut self) -> Result<Option<Vec<u8>>, TraceError> {
        loop {
            self.number += 1;
            let Some(line) = self.reader.line()? else { return Ok(None) };
            let line = line.trim_ascii();
            if !line.is_empty() {
                return Ok(Some(line.to_vec()));
            }
        }
    }

    fn error(&self, reason: impl Into<String>) -> TraceError {
        self.reader.input().error(FilePlace::Line(self.number), reason)
    }

    /// The error for a line that is none of the documented ones: it counts those behind it.
    fn undocumented(&mut self, line: &[u8], tasks: u32) -> TraceError {
        let (number, text) = (self.number, printable(line));
        let mut count = 1u64;
        loop {
            match self.next() {
                Ok(Some(line)) => {
                    count += u64::from(line::record(&line, tasks) == Err(LineFault::Undocumented));
                }
                Ok(None) => break,
                Err(error) => return error,
            }
        }
        let reason = format!(
            "`{text}` is no record as VEF documents them, nor are {} lines behind it; records of its \
             extensions (for data centres, self-related traces) are not read, as their syntax is not public: \
             take them out, or mix the trace without them",
            count - 1
        );
        self.reader.input().error(FilePlace::Line(number), reason)
    }
}

/// The messages that a file has named so far.
struct SeenMessages {
    bits: Vec<u64>,
    /// Larger numbers are refused: they would take memory.
    most: u64,
}

impl SeenMessages {
    fn contains(&self, id: u64) -> bool {
        let word = usize::try_from(id / 64).ok().and_then(|place| self.bits.get(place));
        word.is_some_and(|word| word >> (id % 64) & 1 == 1)
    }

    /// Adds one. Errors with the fault and the mend.
    fn add(&mut self, id: u64) -> Result<(), String> {
        if id > self.most {
            return Err(format!("ID: {id}; expected less than {}: number the messages from 0 on", self.most));
        }
        if self.contains(id) {
            return Err(format!("ID: message {id} stands on an earlier line too; give each its own number"));
        }
        let place = (id / 64) as usize;
        if place >= self.bits.len() {
            self.bits.resize(place + 1, 0);
        }
        self.bits[place] |= 1 << (id % 64);
        Ok(())
    }
}

/// The body of a file while it is read.
struct VefBody {
    header: VefHeader,
    communicators: VefCommunicators,
    collectives: VefCollectives,
    entries: SplitEntries,
    seen: SeenMessages,
    messages: u64,
    parts: u64,
    negative: u64,
    receptions: u64,
    /// Whether each record stands behind those that it waits for.
    is_in_order: bool,
}

impl VefBody {
    /// Adds a record of a line. Errors with the fault and the mend.
    fn add(&mut self, number: u64, record: &VefLine) -> Result<Result<(), String>, TraceError> {
        let (VefLine::Message(MessageLine { when, .. }) | VefLine::Part(PartLine { when, .. })) = record;
        self.count(when);
        match *record {
            VefLine::Message(MessageLine { id, from, to, bytes, when }) => {
                if let Err(fault) = self.seen.add(id) {
                    return Ok(Err(fault));
                }
                self.messages += 1;
                self.receptions += u64::from(matches!(when.after, After::Reception(_)));
                self.entries.push(from, number, &TaskEntry::Send { id, to, bytes, when })?;
                self.entries.push(to, number, &TaskEntry::Receive { id, from, bytes })?;
            }
            VefLine::Part(part) => {
                self.parts += 1;
                let collective = match self.collectives.add(number, &part, &mut self.communicators) {
                    Ok(collective) => collective,
                    Err(fault) => return Ok(Err(fault)),
                };
                let entry = TaskEntry::Part { id: part.id, number: collective, when: part.when };
                self.entries.push(part.task, number, &entry)?;
            }
        }
        Ok(Ok(()))
    }

    fn count(&mut self, when: &When) {
        self.negative += u64::from(when.is_negative);
        self.is_in_order &= match when.after {
            After::Start => true,
            After::Send(id) | After::Reception(id) => self.seen.contains(id),
            After::Collective(id) => self.collectives.is_whole(id, &self.communicators),
        };
    }

    /// The fault of the header's counts, if one is not that of the file.
    fn wrong_count(&self) -> Option<String> {
        let VefHeader { messages, collectives, parts, .. } = self.header;
        let counts = [
            ("NumMsg", messages, self.messages, "messages"),
            ("NumGlobalGroupComm", collectives, self.collectives.len(), "collectives"),
            ("NumLocalGroupComm", parts, self.parts, "records of collectives"),
        ];
        let (name, said, found, of) = counts.into_iter().find(|(_, said, found, _)| said != found)?;
        Some(format!(
            "{name}: {said}, and the file has {found} {of}; copy it again if it was cut, or mend the number"
        ))
    }
}

impl VefFile {
    pub(super) fn read(input: Arc<Input>) -> Result<VefFile, TraceError> {
        let mut lines = VefReading { reader: InputReader::new(&input, 0..u64::MAX, CHUNK), number: 0 };
        let first = lines.next()?.unwrap_or_default();
        let header = line::header(&first).map_err(|fault| lines.error(fault))?;
        let tasks = header.tasks;
        if u64::from(tasks) > input.len().max(1 << 16) {
            let fault = format!("NumTask: {tasks} tasks in {} bytes; mend the number", input.len());
            return Err(lines.error(fault));
        }
        let mut communicators = VefCommunicators::default();
        for _ in 0..header.communicators {
            let line = lines.next()?.unwrap_or_default();
            communicators.add(&line, tasks).map_err(|fault| lines.error(fault))?;
        }
        let mut entries = SplitEntries::new(tasks)?;
        for (place, communicator) in communicators.iter() {
            for &task in &communicator.members {
                entries.push(task, 0, &TaskEntry::Member { communicator: place })?;
            }
        }
        let mut body = VefBody {
            header,
            communicators,
            collectives: VefCollectives::default(),
            entries,
            seen: SeenMessages { bits: Vec::new(), most: input.len() },
            messages: 0,
            parts: 0,
            negative: 0,
            receptions: 0,
            is_in_order: true,
        };
        while let Some(line) = lines.next()? {
            let record = match line::record(&line, tasks) {
                Ok(record) => record,
                Err(LineFault::Undocumented) => return Err(lines.undocumented(&line, tasks)),
                Err(LineFault::Field(fault)) => return Err(lines.error(fault)),
            };
            body.add(lines.number, &record)?.map_err(|fault| lines.error(fault))?;
        }
        if let Some(fault) = body.wrong_count() {
            return Err(input.error(FilePlace::Line(1), fault));
        }
        if let Some(reason) = body.collectives.incomplete(&body.communicators) {
            return Err(TraceError::Run { file: input.name().to_owned(), reason });
        }
        let said = if header.only_sends { body.receptions } else { 0 };
        let notes = [
            ("times below 0, of clocks that differ: taken as 0", body.negative),
            ("messages that wait for receptions, though onlySendFlag says that none does", said),
        ];
        let notes = notes.into_iter().filter(|(_, count)| *count > 0);
        let notes = notes.map(|(note, count)| (note.to_owned(), count)).collect();
        let VefBody { communicators, collectives, entries, is_in_order, .. } = body;
        if !is_in_order {
            let fault = order::standstill(&entries, tasks, &collectives)?;
            fault.map_or(Ok(()), |(line, fault)| Err(input.error(FilePlace::Line(line), fault)))?;
        }
        Ok(VefFile { input, tasks, communicators, collectives, entries, notes, is_in_order })
    }
}

impl StreamFiles for VefFile {
    fn format(&self) -> &'static str {
        super::FORMAT.name
    }

    fn file(&self) -> &str {
        self.input.name()
    }

    fn bytes(&self) -> u64 {
        self.input.len()
    }

    fn header(&self) -> TraceHeader {
        let (ranks, recorder, notes) = (self.tasks, "VEF".to_owned(), self.notes.clone());
        TraceHeader { ranks, recorder, notes, ..TraceHeader::default() }
    }

    fn write(&mut self, rank: RankId, writer: &mut dyn FormatWriter) -> Result<(), TraceError> {
        let mut records = TaskRecords::new(rank.0, self.entries.counts(rank.0));
        self.entries.each(rank.0, |line, entry| {
            records.push(line, entry);
            Ok(())
        })?;
        let faulty = |(line, fault): (u64, String)| self.input.error(FilePlace::Line(line), fault);
        let streams =
            records.streams(&self.collectives, &self.communicators, self.is_in_order).map_err(faulty)?;
        streams.write(&self.collectives, &mut self.communicators, writer)
    }
}
