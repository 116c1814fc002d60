//! `weft apeiron`: designs are built with the C++ compiler and run in virtual time.

use crate::skipped::skip;
use crate::support::{provider, root, texts};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use weft_results::{PacketRow, StoredResult};

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
    // A read and a write of DDR of 30 cycles each beside the loop of 50, and one in which the word that is
    // written holds up the next read; for all packets the copies of both buffers, of 8 us and 16 B.
    assert_eq!(in_ddr, "Packet size: 16 B Latency: 0.563 us\n");
    let in_ddr = ["--quiet", "-l", "16", "-n", "1000", "-i", "0"];
    let slow_sync = printed(&latency.run(&["--set", "nic.sync.latency=108us"], &in_ddr));
    assert_eq!(slow_sync, "Packet size: 16 B Latency: 0.663 us\n");
    let refused =
        refused(2, &["run", &latency.config, "--set", "topology.dims=[4,4]", "--", &latency.program]);
    assert!(refused.contains("config.yaml:14: links: 2 are too few for 4 x 4 x 1 nodes"), "{refused}");
}

/// Catches programs whose figures are others than those of the rows of `weft validate`, which come from the
/// model alone: the two tests of D2.8 §5.2 and the packet generator of §2.1 are run by their programs.
#[test]
fn programs_and_rows_of_validation_agree() {
    if !has_compiler() {
        return;
    }
    let validated = Command::new(env!("CARGO_BIN_EXE_weft"))
        .args(["validate", "-m", "communication-ip", "--quiet", "--json"])
        .output()
        .unwrap();
    let rows: serde_json::Value = serde_json::from_slice(&validated.stdout).unwrap();
    let row = |id: &str| {
        let row = rows["rows"].as_array().unwrap().iter().find(|row| row["id"] == id).unwrap();
        row["simulated"].as_f64().unwrap()
    };
    let latency = Built::of(example("latency"), ("rows_latency", "latency_test"));
    let bandwidth = Built::of(example("bandwidth"), ("rows_bandwidth", "bandwidth_test"));
    let fifos = Built { program: latency.program.replace("latency_test", "fifo_test"), ..latency.clone() };
    let two = &["--set", "topology.dims=[2]"][..];
    let bram = ["--bram", "--quiet", "-l", "16", "-n", "10000", "-i", "0"];
    let ddr = ["--quiet", "-l", "16", "-n", "10000", "-i", "0"];
    let no_fifo = &["--set", "nic.intra_node.fifo_latency=0 cycles"][..];
    // The number before these words, in the unit of the row, and how far both may be apart: copies between
    // host and card are in the programs alone.
    type RowCase<'a> = (&'a str, &'a Built, &'a [&'a str], &'a [&'a str], &'a str, f64);
    let cases: [RowCase<'_>; 6] = [
        ("fifo-to-fifo", &fifos, &[], &[], " cycles", 0.0),
        ("fifo-to-fifo-without-fifo", &fifos, no_fifo, &[], " cycles", 0.0),
        ("cable-loop", &fifos, two, &["-x", "1"], " cycles", 0.0),
        ("loop-latency", &latency, &[], &bram, " us", 0.001),
        ("inter-node-latency", &latency, two, &bram, " us", 0.001),
        ("loop-latency-ddr", &latency, &[], &ddr, " us", 0.012),
    ];
    for (id, built, options, arguments, unit, within) in cases {
        let line = printed(&built.run(options, arguments));
        let number = line.split(unit).next().unwrap().rsplit([' ', '(']).next().unwrap();
        let number: f64 = number.parse().unwrap_or_else(|_| panic!("{id}: {line}"));
        let own = if unit == " cycles" { number / 100.0 } else { number };
        let expected = row(id);
        assert!((own - expected).abs() <= within * expected + 1e-9, "{id}: {own} and {expected}");
    }
    // The same packets and the same acknowledgement: to the cycle. The host reads its clock in whole µs, so
    // that the time is that of the sending kernel, up to the end of the cycle in which it reads the last
    // word. From DDR the kernel reads the next packet while its aggregator writes one, so that 30 cycles and
    // 128 words are what a packet takes; in the model the aggregator's 6 cycles, header and footer come on
    // top.
    let packets = 1000.0;
    let rates: [(&str, &[&str], &[&str], f64); 3] = [
        ("loop-bandwidth", &[], &["--bram"], 1.0),
        ("one-way-bandwidth", two, &["--bram"], 1.0),
        ("one-way-bandwidth-ddr", two, &[], -8.0 * packets),
    ];
    for (id, options, memory, apart) in rates {
        let results = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("apeiron_{id}"));
        let results = results.display().to_string();
        let options = [options, &["--force", "-o", &results]].concat();
        printed(&bandwidth.run(&options, &[memory, &["--quiet", "-l", "2048", "-n", "1000"]].concat()));
        let document: serde_json::Value =
            serde_json::from_str(&explained(&results, &["--quiet", "--json"])).unwrap();
        let kernels = document["runs"][0]["kernels"]["kernels"].as_array().unwrap();
        let sender = kernels.iter().find(|kernel| kernel["kernel"] == "krnl_sender").unwrap();
        let cycles = 100.0 * sender["time_us"].as_f64().unwrap();
        let expected = 8.0 * 2048.0 * packets / row(id) / 10.0 + apart;
        let within = if memory.is_empty() { 60.0 } else { 1e-3 };
        assert!((cycles - expected).abs() < within, "{id}: {cycles} and {expected}");
    }
}

