//! The files of a run: one for each rank, `PREFIX.RANK.et`.

use super::ChakraNotes;
use super::et_def::ChakraNode;
use super::groups::Groups;
use super::messages::ChakraMessages;
use super::node::RankOfRun;
use super::rank::RankNodes;
use crate::error::{FilePlace, TraceError};
use crate::flop_rate::FlopRate;
use crate::graph::{DependencyCycle, GraphFiles, RankGraph};
use crate::header::TraceHeader;
use crate::input::Input;
use prost::Message as _;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use weft_units::RankId;

/// The end of the names of files.
pub(super) const EXTENSION: &str = "et";

/// The files of a run.
pub(super) struct ChakraRun {
    file: String,
    /// By rank.
    inputs: Vec<Arc<Input>>,
    groups: Groups,
    speed: Option<FlopRate>,
    notes: ChakraNotes,
    /// The places of the operations of the rank that was read last.
    places: Vec<u64>,
}

/// The prefix and the rank of a name. Another name is that of a run of one rank.
fn prefix_and_rank(name: &str) -> Option<(&str, u32)> {
    let (prefix, number) = name.strip_suffix(EXTENSION)?.strip_suffix('.')?.rsplit_once('.')?;
    let rank = number.parse::<u32>().ok().filter(|rank| rank.to_string() == number)?;
    Some((prefix, rank))
}

impl ChakraRun {
    /// Opens the run of which one rank's file is named.
    pub(super) fn open(path: &Path, speed: Option<FlopRate>) -> Result<ChakraRun, TraceError> {
        let named = Input::open(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some((prefix, _)) = prefix_and_rank(&name) else {
            return Ok(ChakraRun { groups: Groups::beside(path)?, ..ChakraRun::of_one(named, speed) });
        };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let listed = folder.unwrap_or(Path::new(".")).read_dir();
        let listed = listed.and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
        let read = |source| TraceError::Read { file: named.name().to_owned(), source };
        let names = listed.map_err(read)?.into_iter().map(|entry| entry.file_name());
        let known: BTreeSet<u32> = names
            .filter_map(|name| {
                prefix_and_rank(name.to_str()?).filter(|(of, _)| *of == prefix).map(|(_, rank)| rank)
            })
            .collect();
        let last = known.last().copied().unwrap_or(0);
        let file_of = |rank: u32| path.with_file_name(format!("{prefix}.{rank}.{EXTENSION}"));
        if let Some(rank) = (0..last).find(|rank| !known.contains(rank)) {
            let reason = format!(
                "rank {rank} of ranks 0 to {last} lies in {}, which is not there; copy it beside this file",
                file_of(rank).display()
            );
            return Err(TraceError::Run { file: named.name().to_owned(), reason });
        }
        let inputs =
            (0..=last).map(|rank| Input::open(&file_of(rank)).map(Arc::new)).collect::<Result<_, _>>()?;
        let file = named.name().to_owned();
        Ok(ChakraRun { file, inputs, groups: Groups::beside(path)?, ..ChakraRun::of_one(named, speed) })
    }

    /// A run of one rank.
    pub(super) fn of_one(input: Input, speed: Option<FlopRate>) -> ChakraRun {
        ChakraRun {
            file: input.name().to_owned(),
            inputs: vec![Arc::new(input)],
            groups: Groups::default(),
            speed,
            notes: ChakraNotes::default(),
            places: Vec::new(),
        }
    }
}

impl GraphFiles for ChakraRun {
    fn format(&self) -> &'static str {
        super::FORMAT.name
    }

    fn file(&self) -> &str {
        &self.file
    }

    fn files(&self) -> Vec<&str> {
        self.inputs.iter().map(|input| input.name()).collect()
    }

    fn bytes(&self) -> u64 {
        self.inputs.iter().map(|input| input.len()).sum()
    }

    fn header(&self) -> TraceHeader {
        let (ranks, notes) = (self.inputs.len() as u32, self.notes.notes());
        TraceHeader { ranks, recorder: "Chakra".to_owned(), notes, ..TraceHeader::default() }
    }

    fn rank(&mut self, rank: RankId) -> Result<RankGraph, TraceError> {
        let input = Arc::clone(&self.inputs[rank.index()]);
        let fail = |place: u64, reason: String| input.error(FilePlace::Byte(place), reason);
        let mut messages = ChakraMessages::open(&input)?;
        let of = RankOfRun { rank, ranks: self.inputs.len() as u32, speed: self.speed };
        let mut nodes = RankNodes::new(of);
        while let Some(message) = messages.next()? {
            let place = message.place;
            let node = ChakraNode::decode(message.bytes).map_err(|error| {
                fail(
                    place,
                    format!("no node of a Chakra trace ({error}); the file is damaged, copy it again"),
                )
            })?;
            let added = nodes.add(&node, place, &mut self.notes);
            added.map_err(|reason| fail(place, format!("{}: {reason}", node.described())))?;
        }
        let read = nodes.finish(&mut self.groups, &mut self.notes);
        let read = read.map_err(|fault| fail(fault.place, fault.reason))?;
        self.places = read.places;
        Ok(read.graph)
    }

    fn cycle(&self, rank: RankId, cycle: DependencyCycle) -> TraceError {
        let place = self.places.get(cycle.node as usize).copied().unwrap_or(0);
        let reason = "this node waits for itself, by way of others; take one of their data_deps out";
        self.inputs[rank.index()].error(FilePlace::Byte(place), reason)
    }
}
