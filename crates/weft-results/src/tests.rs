//! A result directory as a whole: the same bytes however it was saved, and never half of it.

use super::*;
use crate::digest::file_sha;
use crate::snapshot::{read_snapshot, write_snapshot};
use parquet::file::metadata::ParquetMetaDataReader;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use weft_units::{BitRate, Bytes, EndpointId, PacketCounts, PortId, RankId, Span, SwitchId, Time};

/// A request as one who runs experiments may have it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Request {
    command: String,
    pattern: String,
    seeds: Vec<u64>,
}

type Manifest = RunManifest<Request, serde_json::Value>;

fn request() -> Request {
    Request { command: "traffic".to_owned(), pattern: "uniform".to_owned(), seeds: vec![1] }
}

fn stored() -> StoredRequest<Request> {
    StoredRequest { request: request(), trace_paths: vec!["/traces/a.weft".into()] }
}

fn manifest(ended: Ending) -> Manifest {
    RunManifest::new(request(), serde_json::json!({"b": 1, "a": 2}), ended, Totals::default())
}

fn message(n: u64) -> MessageRow {
    MessageRow {
        run: 0,
        delivered_ps: Time::from_ps(n / 3),
        source_endpoint: EndpointId((n % 3) as u32),
        destination_endpoint: EndpointId(1),
        sequence: n,
        source_rank: n.is_multiple_of(2).then_some(RankId(n as u32)),
        destination_rank: None,
        tag: None,
        class: "pattern".to_owned(),
        group: None,
        payload_bytes: Bytes::new(n * 17 % 4096),
        posted_ps: Time::from_ps(n / 4),
        hops: 3,
    }
}

fn flow(source: u32, destination: Option<EndpointId>) -> FlowRow {
    FlowRow {
        run: 0,
        source_endpoint: EndpointId(source),
        destination_endpoint: destination,
        group: None,
        messages: 1,
        payload_bytes: Bytes::new(9),
        first_start_ps: Time::ZERO,
        last_completion_ps: Time::from_ps(5),
        completion_mean_ps: Span::from_ps(5),
        completion_p99_ps: Span::from_ps(5),
        completion_max_ps: Span::from_ps(5),
    }
}

pub(crate) fn link(from: Option<u32>, switch: Option<u32>, port: Option<u32>) -> LinkRow {
    LinkRow {
        run: 0,
        from_endpoint: from.map(EndpointId),
        from_switch: switch.map(SwitchId),
        from_port: port.map(PortId),
        to_endpoint: None,
        to_switch: Some(SwitchId(0)),
        to_port: Some(PortId(0)),
        class: "x".to_owned(),
        rate_bits_per_second: BitRate::from_gigabits(16),
        packets: 0,
        packet_bytes: Bytes::ZERO,
        busy_ps: Span::ZERO,
        utilization: 0.25,
        stall_ps: Span::ZERO,
        paused_ps: Span::ZERO,
        pause_frames: 0,
        most_held_bytes: Bytes::ZERO,
        counts: PacketCounts::default(),
        energy_pj: None,
        low_power_ps: None,
        power_off_ps: None,
        waking_ps: None,
        wake_ups: None,
    }
}

/// Writes epochs, each with its number of messages, leaving and resuming the run after the epochs in `saves`.
/// After each snapshot the interrupted run goes on a little, as real ones do.
fn write(directory: &Path, epochs: &[u64], saves: &[usize]) {
    let mut results = ResultsWriter::create(directory, &Table::ALL, &stored(), Existing::Refuse).unwrap();
    let mut n = 0;
    for (index, &count) in epochs.iter().enumerate() {
        for _ in 0..count {
            results.push(message(n)).unwrap();
            n += 1;
        }
        results.epoch().unwrap();
        if saves.contains(&index) {
            results.save(&n.to_le_bytes()).unwrap();
            for later in n..n + 70_000 {
                results.push(message(later)).unwrap();
            }
            results.epoch().unwrap();
            drop(results);
            let (resumed, state) = ResultsWriter::resume(directory).unwrap();
            results = resumed;
            n = u64::from_le_bytes(state.try_into().unwrap());
        }
    }
    results.push(flow(0, None)).unwrap();
    results.push(flow(0, Some(EndpointId(0)))).unwrap();
    results.push(link(Some(3), None, None)).unwrap();
    results.push(link(None, Some(0), Some(1))).unwrap();
    results.finish(manifest(Ending::Finished), Performance::default()).unwrap();
}

