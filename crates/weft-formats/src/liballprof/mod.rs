//! The text of liballprof, the tracer of LogGOPSim: a file for each rank, a line for each call of MPI.
//!
//! ```text
//!   MPI_Recv:1237666047187471.000000:11251872:4500:11,8,46909632806920:1:3000:0,0,4:140737488340112:1237…
//!   name     begin, us               buffer   count type,bytes,extent  source tag comm,rank,size  status end
//! ```
//! Arguments stand in the order of C's prototypes. Of what MPI returns through a pointer, the line has the
//! pointer: new handles of communicators, whether a test has succeeded, statuses.

mod line;

use crate::calls::{CallFiles, CallTrace, Calls};
use crate::error::TraceError;
use crate::format::Format;
use crate::header::TraceHeader;
use crate::input::{Input, InputReader, chunk_bytes};
use line::{ProfiledCalls, first_communicator};
use std::path::Path;
use std::sync::Arc;

/// Bytes at the end of a file in which its last line is looked for.
const END_BYTES: u64 = 4096;

/// Largest number of ranks; a larger one is taken for damage.
const MAX_RANKS: u32 = 1 << 24;

/// The format.
pub(crate) const FORMAT: Format = Format {
    name: "liballprof",
    knows: |_, head| {
        let mut lines = head.split(|&byte| byte == b'\n');
        lines
            .find(|line| !line.is_empty() && !line.starts_with(b"#"))
            .is_some_and(|line| line.starts_with(b"MPI_"))
    },
    open: |path, _| Ok(Arc::new(CallTrace::open(Arc::new(ProfiledRun::open(path)?))?)),
    open_bytes: |name, bytes, _| Ok(Arc::new(from_inputs(name, vec![Input::memory(name, bytes)])?)),
    writing: None,
};

/// The files of a run.
struct ProfiledRun {
    file: String,
    ranks: Vec<Arc<Input>>,
    chunk: usize,
}

impl ProfiledRun {
    /// Opens the run of which one rank's file is named.
    fn open(path: &Path) -> Result<ProfiledRun, TraceError> {
        let file = path.display().to_string();
        let named = Arc::new(Input::open(path)?);
        let run = |reason| TraceError::Run { file: file.clone(), reason };
        let ranks = ranks(&named)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(name) = RankName::of(&name) else {
            let reason = "the number of the rank must be in the name of each file, as in \
                          pmpi-trace-rank-0.txt; name the files so";
            return Err(run(reason.to_owned()));
        };
        let open = |rank: u32| {
            let path = path.with_file_name(name.of_rank(rank));
            if !path.is_file() {
                return Err(run(format!(
                    "rank {rank} of {ranks} lies in {}, which is not there; copy it beside this file",
                    path.display()
                )));
            }
            Input::open(&path).map(Arc::new)
        };
        let ranks: Vec<_> = (0..ranks).map(open).collect::<Result<_, _>>()?;
        ranks.iter().try_for_each(check_end)?;
        let chunk = chunk_bytes(ranks.len() as u32);
        Ok(ProfiledRun { file, ranks, chunk })
    }
}

/// Refuses a file that does not end as a run does: it was cut off, or the program was.
fn check_end(input: &Arc<Input>) -> Result<(), TraceError> {
    let bytes = input.len().min(END_BYTES);
    let mut tail = vec![0; bytes as usize];
    input.read_at(&mut tail, input.len() - bytes)?;
    let tail = String::from_utf8_lossy(&tail);
    let mut lines =
        tail.lines().rev().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    if lines.next().is_some_and(|line| line.starts_with("MPI_Finalize:")) {
        return Ok(());
    }
    let reason = "does not end with MPI_Finalize; copy it again, or trace the program to its end".to_owned();
    Err(TraceError::Run { file: input.name().to_owned(), reason })
}

/// Number of ranks of the run that a file is of: the size of the communicator that is named first.
fn ranks(input: &Arc<Input>) -> Result<u32, TraceError> {
    let found = first_communicator(InputReader::new(input, 0..input.len(), 4096))?;
    found.filter(|size| (1..=MAX_RANKS).contains(size)).ok_or_else(|| {
        let reason = format!(
            "no communicator of 1 to {MAX_RANKS} ranks is named, so their number is not known; copy it again"
        );
        TraceError::Run { file: input.name().to_owned(), reason }
    })
}

fn from_inputs(file: &str, inputs: Vec<Input>) -> Result<CallTrace, TraceError> {
    let ranks: Vec<_> = inputs.into_iter().map(Arc::new).collect();
    let expected = ranks.first().map_or(Ok(0), self::ranks)?;
    if expected as usize != ranks.len() {
        let reason = format!("is of one rank of {expected}; name the file, beside those of the other ranks");
        return Err(TraceError::Run { file: file.to_owned(), reason });
    }
    let chunk = chunk_bytes(expected);
    CallTrace::open(Arc::new(ProfiledRun { file: file.to_owned(), ranks, chunk }))
}

/// The name of a rank's file, around the number of the rank.
struct RankName<'a> {
    before: &'a str,
    digits: usize,
    after: &'a str,
}

impl RankName<'_> {
    /// The last number in a name.
    fn of(name: &str) -> Option<RankName<'_>> {
        let end = name.rfind(|letter: char| letter.is_ascii_digit())? + 1;
        let begin = name[..end].rfind(|letter: char| !letter.is_ascii_digit()).map_or(0, |at| at + 1);
        Some(RankName { before: &name[..begin], digits: end - begin, after: &name[end..] })
    }

    fn of_rank(&self, rank: u32) -> String {
        format!("{}{rank:0width$}{}", self.before, self.after, width = self.digits)
    }
}

impl CallFiles for ProfiledRun {
    fn format(&self) -> &'static str {
        FORMAT.name
    }

    fn file(&self) -> &str {
        &self.file
    }

    fn files(&self) -> Vec<&str> {
        self.ranks.iter().map(|input| input.name()).collect()
    }

    fn ranks(&self) -> u32 {
        self.ranks.len() as u32
    }

    fn bytes(&self) -> u64 {
        self.ranks.iter().map(|input| input.len()).sum()
    }

    fn header(&self) -> TraceHeader {
        TraceHeader { ranks: self.ranks(), recorder: "liballprof".to_owned(), ..TraceHeader::default() }
    }

    fn reuse_completes(&self) -> bool {
        true
    }

    fn rank(&self, rank: u32) -> Result<Box<dyn Calls>, TraceError> {
        let input = &self.ranks[rank as usize];
        let reader = InputReader::new(input, 0..input.len(), self.chunk);
        Ok(Box::new(ProfiledCalls::new(reader)))
    }
}

#[cfg(test)]
mod tests;
