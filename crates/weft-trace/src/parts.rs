//! The parts of a recording: one append-only binary file per rank, written by the MPI recorder while the program
//! runs, and their conversion to one trace file.
//!
//! ```text
//! OUT.parts/rank-00000.part   "weftpart" | version, rank, size, … | record | record | … | end record
//!          /rank-00001.part                                         tag, numbers          or zeros: interrupted
//! ```
//!
//! A record is a tag byte and numbers (LEB128); docs/src/formats/parts.md describes them all. What lies behind the
//! last whole record is zero or missing, so a part can be read at any time, also while it is written.

use crate::op::{
    Collective, CollectiveSizes, CommId, OneSided, Op, RankRange, RequestId, SendMode, WindowId, WindowSync,
};
use crate::{TraceError, TraceHeader, TraceMetadata, TraceWriter};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use weft_units::{Bytes, RankId, Span};

/// The version of the parts that is read.
pub const PARTS_VERSION: u32 = 1;

const MAGIC: &[u8; 8] = b"weftpart";

/// More ranks than this are taken for damage.
const MOST_RANKS: u32 = 1 << 24;

/// Longer texts than this are taken for damage.
const MOST_TEXT: u64 = 1 << 20;

/// Why parts cannot be read or converted.
#[derive(Debug, thiserror::Error)]
pub enum PartsError {
    /// A part or the folder cannot be opened or read.
    #[error("{}: cannot be read: {source}", .path.display())]
    Read {
        /// The part or the folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The folder holds no parts.
    #[error("{}: holds no parts of a recording (rank-00000.part and so on)", .path.display())]
    NoParts {
        /// The folder.
        path: PathBuf,
    },
    /// Not a part, or one of another version.
    #[error("{}: {reason}", .path.display())]
    Header {
        /// The part.
        path: PathBuf,
        /// What is wrong, and the mend.
        reason: String,
    },
    /// A record makes no sense.
    #[error("{}: byte {offset}: {reason}; the part is damaged, record again", .path.display())]
    Record {
        /// The part.
        path: PathBuf,
        /// Where the record begins.
        offset: u64,
        /// What is wrong.
        reason: String,
    },
    /// The trace cannot be written.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// The highest thread support that the program was given (MPI_Query_thread).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ThreadLevel {
    /// One thread.
    Single,
    /// Only the main thread calls MPI.
    Funneled,
    /// One thread at a time calls MPI.
    Serialized,
    /// Any thread at any time.
    Multiple,
}

/// What a part says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartHeader {
    /// World rank.
    pub rank: RankId,
    /// Ranks of the world.
    pub size: u32,
    /// Process id at the time of recording.
    pub process: u32,
    /// Cost of one clock reading, already taken off the computation.
    pub clock_cost: Span,
    /// The program's thread support.
    pub thread_level: ThreadLevel,
    /// Version and subversion of the MPI standard.
    pub mpi_version: (u32, u32),
    /// The MPI library (MPI_Get_library_version).
    pub mpi_library: String,
    /// The program and its arguments.
    pub command: Vec<String>,
}

/// How a part ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartEnd {
    /// With MPI_Finalize.
    Finalized,
    /// The process ended without MPI_Finalize.
    Exited,
    /// With MPI_Abort.
    Aborted,
    /// In the midst: the process was killed, or it is still running.
    Interrupted,
}

/// Why decoding cannot go on: the bytes end, or they are wrong.
enum Stop {
    Ended,
    Wrong(String),
    Failed(io::Error),
}

/// Bytes with a position.
struct Source<R> {
    bytes: R,
    position: u64,
}

