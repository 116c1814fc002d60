//! A result directory as a whole: the same bytes however it was saved, and never half of it.

use super::directory::table_file;
use super::*;
use crate::experiment::load::Load;
use crate::experiment::replay::{Mapping, ReplayRequest, TraceInput, Wildcards};
use crate::experiment::traffic::{LoadOf, TrafficRequest};
use crate::experiment::{MachineInput, Request};
use parquet::file::metadata::ParquetMetaDataReader;
use proptest::prelude::*;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use weft_units::{BitRate, Bytes, EndpointId, PortId, RankId, Span, SwitchId, Time};

fn request() -> Request {
    Request::Traffic(TrafficRequest {
        machine: MachineInput { name: "two".to_owned(), text: "topology = 1".to_owned(), sets: vec![] },
        pattern: "uniform".to_owned(),
        sizes: vec![Bytes::new(256)],
        loads: vec![Load::from_millionths(600_000)],
        load_of: LoadOf::Injection,
        time: Span::from_us(100),
        warm_up: None,
        seeds: vec![1],
    })
}

fn manifest(ended: Ending) -> RunManifest {
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
        messages: 1,
        payload_bytes: Bytes::new(9),
        first_start_ps: Time::ZERO,
        last_completion_ps: Time::from_ps(5),
        completion_mean_ps: Span::from_ps(5),
        completion_p99_ps: Span::from_ps(5),
        completion_max_ps: Span::from_ps(5),
    }
}

fn link(from: Option<u32>, switch: Option<u32>, port: Option<u32>) -> LinkRow {
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
        dropped: 0,
        dropped_dead: 0,
        corrupted: 0,
    }
}

/// Writes `epochs` of so many messages each, leaving and resuming the run after the epochs in `saves`.
/// After each snapshot the interrupted run goes on a little, as real ones do.
fn write(directory: &Path, epochs: &[u64], saves: &[usize]) {
    let mut results = ResultsWriter::create(directory, &Table::NAMED, &request(), Existing::Refuse).unwrap();
    let mut n = 0;
    for (index, &count) in epochs.iter().enumerate() {
        for _ in 0..count {
            results.message(message(n)).unwrap();
            n += 1;
        }
        results.epoch().unwrap();
        if saves.contains(&index) {
            results.save(&n.to_le_bytes()).unwrap();
            for later in n..n + 70_000 {
                results.message(message(later)).unwrap();
            }
            results.epoch().unwrap();
            drop(results);
            let (resumed, state) = ResultsWriter::resume(directory).unwrap();
            results = resumed;
            n = u64::from_le_bytes(state.try_into().unwrap());
        }
    }
    results.flow(flow(0, None)).unwrap();
    results.flow(flow(0, Some(EndpointId(0)))).unwrap();
    results.link(link(Some(3), None, None)).unwrap();
    results.link(link(None, Some(0), Some(1))).unwrap();
    results.finish(manifest(Ending::Finished), Performance::default()).unwrap();
}

fn groups(directory: &Path, table: Table) -> Vec<i64> {
    let file = File::open(directory.join(table_file(table))).unwrap();
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
            prop_assert!(fs::read(whole.join(&name)).unwrap() == fs::read(parts.join(&name)).unwrap(), "{}", name);
        }
        prop_assert_eq!(digest(&whole).unwrap(), digest(&parts).unwrap());
        prop_assert_eq!(groups(&whole, Table::Messages).iter().sum::<i64>() as u64, epochs.iter().sum::<u64>());
    }
}

#[test]
fn row_groups_end_at_the_first_epoch_after_64_ki_rows() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("out");
    write(&directory, &[40_000, 40_000, 10, 65_536, 5], &[]);
    assert_eq!(groups(&directory, Table::Messages), [80_000, 65_546, 5]);
    assert_eq!(groups(&directory, Table::Ranks), [0i64; 0]);
    assert_eq!(
        names(&directory),
        [
            "flows.parquet",
            "links.parquet",
            "messages.parquet",
            "performance.json",
            "ranks.parquet",
            "run.json"
        ]
    );
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
    assert_eq!(fourth[9], ("payload_bytes", Field::ULong(68)));
}

