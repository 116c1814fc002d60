//! The page with every key of machine files, made of their declarations.

use crate::read::join;
use crate::schema::{Documentation, KeyForm};
use std::fmt::Write;
use weft_topo::TopologyParameters;

/// The begin of the page.
const HEAD: &str = "# Keys of machine files

Every key, as its declaration has it. `WEFT_BLESS=1 cargo test -p weft-machine` writes this page anew. How
values, sources and sections are written is in [the format](../src/formats/machine.md).
";

/// The page, as committed in `docs/generated/machine-keys.md`.
pub fn key_page() -> String {
    let mut page = HEAD.to_owned();
    for family in TopologyParameters::FAMILIES {
        let documentation = Documentation::of(family);
        let title = format!("`[topology]` of kind `{}`: {}", family.name, family.title);
        section(&documentation, ("topology", &title), &mut page);
    }
    let documentation = Documentation::of(&TopologyParameters::FAMILIES[0]);
    let others = documentation.keys("").into_iter().filter(|(key, _)| key != "topology");
    others.for_each(|(key, form)| sections(&documentation, &key, form, &mut page));
    page
}

/// A section and those below it.
fn sections(documentation: &Documentation, path: &str, form: KeyForm, page: &mut String) {
    let (path, title) = match form {
        KeyForm::Value => return,
        KeyForm::Section => (path.to_owned(), format!("`[{path}]`")),
        KeyForm::Rows => (path.to_owned(), format!("`[[{path}]]`")),
        KeyForm::Classes => (join(path, "default"), format!("`[{path}.default]` and `[{path}.CLASS]`")),
    };
    section(documentation, (&path, &title), page);
    for (key, form) in documentation.keys(&path) {
        sections(documentation, &join(&path, &key), form, page);
    }
}

/// The keys of a section, in a table.
fn section(documentation: &Documentation, (path, title): (&str, &str), page: &mut String) {
    let meaning = documentation.of_key(path).map_or(String::new(), |meaning| format!("\n{meaning}\n"));
    let keys = documentation.keys(path).into_iter().filter(|(_, form)| *form == KeyForm::Value);
    let rows: String = keys
        .map(|(key, _)| {
            let meaning = documentation.of_key(&join(path, &key)).unwrap_or_default();
            format!("| `{key}` | {} |\n", meaning.replace('|', "\\|"))
        })
        .collect();
    let table = if rows.is_empty() { String::new() } else { format!("\n| key | is |\n|---|---|\n{rows}") };
    write!(page, "\n## {title}\n{meaning}{table}").expect("a text takes all");
}