impl<R: BufRead> Source<R> {
    fn byte(&mut self) -> Result<u8, Stop> {
        let mut one = [0];
        self.fill(&mut one)?;
        Ok(one[0])
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), Stop> {
        self.bytes.read_exact(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Stop::Ended,
            _ => Stop::Failed(error),
        })?;
        self.position += buffer.len() as u64;
        Ok(())
    }

    fn fixed(&mut self) -> Result<u32, Stop> {
        let mut bytes = [0; 4];
        self.fill(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// An unsigned number in LEB128.
    fn number(&mut self) -> Result<u64, Stop> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Stop::Wrong("a number of more than 64 bits".into()))
    }

    /// 0, -1, 1, -2, … are written as 0, 1, 2, 3, …
    fn signed(&mut self) -> Result<i64, Stop> {
        Ok(unzigzag(self.number()?))
    }

    fn below(&mut self, limit: u64, what: &str) -> Result<u64, Stop> {
        let value = self.number()?;
        if value < limit {
            Ok(value)
        } else {
            Err(Stop::Wrong(format!("{what} {value}, expected less than {limit}")))
        }
    }

    fn request(&mut self) -> Result<RequestId, Stop> {
        let number = self.below(1 << 32, "request number")?;
        Ok(RequestId(u32::try_from(number).map_err(|_| Stop::Wrong(format!("request number {number}")))?))
    }

    /// World rank of the first member, and its count.
    fn id(&mut self) -> Result<u64, Stop> {
        let first = self.below(u64::from(MOST_RANKS), "first member")?;
        let count = self.below(1 << 32, "count of communicators")?;
        Ok(first << 32 | count)
    }

    fn text(&mut self, length: u64) -> Result<String, Stop> {
        if length > MOST_TEXT {
            return Err(Stop::Wrong(format!("a text of {length} bytes")));
        }
        let mut bytes = vec![0; length as usize];
        self.fill(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

fn tag_from(value: i64) -> Result<i32, Stop> {
    i32::try_from(value).map_err(|_| Stop::Wrong(format!("tag {value} is not of 32 bits")))
}

/// Reads one part, operation by operation.
///
/// The blocking calls of the program come as their parts, with request numbers 0 (a send) and 1 (a receive), which no
/// other request uses.
pub struct PartReader<R> {
    path: PathBuf,
    source: Source<R>,
    header: PartHeader,
    /// The rest of a record that stands for several operations.
    pending: VecDeque<Op>,
    names: BTreeMap<u64, String>,
    unrecorded: BTreeMap<String, u64>,
    end: Option<PartEnd>,
}

/// Requests within blocking calls.
const SEND_INSIDE: RequestId = RequestId(0);
const RECEIVE_INSIDE: RequestId = RequestId(1);

impl PartReader<BufReader<File>> {
    /// Opens a part and reads its header.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, PartsError> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|source| PartsError::Read { path: path.into(), source })?;
        PartReader::new(path, BufReader::with_capacity(1 << 16, file))
    }
}

impl<R: BufRead> PartReader<R> {
    /// Reads a part from `bytes`; `path` stands for it in errors.
    pub fn new(path: impl Into<PathBuf>, bytes: R) -> Result<Self, PartsError> {
        let path = path.into();
        let mut source = Source { bytes, position: 0 };
        match read_header(&mut source) {
            Ok(header) => Ok(PartReader {
                path,
                source,
                header,
                pending: VecDeque::new(),
                names: BTreeMap::new(),
                unrecorded: BTreeMap::new(),
                end: None,
            }),
            Err(Stop::Failed(source)) => Err(PartsError::Read { path, source }),
            Err(Stop::Wrong(reason)) => Err(PartsError::Header { path, reason }),
            Err(Stop::Ended) => Err(PartsError::Header {
                path,
                reason: "ends within its header: the rank was stopped before it could record anything".into(),
            }),
        }
    }

    /// What the part says of itself.
    pub fn header(&self) -> &PartHeader {
        &self.header
    }

    /// How the part ends; `None` until the last operation has been read.
    pub fn end(&self) -> Option<PartEnd> {
        self.end
    }

    /// Calls that the recorder saw but does not record, by name, as far as the part has been read.
    pub fn unrecorded(&self) -> &BTreeMap<String, u64> {
        &self.unrecorded
    }

    /// Decodes the next record into `pending`.
    fn record(&mut self) -> Result<(), Stop> {
        let source = &mut self.source;
        let size = u64::from(self.header.size);
        match source.byte()? {
            0 => return Err(Stop::Ended),
            1 => {
                let ns = source.number()?;
                let ps =
                    ns.checked_mul(1000).ok_or_else(|| Stop::Wrong(format!("computation of {ns} ns")))?;
                self.pending.push_back(Op::Compute { span: Span::from_ps(ps) });
            }
            2 => {
                let send = send(source, size, SEND_INSIDE)?;
                self.pending.extend([send, Op::Wait { request: SEND_INSIDE }]);
            }
            3 => {
                let request = source.request()?;
                let send = send(source, size, request)?;
                self.pending.push_back(send);
            }
            4 => {
                let receive = receive(source, size, RECEIVE_INSIDE)?;
                self.pending.extend([receive, Op::Wait { request: RECEIVE_INSIDE }]);
            }
            5 => {
                let request = source.request()?;
                let receive = receive(source, size, request)?;
                self.pending.push_back(receive);
            }
            // Cancelled before they matched: nothing was sent.
            6 => {
                let request = source.request()?;
                send(source, size, request)?;
            }
            7 => {
                let request = source.request()?;
                receive(source, size, request)?;
            }
            8 => {
                let request = source.request()?;
                self.pending.push_back(Op::Wait { request });
            }
            9 => {
                let requests = requests(source)?;
                self.pending.push_back(Op::Waitall { requests });
            }
            10 => {
                let requests = requests(source)?;
                let completed = source.below(requests.len() as u64, "completed request")? as u32;
                self.pending.push_back(Op::Waitany { requests, completed });
            }
            11 => {
                let op = collective(source, size)?;
                self.pending.push_back(op);
            }
            12 => {
                let op = communicator(source, size)?;
                self.pending.push_back(op);
            }
            13 => {
                let window = WindowId(source.id()?);
                let comm = CommId(source.id()?);
                let bytes = Bytes::new(source.number()?);
                self.pending.push_back(Op::Window { window, comm, bytes });
            }
            14 => {
                let request = Some(source.request()?).filter(|request| request.0 != 0);
                let kind = ONE_SIDED[source.below(ONE_SIDED.len() as u64, "one-sided operation")? as usize];
                let window = WindowId(source.id()?);
                let target = rank(source.below(size, "target rank")?);
                let bytes = Bytes::new(source.number()?);
                self.pending.push_back(Op::OneSided { kind, window, target, bytes, request });
            }
            15 => {
                let kind = SYNCS[source.below(SYNCS.len() as u64, "synchronization")? as usize];
                let window = WindowId(source.id()?);
                let target = source.below(size + 1, "target rank")?.checked_sub(1).map(rank);
                self.pending.push_back(Op::Sync { kind, window, target });
            }
            16 => {
                let length = source.number()?;
                let text = source.text(length)?;
                self.pending.push_back(Op::Marker { text });
            }
            17 => {
                let index = source.number()?;
                let length = source.number()?;
                let name = source.text(length)?;
                self.names.insert(index, name);
            }
            18 => {
                let index = source.number()?;
                let name =
                    self.names.get(&index).ok_or_else(|| Stop::Wrong(format!("call {index} has no name")))?;
                *self.unrecorded.entry(name.clone()).or_default() += 1;
            }
            19 => {
                self.end = Some(match source.number()? {
                    1 => PartEnd::Finalized,
                    2 => PartEnd::Exited,
                    3 => PartEnd::Aborted,
                    other => return Err(Stop::Wrong(format!("end {other}, expected 1 to 3"))),
                });
            }
            tag => return Err(Stop::Wrong(format!("record tag {tag}, expected 1 to 19"))),
        }
        Ok(())
    }
}

impl<R: BufRead> Iterator for PartReader<R> {
    type Item = Result<Op, PartsError>;

    /// The next operation. None follows an error.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(op) = self.pending.pop_front() {
                return Some(Ok(op));
            }
            if self.end.is_some() {
                return None;
            }
            let offset = self.source.position;
            match self.record() {
                Ok(()) => {}
                Err(Stop::Ended) => self.end = Some(PartEnd::Interrupted),
                Err(stop) => {
                    self.end = Some(PartEnd::Interrupted);
                    let path = self.path.clone();
                    return Some(Err(match stop {
                        Stop::Failed(source) => PartsError::Read { path, source },
                        Stop::Wrong(reason) => PartsError::Record { path, offset, reason },
                        Stop::Ended => unreachable!("handled above"),
                    }));
                }
            }
        }
    }
}