fn groups(directory: &Path, table: Table) -> Vec<i64> {
    let file = File::open(directory.join(table.file())).unwrap();
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&file).unwrap();
    metadata.row_groups().iter().map(|group| group.num_rows()).collect()
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    /// Catches anything of the saving that shows in the files: part borders, group borders, rows lost
    /// or written twice.
    #[test]
    fn saved_and_resumed_results_are_the_same_to_the_byte(
        epochs in prop::collection::vec(0u64..100_000, 1..5),
        saves in prop::collection::vec(0usize..5, 1..4),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (whole, parts) = (folder.path().join("whole"), folder.path().join("parts"));
        write(&whole, &epochs, &[]);
        write(&parts, &epochs, &saves);
        prop_assert_eq!(names(&whole), names(&parts));
        for name in names(&whole) {
            let read = |directory: &Path| fs::read(directory.join(&name)).unwrap();
            prop_assert!(read(&whole) == read(&parts), "{}", name);
        }
        prop_assert_eq!(digest(&whole).unwrap(), digest(&parts).unwrap());
        let rows = groups(&whole, Table::Messages).iter().sum::<i64>();
        prop_assert_eq!(rows as u64, epochs.iter().sum::<u64>());
    }
}

/// Catches counts of a link that a snapshot or a file changes, and that do not stand among its other columns.
#[test]
fn counts_of_a_link_are_columns() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("out");
    let off = Span::from_ps(5);
    let counts = PacketCounts { dead: 3, trimmed: 4, off, ..PacketCounts::default() };
    let row = LinkRow { counts, ..link(None, Some(1), Some(2)) };
    let mut results = ResultsWriter::create(&directory, &Table::ALL, &stored(), Existing::Refuse).unwrap();
    results.push(row.clone()).unwrap();
    results.save(&[]).unwrap();
    drop(results);
    let (results, _) = ResultsWriter::resume(&directory).unwrap();
    results.finish(manifest(Ending::Finished), Performance::default()).unwrap();
    let mut seen = Vec::new();
    StoredResult::open(&directory).unwrap().visit(|link: LinkRow| seen.push(link)).unwrap();
    assert_eq!(seen, std::slice::from_ref(&row));

    let json = serde_json::to_string(&row).unwrap();
    let keys: Vec<&str> = json.split(['{', ',']).filter_map(|entry| entry.split('"').nth(1)).collect();
    assert_eq!(keys, LinkRow::columns().iter().map(|column| column.name).collect::<Vec<_>>());
    assert!(json.contains(r#""dropped_dead":3,"dropped_full":0,"trimmed":4,"resent":0"#), "{json}");
    assert!(json.contains(r#""off_ps":5,"energy_pj":null"#), "{json}");
}

#[test]
fn row_groups_end_at_the_first_epoch_after_64_ki_rows() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("out");
    write(&directory, &[40_000, 40_000, 10, 65_536, 5], &[]);
    assert_eq!(groups(&directory, Table::Messages), [80_000, 65_546, 5]);
    assert_eq!(groups(&directory, Table::Ranks), [0i64; 0]);
    let mut files = Table::ALL.map(Table::file).to_vec();
    files.extend(["performance.json".to_owned(), "run.json".to_owned()]);
    files.sort();
    assert_eq!(names(&directory), files);
}

/// Catches rows that a reader gets twice, late or not at all while the run goes on, and a result that is
/// another because somebody looked.
#[test]
fn a_result_is_read_while_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (live, plain) = (folder.path().join("live"), folder.path().join("plain"));
    let mut results = ResultsWriter::create(&live, &Table::ALL, &stored(), Existing::Refuse).unwrap();
    assert!(live_generation(&live).is_none() && StoredResult::open_live(&live).is_err());
    results.go_live().unwrap();
    let epochs = [10, 70_000, 3, 66_000];
    let mut n = 0;
    for (number, count) in epochs.into_iter().enumerate() {
        for later in n..n + count {
            results.push(message(later)).unwrap();
        }
        n += count;
        results.epoch().unwrap();
        // As an epoch does after a second of wall time.
        results.publish().unwrap();
        assert_eq!(live_generation(&live), Some(number as u64 + 1));
        let seen = StoredResult::open_live(&live).unwrap();
        assert!(seen.is_live() && seen.has(Table::Messages) && !seen.has(Table::Links));
        assert_eq!(seen.manifest.request["pattern"], "uniform");
        // Not an option that the run lacks: it comes at the end.
        let error = seen.visit(|_: LinkRow| {}).unwrap_err().to_string();
        assert!(error.ends_with("has no rows of the table links yet; wait: its run goes on"), "{error}");
        let mut sequences = Vec::new();
        seen.visit(|row: MessageRow| sequences.push(row.sequence)).unwrap();
        assert!(sequences.into_iter().eq(0..n), "{n} rows");
    }
    results.push(flow(0, None)).unwrap();
    results.push(flow(0, Some(EndpointId(0)))).unwrap();
    results.push(link(Some(3), None, None)).unwrap();
    results.push(link(None, Some(0), Some(1))).unwrap();
    results.finish(manifest(Ending::Finished), Performance::default()).unwrap();
    write(&plain, &epochs, &[]);
    assert_eq!(names(&live), names(&plain));
    for name in names(&plain) {
        assert!(fs::read(live.join(&name)).unwrap() == fs::read(plain.join(&name)).unwrap(), "{name}");
    }
    assert!(is_whole(&live) && live_generation(&live).is_none());
}

/// Catches values that are mangled on their way into a column, and columns that are swapped.
#[test]
fn rows_read_back() {
    use parquet::record::Field;
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[10], &[]);
    let file = File::open(folder.path().join("messages.parquet")).unwrap();
    let reader = parquet::file::serialized_reader::SerializedFileReader::new(file).unwrap();
    let rows: Vec<_> = reader.into_iter().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 10);
    let fourth: Vec<_> =
        rows[4].get_column_iter().map(|(name, field)| (name.as_str(), field.clone())).collect();
    assert_eq!(fourth[1], ("delivered_ps", Field::ULong(1)));
    assert_eq!(fourth[5], ("source_rank", Field::UInt(4)));
    assert_eq!(fourth[7], ("tag", Field::Null));
    assert_eq!(fourth[8], ("class", Field::Str("pattern".to_owned())));
    assert_eq!(fourth[9], ("group", Field::Null));
    assert_eq!(fourth[10], ("payload_bytes", Field::ULong(68)));
}

