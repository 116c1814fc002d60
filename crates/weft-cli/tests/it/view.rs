//! `weft view`: who gets an answer, and which.

use crate::common::{json, refused, weft};
use crate::waiting::wait_until;
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A server that ends with the test.
pub struct View {
    child: Child,
    port: u16,
    token: String,
}

/// An answer.
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl View {
    pub fn of(words: &[&str]) -> View {
        let mut child = Command::new(env!("CARGO_BIN_EXE_weft"))
            .arg("view")
            .args(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        View::at(child, &address)
    }

    /// The server of a command, at its address.
    fn at(child: Child, address: &str) -> View {
        let rest = address.trim().strip_prefix("http://127.0.0.1:").unwrap();
        let (port, token) = rest.split_once('/').unwrap();
        View { child, port: port.parse().unwrap(), token: token.trim_end_matches('/').to_owned() }
    }

    /// Asks below the token.
    fn get(&self, path: &str) -> Answer {
        self.ask("GET", &format!("/{}/{path}", self.token), &format!("127.0.0.1:{}", self.port))
    }

    /// The document at an address below the token.
    pub fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
        serde_json::from_slice(&answer.body).unwrap()
    }

    /// The text at an address below the token.
    pub fn text(&self, path: &str) -> String {
        let answer = self.get(path);
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.status, 200, "{path}: {text}");
        text
    }

    fn numbers(&self, path: &str) -> Vec<f32> {
        let answer = self.get(path);
        assert!(answer.head.contains("application/octet-stream"), "{path}: {}", answer.head);
        answer.body.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect()
    }

    fn ask(&self, method: &str, path: &str, host: &str) -> Answer {
        self.send(format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).unwrap()
    }

    /// Sends bytes, as far as the server takes them, and reads the answer.
    fn send(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        let _ = stream.write_all(bytes);
        let mut all = Vec::new();
        // A server that has answered may break off what it does not want to read.
        let _ = stream.read_to_end(&mut all);
        let end = all.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(all[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head, body: all[end + 4..].to_vec() }
    }
}

/// Requests that are meant to end a server, or to fill its memory, with the statuses of their answers:
/// without the token, and with it.
fn hostile(port: u16, token: &str) -> Vec<(String, u16)> {
    let mut all = Vec::new();
    let lengths = ["99999999999", "9223372036854775807", "18446744073709551615", "1e99", "-1", "", "1024"];
    let lengths = lengths.map(|length| format!("Content-Length: {length}"));
    let chunked = "Transfer-Encoding: chunked\r\nContent-Length: 99999999999".to_owned();
    let waits = "Expect: 100-continue\r\nContent-Length: 99999999999".to_owned();
    let upgrade = "Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 99999999999".to_owned();
    for (method, with_token) in [("GET", 413), ("POST", 405), ("HEAD", 413)] {
        for header in lengths.iter().chain([&chunked, &waits, &upgrade]) {
            for (path, status) in [("/", 403), (&*format!("/{token}/api/results"), with_token)] {
                let head = format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{header}\r\n\r\n");
                all.push((head + "FFFFFFFFFFFFFFFF\r\nbody", status));
            }
        }
    }
    let head = format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n");
    all.push((format!("{head}X: {}\r\n\r\n", "y".repeat(1 << 20)), 431));
    all.push((format!("{head}{}\r\n", "X: y\r\n".repeat(1000)), 431));
    all.push((format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(1 << 20)), 431));
    all.push((format!("{head}no colon\r\n\r\n"), 400));
    all.push(("\0\u{1}\u{2}\r\n\r\n".to_owned(), 400));
    all
}

/// A figure of a process in KB, or a count, from /proc.
fn status_of(process: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').split_whitespace().next().unwrap().parse().unwrap()
}

