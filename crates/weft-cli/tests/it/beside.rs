//! Flows, services and clients of a scenario beside the ranks of `weft replay` and `weft run`.

use crate::common::{json, number, refused, rows, weft};
use crate::support::{job, over_weft, texts};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

/// 16 endpoints at each leaf.
const MACHINE: &str = "ethernet-100g-spineleaf";
/// At the switch of ranks 0 and 1, and towards them.
const NEAR: [&str; 5] = ["2-4", "1", "1", "4", "0,1,4"];
/// At another switch.
const FAR: [&str; 5] = ["18-20", "17", "17", "20", "16,17,20"];

/// A scenario: an incast of endpoints into one, a store at two, and clients.
fn scenario(folder: &Path, [from, to, store, second, clients]: [&str; 5]) -> String {
    let path = folder.join("beside.toml");
    let text = format!(
        "[scenario]\ntitle = \"beside ranks\"\ntime = \"9ms\"\nwarm_up = \"5us\"\n\
         [[flows]]\nname = \"incast\"\nrole = \"aggressor\"\nfrom = \"{from}\"\nto = \"{to}\"\n\
         size = \"16K\"\n\
         [[services]]\nname = \"store\"\non = \"{store},{second}\"\nservice_time = \"2us\"\nvalue = \"1K\"\n\
         [[clients]]\nname = \"clients\"\nrole = \"background\"\nof = \"store\"\nfrom = \"{clients}\"\n\
         window = 3\ngets = 0.5\nsize = \"700\"\n"
    );
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A trace of two ranks that exchange messages.
pub(crate) fn exchange(folder: &Path) -> String {
    let mut text = "num_ranks 2\n".to_owned();
    for rank in 0..2 {
        let other = 1 - rank;
        writeln!(text, "rank {rank} {{").unwrap();
        for round in 0..10 {
            writeln!(text, "c{round}: calc 1000").unwrap();
            writeln!(text, "s{round}: send 40000b to {other} tag {round}").unwrap();
            writeln!(text, "r{round}: recv 40000b from {other} tag {round}").unwrap();
            writeln!(text, "s{round} requires c{round}\nr{round} requires c{round}").unwrap();
            if round > 0 {
                writeln!(text, "c{round} requires s{0}\nc{round} requires r{0}", round - 1).unwrap();
            }
        }
        text += "}\n";
    }
    let path = folder.join("exchange.goal");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The row of the ranks, without what depends on the computer.
fn ranks(report: &Value) -> Value {
    rows(report)[0].clone()
}

/// The row of a group.
fn group(report: &Value, name: &str) -> Value {
    let found = rows(report).into_iter().find(|row| row["group"] == name);
    found.unwrap_or_else(|| panic!("no {name}: {report}"))
}

/// Ranks have the figures of a run alone, but for those of all links together.
fn assert_same_ranks(beside: &Value, alone: &Value) {
    let own = |row: &Value| {
        let mut row = row.as_object().unwrap().clone();
        row.remove("packet_hops");
        row.remove("busiest_links");
        row
    };
    assert_eq!(own(beside), own(alone));
}

/// Catches a scenario that is not simulated beside a replay, one that ranks feel across switches, a run that
/// goes on when its ranks have ended, and rows that depend on threads.
#[test]
fn a_replay_meets_a_scenario_where_it_shares_links() {
    let folder = tempfile::tempdir().unwrap();
    let trace = exchange(folder.path());
    let replay = |more: &[&str]| {
        json(&[&["replay", "-m", MACHINE, &trace, "--ppn", "1", "--json", "--check"], more].concat())
    };
    let alone = replay(&[]);
    let time = |report: &Value| number(&ranks(report), "run_time_us");
    let near = scenario(folder.path(), NEAR);
    let beside = replay(&["--scenario", &near]);
    assert!(time(&beside) > 1.2 * time(&alone), "{beside}");
    assert!(time(&beside) < 8000.0, "the scenario goes on for 9 ms: {beside}");
    let (incast, clients, store) =
        (group(&beside, "incast"), group(&beside, "clients"), group(&beside, "store"));
    let measured = number(&incast, "measured_us");
    // A look every 22.5 us.
    assert!((time(&beside) - 5.0 - measured).abs() < 22.6, "{measured} of {}", time(&beside));
    assert!(number(&incast, "throughput_gbps") > 20.0, "{incast}");
    let (requests, under_way) = (number(&clients, "requests"), number(&clients, "requests_under_way"));
    assert!(requests > 50.0 && under_way <= 9.0, "{clients}");
    assert!(number(&store, "served") >= requests, "{store}");
    for threads in ["2", "3"] {
        assert_eq!(rows(&replay(&["--scenario", &near, "--threads", threads])), rows(&beside), "{threads}");
    }
    let far = scenario(folder.path(), FAR);
    let far = replay(&["--scenario", &far]);
    assert_same_ranks(&ranks(&far), &ranks(&alone));
    assert!(number(&group(&far, "clients"), "requests") > 10.0, "{far}");
    let (near, out) = (scenario(folder.path(), NEAR), folder.path().join("out"));
    let out = out.to_str().unwrap();
    let words = ["replay", "-m", MACHINE, &trace, "--ppn", "1", "--scenario", &near, "--isolated", "-o", out];
    let said = weft(&[&words[..], &["--quiet"]].concat());
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.contains("incast (aggressor)") && said.contains("requests, "), "{said}");
    let manifest = fs::read_to_string(folder.path().join("out/run.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let slowdown = number(&manifest["rows"][0], "slowdown");
    assert!((slowdown - time(&beside) / time(&alone)).abs() < 1e-6, "{slowdown}");
    assert_eq!(manifest["rows"][3]["served"], store["served"]);
    let again = weft(&["explain", out]);
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    assert!(weft(&["rerun", out]).status.success());
}

/// Catches flows and clients whose small messages stay in the mailbox of an interface with ranks, which
/// takes 64 of them on `exanest`.
#[test]
fn what_is_beside_ranks_keeps_no_mailbox_full() {
    let folder = tempfile::tempdir().unwrap();
    let trace = exchange(folder.path());
    let path = folder.path().join("small.toml");
    let text = "[scenario]\ntitle = \"small\"\ntime = \"9ms\"\n[[services]]\nname = \"store\"\non = \"1\"\n\
                service_time = \"100ns\"\n[[clients]]\nname = \"clients\"\nrole = \"victim\"\n\
                of = \"store\"\nfrom = \"0\"\nrequests = 200\n";
    fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    let report = json(&["replay", "-m", "exanest", &trace, "--ppn", "1", "--scenario", path, "--json"]);
    let clients = group(&report, "clients");
    assert!(number(&clients, "requests") > 100.0 || clients["requests_under_way"] == 0, "{report}");
}

/// Catches a file that is taken although it says another application, options that tell of messages of ranks
/// alone, and a scenario that goes on without any rank.
#[test]
fn what_cannot_go_beside_ranks_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let trace = exchange(folder.path());
    let path = folder.path().join("own.toml");
    let text = "[scenario]\ntitle = \"two\"\ntime = \"9us\"\n[[applications]]\nname = \"a\"\n\
                role = \"victim\"\ntrace = \"none.weft\"\n";
    fs::write(&path, text).unwrap();
    let own = path.to_str().unwrap();
    let mend = "own.toml:4: `applications`: the program of the command is the application; take";
    let replay = ["replay", "-m", "exanest", &trace, "--scenario"];
    let said = refused(&[&replay[..], &[own]].concat());
    assert!(said.contains(mend), "{said}");
    let said = refused(&["run", "-m", "exanest", "-n", "2", "--scenario", own, "--", "/bin/true"]);
    assert!(said.contains(mend), "{said}");
    let file = scenario(folder.path(), NEAR);
    // No rank enters virtual time, and nobody waits for what would be beside them.
    let (output, document, said) = run(Path::new("/bin/true"), &[], &["--scenario", &file]);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(number(&group(&document, "incast"), "transfers"), 0.0, "{document}");
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let replay = [&replay[..], &[&file]].concat();
    assert!(refused(&[&replay[..], &["--data"]].concat()).contains("--data compares memory of ranks"));
    let said = refused(&[&replay[..], &["--links-by-job", "-o", out]].concat());
    assert!(said.contains("leave it out, or --scenario beside.toml"), "{said}");
}

/// Two ranks that exchange messages over `weft.h` and say when; with an argument, they wait for one more.
const PROGRAM: &str = r#"
#include "weft.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static weft_rank *rank;
static char out[40000], in[40000];

static void wait_for(int count)
{
    weft_completion done;
    while (count > 0) {
        int found = weft_poll(rank, &done, 1);
        if (found < 0 || (found == 1 && done.error))
            exit(9);
        count -= found;
        if (found == 0)
            weft_yield(rank);
    }
}

static void swap(uint32_t other)
{
    if (weft_receive(rank, other, 1, 0, in, sizeof in, WEFT_TAGGED | WEFT_COMPLETION, NULL) ||
        weft_send(rank, other, 1, out, sizeof out, 0, WEFT_TAGGED | WEFT_COMPLETION, NULL))
        exit(8);
    wait_for(2);
}

int main(int count, char **words)
{
    (void)words;
    if (weft_open(&rank))
        return 7;
    uint32_t me = weft_number(rank);
    for (int round = 0; round < 10; round++)
        swap(1 - me);
    printf("rank %u at %" PRIu64 " ps\n", me, weft_clock_ps(rank));
    if (count > 1) {
        weft_receive(rank, 1 - me, 2, 0, in, sizeof in, WEFT_TAGGED | WEFT_COMPLETION, NULL);
        wait_for(1);
    }
    return 0;
}
"#;

/// `weft run` of two ranks on two hosts: the output of the command, its document, and what ranks printed.
fn run(program: &Path, arguments: &[&str], more: &[&str]) -> (Output, Value, String) {
    let two = ["-m", MACHINE, "-n", "2", "--ppn", "1", "--json", "--quiet"];
    let output = crate::support::run(&[&two[..], more].concat(), program, arguments);
    let (document, printed) = texts(&output);
    let document = serde_json::from_str(&document).unwrap_or_else(|_| panic!("{document}{printed}"));
    (output, document, printed)
}

/// Runs a program alone, beside a scenario at its switch, and beside one at another. Returns the document of
/// the second.
fn meets_scenarios(folder: &Path, program: &Path, arguments: &[&str]) -> Value {
    let time = |document: &Value| number(document, "virtual_time_us");
    let (output, alone, printed_alone) = run(program, arguments, &[]);
    assert!(output.status.success(), "{printed_alone}");
    let near = scenario(folder, NEAR);
    let (output, beside, printed) = run(program, arguments, &["--scenario", &near]);
    assert!(output.status.success(), "{printed}");
    assert!(time(&beside) > 1.1 * time(&alone), "{beside}\n{alone}");
    assert!(time(&beside) < 8000.0, "the scenario goes on for 9 ms: {beside}");
    let measured = number(&group(&beside, "incast"), "measured_us");
    assert!((time(&beside) - 5.0 - measured).abs() < 1.0, "{measured} of {}", time(&beside));
    assert!(number(&group(&beside, "clients"), "requests") > 50.0, "{beside}");
    for _ in 0..2 {
        let (_, again, printed_again) = run(program, arguments, &["--scenario", &near]);
        assert_eq!((rows(&again), &printed_again), (rows(&beside), &printed));
    }
    let far = scenario(folder, FAR);
    let (_, far, printed_far) = run(program, arguments, &["--scenario", &far]);
    assert_same_ranks(&ranks(&far), &ranks(&alone));
    assert_eq!(printed_far, printed_alone);
    assert!(number(&group(&far, "store"), "served") > 10.0, "{far}");
    beside
}

/// Catches real ranks whose times depend on the wall clock where the network is never dry, on flows with
/// which they share nothing, or not on flows with which they do; and a run that goes on when its ranks have
/// ended.
#[test]
fn a_program_over_weft_meets_a_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let program = over_weft("beside", PROGRAM, &[]);
    meets_scenarios(folder.path(), &program, &[]);
}

/// Catches the same with MPI, whose ranks enter virtual time by barriers of the process manager, and a
/// recording that does not meet the scenario as its program did.
#[test]
fn an_mpi_program_meets_a_scenario() {
    let Some(program) = job() else { return };
    let folder = tempfile::tempdir().unwrap();
    let beside = meets_scenarios(folder.path(), &program, &["ring", "40000", "10"]);
    let near = scenario(folder.path(), NEAR);
    let trace: PathBuf = folder.path().join("ring.weft");
    let trace = trace.to_str().unwrap();
    let (_, recorded, _) = run(&program, &["ring", "40000", "10"], &["--scenario", &near, "--record", trace]);
    assert_eq!(rows(&recorded), rows(&beside), "a recording changes nothing");
    let words = ["replay", "-m", MACHINE, trace, "--ppn", "1", "--scenario", &near, "--json", "--quiet"];
    let (replayed, ran) = (ranks(&json(&words)), ranks(&recorded));
    let (replayed, ran) = (number(&replayed, "run_time_us"), number(&ran, "run_time_us"));
    let alone = number(&ranks(&json(&[&words[..6], &["--json", "--quiet"]].concat())), "run_time_us");
    assert!(replayed > 1.1 * alone, "{replayed} beside the scenario, {alone} alone");
    assert!((replayed / ran - 1.0).abs() < 0.25, "{replayed} replayed, {ran} run");
}

/// Catches ranks that wait for ever beside flows without an end, and are not found before these end.
#[test]
fn a_deadlock_beside_flows_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let near = scenario(folder.path(), NEAR);
    let program = over_weft("beside_deadlock", PROGRAM, &[]);
    let (output, document, said) = run(&program, &["waits"], &["--scenario", &near]);
    assert_eq!((document["ended"].as_str(), output.status.code()), (Some("deadlock"), Some(1)), "{said}");
    let detail = document["detail"].as_str().unwrap();
    assert!(
        detail.contains("rank 0 waits since ") && detail.contains("a message from rank 1, tag 2"),
        "{detail}"
    );
    assert!(number(&group(&document, "incast"), "measured_us") < 8000.0, "{document}");
    let Some(program) = job() else { return };
    let (output, document, said) = run(&program, &["deadlock"], &["--scenario", &near]);
    assert_eq!((document["ended"].as_str(), output.status.code()), (Some("deadlock"), Some(1)), "{said}");
}