#[test]
fn an_existing_directory_is_refused_unless_forced() {
    let folder = tempfile::tempdir().unwrap();
    let create = |existing| ResultsWriter::create(folder.path(), &Table::defaults(), &stored(), existing);
    let empty = create(Existing::Refuse).unwrap();
    empty.finish(manifest(Ending::Finished), Performance::default()).unwrap();
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    assert!(matches!(create(Existing::Refuse), Err(ResultsError::Exists(_))));
    let before = digest(folder.path()).unwrap();
    let forced = create(Existing::Replace).unwrap();
    assert!(matches!(digest(folder.path()), Err(ResultsError::NotAResult(_))), "half-written reads as whole");
    forced.finish(manifest(Ending::Interrupted), Performance::default()).unwrap();
    assert_ne!(digest(folder.path()).unwrap(), before);
    assert_eq!(fs::read_to_string(folder.path().join("notes.txt")).unwrap(), "mine");
    assert_eq!(read_request::<Request>(folder.path()).unwrap(), stored());
    let file = folder.path().join("notes.txt");
    assert!(matches!(ResultsWriter::check(&file, Existing::Replace), Err(ResultsError::NotADirectory(_))));
}

/// The digest must not see what depends on the computer, and must see everything else.
#[test]
fn the_digest_sees_run_json_and_not_performance_json() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[3], &[]);
    let before = digest(folder.path()).unwrap();
    fs::write(folder.path().join("performance.json"), "other").unwrap();
    assert_eq!(digest(folder.path()).unwrap(), before);
    let text = fs::read_to_string(folder.path().join("run.json")).unwrap();
    fs::write(folder.path().join("run.json"), text.replace("\"uniform\"", "\"tornado\"")).unwrap();
    assert_ne!(digest(folder.path()).unwrap(), before);
}