#[test]
fn an_existing_directory_is_refused_unless_forced() {
    let folder = tempfile::tempdir().unwrap();
    let create = |existing| ResultsWriter::create(folder.path(), &Table::DEFAULT, &request(), existing);
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
    assert_eq!(read_request(folder.path()).unwrap(), request());
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
        ResultsWriter::create(folder.path(), &[Table::Messages], &request(), Existing::Refuse).unwrap();
    results.message(message(0)).unwrap();
    results.save(b"state").unwrap();
    let again = ResultsWriter::check(folder.path(), Existing::Refuse).unwrap_err();
    assert!(again.to_string().contains("--resume"), "{again}");
    results.message(message(1)).unwrap();
    results.finish(manifest(Ending::Interrupted), Performance::default()).unwrap();
    assert_eq!(groups(folder.path(), Table::Messages), [2]);
    assert_eq!(read_manifest(folder.path()).unwrap().ended, Ending::Interrupted);

    let (mut results, state) = ResultsWriter::resume(folder.path()).unwrap();
    assert_eq!(state, b"state");
    assert!(!folder.path().join("run.json").exists());
    results.message(message(1)).unwrap();
    results.message(message(2)).unwrap();
    results.finish(manifest(Ending::Finished), Performance::default()).unwrap();
    assert_eq!(groups(folder.path(), Table::Messages), [3]);
    assert!(matches!(ResultsWriter::resume(folder.path()), Err(ResultsError::NoSnapshot(_))));
}

/// Catches a run that cannot be repeated because nobody knows where its trace was, finished or not.
#[test]
fn a_replay_knows_where_its_trace_was() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("a.weft");
    fs::write(&trace, "trace").unwrap();
    let request = Request::Replay(ReplayRequest {
        machine: MachineInput { name: "two".to_owned(), text: String::new(), sets: vec![] },
        traces: vec![TraceInput::at(&trace).unwrap()],
        map: Mapping::Linear,
        ranks_per_host: None,
        wildcards: Wildcards::Recorded,
        seed: 1,
        data: false,
        breakdown: false,
    });
    let directory = folder.path().join("out");
    let results = ResultsWriter::create(&directory, &Table::DEFAULT, &request, Existing::Refuse).unwrap();
    assert_eq!(read_request(&directory).unwrap().traces()[0].path, trace);
    let manifest = RunManifest { request: request.clone(), ..manifest(Ending::Finished) };
    results.finish(manifest, Performance::default()).unwrap();
    assert_eq!(read_request(&directory).unwrap(), request);
    let run_json = fs::read_to_string(directory.join("run.json")).unwrap();
    assert!(!run_json.contains(folder.path().to_str().unwrap()), "a path of this computer in run.json");
}

#[test]
fn a_result_of_another_version_or_a_damaged_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    fs::write(&path, r#"{"format_version": 2, "other": []}"#).unwrap();
    assert!(matches!(read_manifest(folder.path()), Err(ResultsError::Version { found: 2, .. })));
    fs::write(&path, r#"{"format_version": 1, "request""#).unwrap();
    let error = read_request(folder.path()).unwrap_err();
    assert!(matches!(&error, ResultsError::Damaged { path: named, .. } if *named == path), "{error}");
}

/// A truncated or foreign snapshot must be an error, not a panic or half a resume.
#[test]
fn a_damaged_snapshot_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut results =
        ResultsWriter::create(folder.path(), &[Table::Messages], &request(), Existing::Refuse).unwrap();
    for n in 0..70_000 {
        results.message(message(n)).unwrap();
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
            ResultsWriter::create(folder.path(), &Table::NAMED, &request(), Existing::Refuse).unwrap();
        symlink("/dev/full", folder.path().join(".weft").join(full)).unwrap();
        let rows: Result<(), ResultsError> = (0..70_000).try_for_each(|n| results.message(message(n)));
        let result = rows
            .and_then(|()| results.epoch())
            .and_then(|()| results.finish(manifest(Ending::Finished), Performance::default()));
        let error = result.unwrap_err();
        assert!(matches!(&error, ResultsError::DiskFull(path) if path.ends_with(full)), "{at_end} {error}");
        assert!(error.to_string().contains("no room on the disk while writing"));
        assert_eq!(names(folder.path()), [""; 0], "nothing is left");
    }
}
