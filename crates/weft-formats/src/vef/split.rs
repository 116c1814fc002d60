//! The records of a VEF file by task: what each sends, receives and takes part in, in the order of the file.
//!
//! They lie in a temporary file, in blocks of one task each, as numbers of seven bits to a byte.

use super::line::{After, When};
use crate::error::TraceError;
use crate::output::unwritable;
use std::fs::File;
use std::io::Error;
use std::os::unix::fs::FileExt;
use weft_units::{Bytes, Span};

/// Bytes that the tasks hold together before they write them.
const HELD_BYTES: usize = 32 << 20;

/// An entry of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TaskEntry {
    /// It is a member of the communicator at this place.
    Member { communicator: u32 },
    /// It sends a message.
    Send { id: u64, to: u32, bytes: Bytes, when: When },
    /// It receives one.
    Receive { id: u64, from: u32, bytes: Bytes },
    /// It takes part in a collective.
    Part { id: u64, number: u32, when: When },
}

/// A piece of the file.
#[derive(Clone, Copy, Debug)]
struct EntryBlock {
    offset: u64,
    len: u32,
}

#[derive(Clone, Debug, Default)]
struct EntriesOfTask {
    held: Vec<u8>,
    blocks: Vec<EntryBlock>,
    /// The line of the last entry.
    line: u64,
    counts: EntryCounts,
}

/// Numbers of entries of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct EntryCounts {
    /// Messages that it sends, and collectives.
    pub(super) records: usize,
    pub(super) receives: usize,
}

/// The entries of all tasks.
pub(super) struct SplitEntries {
    file: File,
    len: u64,
    tasks: Vec<EntriesOfTask>,
    /// Bytes of a task that are held at most.
    block: usize,
}

fn failed(error: Error) -> TraceError {
    unwritable(&std::env::temp_dir(), error)
}

impl SplitEntries {
    pub(super) fn new(tasks: u32) -> Result<SplitEntries, TraceError> {
        let tasks = vec![EntriesOfTask::default(); tasks as usize];
        let block = (HELD_BYTES / tasks.len().max(1)).clamp(256, 64 << 10);
        Ok(SplitEntries { file: tempfile::tempfile().map_err(failed)?, len: 0, tasks, block })
    }

    /// Adds an entry of a task, of this line of the file.
    pub(super) fn push(&mut self, task: u32, line: u64, entry: &TaskEntry) -> Result<(), TraceError> {
        let SplitEntries { file, len, tasks, block } = self;
        let EntriesOfTask { held, blocks, line: last, counts } = &mut tasks[task as usize];
        match entry {
            TaskEntry::Member { .. } => {}
            TaskEntry::Receive { .. } => counts.receives += 1,
            TaskEntry::Send { .. } | TaskEntry::Part { .. } => counts.records += 1,
        }
        let after = std::mem::replace(last, line);
        write(held, line - after);
        match *entry {
            TaskEntry::Member { communicator } => {
                [0, communicator.into()].into_iter().for_each(|number| write(held, number));
            }
            TaskEntry::Send { id, to, bytes, when } => {
                [1, id, to.into(), bytes.get()].into_iter().for_each(|number| write(held, number));
                write_when(held, when);
            }
            TaskEntry::Receive { id, from, bytes } => {
                [2, id, from.into(), bytes.get()].into_iter().for_each(|number| write(held, number));
            }
            TaskEntry::Part { id, number, when } => {
                [3, id, number.into()].into_iter().for_each(|number| write(held, number));
                write_when(held, when);
            }
        }
        if held.len() >= *block {
            file.write_all_at(held, *len).map_err(failed)?;
            blocks.push(EntryBlock { offset: *len, len: held.len() as u32 });
            *len += held.len() as u64;
            held.clear();
        }
        Ok(())
    }

    /// Numbers of entries of a task.
    pub(super) fn counts(&self, task: u32) -> EntryCounts {
        self.tasks[task as usize].counts
    }