#[test]
fn an_interrupted_run_is_readable_and_can_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let mut results =
        ResultsWriter::create(folder.path(), &[Table::Messages], &stored(), Existing::Refuse).unwrap();
    results.push(message(0)).unwrap();
    results.save(b"state").unwrap();
    results.push(message(1)).unwrap();
    results.finish(manifest(Ending::Interrupted), Performance::default()).unwrap();
    assert_eq!(groups(folder.path(), Table::Messages), [2]);
    let read: Manifest = read_manifest(folder.path()).unwrap();
    assert_eq!(read.ended, Ending::Interrupted);
    let again = ResultsWriter::check(folder.path(), Existing::Refuse).unwrap_err();
    assert!(again.to_string().contains("--resume"), "{again}");

    let (mut results, state) = ResultsWriter::resume(folder.path()).unwrap();
    assert_eq!(state, b"state");
    assert!(!folder.path().join("run.json").exists());
    results.push(message(1)).unwrap();
    results.push(message(2)).unwrap();
    results.finish(manifest(Ending::Finished), Performance::default()).unwrap();
    assert_eq!(groups(folder.path(), Table::Messages), [3]);
    assert!(matches!(ResultsWriter::resume(folder.path()), Err(ResultsError::NoSnapshot(_))));
}

/// Catches a run that cannot be repeated because nobody knows where its trace was, finished or not.
#[test]
fn a_result_knows_where_its_traces_were() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("out");
    let results = ResultsWriter::create(&directory, &Table::defaults(), &stored(), Existing::Refuse).unwrap();
    assert_eq!(read_request::<Request>(&directory).unwrap(), stored());
    results.finish(manifest(Ending::Finished), Performance::default()).unwrap();
    assert_eq!(read_request::<Request>(&directory).unwrap(), stored());
    let run_json = fs::read_to_string(directory.join("run.json")).unwrap();
    assert!(!run_json.contains("/traces"), "a path of this computer in run.json");
}

#[test]
fn a_result_of_another_version_or_a_damaged_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    let read = || read_manifest::<Request, serde_json::Value>(folder.path());
    fs::write(&path, r#"{"format_version": 3, "other": []}"#).unwrap();
    let error = read().unwrap_err();
    assert!(matches!(error, ResultsError::Version { found: 3, .. }));
    assert!(error.to_string().ends_with("read it with the weft that wrote it"), "{error}");
    fs::write(&path, r#"{"other": []}"#).unwrap();
    assert!(matches!(read(), Err(ResultsError::Damaged { .. })));
    fs::write(&path, r#"{"format_version": 2, "request""#).unwrap();
    let error = read_request::<Request>(folder.path()).unwrap_err();
    assert!(matches!(&error, ResultsError::Damaged { path: named, .. } if *named == path), "{error}");
}

/// A `run.json` that weft 0.1.0 wrote before interfaces had the names of their documents, without most of the
/// machine.
#[test]
fn a_result_of_version_1_is_refused_with_the_mend() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("run.json"), include_str!("../tests/data/run_version_1.json")).unwrap();
    let expected = "was written by weft 0.1.0 in format version 1, and this weft reads version 2: since then \
                    nic.model = \"full\" is \"exanet\", and \"simple\" is \"overheads\"; run the command \
                    again";
    let error = read_request::<serde_json::Value>(folder.path()).unwrap_err();
    assert!(error.to_string().contains(expected), "{error}");
    let error = read_manifest::<serde_json::Value, serde_json::Value>(folder.path()).unwrap_err();
    assert!(error.to_string().contains(expected), "{error}");
}

