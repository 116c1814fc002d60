//! `weft apeiron`: designs are built with the C++ compiler and run in virtual time.

use crate::skipped::skip;
use crate::support::{provider, root, texts};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use weft_apeiron::build::VERSION;

/// Whether there is a C++ compiler; without one the test is skipped.
pub(crate) fn has_compiler() -> bool {
    let found = Command::new("c++").arg("--version").output().is_ok();
    if !found {
        skip("no C++ compiler; apt-get install g++ installs one");
    }
    found
}

pub(crate) fn weft(arguments: &[&str]) -> Output {
    provider();
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    // Programs are compiled for one run.
    command.env("CXXFLAGS", "-O0 -g0");
    command.arg("apeiron").args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// Standard output of a command that must end well.
pub(crate) fn printed(arguments: &[&str]) -> String {
    let output = weft(arguments);
    let (out, said) = texts(&output);
    assert!(output.status.success(), "{arguments:?}: {out}{said}");
    out
}

/// Standard error of a command that ends with that status.
pub(crate) fn refused(status: i32, arguments: &[&str]) -> String {
    let output = weft(arguments);
    let (out, said) = texts(&output);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {out}{said}");
    said
}

pub(crate) fn example(name: &str) -> String {
    root().join(format!("examples/apeiron/{name}/config.yaml")).display().to_string()
}

/// A design, built: its configuration, its description, and a host program of it.
#[derive(Clone)]
pub(crate) struct Built {
    pub(crate) config: String,
    pub(crate) description: String,
    pub(crate) program: String,
}

impl Built {
    /// Builds a design in a folder of the test's own.
    pub(crate) fn of(config: String, (test, program): (&str, &str)) -> Built {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("apeiron_{test}"));
        let description = folder.join("design.xclbin").display().to_string();
        let commands = printed(&["build", &config, "-o", &description]);
        assert!(commands.lines().all(|line| line.contains(" -std=c++14 ")), "{commands}");
        Built { config, description, program: folder.join(program).display().to_string() }
    }

    /// The arguments that run its program: options of weft, then those of the program.
    pub(crate) fn run<'a>(&'a self, options: &[&'a str], arguments: &[&'a str]) -> Vec<&'a str> {
        let weft = ["run", &self.config, "--quiet", "--wall-limit", "60s"];
        [&weft[..], options, &["--", &self.program, "-b", &self.description], arguments].concat()
    }
}

/// A design of one kernel in a folder of the test's own.
pub(crate) fn design(test: &str, kernel: &str, host: &str) -> String {
    let config = "kernels:\n- {name: own, input_channels: 1, output_channels: 1, switch_port: 0}\n\
                  config: {freq: 100, links: 2}\n";
    let files = [("config.yaml", config), ("hw_hls/own.cpp", kernel), ("host/own_host.cpp", host)];
    project(test, &files)
}

/// A design of these files in a folder of the test's own.
pub(crate) fn project(test: &str, files: &[(&str, &str)]) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("apeiron_{test}_design"));
    for (file, text) in files {
        let file = folder.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    folder.join("config.yaml").display().to_string()
}

/// A host that starts the only kernel with what it is to do, and waits for it.
pub(crate) const HOST: &str = r#"
#include "apeiron_host.h"
int main(int, char **words)
{
    xrt::device device(0);
    const xrt::uuid design = device.load_xclbin(words[2]);
    xrt::kernel own(device, design, "own");
    own(std::atoi(words[3])).wait();
}
"#;

pub(crate) fn kernel(body: &str) -> String {
    format!(
        "#include \"hapecom.h\"\n\
         void own(int what, message_stream_t message_data_in[N_INPUT_CHANNELS],\n\
         \x20        message_stream_t message_data_out[N_OUTPUT_CHANNELS])\n{{\n{body}\n}}\n"
    )
}

