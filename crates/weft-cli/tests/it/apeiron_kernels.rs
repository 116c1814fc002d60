//! Kernels of `weft apeiron` at any frequency, with several senders, and with mistakes that must be told.

use crate::apeiron::{Built, HOST, design, example, has_compiler, kernel, printed, project, refused, weft};
use crate::support::texts;
use std::path::Path;
use std::process::Command;

/// A project of the examples at another frequency, in a folder of the test's own.
fn at_frequency(name: &str, megahertz: u32) -> String {
    let own = example(name);
    let folder = Path::new(&own).parent().unwrap();
    let text = std::fs::read_to_string(&own).unwrap();
    let text = text.replace("freq: 100", &format!("freq: {megahertz}"));
    let files = ["hw_hls/krnl_sr.cpp", "hw_hls/krnl_sr.h", "host/latency_test.cpp", "host/fifo_test.cpp"];
    let sources = files.map(|file| (file, std::fs::read_to_string(folder.join(file)).unwrap()));
    let all: Vec<_> = sources.iter().map(|(file, text)| (*file, text.as_str())).collect();
    project(&format!("at_{megahertz}"), &[&all[..], &[("config.yaml", &text)]].concat())
}

/// Periods that are no whole picoseconds: 28 cycles from FIFO to FIFO, as the self-test of the model has
/// them, and 25 for half of a loop. Catches cycles that are rounded up twice on their way between kernels,
/// ports and switch.
#[test]
fn cycles_do_not_depend_on_the_frequency() {
    if !has_compiler() {
        return;
    }
    let built = Built::of(at_frequency("latency", 75), ("at_75", "latency_test"));
    let description = std::fs::read_to_string(&built.description).unwrap();
    for megahertz in [97, 90, 75, 66, 40, 33, 7] {
        let own = built.description.replace("design", &format!("design_{megahertz}"));
        let text = description.replace("frequency 75", &format!("frequency {megahertz}"));
        std::fs::write(&own, text).unwrap();
        let latency = Built {
            config: at_frequency("latency", megahertz),
            description: own,
            program: built.program.clone(),
        };
        let fifos =
            Built { program: latency.program.replace("latency_test", "fifo_test"), ..latency.clone() };
        let line = printed(&fifos.run(&[], &[]));
        assert_eq!(line, "Packet size: 16 B TX FIFO to RX FIFO: 28 cycles\n", "{megahertz} MHz");
        let clocks = ["nic.clock", "switch.clock"].map(|key| format!("{key}={megahertz}MHz"));
        let mut selftest = Command::new(env!("CARGO_BIN_EXE_weft"));
        selftest.args(["machine", "selftest", "communication-ip", "--set", &clocks[0], "--set", &clocks[1]]);
        let model = texts(&selftest.arg("--json").output().unwrap()).0;
        let model: serde_json::Value = serde_json::from_str(&model).unwrap();
        assert_eq!(model["rows"][0]["cycles"], 28, "{megahertz} MHz: {model}");
        let line = printed(&latency.run(&[], &["--bram", "--quiet", "-l", "16", "-n", "1000", "-i", "0"]));
        let told = line.trim_end().strip_prefix("Packet size: 16 B Latency: ").unwrap();
        let latency: f64 = told.strip_suffix(" us").unwrap().parse().unwrap();
        // The host reads whole µs: 0.5 ns of a packet each, and the line has three digits.
        let expected = 25.0 / f64::from(megahertz);
        assert!((latency - expected).abs() <= 1.1e-3, "{megahertz} MHz: {latency} us, and {expected}");
    }
}

