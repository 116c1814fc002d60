//! The lines of one rank, and what they mean.

use super::datatype::datatype;
use crate::calls::{
    Calls, CommRef, Completed, Manner, MessageEnd, MpiCall, OtherSide, RequestKey, TimedCall,
};
use crate::error::{FilePlace, TraceError};
use crate::flop_rate::FlopRate;
use crate::input::InputReader;
use crate::weft::MAX_BYTES;
use std::collections::BTreeMap;
use weft_trace::Reduction;
use weft_trace::op::{Collective, CollectiveSizes, SendMode};
use weft_units::{Bytes, Span};

/// The size of a receive that does not say it: SimGrid takes that of the message.
const ANY_SIZE: Bytes = Bytes::new(MAX_BYTES);

/// The names of actions, in small letters: earlier versions of SimGrid wrote some with capitals.
const ACTIONS: [&str; 28] = [
    "init",
    "finalize",
    "compute",
    "sleep",
    "location",
    "comm_size",
    "comm_split",
    "comm_dup",
    "send",
    "isend",
    "recv",
    "irecv",
    "test",
    "wait",
    "waitall",
    "barrier",
    "bcast",
    "reduce",
    "allreduce",
    "scan",
    "exscan",
    "alltoall",
    "alltoallv",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "reducescatter",
];

/// Two more.
const GATHERS: [&str; 2] = ["allgather", "allgatherv"];

/// Whether a word is the name of an action.
pub(super) fn is_action(word: &str) -> bool {
    ACTIONS.iter().chain(&GATHERS).any(|action| action.eq_ignore_ascii_case(word))
}

/// The actions of a rank.
pub(super) struct Actions {
    reader: InputReader,
    rank: u32,
    ranks: u32,
    speed: Option<FlopRate>,
    line: u64,
    /// Bytes of a datatype that is not named.
    default: u64,
    /// Requests that are open, and how many of each name.
    open: BTreeMap<RequestKey, u32>,
    /// The one that was begun last.
    last: Option<RequestKey>,
    /// Computation that follows a reduction.
    then: Option<Span>,
}

impl Actions {
    /// Reads the lines of a rank of so many.
    pub(super) fn new(reader: InputReader, [rank, ranks]: [u32; 2], speed: Option<FlopRate>) -> Actions {
        let open = BTreeMap::new();
        Actions { reader, rank, ranks, speed, line: 0, default: 1, open, last: None, then: None }
    }
}

impl Calls for Actions {
    fn next(&mut self) -> Result<Option<TimedCall>, TraceError> {
        if let Some(span) = self.then.take() {
            return Ok(Some(TimedCall { call: MpiCall::Compute(span), interval: None }));
        }
        loop {
            let Some(line) = self.reader.line()? else { return Ok(None) };
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            self.line += 1;
            let text = std::str::from_utf8(line).map(str::to_owned);
            let call = match text {
                Ok(text) => self.action(&text),
                Err(_) => Err("is no text; copy the file again".to_owned()),
            };
            return match call {
                Ok(call) => Ok(Some(TimedCall { call, interval: None })),
                Err(reason) => Err(self.error(reason)),
            };
        }
    }

    fn error(&self, reason: String) -> TraceError {
        self.reader.input().error(FilePlace::LineOfRank(self.rank, self.line), reason)
    }
}

/// The words of a line behind its name.
struct ActionWords<'a> {
    action: &'a str,
    words: Vec<&'a str>,
    default: u64,
}

