//! `--rtl`: the RTL of blocks in step with the model, and in its place.

use crate::common::rows;
use crate::skipped::skip;
use crate::support::{job, texts};
use crate::waiting::wait_until_used;
use fst_reader::{FstFilter, FstHierarchyEntry, FstReader, FstSignalValue};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The folder of `make rtl`.
fn built() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/rtl")
}

/// The library of `make rtl`, or one with a bug.
pub fn library(folder: &str) -> Option<PathBuf> {
    let path = built().join(folder).join("libweft_rtl.so");
    if path.exists() {
        require_current();
        return Some(path);
    }
    skip("libweft_rtl.so is not built; make rtl-tools rtl");
    None
}

/// Fails where the library is of other sources than those of the tree: weft finds it by itself, and refuses
/// it with the mend.
fn require_current() {
    let words = ["osu", "latency", "-m", "exanest", "--from", "M1QAF1", "--to", "M1QAF2", "--sizes", "0"];
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
    weft.args(words)
        .args(["--iterations", "1", "--quiet", "--rtl", "mailbox"])
        .env_remove("WEFT_RTL_LIBRARY");
    let output = weft.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// Latency between two FPGAs of a board, with these options.
pub fn latency(library: &Path, options: &[&str]) -> Output {
    let command = ["osu", "latency", "-m", "exanest", "--from", "M1QAF1", "--to", "M1QAF2", "--json"];
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
    weft.args(command).args(options).env("WEFT_RTL_LIBRARY", library).output().unwrap()
}

/// Bytes of a command's output in words.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Catches RTL and model that are not one, or a run whose results the RTL changes: all sizes of small
/// messages, and a rendezvous between them.
#[test]
fn latency_is_the_models_with_rtl_in_step() {
    let Some(library) = library("") else { return };
    let sizes = ["--sizes", "0:4K"];
    let plain = latency(&library, &sizes);
    let folder = tempfile::tempdir().unwrap();
    let waves = folder.path().join("waves.vcd");
    let with = ["--rtl", "packetizer,mailbox", "--waves", waves.to_str().unwrap()];
    let in_step = latency(&library, &[&sizes[..], &with[..]].concat());
    assert!(in_step.status.success(), "{}", text(&in_step.stderr));
    let rows = |output: &Output| rows(&serde_json::from_slice(&output.stdout).unwrap());
    assert_eq!(rows(&in_step), rows(&plain));
    let waves = std::fs::read_to_string(waves).unwrap();
    assert!(waves.contains("$scope module M1QAF1 $end") && waves.contains(" m_axis_net_tdata $end"));
    let told = text(&in_step.stderr);
    let compared: Value = serde_json::from_slice(&in_step.stdout).unwrap();
    for block in compared["rtl"].as_array().unwrap() {
        let [name, taken, sent] = [&block["block"], &block["packets_taken"], &block["packets_sent"]];
        let line = format!("{} took {taken} packets and sent {sent}, at 2 endpoints", name.as_str().unwrap());
        assert!(taken.as_u64() > Some(0) && taken == sent && told.contains(&line), "{line}: {told}");
    }
    // Something happens in it.
    assert!(waves.lines().filter(|line| line.starts_with('#')).count() > 100);
}

/// Catches RTL and model that part where much comes at once: windows that fill channels and mailboxes,
/// collectives, and packets and answers that are lost or damaged.
#[test]
fn storms_and_losses_are_the_models_with_rtl_in_step() {
    let Some(library) = library("") else { return };
    let in_step = |words: &[&str]| {
        let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
        weft.args(["osu"]).args(words).args(["-m", "exanest", "--rtl", "packetizer,mailbox", "--quiet"]);
        let output = weft.env("WEFT_RTL_LIBRARY", &library).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}{}", text(&output.stdout), text(&output.stderr));
    };
    in_step(&["mbw_mr", "--ranks", "8", "--ppn", "4", "--sizes", "8:32", "--iterations", "3"]);
    in_step(&["allreduce", "--ranks", "32", "--ppn", "4", "--sizes", "4:64", "--iterations", "2"]);
    let pair = ["latency", "--from", "M1QAF1", "--to", "M1QBF1", "--sizes", "8:32"];
    for faults in ["faults=[{drop=20000}]", "faults=[{corrupt=20000}]"] {
        in_step(&[&pair[..], &["--iterations", "200", "--set", faults]].concat());
    }
}

