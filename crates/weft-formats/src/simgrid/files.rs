//! The files of a run, and where the lines of each rank are.
//!
//! A rank is read from a piece of a file. Where the lines of all ranks are mixed in one file, they are first
//! copied into a file without a name, sorted by rank: a rank would read all of the mixed one.

use super::line::Actions;
use super::{begins_with_action, beside, first_line};
use crate::calls::{CallFiles, Calls};
use crate::error::{FilePlace, TraceError};
use crate::flop_rate::{FlopRate, ParseSpeedError};
use crate::header::TraceHeader;
use crate::input::{Input, InputReader, chunk_bytes};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Largest number of ranks; a larger one is taken for damage.
const MAX_RANKS: u32 = 1 << 24;

/// Bytes that are read to know a file.
const HEAD_BYTES: u64 = 4096;

/// Lines in which the speed is looked for: comments at the begin.
const MAX_COMMENTS: usize = 1000;

/// The piece of a file with the lines of a rank.
struct RankPiece {
    input: Arc<Input>,
    range: Range<u64>,
}

/// The files of a run.
pub(super) struct TimeIndependent {
    file: String,
    ranks: Vec<RankPiece>,
    bytes: u64,
    speed: Option<FlopRate>,
    chunk: usize,
}

/// The first of the files that a file names, if it names some.
pub(super) fn named(path: &Path, head: &[u8]) -> Option<PathBuf> {
    let name = first_line(head).filter(|_| !path.as_os_str().is_empty())?;
    let named = beside(path, name);
    let mut head = Vec::new();
    let is_file = named.metadata().is_ok_and(|found| found.is_file());
    if is_file {
        File::open(&named).ok()?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    }
    begins_with_action(&head).then_some(named)
}

impl TimeIndependent {
    /// Opens a file of actions, or one that names such files. `speed` goes before that of the files.
    pub(super) fn open(path: &Path, speed: Option<FlopRate>) -> Result<TimeIndependent, TraceError> {
        let input = Arc::new(Input::open(path)?);
        let mut head = vec![0; input.len().min(HEAD_BYTES) as usize];
        input.read_at(&mut head, 0)?;
        if begins_with_action(&head) {
            return TimeIndependent::of_one(input, speed);
        }
        let mut inputs = Vec::new();
        let mut reader = InputReader::new(&input, 0..input.len(), HEAD_BYTES as usize);
        for line in 1.. {
            let Some(name) = reader.line()? else { break };
            let name = String::from_utf8_lossy(name).trim().to_owned();
            if name.is_empty() || name.starts_with('#') {
                continue;
            }
            let file = beside(path, &name);
            if !file.is_file() {
                let rank = inputs.len();
                let reason =
                    format!("rank {rank} lies in {}, which is not there; copy it there", file.display());
                return Err(input.error(FilePlace::Line(line), reason));
            }
            inputs.push(Arc::new(Input::open(&file)?));
        }
        let file = input.name().to_owned();
        match inputs.as_slice() {
            [one] => Ok(TimeIndependent { file, ..TimeIndependent::of_one(Arc::clone(one), speed)? }),
            _ => {
                let piece = |input: Arc<Input>| RankPiece { range: 0..input.len(), input };
                let ranks = inputs.into_iter().map(piece).collect();
                TimeIndependent::of(file, ranks, speed)
            }
        }
    }

    /// One file with the lines of all ranks.
    pub(super) fn of_one(input: Arc<Input>, speed: Option<FlopRate>) -> Result<TimeIndependent, TraceError> {
        let found = find_ranks(&input)?;
        let file = input.name().to_owned();
        // Comments are not copied.
        let speed = speed.map_or_else(|| speed_of(&input), |speed| Ok(Some(speed)))?;
        let ranks = if found.is_sorted { in_place(&input, &found) } else { sorted(&input, &found)? };
        let bytes = input.len();
        Ok(TimeIndependent { bytes, ..TimeIndependent::of(file, ranks, speed)? })
    }

    fn of(
        file: String,
        ranks: Vec<RankPiece>,
        speed: Option<FlopRate>,
    ) -> Result<TimeIndependent, TraceError> {
        let first = ranks.first().map(|piece| &piece.input);
        let speed = match (speed, first) {
            (None, Some(input)) => speed_of(input)?,
            (speed, _) => speed,
        };
        let bytes = ranks.iter().map(|piece| piece.input.len()).sum();
        let chunk = chunk_bytes(ranks.len() as u32);
        Ok(TimeIndependent { file, ranks, bytes, speed, chunk })
    }
}

/// The speed in a comment before the first action.
fn speed_of(input: &Arc<Input>) -> Result<Option<FlopRate>, TraceError> {
    let mut reader = InputReader::new(input, 0..input.len(), HEAD_BYTES as usize);
    for number in 1..=MAX_COMMENTS {
        let Some(line) = reader.line()? else { break };
        let line = String::from_utf8_lossy(line);
        let Some(comment) = line.trim().strip_prefix('#') else { break };
        if let Some(speed) = comment.trim().strip_prefix("speed:") {
            let speed = speed.trim().parse();
            return speed.map(Some).map_err(|error: ParseSpeedError| {
                input.error(FilePlace::Line(number as u64), error.to_string())
            });
        }
    }
    Ok(None)
}

/// The places of the lines of each rank in a file that has those of all.
struct RankLines {
    /// By rank: where its first line begins, and the bytes of all.
    ranks: Vec<(u64, u64)>,
    /// Whether the lines of each rank stand together.
    is_sorted: bool,
}

