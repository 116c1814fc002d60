//! YAML as a tree whose nodes know their lines.
//!
//! # Not modelled
//! Anchors, aliases, tags and several documents: designs have none, and they are refused.

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};

/// A node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct YamlNode {
    pub line: usize,
    pub value: YamlValue,
}

/// The contents of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum YamlValue {
    /// Text, and whether it was in quotes.
    Scalar {
        text: String,
        quoted: bool,
    },
    Sequence(Vec<YamlNode>),
    /// Keys with their lines, in their order.
    Mapping(Vec<(EntryKey, YamlNode)>),
}

/// A key of a mapping.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct EntryKey {
    pub line: usize,
    pub name: String,
}

/// A mistake in a text, its line, and the mend.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wrong {
    pub line: usize,
    pub what: String,
    pub mend: &'static str,
}

/// Sequences and mappings within each other: a design has four.
const DEEPEST: usize = 16;

/// Reads the only document of a text. `None`: the text is empty.
pub(crate) fn read(text: &str) -> Result<Option<YamlNode>, Wrong> {
    let mut reader = NodeReader { parser: Parser::new_from_str(text), line: 1 };
    loop {
        match reader.next()? {
            Event::StreamStart | Event::DocumentStart(_) | Event::Nothing => {}
            Event::StreamEnd | Event::DocumentEnd => return Ok(None),
            event => {
                let node = reader.node(event, 0)?;
                return reader.end(node);
            }
        }
    }
}

struct NodeReader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    /// The line of the last event.
    line: usize,
}

impl<'a> NodeReader<'a> {
    fn next(&mut self) -> Result<Event<'a>, Wrong> {
        match self.parser.next_event() {
            Some(Ok((event, Span { start, .. }))) => {
                self.line = start.line().max(1);
                Ok(event)
            }
            Some(Err(error)) => {
                let (line, what) =
                    (error.marker().line().max(1), format!("this is no YAML: {}", error.info()));
                Err(Wrong { line, what, mend: "mend the line, or the one before it" })
            }
            None => Ok(Event::StreamEnd),
        }
    }

    fn wrong<R>(&self, what: &str) -> Result<R, Wrong> {
        let what = format!("a design does not have {what}");
        Err(Wrong { line: self.line, what, mend: "leave it out" })
    }

    fn end(&mut self, node: YamlNode) -> Result<Option<YamlNode>, Wrong> {
        loop {
            match self.next()? {
                Event::StreamEnd => return Ok(Some(node)),
                Event::DocumentEnd | Event::Nothing => {}
                _ => return self.wrong("a second document"),
            }
        }
    }

    fn node(&mut self, event: Event<'a>, depth: usize) -> Result<YamlNode, Wrong> {
        let line = self.line;
        if depth > DEEPEST {
            return self.wrong("so many levels");
        }
        let value = match event {
            Event::Scalar(text, style, 0, None) => {
                YamlValue::Scalar { text: text.into_owned(), quoted: style != ScalarStyle::Plain }
            }
            Event::SequenceStart(0, None) => {
                let mut nodes = Vec::new();
                loop {
                    match self.next()? {
                        Event::SequenceEnd => break YamlValue::Sequence(nodes),
                        event => nodes.push(self.node(event, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(0, None) => {
                let mut entries = Vec::new();
                loop {
                    let name = match self.next()? {
                        Event::MappingEnd => break YamlValue::Mapping(entries),
                        Event::Scalar(text, _, 0, None) => text.into_owned(),
                        _ => return self.wrong("a key that is no word"),
                    };
                    let key = EntryKey { line: self.line, name };
                    let event = self.next()?;
                    entries.push((key, self.node(event, depth + 1)?));
                }
            }
            _ => return self.wrong("anchors, aliases and tags"),
        };
        Ok(YamlNode { line, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scalar(line: usize, text: &str) -> YamlNode {
        YamlNode { line, value: YamlValue::Scalar { text: text.to_owned(), quoted: false } }
    }

    /// Catches nodes that are told on other lines than they are.
    #[test]
    fn nodes_know_their_lines() {
        let node = read("# first\na:\n  - 1\n  - b: two\n").unwrap().unwrap();
        let YamlValue::Mapping(entries) = node.value else { panic!("no mapping") };
        assert_eq!(entries[0].0, EntryKey { line: 2, name: "a".to_owned() });
        let YamlValue::Sequence(nodes) = &entries[0].1.value else { panic!("no sequence") };
        assert_eq!(nodes[0], scalar(3, "1"));
        let YamlValue::Mapping(inner) = &nodes[1].value else { panic!("no mapping") };
        assert_eq!((inner[0].0.line, &inner[0].1), (4, &scalar(4, "two")));
        assert_eq!(read("# nothing\n").unwrap(), None);
    }

    /// Catches text that is no YAML, or more than designs have, and passes.
    #[test]
    fn what_designs_do_not_have_is_refused_with_its_line() {
        for (text, line) in [("a: 1\nb: &x 2\n", 2), ("a: 1\n---\nb: 2\n", 2), ("a: [1\nb: 2\n", 2)] {
            assert_eq!(read(text).unwrap_err().line, line, "{text}");
        }
        assert!(read(&"[".repeat(10_000)).is_err());
    }

    proptest! {
        /// Catches texts that make the reader panic or go on for ever.
        #[test]
        fn any_text_is_read_or_refused(text in "[-a:\\[\\]{}&*!|> \n\t\"'#,0-9]{0,60}") {
            let _ = read(&text);
        }
    }
}