/// The value changes of a VCD file: time in ps, signal and value in binary.
pub fn changes_of_vcd(file: &Path) -> BTreeSet<(u64, String, String)> {
    let (mut names, mut scopes, mut widths) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
    let (mut time, mut changes) = (0, BTreeSet::new());
    for line in std::fs::read_to_string(file).unwrap().lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["$scope", _, name, "$end"] => scopes.push(name.to_owned()),
            ["$upscope", "$end"] => drop(scopes.pop()),
            ["$var", _, bits, code, name, "$end"] => {
                names.insert(code.to_owned(), format!("{}.{name}", scopes.join(".")));
                widths.insert(code.to_owned(), bits.parse::<usize>().unwrap());
            }
            [value, code] if value.starts_with('b') => {
                let value = format!("{:0>1$}", &value[1..], widths[code]);
                changes.insert((time, names[code].clone(), value));
            }
            [word] if word.starts_with('#') => time = word[1..].parse().unwrap(),
            [word] if !word.starts_with('$') => {
                changes.insert((time, names[&word[1..]].clone(), word[..1].to_owned()));
            }
            _ => {}
        }
    }
    changes
}

/// The same of an FST file.
pub fn changes_of_fst(file: &Path) -> BTreeSet<(u64, String, String)> {
    let file = std::io::BufReader::new(std::fs::File::open(file).unwrap());
    let mut reader = FstReader::open_and_read_time_table(file).unwrap();
    let (mut names, mut scopes) = (BTreeMap::new(), Vec::new());
    reader
        .read_hierarchy(|entry| match entry {
            FstHierarchyEntry::Scope { name, .. } => scopes.push(name),
            FstHierarchyEntry::UpScope => drop(scopes.pop()),
            FstHierarchyEntry::Var { name, handle, .. } => {
                names.insert(handle.get_index(), format!("{}.{name}", scopes.join(".")));
            }
            _ => {}
        })
        .unwrap();
    let mut changes = BTreeSet::new();
    reader
        .read_signals(&FstFilter::all(), |time, handle, value| {
            if let FstSignalValue::String(value) = value {
                let value = String::from_utf8(value.to_vec()).unwrap();
                // In FST, a signal is x until it has its first value.
                if !value.contains('x') {
                    changes.insert((time, names[&handle.get_index()].clone(), value));
                }
            }
            Ok::<(), ()>(())
        })
        .unwrap();
    changes
}

/// Catches an FST file that has other waves than the VCD file, a window that is not kept to, and one in which
/// nothing happens that is not told, or that takes the results along.
#[test]
fn waves_are_the_same_in_both_formats_and_end_with_their_window() {
    let Some(library) = library("") else { return };
    let folder = tempfile::tempdir().unwrap();
    let waves = |name: &str, more: &[&str]| {
        let file = folder.path().join(name);
        let options = ["--sizes", "8", "--rtl", "packetizer,mailbox", "--waves", file.to_str().unwrap()];
        (latency(&library, &[&options[..], more].concat()), file)
    };
    let of = |name: &str, more: &[&str]| {
        let (output, file) = waves(name, more);
        assert!(output.status.success(), "{}", text(&output.stderr));
        if name.ends_with("fst") { changes_of_fst(&file) } else { changes_of_vcd(&file) }
    };
    let all = of("all.vcd", &[]);
    let window = ["--waves-from", "3us", "--waves-to", "6us"];
    let vcd = of("window.VCD", &window);
    let fst = of("window.fst", &window);
    let different: Vec<_> = vcd.symmetric_difference(&fst).take(5).collect();
    assert!(vcd.len() > 100 && different.is_empty(), "{} {}: {different:?}", vcd.len(), fst.len());
    let within = |change: &&(u64, String, String)| (3_000_000..6_000_000).contains(&change.0);
    assert!(vcd.iter().all(|change| within(&change)));
    // What changes in it, and the values with which it begins.
    assert!(all.iter().filter(within).all(|change| vcd.contains(change)));
    let refused = |more: &[&str], says: &str| {
        let output = waves("none.fst", more).0;
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(says), "{more:?}: {said}");
        let has_results = text(&output.stdout).contains("\"finished\"");
        assert_eq!(has_results, says.contains("nothing happens"), "{more:?}");
        let left = std::fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name());
        let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with("none")).collect();
        assert!(left.is_empty(), "{left:?}");
    };
    // One edge is one time, with its values, and the cycle is as long as any.
    let edge = of("edge.vcd", &["--waves-from", "3000ns", "--waves-to", "3001ns"]);
    let times: BTreeSet<u64> = edge.iter().map(|change| change.0).collect();
    assert_eq!(times.into_iter().collect::<Vec<_>>(), [3_000_000]);
    let text_of_edge = std::fs::read_to_string(folder.path().join("edge.vcd")).unwrap();
    assert!(text_of_edge.ends_with("\n#3001000\n"), "{text_of_edge}");
    refused(&["--waves-from", "3001ns", "--waves-to", "3002ns"], "nothing happens at M1QAF");
    refused(&["--waves-from", "1s"], "nothing happens at M1QAF");
    refused(&["--waves-from", "1s"], "nothing happens at M1QAF1 from 1s on, and the run is over at");
    refused(&["--waves-from", "2us", "--waves-to", "1us"], "--waves-from 2us is not before --waves-to 1us");
}

