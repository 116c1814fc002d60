//! GOAL as text.
//!
//! ```text
//!   num_ranks N
//!   rank R { … }                                             a block for each rank, in any order
//!   [label:] send SIZEb to RANK [tag T] [cpu C] [nic N]
//!   [label:] recv SIZEb from RANK|-1 [tag T|-1] [cpu C] [nic N]
//!   [label:] calc NANOSECONDS [cpu C]
//!   label requires label                                     starts when the other has ended
//!   label irequires label                                    starts when the other has started
//! ```
//! One statement stands on a line; `//` and `/* … */` are comments. A first pass finds the blocks, so that
//! ranks are read in their order, each by itself.

use super::{ANY, GoalNotes, MAX_BYTES, MAX_NODES, MAX_RANKS, nanoseconds};
use crate::error::{FilePlace, TraceError};
use crate::graph::{Dependency, DependencyCycle, GraphAction, GraphFiles, GraphOperation, RankGraph};
use crate::header::TraceHeader;
use crate::input::{Input, InputReader};
use std::collections::BTreeMap;
use std::sync::Arc;
use weft_trace::op::SignalAt;
use weft_units::{Bytes, RankId};

/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// Whether a text begins as GOAL does, behind comments.
pub(super) fn knows(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let mut comments = Comments::default();
    let words = text.lines().map(|line| comments.strip(line));
    words
        .into_iter()
        .find(|line| !line.trim().is_empty())
        .is_some_and(|line| line.trim().starts_with("num_ranks"))
}

/// The block of a rank in the file.
#[derive(Clone, Copy, Debug)]
struct RankBlock {
    /// The byte behind the line that begins it.
    start: u64,
    /// The number of that line.
    line: u64,
    /// Whether a comment begins on that line that ends on a later one.
    in_comment: bool,
}

/// A file of GOAL.
pub(super) struct TextGoal {
    input: Arc<Input>,
    blocks: Vec<RankBlock>,
    passed_over: GoalNotes,
    /// Lines of the operations of the rank that was read last.
    lines: Vec<u64>,
}

/// Takes comments out of lines.
#[derive(Default)]
struct Comments {
    /// Whether one is open that ends on a later line.
    open: bool,
}

impl Comments {
    fn strip(&mut self, line: &str) -> String {
        let mut kept = String::new();
        let mut rest = line;
        loop {
            if self.open {
                let Some((_, behind)) = rest.split_once("*/") else { return kept };
                (self.open, rest) = (false, behind);
            }
            let (line_comment, block) = (rest.find("//"), rest.find("/*"));
            match (line_comment, block) {
                (Some(at), None) => return kept + &rest[..at],
                (Some(at), Some(block)) if at < block => return kept + &rest[..at],
                (_, Some(block)) => {
                    kept += &rest[..block];
                    kept.push(' ');
                    (self.open, rest) = (true, &rest[block + 2..]);
                }
                (None, None) => return kept + rest,
            }
        }
    }
}

/// Lines without comments, with their numbers.
struct Lines {
    reader: InputReader,
    comments: Comments,
    /// The number of the last line.
    number: u64,
}

impl Lines {
    fn from(input: &Arc<Input>, start: u64, number: u64) -> Lines {
        let reader = InputReader::new(input, start..u64::MAX, CHUNK);
        Lines { reader, comments: Comments::default(), number }
    }

    /// The next line that says something; `None`: the file is over.
    fn next(&mut self) -> Result<Option<String>, TraceError> {
        loop {
            self.number += 1;
            let Some(line) = self.reader.line()? else { return Ok(None) };
            let line = self.comments.strip(&String::from_utf8_lossy(line));
            let line = line.trim();
            if !line.is_empty() {
                return Ok(Some(line.to_owned()));
            }
        }
    }

    fn error(&self, reason: impl Into<String>) -> TraceError {
        self.reader.input().error(FilePlace::Line(self.number), reason)
    }
}

/// The number of a rank whose block a line begins.
fn block_of(line: &str) -> Option<Result<u32, String>> {
    let rest = line.strip_prefix("rank")?.trim();
    let number = rest.strip_suffix('{')?.trim();
    Some(number.parse().map_err(|_| format!("`{}` is no rank; write rank 0 {{", shorten(number))))
}

fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}

