//! Groups of ranks that call collectives among themselves, by name.
//!
//! ```text
//!   comm_group.json     {"1": [0, 1], "2": [2, 3]}              as ASTRA-sim's --comm-group-configuration
//!   a METADATA_NODE     ['[{"pg_name": "1", "ranks": [0, 1]}, …]']   in its inputs, as PyTorch writes it
//! ```
//! No name, and the name 0, are the world. Of two lists of one name, that of the rank's own file counts.

use crate::calls::ranges;
use crate::error::{FilePlace, TraceError};
use crate::graph::GraphCommunicator;
use crate::input::Input;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use weft_trace::op::CommId;
use weft_units::RankId;

/// The file of groups, beside those of the ranks.
const GROUPS_FILE: &str = "comm_group.json";

/// Largest file of groups.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Members by the name of their group.
type MembersByName = BTreeMap<String, Vec<u32>>;

/// A group of which a rank is a member.
#[derive(Clone, Debug)]
pub(super) struct ChakraGroup {
    pub(super) comm: CommId,
    pub(super) size: u32,
    pub(super) first: RankId,
}

/// The groups of a run.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// Of the file; `None`: it is not there.
    listed: Option<MembersByName>,
    /// Numbers of the groups that were met, by name and members.
    numbers: BTreeMap<(String, Vec<u32>), CommId>,
    /// Number of groups that begin with a rank.
    begun: BTreeMap<u32, u32>,
}

/// The groups of a rank.
#[derive(Debug, Default)]
pub(super) struct OwnGroups {
    /// As its metadata list them.
    listed: MembersByName,
    /// Those that it has used, by name.
    found: BTreeMap<String, ChakraGroup>,
    pub(super) communicators: Vec<GraphCommunicator>,
}

/// A process group in the metadata of PyTorch.
#[derive(Deserialize)]
struct ProcessGroup {
    pg_name: String,
    ranks: Vec<u32>,
}

impl Groups {
    /// The groups in a file beside another.
    pub(super) fn beside(path: &Path) -> Result<Groups, TraceError> {
        let path = path.with_file_name(GROUPS_FILE);
        if !path.is_file() {
            return Ok(Groups::default());
        }
        let input = Input::open(&path)?;
        if input.len() > MAX_FILE_BYTES {
            let reason = format!("groups in more than {MAX_FILE_BYTES} bytes; name another file so");
            return Err(input.error(FilePlace::Byte(0), reason));
        }
        let mut text = vec![0; input.len() as usize];
        input.read_at(&mut text, 0)?;
        let listed = serde_json::from_slice(&text).map_err(|error| {
            let reason = format!("{error}; write the ranks of each group, such as {{\"1\": [0, 1]}}");
            input.error(FilePlace::Line(error.line() as u64), reason)
        })?;
        Ok(Groups { listed: Some(listed), ..Groups::default() })
    }

    /// The group of this name, of which `rank` is a member.
    pub(super) fn find(
        &mut self,
        name: &str,
        own: &mut OwnGroups,
        rank: RankId,
        ranks: u32,
    ) -> Result<ChakraGroup, String> {
        if name.is_empty() || name == "0" {
            return Ok(ChakraGroup { comm: CommId::WORLD, size: ranks, first: RankId(0) });
        }
        if let Some(found) = own.found.get(name) {
            return Ok(found.clone());
        }
        let listed = own.listed.get(name).or_else(|| self.listed.as_ref()?.get(name));
        let members = match (listed, &self.listed) {
            (Some(members), _) if members.is_empty() => (0..ranks).collect(),
            (Some(members), _) => members.clone(),
            (None, Some(_)) => return Err(format!("{GROUPS_FILE} has no group \"{name}\"; add it")),
            (None, None) => {
                return Err(format!(
                    "nothing says who is in the group \"{name}\" (pg_name): write the ranks of each group \
                     into {GROUPS_FILE} beside this file, such as {{\"{name}\": [0, 1]}}"
                ));
            }
        };
        check(&members, rank, ranks).map_err(|reason| format!("the group \"{name}\" {reason}"))?;
        let (first, size) = (members[0], members.len() as u32);
        let ranges = ranges(&members);
        let comm = *self.numbers.entry((name.to_owned(), members)).or_insert_with(|| {
            // The world is the first communicator that begins with rank 0.
            let count = self.begun.entry(first).or_default();
            *count += 1;
            CommId(u64::from(first) << 32 | u64::from(*count))
        });
        own.communicators.push(GraphCommunicator { comm, members: ranges });
        let group = ChakraGroup { comm, size, first: RankId(first) };
        own.found.insert(name.to_owned(), group.clone());
        Ok(group)
    }
}

/// Checks the members of a group. Errors with the end of a sentence.
fn check(members: &[u32], rank: RankId, ranks: u32) -> Result<(), String> {
    if let Some(member) = members.iter().find(|member| **member >= ranks) {
        return Err(format!("has rank {member}, of ranks 0 to {}; correct its list", ranks - 1));
    }
    let mut known = BTreeSet::new();
    if let Some(twice) = members.iter().find(|member| !known.insert(**member)) {
        return Err(format!("has rank {twice} twice; correct its list"));
    }
    match known.contains(&rank.0) {
        true => Ok(()),
        false => Err(format!("is without rank {rank}, which calls it; correct its list")),
    }
}

impl OwnGroups {
    /// Takes the process groups that a metadata node lists in its inputs, if it does.
    pub(super) fn list(&mut self, inputs: &str) {
        let text = inputs.strip_prefix("['").and_then(|text| text.strip_suffix("']")).unwrap_or(inputs);
        if let Ok(groups) = serde_json::from_str::<Vec<ProcessGroup>>(text) {
            self.listed.extend(groups.into_iter().map(|group| (group.pg_name, group.ranks)));
        }
    }
}