/// Catches waves of an interrupted run that nobody can read.
#[test]
fn an_interrupted_run_has_its_waves() {
    let Some(library) = library("") else { return };
    let folder = tempfile::tempdir().unwrap();
    let latency = "osu latency -m exanest --from M1QAF1 --to M1QAF2 --sizes 0 --iterations 10000000 --quiet";
    let traffic = "traffic -m exanest --pattern incast --size 64 --messages 1000000 --quiet";
    for (name, line) in [("waves.vcd", latency), ("waves.fst", traffic)] {
        let file = folder.path().join(name);
        let part = folder.path().join(format!("{name}.part"));
        let mut child = Command::new(env!("CARGO_BIN_EXE_weft"))
            .args(line.split(' '))
            .args(["--rtl", "mailbox", "--waves", file.to_str().unwrap()])
            .env("WEFT_RTL_LIBRARY", &library)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_until_used(&mut child, 1.0);
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
        let changes = if name.ends_with("vcd") { changes_of_vcd(&file) } else { changes_of_fst(&file) };
        assert!(!changes.is_empty() && !part.exists(), "{name}");
    }
}

/// Catches RTL in the model's place that decides otherwise: results are the model's, to the picosecond. Links
/// within a board are as fast as the interface, those between boards slower: there tails come late.
#[test]
fn results_are_the_models_with_rtl_in_its_place() {
    let Some(library) = library("") else { return };
    let same = |words: &[&str]| {
        let run = |more: &[&str]| {
            let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
            weft.args(words).args(["-m", "exanest", "--quiet", "--json"]).args(more);
            let output = weft.env("WEFT_RTL_LIBRARY", &library).output().unwrap();
            assert!(output.status.success(), "{words:?} {more:?}: {}", text(&output.stderr));
            rows(&serde_json::from_slice(&output.stdout).unwrap())
        };
        assert_eq!(run(&["--rtl", "packetizer,mailbox", "--rtl-drive"]), run(&[]), "{words:?}");
    };
    let pair = ["osu", "latency", "--from", "M1QAF1", "--to", "M1QAF2"];
    same(&[&pair[..], &["--sizes", "0:4K", "--breakdown"]].concat());
    let pairs = ["osu", "mbw_mr", "--ranks", "8", "--ppn", "4", "--iterations", "3"];
    same(&[&pairs[..], &["--sizes", "8:32"]].concat());
    // Mailboxes fill up.
    same(&[&pairs[..], &["--sizes", "8", "--window", "256"]].concat());
    same(&["osu", "allreduce", "--ranks", "16", "--ppn", "4", "--sizes", "4:64", "--iterations", "2"]);
    for faults in ["faults=[{drop=20000}]", "faults=[{corrupt=20000}]"] {
        same(&[&pair[..], &["--sizes", "8:32", "--iterations", "200", "--set", faults]].concat());
    }
    let far = ["osu", "latency", "--from", "M1QAF1", "--to", "M1QBF1"];
    same(&[&far[..], &["--sizes", "0:4K", "--breakdown"]].concat());
    same(&[&far[..], &["--sizes", "8:32", "--iterations", "200", "--set", "faults=[{drop=20000}]"]].concat());
    same(&["osu", "allreduce", "--ranks", "16", "--ppn", "1", "--sizes", "4:64", "--iterations", "2"]);
}