/// Sends what is meant to end the server, with idle connections beside it, and checks that it costs little.
fn attack(view: &View) {
    let process = view.child.id();
    // A thread may reserve address space for an arena of its own; what it uses is little.
    let figures = || ["VmPeak", "VmHWM", "Threads"].map(|name| status_of(process, name));
    let before = figures();
    let idle: Vec<TcpStream> = (0..300).map(|_| view.connect()).collect();
    let mut slow: Vec<TcpStream> = (0..20).map(|_| view.connect()).collect();
    for (request, status) in hostile(view.port, &view.token) {
        for stream in &mut slow {
            let _ = stream.write_all(b"GET /");
        }
        let answer = view.send(request.as_bytes());
        let shown = &request[..request.len().min(200)];
        assert_eq!(answer.status, status, "{shown}: {}", String::from_utf8_lossy(&answer.body));
    }
    let open = fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
    let after = figures();
    for (most, (before, after)) in [1 << 20, 32 << 10, 4].into_iter().zip(before.into_iter().zip(after)) {
        assert!(after <= before + most, "{before}, then {after}, and {most} more at most");
    }
    assert!(open < 200, "{open} descriptors");
    assert_eq!(view.get("api/live").status, 200);
    drop(idle);
}

impl Drop for View {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A small result with telemetry, whose folder has a name.
fn result(at: &Path) -> String {
    let path = at.to_str().unwrap().to_owned();
    let words = "traffic -m bxi3-fattree --set topology.k=4 --set topology.n=2 --set nic.model=overheads \
                 --pattern uniform --load 0.2:0.6:0.4 --time 10us --telemetry 1us \
                 --tables messages,flows,links --quiet -o";
    let output = weft(&words.split_whitespace().chain([path.as_str()]).collect::<Vec<_>>());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    path
}

/// Catches an answer to somebody who has not the address, or who came by another name; and an answer that a
/// browser might run or take elsewhere.
#[test]
fn only_who_has_the_address_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let view = View::of(&[&result(&folder.path().join("out"))]);
    let host = format!("127.0.0.1:{}", view.port);
    let right = format!("/{}/api/results", view.token);
    let mut wrong = view.token.clone();
    wrong.replace_range(31.., if wrong.ends_with('0') { "1" } else { "0" });
    for path in ["/", "/api/results", "//api/results", "/favicon.ico", &format!("/{wrong}/api/results")] {
        let answer = view.ask("GET", path, &host);
        let body = String::from_utf8(answer.body).unwrap();
        assert!(
            answer.status == 403 && !body.contains("bxi3") && !body.contains(&view.token),
            "{path}: {body}"
        );
    }
    assert_eq!(view.ask("GET", &right, "weft.example:80").status, 403);
    assert_eq!(view.ask("POST", &right, &host).status, 405);
    assert_eq!(view.ask("GET", &format!("/{}", view.token), &host).status, 307);
    for path in ["", "api/results", "api/nothing", "../../etc/passwd"] {
        let answer = view.get(path);
        for rule in ["default-src 'none'", "script-src 'self'", "X-Content-Type-Options: nosniff"] {
            assert!(answer.head.contains(rule), "{path}: {}", answer.head);
        }
        assert!(!answer.head.contains("unsafe"), "{}", answer.head);
        assert!(!answer.head.to_lowercase().contains("access-control"), "{}", answer.head);
    }
    assert_eq!(view.get("api/nothing").status, 404);
    assert_eq!(view.get("../../etc/passwd").status, 404);
    // Nobody else on the network reaches it.
    let listening = fs::read_to_string("/proc/net/tcp").unwrap();
    let any = format!("00000000:{:04X}", view.port);
    assert!(!listening.contains(&any), "listens everywhere");
}

/// Catches a request of a stranger that ends the server, or takes memory, threads or descriptors of it
/// without a bound.
#[test]
fn a_hostile_request_costs_little() {
    let folder = tempfile::tempdir().unwrap();
    let view = View::of(&[&result(&folder.path().join("out"))]);
    view.json("api/results");
    attack(&view);
    view.json("api/results");
}

