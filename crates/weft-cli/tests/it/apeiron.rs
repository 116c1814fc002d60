//! `weft apeiron`: designs are built with the C++ compiler and run in virtual time.

use crate::skipped::skip;
use crate::support::{provider, root, texts};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Whether there is a C++ compiler; without one the test is skipped.
fn has_compiler() -> bool {
    let found = Command::new("c++").arg("--version").output().is_ok();
    if !found {
        skip("no C++ compiler; apt-get install g++ installs one");
    }
    found
}

fn weft(arguments: &[&str]) -> Output {
    provider();
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    // Programs are compiled for one run.
    command.env("CXXFLAGS", "-O0 -g0");
    command.arg("apeiron").args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// Standard output of a command that must end well.
fn printed(arguments: &[&str]) -> String {
    let output = weft(arguments);
    let (out, said) = texts(&output);
    assert!(output.status.success(), "{arguments:?}: {out}{said}");
    out
}

/// Standard error of a command that ends with that status.
fn refused(status: i32, arguments: &[&str]) -> String {
    let output = weft(arguments);
    let (out, said) = texts(&output);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {out}{said}");
    said
}

fn example(name: &str) -> String {
    root().join(format!("examples/apeiron/{name}/config.yaml")).display().to_string()
}

/// A design, built: its configuration, its description, and a host program of it.
struct Built {
    config: String,
    description: String,
    program: String,
}

impl Built {
    /// Builds a design in a folder of the test's own.
    fn of(config: String, (test, program): (&str, &str)) -> Built {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("apeiron_{test}"));
        let description = folder.join("design.xclbin").display().to_string();
        let commands = printed(&["build", &config, "-o", &description]);
        assert!(commands.lines().all(|line| line.contains(" -std=c++14 ")), "{commands}");
        Built { config, description, program: folder.join(program).display().to_string() }
    }

    /// The arguments that run its program: options of weft, then those of the program.
    fn run<'a>(&'a self, options: &[&'a str], arguments: &[&'a str]) -> Vec<&'a str> {
        let weft = ["run", &self.config, "--quiet", "--wall-limit", "60s"];
        [&weft[..], options, &["--", &self.program, "-b", &self.description], arguments].concat()
    }
}

/// A design of one kernel in a folder of the test's own.
fn design(test: &str, kernel: &str, host: &str) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("apeiron_{test}_design"));
    for (inner, file, text) in [
        (
            "",
            "config.yaml",
            "kernels:\n  - name: own\n    input_channels: 1\n    output_channels: 1\n    \
                             switch_port: 0\nconfig:\n  freq: 100\n  links: 2\n",
        ),
        ("hw_hls", "own.cpp", kernel),
        ("host", "own_host.cpp", host),
    ] {
        std::fs::create_dir_all(folder.join(inner)).unwrap();
        std::fs::write(folder.join(inner).join(file), text).unwrap();
    }
    folder.join("config.yaml").display().to_string()
}

/// A host that starts the only kernel with what it is to do, and waits for it.
const HOST: &str = r#"
#include "apeiron_host.h"
int main(int, char **words)
{
    xrt::device device(0);
    const xrt::uuid design = device.load_xclbin(words[2]);
    xrt::kernel own(device, design, "own");
    own(std::atoi(words[3])).wait();
}
"#;

fn kernel(body: &str) -> String {
    format!(
        "#include \"hapecom.h\"\n\
         void own(int what, message_stream_t message_data_in[N_INPUT_CHANNELS],\n\
         \x20        message_stream_t message_data_out[N_OUTPUT_CHANNELS])\n{{\n{body}\n}}\n"
    )
}

/// The tests in `apeiron/test`, which need no weft. Catches headers that a strict compiler warns of, and what
/// each of them says that it catches.
#[test]
fn the_headers_pass_their_own_tests() {
    if !has_compiler() {
        return;
    }
    for name in ["test_integers", "test_kernels"] {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let mut compiler = Command::new("c++");
        compiler
            .args(["-std=c++14", "-Wall", "-Wextra", "-Werror", "-I"])
            .arg(root().join("apeiron/include"));
        compiler.arg(root().join(format!("apeiron/test/{name}.cpp"))).arg("-o").arg(&program);
        assert!(compiler.status().unwrap().success(), "{name}");
        let output = Command::new(&program).output().unwrap();
        assert!(output.status.success(), "{name}: {}", texts(&output).1);
    }
}

