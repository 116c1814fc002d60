//! The form of the fields that say how a study is shown, for their mistakes.

use crate::error::StudyError;
use crate::presentation::StudyText;
use toml::de::{DeTable, DeValue};

/// The form of a field.
struct FieldForm {
    /// The tables that it is in, and its name.
    path: &'static str,
    /// The values that it takes, in words.
    takes: &'static str,
    /// How it is written.
    written: &'static str,
}

/// A field that is a text.
const fn text(path: &'static str, written: &'static str) -> FieldForm {
    FieldForm { path, takes: "a text", written }
}

/// A field of this form.
const fn form(path: &'static str, takes: &'static str, written: &'static str) -> FieldForm {
    FieldForm { path, takes, written }
}

const FORMS: [FieldForm; 19] = [
    text("title", "title = \"a heading\""),
    form("keep", "a list of tables", "keep = [\"messages\"]"),
    form("table", "a list of measured fields", "table = [\"run_time_us\"]"),
    form("derive", "a list of columns", "[[derive]] above name, of and as"),
    text("derive.name", "name = \"efficiency\""),
    text("derive.of", "of = \"run_time_us\", a measured field"),
    form(
        "derive.as",
        "the name of a law",
        "as = \"ratio\", \"speed-up\", \"weak-efficiency\" or \"strong-efficiency\"",
    ),
    form("derive.within", "a list of parameters", "within = [\"case\"]"),
    text("derive.over", "over = \"ranks\""),
    form("pictures", "a list of pictures", "[[pictures]] above name, and y or what"),
    text("pictures.name", "name = \"efficiency\""),
    text("pictures.x", "x = \"ranks\""),
    text("pictures.y", "y = \"run_time_us\""),
    text("pictures.what", "what = \"fct-cdf\""),
    text("pictures.by", "by = \"case\""),
    form("published", "a table", "[published] above source and shows"),
    text("published.source", "source = \"a document, its section and figure\""),
    text("published.shows", "shows = \"what the figure shows\""),
    form("published.agrees", "a list of texts", "agrees = [\"what agrees\"]"),
];

/// The form of a field.
fn form_of(path: &str) -> Option<&'static FieldForm> {
    // Both say how the study compares.
    let path = if path == "published.differs" { "published.agrees" } else { path };
    FORMS.iter().find(|form| form.path == path)
}

/// The fields of a table.
fn fields_of(table: &str) -> Vec<&'static str> {
    let name = |form: &FieldForm| form.path.strip_prefix(table)?.strip_prefix('.');
    FORMS.iter().filter_map(name).chain((table == "published").then_some("differs")).collect()
}

/// The mistake that the reader of TOML has found, with the field and how it is written.
pub(crate) fn mistake(study: StudyText<'_>, error: &toml::de::Error) -> StudyError {
    let at = error.span().unwrap_or_default();
    let message = error.message();
    let quoted = message.split('`').nth(1).unwrap_or_default();
    let path = header(study.text, at.start).unwrap_or_else(|| field_at(study.text, at.start));
    if message.starts_with("missing field") {
        let path = format!("{path}.{quoted}");
        let written = form_of(&path).map_or(quoted, |form| form.written);
        return study.refused(at, &path, "it is missing", &format!("write {written}"));
    }
    if message.starts_with("unknown field") {
        let table = path.rsplit_once('.').map_or("", |(table, _)| table);
        let mend = format!("write one of {}", fields_of(table).join(", "));
        return study.refused(at, &path, "there is no such field", &mend);
    }
    let Some(FieldForm { takes, written, .. }) = form_of(&path) else {
        let mend = "the page on weft sweep has an example of each of these fields";
        return study.refused(at, &path, &message.replace('\n', " "), mend);
    };
    let what = match message.starts_with("unknown variant") {
        true => format!("\"{quoted}\" is none"),
        false => format!("this is not {takes}"),
    };
    study.refused(at, &path, &what, &format!("write {written}"))
}

/// The table whose header is on that line; `None`: none is.
fn header(text: &str, at: usize) -> Option<String> {
    let begin = text.get(..at)?.rfind('\n').map_or(0, |end| end + 1);
    let line = text[begin..].lines().next()?.trim_start();
    let name = line.strip_prefix('[')?.trim_start_matches('[').split(']').next()?.trim();
    form_of(name).map(|_| name.to_owned())
}

/// The field that stands there: that of the last key before.
fn field_at(text: &str, at: usize) -> String {
    let mut keys = Vec::new();
    if let Ok(root) = DeTable::parse(text) {
        add_keys(root.get_ref(), "", &mut keys);
    }
    let last = keys.into_iter().filter(|(start, _)| *start <= at).max();
    last.map_or_else(String::new, |(_, path)| path)
}

/// Adds the keys of a table and of those within: where each begins, and its path.
fn add_keys(table: &DeTable<'_>, above: &str, keys: &mut Vec<(usize, String)>) {
    for (key, value) in table {
        let name = key.get_ref();
        let path = if above.is_empty() { name.to_string() } else { format!("{above}.{name}") };
        keys.push((key.span().start, path.clone()));
        match value.get_ref() {
            DeValue::Table(table) => add_keys(table, &path, keys),
            DeValue::Array(items) => {
                for item in items {
                    if let DeValue::Table(table) = item.get_ref() {
                        add_keys(table, &path, keys);
                    }
                }
            }
            _ => {}
        }
    }
}