/// Catches a head that is waited for without an end, however slowly it comes.
#[test]
fn a_slow_request_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let view = View::of(&[&result(&folder.path().join("out"))]);
    let (mut silent, mut slow) = (view.connect(), view.connect());
    let mut slow_too = slow.try_clone().unwrap();
    let writer = std::thread::spawn(move || {
        while slow_too.write_all(b"G").is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    });
    let (mut nothing, mut told) = (Vec::new(), Vec::new());
    silent.read_to_end(&mut nothing).unwrap();
    let _ = slow.read_to_end(&mut told);
    writer.join().unwrap();
    assert!(nothing.is_empty() && told.starts_with(b"HTTP/1.1 408 "), "{}", String::from_utf8_lossy(&told));
    view.json("api/results");
}

/// Catches figures that are not those of the tables, of another run or another interval.
#[test]
fn figures_are_those_of_the_tables() {
    let folder = tempfile::tempdir().unwrap();
    let out = result(&folder.path().join("out"));
    let view = View::of(&[&out]);
    let results = view.json("api/results");
    assert_eq!(results[0]["machine"], "bxi3-fattree");
    assert_eq!(results[0]["runs"].as_array().unwrap().len(), 2);
    let machine = view.json("api/machine");
    assert_eq!(machine["endpoint_x"].as_array().unwrap().len(), 16);
    assert_eq!(machine["switch_x"].as_array().unwrap().len(), 8);
    // 16 links that leave endpoints, 4 leaves of 8 ports, 4 roots of 4 ports.
    for run in [0, 1] {
        let totals = view.numbers(&format!("api/totals?run={run}&quantity=utilization"));
        assert_eq!(totals.len(), 16 + 32 + 16);
        for number in [0, 15, 16, 20, 47] {
            let row = &view.json(&format!("api/link?run={run}&number={number}"))["row"];
            let utilization = row["utilization"].as_f64().unwrap();
            assert_eq!(row["run"], run);
            assert_eq!(totals[number], utilization as f32, "link {number}");
            assert!(utilization > 0.0);
            let from = if number < 16 { &row["from_endpoint"] } else { &row["from_port"] };
            assert_eq!(*from, if number < 16 { number } else { (number - 16) % 8 });
        }
    }
    // The sum over intervals is the busy time of all of the run, warm-up included.
    let frames = view.json("api/frames?run=1&quantity=utilization");
    let count = frames["count"].as_u64().unwrap();
    assert!(count > 10 && frames["interval_ps"] == 1_000_000, "{frames}");
    let sum = |link: usize| -> f32 {
        (0..count)
            .map(|at| view.numbers(&format!("api/frame?run=1&quantity=utilization&interval={at}"))[link])
            .sum()
    };
    let history = view.json("api/history?run=1&quantity=utilization&links=3,17");
    for (row, link) in [3, 17].into_iter().enumerate() {
        let values = history["links"][row].as_array().unwrap();
        let told: f64 = values.iter().map(|value| value.as_f64().unwrap()).sum();
        assert!((told - f64::from(sum(link))).abs() < 1e-3 && told > 0.0, "link {link}: {told}");
    }
    let held = view.numbers("api/totals?run=1&quantity=occupancy");
    assert!(held.iter().any(|value| *value > 0.0));
    let path = view.json("api/path?from=0&to=15");
    assert_eq!(path["links"].as_array().unwrap().len(), 4);
    assert_eq!(path["links"][0], 0);
    let endpoint = view.json("api/endpoint?run=1&number=3");
    assert_eq!(endpoint["leaving"], view.json("api/link?run=1&number=3")["row"]);
    assert_eq!(view.json("api/switch?number=2")["leaving"].as_array().unwrap().len(), 8);
    let all = view.json("api/messages?run=1&limit=3");
    assert_eq!(all["slowest"].as_array().unwrap().len(), 3);
    let timeline = view.json("api/timeline?run=1");
    assert_eq!(timeline["messages"], all["count"]);
    let some = view.json("api/messages?run=1&from=3");
    assert!(some["count"].as_u64() < all["count"].as_u64());
    assert!(some["slowest"][0]["source_endpoint"] == 3);
    // The picture is that of weft plot.
    let svg = folder.path().join("p.svg");
    let drawn = json(&["plot", &out, "--what", "rates", "--run", "1", "-o", svg.to_str().unwrap(), "--json"]);
    assert_eq!(view.json("api/picture?kind=rates&results=0&run=1"), drawn["picture"]);
}