fn read_header<R: BufRead>(source: &mut Source<R>) -> Result<PartHeader, Stop> {
    let mut magic = [0; 8];
    source.fill(&mut magic)?;
    if magic == [0; 8] {
        return Err(Stop::Ended);
    }
    if &magic != MAGIC {
        return Err(Stop::Wrong("not a part of a recording (does not begin with `weftpart`)".into()));
    }
    let version = source.fixed()?;
    if version != PARTS_VERSION {
        return Err(Stop::Wrong(format!(
            "version {version} of the parts, this weft reads version {PARTS_VERSION}; build the recorder and weft from one source"
        )));
    }
    let (rank, size, process) = (source.fixed()?, source.fixed()?, source.fixed()?);
    if size > MOST_RANKS || rank >= size {
        return Err(Stop::Wrong(format!("rank {rank} of {size} ranks; the part is damaged, record again")));
    }
    let clock_cost = Span::from_ns(u64::from(source.fixed()?));
    let thread_level = match source.fixed()? {
        0 => ThreadLevel::Single,
        1 => ThreadLevel::Funneled,
        2 => ThreadLevel::Serialized,
        3 => ThreadLevel::Multiple,
        other => return Err(Stop::Wrong(format!("thread level {other}, expected 0 to 3"))),
    };
    let mpi_version = (source.fixed()?, source.fixed()?);
    let length = source.fixed()?;
    let mpi_library = source.text(length.into())?.trim_end_matches('\0').to_owned();
    let length = source.fixed()?;
    let command = source.text(length.into())?;
    let command = command.strip_suffix('\0').unwrap_or(&command);
    let command = command.split('\0').map(str::to_owned).collect();
    Ok(PartHeader {
        rank: RankId(rank),
        size,
        process,
        clock_cost,
        thread_level,
        mpi_version,
        mpi_library,
        command,
    })
}