impl Actions {
    fn action(&mut self, text: &str) -> Result<MpiCall, String> {
        let mut words = text.split_ascii_whitespace();
        let rank = words.next().unwrap_or_default();
        if rank.parse() != Ok(self.rank) {
            return Err(format!(
                "begins with \"{}\" among the lines of rank {}; let each file have the lines of one rank, or \
                 one file those of all",
                shown(rank),
                self.rank
            ));
        }
        let name = words.next().unwrap_or_default().to_ascii_lowercase();
        let words = ActionWords { action: &name, words: words.collect(), default: self.default };
        let ranks = self.ranks as usize;
        Ok(match name.as_str() {
            // With an argument, counts are of MPI_DOUBLE.
            "init" => {
                self.default = if words.words.is_empty() { 1 } else { 8 };
                MpiCall::Nothing
            }
            "finalize" | "location" | "comm_size" | "comm_split" | "comm_dup" => MpiCall::Nothing,
            "compute" => MpiCall::Compute(self.time(words.amount(0)?)?),
            "sleep" => {
                let seconds = words.amount(0)?;
                let span = "1e9".parse::<FlopRate>().ok().and_then(|speed| speed.time(seconds * 1e9));
                MpiCall::Compute(span.ok_or_else(|| too_long(seconds, "seconds"))?)
            }
            "send" | "isend" | "recv" | "irecv" => self.message(&words)?,
            "test" => MpiCall::Unread("test".to_owned()),
            "wait" => self.wait(&words)?,
            "waitall" => {
                self.open.clear();
                MpiCall::CompleteOpen
            }
            "barrier" => collective(Collective::Barrier, CollectiveSizes::default()),
            "bcast" => rooted(Collective::Broadcast, words.root(1)?, words.vector(2)?),
            "reduce" => {
                self.then_compute(&words, 1)?;
                rooted(Collective::Reduce, words.root(2)?, words.reduced(3)?)
            }
            "allreduce" => {
                self.then_compute(&words, 1)?;
                collective(Collective::Allreduce, words.reduced(2)?)
            }
            "scan" => {
                self.then_compute(&words, 1)?;
                collective(Collective::Scan, words.reduced(2)?)
            }
            "exscan" => {
                self.then_compute(&words, 1)?;
                collective(Collective::Exscan, words.reduced(2)?)
            }
            "alltoall" => collective(Collective::Alltoall, words.blocks(2)?),
            "allgather" => collective(Collective::Allgather, words.blocks(2)?),
            "gather" => rooted(Collective::Gather, words.root(2)?, words.blocks(3)?),
            "scatter" => rooted(Collective::Scatter, words.root(2)?, words.blocks(3)?),
            "gatherv" => {
                let root = words.root(1 + ranks)?;
                rooted(Collective::Gatherv, root, words.gatherv(ranks, 2 + ranks)?)
            }
            "allgatherv" => collective(Collective::Allgatherv, words.allgatherv(ranks)?),
            "scatterv" => {
                let root = words.root(1 + ranks)?;
                rooted(Collective::Scatterv, root, words.scatterv(ranks)?)
            }
            "reducescatter" => {
                self.then_compute(&words, ranks)?;
                collective(Collective::ReduceScatter, words.reduce_scatter(ranks)?)
            }
            "alltoallv" => collective(Collective::Alltoallv, words.alltoallv(ranks)?),
            other => {
                return Err(format!(
                    "action \"{}\", which is not known; take the line out if it moves nothing between ranks",
                    shown(other)
                ));
            }
        })
    }

    /// The time of some floating-point operations.
    fn time(&self, flops: f64) -> Result<Span, String> {
        if flops == 0.0 {
            return Ok(Span::ZERO);
        }
        let speed = self.speed.ok_or_else(|| {
            "computes in floating-point operations, and their speed is not known: give that of your SimGrid \
             platform with --speed, such as --speed 1Gf, or in a first line \"# speed: 1Gf\""
                .to_owned()
        })?;
        speed.time(flops).ok_or_else(|| too_long(flops, "operations"))
    }

    /// A reduction computes when it is over.
    fn then_compute(&mut self, words: &ActionWords<'_>, place: usize) -> Result<(), String> {
        let span = self.time(words.amount(place)?)?;
        self.then = (span > Span::ZERO).then_some(span);
        Ok(())
    }

    fn message(&mut self, words: &ActionWords<'_>) -> Result<MpiCall, String> {
        let partner = words.integer(0)?;
        // Earlier versions wrote no tag.
        let (tag, size) = if words.words.len() == 2 { (0, 1) } else { (words.integer(1)?, 2) };
        let peer = match u32::try_from(partner) {
            Ok(rank) if rank < self.ranks => OtherSide::Rank(rank),
            Ok(rank) => {
                return Err(format!(
                    "rank {rank} of {} ranks; correct the line, or copy the file again",
                    self.ranks
                ));
            }
            Err(_) if partner == -1 => OtherSide::Any,
            Err(_) => OtherSide::Nobody,
        };
        let sends = matches!(words.action, "send" | "isend");
        let tag_number =
            i32::try_from(tag).map_err(|_| format!("tag {tag} is not of 32 bits; correct the line"))?;
        let is_known = words.number(size)? > 0.0;
        let bytes = match sends || is_known {
            true => words.bytes(size, words.datatype(size + 1)?)?,
            false => ANY_SIZE,
        };
        let envelope =
            MessageEnd { peer, tag: Some(tag_number).filter(|&tag| tag != -1), comm: CommRef::World, bytes };
        let manner = if words.action.starts_with('i') {
            let own = i64::from(self.rank);
            let key = if sends { key([own, partner, tag]) } else { key([partner, own, tag]) };
            *self.open.entry(key).or_default() += 1;
            self.last = Some(key);
            Manner::Request(key)
        } else {
            Manner::Blocking
        };
        Ok(match sends {
            true => MpiCall::Send { envelope, mode: SendMode::Standard, manner },
            false => MpiCall::Receive { envelope, matched: None, manner },
        })
    }

