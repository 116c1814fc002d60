//! A kernel as a trace: the operations of any rank from any position.

use crate::app::AppError;
use crate::apps;
use crate::name::KernelName;
use crate::options::Options;
use crate::part::{self, KernelPart, PartWalk};
use std::collections::BTreeMap;
use std::sync::Arc;
use weft_formats::{FormatReader, TraceError, TraceHeader, TraceMetadata};
use weft_trace::op::{Op, StreamId};
use weft_trace::{Cursor, Kind, ReadError, TraceSource};
use weft_units::{Bytes, RankId};

/// A kernel. Clones share it.
#[derive(Clone)]
pub struct Kernel(Arc<KernelBody>);

struct KernelBody {
    name: String,
    parts: Vec<KernelPart>,
    metadata: TraceMetadata,
}

impl Kernel {
    /// The name of its format, where others are those of files.
    pub const FORMAT: &str = "kernel";

    /// The kernel of this name.
    ///
    /// # Errors
    /// There is no such application, or it has no such options or values.
    pub fn new(name: &KernelName) -> Result<Kernel, AppError> {
        let app = apps::find(&name.app)?;
        let options = Options::new(app, name.ranks, &name.options)?;
        let parts = (app.build)(&options)?;
        Ok(Kernel::of(name.to_string(), name.ranks, parts))
    }

    /// A kernel of these parts on `ranks` ranks; `name` stands for it in messages and results.
    pub fn of(name: String, ranks: u32, parts: Vec<KernelPart>) -> Kernel {
        let metadata = TraceMetadata {
            format_version: 1,
            header: TraceHeader {
                ranks,
                command: vec!["weft".to_owned(), "app".to_owned(), name.clone()],
                recorder: concat!("weft ", env!("CARGO_PKG_VERSION")).to_owned(),
                ..TraceHeader::default()
            },
            operations: operations(&parts, ranks),
            rank_operations: (0..ranks).map(|rank| part::length(&parts, rank)).collect(),
            rank_streams: Vec::new(),
        };
        Kernel(Arc::new(KernelBody { name, parts, metadata }))
    }
}

/// Makes sure that there is such an application with such options, without looking at their values.
///
/// # Errors
/// There is none.
pub fn check(name: &KernelName) -> Result<(), AppError> {
    Options::new(apps::find(&name.app)?, name.ranks, &name.options).map(drop)
}

/// KernelBody by their kinds. Each phase is gone through once: its later passes have the same kinds.
fn operations(parts: &[KernelPart], ranks: u32) -> BTreeMap<String, u64> {
    let mut operations: BTreeMap<Kind, u64> = BTreeMap::new();
    part::for_each_phase(parts, 1, &mut |phase, passes| {
        for rank in 0..ranks {
            phase.count(rank, &mut |kind, count| *operations.entry(kind).or_default() += passes * count);
        }
    });
    operations.into_iter().map(|(kind, count)| (kind.name().to_owned(), count)).collect()
}

impl TraceSource for Kernel {
    fn file(&self) -> &str {
        &self.0.name
    }

    fn ranks(&self) -> u32 {
        self.0.metadata.header.ranks
    }

    fn operations(&self) -> u64 {
        self.0.metadata.rank_operations.iter().sum()
    }

    fn operations_of(&self, kind: Kind) -> u64 {
        self.0.metadata.operations.get(kind.name()).copied().unwrap_or(0)
    }

    fn cursor_operations(&self) -> u64 {
        1
    }

    fn is_interrupted(&self) -> bool {
        false
    }

    fn stream_at(&self, rank: RankId, _: StreamId, position: u64) -> Result<Box<dyn Cursor>, ReadError> {
        let (file, ranks) = (self.0.name.clone(), self.ranks());
        if rank.0 >= ranks {
            return Err(TraceError::NoSuchRank { file, rank: rank.0, ranks }.into());
        }
        let walk = PartWalk::new(rank.0, position);
        Ok(Box::new(KernelCursor { kernel: self.clone(), walk, position }))
    }
}

impl FormatReader for Kernel {
    fn format(&self) -> &'static str {
        Kernel::FORMAT
    }

    fn metadata(&self) -> &TraceMetadata {
        &self.0.metadata
    }

    fn file_bytes(&self) -> Bytes {
        Bytes::ZERO
    }

    fn files(&self) -> Vec<std::path::PathBuf> {
        Vec::new()
    }
}

/// The operations of a rank from a position on.
struct KernelCursor {
    kernel: Kernel,
    walk: PartWalk,
    position: u64,
}

impl Iterator for KernelCursor {
    type Item = Result<Op, ReadError>;

    fn next(&mut self) -> Option<Result<Op, ReadError>> {
        let op = self.walk.operation(&self.kernel.0.parts, self.position)?;
        self.position += 1;
        Some(Ok(op))
    }
}

impl Cursor for KernelCursor {
    fn next_position(&self) -> u64 {
        self.position
    }
}