/// A rank that has been checked against the size of the world.
fn rank(value: u64) -> RankId {
    RankId(value as u32)
}

fn send<R: BufRead>(source: &mut Source<R>, size: u64, request: RequestId) -> Result<Op, Stop> {
    let to = rank(source.below(size, "destination rank")?);
    let tag = tag_from(source.signed()?)?;
    let comm = CommId(source.id()?);
    let bytes = Bytes::new(source.number()?);
    let mode = MODES[source.below(MODES.len() as u64, "send mode")? as usize];
    Ok(Op::Isend { to, tag, comm, bytes, mode, request })
}

fn receive<R: BufRead>(source: &mut Source<R>, size: u64, request: RequestId) -> Result<Op, Stop> {
    let from = source.below(size + 1, "source rank")?.checked_sub(1).map(rank);
    let tag = match source.number()?.checked_sub(1) {
        Some(tag) => Some(tag_from(unzigzag(tag))?),
        None => None,
    };
    let comm = CommId(source.id()?);
    let bytes = Bytes::new(source.number()?);
    let mut matched = None;
    if from.is_none() || tag.is_none() {
        let matched_source = source.fixed()?;
        let matched_tag = source.fixed()? as i32;
        if u64::from(matched_source) < size {
            matched = Some((RankId(matched_source), matched_tag));
        } else if matched_source != u32::MAX {
            return Err(Stop::Wrong(format!("matched source {matched_source}, expected less than {size}")));
        }
    }
    Ok(Op::Irecv { from, tag, comm, bytes, matched, request })
}

fn requests<R: BufRead>(source: &mut Source<R>) -> Result<Vec<RequestId>, Stop> {
    // Grown as the entries come: the count may lie.
    let count = source.number()?;
    let mut requests = Vec::new();
    for _ in 0..count {
        requests.push(source.request()?);
    }
    Ok(requests)
}

/// Bytes per member: none, each, or those that are not 0.
fn blocks<R: BufRead>(source: &mut Source<R>, size: u64) -> Result<Vec<u64>, Stop> {
    let form = source.below(3, "form of counts")?;
    if form == 0 {
        return Ok(Vec::new());
    }
    let members = source.below(size + 1, "number of members")?;
    let mut blocks = Vec::new();
    if form == 1 {
        for _ in 0..members {
            blocks.push(source.number()?);
        }
        return Ok(blocks);
    }
    let filled = source.below(members + 1, "number of counts")?;
    blocks.resize(members as usize, 0);
    for _ in 0..filled {
        let index = source.below(members, "member")? as usize;
        blocks[index] = source.number()?;
    }
    Ok(blocks)
}

