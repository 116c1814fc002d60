//! Damaged and hostile files are refused with an error, in little memory, whatever their bytes are.

#![allow(clippy::unwrap_used)] // All of this is tests.

use crate::common::*;
use parquet::basic::{Compression, Encoding};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::SchemaDescriptor;
use proptest::prelude::*;
use std::sync::Arc;
use weft_formats::{METADATA_KEY, Trace, TraceError, check_bytes};
use weft_trace::op::*;
use weft_units::{Bytes, RankId};

fn sample() -> Vec<u8> {
    let request = |request| RequestId(request);
    let rank = |peer: u32| {
        vec![
            Op::Isend {
                to: RankId(peer),
                tag: 3,
                comm: CommId::WORLD,
                bytes: Bytes::new(100),
                mode: SendMode::Standard,
                request: request(0),
                buffer: None,
            },
            Op::Irecv {
                from: None,
                tag: Some(3),
                comm: CommId::WORLD,
                bytes: Bytes::new(100),
                matched: Some((RankId(peer), 3)),
                request: request(1),
                buffer: None,
            },
            Op::Waitall { requests: vec![request(0), request(1)] },
            Op::Collective {
                kind: Collective::Alltoallv,
                comm: CommId::WORLD,
                root: None,
                sizes: CollectiveSizes {
                    send_counts: vec![1, 2],
                    receive_counts: vec![1, 2],
                    ..CollectiveSizes::default()
                },
                request: None,
                buffers: Default::default(),
            },
            Op::Marker { text: "end".to_owned() },
        ]
    };
    trace_bytes(&[rank(1), rank(0)])
}

#[test]
fn the_sample_is_whole() {
    check_bytes(&sample()).unwrap();
}

/// The trace without its checksums, as of an earlier weft: what it says is believed only when it makes sense.
fn unsealed(mut bytes: Vec<u8>) -> Vec<u8> {
    for key in [&b"weft.contents_sha256"[..], b"weft.footer_sha256"] {
        let at = bytes.windows(key.len()).position(|window| window == key).unwrap();
        bytes[at] = b'W';
    }
    bytes
}

#[test]
fn a_trace_without_checksums_is_read() {
    check_bytes(&unsealed(sample())).unwrap();
}

/// Catches a place of the file that no checksum covers: a trace with another program in it.
#[test]
fn every_flipped_bit_is_refused() {
    let bytes = sample();
    for place in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1 << (place % 8);
        assert!(check_bytes(&damaged).is_err(), "byte {place}");
    }
}

/// The summary of a trace does not read its rows, and its rows are not read where the summary is damaged.
#[test]
fn rows_are_checked_when_they_are_read() {
    let mut damaged = sample();
    damaged[5] ^= 1;
    let trace = Trace::from_bytes("trace", damaged).unwrap();
    let error =
        trace.stream(RankId(1), StreamId::FIRST).and_then(|mut rank| rank.next().transpose()).unwrap_err();
    let error = TraceError::from(error);
    assert!(matches!(&error, TraceError::Damaged { .. }), "{error}");
}