impl TextGoal {
    /// Finds the blocks of a file.
    pub(super) fn open(input: Arc<Input>) -> Result<TextGoal, TraceError> {
        let mut lines = Lines::from(&input, 0, 0);
        let first = lines.next()?.unwrap_or_default();
        let ranks = first.strip_prefix("num_ranks").and_then(|rest| rest.trim().parse::<u32>().ok());
        let Some(ranks) = ranks.filter(|ranks| (1..=MAX_RANKS).contains(ranks)) else {
            let reason =
                format!("GOAL begins with num_ranks and 1 to {MAX_RANKS}, not `{}`", shorten(&first));
            return Err(lines.error(reason));
        };
        let mut blocks: BTreeMap<u32, RankBlock> = BTreeMap::new();
        let mut is_open = false;
        while let Some(line) = lines.next()? {
            match (block_of(&line), is_open) {
                (Some(Err(reason)), _) => return Err(lines.error(reason)),
                (Some(Ok(rank)), false) if rank < ranks => {
                    let (start, line, in_comment) =
                        (lines.reader.position(), lines.number, lines.comments.open);
                    let block = RankBlock { start, line, in_comment };
                    if let Some(other) = blocks.insert(rank, block) {
                        let reason =
                            format!("rank {rank} has a block already, on line {}; keep one", other.line);
                        return Err(lines.error(reason));
                    }
                    is_open = true;
                }
                (Some(Ok(rank)), false) => {
                    return Err(lines.error(format!("rank {rank} of {ranks}: ranks are 0 to {}", ranks - 1)));
                }
                (Some(Ok(_)), true) => {
                    return Err(lines.error("a block within a block; end the one before with a line }"));
                }
                (None, true) => is_open = line != "}",
                (None, false) => {
                    let reason =
                        format!("`{}` outside of a block; write it within rank R {{ … }}", shorten(&line));
                    return Err(lines.error(reason));
                }
            }
        }
        if is_open {
            return Err(
                lines.error("the file ends within the block of a rank; copy it again, or add a line }")
            );
        }
        if let Some(rank) = (0..ranks).find(|rank| !blocks.contains_key(rank)) {
            let reason = format!("rank {rank} has no block, of {ranks} ranks; add rank {rank} {{ }}");
            return Err(lines.error(reason));
        }
        let blocks = blocks.into_values().collect();
        Ok(TextGoal { input, blocks, passed_over: GoalNotes::default(), lines: Vec::new() })
    }
}

impl GraphFiles for TextGoal {
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
        let ranks = self.blocks.len() as u32;
        let recorder = "GOAL".to_owned();
        TraceHeader { ranks, recorder, notes: self.passed_over.notes(), ..TraceHeader::default() }
    }

    fn rank(&mut self, rank: RankId) -> Result<RankGraph, TraceError> {
        let RankBlock { start, line, in_comment } = self.blocks[rank.index()];
        let mut lines = Lines::from(&self.input, start, line);
        lines.comments.open = in_comment;
        let mut block = RankText { ranks: self.blocks.len() as u32, ..RankText::default() };
        self.lines.clear();
        while let Some(line) = lines.next()? {
            if line == "}" {
                break;
            }
            let before = block.graph.nodes.len();
            block.line = lines.number;
            block.statement(&line).map_err(|reason| lines.error(reason))?;
            if block.graph.nodes.len() > before {
                self.lines.push(lines.number);
            }
            if block.graph.nodes.len() > MAX_NODES {
                return Err(lines.error(format!("more than {MAX_NODES} operations of one rank")));
            }
        }
        let RankText { graph, labels, waits, interfaces, .. } = block;
        self.passed_over.interfaces += interfaces;
        let mut graph = graph;
        for Requirement { who, whom, at, line } in waits {
            let node = |label: &str| {
                labels.get(label).copied().ok_or_else(|| {
                    let reason = format!("no operation of rank {rank} has the label `{}`", shorten(label));
                    self.input.error(FilePlace::Line(line), reason + "; add it, or take the line out")
                })
            };
            graph.dependencies.push(Dependency { node: node(&who)?, on: node(&whom)?, at });
        }
        Ok(graph)
    }

    fn cycle(&self, _: RankId, cycle: DependencyCycle) -> TraceError {
        let line = self.lines.get(cycle.node as usize).copied().unwrap_or(0);
        let reason =
            "this operation waits for itself, by way of others; take one of the lines with requires out";
        self.input.error(FilePlace::Line(line), reason)
    }
}

/// A line with `requires` or `irequires`.
struct Requirement {
    who: String,
    whom: String,
    at: SignalAt,
    line: u64,
}