fn collective<R: BufRead>(source: &mut Source<R>, size: u64) -> Result<Op, Stop> {
    let request = Some(source.request()?).filter(|request| request.0 != 0);
    let kind = COLLECTIVES[source.below(COLLECTIVES.len() as u64, "collective")? as usize];
    let comm = CommId(source.id()?);
    let root = source.below(size + 1, "root rank")?.checked_sub(1).map(rank);
    let send = Bytes::new(source.number()?);
    let receive = Bytes::new(source.number()?);
    let element = u32::try_from(source.number()?).unwrap_or(u32::MAX);
    let send_counts = blocks(source, size)?;
    let receive_counts = blocks(source, size)?;
    let sizes = CollectiveSizes { send, receive, send_counts, receive_counts, element };
    Ok(Op::Collective { kind, comm, root, sizes, request })
}

fn communicator<R: BufRead>(source: &mut Source<R>, size: u64) -> Result<Op, Stop> {
    let comm = CommId(source.id()?);
    let runs = source.below(size + 1, "number of runs of members")?;
    let mut members = Vec::new();
    let mut total = 0;
    for _ in 0..runs {
        let first = source.below(size, "member")?;
        let stride = source.signed()?;
        let count = source.below(size + 1, "members of a run")?;
        let last = i128::from(first) + i128::from(stride) * (i128::from(count) - 1);
        total += count;
        let stride =
            i32::try_from(stride).ok().filter(|_| count > 0 && (0..i128::from(size)).contains(&last));
        let Some(stride) = stride.filter(|_| total <= size) else {
            return Err(Stop::Wrong(format!("members outside the world of {size} ranks")));
        };
        members.push(RankRange { first: first as u32, stride, count: count as u32 });
    }
    Ok(Op::Communicator { comm, members })
}

// In the order of their numbers in a part.
const MODES: [SendMode; 4] = [SendMode::Standard, SendMode::Synchronous, SendMode::Buffered, SendMode::Ready];
const COLLECTIVES: [Collective; 20] = [
    Collective::Barrier,
    Collective::Broadcast,
    Collective::Reduce,
    Collective::Allreduce,
    Collective::Gather,
    Collective::Gatherv,
    Collective::Scatter,
    Collective::Scatterv,
    Collective::Allgather,
    Collective::Allgatherv,
    Collective::Alltoall,
    Collective::Alltoallv,
    Collective::ReduceScatter,
    Collective::ReduceScatterBlock,
    Collective::Scan,
    Collective::Exscan,
    Collective::NeighborAllgather,
    Collective::NeighborAllgatherv,
    Collective::NeighborAlltoall,
    Collective::NeighborAlltoallv,
];
const ONE_SIDED: [OneSided; 6] = [
    OneSided::Put,
    OneSided::Get,
    OneSided::Accumulate,
    OneSided::GetAccumulate,
    OneSided::FetchAndOp,
    OneSided::CompareAndSwap,
];
const SYNCS: [WindowSync; 12] = [
    WindowSync::Fence,
    WindowSync::Post,
    WindowSync::Start,
    WindowSync::Complete,
    WindowSync::Wait,
    WindowSync::Lock,
    WindowSync::Unlock,
    WindowSync::LockAll,
    WindowSync::UnlockAll,
    WindowSync::Flush,
    WindowSync::FlushAll,
    WindowSync::Free,
];

/// A folder of parts: a recording that is not finished, or was not converted.
#[derive(Clone, Debug)]
pub struct Parts {
    folder: PathBuf,
    /// Header of each rank; `None`: its part is missing or was stopped within its header.
    headers: Vec<Option<PartHeader>>,
}

impl Parts {
    /// Opens the folder and reads the header of every part in it. Files of other names are left alone.
    pub fn open(folder: impl AsRef<Path>) -> Result<Parts, PartsError> {
        let folder = folder.as_ref();
        let read = |source| PartsError::Read { path: folder.into(), source };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(read)? {
            let name = entry.map_err(read)?.file_name();
            if let Some(rank) = name.to_str().and_then(rank_of_file) {
                files.push((rank, folder.join(name)));
            }
        }
        files.sort();
        let mut headers: Vec<Option<PartHeader>> = Vec::new();
        for (rank, path) in files {
            let header = match PartReader::open(&path) {
                Ok(part) => part.header().clone(),
                Err(PartsError::Header { reason, .. }) if reason.starts_with("ends within") => continue,
                Err(error) => return Err(error),
            };
            if headers.is_empty() {
                headers = vec![None; header.size as usize];
            }
            if header.rank.0 != rank || header.size as usize != headers.len() {
                let reason = format!(
                    "is of rank {} of {}, not of rank {rank} of {}: parts of two recordings are mixed; record again",
                    header.rank.0,
                    header.size,
                    headers.len()
                );
                return Err(PartsError::Header { path, reason });
            }
            headers[rank as usize] = Some(header);
        }
        if headers.is_empty() {
            return Err(PartsError::NoParts { path: folder.into() });
        }
        Ok(Parts { folder: folder.into(), headers })
    }

