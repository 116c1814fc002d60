//! The calls of one rank's file, as bytes.
//!
//! ```text
//!   "\xff\xaa\xddDUMPI" | biases of the clocks | call | … | END | header | sizes | footer | … | offsets
//!                       body                                          ▲        (each found by its offset)
//!   call = number | mask | thread | times | counters | arguments (layout.rs)
//! ```
//! All numbers are big-endian.

use super::layout::{CALLS, END_OF_STREAM, FUNCTION_ENTER, FUNCTION_EXIT};
use crate::calls::{CallTime, Matched};
use crate::error::{FilePlace, TraceError};
use crate::input::{Input, InputReader};
use std::ops::Range;
use std::sync::Arc;
use weft_units::Span;

/// The first bytes of a file.
pub(super) const MAGIC: &[u8; 8] = b"\xff\xaa\xddDUMPI";

/// The mark before the offsets, and they.
const TAIL_BYTES: u64 = 64;

/// Stands before the counts of calls.
const COUNTS_MAGIC: u64 = 0xf007_fee7;

/// The earliest version that is read: before it, some arguments were written wrongly.
const FIRST_VERSION: [u8; 3] = [0, 6, 9];

/// Bits of the mask of a call: what is there before its arguments.
mod mask {
    pub const STATUS: u8 = 3;
    pub const CPU_TIME: u8 = 1 << 2;
    pub const WALL_TIME: u8 = 1 << 3;
    pub const THREAD: u8 = 1 << 6;
    pub const COUNTERS: u8 = 1 << 7;
}

/// Bytes of a status.
const STATUS_BYTES: u64 = 14;

/// Facts that stand outside of the calls of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FileHead {
    pub(super) version: [u8; 3],
    /// The begin of the calls.
    body: u64,
    /// The end of the calls.
    end: u64,
    /// Bytes of each datatype of MPI, by handle.
    pub(super) sizes: Option<Vec<u32>>,
    counts: Option<CountsAtEnd>,
}

/// How often the program made each call, by its number in the file.
#[derive(Clone, PartialEq, Eq, Debug)]
struct CountsAtEnd {
    made: Vec<u32>,
    /// Those of them that are not in the file.
    left_out: Vec<u32>,
}

impl FileHead {
    /// Reads the offsets at the end of a file, and what they lead to.
    pub(super) fn read(input: &Arc<Input>) -> Result<FileHead, TraceError> {
        let cut = |place: u64, what: &str| {
            let reason = format!("{what}; the file was cut off, or is no DUMPI file: copy it again");
            input.error(FilePlace::Byte(place), reason)
        };
        let Some(tail) = input.len().checked_sub(TAIL_BYTES).filter(|&tail| tail >= MAGIC.len() as u64)
        else {
            return Err(cut(input.len(), "no DUMPI file is so short"));
        };
        let mut magic = [0; 8];
        input.read_at(&mut magic, 0)?;
        if &magic != MAGIC {
            return Err(cut(0, "does not begin as a DUMPI file"));
        }
        let mut reader = InputReader::new(input, tail..input.len(), TAIL_BYTES as usize);
        if &reader.take::<8>()? != MAGIC {
            return Err(cut(
                tail,
                "the offsets that end a DUMPI file of version 0.6.6 or later are not here",
            ));
        }
        let mut offset = || reader.take().map(u64::from_be_bytes);
        let [sizes, _functions, _counters, header, body, footer] =
            [offset()?, offset()?, offset()?, offset()?, offset()?, offset()?];
        // The end of the calls is written before the header.
        let end = header.checked_sub(2).filter(|&end| body < end && header < tail);
        let Some(end) = end else { return Err(cut(tail, "offsets that lead out of the file")) };
        let mut reader = InputReader::new(input, header..tail, TAIL_BYTES as usize);
        let version = reader.take()?;
        if version < FIRST_VERSION {
            let [major, minor, patch] = version;
            let reason = format!(
                "version {major}.{minor}.{patch} of the format; versions from 0.6.9 on are read: convert the \
                 trace with dumpi2dumpi"
            );
            return Err(input.error(FilePlace::Byte(header), reason));
        }
        let sizes = if sizes == 0 { None } else { Some(read_sizes(input, sizes..tail)?) };
        let counts = if footer == 0 { None } else { Some(read_counts(input, footer..tail)?) };
        Ok(FileHead { version, body, end, sizes, counts })
    }

    /// The calls that the program made and the tracer left out, by name.
    pub(super) fn left_out(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let left_out = self.counts.iter().flat_map(|counts| &counts.left_out);
        let named = CALLS.iter().map(|&(name, _)| name).zip(left_out.map(|&count| count.into()));
        named.filter(|&(_, count)| count > 0)
    }
}