    /// Hands on the entries of a task with their lines.
    pub(super) fn each(
        &self,
        task: u32,
        mut each: impl FnMut(u64, TaskEntry) -> Result<(), TraceError>,
    ) -> Result<(), TraceError> {
        let EntriesOfTask { held, blocks, .. } = &self.tasks[task as usize];
        let mut buffer = Vec::new();
        let mut line = 0;
        // An entry lies in one block.
        let mut read = |mut rest: &[u8]| {
            while let Some((after, entry)) = entry(&mut rest) {
                line += after;
                each(line, entry)?;
            }
            Ok(())
        };
        for block in blocks {
            buffer.resize(block.len as usize, 0);
            self.file.read_exact_at(&mut buffer, block.offset).map_err(failed)?;
            read(&buffer)?;
        }
        read(held)
    }
}

fn write(held: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        held.push(number as u8 | 0x80);
        number >>= 7;
    }
    held.push(number as u8);
}

fn write_when(held: &mut Vec<u8>, When { after, time, is_negative: _ }: When) {
    let (kind, on) = match after {
        After::Start => (0, 0),
        After::Send(id) => (1, id),
        After::Reception(id) => (2, id),
        After::Collective(id) => (3, id),
    };
    [kind, on, time.as_ps()].into_iter().for_each(|number| write(held, number));
}

/// The next number; `None`: there are no more.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// The next entry, with the lines since the one before.
fn entry(rest: &mut &[u8]) -> Option<(u64, TaskEntry)> {
    let line = number(rest)?;
    let entry = match number(rest)? {
        0 => TaskEntry::Member { communicator: number(rest)? as u32 },
        1 => {
            let (id, to, bytes) = (number(rest)?, number(rest)? as u32, Bytes::new(number(rest)?));
            TaskEntry::Send { id, to, bytes, when: when(rest)? }
        }
        2 => {
            let (id, from, bytes) = (number(rest)?, number(rest)? as u32, Bytes::new(number(rest)?));
            TaskEntry::Receive { id, from, bytes }
        }
        _ => TaskEntry::Part { id: number(rest)?, number: number(rest)? as u32, when: when(rest)? },
    };
    Some((line, entry))
}

fn when(rest: &mut &[u8]) -> Option<When> {
    let (kind, on, time) = (number(rest)?, number(rest)?, Span::from_ps(number(rest)?));
    let after = match kind {
        0 => After::Start,
        1 => After::Send(on),
        2 => After::Reception(on),
        _ => After::Collective(on),
    };
    Some(When { after, time, is_negative: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_when() -> impl Strategy<Value = When> {
        let after = (0..4u8, any::<u64>()).prop_map(|(kind, id)| match kind {
            0 => After::Start,
            1 => After::Send(id),
            2 => After::Reception(id),
            _ => After::Collective(id),
        });
        (after, any::<u64>()).prop_map(|(after, ps)| {
            let time = Span::from_ps(ps);
            When { after, time, is_negative: false }
        })
    }

    fn any_entry() -> impl Strategy<Value = TaskEntry> {
        let bytes = || any::<u64>().prop_map(Bytes::new);
        prop_oneof![
            any::<u32>().prop_map(|communicator| TaskEntry::Member { communicator }),
            (any::<u64>(), any::<u32>(), bytes(), any_when())
                .prop_map(|(id, to, bytes, when)| TaskEntry::Send { id, to, bytes, when }),
            (any::<u64>(), any::<u32>(), bytes()).prop_map(|(id, from, bytes)| TaskEntry::Receive {
                id,
                from,
                bytes
            }),
            (any::<u64>(), any::<u32>(), any_when()).prop_map(|(id, number, when)| TaskEntry::Part {
                id,
                number,
                when
            }),
        ]
    }

    proptest! {
        /// Catches entries that are lost between blocks, given to another task, or changed.
        #[test]
        fn entries_come_back_by_task(entries in prop::collection::vec((0..3u32, any_entry()), 0..200)) {
            let mut split = SplitEntries::new(3).unwrap();
            split.block = 50;
            for (line, (task, entry)) in (1..).zip(&entries) {
                split.push(*task, line, entry).unwrap();
            }
            for task in 0..3 {
                let mut found = Vec::new();
                split.each(task, |line, entry| { found.push((line, entry)); Ok(()) }).unwrap();
                let of_task = (1..).zip(&entries).filter(|(_, (of, _))| *of == task);
                let expected: Vec<_> = of_task.map(|(line, (_, entry))| (line, *entry)).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