/// The rank of a line; `None`: the line is empty, or a comment.
fn rank_of(line: &[u8]) -> Option<Result<u32, String>> {
    let line = line.trim_ascii_start();
    if line.is_empty() || line.starts_with(b"#") {
        return None;
    }
    let word = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    let rank = std::str::from_utf8(word).ok().and_then(|word| word.parse().ok());
    Some(rank.filter(|&rank| rank < MAX_RANKS).ok_or_else(|| {
        let shown: String = String::from_utf8_lossy(word).chars().take(40).collect();
        format!("begins with \"{shown}\", expected a rank below {MAX_RANKS}; correct the line")
    }))
}

fn find_ranks(input: &Arc<Input>) -> Result<RankLines, TraceError> {
    let mut ranks: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    let mut reader = InputReader::new(input, 0..input.len(), chunk_bytes(1));
    let (mut last, mut is_sorted) = (None, true);
    for number in 1.. {
        let begin = reader.position();
        let Some(line) = reader.line()? else { break };
        let Some(rank) = rank_of(line) else { continue };
        let rank = rank.map_err(|reason| input.error(FilePlace::Line(number), reason))?;
        let length = line.len() as u64 + 1;
        let known = ranks.entry(rank).or_insert((begin, 0));
        is_sorted &= last == Some(rank) || known.1 == 0;
        known.1 += length;
        last = Some(rank);
    }
    let count = ranks.len() as u32;
    if let Some(missing) = (0..count).find(|rank| !ranks.contains_key(rank)) {
        let last = ranks.keys().last().copied().unwrap_or(0);
        let reason = format!(
            "has lines of rank {last} and none of rank {missing}; add them, or name the file that lists one \
             file for each rank"
        );
        return Err(TraceError::Run { file: input.name().to_owned(), reason });
    }
    Ok(RankLines { ranks: ranks.into_values().collect(), is_sorted })
}

/// The pieces of a file in which the lines of each rank stand together. Comments between are passed over.
fn in_place(input: &Arc<Input>, found: &RankLines) -> Vec<RankPiece> {
    let mut begins: Vec<u64> = found.ranks.iter().map(|&(begin, _)| begin).collect();
    begins.push(input.len());
    begins.sort_unstable();
    let end = |begin: u64| begins[begins.partition_point(|&other| other <= begin)];
    let piece = |&(begin, _): &(u64, u64)| RankPiece { input: Arc::clone(input), range: begin..end(begin) };
    found.ranks.iter().map(piece).collect()
}

/// The lines of a file, copied so that those of each rank stand together.
fn sorted(input: &Arc<Input>, found: &RankLines) -> Result<Vec<RankPiece>, TraceError> {
    let no_room = |source: std::io::Error| TraceError::Run {
        file: input.name().to_owned(),
        reason: format!(
            "its lines are mixed, and there is no room to sort them by rank ({source}); free space in the \
             folder of temporary files, which TMPDIR names"
        ),
    };
    let copy = tempfile::tempfile().map_err(no_room)?;
    let mut next: Vec<u64> = Vec::with_capacity(found.ranks.len());
    let mut end = 0;
    for &(_, bytes) in &found.ranks {
        next.push(end);
        end += bytes;
    }
    let begins = next.clone();
    let chunk = chunk_bytes(found.ranks.len() as u32);
    let mut held: Vec<Vec<u8>> = vec![Vec::new(); found.ranks.len()];
    let mut write = |rank: usize, held: &mut Vec<u8>| -> Result<(), TraceError> {
        copy.write_all_at(held, next[rank]).map_err(no_room)?;
        next[rank] += held.len() as u64;
        held.clear();
        Ok(())
    };
    let mut reader = InputReader::new(input, 0..input.len(), chunk_bytes(1));
    while let Some(line) = reader.line()? {
        let Some(Ok(rank)) = rank_of(line) else { continue };
        let Some(lines) = held.get_mut(rank as usize) else { continue };
        lines.extend_from_slice(line);
        lines.push(b'\n');
        if lines.len() >= chunk {
            write(rank as usize, lines)?;
        }
    }
    for (rank, lines) in held.iter_mut().enumerate() {
        write(rank, lines)?;
    }
    let copy = Arc::new(Input::spooled(input.name(), copy, end));
    let ends = begins.iter().skip(1).copied().chain([end]);
    let pieces = begins.iter().zip(ends);
    Ok(pieces.map(|(&begin, end)| RankPiece { input: Arc::clone(&copy), range: begin..end }).collect())
}

impl CallFiles for TimeIndependent {
    fn format(&self) -> &'static str {
        super::FORMAT.name
    }

    fn file(&self) -> &str {
        &self.file
    }

    fn files(&self) -> Vec<&str> {
        let ranks = self.ranks.iter().map(|piece| piece.input.name());
        [self.file.as_str()].into_iter().chain(ranks).collect()
    }

    fn ranks(&self) -> u32 {
        self.ranks.len() as u32
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn header(&self) -> TraceHeader {
        TraceHeader { ranks: self.ranks(), recorder: "SimGrid".to_owned(), ..TraceHeader::default() }
    }

    fn reuse_completes(&self) -> bool {
        false
    }

    fn rank(&self, rank: u32) -> Result<Box<dyn Calls>, TraceError> {
        let RankPiece { input, range } = &self.ranks[rank as usize];
        let reader = InputReader::new(input, range.clone(), self.chunk);
        Ok(Box::new(Actions::new(reader, [rank, self.ranks()], self.speed)))
    }
}