    /// Ranks of the world.
    pub fn ranks(&self) -> u32 {
        self.headers.len() as u32
    }

    /// Header of a rank's part; `None` if the part is missing.
    pub fn header(&self, rank: RankId) -> Option<&PartHeader> {
        self.headers.get(rank.index())?.as_ref()
    }

    /// The operations of a rank; `None` if its part is missing.
    pub fn rank(&self, rank: RankId) -> Result<Option<PartReader<BufReader<File>>>, PartsError> {
        match self.header(rank) {
            Some(_) => PartReader::open(self.folder.join(format!("rank-{:05}.part", rank.0))).map(Some),
            None => Ok(None),
        }
    }

    /// The header of the trace that these parts make, without what only reading them to the end tells
    /// (`unrecorded`, `interrupted`).
    pub fn trace_header(&self) -> TraceHeader {
        let first = self.headers.iter().flatten().next();
        TraceHeader {
            ranks: self.ranks(),
            command: first.map(|part| part.command.clone()).unwrap_or_default(),
            recorder: format!("weft-record {}", env!("CARGO_PKG_VERSION")),
            mpi_library: first.map(|part| part.mpi_library.clone()).unwrap_or_default(),
            mpi_version: first
                .map(|part| format!("{}.{}", part.mpi_version.0, part.mpi_version.1))
                .unwrap_or_default(),
            ..TraceHeader::default()
        }
    }

    /// Reads all parts to their ends, rank by rank, and returns the header of the whole. A rank whose part is missing
    /// has no operations, and the recording counts as interrupted, as it does where a part ends neither with
    /// MPI_Finalize nor with the end of the process.
    pub fn read(
        &self,
        mut visit: impl FnMut(PartEvent) -> Result<(), PartsError>,
    ) -> Result<TraceHeader, PartsError> {
        let mut header = self.trace_header();
        for rank in (0..self.ranks()).map(RankId) {
            visit(PartEvent::Rank(rank))?;
            let Some(mut part) = self.rank(rank)? else {
                header.interrupted = true;
                continue;
            };
            for op in &mut part {
                visit(PartEvent::Op(op?))?;
            }
            header.interrupted |= matches!(part.end(), Some(PartEnd::Aborted | PartEnd::Interrupted) | None);
            for (name, count) in part.unrecorded() {
                *header.unrecorded.entry(name.clone()).or_default() += count;
            }
        }
        Ok(header)
    }

    /// Writes the parts as one trace file. `complete` may set what the parts do not know (cores of the host, date).
    pub fn convert(
        &self,
        path: impl AsRef<Path>,
        complete: impl FnOnce(&mut TraceHeader),
    ) -> Result<TraceMetadata, PartsError> {
        let mut writer = TraceWriter::create(path, self.trace_header())?;
        let mut header = self.read(|event| match event {
            PartEvent::Rank(rank) => Ok(writer.begin_rank(rank)?),
            PartEvent::Op(op) => Ok(writer.push(&op)?),
        })?;
        complete(&mut header);
        *writer.header_mut() = header;
        Ok(writer.finish()?)
    }
}

/// What [`Parts::read`] meets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PartEvent {
    /// The operations of this rank follow.
    Rank(RankId),
    /// The next operation of the rank.
    Op(Op),
}