#[test]
fn every_truncation_is_refused() {
    let bytes = sample();
    for len in 0..bytes.len() {
        assert!(matches!(check_bytes(&bytes[..len]), Err(TraceError::NotATrace { .. })), "{len} bytes");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Catches a panic or an allocation of what a file merely says. Most changes are in the footer or the
    /// pages' headers, which are most of a small file.
    #[test]
    fn changed_bytes_never_panic(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = SAMPLE.with(Clone::clone);
        for (index, byte) in changes {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        let _ = check_bytes(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// As above with all kinds of operations.
    #[test]
    fn changed_bytes_of_any_trace_never_panic(
        ranks in any_ranks(0..5),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = unsealed(trace_bytes(&ranks));
        for (index, byte) in changes {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        let _ = check_bytes(&bytes);
    }
}

/// Catches an allocation of what a damaged file merely says: a child process does the same with an address
/// space of 512 MB.
#[test]
fn changed_bytes_take_little_memory() {
    let output = std::process::Command::new("sh")
        .args([
            "-c",
            "ulimit -v 524288; exec \"$0\" --exact hostile::changed_bytes_never_panic --test-threads=1",
        ])
        .arg(std::env::current_exe().unwrap())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("1 passed"), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

thread_local! {
    static SAMPLE: Vec<u8> = unsealed(sample());
}

#[test]
fn other_files_are_no_traces() {
    for bytes in [&b""[..], b"PAR1", b"PAR1PAR1", b"{\"ranks\": 3}", &[0xff; 4096]] {
        assert!(matches!(check_bytes(bytes), Err(TraceError::NotATrace { .. })));
    }
    assert!(matches!(Trace::open("/nonexistent.weft"), Err(TraceError::Read { .. })));
    assert!(matches!(Trace::open("/"), Err(TraceError::Read { .. })));
    // Without an end, so that reading it would be noticed.
    assert!(matches!(Trace::open("/dev/zero"), Err(TraceError::Read { .. })));
}

/// The schema, metadata and columns of a file made by hand.
struct Forged<'a> {
    schema: String,
    metadata: Option<&'a str>,
    operation: &'a [&'a str],
    /// Columns after `rank` and `operation`, by name: their values; all other columns are null.
    peer: Option<i32>,
    bytes: Option<i64>,
    buffer: Option<i64>,
    properties: WriterProperties,
}

fn forged() -> Forged<'static> {
    let mut schema = Vec::new();
    let trace = sample();
    let reader =
        parquet::file::serialized_reader::SerializedFileReader::new(bytes::Bytes::from(trace)).unwrap();
    use parquet::file::reader::FileReader;
    let root = reader.metadata().file_metadata().schema();
    parquet::schema::printer::print_schema(&mut schema, root);
    Forged {
        schema: String::from_utf8(schema).unwrap(),
        metadata: Some(r#"{"format_version":1,"ranks":1,"operations":{},"rank_operations":[1]}"#),
        operation: &["isend"],
        peer: Some(0),
        bytes: Some(1),
        buffer: None,
        properties: WriterProperties::builder().set_compression(Compression::UNCOMPRESSED).build(),
    }
}

impl Forged<'_> {
    fn error(self) -> TraceError {
        self.check().unwrap_err()
    }

    fn check(self) -> Result<(), TraceError> {
        let schema = Arc::new(parse_message_type(&self.schema).unwrap());
        let columns = SchemaDescriptor::new(Arc::clone(&schema));
        let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(self.properties)).unwrap();
        let rows = self.operation.len();
        let mut group = file.next_row_group().unwrap();
        for descriptor in columns.columns() {
            let mut column = group.next_column().unwrap().unwrap();
            let name = descriptor.path().parts()[0].clone();
            let value = match name.as_str() {
                "peer" => self.peer.map(i64::from),
                "bytes" => self.bytes,
                "buffer" => self.buffer,
                "tag" | "comm" | "request" | "span_ps" => Some(0),
                _ => None,
            };
            let levels = vec![i16::from(value.is_some()); rows];
            let repetition = vec![0; rows];
            let repetition = (descriptor.max_rep_level() > 0).then_some(&repetition[..]);
            match descriptor.physical_type() {
                parquet::basic::Type::BYTE_ARRAY => {
                    let names: Vec<_> = self.operation.iter().map(|&name| ByteArray::from(name)).collect();
                    let values = if name == "operation" { &names[..] } else { &[] };
                    column.typed::<ByteArrayType>().write_batch(values, Some(&levels), None).unwrap();
                }
                parquet::basic::Type::INT32 => {
                    let zero = vec![0; rows];
                    let values = value.map_or_else(Vec::new, |value| vec![value as i32; rows]);
                    let values = if name == "rank" { zero } else { values };
                    column.typed::<Int32Type>().write_batch(&values, Some(&levels), repetition).unwrap();
                }
                _ => {
                    let values = value.map_or_else(Vec::new, |value| vec![value; rows]);
                    column.typed::<Int64Type>().write_batch(&values, Some(&levels), repetition).unwrap();
                }
            };
            column.close().unwrap();
        }
        group.close().unwrap();
        if let Some(metadata) = self.metadata {
            file.append_key_value_metadata(KeyValue::new(METADATA_KEY.to_owned(), metadata.to_owned()));
        }
        check_bytes(&file.into_inner().unwrap())
    }
}

#[test]
fn forged_files_are_whole_before_they_are_damaged() {
    forged().check().unwrap();
}

#[test]
fn schemas_of_others_are_refused() {
    let mut file = forged();
    file.metadata = None;
    assert!(matches!(file.error(), TraceError::NotATrace { .. }));
    let mut file = forged();
    file.metadata = Some(r#"{"format_version":3,"anything":[]}"#);
    let error = file.error();
    assert!(matches!(error, TraceError::Version { version: 3, known: 2, .. }));
    assert!(error.to_string().contains("use a newer weft"));
    for (from, to, column) in [
        ("OPTIONAL INT32 peer (INTEGER(32,false));", "", "peer"),
        ("OPTIONAL INT64 bytes", "OPTIONAL INT32 bytes", "bytes"),
        ("REQUIRED BYTE_ARRAY operation", "OPTIONAL BYTE_ARRAY operation", "operation"),
    ] {
        let mut file = forged();
        assert!(file.schema.contains(from), "{}", file.schema);
        file.schema =
            file.schema.replace(from, to).replace("INT32 bytes (INTEGER(64", "INT32 bytes (INTEGER(32");
        match file.error() {
            TraceError::Schema { column: found, .. } => assert_eq!(found, column),
            error => panic!("{error}"),
        }
    }
}

/// Catches a reader that wants columns that earlier builds did not write, or that takes a file for one of
/// theirs where another column is missing.
#[test]
fn columns_that_were_added_may_be_missing() {
    const ADDED: [&str; 5] = [
        "OPTIONAL INT64 buffer (INTEGER(64,false));",
        "OPTIONAL INT64 receive_buffer (INTEGER(64,false));",
        "OPTIONAL BYTE_ARRAY reduction (STRING);",
        "OPTIONAL BYTE_ARRAY data_type (STRING);",
        "OPTIONAL INT64 flops (INTEGER(64,false));",
    ];
    for missing in (0..ADDED.len()).map(|first| &ADDED[first..]) {
        let mut file = forged();
        for column in missing {
            assert!(file.schema.contains(column), "{}", file.schema);
            file.schema = file.schema.replace(column, "");
        }
        file.check().unwrap();
    }
    let mut file = forged();
    file.schema = file.schema.replace(ADDED[0], "");
    match file.error() {
        TraceError::Schema { column, .. } => assert_eq!(column, "buffer"),
        error => panic!("{error}"),
    }
}

#[test]
fn metadata_that_lies_is_refused() {
    for metadata in [
        "",
        "[]",
        r#"{"format_version":-1}"#,
        r#"{"format_version":1}"#,
        r#"{"format_version":1,"ranks":4000000000,"operations":{},"rank_operations":[1]}"#,
        r#"{"format_version":1,"ranks":1,"operations":{},"rank_operations":[2]}"#,
        r#"{"format_version":1,"ranks":2,"operations":{},"rank_operations":[18446744073709551615,2]}"#,
        r#"{"format_version":2,"ranks":1,"operations":{},"rank_operations":[1],"rank_streams":[[],[]]}"#,
        r#"{"format_version":2,"ranks":1,"operations":{},"rank_operations":[1],"rank_streams":[[]]}"#,
        r#"{"format_version":2,"ranks":1,"operations":{},"rank_operations":[1],
            "rank_streams":[[{"operations":0,"core":0},{"operations":2,"core":0}]]}"#,
        r#"{"format_version":2,"ranks":1,"operations":{},"rank_operations":[1],
            "rank_streams":[[{"operations":1,"core":1}]]}"#,
        r#"{"format_version":2,"ranks":1,"operations":{},"rank_operations":[1],
            "rank_streams":[[{"operations":18446744073709551615,"core":0},{"operations":2,"core":0}]]}"#,
    ] {
        let mut file = forged();
        file.metadata = Some(metadata);
        let error = file.error();
        assert!(matches!(error, TraceError::Header { .. }), "{metadata}: {error}");
    }
}