/// Catches cycles of computing that hide behind the access of a stream: a block has 64 words.
#[test]
fn a_block_takes_its_words_times_the_interval() {
    if !has_compiler() {
        return;
    }
    let pairs = Built::of(example("pairs"), ("pairs_intervals", "pairs_test"));
    for (interval, per_block) in [("1", 0.64), ("2", 1.28), ("3", 1.92)] {
        let time = |blocks: &str| {
            let out = printed(&pairs.run(&[], &["-n", blocks, "-s", interval]));
            let line = out.lines().find(|line| line.contains("samples are right")).unwrap().to_owned();
            let own: f64 = line.split(": ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
            own * blocks.parse::<f64>().unwrap()
        };
        // What comes before the first block and behind the last is in both.
        let own = (time("200") - time("100")) / 100.0;
        assert!((own - per_block).abs() < 0.011, "-s {interval}: {own} us, and {per_block}");
    }
}

/// A host that starts the kernel of its node, with the node's number, and waits for it.
const NODE_HOST: &str = r#"
#include "apeiron_host.h"
int main(int, char **words)
{
    xrt::device device(0);
    const xrt::uuid design = device.load_xclbin(words[2]);
    xrt::kernel own(device, design, "own");
    own(apeiron_own_node(device), std::atoi(words[3])).wait();
}
"#;

/// Two nodes send to one channel. Catches a message that is put together of packets of both without a word,
/// and messages of one packet that are refused or mixed.
#[test]
fn two_senders_to_one_channel_are_told_apart() {
    if !has_compiler() {
        return;
    }
    let body = "static unsigned char bytes[5000];\n\
                for (int message = 0; node < 2 && message < 10; message++) {\n\
                bytes[0] = bytes[what - 1] = node + 1; send(bytes, what, apeiron_node(2), 0, 0); }\n\
                for (int message = 0; node == 2 && message < 20; message++)\n\
                if (receive(0u, bytes, message_data_in) != size_t(what) || bytes[0] != bytes[what - 1])\n\
                throw std::runtime_error(\"a mixed message\");";
    let source = kernel(body).replace("int what,", "int node, int what,");
    let built = Built::of(design("senders", &source, NODE_HOST), ("senders", "own_host"));
    let three = ["--set", "topology.dims=[3]"];
    printed(&built.run(&three, &["4096"]));
    let said = refused(1, &built.run(&three, &["4097"]));
    let told = "node 2: kernel own receives from message_data_in[0] a message of several packets from task 0 \
                of node ";
    let (_, rest) = said.split_once(told).unwrap_or_else(|| panic!("{said}"));
    let other = if rest.starts_with('0') { 1 } else { 0 };
    assert!(
        rest.contains(&format!("amid it a packet from task 0 of node {other}: give each sender")),
        "{said}"
    );
}

/// Catches kernels that end the run in ways of their own, and are not named.
#[test]
fn kernels_that_end_the_process_are_named() {
    if !has_compiler() {
        return;
    }
    let cases = [
        ("std::exit(3);", "node 0: kernel own calls exit"),
        ("std::abort();", "node 0: kernel own aborts"),
        ("throw 5;", "node 0: kernel own throws what is no std::exception"),
        (
            "char *small = new char[1]; for (size_t at = 0;; at++) ((volatile char *)small)[at] = 1;",
            "node 0: kernel own uses memory that it does not have",
        ),
        ("message_data_in[0].write(1);", "kernel own writes message_data_in[0], an input channel"),
        ("message_data_out[-1].write(1);", "kernel own writes message_data_out[-1]"),
    ];
    let branches =
        (0..).zip(cases).map(|(what, (does, _))| format!("    if (what == {what}) {{ {does} }}\n"));
    let body: String = branches.collect();
    let built = Built::of(design("ends", &kernel(&body), HOST), ("ends", "own_host"));
    for (what, (does, told)) in (0..).zip(cases) {
        let said = refused(1, &built.run(&[], &[&i32::to_string(&what)]));
        assert!(said.contains(told), "{does}: {said}");
    }
}

/// Catches pragmas that have no effect or a wrong one, arrays of streams that are not those of the design,
/// and words of one name and two layouts, if they are built without a word; and what appendix B writes and
/// that is not built.
#[test]
fn mistakes_in_sources_are_told_with_their_lines() {
    if !has_compiler() {
        return;
    }
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("apeiron_sources/design.xclbin");
    let out = out.display().to_string();
    let pipeline = |interval: &str| {
        kernel(&format!("for (int at = 0; at < what; at++) {{\n#pragma HLS pipeline II={interval}\n}}"))
    };
    let stream = kernel("hls::stream<int> own;\n#pragma HLS stream variable=own depth=0\n");
    for (test, source, told) in [
        ("ii_0", pipeline("0"), "own.cpp:6:"),
        ("ii_negative", pipeline("-1"), "II of a pipeline is a constant of 1 or more"),
        ("depth_0", stream, "a stream holds one word or more: write depth=1, or more"),
        (
            "operator",
            kernel("_Pragma(\"HLS dataflow\")"),
            "own.cpp:5: `HLS dataflow` has no effect here; make each function a kernel of its own",
        ),
    ] {
        let said = refused(2, &["build", &design(test, &source, HOST), "-o", &out]);
        assert!(said.contains(told), "{test}: {said}");
    }
    let header = "inline void inner() {\n#pragma HLS pipeline II=4\n}\n";
    let config = design("header_pragma", &format!("#include \"inner.h\"\n{}", kernel("inner();")), HOST);
    std::fs::write(Path::new(&config).with_file_name("hw_hls").join("inner.h"), header).unwrap();
    let said = refused(2, &["check", &config]);
    assert!(
        said.contains("inner.h:2: `HLS pipeline II=4` has no effect here; write it as #pragma in"),
        "{said}"
    );

    let config = "kernels:\n- {name: own, input_channels: 1, output_channels: 1, switch_port: 0}\n\
                  - {name: one}\n- {name: two}\nconfig: {freq: 100, links: 2}\n\
                  streams:\n- {name: lanes, from: one.out, to: two.in, count: 3}\n";
    let host = "int main() {}\n";
    let array = |end: &str, length| {
        format!("#include \"hls_stream.h\"\nconst int LANES = {length};\nvoid {end}[LANES]) {{}}\n")
    };
    let (one, two) = (array("one(hls::stream<int> out", 3), array("two(hls::stream<int> in", 2));
    let own = kernel("");
    let files = [
        ("config.yaml", config),
        ("hw_hls/own.cpp", &own),
        ("hw_hls/one.cpp", &one),
        ("hw_hls/two.cpp", &two),
        ("host/own_host.cpp", host),
    ];
    let said = refused(2, &["build", &project("lengths", &files), "-o", &out]);
    assert!(said.contains("two.cpp:3:") && said.contains("in has other than the 3 streams that"), "{said}");

    let body = "const ap_uint<32> low = message_data_in[0].read().range(31, 0);\n\
                if (low == 1) take(message_data_in[0]);";
    let appendix = kernel(body)
        .replace("void own", "static void take(hls::stream<uint128_t> &words) { words.read(); }\nvoid own")
        .replace("message_stream_t", "hls::stream<uint128_t>");
    printed(&["build", &design("appendix", &appendix, HOST), "-o", &out]);
}

/// Catches options of the examples that are taken for other numbers, or run for ever, and words on MPI where
/// a host program ends early.
#[test]
fn options_of_the_examples_are_numbers() {
    if !has_compiler() {
        return;
    }
    let latency = Built::of(example("latency"), ("numbers", "latency_test"));
    let fifos = Built { program: latency.program.replace("latency_test", "fifo_test"), ..latency.clone() };
    for (built, option, value) in [
        (&latency, "-n", "-1"),
        (&latency, "-n", "0"),
        (&latency, "-l", "4294967312"),
        (&latency, "-l", ""),
        (&latency, "-i", "1x"),
        (&fifos, "-x", "-1"),
        (&fifos, "-l", " 16"),
    ] {
        let output = weft(&built.run(&[], &[option, value]));
        let said = texts(&output).1;
        assert_eq!(output.status.code(), Some(2), "{option} {value}: {said}");
        assert!(said.starts_with("usage: ") && !said.contains("MPI"), "{option} {value}: {said}");
    }
}
