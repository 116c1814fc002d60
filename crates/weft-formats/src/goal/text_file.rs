//! GOAL as text, while it is written: a line for each operation and each thing that it waits for.

use super::ANY;
use super::writer::GoalFile;
use crate::error::TraceError;
use crate::graph::{Dependency, GraphAction, GraphOperation};
use crate::output::{self, unwritable};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use tempfile::NamedTempFile;
use weft_trace::op::SignalAt;
use weft_units::RankId;

/// The file.
pub(super) struct TextFile {
    file: BufWriter<NamedTempFile>,
    /// Operations of the rank.
    operations: u32,
}

impl TextFile {
    /// Begins a file of so many ranks, beside `path`.
    pub(super) fn create(path: &Path, ranks: u32) -> Result<TextFile, TraceError> {
        let mut file = BufWriter::new(output::unfinished(path)?);
        let version = env!("CARGO_PKG_VERSION");
        writeln!(file, "num_ranks {ranks}\n\n// written by weft {version}")
            .map_err(|error| unwritable(path, error))?;
        Ok(TextFile { file, operations: 0 })
    }
}

/// The name of an operation. The grammar wants a letter first.
fn label(node: u32) -> String {
    format!("l{}", u64::from(node) + 1)
}

impl GoalFile for TextFile {
    fn begin_rank(&mut self, rank: RankId) -> std::io::Result<()> {
        self.operations = 0;
        writeln!(self.file, "rank {rank} {{")
    }

    fn operation(&mut self, operation: &GraphOperation) -> std::io::Result<()> {
        write!(self.file, "{}: ", label(self.operations))?;
        self.operations += 1;
        let tag = match operation.action {
            GraphAction::Collective { .. } => {
                unreachable!("the writer turns no operation into a collective")
            }
            GraphAction::Compute { span } => {
                write!(self.file, "calc {}", span.as_ps() / 1000)?;
                None
            }
            GraphAction::Send { to, bytes, tag } => {
                write!(self.file, "send {}b to {to}", bytes.get())?;
                Some(tag.cast_unsigned())
            }
            GraphAction::Receive { from, bytes, tag } => {
                write!(self.file, "recv {}b from ", bytes.get())?;
                match from {
                    Some(from) => write!(self.file, "{from}")?,
                    None => write!(self.file, "-1")?,
                }
                Some(tag.map_or(ANY, i32::cast_unsigned))
            }
        };
        // The grammar has them in this order.
        match tag {
            Some(ANY) => write!(self.file, " tag -1")?,
            Some(tag) => write!(self.file, " tag {tag}")?,
            None => {}
        }
        if operation.core > 0 {
            write!(self.file, " cpu {}", operation.core)?;
        }
        writeln!(self.file)
    }

    fn dependency(&mut self, Dependency { node, on, at }: Dependency) -> std::io::Result<()> {
        let verb = if at == SignalAt::End { "requires" } else { "irequires" };
        writeln!(self.file, "{} {verb} {}", label(node), label(on))
    }

    fn end_rank(&mut self) -> std::io::Result<()> {
        writeln!(self.file, "}}\n")
    }

    fn finish(self: Box<Self>, path: &Path) -> Result<(), TraceError> {
        let file = self.file.into_inner().map_err(|error| unwritable(path, error.into_error()))?;
        output::finish(file, path)
    }
}
