//! A machine file to start from: the text of another machine, with a comment above every key.
//!
//! ```text
//!   [packet]                                       [packet]
//!   header = { value = 16, … }      ──────▶        # Header bytes. As in 256, 4K or 1M.
//!                                                  header = { value = 16, … }
//! ```
//! Comments are inserted into the text and nothing else is moved: values, sources and the author's comments
//! stay as they are. Only name and title change.

mod unset;

use super::diagnostic::Diagnostics;
use super::diagnostic::Placed;
use super::schema::Documentation;
use super::shipped::shipped_file;
use super::{SHIPPED, check_text, graph_file, read::join, text};
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use weft_keys::Problem;

/// Most characters of the name: what `-m` takes should be short.
const MAX_NAME: usize = 64;

/// Columns of a comment.
const COLUMNS: usize = 110;

/// The keys that a text to start from has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TemplateKeys {
    /// Those that the other machine sets.
    Set,
    /// All: those that it does not set are commented out.
    All,
}

/// The text of a machine file called `name` to start from: that of the machine `like`, which ships or is a
/// file.
///
/// # Errors
/// A name that `-m` does not take, or takes for a machine that ships; everything that is wrong with `like`.
pub fn template(name: &str, like: &str, keys: TemplateKeys) -> Result<String, Diagnostics> {
    check_name(name)?;
    let (origin, mut source) = text(like)?;
    // The mark of UTF-8 would no longer be the first character.
    if let Some(text) = source.strip_prefix('\u{feff}') {
        source = text.to_owned();
    }
    if !source.ends_with('\n') {
        source.push('\n');
    }
    let none: [&str; 0] = [];
    let machine = check_text(like, &source, &none)?;
    let documentation = Documentation::of(&machine.topology.family());
    let mut edits = Edits { text: &source, documentation, edits: Vec::new() };
    // It has been checked: it is TOML.
    let (table, _) = DeTable::parse_recoverable(&source);
    edits.name(table.get_ref(), name);
    edits.graph(table.get_ref(), like);
    edits.comment(table.get_ref(), "", None);
    if keys == TemplateKeys::All {
        edits.unset(table.get_ref());
    }
    let head = format!(
        "{name}: made from {origin} by `weft machine new`. Above each key stands its meaning, how it is \
         written, and the value where it is not given. Sources are those of {origin}: a value that you \
         change needs the source of the new value."
    );
    Ok(format!("{}\n{}", comment(&head, ""), edits.applied()))
}

/// Refuses a name that `-m` would not take as one.
fn check_name(name: &str) -> Result<(), Diagnostics> {
    let refuse = |title: String, help: &str| Err(Problem::new(title, "", help).nowhere().into());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
    let is_name = name.len() <= MAX_NAME
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.chars().all(is_plain)
        && !name.ends_with(".toml");
    if !is_name {
        let shown: String = name.chars().take(MAX_NAME).flat_map(char::escape_debug).collect();
        return refuse(
            format!("`{shown}` is not the name of a machine"),
            "a name has 1 to 64 letters, digits, `-`, `_` and `.`, begins with a letter or a digit and does \
             not end in .toml, such as my-torus",
        );
    }
    if SHIPPED.iter().any(|shipped| shipped.name == name) {
        return refuse(format!("`{name}` ships with weft"), "-m would take that one: write another name");
    }
    Ok(())
}

/// Changes to a text.
struct Edits<'t> {
    text: &'t str,
    documentation: Documentation,
    /// Bytes that are replaced, and by what.
    edits: Vec<(std::ops::Range<usize>, String)>,
}

type Item<'t> = Spanned<DeValue<'t>>;

impl Edits<'_> {
    /// Writes `name` in place of name and title.
    fn name(&mut self, root: &DeTable<'_>, name: &str) {
        for key in ["name", "title"] {
            if let Some(item) = find(root, &["machine", key]) {
                self.edits.push((item.span(), format!("\"{name}\"")));
            }
        }
    }

    /// Names the file of a graph from here: the text goes to another folder than that of `like`. A file of a
    /// machine that ships is found from everywhere.
    fn graph(&mut self, root: &DeTable<'_>, like: &str) {
        let item = find(root, &["topology", "file"]);
        let item = item.map(|item| find_value(item).unwrap_or(item));
        let Some((item, DeValue::String(file))) = item.map(|item| (item, item.get_ref())) else { return };
        let folder = graph_file::folder_of(like);
        if shipped_file(file).is_some() && !folder.join(&**file).exists() {
            return;
        }
        if Path::new(&**file).is_relative() && !folder.as_os_str().is_empty() {
            let path = folder.join(&**file).to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
            self.edits.push((item.span(), format!("\"{path}\"")));
        }
    }

    /// Puts a comment above every key and section that is known. Within a table that is written in one value,
    /// comments go above it, at `above`.
    fn comment(&mut self, table: &DeTable<'_>, path: &str, above: Option<usize>) {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, item) in entries {
            let path = join(path, key.get_ref());
            let line = above.unwrap_or_else(|| self.line_of(key.span().start));
            let known = self.documentation.of_key(&path).filter(|_| !self.is_above(line, &path));
            if let Some(known) = known {
                let blank = |c: &char| [' ', '\t'].contains(c);
                let indent: String = self.text[line..].chars().take_while(blank).collect();
                self.edits.push((line..line, comment(&known, &indent)));
            }
            if let DeValue::Table(below) = item.get_ref()
                && !self.documentation.is_value(&path)
            {
                let is_inline = self.text.get(item.span()).is_some_and(|text| text.starts_with('{'));
                self.comment(below, &path, above.or(is_inline.then_some(line)));
            }
        }
    }

    /// Whether the line is the header of a section below this path, such as `[links.x]` below `links`.
    fn is_above(&self, line: usize, path: &str) -> bool {
        let header = self.text[line..].trim_start().trim_start_matches('[');
        self.text[line..].trim_start().starts_with('[')
            && header.trim_start().strip_prefix(path).is_some_and(|rest| rest.trim_start().starts_with('.'))
    }

    /// The beginning of the line of a byte.
    fn line_of(&self, byte: usize) -> usize {
        self.text[..byte].rfind('\n').map_or(0, |end| end + 1)
    }

    /// The text with all changes.
    fn applied(mut self) -> String {
        // Comments of one place stay in their order.
        self.edits.sort_by_key(|(range, _)| range.start);
        let (mut text, mut from) = (String::new(), 0);
        for (range, new) in self.edits {
            text += &self.text[from..range.start];
            text += &new;
            from = range.end;
        }
        text + &self.text[from..]
    }
}

