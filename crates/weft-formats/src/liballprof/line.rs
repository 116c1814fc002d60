//! The lines of one rank, and what they mean.

use crate::calls::{
    CallTime, Calls, CommRef, Completed, Creation, Manner, MessageEnd, MpiCall, NewComm, OtherSide,
    RequestKey, TimedCall,
};
use crate::error::{FilePlace, TraceError};
use crate::input::InputReader;
use crate::weft::MAX_BYTES;
use weft_trace::op::{Collective, CollectiveSizes, SendMode};
use weft_units::{Bytes, Span};

/// The handle of the world in MPICH and its kin, whose other numbers differ from Open MPI's too.
const MPICH_WORLD: u64 = 0x4400_0000;

/// The color of MPI_UNDEFINED, in MPICH and Open MPI.
const UNDEFINED: i64 = -32766;

/// Requests in one list, at most: more are taken for damage.
const MAX_REQUESTS: u64 = 1 << 20;

/// Arguments of a call, at most: more are taken for damage.
const MAX_FIELDS: usize = 64;

/// The size of the first communicator that a file names where nothing else has such a form: datatypes are
/// three numbers too. `None`: there is none.
pub(super) fn first_communicator(mut reader: InputReader) -> Result<Option<u32>, TraceError> {
    while let Some(line) = reader.line()? {
        if !line.starts_with(b"MPI_Comm_") && !line.starts_with(b"MPI_Barrier") {
            continue;
        }
        if let Some([_, _, size]) = String::from_utf8_lossy(line).split(':').find_map(triple) {
            return Ok(u32::try_from(size).ok());
        }
    }
    Ok(None)
}

/// Three numbers with commas between them.
fn triple(field: &str) -> Option<[u64; 3]> {
    let mut numbers = field.split(',').map(|number| number.parse().ok());
    let triple = [numbers.next()??, numbers.next()??, numbers.next()??];
    numbers.next().is_none().then_some(triple)
}

/// The calls of a rank.
pub(super) struct ProfiledCalls {
    reader: InputReader,
    line: u64,
    name: String,
    /// The time of the first call: later ones are told from it.
    origin: Option<u128>,
    library: HandleStyle,
}

/// The MPI library, as far as its handles tell it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HandleStyle {
    Unknown,
    Mpich,
    Other,
}

impl ProfiledCalls {
    pub(super) fn new(reader: InputReader) -> ProfiledCalls {
        ProfiledCalls { reader, line: 0, name: String::new(), origin: None, library: HandleStyle::Unknown }
    }
}

impl Calls for ProfiledCalls {
    fn next(&mut self) -> Result<Option<TimedCall>, TraceError> {
        loop {
            self.line += 1;
            let Some(bytes) = self.reader.line()? else {
                self.line -= 1;
                return Ok(None);
            };
            if bytes.is_empty() || bytes.starts_with(b"#") {
                continue;
            }
            let text = std::str::from_utf8(bytes).map_err(|_| "is no text; copy the file again".to_owned());
            let line = text.and_then(|text| ProfileLine::of(text, &mut self.library));
            let call = line.and_then(|line| {
                self.name.clear();
                self.name.push_str(line.name);
                let interval = line.interval(&mut self.origin)?;
                Ok(TimedCall { call: line.call()?, interval })
            });
            return call.map(Some).map_err(|reason| self.error(reason));
        }
    }

    fn error(&self, reason: String) -> TraceError {
        let reason = if self.name.is_empty() { reason } else { format!("{}: {reason}", self.name) };
        self.reader.input().error(FilePlace::Line(self.line), reason)
    }
}

/// A line, cut into its fields.
struct ProfileLine<'a> {
    name: &'a str,
    start: &'a str,
    arguments: Vec<&'a str>,
    end: &'a str,
    is_mpich: bool,
}