/// Requests of saved runs did not say their version then.
#[test]
fn a_snapshot_of_version_1_is_refused_with_the_mend() {
    let folder = tempfile::tempdir().unwrap();
    let results = ResultsWriter::create(folder.path(), &Table::defaults(), &stored(), Existing::Refuse);
    results.unwrap().save(b"state").unwrap();
    let working = folder.path().join(".weft");
    let now = fs::read(working.join("snapshot")).unwrap();
    let mut then = b"weft-snapshot/3\n".to_vec();
    then.extend_from_slice(&now[then.len()..]);
    fs::write(working.join("snapshot"), then).unwrap();
    assert!(matches!(ResultsWriter::resume(folder.path()), Err(ResultsError::SnapshotVersion { .. })));
    fs::write(working.join("request.json"), r#"{"request": {"command": "traffic"}, "trace_paths": []}"#)
        .unwrap();
    for error in [
        ResultsWriter::resume(folder.path()).map(|_| ()).unwrap_err(),
        read_request::<Request>(folder.path()).map(|_| ()).unwrap_err(),
    ] {
        assert!(matches!(error, ResultsError::Version { found: 1, .. }), "{error}");
        assert!(error.to_string().ends_with("run the command again"), "{error}");
    }
}

/// Catches rows of other columns that are taken for those of this weft, and a table of another that is lost.
#[test]
fn a_snapshot_of_other_tables_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut results =
        ResultsWriter::create(folder.path(), &[Table::Messages], &stored(), Existing::Refuse).unwrap();
    results.push(message(0)).unwrap();
    results.save(b"state").unwrap();
    drop(results);
    let working = folder.path().join(".weft");
    let (path, request) = (working.join("snapshot"), file_sha(&working.join("request.json")).unwrap());
    let bytes = fs::read(&path).unwrap();
    let (saved, state) = read_snapshot(&path, &bytes, request).unwrap();
    let (mut later, mut unknown) = (saved.clone(), saved.clone());
    later[0].version += 1;
    unknown[0].table = "weather".to_owned();
    for tables in [later, unknown] {
        write_snapshot(&working, request, &tables, state).unwrap();
        let resumed = ResultsWriter::resume(folder.path());
        assert!(matches!(resumed, Err(ResultsError::SnapshotVersion { .. })), "{tables:?}");
    }
    write_snapshot(&working, request, &saved, state).unwrap();
    ResultsWriter::resume(folder.path()).unwrap();
}

/// A truncated or foreign snapshot must be an error, not a panic or half a resume.
#[test]
fn a_damaged_snapshot_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut results =
        ResultsWriter::create(folder.path(), &[Table::Messages], &stored(), Existing::Refuse).unwrap();
    for n in 0..70_000 {
        results.push(message(n)).unwrap();
    }
    results.epoch().unwrap();
    results.save(b"state").unwrap();
    drop(results);
    let snapshot = folder.path().join(".weft/snapshot");
    let good = fs::read(&snapshot).unwrap();
    for bytes in [&good[..20], b"something else" as &[u8]] {
        fs::write(&snapshot, bytes).unwrap();
        assert!(matches!(ResultsWriter::resume(folder.path()), Err(ResultsError::Damaged { .. })));
    }
    fs::write(&snapshot, &good).unwrap();
    fs::write(folder.path().join(".weft/messages-00000.parquet"), "short").unwrap();
    assert!(matches!(ResultsWriter::resume(folder.path()), Err(ResultsError::Damaged { .. })));
}