/// The item at a path.
fn find<'i, 't>(table: &'i DeTable<'t>, path: &[&str]) -> Option<&'i Item<'t>> {
    let (first, rest) = path.split_first()?;
    let item = table.iter().find(|(key, _)| key.get_ref() == first)?.1;
    match (rest, item.get_ref()) {
        ([], _) => Some(item),
        (_, DeValue::Table(below)) => find(below, rest),
        _ => None,
    }
}

/// The value of an attributed value.
fn find_value<'i, 't>(item: &'i Item<'t>) -> Option<&'i Item<'t>> {
    let DeValue::Table(table) = item.get_ref() else { return None };
    find(table, &["value"])
}

/// A text as lines of comment.
fn comment(text: &str, indent: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if last > 0 && indent.len() + 2 + last + 1 + word.chars().count() > COLUMNS {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.iter().map(|line| format!("{indent}# {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [&str; 0] = [];

    /// Catches a value or a source that is lost or changed, and a comment that breaks the text.
    #[test]
    fn every_shipped_machine_can_be_started_from() {
        for shipped in SHIPPED {
            let text = template("mine", shipped.name, TemplateKeys::Set).unwrap();
            let mine =
                check_text("mine.toml", &text, &NONE).unwrap_or_else(|why| panic!("{}: {why}", shipped.name));
            assert_eq!((mine.name.as_str(), mine.title.as_str()), ("mine", "mine"));
            assert_eq!(mine.constants, shipped.check(&NONE).unwrap().constants, "{}", shipped.name);
            // Comments of the machine's own file are as long as lines of the project may be.
            assert!(text.lines().all(|line| !line.starts_with('#') || line.chars().count() <= 120));
        }
    }

    /// Catches keys without a comment: every value of a shipped machine has its meaning above it.
    #[test]
    fn keys_have_comments() {
        let text = template("mine", "exanest", TemplateKeys::Set).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let mut keys = 0;
        for (line, text) in lines.iter().enumerate().filter(|(_, text)| text.contains(" = { value")) {
            keys += 1;
            assert!(lines[line - 1].starts_with("# "), "{text}");
        }
        assert!(keys > 100, "{keys}");
        assert!(text.contains("# Header bytes. As in 256, 4K or 1M. Must be given.\nheader = "), "{text}");
    }

    /// Catches comments within a text of several lines, and within tables in one value.
    #[test]
    fn other_ways_of_writing_stay_whole() {
        let exanest = SHIPPED.iter().find(|shipped| shipped.name == "exanest").unwrap().text;
        let packet = exanest.find("[packet]").unwrap();
        let after = packet + exanest[packet..].find("# Inside").unwrap();
        let text = format!(
            "packet = {{ header = 16, payload = 256, \
             footer = {{ value = 16, kind = \"assumed\", how = \"\"\"\na\nb\"\"\" }} }}\n{}{}",
            &exanest[..packet],
            &exanest[after..]
        );
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("odd.toml");
        std::fs::write(&file, &text).unwrap();
        let made = template("mine", file.to_str().unwrap(), TemplateKeys::Set).unwrap();
        let mine = check_text("mine.toml", &made, &NONE).unwrap();
        assert_eq!(mine.constants, check_text("odd.toml", &text, &NONE).unwrap().constants);
        let above = made.find("# Largest payload.").unwrap();
        assert!(above < made.find("packet = {").unwrap());
        let text = format!("congestion = {{ kind = \"none\" }}\n{}", text.trim_end());
        std::fs::write(&file, &text).unwrap();
        let made = template("mine", file.to_str().unwrap(), TemplateKeys::All).unwrap();
        let mine = check_text("mine.toml", &made, &NONE).unwrap();
        assert_eq!(mine.constants, check_text("odd.toml", &text, &NONE).unwrap().constants);
        assert!(made.contains("# Not set in `congestion`: additive_bytes,"), "{made}");
    }

    /// Catches names that `-m` takes for a file or for another machine, and one that could break the text.
    #[test]
    fn names_that_are_none_are_refused() {
        for name in ["", "a/b", "a.toml", "a b", "-a", "é", "a\"b", "a\nb", &"a".repeat(65)] {
            let said = template(name, "exanest", TemplateKeys::Set).unwrap_err().to_string();
            assert!(
                said.contains("is not the name of a machine") && said.contains("such as my-torus"),
                "{said}"
            );
        }
        assert!(
            template("exanest", "exanest", TemplateKeys::Set)
                .unwrap_err()
                .to_string()
                .contains("ships with weft")
        );
        assert!(
            template("mine", "exanets", TemplateKeys::Set)
                .unwrap_err()
                .to_string()
                .contains("did you mean `exanest`")
        );
    }
}
