//! The places where values are written: one numbering of places over the machine file and every `--set`.

/// The file is source 0; the n-th `--set` is source n.
pub(super) const FILE: u32 = 0;

/// A stretch of one source, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Location(pub u32, pub u32, pub u32);

impl Location {
    /// Bytes `start..end` of source `source`. Sources are far smaller than 4 GB.
    pub fn new(source: u32, span: std::ops::Range<usize>) -> Location {
        let position = |p: usize| u32::try_from(p).unwrap_or(u32::MAX);
        Location(source, position(span.start), position(span.end))
    }

    /// Whether it was written as a `--set` rather than in the file.
    pub fn is_set(self) -> bool {
        self.0 != FILE
    }
}

/// One text that takes part in a machine.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// The name in errors: the file's path, or `--set`.
    pub name: String,
    /// The text.
    pub text: String,
}

/// The machine file and the `--set` arguments.
#[derive(Clone, Debug)]
pub(super) struct Sources(pub Vec<Source>);

impl Sources {
    /// The name of the machine file.
    pub fn file_name(&self) -> &str {
        self.0.first().map_or("", |file| &file.name)
    }

    /// The text of a source.
    pub fn text(&self, source: u32) -> &str {
        self.0.get(source as usize).map_or("", |s| &s.text)
    }
}
