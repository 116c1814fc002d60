//! `weft run`: real MPI programs in virtual time, by the command itself.
//!
//! They need MPICH in build/venv (`make test` installs it) and are skipped where it is not there.

use crate::support::{job, root, texts};
use crate::waiting::{wait_for_line, wait_until};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn weft(options: &[&str], program: &Path, what: &str) -> std::process::Output {
    crate::support::run(options, program, &[what])
}

/// Catches times that depend on how processes ran, data that is not the sender's, turns that are lost; and
/// lines whose order is that in which the system let ranks run, before they join, in virtual time or at their
/// ends, when libraries print what they held.
#[test]
fn an_mpi_program_is_the_same_twice() {
    let Some(program) = job() else { return };
    let run = |label: &[&str]| {
        let output = weft(&[&["-m", "exanest", "-n", "16", "--json"], label].concat(), &program, "talk");
        let (document, said) = texts(&output);
        assert!(output.status.success(), "{document}{said}");
        let document: serde_json::Value = serde_json::from_str(&document).unwrap();
        assert_eq!((&document["ended"], &document["exit_status"]), (&"finished".into(), &0.into()));
        let lines: Vec<String> =
            said.lines().filter(|line| !line.starts_with("weft:")).map(str::to_owned).collect();
        assert_eq!(lines.iter().filter(|line| line.contains("of 16: sum 136 at")).count(), 16, "{said}");
        let pick = |key: &str| document[key].to_string();
        (lines, pick("virtual_time_us"), pick("messages"), pick("bytes"))
    };
    let first = run(&[]);
    for _ in 0..4 {
        assert_eq!(run(&[]), first);
    }
    let labelled = run(&["--label"]);
    for _ in 0..2 {
        assert_eq!(run(&["--label"]), labelled);
    }
}

/// Catches ranks outside MPI whose lines come as the system likes.
#[test]
fn ranks_without_mpi_print_in_their_order() {
    let Some(_) = job() else { return };
    // Each prints after the next one has.
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("4"), "").unwrap();
    let late = "until [ -e $0/$((PMI_RANK + 1)) ]; do sleep 0.01; done; \
                echo rank $PMI_RANK; echo wrong >&2; : > $0/$PMI_RANK";
    let words = ["-c", late, folder.path().to_str().unwrap()];
    let output = crate::support::run(&["-m", "exanest", "-n", "4", "--quiet"], Path::new("/bin/sh"), &words);
    let (printed, said) = texts(&output);
    assert_eq!(printed, "rank 0\nrank 1\nrank 2\nrank 3\n", "{said}");
    assert!(said.starts_with("wrong\nwrong\nwrong\nwrong\n"), "{said}");
}

/// Catches a rank that tests in a loop and never lets others run.
#[test]
fn a_loop_of_tests_sees_the_message_when_it_comes() {
    let Some(program) = job() else { return };
    let output = weft(&["-m", "exanest", "-n", "2", "--quiet"], &program, "test");
    let (printed, said) = texts(&output);
    assert!(output.status.success(), "{said}");
    // The sender sleeps for 100 us of virtual time.
    let at: f64 = printed.trim().rsplit_once("at ").unwrap().1.trim_end_matches(" us").parse().unwrap();
    assert!((100.0..200.0).contains(&at), "{printed}");
}

/// Catches a rank that sleeps in a loop and never lets others run, nor a limit of virtual time end it.
#[test]
fn who_sleeps_gives_way() {
    let Some(program) = job() else { return };
    let two = ["-m", "exanest", "-n", "2", "--quiet"];
    let output = weft(&two, &program, "sleeps until a file is there");
    let (printed, said) = texts(&output);
    assert!(output.status.success() && printed == "3 ms\n", "{printed}{said}");
    let output = weft(&[&two[..], &["--time-limit", "1s"]].concat(), &program, "sleeps for ever");
    let said = texts(&output).1;
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("weft: limit reached (--time-limit): 1000"), "{said}");
    assert!(said.contains("would go on at 1000"), "{said}");
}

/// Catches a rank that has ended well without MPI, for which the others wait in MPI_Init.
#[test]
fn a_rank_that_never_comes_is_told() {
    let Some(program) = job() else { return };
    // Also where it has run one program and the others run another.
    for first in ["", &format!("{} barrier; ", program.display())] {
        let script = format!("{first}[ $PMI_RANK = 1 ] && exit 0; exec {} barrier", program.display());
        let output =
            crate::support::run(&["-m", "exanest", "-n", "3"], Path::new("/bin/sh"), &["-c", &script]);
        let said = texts(&output).1;
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("rank 1 has ended without MPI_Finalize"), "{said}");
    }
}