/// Takes out of a document, however deep, what depends on the computer.
pub fn leave_out_computer(document: &mut Value) {
    const OF_COMPUTER: [&str; 4] =
        ["packet_hops_per_second", "peak_memory_bytes", "build_time_s", "wall_seconds"];
    match document {
        Value::Object(fields) => {
            fields.retain(|key, _| !OF_COMPUTER.contains(&key.as_str()));
            fields.values_mut().for_each(leave_out_computer);
        }
        Value::Array(values) => values.iter_mut().for_each(leave_out_computer),
        _ => {}
    }
}

/// Catches a real program that runs otherwise with RTL in the place of packetizer and mailbox.
#[test]
fn a_real_program_runs_the_same_with_rtl_in_the_models_place() {
    let (Some(library), Some(program)) = (library(""), job()) else { return };
    let run = |more: &[&str]| {
        let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
        weft.args(["run", "-m", "exanest", "-n", "4", "--ppn", "1", "--json"]).args(more);
        weft.arg("--").arg(&program).args(["ping-pong", "40", "5"]).env("WEFT_RTL_LIBRARY", &library);
        let output = weft.output().unwrap();
        let (document, said) = texts(&output);
        assert!(output.status.success(), "{more:?}: {document}{said}");
        let mut document: Value = serde_json::from_str(&document).unwrap();
        leave_out_computer(&mut document);
        document
    };
    let mut in_place = run(&["--rtl", "packetizer,mailbox", "--rtl-drive"]);
    let compared = in_place.as_object_mut().unwrap().remove("rtl").unwrap();
    assert!(compared[0]["packets_taken"].as_u64() > Some(0), "{compared}");
    assert_eq!(in_place, run(&[]));
}

/// Catches messages that have no domain in the RTL, as their process has ended before they have gone.
#[test]
fn a_process_ends_with_messages_that_wait() {
    let Some(library) = library("") else { return };
    let program = crate::run::interfaces("interface_with_rtl");
    let run = |more: &[&str]| {
        let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
        weft.args(["run", "--quiet", "-m", "exanest", "-n", "2", "--ppn", "1"]).args(more);
        let output = weft.arg("--").arg(&program).env("WEFT_RTL_LIBRARY", &library).output().unwrap();
        assert!(output.status.success(), "{more:?}: {:?}", texts(&output));
        texts(&output).0
    };
    let (models, rtl) = (run(&[]), ["--rtl", "packetizer,mailbox", "--rtl-drive"]);
    assert_eq!(run(&rtl[..2]), models);
    assert_eq!(run(&rtl), models);
}

/// Rank 0 frees interfaces with messages that it has not read, and others on their way, and opens more, of
/// one domain and another.
const OPENS_AGAIN: &str = r#"
#include "weft.h"

static weft_rank *rank;
static char text[64];

static void await_message(void)
{
    weft_completion done;
    while (weft_poll(rank, &done, 1) != 1 || !(done.flags & WEFT_RECEIVED))
        weft_yield(rank);
}

static weft_interface *opened(uint32_t domain, int looks, int shows)
{
    weft_interface *interface;
    if (weft_interface_allocate(rank, domain, &interface) < 0)
        return NULL;
    weft_address address = weft_interface_address(interface, NULL);
    for (uint32_t peer = 1; shows && peer < weft_count(rank); peer++)
        weft_send(rank, peer, 1, &address, sizeof address, 0, WEFT_TAGGED, NULL);
    while (looks-- > 0)
        if (weft_interface_receive(interface, text, sizeof text, NULL) < 0)
            weft_yield(rank);
    return interface;
}

