//! Streams that join two kernels of a node directly, beside the ports of the Communication IP.
//!
//! ```yaml
//! streams:
//!   - name: samples
//!     from: krnl_front.samples_out
//!     to: krnl_back.samples_in
//!     depth: 64
//! ```
//! The list is ours: it says what `stream_connect=krnl_front.samples_out:krnl_back.samples_in:64` says to the
//! linker of Vitis. A depth of two where none is given, as `hls::stream` has it.

use crate::config::{ConfigReader, DesignKernel, NumberKey, find};
use crate::yaml::{YamlNode, YamlValue};
use std::fmt;

/// Words of a stream without a depth: as Vitis HLS gives it.
const USUAL_DEPTH: u32 = 2;
/// Words that a stream may have: ours.
const MOST_DEPTH: u32 = 1 << 20;

const DEPTHS: NumberKey = NumberKey {
    key: "depth",
    meaning: "words that it holds",
    least: 1,
    most: MOST_DEPTH,
    why: "a FIFO holds one word or more",
};

/// A parameter of a kernel that is a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamEnd {
    /// The kernel.
    pub kernel: String,
    /// The parameter of its function.
    pub parameter: String,
    /// The line that names it.
    pub line: usize,
}

impl fmt::Display for StreamEnd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.kernel, self.parameter)
    }
}

/// A stream between two kernels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DesignStream {
    /// The name by which reports call it.
    pub name: String,
    /// The end that is written.
    pub from: StreamEnd,
    /// The end that is read.
    pub to: StreamEnd,
    /// Words that it holds.
    pub depth: u32,
    /// The line of its name.
    pub line: usize,
}

impl ConfigReader {
    /// The list of streams between these kernels.
    pub(crate) fn streams(&mut self, node: &YamlNode, kernels: &[DesignKernel]) -> Vec<DesignStream> {
        let YamlValue::Sequence(nodes) = &node.value else {
            self.mistake(node.line, "`streams` is no list", "begin each stream with `- name:`");
            return Vec::new();
        };
        let streams: Vec<DesignStream> = nodes.iter().filter_map(|node| self.stream(node)).collect();
        for (at, stream) in streams.iter().enumerate() {
            for end in [&stream.from, &stream.to] {
                self.check_kernel(end, kernels);
            }
            for other in &streams[..at] {
                self.check_pair(stream, other);
            }
        }
        streams
    }

    fn stream(&mut self, node: &YamlNode) -> Option<DesignStream> {
        let entries = self.mapping(node, "a stream", &["name", "from", "to", "depth"])?;
        let name = self.required(node, entries, "name", "the stream's name").and_then(|node| self.name(node));
        let mut end = |key, meaning| {
            let node = self.required(node, entries, key, meaning)?;
            self.end(node, key)
        };
        let from = end("from", "the kernel and its parameter that write it, as in krnl_a.out");
        let to = end("to", "the kernel and its parameter that read it, as in krnl_b.in");
        let depth = match find(entries, "depth") {
            Some(_) => self.number(node, entries, &DEPTHS),
            None => Some(USUAL_DEPTH),
        };
        let (line, name) = name?;
        Some(DesignStream { name, from: from?, to: to?, depth: depth?, line })
    }

    /// `KERNEL.PARAMETER`.
    fn end(&mut self, node: &YamlNode, key: &str) -> Option<StreamEnd> {
        let text = match &node.value {
            YamlValue::Scalar { text, .. } => text.as_str(),
            _ => "",
        };
        let parts = text.split_once('.').filter(|(kernel, parameter)| {
            let is_word = |part: &str| !part.is_empty() && !part.contains(['.', ' ']);
            is_word(kernel) && is_word(parameter)
        });
        if parts.is_none() {
            let what = format!("`{key}` names no parameter of a kernel");
            self.mistake(node.line, what, "write KERNEL.PARAMETER, as in krnl_a.out");
        }
        let (kernel, parameter) = parts?;
        Some(StreamEnd { kernel: kernel.to_owned(), parameter: parameter.to_owned(), line: node.line })
    }

