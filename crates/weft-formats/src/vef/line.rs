//! Lines of a VEF file.

use super::MAX_BYTES;
use weft_units::{Bytes, Span};

/// Longest time in picoseconds: 53 days.
const MAX_PS: u64 = 1 << 62;

/// The first line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct VefHeader {
    pub(super) tasks: u32,
    pub(super) messages: u64,
    pub(super) communicators: u64,
    /// Collectives, each counted once.
    pub(super) collectives: u64,
    /// Parts that tasks take in them.
    pub(super) parts: u64,
    /// Whether no message waits for the reception of another.
    pub(super) only_sends: bool,
}

/// The thing that a record waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum After {
    /// Nothing: its time is counted from the start of the program.
    Start,
    /// The send of a message by the same task.
    Send(u64),
    /// The reception of a message by the same task.
    Reception(u64),
    /// The end of the task's part of a collective.
    Collective(u64),
}

/// The moment at which a record is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct When {
    pub(super) after: After,
    /// Time since then.
    pub(super) time: Span,
    /// Whether the file says less than 0, of clocks that differ.
    pub(super) is_negative: bool,
}

/// A message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MessageLine {
    pub(super) id: u64,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) bytes: Bytes,
    pub(super) when: When,
}

/// The collectives of the format, by their numbers in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum VefCollective {
    Broadcast,
    Reduce,
    Allreduce,
    Gather,
    Scatter,
    Allgather,
    Barrier,
    Alltoall,
}

impl VefCollective {
    const ALL: [VefCollective; 8] = [
        VefCollective::Broadcast,
        VefCollective::Reduce,
        VefCollective::Allreduce,
        VefCollective::Gather,
        VefCollective::Scatter,
        VefCollective::Allgather,
        VefCollective::Barrier,
        VefCollective::Alltoall,
    ];
}

/// The part of one task in a collective.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PartLine {
    pub(super) id: u64,
    pub(super) communicator: u32,
    pub(super) operation: VefCollective,
    pub(super) task: u32,
    pub(super) sent: Bytes,
    pub(super) received: Bytes,
    pub(super) when: When,
}

/// A record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum VefLine {
    Message(MessageLine),
    Part(PartLine),
}

/// Why a line is no record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum LineFault {
    /// It is none of the documented ones.
    Undocumented,
    /// A field of it makes no sense; with the mend.
    Field(String),
}

fn field(name: &str, word: &[u8], expected: &str) -> LineFault {
    LineFault::Field(format!("{name}: `{}`; expected {expected}", printable(word)))
}

/// The begin of a text that may be anything.
pub(super) fn printable(word: &[u8]) -> String {
    String::from_utf8_lossy(word).chars().take(40).collect()
}

/// The words of a line.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// As many words as a line must have; `None`: it has others.
fn exactly<const N: usize>(line: &[u8]) -> Option<[&[u8]; N]> {
    let mut found: [&[u8]; N] = [&[]; N];
    let mut words = words(line);
    for place in &mut found {
        *place = words.next()?;
    }
    words.next().is_none().then_some(found)
}

/// A number without a sign.
pub(super) fn number(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0u64, |sum, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 { None } else { sum.checked_mul(10)?.checked_add(digit.into()) }
    })
}

/// Reads the first line. Errors with the fault and the mend.
pub(super) fn header(line: &[u8]) -> Result<VefHeader, String> {
    let form = "VEF NumTask NumMsg NumCOMM NumGlobalGroupComm NumLocalGroupComm onlySendFlag";
    let Some([tag, tasks, messages, communicators, collectives, parts, flag]) = exactly(line) else {
        return Err(format!("`{}` is no header; expected {form}", printable(line)));
    };
    if !tag.strip_prefix(b"VEF").is_some_and(|version| version.iter().all(u8::is_ascii_digit)) {
        return Err(format!("`{}`: expected VEF, or VEF and a version such as VEF3", printable(tag)));
    }
    let count = |name: &str, word: &[u8]| {
        number(word).ok_or_else(|| format!("{name}: `{}`; expected a count", printable(word)))
    };
    let found = count("NumTask", tasks)?;
    let tasks = u32::try_from(found).ok().filter(|tasks| *tasks > 0);
    let tasks = tasks.ok_or_else(|| format!("NumTask: {found}; expected 1 to {}", u32::MAX))?;
    let only_sends = match &flag.to_ascii_uppercase()[..] {
        b"TRUE" | b"1" => true,
        b"FALSE" | b"0" => false,
        _ => return Err(format!("onlySendFlag: `{}`; expected TRUE or FALSE", printable(flag))),
    };
    Ok(VefHeader {
        tasks,
        messages: count("NumMsg", messages)?,
        communicators: count("NumCOMM", communicators)?,
        collectives: count("NumGlobalGroupComm", collectives)?,
        parts: count("NumLocalGroupComm", parts)?,
        only_sends,
    })
}

/// Reads a record of a program of so many tasks.
pub(super) fn record(line: &[u8], tasks: u32) -> Result<VefLine, LineFault> {
    match line.first() {
        Some(b'0'..=b'9') => message(line, tasks).map(VefLine::Message),
        Some(b'G') => part(line, tasks).map(VefLine::Part),
        _ => Err(LineFault::Undocumented),
    }
}