/// The output of `weft explain` of a directory.
fn explained(results: &str, options: &[&str]) -> String {
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
    let output = weft.args(["explain", results]).args(options).output().unwrap();
    assert!(output.status.success(), "{}", texts(&output).1);
    texts(&output).0
}

/// The design of the latency test at another frequency, built.
fn latency_at(megahertz: u32) -> Built {
    let freq = format!("freq: {megahertz}");
    let text = std::fs::read_to_string(example("latency")).unwrap().replace("freq: 100", &freq);
    let test = format!("at_{megahertz}");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("apeiron_{test}_design"));
    std::fs::create_dir_all(folder.join("hw_hls")).unwrap();
    std::fs::create_dir_all(folder.join("host")).unwrap();
    let own = PathBuf::from(example("latency"));
    let own = own.parent().unwrap();
    for file in ["hw_hls/krnl_sr.cpp", "hw_hls/krnl_sr.h", "host/latency_test.cpp", "host/fifo_test.cpp"] {
        std::fs::copy(own.join(file), folder.join(file)).unwrap();
    }
    std::fs::write(folder.join("config.yaml"), text).unwrap();
    let config = folder.join("config.yaml").display().to_string();
    Built::of(config, (&test, "latency_test"))
}

/// Catches a design at another frequency whose ports or switch keep the old one, cycles that are more where
/// one is no whole number of picoseconds, and a design that is run with another `config.yaml` than its own.
#[test]
fn at_any_frequency_there_are_as_many_cycles() {
    if !has_compiler() {
        return;
    }
    for (megahertz, latency) in [(50, "0.500"), (75, "0.333")] {
        let built = latency_at(megahertz);
        let loops = ["--bram", "--quiet", "-l", "16", "-n", "1000", "-i", "0"];
        assert_eq!(
            printed(&built.run(&[], &loops)),
            format!("Packet size: 16 B Latency: {latency} us\n"),
            "{megahertz} MHz"
        );
        let other = Built { config: example("latency"), ..built };
        let said = refused(1, &other.run(&[], &loops));
        let told = format!("was built for freq: {megahertz}, and the config.yaml of weft apeiron run has");
        assert!(said.contains(&told) && said.contains("weft apeiron build CONFIG -o"), "{said}");
        let other = Built { config: example("pipeline"), ..other };
        let said = refused(1, &other.run(&[], &loops));
        assert!(said.contains("was built for freq") || said.contains("other kernels"), "{said}");
    }
}