/// Catches a server that falls over bad questions, is silent about what a result lacks, or says that all is
/// well of a file that it cannot read.
#[test]
fn bad_questions_are_answered_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let view = View::of(&[&result(&out)]);
    let expect = |path: &str, status: u16, key: &str, why: &str| {
        let answer = view.get(path);
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        let text = body[key].as_str().unwrap_or_else(|| panic!("{path}: {body}"));
        assert!(answer.status == status && text.contains(why), "{path}: {} {text}", answer.status);
    };
    for (path, why) in [
        ("api/machine?result=7", "there is no result 7"),
        ("api/totals?quantity=beauty", "there is no quantity `beauty`"),
        ("api/totals", "quantity is missing"),
        ("api/frame?quantity=utilization&interval=x", "interval=x"),
        ("api/path?from=0&to=99", "99"),
        ("api/path?from=0&to=0", "choose two"),
        ("api/picture?kind=art", "there is no picture `art`"),
    ] {
        expect(path, 400, "error", why);
    }
    expect("api/pieces?source=0&sequence=0", 200, "absent", "--breakdown");
    expect("api/frames?quantity=errors", 200, "absent", "telemetry has no errors");
    expect("api/frames?quantity=utilization&run=9", 200, "absent", "saw nothing");
    // Numbers of links that nothing has, and intervals after the end.
    assert_eq!(view.json("api/link?number=4000000000")["row"], Value::Null);
    assert!(view.numbers("api/frame?quantity=utilization&interval=99999").iter().all(|value| *value == 0.0));
    assert_eq!(view.get("").status, 200);
    fs::write(out.join("links.parquet"), "nothing of the kind").unwrap();
    expect("api/link?number=0", 500, "error", "links.parquet is damaged");
}

/// Catches a name of a result that leaves JSON or becomes markup of the page.
#[test]
fn hostile_names_stay_text() {
    let folder = tempfile::tempdir().unwrap();
    let name = "<img src=x onerror=alert(1)>\"'&";
    let view = View::of(&[&result(&folder.path().join(name))]);
    let answer = view.get("api/results");
    assert!(answer.head.contains("Content-Type: application/json"), "{}", answer.head);
    let results: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(results[0]["name"], name);
    let page = String::from_utf8(view.get("").body).unwrap();
    assert!(!page.contains("onerror"));
}

/// Catches a directory that is shown although it is no result, and a port that is taken from another.
#[test]
fn what_cannot_be_shown_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = result(&folder.path().join("out"));
    let at = |name: &str| folder.path().join(name);
    assert!(refused(&["view", at("none").to_str().unwrap()]).contains("none is not there"));
    let old = at("old");
    fs::create_dir(&old).unwrap();
    let manifest = fs::read_to_string(Path::new(&out).join("run.json")).unwrap();
    let version = manifest.find("\"format_version\"").map(|at| at + 18).unwrap();
    let changed = format!("{}9{}", &manifest[..version], &manifest[version..]);
    fs::write(old.join("run.json"), changed).unwrap();
    let said = refused(&["view", old.to_str().unwrap()]);
    assert!(said.contains("format version 9"), "{said}");
    let writing = at("writing");
    fs::create_dir_all(writing.join(".weft")).unwrap();
    assert!(refused(&["view", writing.to_str().unwrap()]).contains("killed before its end"));
    let locked = fs::File::open(&writing).unwrap();
    locked.lock().unwrap();
    assert!(refused(&["view", writing.to_str().unwrap()]).contains("still being written"));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = refused(&["view", &out, "--port", &port]);
    assert!(said.contains(&format!("port {port}")) && said.contains("busy"), "{said}");
    let said = refused(&["view", &out, "--timeline", at("t.json").to_str().unwrap()]);
    assert!(said.contains("--timeline") && said.contains("is no file"), "{said}");
    let program = env!("CARGO_BIN_EXE_weft");
    assert!(refused(&["view", &out, "--timeline", program]).contains("is no timeline, which is JSON"));
}