fn message(line: &[u8], tasks: u32) -> Result<MessageLine, LineFault> {
    let Some([id, from, to, bytes, kind, time, on]) = exactly(line) else {
        return Err(LineFault::Undocumented);
    };
    Ok(MessageLine {
        id: number(id).ok_or_else(|| field("ID", id, "a number"))?,
        from: task("src", from, tasks)?,
        to: task("dst", to, tasks)?,
        bytes: size("bytes", bytes)?,
        when: when([kind, time, on])?,
    })
}

fn part(line: &[u8], tasks: u32) -> Result<PartLine, LineFault> {
    let Some([id, communicator, operation, member, sent, received, kind, time, on]) = exactly(line) else {
        return Err(LineFault::Undocumented);
    };
    let known = number(operation).and_then(|number| VefCollective::ALL.get(usize::try_from(number).ok()?));
    let plain = communicator.strip_prefix(b"C").unwrap_or(communicator);
    let communicator = number(plain).and_then(|number| u32::try_from(number).ok());
    Ok(PartLine {
        id: collective(id).ok_or_else(|| field("ID", id, "G and a number"))?,
        communicator: communicator.ok_or_else(|| field("ID_COMM", plain, "the number of a communicator"))?,
        operation: *known.ok_or_else(|| field("ID_OP", operation, "0 to 7"))?,
        task: task("task", member, tasks)?,
        sent: size("send_size", sent)?,
        received: size("recv_size", received)?,
        when: when([kind, time, on])?,
    })
}

/// The number of a collective, which has a `G` before it.
fn collective(word: &[u8]) -> Option<u64> {
    number(word.strip_prefix(b"G")?)
}

fn task(name: &str, word: &[u8], tasks: u32) -> Result<u32, LineFault> {
    let task = number(word).and_then(|task| u32::try_from(task).ok()).filter(|task| *task < tasks);
    task.ok_or_else(|| field(name, word, &format!("a task, 0 to {}", tasks - 1)))
}

fn size(name: &str, word: &[u8]) -> Result<Bytes, LineFault> {
    let size = number(word).filter(|size| *size <= MAX_BYTES);
    size.map(Bytes::new).ok_or_else(|| field(name, word, &format!("bytes, up to {MAX_BYTES}")))
}

/// Reads `Dep time IDdep`.
fn when([kind, time, on]: [&[u8]; 3]) -> Result<When, LineFault> {
    let message = || number(on).ok_or_else(|| field("IDdep", on, "the ID of a message"));
    let after = match kind {
        b"0" if on == b"-1" => After::Start,
        b"0" => return Err(field("IDdep", on, "-1, since Dep is 0")),
        b"1" => After::Send(message()?),
        b"2" => After::Reception(message()?),
        b"3" => After::Collective(collective(on).ok_or_else(|| field("IDdep", on, "G and a number"))?),
        _ => return Err(field("Dep", kind, "0, 1, 2 or 3")),
    };
    let (is_negative, size) = match time.strip_prefix(b"-") {
        Some(size) => (true, size),
        None => (false, time),
    };
    let ps = picoseconds(size).ok_or_else(|| field("time", time, "nanoseconds, up to 53 days"))?;
    let time = if is_negative { Span::ZERO } else { Span::from_ps(ps) };
    Ok(When { after, time, is_negative: is_negative && ps > 0 })
}

/// Nanoseconds, as a whole number or as a program prints one with a fraction.
fn picoseconds(word: &[u8]) -> Option<u64> {
    if let Some(whole) = number(word) {
        return whole.checked_mul(1000).filter(|ps| *ps <= MAX_PS);
    }
    let ns: f64 = std::str::from_utf8(word).ok()?.parse().ok()?;
    let ps = (ns * 1000.0).round();
    (0.0..=MAX_PS as f64).contains(&ps).then_some(ps as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a field that is read as its neighbour.
    #[test]
    fn each_field_has_its_place() {
        let when = When { after: After::Reception(5), time: Span::from_ps(12_500), is_negative: false };
        let message = MessageLine { id: 7, from: 1, to: 2, bytes: Bytes::new(3), when };
        assert_eq!(record(b"7 1 2 3 2 12.5 5", 3), Ok(VefLine::Message(message)));
        let when = When { after: After::Collective(6), time: Span::ZERO, is_negative: true };
        let part = PartLine {
            id: 8,
            communicator: 1,
            operation: VefCollective::Gather,
            task: 2,
            sent: Bytes::new(4),
            received: Bytes::new(9),
            when,
        };
        assert_eq!(record(b"G8 C1 3 2 4 9 3 -1e1 G6", 3), Ok(VefLine::Part(part)));
        assert_eq!(record(b"G8 1 3 2 4 9 3 -10 G6", 3), Ok(VefLine::Part(part)));
    }

    /// Catches a version that is refused, and counts in the wrong order.
    #[test]
    fn the_header_may_have_a_version() {
        let expected =
            VefHeader { tasks: 1, messages: 2, communicators: 3, collectives: 4, parts: 5, only_sends: true };
        assert_eq!(header(b"VEF 1 2 3 4 5 TRUE"), Ok(expected));
        assert_eq!(header(b"VEF3 1 2 3 4 5 true "), Ok(expected));
        assert!(header(b"VEFX 1 2 3 4 5 TRUE").is_err_and(|said| said.contains("such as VEF3")));
        assert!(header(b"VEF 0 2 3 4 5 TRUE").is_err_and(|said| said.contains("NumTask")));
        assert!(header(b"VEF 1 2 3 4 5").is_err_and(|said| said.contains("NumLocalGroupComm")));
    }
}