fn read_counts(input: &Arc<Input>, range: Range<u64>) -> Result<CountsAtEnd, TraceError> {
    let mut reader = InputReader::new(input, range.clone(), 4096);
    if u64::from_be_bytes(reader.take()?) != COUNTS_MAGIC {
        let reason = "the counts of calls do not begin here; the file is damaged, copy it again";
        return Err(input.error(FilePlace::Byte(range.start), reason));
    }
    let mut counts = || -> Result<Vec<u32>, TraceError> {
        let counts = CALLS.iter().map(|_| reader.take().map(u32::from_be_bytes)).collect();
        // One more, of no call.
        reader.skip(4)?;
        counts
    };
    Ok(CountsAtEnd { made: counts()?, left_out: counts()? })
}

fn read_sizes(input: &Arc<Input>, range: Range<u64>) -> Result<Vec<u32>, TraceError> {
    let mut reader = InputReader::new(input, range.clone(), 1024);
    let count = u32::from_be_bytes(reader.take()?);
    if u64::from(count) * 4 > reader.rest() {
        let reason = format!("{count} sizes of datatypes, more than the file has room for; copy it again");
        return Err(input.error(FilePlace::Byte(range.start), reason));
    }
    (0..count).map(|_| reader.take().map(u32::from_be_bytes)).collect()
}

/// The arguments of a call.
#[derive(Default)]
pub(super) struct Arguments {
    /// The name of the call.
    pub(super) call: &'static str,
    numbers: Vec<i64>,
    lists: Vec<Vec<u32>>,
    /// Lists of this call; the others keep their memory.
    lists_used: usize,
    statuses: Vec<Matched>,
}

impl Arguments {
    /// A number, by its place among those of its call; noughts are behind the last.
    pub(super) fn number(&self, place: usize) -> i64 {
        self.numbers.get(place).copied().unwrap_or(0)
    }

    /// A number that is not negative.
    pub(super) fn count(&self, place: usize) -> Result<u32, String> {
        let number = self.number(place);
        u32::try_from(number).map_err(|_| {
            format!("{number} where a number from 0 on is expected; copy the file again, or trace it again")
        })
    }

    /// A list, by its place among those of its call.
    pub(super) fn list(&self, place: usize) -> &[u32] {
        if place < self.lists_used { &self.lists[place] } else { &[] }
    }

    /// The source and the tag in the statuses; none where the program ignored them.
    pub(super) fn statuses(&self) -> &[Matched] {
        &self.statuses
    }

    fn clear(&mut self) {
        self.numbers.clear();
        self.statuses.clear();
        self.lists_used = 0;
    }

    fn new_list(&mut self) -> &mut Vec<u32> {
        if self.lists_used == self.lists.len() {
            self.lists.push(Vec::new());
        }
        self.lists_used += 1;
        let list = &mut self.lists[self.lists_used - 1];
        list.clear();
        list
    }
}

/// The calls of a file, one after the other.
pub(super) struct CallStream {
    reader: InputReader,
    /// The first byte of the call that came last.
    begin: u64,
    clock: CallClock,
    counts: Option<CountsAtEnd>,
    /// Calls read so far, by number.
    read: Vec<u32>,
}

impl CallStream {
    pub(super) fn new(input: &Arc<Input>, head: &FileHead, chunk: usize) -> CallStream {
        // The mark of the end is read too. The biases of the clocks are the same for all times of a rank.
        let reader = InputReader::new(input, head.body + 8..head.end + 2, chunk);
        let (counts, read) = (head.counts.clone(), vec![0; CALLS.len()]);
        CallStream { reader, begin: head.body, clock: CallClock::default(), counts, read }
    }

    /// Checks that the calls are as many as the file says at its end.
    fn check_counts(&self) -> Result<(), TraceError> {
        let Some(counts) = &self.counts else { return Ok(()) };
        for (number, (name, _)) in CALLS.iter().enumerate() {
            let expected = counts.made[number].wrapping_sub(counts.left_out[number]);
            if self.read[number] != expected {
                let read = self.read[number];
                let reason = format!(
                    "the file has {read} calls of {name}, and says that they are {expected}; it is damaged, \
                     copy it again"
                );
                return Err(self.error(reason));
            }
        }
        Ok(())
    }

    /// An error at the call that came last.
    pub(super) fn error(&self, reason: impl Into<String>) -> TraceError {
        self.reader.input().error(FilePlace::Byte(self.begin), reason)
    }

    /// Reads the next call into `arguments`; `None`: there are no more. `Some(None)`: it has no times.
    pub(super) fn next(&mut self, arguments: &mut Arguments) -> Result<Option<Option<CallTime>>, TraceError> {
        self.begin = self.reader.position();
        arguments.clear();
        let number = u16::from_be_bytes(self.reader.take()?);
        let layout = match number {
            END_OF_STREAM if self.reader.rest() == 0 => return self.check_counts().map(|()| None),
            END_OF_STREAM => {
                let reason = format!("the calls end {} bytes early; copy the file again", self.reader.rest());
                return Err(self.error(reason));
            }
            FUNCTION_ENTER | FUNCTION_EXIT => {
                arguments.call = "a function of the program";
                "l"
            }
            number => {
                let Some(&(name, layout)) = CALLS.get(usize::from(number)) else {
                    return Err(self.error(format!("call {number}, which is not known; copy the file again")));
                };
                arguments.call = name;
                self.read[usize::from(number)] = self.read[usize::from(number)].wrapping_add(1);
                layout
            }
        };
        let [mask] = self.reader.take()?;
        if mask & mask::THREAD != 0 {
            self.reader.skip(2)?;
        }
        let cpu = if mask & mask::CPU_TIME != 0 { Some(self.times()?) } else { None };
        let wall = if mask & mask::WALL_TIME != 0 { Some(self.times()?) } else { None };
        if mask & mask::COUNTERS != 0 {
            let [counters] = self.reader.take()?;
            self.reader.skip(u64::from(counters) * 16)?;
        }
        self.arguments(layout, mask, arguments)?;
        Ok(Some(wall.or(cpu).map(|times| self.clock.interval(times))))
    }