/// Catches energy of another link or unit, sleep that is no share of the time, and both on offer where
/// nothing is known of power.
#[test]
fn links_show_their_energy_and_sleep() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, asleep) = (folder.path().join("plain"), folder.path().join("asleep"));
    let traffic = "traffic -m bxi3-fattree --set topology.k=4 --pattern uniform --load 0.02 --size 1K \
                   --time 20us --quiet";
    let power = "--set links.default.power.active=2W --set links.default.power.policy=idle-timeout --set \
                 links.default.power.low=200mW --set links.default.power.idle_after=100ns --set \
                 links.default.power.wake=300ns";
    for (sets, out) in [("", &plain), (power, &asleep)] {
        let mut words: Vec<&str> = traffic.split_whitespace().chain(sets.split_whitespace()).collect();
        words.extend(["-o", out.to_str().unwrap()]);
        assert!(weft(&words).status.success());
    }
    let view = View::of(&[plain.to_str().unwrap(), asleep.to_str().unwrap()]);
    let results = view.json("api/results");
    let offers = |result: usize, name: &str| {
        let quantities = results[result]["quantities"].as_array().unwrap();
        quantities.iter().find(|quantity| quantity["name"] == name).unwrap()["whole"].clone()
    };
    for quantity in ["energy", "sleep"] {
        assert_eq!((offers(0, quantity), offers(1, quantity)), (false.into(), true.into()), "{quantity}");
    }
    let energies = view.numbers("api/totals?result=1&quantity=energy");
    let shares = view.numbers("api/totals?result=1&quantity=sleep");
    for number in [0, 3, 20, 47] {
        let row = &view.json(&format!("api/link?result=1&number={number}"))["row"];
        let column = |name: &str| row[name].as_f64().unwrap();
        assert!((f64::from(energies[number]) / (column("energy_pj") / 1e6) - 1.0).abs() < 1e-6, "{row}");
        let share = column("low_power_ps") / 20e6;
        assert!((f64::from(shares[number]) - share).abs() < 1e-4 && share > 0.1, "{row}");
    }
}

/// Catches a page that is not there while a run goes on, or for somebody without the address; one that stays
/// where nobody is at a terminal; and a result that is another because it was looked at.
#[test]
fn a_run_is_shown_as_it_goes() {
    let Some(program) = crate::support::job() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (go, out, plain) = (folder.path().join("go"), folder.path().join("out"), folder.path().join("plain"));
    let script = format!("until [ -e {} ]; do sleep 0.02; done; exec \"$0\" talk", go.display());
    let ranks = ["-n", "3", "--", "/bin/sh", "-c", &script, program.to_str().unwrap()];
    let run = ["run", "-m", "exanest", "--quiet", "-o"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_weft"))
        .args(run)
        .arg(&out)
        .arg("--view")
        .args(ranks)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
    let mut view = View::at(child, said.strip_prefix("weft: ").unwrap());
    wait_until("the run's begin", || view.json("api/live")["begun"] == true);
    assert_eq!(view.json("api/live"), serde_json::json!({ "live": true, "begun": true, "generation": 0 }));
    let result = view.json("api/results")[0].take();
    assert_eq!((&result["command"], &result["ended"]), (&"run".into(), &"goes on".into()));
    assert_eq!(view.json("api/machine")["name"], "exanest");
    let host = format!("127.0.0.1:{}", view.port);
    assert_eq!(view.ask("GET", "/api/live", &host).status, 403);
    attack(&view);
    fs::write(&go, "").unwrap();
    assert!(view.child.wait().unwrap().success());
    let words = [&run[..], &[plain.to_str().unwrap(), "--telemetry", "10us"], &ranks].concat();
    assert!(weft(&words).status.success());
    let digest = |out: &Path| weft_results::digest(out).unwrap();
    assert_eq!(digest(&out), digest(&plain));
    assert!(!out.join(".weft").exists());
    assert!(refused(&["run", "-m", "exanest", "-n", "1", "--view", "--", "true"]).contains("--output"));
}
