//! The trace format: one Parquet file, one row per operation.
//!
//! ```text
//!   rank 0: op op op … | rank 1: op op … | … | rank n-1: op op …      rows, in the order of each rank
//!   [ row group ][ row group ][ row group ] …                          up to 64 Ki rows
//!   [pg][pg][pg] …                                                     pages of 64 to 4096 rows
//!   footer: where the pages are; JSON metadata with the number of rows of each rank; checksums
//! ```
//!
//! The rows of a rank's streams follow each other, as the metadata counts them.
//!
//! The rows of a rank begin where those of the ranks before it end, so that a reader finds any operation
//! of any rank from the footer alone, and reads nothing but the pages that hold it. Short ranks share a
//! row group: ten thousand ranks need not have ten thousand groups.
//!
//! Columns are flat; those that an operation does not have are null. Unsigned numbers are stored as
//! Parquet's unsigned types. Columns are dictionary-encoded where values repeat, and not compressed: the
//! dictionaries do most of what a compressor would, pages are decoded where they lie, and a hostile file
//! cannot grow in memory.
//!
//! | column | meaning |
//! |---|---|
//! | `rank` | world rank |
//! | `operation` | [`weft_trace::Kind::name`] |
//! | `span_ps` | compute: CPU time, ps |
//! | `peer` | world rank: isend destination, irecv source (null = any), collective root, one-sided target |
//! | `tag` | isend, irecv; null = any |
//! | `comm` | isend, irecv, collectives, communicator, window: the communicator |
//! | `bytes` | payload, size of the receive buffer; bytes given to a collective, of a window, of work |
//! | `receive_bytes` | bytes taken from a collective |
//! | `element_bytes` | size of one element of a collective |
//! | `request` | the request started (isend, irecv, non-blocking collectives, one-sided) or waited for; the
//! event |
//! | `matched_peer`, `matched_tag` | irecv: what a wildcard matched when the trace was recorded |
//! | `completed` | waitany: index into `requests` of the one that completed |
//! | `window` | one-sided operations and synchronizations |
//! | `text` | marker |
//! | `requests` | waitall, waitany; await: the events |
//! | `send_counts`, `receive_counts` | v-variants of collectives: bytes per member |
//! | `members` | communicator: first, stride, count of each range of world ranks, one after the other |
//! | `buffer` | the rank's virtual address of what is sent, received, exposed, moved, given to a collective |
//! | `receive_buffer` | that of what is taken from a collective |
//! | `reduction` | of reductions: [`weft_trace::ReductionOperation::name`] |
//! | `data_type` | of reductions: [`weft_trace::DataType::name`] |
//! | `flops` | work: floating-point operations |
//!
//! Files of earlier builds end with `members`, `receive_buffer` or `data_type`: what comes after is null
//! there.

use crate::header::TraceHeader;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::Type;

/// The schema in Parquet's own notation.
const SCHEMA: &str = "message weft_trace {
  required int32 rank (INTEGER(32,false));
  required binary operation (STRING);
  optional int64 span_ps (INTEGER(64,false));
  optional int32 peer (INTEGER(32,false));
  optional int32 tag;
  optional int64 comm (INTEGER(64,false));
  optional int64 bytes (INTEGER(64,false));
  optional int64 receive_bytes (INTEGER(64,false));
  optional int32 element_bytes (INTEGER(32,false));
  optional int32 request (INTEGER(32,false));
  optional int32 matched_peer (INTEGER(32,false));
  optional int32 matched_tag;
  optional int32 completed (INTEGER(32,false));
  optional int64 window (INTEGER(64,false));
  optional binary text (STRING);
  optional group requests (LIST) { repeated group list { required int32 element (INTEGER(32,false)); } }
  optional group send_counts (LIST) { repeated group list { required int64 element (INTEGER(64,false)); } }
  optional group receive_counts (LIST) { repeated group list { required int64 element (INTEGER(64,false)); } }
  optional group members (LIST) { repeated group list { required int64 element; } }
  optional int64 buffer (INTEGER(64,false));
  optional int64 receive_buffer (INTEGER(64,false));
  optional binary reduction (STRING);
  optional binary data_type (STRING);
  optional int64 flops (INTEGER(64,false));
}";

/// The columns, in the order of the schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Column {
    Rank,
    Operation,
    SpanPs,
    Peer,
    Tag,
    Comm,
    Bytes,
    ReceiveBytes,
    ElementBytes,
    Request,
    MatchedPeer,
    MatchedTag,
    Completed,
    Window,
    Text,
    Requests,
    SendCounts,
    ReceiveCounts,
    Members,
    Buffer,
    ReceiveBuffer,
    Reduction,
    DataType,
    Flops,
}

impl Column {
    /// All columns; each lies at its own index.
    pub(crate) const ALL: [Column; 24] = [
        Column::Rank,
        Column::Operation,
        Column::SpanPs,
        Column::Peer,
        Column::Tag,
        Column::Comm,
        Column::Bytes,
        Column::ReceiveBytes,
        Column::ElementBytes,
        Column::Request,
        Column::MatchedPeer,
        Column::MatchedTag,
        Column::Completed,
        Column::Window,
        Column::Text,
        Column::Requests,
        Column::SendCounts,
        Column::ReceiveCounts,
        Column::Members,
        Column::Buffer,
        Column::ReceiveBuffer,
        Column::Reduction,
        Column::DataType,
        Column::Flops,
    ];