/// The device that is always full stands in for a full disk: behind a part while the run goes, and
/// behind the merged file at its end.
#[test]
fn a_full_disk_names_the_file_and_leaves_no_result() {
    for (full, at_end) in [("messages-00000.parquet", false), ("links.parquet", true)] {
        let folder = tempfile::tempdir().unwrap();
        let mut results =
            ResultsWriter::create(folder.path(), &Table::named(), &stored(), Existing::Refuse).unwrap();
        symlink("/dev/full", folder.path().join(".weft").join(full)).unwrap();
        let rows: Result<(), ResultsError> = (0..70_000).try_for_each(|n| results.push(message(n)));
        let result = rows
            .and_then(|()| results.epoch())
            .and_then(|()| results.finish(manifest(Ending::Finished), Performance::default()));
        let error = result.unwrap_err();
        assert!(matches!(&error, ResultsError::DiskFull(path) if path.ends_with(full)), "{at_end} {error}");
        assert!(error.to_string().contains("no room on the disk while writing"));
        assert_eq!(names(folder.path()), [""; 0], "nothing is left");
    }
}

/// A result as a killed weft leaves it: what is on the disk, without the lock.
fn as_left_behind(directory: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    let from = directory.join(".");
    assert!(Command::new("cp").arg("-a").arg(from).arg(copy.path()).status().unwrap().success());
    copy
}

/// Catches two runs that write over each other's files, and clear up after each other.
#[test]
fn a_directory_has_one_writer() {
    let folder = tempfile::tempdir().unwrap();
    let mut first =
        ResultsWriter::create(folder.path(), &Table::defaults(), &stored(), Existing::Refuse).unwrap();
    first.save(b"state").unwrap();
    let busy = format!("another weft (process {}) writes into ", std::process::id());
    for error in [
        ResultsWriter::check(folder.path(), Existing::Replace).unwrap_err(),
        ResultsWriter::create(folder.path(), &Table::defaults(), &stored(), Existing::Replace)
            .map(drop)
            .unwrap_err(),
        ResultsWriter::resume(folder.path()).map(drop).unwrap_err(),
    ] {
        assert!(error.to_string().starts_with(&busy), "{error}");
    }
    first.finish(manifest(Ending::Finished), Performance::default()).unwrap();
    assert_eq!(
        ResultsWriter::check(folder.path(), Existing::Replace).map_err(|error| error.to_string()),
        Ok(())
    );
}

/// Catches an old result that is lost although the new one never became whole.
#[test]
fn a_result_is_replaced_when_the_new_one_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[3], &[]);
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    let (before, files) = (digest(folder.path()).unwrap(), names(folder.path()));
    let replace = |directory: &Path| {
        let mut writer =
            ResultsWriter::create(directory, &[Table::Messages], &stored(), Existing::Replace).unwrap();
        writer.push(message(1)).unwrap();
        writer
    };
    drop(replace(folder.path()));
    assert_eq!((digest(folder.path()).unwrap(), names(folder.path())), (before, files.clone()), "dropped");

    let writer = replace(folder.path());
    symlink("/dev/full", folder.path().join(".weft/messages.parquet")).unwrap();
    assert!(writer.finish(manifest(Ending::Finished), Performance::default()).is_err());
    assert_eq!((digest(folder.path()).unwrap(), names(folder.path())), (before, files.clone()), "failed");

    let mut writer = replace(folder.path());
    let killed = as_left_behind(folder.path());
    let moving = as_left_behind(folder.path());
    let previous = moving.path().join(".weft/previous");
    fs::rename(&previous, previous.with_file_name("leaving")).unwrap();
    for name in ["process", "request.json"] {
        fs::remove_file(previous.with_file_name(name)).unwrap();
    }
    writer.save(b"state").unwrap();
    let saved = as_left_behind(folder.path());
    for (left, name) in [(&killed, "killed"), (&moving, "killed while files were moved")] {
        read_request::<Request>(left.path()).unwrap();
        assert_eq!((digest(left.path()).unwrap(), names(left.path())), (before, files.clone()), "{name}");
    }
    // The new run can be resumed, or given up.
    read_request::<Request>(saved.path()).unwrap();
    assert!(!saved.path().join("run.json").exists());
    let resumed = as_left_behind(saved.path());
    drop(replace(saved.path()));
    assert_eq!((digest(saved.path()).unwrap(), names(saved.path())), (before, files.clone()), "given up");
    let (results, _) = ResultsWriter::resume(resumed.path()).unwrap();
    results.finish(manifest(Ending::Finished), Performance::default()).unwrap();

    writer.finish(manifest(Ending::Finished), Performance::default()).unwrap();
    assert_ne!(digest(folder.path()).unwrap(), before);
    assert_eq!(digest(resumed.path()).unwrap(), digest(folder.path()).unwrap());
    for directory in [folder.path(), resumed.path()] {
        assert_eq!(names(directory), ["messages.parquet", "notes.txt", "performance.json", "run.json"]);
    }
}