/// Catches programs whose figures are not the standing ones of D2.8 §5.2, and one-way times that are not the
/// sum of the blocks on the way.
#[test]
fn the_latency_test_prints_the_documents_figure() {
    if !has_compiler() {
        return;
    }
    let latency = Built::of(example("latency"), ("latency", "latency_test"));
    let line = |options: &[&str], port| {
        printed(&latency.run(options, &["--bram", "--quiet", "-l", "16", "-n", "1000", "-i", port]))
    };
    // About 250 ns, half of what a loop takes.
    assert_eq!(line(&[], "0"), "Packet size: 16 B Latency: 0.250 us\n");
    // Between two FPGAs: aggregator, FIFO, two switches and their ports, the cable, three words, dispatcher.
    let cycles = 6 + 6 + (2 + 2 * 20) + 22 + 3 + 13;
    let two = ["--set", "topology.dims=[2]"];
    let expected = format!("Packet size: 16 B Latency: {:.3} us\n", f64::from(cycles) / 100.0);
    assert_eq!(line(&two, "1"), expected);
    // A longer cable, FIFOs that take no time, and DDR, each by what the model has for it.
    assert_eq!(
        line(&[&two[..], &["--set", "links.default.latency=320ns"]].concat(), "1"),
        format!("Packet size: 16 B Latency: {:.3} us\n", f64::from(cycles + 10) / 100.0)
    );
    assert_eq!(
        line(&["--set", "nic.intra_node.fifo_latency=0 cycles"], "0"),
        "Packet size: 16 B Latency: 0.220 us\n"
    );
    let in_ddr = printed(&latency.run(&[], &["--quiet", "-l", "16", "-n", "1000", "-i", "0"]));
    // A read and a write of DDR, with their words, beside the loop.
    assert!(in_ddr.starts_with("Packet size: 16 B Latency: 0.55"), "{in_ddr}");
    let refused =
        refused(2, &["run", &latency.config, "--set", "topology.dims=[4,4]", "--", &latency.program]);
    assert!(refused.contains("has 4 cables, and the design has links: 2"), "{refused}");
}

/// Catches a design at another frequency whose ports or switch keep the old one.
#[test]
fn half_the_frequency_takes_twice_as_long() {
    if !has_compiler() {
        return;
    }
    let text = std::fs::read_to_string(example("latency")).unwrap().replace("freq: 100", "freq: 50");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("apeiron_slow_design");
    std::fs::create_dir_all(folder.join("hw_hls")).unwrap();
    std::fs::create_dir_all(folder.join("host")).unwrap();
    let own = PathBuf::from(example("latency"));
    let own = own.parent().unwrap();
    for file in ["hw_hls/krnl_sr.cpp", "hw_hls/krnl_sr.h", "host/latency_test.cpp"] {
        std::fs::copy(own.join(file), folder.join(file)).unwrap();
    }
    std::fs::write(folder.join("config.yaml"), text).unwrap();
    let config = folder.join("config.yaml").display().to_string();
    let slow = Built::of(config, ("slow", "latency_test"));
    let line = printed(&slow.run(&[], &["--bram", "--quiet", "-l", "16", "-n", "1000", "-i", "0"]));
    assert_eq!(line, "Packet size: 16 B Latency: 0.500 us\n");
}

/// Catches a rate that is not the standing one of D2.8 §5.2.1, and words that are lost or mixed: the receiver
/// checks each.
#[test]
fn the_bandwidth_test_prints_the_documents_figure() {
    if !has_compiler() {
        return;
    }
    let bandwidth = Built::of(example("bandwidth"), ("bandwidth", "bandwidth_test"));
    let line = |options: &[&str]| printed(&bandwidth.run(options, &["--bram", "--quiet", "-l", "2048"]));
    // 128 words in 136 cycles of 100 MHz are 12.05 Gb/s.
    let loop_line = line(&[]);
    assert!(loop_line.contains("(12.05 Gb/s)"), "{loop_line}");
    let one_way = line(&["--set", "topology.dims=[2]"]);
    assert!(one_way.contains("(12.04 Gb/s)"), "{one_way}");
    let in_ddr = printed(&bandwidth.run(&[], &["--quiet", "-l", "2048"]));
    let rate =
        |line: &str| line.split('(').nth(1).unwrap().split(' ').next().unwrap().parse::<f64>().unwrap();
    assert!(rate(&in_ddr) < rate(&loop_line), "DDR limits the rate: {in_ddr}");
}