/// Catches packets that are cut as the design was built for, and not as the machine has them.
#[test]
fn packets_are_those_of_the_machine() {
    if !has_compiler() {
        return;
    }
    let latency = Built::of(example("latency"), ("payload", "latency_test"));
    for (payload, packets) in [("4K", 10), ("64", 640)] {
        let set = format!("packet.payload={payload}");
        let loops = ["--bram", "--quiet", "-l", "4096", "-n", "10", "-i", "0"];
        let text = printed(&latency.run(&["--json", "--set", &set], &loops));
        assert!(text.contains(&format!("\"messages\": {packets},")), "{text}");
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
    // Sender and receiver share DDR: each packet is read and written there, with 30 cycles and 128 words
    // each. Both buffers of 1,000 packets are copied, in 8 us and at 12 GB/s.
    let bits = 8.0 * 1000.0 * 2048.0;
    let nanoseconds = 1000.0 * 2.0 * (30.0 + 128.0) * 10.0 + 2.0 * (8000.0 + bits / 96.0);
    let expected = bits / nanoseconds;
    let rate: f64 = in_ddr.split('(').nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((rate / expected - 1.0).abs() < 0.005, "{in_ddr}: {expected:.2}");
}

/// Kernels at two ports that send each other packets of 2 KB, or one of which takes what the other sends:
/// `what` is the place of the other along X, its port, how many packets are sent and how many come.
const STREAMS: &str = r#"
#include "hapecom.h"
#include <stdexcept>
extern "C" void own(unsigned x, unsigned port, unsigned packets, unsigned comes,
                    header_stream_t message_hdr_in[N_INPUT_CHANNELS],
                    message_stream_t message_data_in[N_INPUT_CHANNELS],
                    header_stream_t message_hdr_out[N_OUTPUT_CHANNELS],
                    message_stream_t message_data_out[N_OUTPUT_CHANNELS])
{
    const unsigned ahead = packets > 0 && comes > 0 ? 3 : 0, rounds = ahead + (packets > 0 ? packets : comes);
    unsigned taken = 0;
    for (unsigned round = 0; round < rounds; round++) {
        const bool sends = round < packets, takes = comes > 0 && round >= ahead;
        apenet_header_t header = {};
        header.s.dest_x = x;
        header.s.intra_dest = port;
        header.s.packet_size = 2048;
        if (sends)
            message_hdr_out[0].write(header);
        if (takes)
            message_hdr_in[0].read();
        for (unsigned word = 0; word < 128; word++) {
            if (sends)
                message_data_out[0].write(uint128_t(128 * round + word));
            if (takes) {
                const uint128_t came = message_data_in[0].read();
                if (came != taken++)
                    throw std::runtime_error("another word than was sent");
            }
        }
        if (sends)
            message_hdr_out[0].write(apenet_header_t());
        if (takes)
            message_hdr_in[0].read();
    }
}
"#;

/// Runs the two kernels of each node, and prints how long those took that something came for.
const STREAMS_HOST: &str = r#"
#include "apeiron_host.h"
#include <ctime>
int main(int, char **words)
{
    xrt::device device(0);
    const xrt::uuid design = device.load_xclbin(words[2]);
    const std::string what = words[3];
    const unsigned packets = std::atoi(words[4]), node = apeiron_own_node(device);
    xrt::kernel first(device, design, "own_1"), second(device, design, "own_2");
    const bool pair = what == "pair", link = what == "link", sends = pair || node == 0;
    // A pair has the other port of its node; others node 1, or each a neighbour of its own.
    const unsigned at = pair ? 0 : 1, second_at = pair ? 0 : link ? 1 : 2;
    const unsigned comes = pair || node == 1 ? packets : 0;
    const unsigned second_comes = pair || node == second_at ? packets : 0;
    timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    xrt::run one = first(at, pair ? 1u : 0u, sends ? packets : 0, comes);
    xrt::run two = second(second_at, pair ? 0u : 1u, sends ? packets : 0, second_comes);
    one.wait();
    two.wait();
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (pair || node != 0)
        std::printf("%ld\n", (end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec);
}
"#;

/// Two kernels of a node at a time. By hand, of packets of 2 KB, which are 130 words of 128 bits: a kernel
/// and its aggregator write one in 136 cycles of 100 MHz, and a way into the switch, as a link, carries one
/// in 130. D2.8 §2 gives each port a way of its own; `--set` puts both at one. Catches kernels that share a
/// way though each has its own, packets that go to the other port or by another's way, and words that are
/// mixed.
#[test]
fn two_ports_have_ways_of_their_own() {
    if !has_compiler() {
        return;
    }
    let config = "kernels:\n\
                  - {name: own_1, input_channels: 1, output_channels: 1, switch_port: 0}\n\
                  - {name: own_2, input_channels: 1, output_channels: 1, switch_port: 1}\n\
                  config: {freq: 100, links: 2}\n";
    let files =
        [("config.yaml", config), ("hw_hls/own.cpp", STREAMS), ("host/streams_host.cpp", STREAMS_HOST)];
    let built = Built::of(project("streams", &files), ("streams", "streams_host"));
    let shared = ["topology.endpoints_per_switch=1", "host.endpoints_per_host=1", "nic.intra_node.ports=2"];
    let shared = shared.map(|set| ["--set", set]).concat();
    // Cycles that a packet of each stream takes, once all of them flow.
    let cycles = |dims: &str, options: &[&str], what: &str| {
        let took = |packets: &str| {
            let printed = printed(&built.run(&[&["--set", dims], options].concat(), &[what, packets]));
            printed.lines().map(|line| line.parse::<i64>().unwrap()).max().unwrap()
        };
        (took("200") - took("100")) / (100 * 10)
    };
    // Each to the other through the switch; each to a neighbour of its own; both over one link.
    for (dims, what, own, together) in [
        ("topology.dims=[1]", "pair", 136, 260),
        ("topology.dims=[3]", "ring", 136, 260),
        ("topology.dims=[2]", "link", 260, 260),
    ] {
        assert_eq!(cycles(dims, &[], what), own, "{what}");
        assert_eq!(cycles(dims, &shared, what), together, "{what}, one way");
    }
    // With 256 bits a way has 66 words of each packet, and carries both streams.
    let wide = [&shared[..], &["--set", "switch.datapath=32"]].concat();
    assert_eq!(cycles("topology.dims=[1]", &wide, "pair"), 136);
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

/// A host that runs the kernel of its node, and says how long. With a number more, it writes that into
/// register `credit` before.
const TIMED_HOST: &str = r#"
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
fn on_two_nodes(body: &str) -> String {
    kernel(body).replace("int what,", "int node, int what,")
}

/// Catches a kernel that computes while packets for it vanish into a FIFO without end, so that its sender is
/// never held up; FIFOs, of the channel and of the port, that hold more or fewer words than they are given;
/// and a full FIFO that nobody names. All times are computed by hand.
#[test]
fn a_kernel_that_computes_holds_its_sender_up() {
    if !has_compiler() {
        return;
    }
    // Node 0 sends packets of 64 words, node 1 reads each and computes for 1,000 cycles.
    let body = "static unsigned char bytes[1024];\n\
                for (int packet = 0; packet < what; packet++) {\n\
                if (node == 0) { bytes[7] = packet; send(bytes, 1024, apeiron_node(1), 0, 0); continue; }\n\
                if (receive(0u, bytes, message_data_in) != 1024 || bytes[7] != packet)\n\
                throw std::runtime_error(\"another packet\");\napeiron_compute(1000);\n}";
    let project = |depth: u32| {
        let test = format!("full_{depth}");
        let config = design(&test, &on_two_nodes(body), TIMED_HOST);
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::write(&config, text.replace("switch_port: 0", &format!("switch_port: 0, depth: {depth}")))
            .unwrap();
        Built::of(config, (&test, "own_host"))
    };
    let times = |built: &Built, sets: &[&str], words: &str| {
        let two = ["--set", "topology.dims=[2]"];
        let words: Vec<&str> = words.split(' ').collect();
        let out = printed(&built.run(&[&two[..], sets].concat(), &words));
        let time = |node| {
            let line = out.lines().find_map(|line| line.strip_prefix(&format!("node {node}: ")));
            line.unwrap_or_else(|| panic!("{out}")).parse::<i64>().unwrap() / 10
        };
        [time(0), time(1)]
    };
    // Cycles from the first word of a packet to that of the next: its words, and what it computes.
    let period = 64 + 1000;
    let shallow = project(64);
    // More than fit into all FIFOs and buffers between the two kernels.
    let [sender, receiver] = times(&shallow, &[], "60");
    let [sender_of_70, receiver_of_70] = times(&shallow, &[], "70");
    assert_eq!([sender_of_70 - sender, receiver_of_70 - receiver], [10 * period; 2]);
    // A channel that holds another packet lets the sender end a period earlier, and the receiver no later; so
    // do receiving FIFOs that do.
    let deep = project(128);
    assert_eq!(times(&deep, &[], "60"), [sender - period, receiver]);
    let fifo = ["--set", "nic.intra_node.receive_fifo=9312"];
    assert_eq!(times(&shallow, &fifo, "60"), [sender - period, receiver]);
    // Of these FIFOs, register `credit` may leave the switch room for three packets, and not for seven.
    assert_eq!(times(&shallow, &[], "60 258"), [sender + 4 * period, receiver]);
    // With a place for one word, each second cycle has none.
    let narrow = project(1);
    let [_, of_10] = times(&narrow, &[], "10");
    assert_eq!(times(&narrow, &[], "20")[1] - of_10, 10 * (127 + 1000));

    let results =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("apeiron_full_64/results").display().to_string();
    times(&shallow, &["--force", "-o", &results], "60");
    let output =
        Command::new(env!("CARGO_BIN_EXE_weft")).args(["explain", &results, "--quiet"]).output().unwrap();
    let text = texts(&output).0;
    assert!(text.starts_with("Kernel own of node 1 is the limit"), "{text}");
    assert!(
        text.contains("\nThe FIFO that is waited for longest is message_data_out[0]: own of node 0"),
        "{text}"
    );
    assert!(text.contains("\nFIFO message_data_in[0] of own of node 1 is full for "), "{text}");
}

/// Catches a kernel that sees the header as another wrote it and not as the switches on its way have, and a
/// table of packets with another way: hops and virtual channel are those that the self-test sees on the ring,
/// where only the way over the end of the ring has the second channel.
#[test]
fn headers_and_packets_tell_their_way() {
    if !has_compiler() {
        return;
    }
    let source = r#"
#include "hapecom.h"
#include <cstdio>
void own(int node, int to, header_stream_t message_hdr_in[N_INPUT_CHANNELS],
         message_stream_t message_data_in[N_INPUT_CHANNELS], header_stream_t message_hdr_out[N_OUTPUT_CHANNELS],
         message_stream_t message_data_out[N_OUTPUT_CHANNELS])
{
    if (node == 0) {
        apenet_header_t header = {};
        header.s.dest_x = to;
        header.s.packet_size = 16;
        header.s.virt_chan = 31;
        header.s.num_of_hops = 1023;
        header.s.out_of_lattice = 1;
        message_hdr_out[0].write(header);
        message_data_out[0].write(uint128_t(7));
        message_hdr_out[0].write(apenet_header_t());
    }
    if (node == to) {
        const apenet_header_t header = message_hdr_in[0].read();
        std::printf("header %u %u %u %u\n", unsigned(header.s.num_of_hops), unsigned(header.s.virt_chan),
                    unsigned(header.s.out_of_lattice), weft_apeiron::edac_of(header));
        message_data_in[0].read();
        message_hdr_in[0].read();
    }
}
"#;
    let built = Built::of(design("header", source, TIMED_HOST), ("header", "own_host"));
    let results = Path::new(env!("CARGO_TARGET_TMPDIR")).join("apeiron_header/results");
    let directory = results.display().to_string();
    let tables = ["--tables", "packets", "--force", "-o", &directory];
    for (to, hops, channel) in [(0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 2, 1), (4, 1, 1)] {
        let ring = ["--set", "topology.dims=[5]"];
        let out = printed(&built.run(&[&ring[..], &tables].concat(), &[&i32::to_string(&to)]));
        assert!(out.contains(&format!("header {hops} {channel} 0 0\n")), "{to}: {out}");
        let mut way = Vec::new();
        StoredResult::open(&results)
            .unwrap()
            .visit(|row: PacketRow| way.push((row.hops, row.virtual_channel)))
            .unwrap();
        let between = (1..=hops).map(|crossed| (crossed, channel));
        let expected: Vec<_> = [(0, 0)].into_iter().chain(between).chain([(hops + 1, 0)]).collect();
        assert_eq!(way, expected, "{to}");
    }
}

/// Catches kernels that fill each other's FIFOs and wait for ever, and a deadlock that names neither them nor
/// the FIFOs.
#[test]
fn kernels_that_fill_each_others_fifos_are_named() {
    if !has_compiler() {
        return;
    }
    let body = "for (int packet = 0; packet < what; packet++) send(\"x\", 1, apeiron_node(1 - node), 0, 0);\n\
                for (int packet = 0; packet < what; packet++) receive(0u);";
    let built = Built::of(design("embrace", &on_two_nodes(body), TIMED_HOST), ("embrace", "own_host"));
    let two = ["--set", "topology.dims=[2]"];
    printed(&built.run(&two, &["50"]));
    let said = refused(1, &built.run(&two, &["5000"]));
    assert!(said.contains("kernel own writes message_data_out[0], which is full"), "{said}");
    assert!(said.contains("a packet waits for message_data_in[0] of kernel own, which is full"), "{said}");
}

/// Two kernels whose streams join them: `what` is done by the first, `does` by the second.
fn joined_pair(test: &str, depth: u32, (first, second): (&str, &str)) -> String {
    let config = format!(
        "kernels:\n\
         - {{name: first, input_channels: 1, output_channels: 1, switch_port: 0}}\n\
         - {{name: second, input_channels: 1, output_channels: 1, switch_port: 1, cycles: 2}}\n\
         config: {{freq: 100, links: 2}}\n\
         streams:\n\
         - {{name: there, from: first.out, to: second.in, depth: {depth}}}\n\
         - {{name: back, from: second.out, to: first.in}}\n"
    );
    let source = |name: &str, body: &str| {
        format!(
            "#include \"hapecom.h\"\nstruct pair_t {{ int a, b; }};\n\
             void {name}(int what, hls::stream<pair_t> &{}, hls::stream<short> &{},\n\
             \x20   message_stream_t message_data_in[N_INPUT_CHANNELS],\n\
             \x20   message_stream_t message_data_out[N_OUTPUT_CHANNELS])\n{{\n{body}\n}}\n",
            if name == "first" { "out" } else { "in" },
            if name == "first" { "in" } else { "out" },
        )
    };
    let host = r#"
#include "apeiron_host.h"
#include <ctime>
int main(int, char **words)
{
    xrt::device device(0);
    const xrt::uuid design = device.load_xclbin(words[2]);
    xrt::kernel first(device, design, "first"), second(device, design, "second");
    timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    xrt::run one = first(std::atoi(words[3])), two = second(std::atoi(words[3]));
    two.wait();
    clock_gettime(CLOCK_MONOTONIC, &end);
    std::printf("%ld\n", (end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec);
}
"#;
    let (first, second) = (source("first", first), source("second", second));
    project(
        test,
        &[
            ("config.yaml", &config),
            ("hw_hls/first.cpp", &first),
            ("hw_hls/second.cpp", &second),
            ("host/pair_host.cpp", host),
        ],
    )
}

/// Catches a stream between kernels whose depth has no effect, or another than its FIFO has: the times are
/// computed by hand.
#[test]
fn the_depth_of_a_stream_takes_the_time_that_it_must() {
    if !has_compiler() {
        return;
    }
    // 50 blocks of 64 words, one per cycle, and 64 cycles of computing behind each; a word read every second
    // cycle.
    let first = "for (int block = 0; block < 50; block++) {\n\
                 for (int at = 0; at < 64; at++) out.write({block, at});\napeiron_compute(64);\n}";
    let second = "for (int at = 0; at < 50 * 64; at++) {\nconst pair_t word = in.read();\n\
                  if (word.a != at / 64 || word.b != at % 64) throw std::runtime_error(\"another word\");\n}";
    let time = |depth: u32| {
        let config = joined_pair(&format!("depth_{depth}"), depth, (first, second));
        let built = Built::of(config, (&format!("depth_{depth}"), "pair_host"));
        printed(&built.run(&[], &["0"])).trim().parse::<i64>().unwrap()
    };
    // Two places: word i > 1 is written when word i - 2 has been read, in cycle 2 i - 2 of its block; the
    // last in cycle 124, and the next block begins behind 64 more. The last word of all is read in cycle
    // 127 of its block.
    let short = 49 * (124 + 1 + 64) + 127;
    // 64 places: no word waits for room, and the reader is never without one: word n is read in cycle
    // 2 n + 1.
    let long = 2 * (50 * 64 - 1) + 1;
    let (with_two, with_all) = (time(2), time(64));
    assert_eq!(with_two - with_all, 10 * (short - long), "{with_two} {with_all}");
    // Beside them the end of the last cycle, and looks at the clock of 20 ns.
    assert!((10..=50).contains(&(with_two - 10 * short)), "{with_two}");
}

/// Catches streams between kernels that can be read by their writer, a deadlock that does not name them, and
/// ends of one stream whose words differ.
#[test]
fn streams_that_are_misused_are_named() {
    if !has_compiler() {
        return;
    }
    let first = "if (what == 0) in.read();\nif (what == 1) out.read();\n\
                 if (what == 2) for (int at = 0; at < 9; at++) out.write({at, 0});";
    let second = "if (what != 2) in.read(); else message_data_in[0].read();";
    let built = Built::of(joined_pair("misused", 4, (first, second)), ("misused", "pair_host"));
    let said = refused(1, &built.run(&[], &["0"]));
    assert!(said.contains("every kernel waits for a stream of its node:"), "{said}");
    assert!(said.contains("kernel first reads back, which is empty\n  kernel second reads there"), "{said}");
    let said = refused(1, &built.run(&[], &["1"]));
    assert!(said.contains("kernel first reads stream there, and second is the one that does"), "{said}");
    let said = refused(1, &built.run(&[], &["2"]));
    assert!(said.contains("kernel first writes there, which is full"), "{said}");

    let config = joined_pair("unlike", 4, ("", ""));
    let source = Path::new(&config).with_file_name("hw_hls").join("second.cpp");
    let text = std::fs::read_to_string(&source).unwrap();
    std::fs::write(&source, text.replace("hls::stream<short>", "hls::stream<long>")).unwrap();
    let unlike = Built::of(config, ("unlike", "pair_host"));
    // Its host catches no exception.
    let said = refused(134, &unlike.run(&[], &["0"]));
    assert!(said.contains("stream back joins two types of words: second.out has long"), "{said}");

    let config = joined_pair("open", 4, ("", ""));
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.lines().take(6).collect::<Vec<_>>().join("\n") + "\n").unwrap();
    for command in [&["check", &config][..], &["build", &config, "-o", &config.replace(".yaml", ".xclbin")]] {
        let said = refused(2, command);
        assert!(said.contains("first.cpp:3: nothing is joined to the stream first.in; add one"), "{said}");
    }
}

/// Catches a kernel that needs a port for its streams, words that go by another stream of an array or at
/// another time, and streams and channels that are not there and are used without a word.
#[test]
fn a_kernel_may_have_streams_alone_and_arrays_of_them() {
    if !has_compiler() {
        return;
    }
    let config = "kernels:\n\
                  - {name: first, input_channels: 1, output_channels: 1, switch_port: 0}\n\
                  - {name: middle}\n\
                  config: {freq: 100, links: 2}\n\
                  streams:\n\
                  - {name: lanes, from: first.out, to: middle.in, count: 2}\n\
                  - {name: back, from: middle.out, to: first.in}\n";
    let first = "#include \"hapecom.h\"\n\
                 void first(int what, hls::stream<int> out[2], hls::stream<int> &in,\n\
                 message_stream_t message_data_in[N_INPUT_CHANNELS],\n\
                 message_stream_t message_data_out[N_OUTPUT_CHANNELS])\n{\n\
                 if (what == 1) out[2].write(0);\n\
                 for (int at = 0; at < what; at++) {\nout[at % 2].write(at);\n\
                 if (in.read() != at + 1) throw std::runtime_error(\"another word\");\n}\n}\n";
    let middle = "#include \"hapecom.h\"\n\
                  void middle(int what, hls::stream<int> in[2], hls::stream<int> &out)\n{\n\
                  if (what == 2) receive(0u);\n\
                  for (int at = 0; at < what; at++) out.write(in[at % 2].read() + 1);\n}\n";
    let host = r#"
#include "apeiron_host.h"
#include <ctime>
int main(int, char **words)
{
    xrt::device device(0);
    const xrt::uuid design = device.load_xclbin(words[2]);
    xrt::kernel first(device, design, "first"), middle(device, design, "middle");
    timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    xrt::run one = middle(std::atoi(words[3])), two = first(std::atoi(words[3]));
    two.wait();
    clock_gettime(CLOCK_MONOTONIC, &end);
    std::printf("%ld\n", (end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec);
}
"#;
    let files = [
        ("config.yaml", config),
        ("hw_hls/first.cpp", first),
        ("hw_hls/middle.cpp", middle),
        ("host/alone_host.cpp", host),
    ];
    let built = Built::of(project("alone", &files), ("alone", "alone_host"));
    assert!(printed(&["check", &built.config]).contains("no port: middle\nstream lanes: from first.out to"));
    let time = |words: &str| printed(&built.run(&[], &[words])).trim().parse::<i64>().unwrap();
    // Each word takes a cycle there and one back, and the next goes as it comes.
    assert_eq!(time("300") - time("100"), 10 * 2 * 200);
    let said = refused(1, &built.run(&[], &["1"]));
    assert!(
        said.contains("kernel first uses stream lanes[2], and `count` of it in config.yaml is 2"),
        "{said}"
    );
    let said = refused(1, &built.run(&[], &["2"]));
    assert!(said.contains("kernel middle uses channel 0, and it is at no port"), "{said}");

    let alone = config
        .replace("name: middle}", "name: middle, input_channels: 1, output_channels: 1, switch_port: 1}");
    let mut files = files;
    files[0].1 = &alone;
    let out = built.description.replace("design", "other");
    let said = refused(2, &["build", &project("alone_no_channels", &files), "-o", &out]);
    assert!(said.contains("one without a switch_port in config.yaml has none of these"), "{said}");
}

/// Catches pairs of kernels whose samples are not those of plain C++, and a run that is explained without the
/// kernel and the FIFO that are its limit.
#[test]
fn a_run_is_explained_by_its_kernels() {
    if !has_compiler() {
        return;
    }
    let pairs = Built::of(example("pairs"), ("pairs", "pairs_test"));
    assert!(printed(&["show", &pairs.config]).contains("krnl_front.samples_out:krnl_back.samples_in:16\n"));
    for dims in ["topology.dims=[1]", "topology.dims=[2]"] {
        let out = printed(&pairs.run(&["--set", dims], &["-n", "20"]));
        assert!(out.contains("5120 samples are right"), "{out}");
    }
    let results = Path::new(env!("CARGO_TARGET_TMPDIR")).join("apeiron_pairs/results").display().to_string();
    let options = ["--set", "topology.dims=[2]", "--force", "-o", &results];
    printed(&pairs.run(&options, &["-n", "100", "-s", "3"]));
    assert!(Path::new(&results).join("kernels.parquet").exists());
    let text = explained(&results, &["--quiet"]);
    assert!(
        text.starts_with("Kernel krnl_back of node 0 is the limit: it works longest, and waits for 0."),
        "{text}"
    );
    assert!(text.contains("\nThe FIFO that is waited for longest is samples: krnl_front of node "), "{text}");
    let document: serde_json::Value =
        serde_json::from_str(&explained(&results, &["--quiet", "--json"])).unwrap();
    let kernels = document["runs"][0]["kernels"]["kernels"].as_array().unwrap();
    assert_eq!(kernels.len(), 4);
    for kernel in kernels {
        // All of the time is told.
        let waits: f64 =
            kernel["waits"].as_array().unwrap().iter().map(|wait| wait["share"].as_f64().unwrap()).sum();
        assert!((kernel["works"].as_f64().unwrap() + waits - 1.0).abs() < 1e-6, "{kernel}");
    }
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
    // A clock that the kernels do not have, be it one that the IP carries or not.
    for set in ["nic.clock=250MHz", "switch.clock=50MHz"] {
        let said = refused(2, &["run", &config, "--set", set, "--", "true"]);
        let (key, clock) = set.split_once('=').unwrap();
        let told = format!("config.yaml:13: the design has freq: 100, and {key} is {clock}: kernels and");
        assert!(said.contains(&told) && said.contains(&format!("leave --set {key} out")), "{said}");
    }
}
