//! Errors that name the file, the line, what was expected and the mend.
//!
//! ```text
//! error: `16GB/s` is not a bit rate
//!   --> own.toml:12:8
//!    |
//! 12 | rate = "16GB/s"
//!    |        ^^^^^^^^ unknown unit `GB/s`
//!    |
//!    = help: write 16Gb/s
//! ```

use super::source::{Location, Sources};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::fmt;
use weft_keys::Problem;

/// A file with thousands of mistakes is shown the first of them.
const SHOWN: usize = 20;

/// The mend where next to nothing of a file is a machine's.
pub(super) const START: &str =
    "`weft machine new --like exanest own` prints a whole file, with a comment above every key";

/// One thing that is wrong with a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// The mistake.
    pub title: String,
    /// Beside the caret: what is wrong with the text there. May be empty.
    pub label: String,
    /// The mend. May be empty.
    pub help: String,
    /// Where; `None` where no text is to blame, such as for an unreadable file.
    pub place: Option<Place>,
}

/// The line that a diagnostic points at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The file as the user named it, or `--set`.
    pub origin: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// The line's text.
    text: String,
    /// Bytes of `text` under the caret.
    marked: std::ops::Range<usize>,
}

impl Place {
    fn of(location: Location, sources: &Sources) -> Option<Place> {
        let source = sources.0.get(location.0 as usize)?;
        let text = &source.text;
        let on_boundary = |at: u32| {
            (0..=(at as usize).min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
        };
        let (start, end) = (on_boundary(location.1), on_boundary(location.2));
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        // Of a table or a long array only the first line is marked.
        let end = end.clamp(start, line_end);
        let line = text[line_start..line_end].trim_end_matches('\r');
        // What is wrong may be a carriage return, which is not shown.
        let shown = |at: usize| (at - line_start).min(line.len());
        Some(Place {
            origin: source.name.clone(),
            line: text[..start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            text: line.to_owned(),
            marked: shown(start)..shown(end),
        })
    }
}

/// A [`Problem`] gets its place.
pub(super) trait Placed {
    /// At a place in the machine's text.
    fn at(self, location: Location, sources: &Sources) -> Diagnostic;
    /// Nowhere: no text is to blame.
    fn nowhere(self) -> Diagnostic;
}

impl Placed for Problem {
    fn at(self, location: Location, sources: &Sources) -> Diagnostic {
        let Problem { title, label, help } = self;
        Diagnostic { title, label, help, place: Place::of(location, sources) }
    }

    fn nowhere(self) -> Diagnostic {
        let Problem { title, label, help } = self;
        Diagnostic { title, label, help, place: None }
    }
}

/// Everything that is wrong with a machine, in the order in which it was found. Never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// The text for a terminal with colours, or without.
    pub fn render(&self, colours: bool) -> String {
        let renderer = if colours { Renderer::styled() } else { Renderer::plain() };
        let mut reports: Vec<String> =
            self.0.iter().take(SHOWN).map(|diagnostic| diagnostic.render(&renderer)).collect();
        if let Some(rest) = self.0.len().checked_sub(SHOWN).filter(|rest| *rest > 0) {
            reports.push(format!("error: {rest} more are not shown"));
        }
        reports.join("\n\n")
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Diagnostics {
        Diagnostics(vec![diagnostic])
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

impl Diagnostic {
    fn render(&self, renderer: &Renderer) -> String {
        let title = Group::with_title(Level::ERROR.primary_title(self.title.as_str()));
        let Some(place) = &self.place else {
            let title = renderer.render(&[title]);
            if self.help.is_empty() {
                return title;
            }
            // A title of its own: lines below a title have a gutter, which is for lines of a file.
            let help = Group::with_title(Level::HELP.primary_title(self.help.as_str()));
            return format!("{title}\n{}", renderer.render(&[help]));
        };
        let mut annotation = AnnotationKind::Primary.span(place.marked.clone());
        if !self.label.is_empty() {
            annotation = annotation.label(self.label.as_str());
        }
        let snippet = Snippet::source(place.text.as_str())
            .line_start(place.line)
            .path(place.origin.as_str())
            .annotation(annotation);
        let mut group = title.element(snippet);
        if !self.help.is_empty() {
            group = group.element(Level::HELP.message(self.help.as_str()));
        }
        renderer.render(&[group])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches an empty line of a gutter where no line of a file is shown.
    #[test]
    fn an_error_without_a_place_is_its_title_and_its_mend() {
        let problem = |help: &str| Problem::new("no machine `x` ships", "", help).nowhere();
        let text = |help| Diagnostics::from(problem(help)).to_string();
        assert_eq!(text("did you mean `y`?"), "error: no machine `x` ships\nhelp: did you mean `y`?");
        assert_eq!(text(""), "error: no machine `x` ships");
    }
}
