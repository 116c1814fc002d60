//! `config.yaml`: the kernels of a design, their channels and ports, its frequency, its links.
//!
//! ```yaml
//! kernels:
//!   - name: krnl_sr_1
//!     input_channels: 4
//!     output_channels: 4
//!     switch_port: 0
//!     cycles: 1            # ours: between two accesses to one stream
//!     depth: 256           # ours: words of the FIFO of each input channel
//! config:
//!   freq: 100
//!   links: 2
//! ```
//! `streams` beside them is ours: see `streams`.
//!
//! # Source
//! TEXTAROSSA D2.8 appendix C.

use crate::error::{DesignError, Mistake};
use crate::streams::{DEPTHS, DesignStream};
use crate::yaml::{self, EntryKey, Wrong, YamlNode, YamlValue};
use std::path::{Path, PathBuf};

/// IntraNode ports that `intra_dest` of a header names: D2.8 appendix B, 4 bits.
pub const MOST_PORTS: u32 = 16;
/// The frequency that the Communication IP is validated for, in MHz: D2.8 appendix C.
pub const VALIDATED_MHZ: u32 = 100;
/// InterNode ports of a node of three dimensions: a header has x, y and z.
const MOST_LINKS: u32 = 6;
/// Channels that a kernel may have: ours.
const MOST_CHANNELS: u32 = 256;
/// Cycles between two accesses to a stream: ours.
const MOST_CYCLES: u32 = 1_000_000;

/// Characters of a name: names of files have 255 bytes.
const LONGEST_NAME: usize = 200;
/// Words of C++14 that are names of nothing.
const CPP_WORDS: &str = "\
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t \
    class compl const const_cast constexpr continue decltype default delete do double dynamic_cast \
    else enum explicit export extern false float for friend goto if inline int long mutable namespace \
    new noexcept not not_eq nullptr operator or or_eq private protected public register \
    reinterpret_cast return short signed sizeof static struct switch template this throw true try \
    typedef union unsigned void while";

/// A kernel of a design.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DesignKernel {
    /// The name: of a replica that of its function and a number, as `krnl_sr_1`.
    pub name: String,
    /// Input channels.
    pub inputs: u32,
    /// Output channels.
    pub outputs: u32,
    /// The IntraNode port of the Communication IP that it is at; `None`: it has streams alone.
    pub port: Option<u32>,
    /// Cycles between two accesses to one stream.
    pub cycles: u32,
    /// Words of the FIFO of each input channel; `None`: those of the largest packet.
    pub depth: Option<u32>,
    /// The line of its name.
    pub line: usize,
}

impl DesignKernel {
    /// The names that its function and its source may have: its own, or that without the number of a replica.
    pub fn functions(&self) -> Vec<&str> {
        let stem = self.name.rsplit_once('_').filter(|(stem, number)| {
            !stem.is_empty() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        [Some(self.name.as_str()), stem.map(|(stem, _)| stem)].into_iter().flatten().collect()
    }
}

/// A design.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Design {
    /// The file as the user named it.
    pub file: PathBuf,
    /// In the order of their ports, one at each from 0 on, and then those at none.
    pub kernels: Vec<DesignKernel>,
    /// The clock of the whole design, in MHz.
    pub megahertz: u32,
    /// The line that says so.
    pub freq_line: usize,
    /// InterNode ports.
    pub links: u32,
    /// The line that says so.
    pub links_line: usize,
    /// Streams that join two kernels directly.
    pub streams: Vec<DesignStream>,
}

impl Design {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or has mistakes: all of them, with their lines.
    pub fn read(path: &Path) -> Result<Design, DesignError> {
        let unreadable = |error| DesignError::Unreadable { path: path.to_owned(), error };
        let bytes = std::fs::read(path).map_err(unreadable)?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            DesignError::Mistakes(vec![Mistake {
                file: path.display().to_string(),
                line: 1 + good.iter().filter(|byte| **byte == b'\n').count(),
                what: "this is no text in UTF-8".to_owned(),
                mend: "save it as UTF-8, or name a config.yaml of an APEIRON design".to_owned(),
            }])
        })?;
        Design::of_text(path, &text).map_err(DesignError::Mistakes)
    }

    /// Reads the text of a file of that name.
    ///
    /// # Errors
    /// All mistakes in it.
    pub fn of_text(path: &Path, text: &str) -> Result<Design, Vec<Mistake>> {
        let mut reader = ConfigReader { file: path.display().to_string(), mistakes: Vec::new() };
        let design = reader.design(path, text);
        match design.filter(|_| reader.mistakes.is_empty()) {
            Some(design) => Ok(design),
            None => Err(reader.mistakes),
        }
    }

    /// The file as errors name it.
    pub fn name(&self) -> String {
        self.file.display().to_string()
    }
}

