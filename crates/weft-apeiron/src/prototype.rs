//! The parameters of a kernel's function, as its source names them.
//!
//! The source is not compiled for that: comments and texts are left out, and the parameters of the function
//! that is defined there under the kernel's name are cut at their commas.
//!
//! # Not modelled
//! A function that a macro defines, or a header.

use std::iter::Peekable;
use std::str::Chars;

/// Lengths of arrays that are the channels of a port.
const CHANNEL_COUNTS: [&str; 2] = ["N_INPUT_CHANNELS", "N_OUTPUT_CHANNELS"];

/// Whether a parameter is a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ParameterKind {
    /// It is none, or a channel.
    Other,
    /// A reference.
    Stream,
    /// An array of streams, which are no channels.
    StreamArray,
}

/// A parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KernelParameter {
    pub name: String,
    pub kind: ParameterKind,
    /// Of a stream, the type of its words.
    pub word: Option<String>,
    /// Of an array, the number of its elements, as it is written.
    pub length: Option<String>,
    /// The line in the source.
    pub line: usize,
}

/// The parameters of the function of that name; `None`: it is not defined there.
pub(crate) fn parameters(source: &str, function: &str) -> Option<Vec<KernelParameter>> {
    let text = without_comments(source);
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    text.match_indices(function).find_map(|(at, _)| {
        let before = text.as_bytes()[..at].last();
        let rest = text[at + function.len()..].trim_start();
        if before.is_some_and(is_part) {
            return None;
        }
        let inner = rest.strip_prefix('(')?;
        let end = closing(inner)?;
        let is_defined = inner[end + 1..].trim_start().starts_with('{');
        let begin = text.len() - inner.len();
        // `rest` ends where the text does, so that places count from its end.
        is_defined.then(|| cut(&text, begin..begin + end))
    })
}

/// The place of the parenthesis that closes one before the text.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 0 => return Some(at),
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The parameters in a part of a text.
fn cut(text: &str, part: std::ops::Range<usize>) -> Vec<KernelParameter> {
    let mut found = Vec::new();
    let (mut depth, mut begin) = (0_i32, part.start);
    for (at, byte) in text.bytes().enumerate().take(part.end).skip(part.start) {
        match byte {
            b'(' | b'[' | b'{' | b'<' => depth += 1,
            b')' | b']' | b'}' | b'>' => depth -= 1,
            b',' if depth == 0 => {
                found.extend(parameter(text, begin..at));
                begin = at + 1;
            }
            _ => {}
        }
    }
    found.extend(parameter(text, begin..part.end));
    found
}

fn parameter(text: &str, part: std::ops::Range<usize>) -> Option<KernelParameter> {
    let whole = text[part.clone()].split('=').next().unwrap_or_default();
    let own = whole.split('[').next().unwrap_or_default();
    let name_end = own.trim_end().len();
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = own[..name_end].rsplit(|c| !is_part(c)).next().filter(|name| !name.is_empty())?;
    if own.trim() == "void" {
        return None;
    }
    let before = &text[..part.start + name_end];
    let length = whole[own.len()..].trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let length = length.map(str::trim).filter(|length| !length.is_empty());
    let is_channel = length.is_some_and(|own| CHANNEL_COUNTS.contains(&own));
    let word = own.split_once("stream<").and_then(|(_, rest)| rest.rsplit_once('>'));
    let kind = if own.contains('&') {
        ParameterKind::Stream
    } else if whole.len() > own.len() && own.contains("stream<") && !is_channel {
        ParameterKind::StreamArray
    } else {
        ParameterKind::Other
    };
    Some(KernelParameter {
        name: name.to_owned(),
        kind,
        word: word.map(|(word, _)| word.trim().to_owned()),
        length: length.map(str::to_owned),
        line: 1 + before.matches('\n').count(),
    })
}

/// The fields of a structure of that name, words apart by one blank; `None`: it is not defined there.
pub(crate) fn fields(source: &str, name: &str) -> Option<String> {
    let text = without_comments(source);
    text.match_indices("struct").find_map(|(at, word)| {
        let rest = text[at + word.len()..].trim_start().strip_prefix(name)?.trim_start().strip_prefix('{')?;
        let inner = rest.split('}').next()?;
        Some(inner.split_whitespace().collect::<Vec<_>>().join(" "))
    })
}