/// A host that runs the kernel of its node, and says how long. With a number more, it writes that into
/// register `credit` before.
pub(crate) const TIMED_HOST: &str = r#"
#include "apeiron_host.h"
#include <ctime>
int main(int, char **words)
{
    xrt::device device(0);
    const xrt::uuid design = device.load_xclbin(words[2]);
    xrt::kernel own(device, design, "own");
    if (words[4] != nullptr)
        xrt::ip(device, design, "TextaRossa_switch_1").write_register(APEIRON_CREDIT, std::atoi(words[4]));
    timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    own(apeiron_own_node(device), std::atoi(words[3])).wait();
    clock_gettime(CLOCK_MONOTONIC, &end);
    std::printf("node %u: %ld\n", apeiron_own_node(device),
                (end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec);
}
"#;

/// A kernel that runs on two nodes, which knows its node and a number.
pub(crate) fn on_two_nodes(body: &str) -> String {
    kernel(body).replace("int what,", "int node, int what,")
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
    // A clock that the kernels do not have, be it one that the IP carries or not.
    for set in ["nic.clock=250MHz", "switch.clock=50MHz"] {
        let said = refused(2, &["run", &config, "--set", set, "--", "true"]);
        let (key, clock) = set.split_once('=').unwrap();
        let told = format!("config.yaml:13: the design has freq: 100, and {key} is {clock}: kernels and");
        assert!(said.contains(&told) && said.contains(&format!("leave --set {key} out")), "{said}");
    }
}

/// Catches a build that writes over the design itself, over devices, or leaves something behind.
#[test]
fn a_build_writes_over_nothing_of_others() {
    let config = design("over", &kernel(""), HOST);
    let text = std::fs::read_to_string(&config).unwrap();
    let source = Path::new(&config).with_file_name("hw_hls/own.cpp").display().to_string();
    for output in [config.as_str(), &source, "/dev/null", env!("CARGO_TARGET_TMPDIR")] {
        let said = refused(2, &["build", &config, "-o", output]);
        assert!(said.contains(output) && said.contains("name another FILE in -o"), "{said}");
        assert!(!Path::new(&format!("{output}.d")).exists(), "{output}.d");
    }
    assert_eq!(std::fs::read_to_string(&config).unwrap(), text);
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

/// Catches programs and designs of another weft that run, and read what they are told as their own.
#[test]
fn what_another_weft_has_built_is_refused() {
    if !has_compiler() {
        return;
    }
    let built = Built::of(example("latency"), ("another_weft", "latency_test"));
    let commands = printed(&["build", &built.config, "-o", &built.description]);
    let of_program = commands.lines().find(|line| line.contains("host/latency_test.cpp")).unwrap();
    let told = "they are of another weft; build design and programs again with weft apeiron build CONFIG -o";
    let other = VERSION.replace(char::is_numeric, "3");
    let replaced = |path: &str| {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains(VERSION), "{path}");
        std::fs::write(path, text.replace(VERSION, &other)).unwrap();
    };
    // A design of another weft, for a program of this one; then a program of another too.
    replaced(&built.description);
    let said = refused(1, &built.run(&[], &[]));
    assert!(said.contains(&format!("design.xclbin does not begin with `{VERSION}`")), "{said}");
    assert!(said.contains(told), "{said}");
    replaced(&format!("{}.d/include/weft_apeiron/version.h", built.description));
    assert!(Command::new("sh").args(["-c", of_program]).status().unwrap().success(), "{of_program}");
    let said = refused(1, &built.run(&[], &[]));
    assert!(
        said.contains(&format!("WEFT_APEIRON of weft apeiron run does not begin with `{other}`")),
        "{said}"
    );
    assert!(said.contains(told), "{said}");
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
    let whole = u32::MAX;
    for (built, option, value, least, most) in [
        (&latency, "-n", "-1", 1, whole),
        (&latency, "-n", "0", 1, whole),
        (&latency, "-l", "4294967312", 0, 4096),
        (&latency, "-l", "99999999999999999999", 0, 4096),
        (&latency, "-l", "", 0, 4096),
        (&latency, "-i", "1x", 0, 1),
        (&fifos, "-x", "-1", 0, whole),
        (&fifos, "-l", " 16", 0, 4096),
    ] {
        let output = weft(&built.run(&[], &[option, value]));
        let said = texts(&output).1;
        assert_eq!(output.status.code(), Some(2), "{option} {value}: {said}");
        let told = format!("{option}: `{value}` was given; expected a whole number from {least} to {most}\n");
        assert!(said.contains(&told) && !said.contains("MPI"), "{option} {value}: {said}");
    }
}
