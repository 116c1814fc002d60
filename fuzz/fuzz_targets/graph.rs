//! Any text as the file of a graph, in each of the formats: a machine or diagnostics that can be printed.

#![no_main]

use weft_machine::{Files, SHIPPED, check_with_files};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Ok(graph) = std::str::from_utf8(input) else { return };
    let machine = SHIPPED.iter().find(|shipped| shipped.name == "deep-msa").expect("it ships").text;
    for name in ["net.edges", "net.json", "net.graphml"] {
        let files = Files::from([(name.to_owned(), graph.to_owned())]);
        let sets = [format!("topology.file={name}")];
        if let Err(diagnostics) = check_with_files("fuzz.toml", machine, &files, &sets) {
            assert!(!diagnostics.to_string().is_empty());
        }
    }
});