/// A key with a number: its meaning, the numbers that it takes, and why.
pub(crate) struct NumberKey {
    pub key: &'static str,
    pub meaning: &'static str,
    pub least: u32,
    pub most: u32,
    pub why: &'static str,
}

const INPUTS: NumberKey = NumberKey {
    key: "input_channels",
    meaning: "the number of them",
    least: 1,
    most: MOST_CHANNELS,
    why: "a kernel has one channel or more",
};
const OUTPUTS: NumberKey = NumberKey { key: "output_channels", ..INPUTS };
const PORTS: NumberKey = NumberKey {
    key: "switch_port",
    meaning: "its IntraNode port",
    least: 0,
    most: MOST_PORTS - 1,
    why: "`intra_dest` of the header has 4 bits (D2.8 appendix B)",
};
const CYCLES: NumberKey = NumberKey {
    key: "cycles",
    meaning: "cycles",
    least: 1,
    most: MOST_CYCLES,
    why: "a stream gives one word per cycle",
};
const FREQUENCIES: NumberKey = NumberKey {
    key: "freq",
    meaning: "the frequency in MHz",
    least: 1,
    most: VALIDATED_MHZ,
    why: "the Communication IP is validated for 100 MHz (D2.8 appendix C)",
};
const LINKS: NumberKey = NumberKey {
    key: "links",
    meaning: "InterNode ports",
    least: 0,
    most: MOST_LINKS,
    why: "headers name nodes by x, y and z, with two InterNode ports each (D2.8 appendix B)",
};

/// Reads a design, and notes its mistakes.
pub(crate) struct ConfigReader {
    file: String,
    mistakes: Vec<Mistake>,
}

impl ConfigReader {
    pub(crate) fn mistake(&mut self, line: usize, what: impl Into<String>, mend: impl Into<String>) {
        let (what, mend) = (what.into(), mend.into());
        self.mistakes.push(Mistake { file: self.file.clone(), line, what, mend });
    }

    fn design(&mut self, path: &Path, text: &str) -> Option<Design> {
        let root = match yaml::read(text) {
            Ok(Some(root)) => root,
            Ok(None) => {
                self.mistake(1, "the design is empty", "write the lists `kernels` and `config`");
                return None;
            }
            Err(Wrong { line, what, mend }) => {
                self.mistake(line, what, mend);
                return None;
            }
        };
        let entries = self.mapping(&root, "the design", &["kernels", "config", "streams"])?;
        let kernels = self.required(&root, entries, "kernels", "the list of kernels");
        let kernels = kernels.map(|node| self.kernels(node));
        let config = self.required(&root, entries, "config", "`freq` and `links`");
        let config = config.and_then(|node| {
            let entries = self.mapping(node, "`config`", &["freq", "links"])?;
            let megahertz = self.number(node, entries, &FREQUENCIES);
            let links = self.number(node, entries, &LINKS);
            let line_of = |key| find(entries, key).map_or(node.line, |node| node.line);
            Some((megahertz?, line_of(FREQUENCIES.key), (links?, line_of(LINKS.key))))
        });
        let streams = find(entries, "streams");
        let streams = streams.map(|node| self.streams(node, kernels.as_deref().unwrap_or_default()));
        let (kernels, (megahertz, freq_line, (links, links_line))) = (kernels?, config?);
        let streams = streams.unwrap_or_default();
        // A stream with a mistake is not among them.
        let is_right = self.mistakes.is_empty();
        for kernel in kernels.iter().filter(|kernel| is_right && kernel.port.is_none()) {
            let mut ends = streams.iter().flat_map(|stream| [&stream.from, &stream.to]);
            if ends.all(|end| end.kernel != kernel.name) {
                let what = format!("kernel {} is at no port and has no stream", kernel.name);
                let mend = "write its switch_port and channels, or join it to another kernel in `streams`";
                self.mistake(kernel.line, what, mend);
            }
        }
        Some(Design { file: path.to_owned(), kernels, megahertz, freq_line, links, links_line, streams })
    }