impl<'a> ProfileLine<'a> {
    fn of(text: &'a str, library: &mut HandleStyle) -> Result<ProfileLine<'a>, String> {
        let mut fields = text.split(':');
        let name = fields
            .next()
            .filter(|name| name.starts_with("MPI_"))
            .ok_or_else(|| "does not begin with the name of a call of MPI; copy the file again".to_owned())?;
        let cut = || format!("{name}: the line is cut off; copy the file again, or trace the program again");
        let start = fields.next().ok_or_else(cut)?;
        let mut arguments: Vec<&str> = fields.by_ref().take(MAX_FIELDS).collect();
        let end = arguments.pop().filter(|_| fields.next().is_none()).ok_or_else(cut)?;
        if *library == HandleStyle::Unknown
            && let Some([handle, ..]) = arguments.iter().copied().rev().find_map(triple)
            && name.starts_with("MPI_Comm_")
        {
            *library = if handle == MPICH_WORLD { HandleStyle::Mpich } else { HandleStyle::Other };
        }
        Ok(ProfileLine { name, start, arguments, end, is_mpich: *library == HandleStyle::Mpich })
    }

    /// The time of the call. `MPI_Init` has no begin, `MPI_Finalize` no end.
    fn interval(&self, origin: &mut Option<u128>) -> Result<Option<CallTime>, String> {
        let begin = if self.start == "-" { self.end } else { self.start };
        let end = if self.end == "-" { self.start } else { self.end };
        if begin == "-" || end == "-" {
            return Ok(None);
        }
        let (begin, end) = (microseconds(begin)?, microseconds(end)?);
        let origin = *origin.get_or_insert(begin.min(end));
        let since = |time: u128| {
            let ps = time.saturating_sub(origin);
            u64::try_from(ps).map(Span::from_ps).map_err(|_| {
                "is 200 days after the first call of its rank; copy the file again, or trace it again"
                    .to_owned()
            })
        };
        Ok(Some(CallTime { start: since(begin)?, end: since(end)? }))
    }

    fn call(&self) -> Result<MpiCall, String> {
        use Manner::{Blocking, Persistent, Request};
        use SendMode::{Buffered, Ready, Standard, Synchronous};
        Ok(match self.name {
            "MPI_Send" => self.send(Standard, Blocking)?,
            "MPI_Bsend" => self.send(Buffered, Blocking)?,
            "MPI_Ssend" => self.send(Synchronous, Blocking)?,
            "MPI_Rsend" => self.send(Ready, Blocking)?,
            "MPI_Isend" => self.send(Standard, Request(self.request(6)?))?,
            "MPI_Ibsend" => self.send(Buffered, Request(self.request(6)?))?,
            "MPI_Issend" => self.send(Synchronous, Request(self.request(6)?))?,
            "MPI_Irsend" => self.send(Ready, Request(self.request(6)?))?,
            "MPI_Send_init" => self.send(Standard, Persistent(self.request(6)?))?,
            "MPI_Bsend_init" => self.send(Buffered, Persistent(self.request(6)?))?,
            "MPI_Ssend_init" => self.send(Synchronous, Persistent(self.request(6)?))?,
            "MPI_Rsend_init" => self.send(Ready, Persistent(self.request(6)?))?,
            "MPI_Recv" => self.receive(Blocking)?,
            "MPI_Irecv" => self.receive(Request(self.request(6)?))?,
            "MPI_Recv_init" => self.receive(Persistent(self.request(6)?))?,
            "MPI_Sendrecv" => {
                let (send, receive) = ([1, 2, 3, 4, 10], [6, 7, 8, 9, 10]);
                MpiCall::Exchange {
                    send: self.envelope(send)?,
                    receive: self.envelope(receive)?,
                    matched: None,
                }
            }
            "MPI_Sendrecv_replace" => {
                let (send, receive) = ([1, 2, 3, 4, 7], [1, 2, 5, 6, 7]);
                MpiCall::Exchange {
                    send: self.envelope(send)?,
                    receive: self.envelope(receive)?,
                    matched: None,
                }
            }
            "MPI_Start" => MpiCall::Start(vec![self.request(0)?]),
            "MPI_Startall" => MpiCall::Start(self.requests()?),
            "MPI_Wait" => {
                MpiCall::CompleteFound { requests: vec![self.request(0)?], completed: Completed::All }
            }
            "MPI_Waitall" => MpiCall::CompleteFound { requests: self.requests()?, completed: Completed::All },
            "MPI_Waitany" | "MPI_Waitsome" => {
                MpiCall::CompleteFound { requests: self.requests()?, completed: Completed::Unknown }
            }
            "MPI_Request_free" => MpiCall::Release(self.request(0)?),
            "MPI_Cancel" => MpiCall::Cancel(self.request(0)?),
            "MPI_Probe" => MpiCall::Unread("MPI_Probe".to_owned()),
            "MPI_Barrier" => self.collective(Collective::Barrier, 0, CollectiveSizes::default())?,
            "MPI_Bcast" => self.rooted(Collective::Broadcast, [3, 4], self.vector(1)?)?,
            "MPI_Reduce" => self.rooted(Collective::Reduce, [5, 6], self.vector(2)?)?,
            "MPI_Allreduce" => self.collective(Collective::Allreduce, 5, self.vector(2)?)?,
            "MPI_Scan" => self.collective(Collective::Scan, 5, self.vector(2)?)?,
            "MPI_Exscan" => self.collective(Collective::Exscan, 5, self.vector(2)?)?,
            "MPI_Gather" => self.rooted(Collective::Gather, [6, 7], self.blocks(1, 1)?)?,
            "MPI_Scatter" => self.rooted(Collective::Scatter, [6, 7], self.blocks(4, 4)?)?,
            "MPI_Allgather" => self.collective(Collective::Allgather, 6, self.blocks(1, 4)?)?,
            "MPI_Alltoall" => self.collective(Collective::Alltoall, 6, self.blocks(1, 4)?)?,
            "MPI_Gatherv" => self.rooted(Collective::Gatherv, [9, 10], self.gatherv(8)?)?,
            "MPI_Allgatherv" => self.collective(Collective::Allgatherv, 9, self.gatherv(8)?)?,
            "MPI_Scatterv" => self.rooted(Collective::Scatterv, [9, 10], self.scatterv()?)?,
            "MPI_Alltoallv" => self.collective(Collective::Alltoallv, 12, self.alltoallv()?)?,
            "MPI_Reduce_scatter" => self.collective(Collective::ReduceScatter, 6, self.reduce_scatter()?)?,
            "MPI_Comm_dup" => self.create(Creation::Duplicate, true)?,
            "MPI_Comm_split" => {
                let (color, key) = (self.number(1)?, self.number(2)?);
                let split = Creation::Split { color: color as i32, key: key as i32 };
                self.create(split, color != UNDEFINED)?
            }
            "MPI_Comm_create" => self.create(Creation::Unknown("MPI_Comm_create"), true)?,
            "MPI_Cart_create" => self.create(Creation::Unknown("MPI_Cart_create"), true)?,
            "MPI_Cart_sub" => self.create(Creation::Unknown("MPI_Cart_sub"), true)?,
            "MPI_Graph_create" => self.create(Creation::Unknown("MPI_Graph_create"), true)?,
            name if begins_request(name) => {
                let request = self.arguments.len().checked_sub(1).map_or(Ok(0), |last| self.request(last))?;
                MpiCall::UnreadRequest(name.to_owned(), request)
            }
            name if moves_data(name) => MpiCall::Unread(name.to_owned()),
            _ => MpiCall::Nothing,
        })
    }

    fn field(&self, place: usize) -> Result<&'a str, String> {
        self.arguments.get(place).copied().ok_or_else(|| {
            let found = self.arguments.len();
            format!("has {found} arguments, argument {} is needed; copy or trace it again", place + 1)
        })
    }

