//! The inputs that fuzzing of machine files and graphs found worth keeping, through the entry points of its
//! targets `fuzz/fuzz_targets/machine.rs` and `graph.rs`.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use proptest::prelude::*;
use std::fs;
use weft_machine::{Files, SHIPPED, check_bytes, check_with_files};

/// Catches what fuzzing once found, and what it would find at once: a panic, an endless loop, memory of
/// the size that a file merely says.
#[test]
fn every_input_gives_a_machine_or_diagnostics() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/machine");
    let (mut machines, mut refused) = (0, 0);
    for entry in fs::read_dir(corpus).unwrap() {
        let input = fs::read(entry.unwrap().path()).unwrap();
        let mut parts = input.split(|&byte| byte == 0);
        let file = parts.next().unwrap();
        let sets: Vec<_> = parts.map(String::from_utf8_lossy).collect();
        match check_bytes("fuzz.toml", file, &sets) {
            Ok(_) => machines += 1,
            Err(diagnostics) => {
                assert!(!diagnostics.to_string().is_empty());
                refused += 1;
            }
        }
    }
    // A corpus of one kind only would test little.
    assert!(machines > 0 && refused > 0, "{machines} machines, {refused} refused");
}

/// Whether a text is a graph in any of the formats. Diagnostics are printed.
fn is_graph(text: &str) -> bool {
    let machine = SHIPPED.iter().find(|shipped| shipped.name == "deep-msa").unwrap().text;
    let mut is_any = false;
    for name in ["net.edges", "net.json", "net.graphml"] {
        let files = Files::from([(name.to_owned(), text.to_owned())]);
        match check_with_files("fuzz.toml", machine, &files, &[format!("topology.file={name}")]) {
            Ok(_) => is_any = true,
            Err(diagnostics) => assert!(!diagnostics.to_string().is_empty()),
        }
    }
    is_any
}

/// The files of graphs in the corpus.
fn graphs() -> Vec<String> {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/graph");
    fs::read_dir(corpus).unwrap().map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect()
}

/// Catches a graph that panics, and memory of the size that a file merely says.
#[test]
fn every_graph_gives_a_machine_or_diagnostics() {
    let are_graphs = graphs().iter().filter(|text| is_graph(text)).count();
    assert!(are_graphs > 0 && are_graphs < graphs().len(), "{are_graphs}");
}

proptest! {
    /// Catches a panic on a file of the corpus from which a part is gone, or is there twice.
    #[test]
    fn damaged_graphs_give_a_machine_or_diagnostics(
        (which, from, to) in any::<(prop::sample::Index, prop::sample::Index, prop::sample::Index)>(),
        twice: bool,
    ) {
        let graphs = graphs();
        let text: Vec<char> = which.get(&graphs).chars().collect();
        let (from, to) = (from.index(text.len()), to.index(text.len()));
        let (from, to) = (from.min(to), from.max(to));
        let middle = if twice { [&text[from..to], &text[from..to]].concat() } else { Vec::new() };
        is_graph(&[&text[..from], &middle, &text[to..]].concat().iter().collect::<String>());
    }
}