/// The program of `examples/service_requests.c`.
fn service_requests() -> PathBuf {
    let source = fs::read_to_string(crate::support::root().join("examples/service_requests.c")).unwrap();
    over_weft("service_requests", &source, &[])
}

/// The times of put and get of each rank in us, as the program prints them.
fn times(printed: &str) -> Vec<(f64, f64)> {
    let number = |line: &str, after: &str| {
        let rest = &line[line.find(after).unwrap() + after.len()..];
        let words: Vec<&str> = rest.split_whitespace().collect();
        words[words.iter().position(|word| word.starts_with("us")).unwrap() - 1].parse().unwrap()
    };
    let lines = printed.lines().filter(|line| line.starts_with("rank "));
    lines.map(|line| (number(line, "put of"), number(line, "get of"))).collect()
}

/// Catches a request of a rank that does not take what its message takes, the service time and what the
/// answer takes, for a store on the rank's own node and on another; an answer that has another size; and a
/// critical path that falls over an answer.
#[test]
fn a_rank_asks_a_store_of_its_node_and_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.toml");
    let store = "[scenario]\ntitle = \"store\"\ntime = \"10ms\"\n[[services]]\nname = \"store\"\non = \"0\"\n\
                 service_time = \"2us\"\nkey = \"64\"\n";
    fs::write(&path, store).unwrap();
    let free = ["messaging.send_call=0ns", "messaging.control_receive=0ns", "messaging.receive_call=0ns"];
    let free = [&free[..], &["host.poll=1ps", "host.clock_read=1ps"]].concat();
    let sets: Vec<&str> = free.iter().flat_map(|set| ["--set", set]).collect();
    let program = service_requests();
    let options = [&sets[..], &["--scenario", path.to_str().unwrap()]].concat();
    let (output, document, printed) = run(&program, &["0", "1024"], &options);
    assert!(output.status.success(), "{printed}");
    let told = times(&printed);
    assert_eq!(told.len(), 2, "{printed}");
    assert_eq!(printed.matches("get of 1024 bytes").count(), 2, "{printed}");
    assert_eq!(number(&group(&document, "store"), "served"), 4.0);
    let own = folder.path().join("clients.toml");
    for (rank, (put, get)) in told.into_iter().enumerate() {
        // A client that asks once, where there is nothing else, takes its messages and the service time.
        let of_client = |gets: u32| {
            let clients = format!(
                "{store}value = \"1K\"\n[[clients]]\nname = \"one\"\nrole = \"victim\"\nof = \"store\"\n\
                 from = \"{rank}\"\nrequests = 1\ngets = {gets}.0\nsize = \"1K\"\n"
            );
            fs::write(&own, clients).unwrap();
            let report = json(&["traffic", "-m", MACHINE, "--scenario", own.to_str().unwrap(), "--json"]);
            number(&group(&report, "one"), "latency_mean_us")
        };
        assert!((put - of_client(0)).abs() < 0.005, "rank {rank}: put {put}, {}", of_client(0));
        assert!((get - of_client(1)).abs() < 0.005, "rank {rank}: get {get}, {}", of_client(1));
    }
    let out = folder.path().join("out");
    let kept = [&options[..], &["-o", out.to_str().unwrap(), "--breakdown", "--check"]].concat();
    let (output, again, printed_again) = run(&program, &["0", "1024"], &kept);
    assert!(output.status.success(), "{again}");
    assert_eq!((rows(&again)[1..].to_vec(), printed_again), (rows(&document)[1..].to_vec(), printed));
    let explained = weft(&["explain", out.to_str().unwrap()]);
    assert!(explained.status.success(), "{}", String::from_utf8_lossy(&explained.stderr));
}

