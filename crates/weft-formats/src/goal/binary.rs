//! GOAL as txt2bin makes it of text: little-endian numbers, packed.
//!
//! ```text
//! u64 4223 │ u32 ranks │ u8 largest cpu │ u8 largest nic │ for each rank: u64 begin, u64 end   (from byte 8
//! on) rank:  u32 operations │ u32 first ones │ their numbers │ operations of 39 bytes │ numbers of
//! dependants
//! ```

use super::{ANY, GoalNotes, MAX_BYTES, MAX_NODES, MAX_RANKS, nanoseconds};
use crate::error::{FilePlace, TraceError};
use crate::graph::{Dependency, DependencyCycle, GraphAction, GraphFiles, GraphOperation, RankGraph};
use crate::header::TraceHeader;
use crate::input::{Input, InputReader};
use std::ops::Range;
use std::sync::Arc;
use weft_trace::op::SignalAt;
use weft_units::{Bytes, RankId};

/// The first bytes of a file.
pub(super) const MAGIC: [u8; 8] = 4223u64.to_le_bytes();

/// Those of a file that LogGOPSim has run in place, and so used up.
const USED_UP: [u8; 8] = 2342u64.to_le_bytes();

/// Offsets count from here.
pub(super) const BASE: u64 = 8;

/// Bytes of ranks, and of the largest core and interface.
pub(super) const HEAD_BYTES: u64 = 6;

/// Bytes of the two offsets of a rank.
pub(super) const OFFSETS_BYTES: u64 = 16;

/// Bytes of an operation.
const NODE_BYTES: u64 = 39;

/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// Whether a file begins as binary GOAL does.
pub(super) fn knows(head: &[u8]) -> bool {
    head.starts_with(&MAGIC) || head.starts_with(&USED_UP)
}

/// A file of binary GOAL.
pub(super) struct BinaryGoal {
    input: Arc<Input>,
    /// The bytes of each rank.
    ranks: Vec<Range<u64>>,
    passed_over: GoalNotes,
}

impl BinaryGoal {
    /// Reads where the ranks are.
    pub(super) fn open(input: Arc<Input>) -> Result<BinaryGoal, TraceError> {
        let mut reader = InputReader::new(&input, 0..u64::MAX, CHUNK);
        if reader.take::<8>()? != MAGIC {
            let reason =
                "LogGOPSim has run this file with --save-mem, which uses it up; make it again with txt2bin";
            return Err(input.error(FilePlace::Byte(0), reason));
        }
        let ranks = u32::from_le_bytes(reader.take()?);
        reader.take::<2>()?;
        let table = u64::from(ranks).saturating_mul(OFFSETS_BYTES);
        if ranks == 0 || ranks > MAX_RANKS || table > reader.rest() {
            let reason = format!(
                "{ranks} ranks announced, and no room for them; the file was cut off, or is none of GOAL"
            );
            return Err(input.error(FilePlace::Byte(BASE), reason));
        }
        let mut found = Vec::with_capacity(ranks as usize);
        for rank in 0..ranks {
            let place = reader.position();
            let (start, end) = (u64::from_le_bytes(reader.take()?), u64::from_le_bytes(reader.take()?));
            let least = HEAD_BYTES + table;
            let whole = end
                .checked_add(BASE)
                .filter(|end| start >= least && start + BASE <= *end && *end <= input.len());
            let Some(end) = whole else {
                let reason =
                    format!("rank {rank} lies from {start} to {end}, outside of the file; copy it again");
                return Err(input.error(FilePlace::Byte(place), reason));
            };
            found.push(start + BASE..end);
        }
        Ok(BinaryGoal { input, ranks: found, passed_over: GoalNotes::default() })
    }