/// The source with blanks in the place of comments, texts and lines of the preprocessor, so that lines stay.
fn without_comments(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut rest = source.chars().peekable();
    let mut begins_line = true;
    while let Some(c) = rest.next() {
        let next = rest.peek().copied();
        match c {
            '/' if next == Some('/') => blank(&mut text, &mut rest, |_, c| c == '\n'),
            '#' if begins_line => blank(&mut text, &mut rest, |before, c| c == '\n' && before != '\\'),
            '/' if next == Some('*') => {
                text.push(' ');
                rest.next();
                blank(&mut text, &mut rest, |before, c| before == '*' && c == '/');
            }
            // The mark between digits of a number.
            '\'' if text.ends_with(|before: char| before.is_ascii_alphanumeric()) => text.push(c),
            '"' | '\'' => {
                let mut is_escaped = false;
                blank(&mut text, &mut rest, |_, own| {
                    let ends = own == c && !is_escaped;
                    is_escaped = own == '\\' && !is_escaped;
                    ends
                });
            }
            _ => text.push(c),
        }
        begins_line = c == '\n' || begins_line && c.is_whitespace() || text.ends_with('\n');
    }
    text
}

/// Blanks for the character before, and for all up to the one that ends, which is told with that before it.
fn blank(text: &mut String, rest: &mut Peekable<Chars<'_>>, mut ends: impl FnMut(char, char) -> bool) {
    text.push(' ');
    let mut before = ' ';
    for c in rest.by_ref() {
        text.push(if c == '\n' { '\n' } else { ' ' });
        if ends(before, c) {
            return;
        }
        before = c;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Catches names that are those of types, parameters that are cut within a type, a function that is only
    /// called or declared, and lines that are another's.
    #[test]
    fn parameters_are_those_of_the_definition() {
        let source = "#include \"x.h\" // own(\n/* void own(int a) {} */\nvoid own(int);\n\
                      #define own(x) \\\n  {\n\
                      const char *text = \"own(b) {\";\nint not_own(int c) { return own(c) + 1'000; }\n\
                      extern \"C\" void own(unsigned n, const int32_t *input,\n\
                      \x20   hls::stream<pair<int, 3>> &out,\n\
                      \x20   hls::stream<float>& in, hls::stream<int> all[4],\
                      message_stream_t message_data_in[N(1, 2)])\n{\n}\n";
        let found = parameters(source, "own").unwrap();
        let told: Vec<_> = found.iter().map(|own| (own.name.as_str(), own.kind, own.line)).collect();
        let expected = [
            ("n", ParameterKind::Other, 8),
            ("input", ParameterKind::Other, 8),
            ("out", ParameterKind::Stream, 9),
            ("in", ParameterKind::Stream, 10),
            ("all", ParameterKind::StreamArray, 10),
            ("message_data_in", ParameterKind::Other, 10),
        ];
        assert_eq!(told, expected);
        assert_eq!(found[2].word.as_deref(), Some("pair<int, 3>"));
        assert_eq!(found[4].length.as_deref(), Some("4"));
        assert_eq!(parameters("void own(void) {}", "own"), Some(Vec::new()));
        let channel = "void own(hls::stream<uint128_t> message_data_in[ N_INPUT_CHANNELS ]) {}";
        assert_eq!(parameters(channel, "own").unwrap()[0].kind, ParameterKind::Other);
        assert_eq!(parameters("void own(int n);", "own"), None);
        assert_eq!(parameters("KERNEL(own) {}", "own"), None);
    }

    /// Catches structures that differ by blanks or by a comment, and one that is used only.
    #[test]
    fn fields_are_those_of_the_definition() {
        let source = "struct pair_t a;\nstruct pair_t // {\n{ int a, /* b */\n b; };\n\
                      struct pair_type { int c; };";
        assert_eq!(fields(source, "pair_t").as_deref(), Some("int a, b;"));
        assert_eq!(fields(source, "pair"), None);
    }

    proptest! {
        /// Catches texts that make the reader panic.
        #[test]
        fn any_text_is_read(text in "(own|[(){}<>\\[\\]&,=*/#\\\\\"' \nüa]){0,40}") {
            let _ = (parameters(&text, "own"), fields(&format!("struct own{text}"), "own"));
        }
    }
}