    fn kernels(&mut self, node: &YamlNode) -> Vec<DesignKernel> {
        let YamlValue::Sequence(nodes) = &node.value else {
            self.mistake(node.line, "`kernels` is no list", "begin each kernel with `- name:`");
            return Vec::new();
        };
        if nodes.is_empty() {
            self.mistake(node.line, "a design without kernels", "write one with `- name:`");
        }
        let mut kernels: Vec<DesignKernel> = nodes.iter().filter_map(|node| self.kernel(node)).collect();
        let all = kernels.len() == nodes.len();
        for (at, kernel) in kernels.iter().enumerate() {
            for other in &kernels[..at] {
                if other.name == kernel.name {
                    let what = format!("kernel {} is there twice, first on line {}", kernel.name, other.line);
                    self.mistake(kernel.line, what, "give each replica a number, as in krnl_sr_1, krnl_sr_2");
                }
                if let Some(port) = kernel.port.filter(|_| other.port == kernel.port) {
                    let DesignKernel { name, line, .. } = kernel;
                    let what = format!(
                        "kernel {name} is at port {port}, as {} of line {} is",
                        other.name, other.line
                    );
                    self.mistake(*line, what, "give each kernel a switch_port of its own");
                }
            }
        }
        kernels.sort_by_key(|kernel| kernel.port.unwrap_or(u32::MAX));
        // A port without a kernel would leave streams of the Communication IP open.
        if all && self.mistakes.is_empty() {
            if kernels.first().is_some_and(|kernel| kernel.port.is_none()) {
                let mend = "write switch_port: 0, input_channels and output_channels for one";
                self.mistake(node.line, "no kernel is at a port of the Communication IP", mend);
            }
            let ports = kernels.iter().filter_map(|kernel| Some((kernel, kernel.port?)));
            for (port, (DesignKernel { name, line, .. }, own)) in (0..).zip(ports) {
                if own != port {
                    let what = format!("kernel {name} is at port {own}, and port {port} has no kernel");
                    self.mistake(*line, what, "number the ports from 0 on without gaps");
                    break;
                }
            }
        }
        kernels
    }

    fn kernel(&mut self, node: &YamlNode) -> Option<DesignKernel> {
        let keys = ["name", "input_channels", "output_channels", "switch_port", "cycles", "depth"];
        let entries = self.mapping(node, "a kernel", &keys)?;
        let name = self.required(node, entries, "name", "the kernel's name").and_then(|node| self.name(node));
        // One that is at no port has no channels.
        let of_port = [&INPUTS, &OUTPUTS, &PORTS];
        let [inputs, outputs, port] = match of_port.iter().any(|wanted| find(entries, wanted.key).is_some()) {
            true => of_port.map(|wanted| self.number(node, entries, wanted).map(Some)),
            false => [Some(None); 3],
        };
        let cycles = match find(entries, "cycles") {
            Some(_) => self.number(node, entries, &CYCLES),
            None => Some(1),
        };
        let depth = match find(entries, "depth") {
            Some(_) => Some(self.number(node, entries, &DEPTHS)?),
            None => None,
        };
        let ((line, name), port) = (name?, port?);
        if port.is_none() && depth.is_some() {
            let what = format!("`depth` is that of input channels, and kernel {name} has none");
            self.mistake(
                line,
                what,
                "leave it out, or write input_channels, output_channels and switch_port",
            );
        }
        let (inputs, outputs) = (inputs?.unwrap_or(0), outputs?.unwrap_or(0));
        Some(DesignKernel { name, inputs, outputs, port, cycles: cycles?, depth, line })
    }

    pub(crate) fn name(&mut self, node: &YamlNode) -> Option<(usize, String)> {
        let YamlValue::Scalar { text, .. } = &node.value else {
            self.mistake(node.line, "`name` is no word", "write one, as in krnl_sr_1");
            return None;
        };
        let is_word = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && text.bytes().next().is_some_and(|first| !first.is_ascii_digit());
        if !is_word {
            let what = format!("`{text}` is no name of a C++ function");
            self.mistake(node.line, what, "write letters, digits and underscores, as in krnl_sr_1");
            return None;
        }
        if CPP_WORDS.split(' ').any(|word| word == text) {
            self.mistake(
                node.line,
                format!("`{text}` is a word of C++"),
                "name it otherwise, as in krnl_sr_1",
            );
            return None;
        }
        if text.len() > LONGEST_NAME {
            let what = format!("a name of {} characters", text.len());
            self.mistake(node.line, what, format!("write {LONGEST_NAME} at most: files are called so"));
            return None;
        }
        Some((node.line, text.clone()))
    }

