//! Whether the records of a file can all be done, where they do not stand behind what they wait for.
//!
//! Nodes are records, and the ends of collectives that all members wait for. Each node counts what it waits
//! for; what is done is taken off the counts of those behind it.

use super::collectives::VefCollectives;
use super::line::{After, When};
use super::split::{SplitEntries, TaskEntry};
use super::task::LinedFault;
use crate::error::TraceError;

/// Most records of such a file: it takes 200 MB.
const MAX_RECORDS: usize = 1 << 22;

/// No node.
const NONE: u32 = u32::MAX;

/// The nodes.
#[derive(Default)]
struct OrderGraph {
    /// Nodes that each waits for.
    missing: Vec<u32>,
    /// The first node behind each, and of each record the next behind the same.
    behind: Vec<u32>,
    next: Vec<u32>,
    /// The end that a part belongs to.
    end: Vec<u32>,
    line: Vec<u64>,
}

/// The fault of a record that can never be done, if there is one. What a record waits for and is not there is
/// found elsewhere.
///
/// # Errors
/// A file that cannot be read.
pub(super) fn standstill(
    entries: &SplitEntries,
    tasks: u32,
    collectives: &VefCollectives,
) -> Result<Option<LinedFault>, TraceError> {
    let mut graph = OrderGraph::default();
    let mut messages: Vec<(u64, u32)> = Vec::new();
    for task in 0..tasks {
        entries.each(task, |line, entry| {
            if let TaskEntry::Send { .. } | TaskEntry::Part { .. } = entry {
                if let TaskEntry::Send { id, .. } = entry {
                    messages.push((id, graph.line.len() as u32));
                }
                graph.line.push(line);
            }
            Ok(())
        })?;
    }
    let records = graph.line.len();
    if records > MAX_RECORDS {
        let fault = format!(
            "{records} records, of which some stand before what they wait for; at most {MAX_RECORDS} may: \
             write each behind what it waits for"
        );
        return Ok(Some((graph.line.first().copied().unwrap_or(0), fault)));
    }
    messages.sort_unstable();
    let nodes = records + collectives.len() as usize;
    (graph.missing, graph.behind) = (vec![0; nodes], vec![NONE; nodes]);
    (graph.next, graph.end) = (vec![NONE; records], vec![NONE; records]);
    let mut node = 0;
    for task in 0..tasks {
        let begin = node;
        let mut parts: Vec<(u64, u32)> = Vec::new();
        entries.each(task, |_, entry| {
            if let TaskEntry::Part { id, number, .. } = entry {
                let end = (records + number as usize) as u32;
                let is_joint = collectives.is_joint(number);
                parts.push((id, if is_joint { end } else { node }));
                if is_joint {
                    graph.end[node as usize] = end;
                    graph.missing[end as usize] += 1;
                }
            }
            node += u32::from(matches!(entry, TaskEntry::Send { .. } | TaskEntry::Part { .. }));
            Ok(())
        })?;
        parts.sort_unstable();
        node = begin;
        entries.each(task, |_, entry| {
            let (TaskEntry::Send { when: When { after, .. }, .. }
            | TaskEntry::Part { when: When { after, .. }, .. }) = entry
            else {
                return Ok(());
            };
            let among = |list: &[(u64, u32)], id: u64| {
                let found = list.binary_search_by_key(&id, |(id, _)| *id);
                found.ok().map(|place| list[place].1)
            };
            let on = match after {
                After::Start => None,
                After::Send(id) | After::Reception(id) => among(&messages, id),
                After::Collective(id) => among(&parts, id),
            };
            if let Some(on) = on {
                graph.missing[node as usize] += 1;
                graph.next[node as usize] = std::mem::replace(&mut graph.behind[on as usize], node);
            }
            node += 1;
            Ok(())
        })?;
    }
    Ok(graph.standstill())
}

impl OrderGraph {
    fn standstill(mut self) -> Option<LinedFault> {
        let records = self.line.len();
        let ready = (0..records as u32).filter(|node| self.missing[*node as usize] == 0);
        let mut ready: Vec<u32> = ready.collect();
        let mut done = vec![false; records];
        while let Some(node) = ready.pop() {
            let node = node as usize;
            let mut behind = self.behind[node];
            while behind != NONE {
                self.missing[behind as usize] -= 1;
                if self.missing[behind as usize] == 0 {
                    ready.push(behind);
                }
                behind = self.next[behind as usize];
            }
            if node >= records {
                continue;
            }
            done[node] = true;
            let end = self.end[node];
            if end != NONE {
                self.missing[end as usize] -= 1;
                if self.missing[end as usize] == 0 {
                    ready.push(end);
                }
            }
        }
        let stuck = done.iter().zip(&self.line).filter(|(done, _)| !**done);
        let line = *stuck.map(|(_, line)| line).min()?;
        let fault =
            "IDdep: the record waits for itself, by way of others, or for one that does; mend one of them";
        Some((line, fault.to_owned()))
    }
}
