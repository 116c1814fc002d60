//! Figures of `weft apeiron`: those of D2.8, those of the model, and times that are computed by hand.

use crate::apeiron::{Built, example, has_compiler, printed, project, refused};
use crate::support::texts;
use std::path::Path;
use std::process::Command;

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

/// The output of `weft explain` of a directory.
fn explained(results: &str, options: &[&str]) -> String {
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
    let output = weft.args(["explain", results]).args(options).output().unwrap();
    assert!(output.status.success(), "{}", texts(&output).1);
    texts(&output).0
}

/// The design of the latency test at another frequency, in a folder of the test's own.
fn latency_at(test: &str, megahertz: u32) -> String {
    let own = example("latency");
    let folder = Path::new(&own).parent().unwrap();
    let text = std::fs::read_to_string(&own).unwrap().replace("freq: 100", &format!("freq: {megahertz}"));
    let files = ["hw_hls/krnl_sr.cpp", "hw_hls/krnl_sr.h", "host/latency_test.cpp", "host/fifo_test.cpp"];
    let sources = files.map(|file| (file, std::fs::read_to_string(folder.join(file)).unwrap()));
    let all: Vec<_> = sources.iter().map(|(file, text)| (*file, text.as_str())).collect();
    project(test, &[&all[..], &[("config.yaml", &text)]].concat())
}

/// Catches a design at another frequency whose ports or switch keep the old one, cycles that are more where
/// one is no whole number of picoseconds, and a design that is run with another `config.yaml` than its own.
#[test]
fn at_any_frequency_there_are_as_many_cycles() {
    if !has_compiler() {
        return;
    }
    for (megahertz, latency) in [(50, "0.500"), (75, "0.333")] {
        let test = format!("at_{megahertz}");
        let built = Built::of(latency_at(&test, megahertz), (&test, "latency_test"));
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

/// Periods that are no whole picoseconds: 28 cycles from FIFO to FIFO, as the self-test of the model has
/// them, and 25 for half of a loop. Catches cycles that are rounded up twice on their way between kernels,
/// ports and switch.
#[test]
fn cycles_do_not_depend_on_the_frequency() {
    if !has_compiler() {
        return;
    }
    let built = Built::of(latency_at("cycles_75", 75), ("cycles", "latency_test"));
    let description = std::fs::read_to_string(&built.description).unwrap();
    for megahertz in [97, 90, 75, 66, 40, 33, 7] {
        let own = built.description.replace("design", &format!("design_{megahertz}"));
        let text = description.replace("frequency 75", &format!("frequency {megahertz}"));
        std::fs::write(&own, text).unwrap();
        let latency = Built {
            config: latency_at(&format!("cycles_{megahertz}"), megahertz),
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