    /// The entries of a mapping that has no other keys than these, and each once.
    pub(crate) fn mapping<'n>(
        &mut self,
        node: &'n YamlNode,
        what: &str,
        keys: &[&str],
    ) -> Option<&'n [(EntryKey, YamlNode)]> {
        let YamlValue::Mapping(entries) = &node.value else {
            self.mistake(node.line, format!("{what} has no keys"), format!("write {}", keys.join(", ")));
            return None;
        };
        for (at, (key, _)) in entries.iter().enumerate() {
            if !keys.contains(&key.name.as_str()) {
                let unknown = format!("{what} has no key `{}`", key.name);
                self.mistake(key.line, unknown, format!("it has {}", keys.join(", ")));
            }
            if entries[..at].iter().any(|(other, _)| other.name == key.name) {
                self.mistake(key.line, format!("`{}` is there twice", key.name), "leave one of them out");
            }
        }
        Some(entries)
    }

    pub(crate) fn required<'n>(
        &mut self,
        owner: &YamlNode,
        entries: &'n [(EntryKey, YamlNode)],
        key: &str,
        meaning: &str,
    ) -> Option<&'n YamlNode> {
        let found = find(entries, key);
        if found.is_none() {
            self.mistake(owner.line, format!("`{key}` is missing"), format!("write `{key}:`, {meaning}"));
        }
        found
    }

    pub(crate) fn number(
        &mut self,
        owner: &YamlNode,
        entries: &[(EntryKey, YamlNode)],
        wanted: &NumberKey,
    ) -> Option<u32> {
        let NumberKey { key, meaning, least, most, why } = wanted;
        let node = self.required(owner, entries, key, meaning)?;
        let number = match &node.value {
            YamlValue::Scalar { text, quoted: false } => text.parse::<u32>().ok(),
            _ => None,
        };
        let number = number.filter(|number| (*least..=*most).contains(number));
        if number.is_none() {
            let (written, why) = match &node.value {
                YamlValue::Scalar { text, quoted: true } => (format!("\"{text}\""), "in quotes it is a text"),
                YamlValue::Scalar { text, .. } => (text.clone(), *why),
                _ => ("a list".to_owned(), *why),
            };
            let what = format!("`{key}` cannot be {written}: {why}");
            self.mistake(node.line, what, format!("write a whole number from {least} to {most}"));
        }
        number
    }
}

pub(crate) fn find<'n>(entries: &'n [(EntryKey, YamlNode)], key: &str) -> Option<&'n YamlNode> {
    entries.iter().find(|(own, _)| own.name == key).map(|(_, node)| node)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// As appendix C prints it.
    pub(crate) const LATENCY: &str = "\
kernels:
  - name: krnl_sr_1
    input_channels: 4
    output_channels: 4
    switch_port: 0
  - name: krnl_sr_2
    input_channels: 4
    output_channels: 3
    switch_port: 1

config:
  freq: 100
  links: 2