    fn number(&self, place: usize) -> Result<i64, String> {
        let field = self.field(place)?;
        field.parse().map_err(|_| wrong(place, field, "a number"))
    }

    fn request(&self, place: usize) -> Result<RequestKey, String> {
        let field = self.field(place)?;
        // A Fortran handle may be negative.
        let number =
            field.parse().map(|handle: u64| handle).or_else(|_| field.parse().map(i64::cast_unsigned));
        number.map(RequestKey::from).map_err(|_| wrong(place, field, "a request"))
    }

    /// The requests of a list, of which the line has the length and the address.
    fn requests(&self) -> Result<Vec<RequestKey>, String> {
        let (count, field) = (self.number(0)?, self.field(1)?);
        let count = u64::try_from(count).ok().filter(|&count| count <= MAX_REQUESTS);
        let count = count.ok_or_else(|| wrong(0, self.arguments[0], "up to 1048576 requests"))?;
        let first: u64 = field.parse().map_err(|_| wrong(1, field, "an address"))?;
        let bytes = if self.is_mpich { 4 } else { 8 };
        Ok((0..count).map(|place| RequestKey::from(first) + RequestKey::from(place * bytes)).collect())
    }

    fn triple(&self, place: usize, what: &str) -> Result<[u64; 3], String> {
        let field = self.field(place)?;
        triple(field).ok_or_else(|| wrong(place, field, what))
    }