#[test]
fn rows_that_make_no_sense_are_named() {
    type Change = fn(&mut Forged);
    let cases: [(Change, &str); 7] = [
        (|file| file.peer = Some(1), "column peer: rank 1 of a program of 1 ranks"),
        (|file| file.peer = None, "column peer: null"),
        (|file| file.bytes = Some(-1), "column bytes: a size of 18446744073709551615 bytes"),
        (
            |file| file.buffer = Some(1 << 39),
            "column buffer: the address 0x8000000000; addresses have 39 bits",
        ),
        (|file| file.buffer = Some(-1), "column buffer: the address 0xffffffffffffffff"),
        (|file| file.operation = &["isnd"], "column operation: no operation is called `isnd`"),
        (|file| file.operation = &["wait"], "column request: request 0 is waited for"),
    ];
    for (change, message) in cases {
        let mut file = forged();
        change(&mut file);
        let error = file.error().to_string();
        assert!(error.contains("trace: rank 0, operation 0, ") && error.contains(message), "{error}");
    }
}

#[test]
fn pages_that_weft_does_not_write_are_refused() {
    let builder = || WriterProperties::builder().set_compression(Compression::UNCOMPRESSED);
    for properties in [
        builder().set_compression(Compression::SNAPPY).build(),
        builder()
            .set_column_dictionary_enabled("span_ps".into(), false)
            .set_column_encoding("span_ps".into(), Encoding::DELTA_BINARY_PACKED)
            .build(),
        builder().set_writer_version(parquet::file::properties::WriterVersion::PARQUET_2_0).build(),
        builder().set_offset_index_disabled(true).build(),
    ] {
        let mut file = forged();
        file.properties = properties;
        assert!(matches!(file.error(), TraceError::Column { .. }));
    }
}
