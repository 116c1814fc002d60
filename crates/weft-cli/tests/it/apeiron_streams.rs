//! Streams and channels of `weft apeiron`: their words, their depths, and the ways of packets between them.

use crate::apeiron::{
    Built, TIMED_HOST, design, example, has_compiler, on_two_nodes, printed, project, refused,
};
use crate::support::texts;
use std::path::Path;
use std::process::Command;
use weft_results::{PacketRow, StoredResult};

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

/// A design of two kernels with these bodies, which are joined by a stream each way.
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
