//! One part: what a rank has recorded, operation by operation.

use super::memory::Memory;
use super::record::{ONE_SIDED, SYNCS, collective, communicator, rank, receive, requests, send, tag_from};
use super::source::{MAX_RANKS, Source, Stop};
use super::{PARTS_VERSION, PartsError};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use weft_trace::op::{CommId, Op, RequestId, WindowId};
use weft_units::{Bytes, RankId, Span};

const MAGIC: &[u8; 8] = b"weftpart";

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

/// The header of a part.
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
    /// Where the part could not grow: a full disk, or the limit of a file's size. The program ran on.
    NoRoom,
    /// In the midst: the process was killed, or it is still running.
    Interrupted,
}

/// Reads one part, operation by operation.
///
/// The blocking calls of the program come as their parts, with request numbers 0 (a send) and 1 (a receive),
/// which no other request uses.
pub struct PartReader<R> {
    path: PathBuf,
    source: Source<R>,
    header: PartHeader,
    memory: Memory,
    /// The rest of a record that stands for several operations.
    pending: VecDeque<Op>,
    names: BTreeMap<u64, String>,
    unrecorded: BTreeMap<String, u64>,
    end: Option<PartEnd>,
}

/// First bytes of the records, as the recorder writes them. Fields are read in the order in which they are
/// written.
mod tag {
    /// The file is longer than its records: the rest was never written.
    pub const UNWRITTEN: u8 = 0;
    pub const COMPUTE: u8 = 1;
    pub const SEND: u8 = 2;
    pub const ISEND: u8 = 3;
    pub const RECEIVE: u8 = 4;
    pub const IRECV: u8 = 5;
    pub const CANCELLED_SEND: u8 = 6;
    pub const CANCELLED_RECEIVE: u8 = 7;
    pub const WAIT: u8 = 8;
    pub const WAITALL: u8 = 9;
    pub const WAITANY: u8 = 10;
    pub const COLLECTIVE: u8 = 11;
    pub const COMMUNICATOR: u8 = 12;
    pub const WINDOW: u8 = 13;
    pub const ONE_SIDED: u8 = 14;
    pub const SYNC: u8 = 15;
    pub const MARKER: u8 = 16;
    /// The name of a call that is not recorded.
    pub const CALL_NAME: u8 = 17;
    pub const UNRECORDED_CALL: u8 = 18;
    pub const END: u8 = 19;
    pub const PROBE: u8 = 20;
    /// A test that has found a message.
    pub const IPROBE: u8 = 21;
    pub const LAST: u8 = IPROBE;
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
                memory: Memory::new(header.size),
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