/// The block of a rank while it is read.
#[derive(Default)]
struct RankText {
    ranks: u32,
    graph: RankGraph,
    labels: BTreeMap<String, u32>,
    waits: Vec<Requirement>,
    interfaces: u64,
    /// The number of the line that is read.
    line: u64,
}

impl RankText {
    /// Reads a statement. Errors with the reason and the mend.
    fn statement(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [who, verb @ ("requires" | "irequires"), whom] = words[..] {
            let at = if verb == "requires" { SignalAt::End } else { SignalAt::Start };
            let (who, whom, line) = (who.to_owned(), whom.to_owned(), self.line);
            self.waits.push(Requirement { who, whom, at, line });
            return Ok(());
        }
        let (label, rest) = match line.split_once(':') {
            Some((label, rest)) => (Some(label.trim()), rest.trim()),
            None => (None, line),
        };
        let words: Vec<&str> = rest.split_whitespace().collect();
        let (action, options) = match words[..] {
            ["send", size, "to", to, ref options @ ..] => {
                let (to, bytes) = (RankId(self.rank(to)?), size_of(size)?);
                (GraphAction::Send { to, bytes, tag: 0 }, options)
            }
            ["recv", size, "from", from, ref options @ ..] => {
                let from = if from == "-1" { None } else { Some(RankId(self.rank(from)?)) };
                (GraphAction::Receive { from, bytes: size_of(size)?, tag: Some(0) }, options)
            }
            ["calc", time, ref options @ ..] => {
                let span = time.parse().ok().and_then(nanoseconds);
                let span = span.ok_or_else(|| format!("`{}` is no time in nanoseconds", shorten(time)))?;
                (GraphAction::Compute { span }, options)
            }
            _ => {
                return Err(format!(
                    "`{}` is no statement of GOAL; write send 8b to 1, recv 8b from 0, calc 9, a requires b",
                    shorten(line)
                ));
            }
        };
        let node = self.with_options(action, options)?;
        let number = self.graph.nodes.len() as u32;
        self.graph.nodes.push(node);
        if let Some(label) = label
            && self.labels.insert(label.to_owned(), number).is_some()
        {
            return Err(format!(
                "the label `{}` stands before another operation too; give each its own",
                shorten(label)
            ));
        }
        Ok(())
    }

    fn rank(&self, word: &str) -> Result<u32, String> {
        let rank = word.parse().ok().filter(|rank| *rank < self.ranks);
        rank.ok_or_else(|| format!("`{}` is no rank; there are 0 to {}", shorten(word), self.ranks - 1))
    }

    /// The operation with its tag and core.
    fn with_options(&mut self, action: GraphAction, options: &[&str]) -> Result<GraphOperation, String> {
        let mut node = GraphOperation { action, core: 0 };
        if !options.len().is_multiple_of(2) {
            return Err(format!("`{}` has no value", shorten(options[options.len() - 1])));
        }
        for option in options.chunks(2) {
            let (name, value) = (option[0], option[1]);
            let wrong = || {
                format!(
                    "`{} {}` is no option here; there are tag, cpu and nic",
                    shorten(name),
                    shorten(value)
                )
            };
            let number = || value.parse::<u32>().ok();
            match (name, &mut node.action) {
                ("tag", GraphAction::Receive { tag, .. }) if value == "-1" => *tag = None,
                ("tag", GraphAction::Receive { tag, .. }) => {
                    let given = number().filter(|number| *number != ANY).ok_or_else(wrong)?;
                    *tag = Some(given.cast_signed());
                }
                ("tag", GraphAction::Send { tag, .. }) => *tag = number().ok_or_else(wrong)?.cast_signed(),
                ("cpu", _) => {
                    node.core = number().filter(|core| *core <= u8::MAX.into()).ok_or_else(wrong)?
                }
                ("nic", GraphAction::Send { .. } | GraphAction::Receive { .. }) => {
                    self.interfaces += u64::from(number().ok_or_else(wrong)? > 0);
                }
                _ => return Err(wrong()),
            }
        }
        Ok(node)
    }
}

/// A size such as `8b`.
fn size_of(word: &str) -> Result<Bytes, String> {
    let size = word.strip_suffix('b').and_then(|number| number.parse().ok());
    let size = size.filter(|size| *size <= MAX_BYTES).map(Bytes::new);
    size.ok_or_else(|| format!("`{}` is no size; write bytes such as 8b, up to {MAX_BYTES}b", shorten(word)))
}