/// Catches traces that take the place of a device, a folder, the timeline or a result, and a word of a
/// program that is there.
#[test]
fn what_cannot_be_written_or_started_is_told_before() {
    let Some(program) = job() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let two = ["-m", "exanest", "-n", "2", "--force"];
    let (place, pipe) = (path(""), path("pipe"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (trace, results) = (path("results/t.weft"), path("results"));
    for (options, told) in [
        (vec!["--record", &place], "is not a file that can be written over"),
        (vec!["--record", &pipe], "is not a file that can be written over"),
        (vec!["--record", &trace, "--timeline", &trace], "name two files"),
        (vec!["-o", &results, "--record", &trace], "write the trace elsewhere"),
    ] {
        let output = weft(&[&two[..], &options].concat(), &program, "barrier");
        let said = texts(&output).1;
        assert!(output.status.code() == Some(2) && said.contains(told), "{options:?}: {said}");
    }
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/no/such/shell\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let said = texts(&weft(&two, &script, "")).1;
    assert!(said.contains("the interpreter that it names"), "{said}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing but the pipe and the script");
}

/// Seconds of virtual time that a job takes.
fn virtual_s(options: &[&str], program: &Path, arguments: &[&str]) -> (f64, String) {
    let output = crate::support::run(&[&["-m", "exanest", "--json"], options].concat(), program, arguments);
    let (document, said) = texts(&output);
    assert!(output.status.success(), "{arguments:?}: {document}{said}");
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    (document["virtual_time_us"].as_f64().unwrap() / 1e6, said)
}

/// Catches a rank that waits for nothing where MPICH polls and goes on: what wakes it then is a time-out of
/// the interface, 4 ms later.
#[test]
fn synchronizing_windows_takes_microseconds() {
    let Some(program) = job() else { return };
    let (took, _) = virtual_s(&["-n", "5"], &program, &["neighbours", "4"]);
    assert!(took < 0.001, "4 rounds of post, start, put, complete, wait: {took} s");
}

/// Catches a rank that waits though a request of many is complete that MPICH has looked at before it polled:
/// it stood until a time-out of the interface, or for ever.
#[test]
fn waiting_for_one_of_many_requests_takes_microseconds() {
    let Some(program) = job() else { return };
    for count in ["7", "8", "26", "100"] {
        let (took, said) = virtual_s(&["-n", "2", "--ppn", "1"], &program, &["many requests", count]);
        assert!(took < 0.003 && !said.contains("kind"), "{count} requests: {took} s, {said}");
    }
}

/// Catches a full mailbox of messages that have come before the one that the rank waits for, which then never
/// finds room.
#[test]
fn a_flood_of_small_messages_arrives() {
    let Some(program) = job() else { return };
    let (took, _) = virtual_s(&["-n", "2", "--ppn", "1"], &program, &["flood", "3000"]);
    assert!(took < 0.01, "3000 numbers: {took} s");
}

/// Catches computation that a program's own clock does not see, or that nobody sees.
#[test]
fn what_is_computed_shows_on_the_ranks_clock() {
    let Some(program) = job() else { return };
    let (all, said) = virtual_s(&["-n", "1", "--host", "cpu"], &program, &["computes"]);
    let seen: f64 = said.split("computed for ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    // 50 million additions.
    assert!(seen > 0.005 && all >= seen, "{seen} s of {all}");
}

/// Catches virtual time that runs away while all ranks test in vain, a child of a rank that moves its clock,
/// and an end that comes before what a rank has done last.
#[test]
fn virtual_time_is_what_ranks_have_done() {
    let Some(program) = job() else { return };
    for times in ["40", "150"] {
        let (took, _) = virtual_s(&["-n", "3"], &program, &["in vain", times]);
        assert!(took < 0.001, "{times} tests in vain: {took} s");
    }
    let (took, _) = virtual_s(&["-n", "2"], &program, &["forks"]);
    assert!(took < 0.001, "a child's looks at the clock: {took} s");
    let (took, _) = virtual_s(&["-n", "2"], &program, &["sleeps at the end"]);
    assert!((1.0..1.001).contains(&took), "a second of sleep at the end: {took} s");
}

/// Catches an end that takes the others with it wrongly, a status that is lost, a job that hangs.
#[test]
fn ends_of_ranks_are_the_jobs() {
    let Some(program) = job() else { return };
    for (what, status, words) in [
        ("exit", 7, "rank 1 has ended with exit status 7"),
        ("leave", 1, "rank 1 has ended without MPI_Finalize"),
        ("crash", 128 + 11, "rank 1 has been ended by signal 11"),
        ("abort", 5, "rank 1 called MPI_Abort with status 5"),
    ] {
        let output = weft(&["-m", "exanest", "-n", "3"], &program, what);
        let (printed, said) = texts(&output);
        assert_eq!(output.status.code(), Some(status), "{what}: {printed}{said}");
        assert!(said.contains(words), "{what}: {said}");
        // Who waited, and where: one of the others, as it may be another one's turn.
        let waits = ["0", "2"].map(|rank| said.contains(&format!("\nrank {rank} waits since ")));
        assert!(waits.contains(&true) && said.contains(" in MPI_"), "{what}: {said}");
    }
}

/// Catches data of a rank's second program that is read from, or written into, the memory of its first: by a
/// shell, and in its place.
#[test]
fn a_rank_may_run_one_program_after_the_other() {
    let Some(program) = job() else { return };
    let program = program.display().to_string();
    let both = format!("{program} compare 0 && {program} compare 50");
    let output =
        crate::support::run(&["-m", "exanest", "-n", "3", "--quiet"], Path::new("sh"), &["-c", &both]);
    let (said, wrong) = texts(&output);
    assert!(output.status.success(), "{said}{wrong}");
    assert_eq!(said.matches("compared").count(), 6, "{said}{wrong}");
    let output = weft(&["-m", "exanest", "-n", "3"], Path::new(&program), "replaces itself");
    let (said, wrong) = texts(&output);
    assert!(output.status.success() && said.matches("compared").count() == 6, "{said}{wrong}");
}

/// Catches a rank that goes on after MPI_Abort, so that what comes of it is by chance.
#[test]
fn an_aborting_rank_does_nothing_more() {
    let Some(program) = job() else { return };
    for _ in 0..5 {
        let output = weft(&["-m", "exanest", "-n", "6", "--ppn", "1"], &program, "aborts");
        let (said, wrong) = texts(&output);
        assert_eq!(output.status.code(), Some(6), "{wrong}");
        assert!(said.contains("rank 1, round 5\n") && !said.contains("rank 1, round 6\n"), "{said}{wrong}");
    }
}

/// Catches a run whose order is the system's and that nobody is told of; and a word of it where there is one
/// thread.
#[test]
fn several_threads_in_mpi_are_told_of() {
    let Some(program) = job() else { return };
    for (what, told) in [("threads", true), ("barrier", false)] {
        let (printed, said) = texts(&weft(&["-m", "exanest", "-n", "2"], &program, what));
        assert_eq!(
            said.contains("several threads of this rank call the MPI library"),
            told,
            "{printed}{said}"
        );
    }
}

/// Catches what one thread does to the rank outside of its calls while another is within one: messages came
/// with others' data.
#[test]
fn several_threads_in_mpi_do_not_disturb_each_other() {
    let Some(program) = job() else { return };
    for _ in 0..3 {
        let three = ["-m", "exanest", "-n", "3", "--ppn", "1"];
        let output = weft(&three, &program, "several threads");
        let (printed, said) = texts(&output);
        assert!(output.status.success() && printed == "passed\n".repeat(3), "{printed}{said}");
    }
}

/// Catches ranks that wait for what a link has lost and are told of a deadlock of their own.
#[test]
fn lost_packets_are_not_told_as_a_deadlock() {
    let Some(program) = job() else { return };
    let ideal =
        ["-m", "exanest", "-n", "2", "--set", "nic.model=overheads", "--set", "faults=[{drop=1000000}]"];
    let output = weft(&ideal, &program, "talk");
    let said = texts(&output).1;
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("weft: lost data: 2 packets were lost by chance"), "{said}");
}

/// Catches output that is lost and nobody is told of.
#[test]
fn output_that_cannot_be_written_is_told() {
    let Some(program) = job() else { return };
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
    weft.args(["run", "-m", "exanest", "-n", "2", "--quiet", "--"]).arg(&program).arg("talk");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = weft.stdout(full).stderr(Stdio::piped()).output().unwrap();
    let said = texts(&output).1;
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("what ranks printed cannot be written: "), "{said}");
}

/// Catches a weft that stays for as long as what a rank has left behind prints, or says nothing and holds
/// what it has inherited.
#[test]
fn what_ranks_leave_behind_holds_nobody_up() {
    let Some(_) = job() else { return };
    for left in ["yes", "sleep 50"] {
        let output = crate::support::run(
            &["-m", "exanest", "-n", "2", "--quiet"],
            Path::new("/bin/sh"),
            &["-c", &format!("{left} & echo done")],
        );
        let (printed, said) = texts(&output);
        assert!(printed.contains("done\n"), "{said}");
        assert!(!said.contains("limit"), "{said}");
    }
}

/// Catches a deadlock that hangs, or a report that does not say who waits for what.
#[test]
fn deadlocks_are_told() {
    let Some(program) = job() else { return };
    for (what, words) in [
        ("deadlock", &["in MPI_Send for its send of", "to rank 1, tag 17", "to rank 0, tag 17"][..]),
        ("waits", &["in MPI_Recv for a message from rank 1, tag 3", "a message from rank 0, tag 3"]),
        ("probes", &["in MPI_Probe for a message from rank 1, any tag", "a message from rank 0, any tag"]),
        ("waits for any", &["in MPI_Waitany for a message from rank 1, tag 30", "from rank 0, tag 31"]),
        ("locks", &["in MPI_Recv for a message from rank 1, tag 3", "rank 1 waits since", "in MPI_Win_lock"]),
    ] {
        let output = weft(&["-m", "exanest", "-n", "2"], &program, what);
        let (_, said) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("weft: deadlock: rank 0 waits since "), "{said}");
        for word in words {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
    let output = weft(&["-m", "exanest", "-n", "2", "--watchdog", "500ms"], &program, "spin");
    assert_eq!(output.status.code(), Some(1), "{}", texts(&output).1);
}

/// Catches ranks that outlive a weft that is killed.
#[test]
fn nothing_is_left_behind() {
    let Some(program) = job() else { return };
    let itself = [program.as_os_str().to_owned(), "spin".into()];
    // Rank 1 computes; what started it is gone, and its parent's death tells it nothing.
    let wrapped = ["sh".into(), "-c".into(), "\"$0\" spin; true".into(), program.as_os_str().to_owned()];
    dies_with_weft(&program, &itself);
    dies_with_weft(&program, &wrapped);
}

/// Kills weft while it runs a command whose ranks are processes of `program`: they are gone, and no file is
/// there.
fn dies_with_weft(program: &Path, command: &[std::ffi::OsString]) {
    let folder = tempfile::tempdir().unwrap();
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"))
        .args(["run", "-m", "exanest", "-n", "2", "--"])
        .args(command)
        .env("TMPDIR", folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let ranks = || -> Vec<PathBuf> {
        let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|process| process.path());
        let is_ours = |path: &PathBuf| std::fs::read_link(path.join("exe")).is_ok_and(|exe| exe == program);
        processes.filter(is_ours).collect()
    };
    // Both are in virtual time then: MPI_Init waits for all ranks.
    wait_for_line(&mut weft, "rank 1 spins");
    assert_eq!(ranks().len(), 2);
    // MPICH's shared memory has no name that another job, or a later one, could have too.
    for rank in ranks() {
        let maps = std::fs::read_to_string(rank.join("maps")).unwrap();
        assert!(maps.contains("memfd:") && !maps.contains("/dev/shm/"), "{maps}");
    }
    weft.kill().unwrap();
    weft.wait().unwrap();
    wait_until("the end of all ranks", || ranks().is_empty());
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    // Others use /dev/shm meanwhile: what is ours names us, by itself or by a process. A number within
    // another name, such as `mpich_shm_8468ad_0`, is no process.
    let in_memory = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let names: Vec<String> =
        in_memory.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let process = weft.id().to_string();
    let is_ours = |name: &String| {
        name.contains("weft") || name.split(|part: char| !part.is_alphanumeric()).any(|part| part == process)
    };
    assert!(!names.iter().any(is_ours), "{names:?}");
}

/// Catches ranks that each run alone because what started them closed what they inherit; and a program over
/// weft.h that does not run then, although it needs nothing of it.
#[test]
fn a_wrapper_that_closes_descriptors_runs_or_is_told_of() {
    let closes = |program: &Path, arguments: &[&str], libraries: Option<&Path>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        command.envs(libraries.map(|folder| ("WEFT_LIBRARIES", folder)));
        command.args([
            "run",
            "--quiet",
            "-m",
            "exanest",
            "-n",
            "2",
            "--ppn",
            "1",
            "--wall-limit",
            "60s",
            "--",
        ]);
        command.args(["sh", "-c", "exec \"$0\" \"$@\" 3<&-"]).arg(program).args(arguments);
        command.stdin(Stdio::null()).output().unwrap()
    };
    let output = closes(&interfaces("closed_interface"), &[], None);
    assert!(output.status.success(), "{:?}", texts(&output));
    let Some(program) = job() else { return };
    let output = closes(&program, &["talk"], None);
    assert!(output.status.success(), "{:?}", texts(&output));
    // Without the library by which a rank finds its process manager again.
    let folder = tempfile::tempdir().unwrap();
    let deps = Path::new(env!("CARGO_BIN_EXE_weft")).parent().unwrap().join("deps");
    for library in [deps.join("libweft_client.so"), root().join("build/libfabric/libweft-fi.so")] {
        std::os::unix::fs::symlink(&library, folder.path().join(library.file_name().unwrap())).unwrap();
    }
    let output = closes(&program, &["talk"], Some(folder.path()));
    assert!(!output.status.success());
    assert!(texts(&output).1.contains("close_fds=False keeps them"), "{:?}", texts(&output));
}

/// Catches a wrapper that closes all that it inherits and takes its number for something else: what the
/// program inherits as descriptor 3 is not its process manager.
#[test]
fn an_mpi_program_behind_pythons_subprocess_runs() {
    let Some(program) = job() else { return };
    let script = "import subprocess, sys; log = open('/dev/null'); \
                  sys.exit(subprocess.call(sys.argv[1:], pass_fds=[log.fileno()]))";
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.args(["run", "--quiet", "-m", "exanest", "-n", "3", "--wall-limit", "60s", "--"]);
    command.arg(root().join("build/venv/bin/python")).args(["-c", script]).arg(&program).arg("talk");
    let output = command.stdin(Stdio::null()).output().unwrap();
    let (printed, said) = texts(&output);
    assert!(output.status.success(), "{said}");
    assert_eq!(printed.lines().filter(|line| line.contains("of 3: sum 6 at")).count(), 3, "{printed}{said}");
}

/// Catches an example that no longer runs as it is written, and blocks that come from another rank.
#[test]
fn the_all_to_all_example_checks_what_it_receives() {
    let Some(_) = job() else { return };
    let python = root().join("build/venv/bin/python");
    let imports = Command::new(&python).args(["-c", "import mpi4py"]).status();
    if !imports.is_ok_and(|status| status.success()) {
        return crate::skipped::skip("no mpi4py in build/venv; `make test` installs it");
    }
    let example = root().join("examples/alltoall.py");
    // Two algorithms of MPICH: all blocks at once, and pair by pair.
    let arguments = [example.to_str().unwrap(), "64", "40000"];
    let output = crate::support::run(&["-m", "ib-ndr-fattree", "-n", "5", "--quiet"], &python, &arguments);
    let (printed, said) = texts(&output);
    assert!(output.status.success(), "{printed}{said}");
    let rows: Vec<Vec<&str>> =
        printed.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
    let [small, large] = rows.as_slice() else { panic!("two sizes: {printed}") };
    assert_eq!((small[0], small[2], large[0], large[2]), ("64", "right", "40000", "right"));
    // Four blocks of 40,000 B take 3.2 us on a link of 400 Gb/s.
    let [small, large] = [small, large].map(|row| row[1].parse::<f64>().unwrap());
    assert!(small > 1.0 && large > small.max(3.2), "{printed}");
}

/// Catches a limit of the system that is told as something else, or after ranks have been started.
#[test]
fn limits_of_the_system_are_told_before_the_start() {
    let program = interfaces("limited");
    let limited = |limit: &str| {
        let mut command = Command::new("sh");
        let script = format!("ulimit {limit}; exec \"$0\" run -m exanest -n 200 -- \"$1\"");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_weft")]).arg(&program);
        command.stdin(Stdio::null()).output().unwrap()
    };
    for (limit, words) in
        [("-n 60", "ulimit -n"), ("-v 300000", "free some memory"), ("-f 100", "file too large")]
    {
        let output = limited(limit);
        let (_, said) = texts(&output);
        assert_eq!(output.status.code(), Some(2), "{limit}: {said}");
        assert!(said.contains(words), "{limit}: {said}");
    }
}

/// An example, built by the line that stands in its own comment, with the libraries beside this command.
fn built_as_it_says(example: &str, name: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let text = std::fs::read_to_string(root().join(example)).unwrap();
    let comment = text.split("*/").next().unwrap().replace("\\\n *", "");
    let line =
        comment.lines().find_map(|line| line.trim_start_matches([' ', '*']).strip_prefix("cc ")).unwrap();
    let folder = Path::new(env!("CARGO_BIN_EXE_weft")).parent().unwrap().to_str().unwrap();
    let line = line.replace("$PWD/", "").replace("target/quick", folder);
    let mut words: Vec<&str> = line.split_whitespace().collect();
    *words.last_mut().unwrap() = program.to_str().unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror"]).args(words).current_dir(root());
    assert!(compiler.status().unwrap().success(), "{line}");
    program
}

/// The example over weft.h; and the provider, which the command looks for.
pub fn interfaces(name: &str) -> PathBuf {
    let program = built_as_it_says("examples/interface_ping_pong.c", name);
    let provider = root().join("build/libfabric/libweft-fi.so");
    let made = Command::new("make").arg("-sC").arg(root().join("libfabric")).arg(provider).status();
    assert!(made.unwrap().success());
    program
}

/// Catches a program over weft.h that is not MPI's and does not run, times that are not those of the
/// hardware, and two jobs that get in each other's way.
#[test]
fn an_interface_program_runs_without_mpi_and_beside_another() {
    let program = interfaces("interface_ping_pong");
    let start = |sets: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        command.args(["run", "--quiet", "-m", "exanest", "-n", "2", "--ppn", "1", "--wall-limit", "60s"]);
        command
            .args(sets)
            .arg("--")
            .arg(&program)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let hardware = ["--set", "nic.segmentation.agent=hardware"];
    let jobs = [start(&[]), start(&[]), start(&["--set", "nic.model=overheads"]), start(&hardware)];
    let said: Vec<String> = jobs
        .into_iter()
        .map(|job| {
            let output = job.wait_with_output().unwrap();
            assert!(output.status.success(), "{:?}", texts(&output));
            texts(&output).0
        })
        .collect();
    assert_eq!(said[0], said[1]);
    assert_ne!(said[0], said[2]);
    let one_way = said[0].lines().next().unwrap().strip_prefix("small message of 8 bytes: ").unwrap();
    let one_way: f64 = one_way.split(' ').next().unwrap().parse().unwrap();
    // TR-488 §6.1.1: 470 ns between neighbours, user program to user program; a poll more or less.
    assert!((420.0..570.0).contains(&one_way), "{}", said[0]);
    // §4.5.2: 2 us of firmware are 10 ns of logic, whose transfers take well below 1 us.
    let write = |said: &str| -> f64 {
        let time = said.lines().nth(1).unwrap().strip_prefix("RDMA write of 64 bytes: ").unwrap();
        time.split(' ').next().unwrap().parse().unwrap()
    };
    assert!((write(&said[0]) - write(&said[3]) - 1.99).abs() < 0.02, "{} {}", said[0], said[3]);
    assert!((0.5..0.7).contains(&write(&said[3])), "{}", said[3]);
    assert_eq!(said[0].lines().count(), 5, "{}", said[0]);
}

/// A program over Portals, built under this name with the libraries beside the command.
fn portals(name: &str) -> PathBuf {
    crate::support::provider();
    built_as_it_says("examples/portals_ping_pong.c", name)
}

/// Catches a Portals program that does not run, whose times differ from run to run, and links that lose
/// packets without a repair.
#[test]
fn a_portals_program_runs_over_links_that_lose_packets() {
    let program = portals("portals_over_lossy_links");
    let said = |sets: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        command.args(["run", "--quiet", "-m", "bxi3-fattree", "--set", "nic.model=portals", "-n", "2"]);
        let output = command.args(sets).arg("--").arg(&program).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{:?}", texts(&output));
        texts(&output).0
    };
    let plain = said(&[]);
    assert_eq!(plain, said(&[]));
    let lossy = said(&["--set", "faults=[{drop=2000, corrupt=2000}]"]);
    assert_ne!(plain, lossy);
    assert_eq!((plain.lines().count(), lossy.lines().count()), (8, 8), "{plain}");
}