    /// The part's header.
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
        let (source, size) = (&mut self.source, u64::from(self.header.size));
        let memory = &mut self.memory;
        match source.byte()? {
            tag::UNWRITTEN => return Err(Stop::Ended),
            tag::SEND => {
                let send = send(source, size, SEND_INSIDE)?;
                self.pending.extend([memory.settled(send), Op::Wait { request: SEND_INSIDE }]);
            }
            tag::RECEIVE => {
                let receive = receive(source, size, RECEIVE_INSIDE)?;
                self.pending.extend([memory.settled(receive), Op::Wait { request: RECEIVE_INSIDE }]);
            }
            // Cancelled before they matched: nothing was sent. The buffer was named all the same, and whether
            // the cancellation came in time is chance.
            tag::CANCELLED_SEND => {
                let request = source.request()?;
                memory.settled(send(source, size, request)?);
            }
            tag::CANCELLED_RECEIVE => {
                let request = source.request()?;
                memory.settled(receive(source, size, request)?);
            }
            tag::CALL_NAME => {
                let index = source.number()?;
                let name = text(source)?;
                self.names.insert(index, name);
            }
            tag::UNRECORDED_CALL => {
                let index = source.number()?;
                let name = self.names.get(&index);
                let name = name.ok_or_else(|| Stop::Wrong(format!("call {index} has no name")))?;
                *self.unrecorded.entry(name.clone()).or_default() += 1;
            }
            tag::END => self.end = Some(end(source)?),
            tag => self.pending.push_back(memory.settled(operation(tag, source, size)?)),
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

/// A record that stands for one operation, among `size` ranks.
fn operation<R: BufRead>(tag: u8, source: &mut Source<R>, size: u64) -> Result<Op, Stop> {
    Ok(match tag {
        tag::COMPUTE => compute(source)?,
        tag::ISEND => {
            let request = source.request()?;
            send(source, size, request)?
        }
        tag::IRECV => {
            let request = source.request()?;
            receive(source, size, request)?
        }
        tag::WAIT => Op::Wait { request: source.request()? },
        tag::WAITALL => Op::Waitall { requests: requests(source)? },
        tag::WAITANY => {
            let requests = requests(source)?;
            let completed = source.below(requests.len() as u64, "completed request")? as u32;
            Op::Waitany { requests, completed }
        }
        tag::COLLECTIVE => collective(source, size)?,
        tag::COMMUNICATOR => communicator(source, size)?,
        tag::WINDOW => Op::Window {
            window: WindowId(source.id()?),
            comm: CommId(source.id()?),
            bytes: Bytes::new(source.number()?),
            buffer: source.address()?,
        },
        tag::ONE_SIDED => Op::OneSided {
            request: Some(source.request()?).filter(|request| request.0 != 0),
            kind: ONE_SIDED[source.below(ONE_SIDED.len() as u64, "one-sided operation")? as usize],
            window: WindowId(source.id()?),
            target: rank(source.below(size, "target rank")?),
            bytes: Bytes::new(source.number()?),
            buffer: source.address()?,
        },
        tag::SYNC => Op::Sync {
            kind: SYNCS[source.below(SYNCS.len() as u64, "synchronization")? as usize],
            window: WindowId(source.id()?),
            target: source.below(size + 1, "target rank")?.checked_sub(1).map(rank),
        },
        tag::MARKER => Op::Marker { text: text(source)? },
        probe @ (tag::PROBE | tag::IPROBE) => Op::Probe {
            from: rank(source.below(size, "source rank")?),
            tag: tag_from(source.signed()?)?,
            comm: CommId(source.id()?),
            tested: probe == tag::IPROBE,
        },
        tag => return Err(Stop::Wrong(format!("record tag {tag}, expected 1 to {}", tag::LAST))),
    })
}

fn compute<R: BufRead>(source: &mut Source<R>) -> Result<Op, Stop> {
    let ns = source.number()?;
    let ps = ns.checked_mul(1000).ok_or_else(|| Stop::Wrong(format!("computation of {ns} ns")))?;
    Ok(Op::Compute { span: Span::from_ps(ps) })
}

/// A text with its length before it.
fn text<R: BufRead>(source: &mut Source<R>) -> Result<String, Stop> {
    let length = source.number()?;
    source.text(length)
}

fn end<R: BufRead>(source: &mut Source<R>) -> Result<PartEnd, Stop> {
    match source.number()? {
        1 => Ok(PartEnd::Finalized),
        2 => Ok(PartEnd::Exited),
        3 => Ok(PartEnd::Aborted),
        4 => Ok(PartEnd::NoRoom),
        other => Err(Stop::Wrong(format!("end {other}, expected 1 to 4"))),
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
            "version {version} of the parts, this weft reads version {PARTS_VERSION}; \
             build the recorder and weft from one source"
        )));
    }
    let (rank, size, process) = (source.fixed()?, source.fixed()?, source.fixed()?);
    if size > MAX_RANKS || rank >= size {
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io;
    use weft_trace::op::RankRange;
    use weft_trace::op::{Collective, CollectiveBuffers, CollectiveSizes, SendMode};
    use weft_trace::{DataType, Reduction, ReductionOperation};
    use weft_units::Address;

    pub(in crate::parts) fn header_bytes(rank: u32, size: u32) -> Vec<u8> {
        let mut bytes = b"weftpart".to_vec();
        for number in [PARTS_VERSION, rank, size, 77, 20, 0, 4, 1] {
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

    pub(in crate::parts) const ALL: &[&[u8]] = &[
        &[1, 0xE8, 0x07],                                                          // compute 1000 ns
        &[2, 3, 14, 0, 0, 0x80, 0x01, 1, 0x90, 0xC0, 0x04], // synchronous send of 128 B to 3, tag 7
        &[5, 2, 0, 0, 0, 0, 8, 0xA0, 0xC0, 0x04, 3, 0, 0, 0, 9, 0, 0, 0], // irecv from any; matched 3, tag 9
        &[7, 3, 0, 0, 0, 0, 8, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], // a cancelled one
        &[10, 2, 2, 3, 1],                                  // waitany of 2 and 3: the second
        // alltoallv, its send buffer unknown
        &[11, 0, 11, 0, 0, 0, 24, 8, 0, 0, 0, 1, 4, 8, 8, 0, 8, 2, 4, 1, 2, 8, 0, 0x90, 0xC0, 0x04],
        &[12, 1, 5, 1, 3, 3, 2],                          // communicator (1, 5): 3, 1
        &[17, 6, 3, b'f', b'o', b'o'],                    // the name of call 6
        &[18, 6],                                         // an unrecorded call
        &[16, 2, b'h', b'i'],                             // a marker
        &[20, 3, 14, 0, 0],                               // a probe that found a message of 3, tag 7
        &[21, 3, 14, 0, 0],                               // a test that did
        &[11, 0, 3, 0, 0, 0, 8, 8, 8, 4, 10, 0, 0, 0, 0], // allreduce of a long by exclusive or
        &[19, 1],                                         // MPI_Finalize
    ];

    /// Catches a field read in the wrong order or with the wrong encoding.
    #[test]
    fn records_become_the_operations_they_stand_for() {
        let (ops, part) = ops(&ALL.concat());
        let zero = RequestId(0);
        // The first buffer, which the others begin within.
        const BEGIN: Address = Address::new(4096);
        let expected = [
            Op::Compute { span: Span::from_us(1) },
            Op::Isend {
                to: RankId(3),
                tag: 7,
                comm: CommId::WORLD,
                bytes: Bytes::new(128),
                mode: SendMode::Synchronous,
                buffer: Some(BEGIN),
                request: zero,
            },
            Op::Wait { request: zero },
            Op::Irecv {
                from: None,
                tag: None,
                comm: CommId::WORLD,
                bytes: Bytes::new(8),
                matched: Some((RankId(3), 9)),
                buffer: Some(BEGIN.plus(16)),
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
                    ..CollectiveSizes::default()
                },
                request: None,
                buffers: CollectiveBuffers { send: None, receive: Some(BEGIN) },
            },
            Op::Communicator {
                comm: CommId(1 << 32 | 5),
                members: vec![RankRange { first: 3, stride: -2, count: 2 }],
            },
            Op::Marker { text: "hi".into() },
            Op::Probe { from: RankId(3), tag: 7, comm: CommId::WORLD, tested: false },
            Op::Probe { from: RankId(3), tag: 7, comm: CommId::WORLD, tested: true },
            Op::Collective {
                kind: Collective::Allreduce,
                comm: CommId::WORLD,
                root: None,
                sizes: CollectiveSizes {
                    send: Bytes::new(8),
                    receive: Bytes::new(8),
                    element: 8,
                    reduction: Reduction {
                        operation: Some(ReductionOperation::BitwiseXor),
                        data_type: Some(DataType::Int64),
                    },
                    ..CollectiveSizes::default()
                },
                request: None,
                buffers: CollectiveBuffers::default(),
            },
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
            (&[11, 0, 3, 0, 0, 0, 8, 8, 8, 12], "data type 12"),
            (&[11, 0, 3, 0, 0, 0, 8, 8, 8, 4, 14], "operation of a reduction 14"),
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