    fn comm(&self, place: usize) -> Result<CommRef, String> {
        let [handle, rank, size] = self.triple(place, "a communicator, such as 0,2,4")?;
        match (u32::try_from(rank), u32::try_from(size)) {
            (Ok(rank), Ok(size)) if rank < size => Ok(CommRef::Seen { handle, rank, size }),
            _ => Err(wrong(place, self.arguments[place], "a communicator and the rank in it")),
        }
    }

    /// The bytes of one of a datatype.
    fn size(&self, place: usize) -> Result<u64, String> {
        let [_, size, _] = self.triple(place, "a datatype, such as 11,8,8")?;
        Ok(size)
    }

    fn bytes_of(&self, count: i64, datatype: usize) -> Result<Bytes, String> {
        let size = self.size(datatype)?;
        let bytes = u64::try_from(count).ok().and_then(|count| count.checked_mul(size));
        bytes.filter(|&bytes| bytes <= MAX_BYTES).map(Bytes::new).ok_or_else(|| {
            format!("{count} elements of {size} bytes each; copy the file again, or trace it again")
        })
    }

    /// Count and datatype, one behind the other.
    fn block(&self, count: usize) -> Result<Bytes, String> {
        self.bytes_of(self.number(count)?, count + 1)
    }

    /// A message: count, datatype, peer, tag and communicator, at these places.
    fn envelope(&self, [count, datatype, peer, tag, comm]: [usize; 5]) -> Result<MessageEnd, String> {
        let any = if self.is_mpich { -2 } else { -1 };
        let peer = match self.number(peer)? {
            number if number == any => OtherSide::Any,
            number => u32::try_from(number).map_or(OtherSide::Nobody, OtherSide::Rank),
        };
        let tag = i32::try_from(self.number(tag)?).ok().filter(|&tag| tag >= 0);
        let bytes = self.bytes_of(self.number(count)?, datatype)?;
        Ok(MessageEnd { peer, tag, comm: self.comm(comm)?, bytes })
    }

    fn send(&self, mode: SendMode, manner: Manner) -> Result<MpiCall, String> {
        Ok(MpiCall::Send { envelope: self.envelope([1, 2, 3, 4, 5])?, mode, manner })
    }

    fn receive(&self, manner: Manner) -> Result<MpiCall, String> {
        Ok(MpiCall::Receive { envelope: self.envelope([1, 2, 3, 4, 5])?, matched: None, manner })
    }

    fn collective(&self, kind: Collective, comm: usize, sizes: CollectiveSizes) -> Result<MpiCall, String> {
        Ok(MpiCall::Collective { kind, comm: self.comm(comm)?, root: None, sizes })
    }

    fn rooted(
        &self,
        kind: Collective,
        [root, comm]: [usize; 2],
        sizes: CollectiveSizes,
    ) -> Result<MpiCall, String> {
        let field = self.field(root)?;
        let root = Some(field.parse().map_err(|_| wrong(root, field, "the rank of the root"))?);
        Ok(MpiCall::Collective { kind, comm: self.comm(comm)?, root, sizes })
    }

    fn create(&self, how: Creation, member: bool) -> Result<MpiCall, String> {
        Ok(MpiCall::Create { from: self.comm(0)?, how, new: member.then_some(NewComm::Untold) })
    }

    fn vector(&self, count: usize) -> Result<CollectiveSizes, String> {
        let bytes = self.block(count)?;
        let element = u32::try_from(self.size(count + 1)?).unwrap_or(u32::MAX);
        Ok(CollectiveSizes { send: bytes, receive: bytes, element, ..CollectiveSizes::default() })
    }