/// Catches a pipeline whose samples depend on where its kernels are, replicas that share static data, times
/// that differ between two runs, and a slow stage that is not the pace of all.
#[test]
fn a_pipeline_is_right_on_any_number_of_nodes() {
    if !has_compiler() {
        return;
    }
    let pipeline = Built::of(example("pipeline"), ("pipeline", "pipeline_test"));
    for dims in ["topology.dims=[1]", "topology.dims=[2]", "topology.dims=[4]"] {
        let line = || printed(&pipeline.run(&["--set", dims], &["-n", "20"]));
        let first = line();
        assert!(first.contains("5120 samples are right"), "{first}");
        assert_eq!(first, line());
    }
    let slow = printed(&pipeline.run(&["--set", "topology.dims=[2]"], &["-n", "100", "-s", "3:10"]));
    // A block of that stage: 64 words to read, 576 cycles, and 64 words to write: 6.4 us and more.
    let line = slow.lines().find(|line| line.contains("samples are right")).unwrap();
    let per_block: f64 = line.split(": ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((6.4..7.5).contains(&per_block), "{slow}");
    // Whoever gives it blocks waits to be rid of them, whoever takes them waits for them.
    let waits = |kernel: &str, what: &str| {
        let line = slow.lines().find(|line| line.starts_with(kernel)).unwrap();
        let before = line.split(what).next().filter(|_| line.contains(what));
        before
            .map_or(0.0, |text| text.rsplit(", ").next().unwrap().split(' ').next().unwrap().parse().unwrap())
    };
    let until = "% until it reads message_data_in[0]";
    let of_slow: f64 = waits("kernel krnl_stage_3", until);
    assert!(of_slow < 5.0 && waits("kernel krnl_stage_4", until) > 50.0, "{slow}");
}

/// Catches a kernel that waits for ever, faults, or uses what its design does not have, and is not named, or
/// whose run does not end.
#[test]
fn kernels_that_fail_are_named() {
    if !has_compiler() {
        return;
    }
    let cases = [
        (
            "receive(0u);",
            "every kernel waits for a stream:\n  kernel own reads message_data_in[0], which is empty",
        ),
        ("message_data_out[1].write(uint128_t(1));", "kernel own writes message_data_out[1]"),
        ("*(volatile int *)nullptr = 1;", "kernel own uses memory that it does not have"),
        ("send(\"x\", 1, apeiron_node(5), 0, 0); receive(0u);", "is for node (5, 0, 0)"),
        ("send(\"x\", 1, 0, 9, 0); receive(0u);", "IntraNode port that its node does not have"),
    ];
    let branches =
        (0..).zip(cases).map(|(what, (does, _))| format!("    if (what == {what}) {{ {does} }}\n"));
    let body: String = branches.collect();
    let built = Built::of(design("fails", &kernel(&body), HOST), ("fails", "own_host"));
    for (what, (does, told)) in (0..).zip(cases) {
        let said = refused(1, &built.run(&[], &[&i32::to_string(&what)]));
        assert!(said.contains(told), "{does}: {said}");
    }
}

/// Catches what designs cannot have here and that is built all the same, without a word.
#[test]
fn what_is_not_there_does_not_compile() {
    if !has_compiler() {
        return;
    }
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("apeiron_refused/design.xclbin");
    let out = out.display().to_string();
    for (test, source, told) in [
        ("fixed", "#include \"ap_fixed.h\"\n".to_owned(), "weft apeiron has no ap_fixed.h"),
        ("dataflow", kernel("#pragma HLS dataflow"), "weft apeiron has no DATAFLOW regions"),
        (
            "prototype",
            "#include \"hapecom.h\"\nvoid own(int, int) {}\n".to_owned(),
            "message_data_in[N_INPUT_CHANNELS]",
        ),
    ] {
        let config = design(test, &source, HOST);
        let said = refused(2, &["build", &config, "-o", &out]);
        assert!(said.contains(told) && said.contains("own.so was not built"), "{test}: {said}");
        assert!(!Path::new(&out).exists(), "half a design");
    }
}

/// Catches a design that is shown or drawn otherwise than it is, and mistakes without file, line and mend.
#[test]
fn designs_are_checked_shown_and_drawn() {
    let config = example("latency");
    assert!(printed(&["check", &config]).contains("port 1: krnl_sr_2, 4 input and 4 output channels"));
    assert!(
        printed(&["show", &config])
            .contains("stream_connect=TextaRossa_switch_1.dtaxisrx1:dispatcher_1.dt_in")
    );
    let picture = Path::new(env!("CARGO_TARGET_TMPDIR")).join("apeiron.svg");
    printed(&["draw", &config, "-o", &picture.display().to_string()]);
    let picture = std::fs::read_to_string(picture).unwrap();
    roxmltree::Document::parse(&picture).unwrap();
    assert!(picture.contains(">aggregator_1<"));
    let text = std::fs::read_to_string(&config).unwrap().replace("switch_port: 1", "switch_port: 0");
    let wrong = Path::new(env!("CARGO_TARGET_TMPDIR")).join("apeiron_wrong.yaml");
    std::fs::write(&wrong, text).unwrap();
    let wrong = wrong.display().to_string();
    for command in [&["check", &wrong][..], &["show", &wrong], &["run", &wrong, "--", "true"]] {
        let said = refused(2, command);
        assert!(said.contains("apeiron_wrong.yaml:7: kernel krnl_sr_2 is at port 0, as krnl_sr_1"), "{said}");
        assert!(said.contains("give each kernel a switch_port of its own"), "{said}");
    }
    refused(2, &["check", "nowhere.yaml"]);
}
