//! The source of a kernel with its pragmas as code.
//!
//! ```text
//!  #pragma HLS pipeline II=3            ──► a call that begins an iteration
//!  #pragma HLS stream variable=s depth=4 ─► set_depth(s, 4);
//!  #pragma HLS dataflow                 ──► an error of the compiler
//! ```
//! All others are left to the compiler, which does not know them. Lines keep their numbers. The compiler
//! reads the headers of the design as they are: a pragma there that would have an effect is a mistake, as is
//! `_Pragma`.

use crate::error::Mistake;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The directive that makes the next line one of the file at `path`, for messages of the compiler.
pub(crate) fn line(number: usize, path: &str) -> String {
    format!("#line {number} \"{}\"\n", path.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The source with its pragmas as code; it is called `path` in the compiler's messages.
pub(crate) fn translate(source: &str, path: &str) -> String {
    let mut text = line(1, path);
    for (number, line) in (1..).zip(source.lines()) {
        match pragma(line) {
            Some(words) => text.push_str(&code(line, &words, number)),
            None => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

/// The words of an HLS pragma, in lower case but for values.
fn pragma(line: &str) -> Option<Vec<String>> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("pragma")?;
    let mut words = rest.split_whitespace();
    let is_hls = words.next().is_some_and(|first| first.eq_ignore_ascii_case("HLS"));
    // `II = 3` is `II=3`.
    let joined = words.collect::<Vec<_>>().join(" ").replace(" =", "=").replace("= ", "=");
    is_hls.then(|| joined.split_whitespace().map(str::to_owned).collect())
}

/// The value of an option.
fn option<'w>(words: &'w [String], name: &str) -> Option<&'w str> {
    words.iter().find_map(|word| {
        let (key, value) = word.split_once('=')?;
        key.eq_ignore_ascii_case(name).then_some(value)
    })
}

fn code(line: &str, words: &[String], number: usize) -> String {
    let kind = words.first().map(|word| word.to_ascii_lowercase()).unwrap_or_default();
    match kind.as_str() {
        "pipeline" => match option(words, "II") {
            Some(interval) => format!(
                "static ::weft_apeiron::Cycle weft_next_{number} = 0; \
                 static_assert(({interval}) > 0, \"II of a pipeline is a constant of 1 or more\"); \
                 ::weft_apeiron::begin_iteration({interval}, weft_next_{number});"
            ),
            None => line.to_owned(),
        },
        "stream" => match (option(words, "variable"), option(words, "depth")) {
            (Some(variable), Some(depth)) => format!(
                "static_assert(({depth}) > 0, \"a stream holds one word or more: write depth=1, or more\"); \
                 ::weft_apeiron::set_depth({variable}, {depth});"
            ),
            _ => line.to_owned(),
        },
        "dataflow" => {
            "#error \"weft apeiron has no DATAFLOW regions: make each function a kernel of its own \
                       in config.yaml\""
                .to_owned()
        }
        _ => line.to_owned(),
    }
}

/// Pragmas with an effect in places where they have none: in headers of the design that the source at `path`
/// includes, of these folders, and in `_Pragma`.
pub(crate) fn pragmas_without_effect(path: &Path, text: &str, folders: &[PathBuf]) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    let mut seen = BTreeSet::from([path.to_owned()]);
    let mut files = vec![(path.to_owned(), text.to_owned())];
    while let Some((file, text)) = files.pop() {
        for (number, line) in (1..).zip(text.lines()) {
            let in_header = pragma(line).filter(|_| file != path);
            let found = in_header.or_else(|| operator(line)).filter(|words| has_effect(words));
            mistakes.extend(found.map(|words| Mistake {
                file: file.display().to_string(),
                line: number,
                what: format!("`HLS {}` has no effect here", words.join(" ")),
                mend: match words[0].eq_ignore_ascii_case("dataflow") {
                    true => "make each function a kernel of its own in config.yaml".to_owned(),
                    false => {
                        format!("write it as #pragma in {}, with the code that it is for", path.display())
                    }
                },
            }));
            let Some(name) = include(line) else { continue };
            let beside = file.parent().unwrap_or(Path::new(""));
            let places = std::iter::once(beside).chain(folders.iter().map(PathBuf::as_path));
            let read = |place: PathBuf| std::fs::read_to_string(&place).ok().map(|text| (place, text));
            let header = places.map(|folder| folder.join(name)).find_map(read);
            files.extend(header.filter(|(place, _)| seen.insert(place.clone())));
        }
    }
    mistakes
}

/// Whether a pragma changes what its source does here.
fn has_effect(words: &[String]) -> bool {
    match words.first().map(|word| word.to_ascii_lowercase()).as_deref() {
        Some("pipeline") => option(words, "II").is_some_and(|interval| interval != "1"),
        Some("stream") => option(words, "depth").is_some(),
        Some("dataflow") => true,
        _ => false,
    }
}

/// The words of an HLS pragma that is written as an operator.
fn operator(line: &str) -> Option<Vec<String>> {
    let (before, rest) = line.split_once("_Pragma")?;
    let text = rest.trim_start().strip_prefix('(')?.trim_start().strip_prefix('"')?.split('"').next()?;
    pragma(&format!("#pragma {text}")).filter(|_| !before.contains("//"))
}

/// The name of a header of one's own.
fn include(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?;
    rest.trim_start().strip_prefix('"')?.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a pragma that has no effect, and lines that move.
    #[test]
    fn pragmas_are_code_on_their_lines() {
        let source = "void f()\n#pragma HLS PIPELINE II = 3 rewind\n  #pragma hls stream variable=s depth=8\n\
                      #pragma HLS inline\n# pragma HLS dataflow\n#pragma once\n";
        let text = translate(source, "hw_hls/f.cpp");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "#line 1 \"hw_hls/f.cpp\"");
        assert_eq!(lines[1], "void f()");
        assert!(lines[2].ends_with("begin_iteration(3, weft_next_2);"), "{}", lines[2]);
        assert!(lines[3].ends_with(" ::weft_apeiron::set_depth(s, 8);"), "{}", lines[3]);
        assert_eq!(lines[4], "#pragma HLS inline");
        assert!(lines[5].starts_with("#error"));
        assert_eq!((lines[6], lines.len()), ("#pragma once", 7));
    }
    /// Catches pragmas that have no effect, without a word: in a header, or in one that it includes, and as
    /// operators; and refusals of those that have none anywhere.
    #[test]
    fn pragmas_in_headers_and_operators_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("include")).unwrap();
        std::fs::write(at("a.h"), "#include \"b.h\"\n#pragma HLS pipeline II=1\n#pragma HLS inline\n")
            .unwrap();
        let inner = "#include \"a.h\"\n\n  #pragma HLS Pipeline II = 4\n#pragma HLS dataflow\n";
        std::fs::write(at("include/b.h"), inner).unwrap();
        let source = "#include <vector>\n# include \"a.h\"\n#include \"hapecom.h\"\n\
                      #pragma HLS pipeline II=2\n\
                      _Pragma(\"HLS stream variable=s depth=3\")\n// _Pragma(\"HLS dataflow\")\n";
        let found = pragmas_without_effect(&at("own.cpp"), source, &[at("include")]);
        let told: Vec<_> = found.iter().map(|own| (own.file.rsplit('/').next().unwrap(), own.line)).collect();
        assert_eq!(told, [("own.cpp", 5), ("b.h", 3), ("b.h", 4)]);
        assert_eq!(found[1].what, "`HLS Pipeline II=4` has no effect here");
        assert!(found[1].mend.starts_with("write it as #pragma in "), "{}", found[1].mend);
        assert!(found[2].mend.contains("a kernel of its own"), "{}", found[2].mend);
    }
}