/// Catches a request to a node without a store that is taken, or waited for, and a rank that waits for an
/// answer and is taken to wait for ever.
#[test]
fn a_node_without_a_store_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let near = scenario(folder.path(), NEAR);
    let program = service_requests();
    for (node, options) in [("1", vec![]), ("3", vec!["--scenario", &near]), ("4000000000", vec![])] {
        let output = crate::support::run(
            &[&["-m", MACHINE, "-n", "2", "--ppn", "1", "--quiet"], &options[..]].concat(),
            &program,
            &[node],
        );
        let said = texts(&output).1;
        assert!(
            !output.status.success() && said.contains("put: No such device or address"),
            "{node}: {said}"
        );
    }
    let (output, document, printed) = run(&program, &["1"], &["--scenario", &near]);
    assert!(output.status.success() && times(&printed).len() == 2, "{printed}{document}");
}

/// Catches a slot that is never free again, or two requests that share one, and a node that has more under
/// way than answers can name: each of two ranks of a node makes 200 requests at once, three times.
#[test]
fn a_node_has_256_requests_under_way() {
    let folder = tempfile::tempdir().unwrap();
    let near = scenario(folder.path(), NEAR);
    let text = r#"
#include "weft.h"
#include <errno.h>
#include <stdio.h>

int main(void)
{
    weft_rank *rank;
    weft_completion done;
    if (weft_open(&rank))
        return 7;
    for (int round = 0; round < 3; round++) {
        int served = 0, refused = 0;
        for (uintptr_t key = 1; key <= 200; key++)
            if (weft_service_get(rank, 4, (uint32_t)key, (void *)key))
                return 8;
        while (served + refused < 200) {
            if (weft_poll(rank, &done, 1) != 1) {
                weft_yield(rank);
                continue;
            }
            served += done.error == 0 && done.length >= 700 && done.flags == WEFT_SERVED;
            refused += done.error == ENOBUFS;
        }
        if (round == 0)
            printf("served %d refused %d\n", served, refused);
    }
    return weft_service_get(rank, 4, 65536, NULL) == -EINVAL ? 0 : 9;
}
"#;
    let program = over_weft("many_requests", text, &[]);
    let words = ["-m", "exanest", "-n", "2", "--ppn", "2", "--quiet", "--scenario", &near];
    let (printed, said) = texts(&crate::support::run(&words, &program, &[]));
    let numbers = printed.split_whitespace().filter_map(|word| word.parse::<u32>().ok());
    let numbers: Vec<u32> = numbers.collect();
    let [served, refused, others_served, others_refused] = numbers[..] else { panic!("{printed}{said}") };
    // A client of the node has three of its slots.
    assert_eq!((served + others_served, refused + others_refused), (253, 147), "{printed}{said}");
}