/// Catches a put that its initiator has seen sent and that never comes, since it waits for an answer of a
/// process that makes no more calls: where messages of a header's size are announced first.
#[test]
fn a_portals_program_ends_where_small_messages_are_announced() {
    let program = portals("portals_announced");
    for machine in ["exanest", "carvnet-spineleaf"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        command.args(["run", "--quiet", "-m", machine, "-n", "2", "--"]).arg(&program);
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{machine}: {:?}", texts(&output));
        assert!(texts(&output).0.contains("a triggered put has started"), "{machine}");
    }
}

/// Catches Portals that know of one rail, data that is taken for whole with its first part, and times that
/// differ from run to run.
#[test]
fn a_portals_program_goes_by_all_rails() {
    let program = portals("portals_over_rails");
    let said = |rails: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        command.args(["run", "--quiet", "-m", "bxi2-fattree", "-n", "2", "--ppn", "1"]);
        command.args(["--set=host.endpoints_per_host=2", &format!("--set=messaging.rails={rails}"), "--"]);
        let output = command.arg(&program).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{rails}: {:?}", texts(&output));
        texts(&output).0
    };
    let one_way = |said: &str, bytes: u32| -> f64 {
        let put = format!("put of {bytes} bytes: ");
        let line = said.lines().find_map(|line| line.strip_prefix(&put)).unwrap();
        line.split(' ').next().unwrap().parse().unwrap()
    };
    let [one, striped, in_turn] = ["none", "striping", "multiplexing"].map(|rails| {
        let first = said(rails);
        assert_eq!((said(rails), first.lines().count()), (first.clone(), 8), "{rails}: {first}");
        first
    });
    assert!(one_way(&striped, 262_144) < 0.65 * one_way(&one, 262_144), "{striped}{one}");
    assert!(one_way(&striped, 8) < 1.01 * one_way(&one, 8), "{striped}{one}");
    // One message at a time gains nothing.
    assert_eq!(in_turn, one);
}

