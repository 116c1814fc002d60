//! The keys that a machine file does not set, as comments in the places where they would stand.
//!
//! ```text
//!   [packet]                      [packet]
//!   header = 16                   header = 16
//!                    ──────▶      # Footer bytes. As in 256, 4K or 1M.
//!                                 # footer = 256
//! ```
//! The values are examples. A section that the file lacks is a comment too, with its header.

use super::{Edits, Item, comment, find};
use crate::read::join;
use crate::schema::KeyForm;
use toml::de::{DeTable, DeValue};

/// The class of links whose values hold where a link's own section does not give them.
const DEFAULT_CLASS: &str = "default";

impl Edits<'_> {
    /// Adds every key that the text does not set.
    pub(super) fn unset(&mut self, root: &DeTable<'_>) {
        let mut absent = String::new();
        for (section, form) in self.documentation.keys("") {
            match find(root, &[&section]) {
                Some(item) if form == KeyForm::Classes => absent += &self.unset_class(item, &section),
                Some(item) => self.unset_below(item, &section),
                None => absent += &self.absent(&section, form),
            }
        }
        // Behind the keys of the last section, whose place is the same.
        let end = self.text.len();
        self.edits.push((end..end, absent));
    }

    /// Adds what the class of links that all fall back to does not set. Returns its section if there is none.
    fn unset_class(&mut self, item: &Item<'_>, path: &str) -> String {
        let path = join(path, DEFAULT_CLASS);
        let DeValue::Table(table) = item.get_ref() else { return String::new() };
        match find(table, &[DEFAULT_CLASS]) {
            Some(default) => self.unset_below(default, &path),
            None => return self.absent(&path, KeyForm::Section),
        }
        String::new()
    }

    /// Adds what a section that is there does not set.
    fn unset_below(&mut self, item: &Item<'_>, path: &str) {
        let DeValue::Table(table) = item.get_ref() else { return };
        let mut unset = Vec::new();
        for (key, form) in self.documentation.keys(path) {
            match find(table, &[&key]) {
                Some(item) if form == KeyForm::Section => self.unset_below(item, &join(path, &key)),
                Some(_) => {}
                None => unset.push((key, form)),
            }
        }
        let line = self.line_of(item.span().start);
        if !self.text[line..].trim_start().starts_with('[') {
            // It has no header: its keys are written in one value, or as `switch.buffer`.
            let names: Vec<&str> = unset.iter().map(|(key, _)| key.as_str()).collect();
            if !names.is_empty() {
                let text = comment(&format!("Not set in `{path}`: {}.", names.join(", ")), "");
                self.edits.push((line..line, text));
            }
            return;
        }
        let (keys, sections): (Vec<_>, Vec<_>) =
            unset.into_iter().partition(|(_, form)| *form == KeyForm::Value);
        let absent = keys.into_iter().chain(sections);
        let absent = absent.map(|(key, form)| self.absent(&join(path, &key), form)).collect();
        let at = self.end_of(item, table);
        self.edits.push((at..at, absent));
    }

    /// The place for more keys of a table: behind the last that stands below its header.
    fn end_of(&self, item: &Item<'_>, table: &DeTable<'_>) -> usize {
        let is_own = |key: usize| !self.text[self.line_of(key)..].trim_start().starts_with('[');
        let own = table.iter().filter(|(key, _)| is_own(key.span().start));
        let last = own.map(|(_, item)| item.span().end).max().unwrap_or(item.span().end);
        self.text[last..].find('\n').map_or(self.text.len(), |end| last + end + 1)
    }

    /// A section, or a row of a list, with all its keys.
    fn absent(&self, path: &str, form: KeyForm) -> String {
        let (path, header) = match form {
            KeyForm::Value => return self.absent_key(path),
            KeyForm::Rows => (path.to_owned(), format!("[[{path}]]")),
            KeyForm::Section => (path.to_owned(), format!("[{path}]")),
            KeyForm::Classes => {
                let default = join(path, DEFAULT_CLASS);
                (default.clone(), format!("[{default}]"))
            }
        };
        let meaning = self.documentation.of_key(&path);
        let mut text = format!("\n{}# {header}\n", meaning.map_or(String::new(), |text| comment(&text, "")));
        let (keys, sections): (Vec<_>, Vec<_>) =
            self.documentation.keys(&path).into_iter().partition(|(_, form)| *form == KeyForm::Value);
        for (key, form) in keys.into_iter().chain(sections) {
            text += &self.absent(&join(&path, &key), form);
        }
        text
    }

    /// A key with its meaning and an example.
    fn absent_key(&self, path: &str) -> String {
        let (_, key) = path.rsplit_once('.').unwrap_or(("", path));
        let meaning = self.documentation.of_key(path).map_or(String::new(), |meaning| comment(&meaning, ""));
        let example = self.documentation.example(path).unwrap_or_default();
        format!("{meaning}# {key} = {example}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::super::{TemplateKeys, template};
    use crate::{SHIPPED, check_text};
    use std::collections::BTreeSet;
    use toml::de::DeTable;

    const NONE: [&str; 0] = [];

    /// The text with all keys of a machine, those that are commented out made keys.
    fn uncommented(machine: &str) -> String {
        let text = template("mine", machine, TemplateKeys::All).unwrap();
        let set = template("mine", machine, TemplateKeys::Set).unwrap();
        let comments: BTreeSet<&str> = set.lines().collect();
        let is_key = |line: &str| {
            let name = line.trim_start_matches('[');
            let is_name = |c: char| c.is_ascii_alphanumeric() || ['_', '.'].contains(&c);
            name.starts_with(is_name) && DeTable::parse_recoverable(line).1.is_empty()
        };
        let line = |line: &str| match line
            .strip_prefix("# ")
            .filter(|rest| !comments.contains(line) && is_key(rest))
        {
            Some(key) => format!("{key}\n"),
            None => format!("{line}\n"),
        };
        text.lines().map(line).collect()
    }

    /// Catches keys that are left out, a comment that changes the machine, and keys below another header than
    /// their own, which make another file when they are no comments any more.
    #[test]
    fn every_key_is_there() {
        for shipped in SHIPPED {
            let all = template("mine", shipped.name, TemplateKeys::All).unwrap();
            let machine = check_text("mine.toml", &all, &NONE).unwrap();
            assert_eq!(machine.constants, shipped.check(&NONE).unwrap().constants, "{}", shipped.name);
            let whole = uncommented(shipped.name);
            let (table, errors) = DeTable::parse_recoverable(&whole);
            assert!(errors.is_empty(), "{}: {}", shipped.name, errors[0]);
            for path in crate::schema::known_paths() {
                let path = path.replace("links.*", "links.default");
                let keys: Vec<&str> = path.split('.').collect();
                // Another kind of topology would have the others.
                if path != "topology.kind" && keys[0] == "topology" || keys.contains(&"*") {
                    continue;
                }
                assert!(super::find(table.get_ref(), &keys).is_some(), "{}: {path}", shipped.name);
            }
        }
    }

    /// Catches examples that no key could have.
    #[test]
    fn examples_can_be_read() {
        for shipped in SHIPPED {
            let all = check_text("mine.toml", &uncommented(shipped.name), &NONE).unwrap_err();
            for said in all.0.iter().map(|problem| format!("{}: {}", problem.title, problem.help)) {
                let is_bound = said.contains("is too small") || said.contains("is impossible");
                assert!(!said.contains("there is no key") && !is_bound, "{}: {said}", shipped.name);
                assert!(!said.contains("`…`"), "{}: {said}", shipped.name);
            }
        }
    }
}