int main(void)
{
    weft_interface *own, *next;
    weft_interface_completion sent;
    weft_address address;
    char byte = 0;
    if (weft_open(&rank) < 0)
        return 2;
    int is_first = weft_number(rank) == 0;
    own = is_first ? NULL : opened(1, 0, 0);
    for (int round = 0; round < 12; round++) {
        if (!is_first) {
            weft_receive(rank, 0, 1, 0, &address, sizeof address, WEFT_TAGGED | WEFT_COMPLETION, NULL);
            await_message();
            for (size_t message = 0; message < 6; message++)
                weft_interface_send(own, address, text, message * 11, NULL);
            for (int looks = 0; looks < 40; looks++)
                if (weft_interface_poll(own, &sent, 1) != 1)
                    weft_yield(rank);
            weft_send(rank, 0, 2, &byte, 1, 0, WEFT_TAGGED, NULL);
            continue;
        }
        own = opened(round % 2 ? 9 : 1, round * 3, 1);
        weft_interface_free(own);
        next = opened(round % 2 ? 1 : 9, 20, 0);
        for (uint32_t peer = 1; peer < weft_count(rank); peer++) {
            weft_receive(rank, peer, 2, 0, &byte, 1, WEFT_TAGGED | WEFT_COMPLETION, NULL);
            await_message();
        }
        weft_interface_free(next);
    }
    return 0;
}
"#;

/// Catches RTL and model of a queue that is opened again while it has entries, and others come.
#[test]
fn an_interface_is_opened_again_with_messages_in_its_queue() {
    let Some(library) = library("") else { return };
    let program = crate::support::over_weft("interface_opened_again", OPENS_AGAIN, &[]);
    let run = |ranks: &str, more: &[&str]| {
        let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
        weft.args(["run", "-m", "exanest", "-n", ranks, "--ppn", "1", "--pdid", "1,9", "--json"]).args(more);
        let output = weft.arg("--").arg(&program).env("WEFT_RTL_LIBRARY", &library).output().unwrap();
        let (document, said) = texts(&output);
        assert!(output.status.success(), "{ranks} {more:?}: {document}{said}");
        let mut document: Value = serde_json::from_str(&document).unwrap();
        leave_out_computer(&mut document);
        document.as_object_mut().unwrap().remove("rtl");
        document
    };
    for ranks in ["2", "5"] {
        let (models, rtl) = (run(ranks, &[]), ["--rtl", "packetizer,mailbox", "--rtl-drive"]);
        assert_eq!(run(ranks, &rtl[..2]), models, "{ranks} ranks");
        assert_eq!(run(ranks, &rtl), models, "{ranks} ranks");
    }
}