/// The rank in a part's file name.
fn rank_of_file(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("rank-")?.strip_suffix(".part")?;
    if digits.len() < 5 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Trace;
    use proptest::prelude::*;

    fn header_bytes(rank: u32, size: u32) -> Vec<u8> {
        let mut bytes = b"weftpart".to_vec();
        for number in [1, rank, size, 77, 20, 0, 4, 1] {
            bytes.extend(u32::to_le_bytes(number));
        }
        for text in ["MPICH 5\0", "lmp\0-in\0x\0"] {
            bytes.extend(u32::to_le_bytes(text.len() as u32));
            bytes.extend(text.as_bytes());
        }
        bytes
    }

    fn ops(records: &[u8]) -> (Vec<Op>, PartReader<io::Cursor<Vec<u8>>>) {
        let bytes = [header_bytes(1, 4), records.to_vec()].concat();
        let mut part = PartReader::new("memory", io::Cursor::new(bytes)).unwrap();
        let ops = part.by_ref().collect::<Result<_, _>>().unwrap();
        (ops, part)
    }

    const ALL: &[&[u8]] = &[
        &[1, 0xE8, 0x07],                                                       // compute 1000 ns
        &[2, 3, 14, 0, 0, 0x80, 0x01, 1], // synchronous send of 128 B to 3, tag 7
        &[5, 2, 0, 0, 0, 0, 8, 3, 0, 0, 0, 9, 0, 0, 0], // irecv from any, any tag; matched 3, tag 9
        &[7, 3, 0, 0, 0, 0, 8, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], // a cancelled one
        &[10, 2, 2, 3, 1],                // waitany of 2 and 3: the second
        &[11, 0, 11, 0, 0, 0, 24, 8, 0, 1, 4, 8, 8, 0, 8, 2, 4, 1, 2, 8], // alltoallv
        &[12, 1, 5, 1, 3, 3, 2],          // communicator (1, 5): 3, 1
        &[17, 6, 3, b'f', b'o', b'o'],    // the name of call 6
        &[18, 6],                         // an unrecorded call
        &[16, 2, b'h', b'i'],             // a marker
        &[19, 1],                         // MPI_Finalize
    ];

    /// Catches a field read in the wrong order or with the wrong encoding.
    #[test]
    fn records_become_the_operations_they_stand_for() {
        let (ops, part) = ops(&ALL.concat());
        let zero = RequestId(0);
        let expected = [
            Op::Compute { span: Span::from_us(1) },
            Op::Isend {
                to: RankId(3),
                tag: 7,
                comm: CommId::WORLD,
                bytes: Bytes::new(128),
                mode: SendMode::Synchronous,
                request: zero,
            },
            Op::Wait { request: zero },
            Op::Irecv {
                from: None,
                tag: None,
                comm: CommId::WORLD,
                bytes: Bytes::new(8),
                matched: Some((RankId(3), 9)),
                request: RequestId(2),
            },
            Op::Waitany { requests: vec![RequestId(2), RequestId(3)], completed: 1 },
            Op::Collective {
                kind: Collective::Alltoallv,
                comm: CommId::WORLD,
                root: None,
                sizes: CollectiveSizes {
                    send: Bytes::new(24),
                    receive: Bytes::new(8),
                    send_counts: vec![8, 8, 0, 8],
                    receive_counts: vec![0, 0, 8, 0],
                    element: 0,
                },
                request: None,
            },
            Op::Communicator {
                comm: CommId(1 << 32 | 5),
                members: vec![RankRange { first: 3, stride: -2, count: 2 }],
            },
            Op::Marker { text: "hi".into() },
        ];
        assert_eq!(ops, expected);
        assert_eq!(part.end(), Some(PartEnd::Finalized));
        assert_eq!(part.unrecorded(), &BTreeMap::from([("foo".to_owned(), 1)]));
        assert_eq!(part.header().command, ["lmp", "-in", "x"]);
        assert_eq!(part.header().mpi_library, "MPICH 5");
    }

    /// Catches a reader that fails, or invents operations, where a killed rank's part breaks off.
    #[test]
    fn a_part_cut_anywhere_reads_up_to_the_cut() {
        let whole = ALL.concat();
        let (all, _) = ops(&whole);
        for cut in 0..whole.len() {
            for zeros in [0, 100] {
                let mut records = whole[..cut].to_vec();
                // A tag is written after its body: what lies behind the last whole record is zero.
                if zeros > 0 {
                    let ends = ALL.iter().scan(0, |end, record| {
                        *end += record.len();
                        Some(*end)
                    });
                    records.truncate(ends.filter(|&end| end <= cut).last().unwrap_or(0));
                    records.resize(records.len() + zeros, 0);
                }
                let (some, part) = ops(&records);
                assert!(some.len() <= all.len() && all.starts_with(&some), "cut at {cut}");
                assert_eq!(part.end(), Some(PartEnd::Interrupted));
            }
        }
    }

    /// Catches a damaged record that is passed on as an operation.
    #[test]
    fn senseless_records_are_refused_with_their_place() {
        for (record, what) in [
            (&[99u8][..], "record tag 99"),
            (&[2, 4, 0, 0, 0, 0, 0], "destination rank 4"),
            (&[8, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F], "64 bits"),
            (&[10, 1, 2, 1], "completed request 1"),
            (&[11, 0, 20], "collective 20"),
            (&[12, 0, 1, 1, 2, 2, 3], "outside the world"),
            (&[18, 3], "call 3 has no name"),
            (&[16, 0xFF, 0xFF, 0xFF, 0x7F], "a text of"),
        ] {
            let bytes = [header_bytes(1, 4), vec![1, 5], record.to_vec()].concat();
            let mut part = PartReader::new("memory", io::Cursor::new(bytes)).unwrap();
            assert!(part.next().unwrap().is_ok());
            let error = part.next().unwrap().unwrap_err().to_string();
            let offset = header_bytes(1, 4).len() + 2;
            assert!(error.contains(what) && error.contains(&format!("byte {offset}:")), "{error}");
            assert!(part.next().is_none());
        }
    }

    /// Catches a conversion that loses ranks, the mark of an interruption, or the unrecorded calls.
    #[test]
    fn a_folder_becomes_one_trace() {
        let folder = tempfile::tempdir().unwrap();
        let parts = folder.path().join("x.parts");
        std::fs::create_dir(&parts).unwrap();
        std::fs::write(parts.join("rank-00000.part"), [header_bytes(0, 3), ALL[..10].concat()].concat())
            .unwrap();
        std::fs::write(
            parts.join("rank-00002.part"),
            [header_bytes(2, 3), ALL[0].to_vec(), vec![19, 2]].concat(),
        )
        .unwrap();
        std::fs::write(parts.join("notes.txt"), "x").unwrap();
        // Ranks of the records reach to 3: a world of 3 refuses them.
        let error = Parts::open(&parts).unwrap().convert(folder.path().join("x.weft"), |_| {}).unwrap_err();
        assert!(matches!(error, PartsError::Record { .. }), "{error}");
        assert!(!folder.path().join("x.weft").exists());

        for (rank, records) in [(0, [ALL[0], ALL[7], ALL[8]].concat()), (2, [ALL[0], &[19, 2]].concat())] {
            let bytes = [header_bytes(rank, 3), records].concat();
            std::fs::write(parts.join(format!("rank-{rank:05}.part")), bytes).unwrap();
        }
        let path = folder.path().join("x.weft");
        let metadata =
            Parts::open(&parts).unwrap().convert(&path, |header| header.host_cores = Some(2)).unwrap();
        assert_eq!(metadata.rank_operations, [1, 0, 1]);
        assert!(metadata.header.interrupted);
        assert_eq!(metadata.header.unrecorded["foo"], 1);
        assert_eq!(metadata.header.mpi_version, "4.1");
        assert_eq!(Trace::open(&path).unwrap().metadata(), &metadata);
    }

    #[test]
    fn parts_of_two_recordings_are_not_mixed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("rank-00000.part"), header_bytes(0, 2)).unwrap();
        std::fs::write(folder.path().join("rank-00001.part"), header_bytes(1, 3)).unwrap();
        assert!(matches!(Parts::open(folder.path()), Err(PartsError::Header { .. })));
        let empty = tempfile::tempdir().unwrap();
        assert!(matches!(Parts::open(empty.path()), Err(PartsError::NoParts { .. })));
    }

    proptest! {
        /// Catches panics, endless loops and allocations by a count that lies.
        #[test]
        fn any_bytes_are_read_or_refused(records in prop::collection::vec(any::<u8>(), 0..400)) {
            let bytes = [header_bytes(1, 4), records.clone()].concat();
            let part = PartReader::new("memory", io::Cursor::new(bytes)).unwrap();
            prop_assert!(part.count() <= 2 * records.len());
            let _ = PartReader::new("memory", io::Cursor::new(records)).map(Iterator::count);
        }
    }
}
