//! The source of a kernel with its pragmas as code.
//!
//! ```text
//!  #pragma HLS pipeline II=3            ──► a call that begins an iteration
//!  #pragma HLS stream variable=s depth=4 ─► set_depth(s, 4);
//!  #pragma HLS dataflow                 ──► an error of the compiler
//! ```
//! All others are left to the compiler, which does not know them. Lines keep their numbers.
//!
//! # Not modelled
//! Pragmas in headers that the source includes.

/// The source with its pragmas as code; it is called `path` in the compiler's messages.
pub(crate) fn translate(source: &str, path: &str) -> String {
    let mut text = format!("#line 1 \"{}\"\n", path.replace('\\', "\\\\").replace('"', "\\\""));
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
                 ::weft_apeiron::begin_iteration({interval}, weft_next_{number});"
            ),
            None => line.to_owned(),
        },
        "stream" => match (option(words, "variable"), option(words, "depth")) {
            (Some(variable), Some(depth)) => format!("::weft_apeiron::set_depth({variable}, {depth});"),
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
        assert_eq!(lines[3], "::weft_apeiron::set_depth(s, 8);");
        assert_eq!(lines[4], "#pragma HLS inline");
        assert!(lines[5].starts_with("#error"));
        assert_eq!((lines[6], lines.len()), ("#pragma once", 7));
    }
}
