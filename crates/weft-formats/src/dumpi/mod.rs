//! DUMPI, the format of SST's tracer: a text with the number of ranks, and a binary file for each of them.
//!
//! ```text
//!   dumpi-2014.meta ── fileprefix, numprocs ──▶ dumpi-2014-0000.bin, dumpi-2014-0001.bin, …
//!   (meta.rs)                                   (stream.rs: bytes to calls, calls.rs: what they mean)
//! ```
//! The format is described in `docs/traceformat.dox` of sst-dumpi; where its text and its files differ, the
//! files are right.

mod calls;
mod datatype;
mod layout;
mod meta;
mod stream;

use crate::calls::{CallFiles, CallTrace, Calls};
use crate::error::TraceError;
use crate::format::Format;
use crate::header::TraceHeader;
use crate::input::{Input, chunk_bytes};
use calls::DumpiCalls;
use meta::Meta;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stream::FileHead;

/// The format.
pub(crate) const FORMAT: Format = Format {
    name: "dumpi",
    knows: |_, head| head.starts_with(stream::MAGIC) || meta::knows(head),
    open: |path, _| Ok(Arc::new(CallTrace::open(Arc::new(Dumpi::open(path)?))?)),
    open_bytes: |_, bytes, _| Ok(Arc::new(from_bytes(&[&bytes])?)),
    writing: None,
};

/// The files of a run.
struct Dumpi {
    file: String,
    meta: String,
    header: TraceHeader,
    ranks: Vec<(Arc<Input>, FileHead)>,
    chunk: usize,
}

impl Dumpi {
    /// Opens the run of a `.meta`, or of the `.bin` of one of its ranks.
    fn open(path: &Path) -> Result<Dumpi, TraceError> {
        let file = path.display().to_string();
        let meta_path = meta_of(path)?;
        let meta = Meta::read(&meta_path)?;
        let inputs = meta.rank_files(&meta_path)?;
        let mut ranks = Vec::with_capacity(inputs.len());
        for input in inputs {
            let input = Arc::new(input);
            let head = FileHead::read(&input)?;
            ranks.push((input, head));
        }
        let names = [file, meta_path.display().to_string()];
        Ok(Dumpi::of(names, meta.header(), ranks))
    }

    /// `names`: the file that was named, and the `.meta`.
    fn of(names: [String; 2], mut header: TraceHeader, ranks: Vec<(Arc<Input>, FileHead)>) -> Dumpi {
        for (name, count) in ranks.iter().flat_map(|(_, head)| head.left_out()) {
            *header.unrecorded.entry(name.to_owned()).or_default() += count;
        }
        let chunk = chunk_bytes(header.ranks);
        let version = ranks.first().map_or([0; 3], |(_, head)| head.version);
        let [major, minor, patch] = version;
        let recorder = format!("DUMPI {major}.{minor}.{patch}");
        let [file, meta] = names;
        Dumpi { file, meta, header: TraceHeader { recorder, ..header }, ranks, chunk }
    }
}

/// The `.meta` of a run whose `.meta` or `.bin` is named.
fn meta_of(path: &Path) -> Result<PathBuf, TraceError> {
    let named = Input::open(path)?;
    let mut magic = [0; stream::MAGIC.len()];
    let is_of_rank = named.len() >= magic.len() as u64 && {
        named.read_at(&mut magic, 0)?;
        &magic == stream::MAGIC
    };
    if !is_of_rank {
        return Ok(path.to_owned());
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let prefix = stem.rsplit_once('-').map_or(&*stem, |(prefix, _)| prefix);
    let meta = path.with_file_name(format!("{prefix}.meta"));
    if meta.is_file() {
        return Ok(meta);
    }
    let reason = format!(
        "is of one rank; the run is told by {}, which is not there: copy it beside this file",
        meta.display()
    );
    Err(TraceError::Run { file: path.display().to_string(), reason })
}

impl CallFiles for Dumpi {
    fn format(&self) -> &'static str {
        FORMAT.name
    }

    fn file(&self) -> &str {
        &self.file
    }

    fn files(&self) -> Vec<&str> {
        let ranks = self.ranks.iter().map(|(input, _)| input.name());
        [self.file.as_str(), self.meta.as_str()].into_iter().chain(ranks).collect()
    }

    fn ranks(&self) -> u32 {
        self.header.ranks
    }

    fn bytes(&self) -> u64 {
        self.ranks.iter().map(|(input, _)| input.len()).sum()
    }

    fn header(&self) -> TraceHeader {
        self.header.clone()
    }

    fn reuse_completes(&self) -> bool {
        false
    }

    fn rank(&self, rank: u32) -> Result<Box<dyn Calls>, TraceError> {
        let (input, head) = &self.ranks[rank as usize];
        Ok(Box::new(DumpiCalls::new(input, head, self.header.ranks, self.chunk)))
    }
}

/// Reads bytes as the files of the ranks of a run.
fn from_bytes(ranks: &[&[u8]]) -> Result<CallTrace, TraceError> {
    let mut inputs = Vec::new();
    for (bytes, rank) in ranks.iter().zip(0..) {
        let name = format!("trace-{rank:04}.bin");
        let input = Arc::new(Input::memory(&name, bytes.to_vec().into()));
        let head = FileHead::read(&input)?;
        inputs.push((input, head));
    }
    let header = TraceHeader { ranks: ranks.len() as u32, ..TraceHeader::default() };
    CallTrace::open(Arc::new(Dumpi::of(["trace.meta"; 2].map(str::to_owned), header, inputs)))
}

#[cfg(test)]
mod tests;