/// Catches a domain that a program gets although its job has not been given it, one that it does not get, and
/// virtual times that depend on it.
#[test]
fn a_job_has_the_domains_that_it_is_given() {
    let program = interfaces("interface_in_a_domain");
    let run = |options: &[&str], domain: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        command.args(["run", "--quiet", "-m", "exanest", "-n", "2", "--ppn", "1", "--wall-limit", "60s"]);
        command.args(options).arg("--").arg(&program).args(domain).stdin(Stdio::null());
        command.output().unwrap()
    };
    let alone = run(&[], &[]);
    assert!(alone.status.success(), "{:?}", texts(&alone));
    for (options, domain) in [(&[][..], "1"), (&["--pdid", "7,65535"], "65535"), (&["--pdid", "0"], "0")] {
        let output = run(options, &[domain]);
        assert!(output.status.success(), "{domain}: {:?}", texts(&output));
        assert_eq!(texts(&output).0, texts(&alone).0, "{domain}");
    }
    for (options, domain, words) in [
        (&[][..], "7", "Operation not permitted"),
        (&["--pdid", "7,8"], "1", "Operation not permitted"),
        (&["--pdid", "7"], "65536", "Invalid argument"),
        (&["--pdid", "7,65536"], "7", "65536 is not in 0..=65535"),
    ] {
        let output = run(options, &[domain]);
        let said = texts(&output).1;
        assert!(!output.status.success() && said.contains(words), "{domain}: {said}");
    }
}

/// Catches a mend that is not told before anything is started.
#[test]
fn what_cannot_run_is_refused() {
    let refused = |options: &[&str], program: &str, words: &str| {
        let output = weft(options, Path::new(program), "x");
        let (_, said) = texts(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
    };
    refused(&["-m", "exanest", "-n", "2"], "./no-such-program", "was not found");
    refused(&["-m", "exanest", "-n", "60000"], "/bin/true", "do not fit on");
    refused(&["-m", "exanest", "-n", "2", "--host", "gpu"], "/bin/true", "is not a host model");
    refused(&["-m", "exanest", "-n", "2", "--set", "host.poll=0ns"], "/bin/true", "add `poll`");
    refused(&["-m", "exanest", "-n", "2"], "/etc/passwd", "not executable");
    interfaces("unused");
    refused(&["-m", "exanest", "-n", "2"], "/bin/true", "neither MPICH nor weft.h");
}