    fn operation(
        &mut self,
        reader: &mut InputReader,
    ) -> Result<(GraphOperation, [Dependants; 2]), TraceError> {
        let place = reader.position();
        let input = Arc::clone(&self.input);
        let fail = |reason: String| input.error(FilePlace::Byte(place), reason);
        let mut number = || reader.take().map(u32::from_le_bytes);
        let _waits_for = number()?;
        let [kind] = reader.take()?;
        let peer = u32::from_le_bytes(reader.take()?);
        let size = u64::from_le_bytes(reader.take()?);
        let tag = u32::from_le_bytes(reader.take()?);
        let [core, interface] = reader.take()?;
        let mut number = || reader.take().map(u32::from_le_bytes);
        let ended = Dependants { count: number()?, first: number()? };
        let started = Dependants { count: number()?, first: number()? };
        let rank = |peer: u32| {
            let ranks = self.ranks.len() as u32;
            let reason = || fail(format!("rank {peer} of {ranks}; the file is damaged, make it again"));
            if peer < ranks { Ok(RankId(peer)) } else { Err(reason()) }
        };
        let bytes = || match size <= MAX_BYTES {
            true => Ok(Bytes::new(size)),
            false => Err(fail(format!("a message of {size} bytes; at most {MAX_BYTES}"))),
        };
        let action = match kind {
            1 => GraphAction::Send { to: rank(peer)?, bytes: bytes()?, tag: tag.cast_signed() },
            2 => {
                let from = if peer == ANY { None } else { Some(rank(peer)?) };
                let tag = (tag != ANY).then(|| tag.cast_signed());
                GraphAction::Receive { from, bytes: bytes()?, tag }
            }
            3 => {
                let span = nanoseconds(size);
                let span =
                    span.ok_or_else(|| fail(format!("{size} ns of computation are more than 53 days")))?;
                GraphAction::Compute { span }
            }
            other => {
                return Err(fail(format!(
                    "{other} is no kind of operation; there are 1 (send), 2 (recv), 3 (calc)"
                )));
            }
        };
        if kind != 3 {
            self.passed_over.interfaces += u64::from(interface > 0);
        }
        Ok((GraphOperation { action, core: core.into() }, [started, ended]))
    }
}

/// The operations that wait for one, as numbers behind the operations.
#[derive(Clone, Copy, Debug)]
struct Dependants {
    count: u32,
    first: u32,
}

impl GraphFiles for BinaryGoal {
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
        let ranks = self.ranks.len() as u32;
        let recorder = "GOAL, binary".to_owned();
        TraceHeader { ranks, recorder, notes: self.passed_over.notes(), ..TraceHeader::default() }
    }

    fn rank(&mut self, rank: RankId) -> Result<RankGraph, TraceError> {
        let range = self.ranks[rank.index()].clone();
        let input = Arc::clone(&self.input);
        let mut reader = InputReader::new(&input, range.clone(), CHUNK);
        let (nodes, first) = (u32::from_le_bytes(reader.take()?), u32::from_le_bytes(reader.take()?));
        let bytes = u64::from(first) * 4 + u64::from(nodes) * NODE_BYTES;
        if bytes > reader.rest() || nodes as usize > MAX_NODES {
            let reason = format!("{nodes} operations announced, and no room for them; copy the file again");
            return Err(input.error(FilePlace::Byte(range.start), reason));
        }
        reader.skip(u64::from(first) * 4)?;
        let mut graph = RankGraph { nodes: Vec::with_capacity(nodes as usize), ..RankGraph::default() };
        let mut dependants = Vec::with_capacity(nodes as usize);
        for _ in 0..nodes {
            let (node, of_node) = self.operation(&mut reader)?;
            graph.nodes.push(node);
            dependants.push(of_node);
        }
        let appendix = reader.position()..range.end;
        let mut reader = InputReader::new(&input, appendix.clone(), CHUNK);
        // They stand in the order of the operations: starts behind ends, and none is left out.
        for (on, [started, ended]) in (0..).zip(dependants) {
            for (of, at) in [(ended, SignalAt::End), (started, SignalAt::Start)] {
                if of.count > 0 && appendix.start + 4 * u64::from(of.first) != reader.position() {
                    let reason = format!(
                        "the dependants of operation {on} do not follow those before it; make the file again"
                    );
                    return Err(input.error(FilePlace::Byte(reader.position()), reason));
                }
                for _ in 0..of.count {
                    let place = reader.position();
                    let node = u32::from_le_bytes(reader.take()?);
                    if node >= nodes {
                        let reason = format!(
                            "operation {node} of {nodes} waits for operation {on}; copy the file again"
                        );
                        return Err(input.error(FilePlace::Byte(place), reason));
                    }
                    graph.dependencies.push(Dependency { node, on, at });
                }
            }
        }
        Ok(graph)
    }

    fn cycle(&self, rank: RankId, cycle: DependencyCycle) -> TraceError {
        let place = FilePlace::Byte(self.ranks[rank.index()].start);
        let node = cycle.node;
        let reason = format!(
            "operation {node} of rank {rank} waits for itself, by way of others; make the file again"
        );
        self.input.error(place, reason)
    }
}