    /// Waits for the request of a source, a destination and a tag. One from anybody may have been begun.
    fn wait(&mut self, words: &ActionWords<'_>) -> Result<MpiCall, String> {
        let keys = if words.words.is_empty() {
            self.last.into_iter().collect()
        } else {
            let [source, destination, tag] = [words.integer(0)?, words.integer(1)?, words.integer(2)?];
            vec![
                key([source, destination, tag]),
                key([-1, destination, tag]),
                key([source, destination, -1]),
                key([-1, destination, -1]),
            ]
        };
        let found = keys.iter().copied().find(|key| self.open.contains_key(key));
        let Some(request) = found.or(keys.first().copied()) else {
            return Err("waits for a request, and none was begun before; correct the line".to_owned());
        };
        if let Some(count) = self.open.get_mut(&request) {
            *count -= 1;
            if *count == 0 {
                self.open.remove(&request);
            }
        }
        Ok(MpiCall::CompleteFound { requests: vec![request], completed: Completed::All })
    }
}

fn too_long(amount: f64, unit: &str) -> String {
    format!("computes for {amount} {unit}, longer than a trace can tell; correct the line, or the speed")
}

/// The name of a request: its source, its destination and its tag.
fn key(parts: [i64; 3]) -> RequestKey {
    parts.into_iter().fold(0, |key, part| key << 32 | RequestKey::from(part as u32))
}

fn shown(word: &str) -> String {
    word.chars().take(40).collect()
}

fn collective(kind: Collective, sizes: CollectiveSizes) -> MpiCall {
    MpiCall::Collective { kind, comm: CommRef::World, root: None, sizes }
}

fn rooted(kind: Collective, root: u32, sizes: CollectiveSizes) -> MpiCall {
    MpiCall::Collective { kind, comm: CommRef::World, root: Some(root), sizes }
}

fn sum(blocks: &[u64]) -> Bytes {
    Bytes::new(blocks.iter().fold(0, |sum, &block| sum.saturating_add(block)))
}