/// A saved run is a result too.
#[test]
fn a_snapshot_comes_back_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let create = |existing| ResultsWriter::create(folder.path(), &[Table::Messages], &stored(), existing);
    create(Existing::Refuse).unwrap().save(b"state").unwrap();
    drop(create(Existing::Replace).unwrap());
    assert_eq!(ResultsWriter::resume(folder.path()).unwrap().1, b"state");
}

/// Catches a bit that changes what a resumed run simulates, or what its tables hold.
#[test]
fn no_flipped_bit_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let mut results =
        ResultsWriter::create(folder.path(), &[Table::Messages], &stored(), Existing::Refuse).unwrap();
    for n in 0..66_000 {
        results.push(message(n)).unwrap();
    }
    results.epoch().unwrap();
    results.push(message(66_000)).unwrap();
    results.save(b"state").unwrap();
    drop(results);
    for name in ["snapshot", "request.json", "messages-00000.parquet"] {
        let path = folder.path().join(".weft").join(name);
        let good = fs::read(&path).unwrap();
        for place in (0..good.len()).step_by((good.len() / 400).max(1)) {
            let mut damaged = good.clone();
            damaged[place] ^= 1 << (place % 8);
            fs::write(&path, damaged).unwrap();
            assert!(ResultsWriter::resume(folder.path()).is_err(), "{name}, byte {place}");
        }
        fs::write(&path, good).unwrap();
    }
    ResultsWriter::resume(folder.path()).unwrap();
}

/// Catches a result whose own files are not what they were, so that a rerun cannot be the same.
#[test]
fn files_are_those_that_weft_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let results = ResultsWriter::create(folder.path(), &Table::defaults(), &stored(), Existing::Refuse);
    results.unwrap().finish(manifest(Ending::Finished), Performance::default()).unwrap();
    let tables = read_manifest::<Request, serde_json::Value>(folder.path()).unwrap().tables;
    let check = || check_files(folder.path(), &tables).map_err(|error| error.to_string());
    assert_eq!(check(), Ok(()));
    let (links, foreign) = (folder.path().join("links.parquet"), folder.path().join("pieces.parquet"));
    let good = fs::read(&links).unwrap();
    fs::write(&links, "edited").unwrap();
    assert!(check().unwrap_err().contains("links.parquet is not the file that weft wrote"));
    fs::remove_file(&links).unwrap();
    assert!(check().unwrap_err().contains("links.parquet is missing"));
    fs::write(&links, good).unwrap();
    fs::write(&foreign, "other").unwrap();
    assert!(check().unwrap_err().contains("pieces.parquet is not of this run"));
    fs::remove_file(&foreign).unwrap();
    // A copy without it, or a result of an earlier weft.
    fs::remove_file(folder.path().join("performance.json")).unwrap();
    assert_eq!(check(), Ok(()));
}