    /// The begin and the end of a call: seconds, modulo 2^16, and nanoseconds.
    fn times(&mut self) -> Result<[(u16, u32); 2], TraceError> {
        let mut time = || -> Result<_, TraceError> {
            Ok((u16::from_be_bytes(self.reader.take()?), u32::from_be_bytes(self.reader.take()?)))
        };
        Ok([time()?, time()?])
    }

    fn arguments(&mut self, layout: &str, mask: u8, into: &mut Arguments) -> Result<(), TraceError> {
        let mut letters = layout.bytes();
        while let Some(letter) = letters.next() {
            match letter {
                b'b' => {
                    let [number] = self.reader.take()?;
                    into.numbers.push(number.into());
                }
                b'h' => into.numbers.push(u16::from_be_bytes(self.reader.take()?).into()),
                b'i' => into.numbers.push(i32::from_be_bytes(self.reader.take()?).into()),
                b'l' => into.numbers.push(i64::from_be_bytes(self.reader.take()?)),
                b'I' => {
                    let count = self.entries(4)?;
                    let list = into.new_list();
                    for _ in 0..count {
                        list.push(u32::from_be_bytes(self.reader.take()?));
                    }
                }
                b'H' => {
                    let count = self.entries(2)?;
                    let list = into.new_list();
                    for _ in 0..count {
                        list.push(u16::from_be_bytes(self.reader.take()?).into());
                    }
                }
                b'M' => {
                    let rows = self.entries(4)?;
                    let list = into.new_list();
                    for _ in 0..rows {
                        for _ in 0..self.entries(4)? {
                            list.push(u32::from_be_bytes(self.reader.take()?));
                        }
                    }
                }
                b'B' | b'C' => {
                    let count = self.entries(1)?;
                    self.reader.skip(count)?;
                }
                b'A' => {
                    for _ in 0..self.entries(4)? {
                        let count = self.entries(1)?;
                        self.reader.skip(count)?;
                    }
                }
                b's' if mask & mask::STATUS == 0 => {}
                b's' => self.statuses(into)?,
                b'[' => {
                    let root = letters.next().map_or(0, |digit| usize::from(digit - b'0'));
                    if into.number(0) != into.number(root) {
                        letters.by_ref().find(|&letter| letter == b']');
                    }
                }
                b']' => {}
                _ => {
                    let reason = format!(
                        "{} has arguments of unknown length, so what follows cannot be read; trace the \
                         program without it",
                        into.call
                    );
                    return Err(self.error(reason));
                }
            }
        }
        Ok(())
    }

    /// The number of entries of a list, of so many bytes each at least, which must be there.
    fn entries(&mut self, bytes: u64) -> Result<u64, TraceError> {
        let count = u64::from(u32::from_be_bytes(self.reader.take()?));
        if count * bytes <= self.reader.rest() {
            return Ok(count);
        }
        let reason = format!(
            "a list of {count} entries, and {} bytes are left; copy the file again, or trace it again",
            self.reader.rest()
        );
        Err(self.error(reason))
    }

    fn statuses(&mut self, into: &mut Arguments) -> Result<(), TraceError> {
        for _ in 0..self.entries(STATUS_BYTES)? {
            self.reader.skip(4)?;
            let source = u32::from_be_bytes(self.reader.take()?);
            self.reader.skip(2)?;
            into.statuses.push(Matched { source, tag: i32::from_be_bytes(self.reader.take()?) });
        }
        Ok(())
    }
}

/// Makes times that only grow of seconds modulo 2^16.
#[derive(Default)]
struct CallClock {
    /// Seconds of whole turns.
    turned: u64,
    last: Option<u16>,
}

impl CallClock {
    fn interval(&mut self, [start, end]: [(u16, u32); 2]) -> CallTime {
        CallTime { start: self.time(start), end: self.time(end) }
    }

    fn time(&mut self, (seconds, nanoseconds): (u16, u32)) -> Span {
        if let Some(last) = self.last
            && last.saturating_sub(seconds) > u16::MAX / 2
        {
            self.turned += 1 << 16;
        }
        self.last = Some(seconds);
        let seconds = self.turned + u64::from(seconds);
        let ps = seconds.saturating_mul(1_000_000_000_000).saturating_add(u64::from(nanoseconds) * 1000);
        Span::from_ps(ps)
    }
}