impl ActionWords<'_> {
    fn word(&self, place: usize) -> Result<&str, String> {
        self.words.get(place).copied().ok_or_else(|| {
            format!(
                "{} has {} arguments, argument {} is needed; correct the line, or copy the file again",
                self.action,
                self.words.len(),
                place + 1
            )
        })
    }

    fn wrong(&self, place: usize, expected: &str) -> String {
        let found = self.words.get(place).map_or(String::new(), |word| shown(word));
        format!(
            "argument {} of {}: expected {expected}, found \"{found}\"; correct the line",
            place + 1,
            self.action
        )
    }

    fn integer(&self, place: usize) -> Result<i64, String> {
        let number = self.word(place)?.parse::<i32>();
        number.map(i64::from).map_err(|_| self.wrong(place, "a whole number of 32 bits"))
    }

    /// A number, which may have an exponent.
    fn number(&self, place: usize) -> Result<f64, String> {
        let number: Option<f64> = self.word(place)?.parse().ok();
        number.filter(|number| number.is_finite()).ok_or_else(|| self.wrong(place, "a number"))
    }

    /// A number that is not negative.
    fn amount(&self, place: usize) -> Result<f64, String> {
        let number = self.number(place)?;
        if number < 0.0 { Err(self.wrong(place, "a number from 0 on")) } else { Ok(number) }
    }

    /// A count of elements of so many bytes, in bytes.
    fn bytes(&self, place: usize, size: u64) -> Result<Bytes, String> {
        let word = self.word(place)?;
        let count = word.parse::<u64>().ok().or_else(|| {
            let number = word.parse::<f64>().ok();
            number.filter(|number| (0.0..1e15).contains(number)).map(|number| number as u64)
        });
        let bytes = count.and_then(|count| count.checked_mul(size)).filter(|&bytes| bytes <= MAX_BYTES);
        bytes.map(Bytes::new).ok_or_else(|| self.wrong(place, "a count from 0 on, of at most 2^50 bytes"))
    }

    /// The bytes of a datatype, which may be left out.
    fn datatype(&self, place: usize) -> Result<u64, String> {
        let Some(word) = self.words.get(place) else { return Ok(self.default) };
        let known = word.parse().ok().and_then(datatype);
        known
            .map(|(size, _)| size)
            .ok_or_else(|| self.wrong(place, "the number of a datatype of SimGrid, 0 to 24"))
    }

    /// The root, which may be left out.
    fn root(&self, place: usize) -> Result<u32, String> {
        match self.words.get(place) {
            None => Ok(0),
            Some(root) => root.parse().map_err(|_| self.wrong(place, "the rank of the root")),
        }
    }

    /// One buffer, whose datatype is at this place.
    fn vector(&self, datatype: usize) -> Result<CollectiveSizes, String> {
        let size = self.datatype(datatype)?;
        let bytes = self.bytes(0, size)?;
        Ok(CollectiveSizes {
            send: bytes,
            receive: bytes,
            element: size as u32,
            ..CollectiveSizes::default()
        })
    }

    /// One buffer that is reduced. SimGrid does not say by which operation.
    fn reduced(&self, datatype: usize) -> Result<CollectiveSizes, String> {
        Ok(CollectiveSizes { reduction: self.reduction(datatype), ..self.vector(datatype)? })
    }

    /// The reduction, as far as it is known, whose datatype is at this place, and has been read.
    fn reduction(&self, place: usize) -> Reduction {
        let number = self.words.get(place).and_then(|word| word.parse().ok());
        let data_type = number.and_then(datatype).map(|(_, data_type)| data_type);
        Reduction { operation: None, data_type }
    }

    /// Two blocks, whose datatypes begin at this place.
    fn blocks(&self, datatype: usize) -> Result<CollectiveSizes, String> {
        let send = self.bytes(0, self.datatype(datatype)?)?;
        let receive = self.bytes(1, self.datatype(datatype + 1)?)?;
        Ok(CollectiveSizes { send, receive, ..CollectiveSizes::default() })
    }

    /// The blocks of all ranks.
    fn counts(&self, first: usize, ranks: usize, size: u64) -> Result<Vec<u64>, String> {
        self.word(first + ranks - 1)?;
        (first..first + ranks).map(|place| self.bytes(place, size).map(Bytes::get)).collect()
    }

    fn gatherv(&self, ranks: usize, datatype: usize) -> Result<CollectiveSizes, String> {
        let send = self.bytes(0, self.datatype(datatype)?)?;
        let receive_counts = self.counts(1, ranks, self.datatype(datatype + 1)?)?;
        Ok(CollectiveSizes {
            send,
            receive: sum(&receive_counts),
            receive_counts,
            ..CollectiveSizes::default()
        })
    }

    /// Displacements may stand behind the counts, and a datatype before them.
    fn allgatherv(&self, ranks: usize) -> Result<CollectiveSizes, String> {
        let rest = self.words.len().saturating_sub(1 + ranks);
        let has_datatype = rest > ranks || (1..=2).contains(&rest);
        let size = if has_datatype { self.datatype(1 + ranks)? } else { self.default };
        let (send, receive_counts) = (self.bytes(0, size)?, self.counts(1, ranks, size)?);
        Ok(CollectiveSizes {
            send,
            receive: sum(&receive_counts),
            receive_counts,
            ..CollectiveSizes::default()
        })
    }

    fn scatterv(&self, ranks: usize) -> Result<CollectiveSizes, String> {
        let send_counts = self.counts(0, ranks, self.datatype(2 + ranks)?)?;
        let receive = self.bytes(ranks, self.datatype(3 + ranks)?)?;
        Ok(CollectiveSizes { send: sum(&send_counts), receive, send_counts, ..CollectiveSizes::default() })
    }

    fn reduce_scatter(&self, ranks: usize) -> Result<CollectiveSizes, String> {
        let size = self.datatype(1 + ranks)?;
        let receive_counts = self.counts(0, ranks, size)?;
        let element = size as u32;
        Ok(CollectiveSizes {
            send: sum(&receive_counts),
            receive_counts,
            element,
            reduction: self.reduction(1 + ranks),
            ..CollectiveSizes::default()
        })
    }

    fn alltoallv(&self, ranks: usize) -> Result<CollectiveSizes, String> {
        let datatype = 2 + 2 * ranks;
        let send_counts = self.counts(1, ranks, self.datatype(datatype)?)?;
        let receive_counts = self.counts(2 + ranks, ranks, self.datatype(datatype + 1)?)?;
        let (send, receive) = (sum(&send_counts), sum(&receive_counts));
        Ok(CollectiveSizes { send, receive, send_counts, receive_counts, ..CollectiveSizes::default() })
    }
}