    /// The first of the columns that files of earlier builds do not have.
    pub(crate) const FIRST_ADDED: Column = Column::Buffer;

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Column::Rank => "rank",
            Column::Operation => "operation",
            Column::SpanPs => "span_ps",
            Column::Peer => "peer",
            Column::Tag => "tag",
            Column::Comm => "comm",
            Column::Bytes => "bytes",
            Column::ReceiveBytes => "receive_bytes",
            Column::ElementBytes => "element_bytes",
            Column::Request => "request",
            Column::MatchedPeer => "matched_peer",
            Column::MatchedTag => "matched_tag",
            Column::Completed => "completed",
            Column::Window => "window",
            Column::Text => "text",
            Column::Requests => "requests",
            Column::SendCounts => "send_counts",
            Column::ReceiveCounts => "receive_counts",
            Column::Members => "members",
            Column::Buffer => "buffer",
            Column::ReceiveBuffer => "receive_buffer",
            Column::Reduction => "reduction",
            Column::DataType => "data_type",
            Column::Flops => "flops",
        }
    }
}

/// The schema.
pub(crate) fn schema() -> Type {
    parse_message_type(SCHEMA).expect("the schema above is well-formed: a test parses it")
}

/// A row group is ended when it has this many rows.
pub(crate) const GROUP_ROWS: usize = 64 * 1024;

/// A row group is ended with a rank when it has this many rows.
pub(crate) const GROUP_ROWS_AT_END_OF_RANK: usize = 16 * 1024;

/// A row group is ended when its lists and texts have this many entries and bytes together.
pub(crate) const GROUP_ENTRIES: usize = 2 << 20;

/// Longest list of an operation, and longest text in bytes.
pub(crate) const MAX_ENTRIES: usize = 1 << 20;

/// The most values that a column of a row group can have by the rules above.
pub(crate) const MAX_GROUP_VALUES: usize = GROUP_ENTRIES + MAX_ENTRIES + GROUP_ROWS;

/// A page is ended when it has this many bytes.
pub(crate) const PAGE_BYTES: usize = 64 * 1024;

/// Rows per page, which is also how many a cursor holds: fewer with more ranks, so that one cursor per rank
/// costs about 150 MB at most up to 30,000 ranks and 5 KB per rank above.
pub(crate) fn page_rows(header: &TraceHeader) -> usize {
    let rows = (1usize << 21) / (header.ranks.max(1) as usize);
    rows.clamp(64, 4096).next_power_of_two().min(4096)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::basic::{LogicalType, Repetition};
    use weft_trace::Kind;

    /// Catches a column that was added to the schema and not to the enum, or in another place.
    #[test]
    fn columns_lie_where_the_schema_has_them() {
        let schema = schema();
        let names: Vec<_> = schema.get_fields().iter().map(|field| field.name().to_owned()).collect();
        assert_eq!(names, Column::ALL.map(Column::name));
        for (index, column) in Column::ALL.into_iter().enumerate() {
            assert_eq!(column as usize, index);
        }
    }

    const PAGE: &str = include_str!("../../../../docs/src/formats/trace.md");

    /// The rows of the table under a heading of the page, as cells.
    fn table(heading: &str) -> Vec<Vec<&'static str>> {
        let (_, section) = PAGE.split_once(heading).expect("the page has the heading");
        let section = section.split("\n## ").next().unwrap();
        let rows = section.lines().filter(|line| line.starts_with("| `"));
        rows.map(|row| row.split('|').skip(1).map(str::trim).collect()).collect()
    }

    /// The type of a column in the words of the page.
    fn type_name(field: &Type) -> String {
        let null =
            if field.get_basic_info().repetition() == Repetition::OPTIONAL { ", may be null" } else { "" };
        let leaf = |field: &Type| match field.get_basic_info().logical_type_ref() {
            Some(LogicalType::String) => "string".to_owned(),
            Some(LogicalType::Integer(integer)) => {
                let sign = if integer.is_signed { "int" } else { "uint" };
                format!("{sign}{}", integer.bit_width)
            }
            _ => field.get_physical_type().to_string().to_lowercase(),
        };
        let name = match field.is_group() {
            true => format!("list of {}", leaf(&field.get_fields()[0].get_fields()[0])),
            false => leaf(field),
        };
        name + null
    }

    /// Catches a column that was added, renamed or given another type without the page saying so.
    #[test]
    fn the_page_has_the_columns_of_the_schema() {
        let schema = schema();
        let columns =
            schema.get_fields().iter().map(|field| (format!("`{}`", field.name()), type_name(field)));
        let page = table("## Columns").into_iter().map(|row| (row[0].to_owned(), row[1].to_owned()));
        assert_eq!(page.collect::<Vec<_>>(), columns.collect::<Vec<_>>());
    }

    /// Catches an operation that the page does not name.
    #[test]
    fn the_page_has_every_operation() {
        let rows = table("## Operations");
        let named: Vec<_> = rows.iter().flat_map(|row| row[0].split(", ")).collect();
        let known: Vec<_> = Kind::ALL.iter().map(|kind| format!("`{}`", kind.name())).collect();
        assert_eq!(named, known);
    }
}
