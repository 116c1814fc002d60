//! A point of a study: one call of a command.

use crate::value::Value;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Keys whose values are files, where they are named so.
const FILES: [&str; 5] = ["machine", "scenario", "map", "traces", "program"];

/// A parameter: an option of the command, or a key of the machine.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Key {
    /// An option, such as `load`, or what stands without one: `app`, `benchmark`, `traces`, `program`.
    Option(String),
    /// A key of `--set`, such as `topology.k`.
    Set(String),
}

impl Key {
    /// The name of its column.
    pub(crate) fn column(&self) -> String {
        match self {
            Key::Option(name) => name.replace('-', "_"),
            Key::Set(key) if key.contains('.') => key.clone(),
            Key::Set(key) => format!("set.{key}"),
        }
    }
}

/// A point: parameters and a seed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Point {
    /// The name: a digest of all that its result depends on.
    pub id: String,
    /// The words of its command, which prints a JSON document.
    pub words: Vec<String>,
    /// The parameters by their columns, in the order of the file, the seed last.
    pub parameters: Vec<(String, Value)>,
    /// The seed.
    pub seed: u64,
}

/// The causes that all points of a study have in common.
pub(crate) struct Causes<'a> {
    pub(crate) command: &'a str,
    /// The folder of the files that points name, unless from the root.
    pub(crate) folder: &'a Path,
    /// The tables that each point keeps.
    pub(crate) kept: Option<&'a str>,
}

impl Causes<'_> {
    /// The point with these parameters.
    pub(crate) fn point(&self, given: &[(&Key, &Value)], seed: u64) -> Point {
        let Causes { command, folder, kept } = *self;
        let mut head = vec![command.to_owned()];
        let (mut options, mut tail) = (Vec::new(), Vec::new());
        let mut causes = vec![env!("CARGO_PKG_VERSION").to_owned(), command.to_owned(), seed.to_string()];
        causes.extend(kept.map(str::to_owned));
        for (key, value) in given {
            causes.push(format!("{}={value:?}", key.column()));
            match key {
                Key::Set(name) => options.extend(["--set".to_owned(), format!("{name}={}", value.set())]),
                Key::Option(name) => {
                    let words = located(folder, name, value, &mut causes);
                    match (name.as_str(), value) {
                        ("benchmark" | "traces" | "app", _) => head.extend(words),
                        ("program", _) => {
                            tail = words;
                            tail.insert(0, "--".to_owned());
                        }
                        // The name of a case is for people.
                        ("case", _) | (_, Value::Boolean(false)) => {}
                        (_, Value::Boolean(true)) => options.push(format!("--{}", name.replace('_', "-"))),
                        _ => options.extend([format!("--{}", name.replace('_', "-")), words.join(",")]),
                    }
                }
            }
        }
        options.extend(["--seed".to_owned(), seed.to_string(), "--quiet".to_owned(), "--json".to_owned()]);
        let parameters = given.iter().map(|(key, value)| (key.column(), (*value).clone()));
        let parameters = parameters.chain([("seed".to_owned(), Value::Integer(seed as i64))]);
        let id = Sha256::digest(causes.join("\n")).into_iter().take(8).map(|byte| format!("{byte:02x}"));
        Point {
            id: id.collect(),
            words: [head, options, tail].concat(),
            parameters: parameters.collect(),
            seed,
        }
    }
}

impl Point {
    /// The same, with its results in `directory`: those `tables`.
    pub(crate) fn keeping(mut self, directory: &Path, tables: &str) -> Point {
        let words = ["--output", &directory.display().to_string(), "--force", "--tables", tables];
        self.words.splice(1..1, words.map(str::to_owned));
        self
    }

    /// The value of a parameter.
    pub(crate) fn parameter(&self, name: &str) -> Option<&Value> {
        self.parameters.iter().find(|(other, _)| other == name).map(|(_, value)| value)
    }

    /// The parameters for people: `load=0.2 topology.k=4 seed=1`.
    pub fn label(&self) -> String {
        let parts = self.parameters.iter().map(|(name, value)| format!("{name}={}", value.set()));
        parts.collect::<Vec<_>>().join(" ")
    }
}

/// The words of a value, files with their folder; what is in the files is a cause of the result.
fn located(folder: &Path, name: &str, value: &Value, causes: &mut Vec<String>) -> Vec<String> {
    let words = value.words();
    if !FILES.contains(&name) {
        return words;
    }
    let locate = |word: String| {
        // A folder of results may be called as a mapping is.
        if name == "map" && ["linear", "switch", "node", "random"].contains(&word.as_str()) {
            return word;
        }
        let is_file = ["traces", "map"].contains(&name);
        let is_path =
            is_file || word.contains('/') || [".toml", ".weft"].iter().any(|end| word.ends_with(end));
        let path: PathBuf = folder.join(&word);
        if !is_path || !path.exists() {
            return word;
        }
        if let Some(contents) = path.is_file().then(|| std::fs::read(&path).ok()).flatten() {
            causes.push(format!("{:x?}", Sha256::digest(contents)));
        }
        path.display().to_string()
    };
    words.into_iter().map(locate).collect()
}