    fn check_kernel(&mut self, end: &StreamEnd, kernels: &[DesignKernel]) {
        if kernels.iter().any(|kernel| kernel.name == end.kernel) {
            return;
        }
        let names: Vec<&str> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        let what = format!("the design has no kernel {}", end.kernel);
        self.mistake(end.line, what, format!("it has {}", names.join(", ")));
    }

    /// A stream has one writer and one reader, and a parameter one stream.
    fn check_pair(&mut self, stream: &DesignStream, other: &DesignStream) {
        if stream.name == other.name {
            let what = format!("stream {} is there twice, first on line {}", stream.name, other.line);
            self.mistake(stream.line, what, "give each a name of its own");
        }
        let is_same =
            |one: &StreamEnd, two: &StreamEnd| one.kernel == two.kernel && one.parameter == two.parameter;
        for end in [&stream.from, &stream.to] {
            for (taken, does) in [(&other.from, "written"), (&other.to, "read")] {
                if is_same(end, taken) {
                    let what = format!(
                        "{end} is joined twice: as stream {} of line {} it is {does} already",
                        other.name, taken.line
                    );
                    let mend = "a stream has one writer and one reader: give the kernel a parameter for each";
                    self.mistake(end.line, what, mend);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Design;
    use crate::config::tests::{LATENCY, mistakes};
    use std::path::Path;

    const STREAMS: &str = "\
streams:
  - name: there
    from: krnl_sr_1.out
    to: krnl_sr_2.in
    depth: 64
  - name: back
    from: krnl_sr_2.out
    to: krnl_sr_1.in
";

    /// Catches ends that are exchanged, and a depth that is another where none is given.
    #[test]
    fn streams_are_read() {
        let design = Design::of_text(Path::new("own.yaml"), &format!("{LATENCY}{STREAMS}")).unwrap();
        let told = |stream: &DesignStream| {
            let DesignStream { name, from, to, depth, line } = stream;
            format!("{name}: {from} to {to}, {depth}, line {line}")
        };
        let told: Vec<_> = design.streams.iter().map(told).collect();
        assert_eq!(
            told,
            [
                "there: krnl_sr_1.out to krnl_sr_2.in, 64, line 15",
                "back: krnl_sr_2.out to krnl_sr_1.in, 2, line 19"
            ]
        );
    }

    /// Catches a stream that two kernels write or read, or that nobody does, and mistakes on other lines.
    #[test]
    fn mistakes_in_streams_name_their_line_and_the_mend() {
        for (from, to, told) in [
            (
                "to: krnl_sr_2.in",
                "to: krnl_sr_3.in",
                "own.yaml:17: the design has no kernel krnl_sr_3; it has krnl_sr_1",
            ),
            (
                "to: krnl_sr_1.in",
                "to: krnl_sr_2.in",
                "own.yaml:21: krnl_sr_2.in is joined twice: as stream there of line 17 it is read",
            ),
            (
                "from: krnl_sr_2.out",
                "from: krnl_sr_1.out",
                "own.yaml:20: krnl_sr_1.out is joined twice: as stream there of line 16 it is written",
            ),
            (
                "from: krnl_sr_2.out",
                "from: krnl_sr_2",
                "own.yaml:20: `from` names no parameter of a kernel; write KERNEL.PARAMETER",
            ),
            ("    from: krnl_sr_2.out\n", "", "own.yaml:19: `from` is missing; write `from:`"),
            ("depth: 64", "depth: 0", "own.yaml:18: `depth` cannot be 0"),
            ("name: back", "name: there", "own.yaml:19: stream there is there twice, first on line 15"),
            ("depth:", "length:", "own.yaml:18: a stream has no key `length`; it has name, from, to, depth"),
        ] {
            let told_all = mistakes(&format!("{LATENCY}{}", STREAMS.replacen(from, to, 1)));
            assert!(told_all.iter().any(|line| line.contains(told)), "{told}: {told_all:?}");
        }
        assert!(mistakes(&format!("{LATENCY}streams: 1\n"))[0].contains("`streams` is no list"));
    }
}