    fn blocks(&self, send: usize, receive: usize) -> Result<CollectiveSizes, String> {
        let (send, receive) = (self.block(send)?, self.block(receive)?);
        Ok(CollectiveSizes { send, receive, ..CollectiveSizes::default() })
    }

    /// The counts of all members, which stand behind the address of their array.
    fn counts(&self, place: usize, datatype: usize) -> Result<(Vec<u64>, Bytes), String> {
        let field = self.field(place)?;
        let mut blocks = Vec::new();
        for count in field.split(',') {
            let count = count.parse().map_err(|_| {
                wrong(place, field, "a count for each member (not written by liballprof built for MPI-3)")
            })?;
            blocks.push(self.bytes_of(count, datatype)?.get());
        }
        let sum = blocks.iter().fold(0u64, |sum, &block| sum.saturating_add(block));
        Ok((blocks, Bytes::new(sum)))
    }

    fn gatherv(&self, datatype: usize) -> Result<CollectiveSizes, String> {
        let (receive_counts, receive) = self.counts(5, datatype)?;
        Ok(CollectiveSizes { send: self.block(1)?, receive, receive_counts, ..CollectiveSizes::default() })
    }

    fn scatterv(&self) -> Result<CollectiveSizes, String> {
        let (send_counts, send) = self.counts(2, 5)?;
        Ok(CollectiveSizes { send, receive: self.block(7)?, send_counts, ..CollectiveSizes::default() })
    }

    fn alltoallv(&self) -> Result<CollectiveSizes, String> {
        let (send_counts, send) = self.counts(2, 5)?;
        let (receive_counts, receive) = self.counts(8, 11)?;
        Ok(CollectiveSizes { send, receive, send_counts, receive_counts, ..CollectiveSizes::default() })
    }

    fn reduce_scatter(&self) -> Result<CollectiveSizes, String> {
        let (receive_counts, send) = self.counts(3, 4)?;
        let element = u32::try_from(self.size(4)?).unwrap_or(u32::MAX);
        Ok(CollectiveSizes { send, receive_counts, element, ..CollectiveSizes::default() })
    }
}

fn wrong(place: usize, found: &str, expected: &str) -> String {
    /// Letters of a field that are shown.
    const SHOWN: usize = 40;
    let shown: String = found.chars().take(SHOWN).collect();
    format!(
        "argument {}: expected {expected}, found \"{shown}\"; copy the file again, or trace it again",
        place + 1
    )
}

/// A time in microseconds, with decimals or without, in picoseconds.
fn microseconds(field: &str) -> Result<u128, String> {
    let (whole, decimals) = field.split_once('.').unwrap_or((field, ""));
    let mut ps: u128 = whole.parse::<u64>().ok().map(|us| u128::from(us) * 1_000_000).ok_or_else(|| {
        let shown: String = field.chars().take(40).collect();
        format!("expected a time in microseconds, found \"{shown}\"; copy the file again, or trace it again")
    })?;
    let mut unit = 100_000;
    for digit in decimals.bytes().filter(u8::is_ascii_digit) {
        ps += u128::from(digit - b'0') * unit;
        unit /= 10;
    }
    Ok(ps)
}

/// Whether a call that is not read begins a request.
fn begins_request(name: &str) -> bool {
    const OTHERS: [&str; 4] = ["MPI_In", "MPI_Is_", "MPI_Iprobe", "MPI_Improbe"];
    name.starts_with("MPI_I") && !OTHERS.iter().any(|other| name.starts_with(other))
}

/// Whether a call that is not read moves data between ranks, or to files.
fn moves_data(name: &str) -> bool {
    const PREFIXES: [&str; 11] = [
        "MPI_File_",
        "MPI_Win_",
        "MPI_Put",
        "MPI_Get_accumulate",
        "MPI_Accumulate",
        "MPI_Rput",
        "MPI_Rget",
        "MPI_Mrecv",
        "MPI_Neighbor_",
        "MPI_Alltoallw",
        "MPI_Abort",
    ];
    name == "MPI_Get" || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}