/// Catches RTL that traffic runs without, on one thread or two, and where there is none for it.
#[test]
fn traffic_runs_with_rtl_in_step() {
    let Some(library) = library("") else { return };
    let run = |library: &Path, more: &[&str]| {
        let words = ["traffic", "-m", "exanest", "--pattern", "uniform", "--size", "48", "--load", "0.02"];
        let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
        weft.args(words).args(["--time", "2us", "--warm-up", "1us", "--quiet", "--json"]).args(more);
        weft.args(["--set", "topology.mezzanines=1"]).env("WEFT_RTL_LIBRARY", library).output().unwrap()
    };
    let read = |output: Output| {
        assert!(output.status.success(), "{}", text(&output.stderr));
        rows(&serde_json::from_slice(&output.stdout).unwrap())
    };
    let plain = read(run(&library, &[]));
    let in_step = ["--rtl", "packetizer,mailbox"];
    assert_eq!(read(run(&library, &in_step)), plain);
    assert_eq!(read(run(&library, &[&in_step[..], &["--threads", "2"]].concat())), plain);
    if let Some(wrong) = self::library("wrong-mailbox") {
        let output = run(&wrong, &["--rtl", "mailbox"]);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
        assert!(text(&output.stderr).contains("rtl-differs"), "{}", text(&output.stderr));
    }
    let output = run(&library, &["--rtl", "mailbox", "--layer", "fabric"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--layer nic"), "{}", text(&output.stderr));
}

/// Catches RTL and model that part in an incast, which fills the mailbox's slots and its table of accepted
/// packets: packets wait, are repeated meanwhile, and are answered before their repetition has left.
#[test]
fn an_incast_is_the_models_in_step_and_in_its_place() {
    let Some(library) = library("") else { return };
    let traffic = |options: &[&str]| {
        let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
        weft.args(["traffic", "-m", "exanest", "--pattern", "incast", "--size", "64", "--json"])
            .args(options);
        let output = weft.env("WEFT_RTL_LIBRARY", &library).output().unwrap();
        assert!(output.status.success(), "{options:?}: {}", text(&output.stderr));
        rows(&serde_json::from_slice(&output.stdout).unwrap())
    };
    let with = ["--rtl", "mailbox,packetizer"];
    for (messages, drive) in [("5", &["--rtl-drive"][..]), ("10", &[]), ("30", &[])] {
        let plain = ["--messages", messages];
        assert_eq!(traffic(&[&plain[..], &with, drive].concat()), traffic(&plain), "{messages} messages");
    }
}

/// Catches a message that the RTL drops because the one before it in its channel was refused as damaged.
#[test]
fn messages_behind_refused_ones_are_the_models() {
    let Some(library) = library("") else { return };
    let run = |options: &[&str]| {
        let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
        weft.args(["osu", "mbw_mr", "-m", "exanest", "--ranks", "8", "--ppn", "4", "--sizes", "8", "--json"])
            .args(["--iterations", "5", "--set", "faults=[{corrupt=3000}]"])
            .args(options);
        let output = weft.env("WEFT_RTL_LIBRARY", &library).output().unwrap();
        assert!(output.status.success(), "{options:?}: {}", text(&output.stderr));
        rows(&serde_json::from_slice(&output.stdout).unwrap())
    };
    let models = run(&[]);
    assert_eq!(run(&["--rtl", "packetizer"]), models);
    assert_eq!(run(&["--rtl", "packetizer,mailbox", "--rtl-drive"]), models);
}

/// Catches an answer to the post before that answers the next one while its stores are on their way, and a
/// packet of the post before that goes for the next one: copies of packets are refused as damaged, and what
/// waits for its turn is repeated meanwhile.
#[test]
fn messages_that_are_refused_twice_are_the_models() {
    let Some(library) = library("") else { return };
    let run = |words: &[&str]| {
        let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
        let output = weft.args(words).arg("--json").env("WEFT_RTL_LIBRARY", &library).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        rows(&serde_json::from_slice(&output.stdout).unwrap())
    };
    let latency = ["osu", "latency", "-m", "exanest", "--from", "M1QAF1", "--to", "M2QBF3", "--sizes", "8"];
    let twice = ["--iterations", "400", "--set", "faults=[{corrupt=60000,duplicate=60000}]"];
    let incast = ["traffic", "-m", "exanest", "--pattern", "incast", "--size", "64", "--messages", "10"];
    let some = ["--set", "faults=[{corrupt=20000}]"];
    for words in [[&latency[..], &twice].concat(), [&incast[..], &some].concat()] {
        let models = run(&words);
        assert_eq!(run(&[&words[..], &["--rtl", "packetizer"]].concat()), models);
        assert_eq!(run(&[&words[..], &["--rtl", "packetizer,mailbox", "--rtl-drive"]].concat()), models);
    }
}

/// Catches a mailbox with buses of 512 bits that is not the model's, for packets of all lengths; and a
/// packetizer of another clock that is taken for one of this machine.
#[test]
fn the_mailbox_of_carvnet_has_wider_buses() {
    let Some(library) = library("") else { return };
    let run = |words: &[&str]| {
        let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
        weft.args(["osu"]).args(words).args(["-m", "carvnet-riscv", "--quiet", "--json"]);
        weft.env("WEFT_RTL_LIBRARY", &library).output().unwrap()
    };
    let read = |words: &[&str]| {
        let output = run(words);
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        rows(&serde_json::from_slice(&output.stdout).unwrap())
    };
    let folder = tempfile::tempdir().unwrap();
    let waves = folder.path().join("waves.vcd");
    let with_waves = ["--rtl", "mailbox", "--waves", waves.to_str().unwrap()];
    let latency = ["latency", "--sizes", "0:64"];
    let plain = read(&latency);
    assert_eq!(read(&[&latency[..], &with_waves].concat()), plain);
    assert_eq!(read(&[&latency[..], &["--rtl", "mailbox", "--rtl-drive"]].concat()), plain);
    let storm = ["bibw", "--sizes", "0:64", "--iterations", "3", "--set", "topology.dims=[4]"];
    assert_eq!(read(&[&storm[..], &["--rtl", "mailbox"]].concat()), read(&storm));
    // The words of an entry, side by side.
    let changes = changes_of_vcd(&waves);
    let has = |name: &str| changes.iter().any(|(_, signal, _)| signal.ends_with(name));
    assert!(has(".m_axi_wdata_384") && has(".m_axi_wdata_0"));
    let refused = run(&["latency", "--rtl", "packetizer"]);
    let said = text(&refused.stderr);
    assert!(
        refused.status.code() == Some(2) && said.contains("stored to by words of 16 bytes in the RTL"),
        "{said}"
    );
}

/// Catches a bug in RTL that decides, and which nothing compares.
#[test]
fn a_bug_in_the_models_place_is_named() {
    let Some(library) = library("wrong-mailbox") else { return };
    let output = latency(&library, &["--sizes", "8", "--rtl", "mailbox", "--rtl-drive"]);
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(output.status.code() == Some(1) && said.contains("m_axi_awaddr"), "{said}");
}

/// Catches RTL that is compared with nothing: a bug in each block ends the run, and is named.
#[test]
fn a_bug_is_named() {
    for (block, folder, signal) in [
        ("mailbox", "wrong-mailbox", "m_axi_awaddr"),
        ("packetizer", "wrong-packetizer", "m_axis_net_tvalid is 0x0 in the RTL and 0x1 in the model"),
    ] {
        let Some(library) = library(folder) else { return };
        let output = latency(&library, &["--sizes", "8", "--rtl", block]);
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{said}");
        let named = format!("the RTL of the {block} of M1QA");
        assert!(said.contains("rtl-differs") && said.contains(&named), "{said}");
        assert!(said.contains(signal) && said.contains("at edge "), "{said}");
        assert!(said.contains("with --waves FILE the same run writes its waves"), "{said}");
    }
}

/// Catches a mistake that is not named, or whose mend is not.
#[test]
fn what_has_no_rtl_is_refused() {
    let missing = Path::new("/nowhere/libweft_rtl.so");
    let refused = |library: &Path, options: &[&str], says: &[&str]| {
        let output = latency(library, options);
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(2), "{options:?}: {said}");
        for part in says {
            assert!(said.contains(part), "{options:?}: {said}");
        }
    };
    refused(missing, &["--rtl", "mailbox"], &["/nowhere/libweft_rtl.so", "make rtl"]);
    refused(
        missing,
        &["--rtl", "router"],
        &["no RTL of `router`", "allreduce, mailbox, packetizer, rdma_receive"],
    );
    let overheads = ["--rtl", "mailbox", "--set", "nic.model=overheads"];
    refused(missing, &overheads, &["has no mailbox", "nic.model=exanet"]);
    refused(missing, &["--rtl", "mailbox", "--set", "fabric.kind=ideal"], &["fabric.kind=packet"]);
    refused(missing, &["--rtl", "mailbox", "--rtl-at", "M9QZ"], &["M9QZ"]);
    let Some(library) = library("") else { return };
    refused(&library, &["--rtl", "mailbox", "--waves", "waves.txt"], &["waves.txt", ".vcd or .fst"]);
    // A file that is there stays, and a library that ends early does not take weft down.
    let folder = tempfile::tempdir().unwrap();
    let (waves, short) = (folder.path().join("waves.vcd"), folder.path().join("short.so"));
    std::fs::write(&waves, "mine").unwrap();
    let over = ["--rtl", " mailbox", "--waves", waves.to_str().unwrap()];
    refused(&library, &over, &["--waves", "exists", "--force"]);
    assert_eq!(std::fs::read_to_string(&waves).unwrap(), "mine");
    let whole = std::fs::read(&library).unwrap();
    std::fs::write(&short, &whole[..whole.len() / 2]).unwrap();
    refused(&short, &["--rtl", "mailbox"], &["short.so cannot be loaded: it is cut short", "make rtl"]);
    let saved = ["--rtl", "mailbox", "--rtl-drive", "--save-every", "1us", "-o", "/nowhere"];
    refused(&library, &saved, &["not saved", "--save-every"]);
    let check = ["--rtl", "mailbox", "--set", "nic.mailbox.check=12 cycles"];
    refused(
        &library,
        &check,
        &["nic.mailbox.check is 12", "--set 'nic.mailbox.check=11 cycles'", "parameter CHECK"],
    );
    let header = ["--rtl", "mailbox", "--set", "packet.header=32"];
    refused(&library, &header, &["packet.header is 32, and 16 in the RTL", "--set packet.header=16"]);
    let other = std::env::current_exe().unwrap();
    refused(&other, &["--rtl", "mailbox"], &["cannot be loaded", "make rtl"]);
}