";

    pub(crate) fn latency() -> Design {
        Design::of_text(Path::new("config.yaml"), LATENCY).unwrap()
    }

    /// The same with a stream from the second kernel to the first.
    pub(crate) fn joined() -> Design {
        let stream = "streams: [{name: taps, from: krnl_sr_2.taps_out, to: krnl_sr_1.taps_in, depth: 16}]";
        Design::of_text(Path::new("config.yaml"), &format!("{LATENCY}{stream}\n")).unwrap()
    }

    pub(crate) fn mistakes(text: &str) -> Vec<String> {
        let mistakes = Design::of_text(Path::new("own.yaml"), text).unwrap_err();
        mistakes.iter().map(Mistake::to_string).collect()
    }

    /// Catches keys that are exchanged, and a replica that is not told from its function.
    #[test]
    fn the_design_of_appendix_c_is_read() {
        let design = latency();
        assert_eq!((design.megahertz, design.freq_line, design.links, design.kernels.len()), (100, 12, 2, 2));
        let second = &design.kernels[1];
        assert_eq!(
            (second.inputs, second.outputs, second.port, second.cycles, second.line),
            (4, 3, Some(1), 1, 6)
        );
        assert_eq!(second.functions(), ["krnl_sr_2", "krnl_sr"]);
        let named = |name: &str| DesignKernel { name: name.to_owned(), ..second.clone() };
        assert_eq!(named("filter").functions(), ["filter"]);
        assert_eq!(named("krnl_in").functions(), ["krnl_in"]);
    }

    /// Catches a mistake that passes, or that is told on another line or without a mend.
    #[test]
    fn mistakes_name_their_line_and_the_mend() {
        for (from, to, told) in [
            (
                "switch_port: 1",
                "switch_port: 0",
                "own.yaml:6: kernel krnl_sr_2 is at port 0, as krnl_sr_1 of line 2",
            ),
            (
                "switch_port: 1",
                "switch_port: 2",
                "own.yaml:6: kernel krnl_sr_2 is at port 2, and port 1 has no kernel",
            ),
            ("switch_port: 1", "switch_port: 16", "own.yaml:9: `switch_port` cannot be 16: `intra_dest`"),
            ("    switch_port: 1\n", "", "own.yaml:6: `switch_port` is missing; write `switch_port:`"),
            (
                "freq: 100",
                "freq: 250",
                "own.yaml:12: `freq` cannot be 250: the Communication IP is validated",
            ),
            ("freq: 100", "freq: \"100\"", "own.yaml:12: `freq` cannot be \"100\": in quotes it is a text"),
            ("krnl_sr_2", "class", "own.yaml:6: `class` is a word of C++"),
            ("links: 2", "links: 7", "own.yaml:13: `links` cannot be 7"),
            ("krnl_sr_2", "krnl_sr_1", "own.yaml:6: kernel krnl_sr_1 is there twice, first on line 2"),
            ("krnl_sr_2", "2nd", "own.yaml:6: `2nd` is no name of a C++ function"),
            ("output_channels: 3", "output_channels: 0", "own.yaml:8: `output_channels` cannot be 0"),
            (
                "output_channels: 3",
                "output_channels: 3\n    depth: 0",
                "own.yaml:9: `depth` cannot be 0: a FIFO holds one word or more",
            ),
            ("output_channels: 3", "outputs: 3", "own.yaml:8: a kernel has no key `outputs`; it has name"),
            ("links: 2", "links: 2\n  links: 2", "own.yaml:14: `links` is there twice"),
            ("config:", "config: [", "this is no YAML"),
        ] {
            let told_all = mistakes(&LATENCY.replacen(from, to, 1));
            assert!(told_all.iter().any(|line| line.contains(told)), "{told}: {told_all:?}");
        }
        assert!(mistakes("")[0].starts_with("own.yaml:1: the design is empty"));
        assert!(mistakes("- 1")[0].contains("the design has no keys; write kernels, config, streams"));
        assert!(mistakes("kernels: []\nconfig: 1").len() == 2);
    }

    /// Catches a kernel without a port that is taken for one that lacks its keys, or that nothing joins.
    #[test]
    fn a_kernel_may_have_streams_alone() {
        let own = "  - name: middle\n";
        let text = LATENCY.replace("kernels:\n", &format!("kernels:\n{own}"));
        let stream = "streams: [{name: taps, from: krnl_sr_1.out, to: middle.in}]\n";
        let read = |text: &str| Design::of_text(Path::new("own.yaml"), text);
        let design = read(&format!("{text}{stream}")).unwrap();
        let middle = &design.kernels[2];
        assert_eq!((middle.name.as_str(), middle.port, middle.inputs, middle.line), ("middle", None, 0, 2));
        assert!(mistakes(&text)[0].contains("own.yaml:2: kernel middle is at no port and has no stream"));
        let deep = text.replace(own, "  - {name: middle, depth: 4}\n");
        assert!(
            mistakes(&format!("{deep}{stream}"))[0].contains("own.yaml:2: `depth` is that of input channels")
        );
        let alone = "kernels: [{name: a}, {name: b}]\nconfig: {freq: 100, links: 0}\n\
                     streams: [{name: s, from: a.out, to: b.in}]\n";
        assert!(mistakes(alone)[0].contains("own.yaml:1: no kernel is at a port of the Communication IP"));
    }

    /// Catches mistakes of one file of which only the first is told.
    #[test]
    fn all_mistakes_are_told_at_once() {
        let text = LATENCY.replace("freq: 100", "freq: 0").replace("switch_port: 0", "switch_port: 99");
        assert_eq!(mistakes(&text).len(), 2);
    }
}
