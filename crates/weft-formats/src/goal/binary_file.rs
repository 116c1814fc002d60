//! GOAL in binary, while it is written. The graph of one rank is in memory.

use super::writer::GoalFile;
use super::{ANY, binary};
use crate::error::TraceError;
use crate::graph::{Dependency, GraphAction, GraphOperation, RankGraph};
use crate::output::{self, unwritable};
use std::io::{BufWriter, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use tempfile::NamedTempFile;
use weft_trace::op::SignalAt;
use weft_units::RankId;

/// The file.
pub(super) struct BinaryFile {
    file: BufWriter<NamedTempFile>,
    /// The rank that is written.
    graph: RankGraph,
    /// Begins and ends of the ranks.
    places: Vec<[u64; 2]>,
    /// Bytes behind the first number.
    length: u64,
    largest_core: u8,
}

impl BinaryFile {
    /// Begins a file of so many ranks, beside `path`.
    pub(super) fn create(path: &Path, ranks: u32) -> Result<BinaryFile, TraceError> {
        let mut file = BufWriter::new(output::unfinished(path)?);
        let length = binary::HEAD_BYTES + u64::from(ranks) * binary::OFFSETS_BYTES;
        // The head is written at the end.
        file.seek(SeekFrom::Start(binary::BASE + length)).map_err(|error| unwritable(path, error))?;
        let (graph, places) = (RankGraph::default(), Vec::new());
        Ok(BinaryFile { file, graph, places, length, largest_core: 0 })
    }

    fn head(&mut self) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&binary::MAGIC)?;
        self.file.write_all(&(self.places.len() as u32).to_le_bytes())?;
        self.file.write_all(&[self.largest_core, 0])?;
        for place in self.places.iter().flatten() {
            self.file.write_all(&place.to_le_bytes())?;
        }
        Ok(())
    }
}

/// The operations that wait for one: for its end, and for its start.
fn dependants(graph: &RankGraph) -> Vec<[Vec<u32>; 2]> {
    let mut dependants = vec![<[Vec<u32>; 2]>::default(); graph.nodes.len()];
    for Dependency { node, on, at } in &graph.dependencies {
        dependants[*on as usize][usize::from(*at == SignalAt::Start)].push(*node);
    }
    dependants
}

/// The bytes of an operation before those of its dependants.
fn operation(operation: &GraphOperation, waits_for: u32) -> Vec<u8> {
    let (kind, peer, size, tag) = match operation.action {
        GraphAction::Send { to, bytes, tag } => (1u8, to.0, bytes.get(), tag.cast_unsigned()),
        GraphAction::Receive { from, bytes, tag } => {
            (2, from.map_or(ANY, |from| from.0), bytes.get(), tag.map_or(ANY, i32::cast_unsigned))
        }
        GraphAction::Compute { span } => (3, 0, span.as_ps() / 1000, 0),
        GraphAction::Collective { .. } => unreachable!("the writer turns no operation into a collective"),
    };
    let mut bytes = waits_for.to_le_bytes().to_vec();
    bytes.push(kind);
    bytes.extend(peer.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.extend(tag.to_le_bytes());
    // The core, of which there are 256, and the first interface.
    bytes.extend([operation.core as u8, 0]);
    bytes
}

impl GoalFile for BinaryFile {
    fn begin_rank(&mut self, _: RankId) -> std::io::Result<()> {
        self.graph = RankGraph::default();
        Ok(())
    }

    fn operation(&mut self, operation: &GraphOperation) -> std::io::Result<()> {
        self.largest_core = self.largest_core.max(operation.core as u8);
        self.graph.nodes.push(*operation);
        Ok(())
    }

    fn dependency(&mut self, dependency: Dependency) -> std::io::Result<()> {
        self.graph.dependencies.push(dependency);
        Ok(())
    }

    fn end_rank(&mut self) -> std::io::Result<()> {
        let graph = std::mem::take(&mut self.graph);
        let mut waits_for = vec![0u32; graph.nodes.len()];
        graph.dependencies.iter().for_each(|dependency| waits_for[dependency.node as usize] += 1);
        let first: Vec<u32> =
            (0..).zip(&waits_for).filter(|(_, count)| **count == 0).map(|it| it.0).collect();
        let dependants = dependants(&graph);
        let mut bytes = (graph.nodes.len() as u32).to_le_bytes().to_vec();
        bytes.extend((first.len() as u32).to_le_bytes());
        bytes.extend(first.iter().flat_map(|node| node.to_le_bytes()));
        let mut listed = 0u32;
        for ((node, waits_for), [ended, started]) in graph.nodes.iter().zip(&waits_for).zip(&dependants) {
            bytes.extend(operation(node, *waits_for));
            for list in [ended, started] {
                bytes.extend((list.len() as u32).to_le_bytes());
                bytes.extend(listed.to_le_bytes());
                listed += list.len() as u32;
            }
        }
        bytes.extend(dependants.iter().flatten().flatten().flat_map(|node| node.to_le_bytes()));
        self.file.write_all(&bytes)?;
        let begin = self.length;
        self.length += bytes.len() as u64;
        self.places.push([begin, self.length]);
        Ok(())
    }

    fn finish(mut self: Box<Self>, path: &Path) -> Result<(), TraceError> {
        self.head().map_err(|error| unwritable(path, error))?;
        let file = self.file.into_inner().map_err(|error| unwritable(path, error.into_error()))?;
        output::finish(file, path)
    }
}
