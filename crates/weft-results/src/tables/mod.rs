//! The tables of a result: a file for the rows of each, and one line here.
//!
//! The first column of every table is `run`: a command that measures several loads and seeds makes
//! several runs, each with a virtual time of its own, and lists them in `run.json` under `rows`.
//! Quantities come from the checked types, so a column's unit cannot be another than its type's.

use crate::row::{Column, Row, WrittenBy};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A row of one of the tables.
pub trait TableRow: Row {
    /// The table.
    const TABLE: Table;
}

/// An operation on a table that depends on the type of its rows.
pub(crate) trait WithRow {
    /// The outcome.
    type Output;
    /// Does it for a table of these rows.
    fn with<R: TableRow>(self) -> Self::Output;
}

/// Declares the tables, in the order in which they are listed: the file of the rows, which is also the name,
/// and the name in code. All that is done with every table is made of this list.
macro_rules! tables {
    ($($name:ident: $table:ident($row:ident),)+) => {
        $(
            mod $name;
            pub use $name::$row;
            impl TableRow for $row {
                const TABLE: Table = Table::$table;
            }
        )+

        /// The tables, in the order in which they are listed.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Table {
            $(
                #[doc = concat!("Of [`", stringify!($row), "`].")]
                $table,
            )+
        }

        impl Table {
            /// All of them.
            pub const ALL: [Table; [$(Table::$table),+].len()] = [$(Table::$table),+];

            /// As it is written in options; its file is `NAME.parquet`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Table::$table => stringify!($name),)+
                }
            }

            /// The reason for which it is written.
            const fn reason(self) -> WrittenBy {
                match self {
                    $(Table::$table => <$row as Row>::WRITTEN_BY,)+
                }
            }

            /// Does what depends on the type of its rows.
            pub(crate) fn with_row<W: WithRow>(self, what: W) -> W::Output {
                match self {
                    $(Table::$table => what.with::<$row>(),)+
                }
            }
        }
    };
}

// ANCHOR: tables
tables! {
    messages: Messages(MessageRow),
    flows: Flows(FlowRow),
    links: Links(LinkRow),
    ranks: Ranks(RankRow),
    calls: Calls(CallRow),
    kernels: Kernels(KernelRow),
    parts: Parts(PartRow),
    pieces: Pieces(MessagePieceRow),
    packets: Packets(PacketRow),
    rates: Rates(RateRow),
    queues: Queues(QueueRow),
    flow_rates: FlowRates(FlowRateRow),
    job_rates: JobRates(JobRateRow),
    job_links: JobLinks(JobLinkRow),
}
// ANCHOR_END: tables

pub use rates::{INTERVALS_PER_COARSER, TELEMETRY_LEVELS};

/// The declaration of a table, as data.
#[derive(Clone, PartialEq, Debug)]
pub struct TableDeclaration {
    /// Raised when a column changes its name, its type or its meaning, or goes.
    pub version: u32,
    /// The meaning of the table, in one or a few sentences.
    pub doc: String,
    /// The columns in the order of the file.
    pub columns: Vec<Column>,
    /// The reason for which it is written.
    pub written_by: WrittenBy,
    /// The options that write it, with the commands that know them.
    pub options: &'static str,
}

struct Declare;

impl WithRow for Declare {
    type Output = TableDeclaration;

    fn with<R: TableRow>(self) -> TableDeclaration {
        TableDeclaration {
            version: R::VERSION,
            doc: R::DOC.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" "),
            columns: R::columns(),
            written_by: R::WRITTEN_BY,
            options: R::OPTIONS,
        }
    }
}

impl Table {
    /// The declaration of its rows.
    pub fn declaration(self) -> TableDeclaration {
        self.with_row(Declare)
    }

    /// The name of its file.
    pub(crate) fn file(self) -> String {
        format!("{}.parquet", self.name())
    }

    /// Those that can be asked for by name.
    pub fn named() -> Vec<Table> {
        Table::written_by(&[WrittenBy::Default, WrittenBy::Name])
    }

    /// Those written unless others are asked for.
    pub fn defaults() -> Vec<Table> {
        Table::written_by(&[WrittenBy::Default])
    }

    fn written_by(these: &[WrittenBy]) -> Vec<Table> {
        Table::ALL.into_iter().filter(|table| these.contains(&table.reason())).collect()
    }

    /// The table of a name.
    pub(crate) fn by_name(name: &str) -> Option<Table> {
        Table::ALL.into_iter().find(|table| table.name() == name)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Table {
    type Err = String;
    fn from_str(text: &str) -> Result<Table, String> {
        let known = || Table::named().into_iter().map(Table::name).collect::<Vec<_>>().join(", ");
        let Some(table) = Table::by_name(text.trim()) else {
            return Err(format!("there is no table `{text}`; choose from {}", known()));
        };
        if table.reason() != WrittenBy::Option {
            return Ok(table);
        }
        let options = table.declaration().options;
        let option = options.split([' ', ',']).next().unwrap_or(options);
        Err(format!("{option} writes `{table}`; choose from {} here", known()))
    }
}

/// By its name.
impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Table {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Table, D::Error> {
        let name = String::deserialize(deserializer)?;
        Table::by_name(&name).ok_or_else(|| D::Error::custom(format!("there is no table `{name}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a column whose unit is not in its name, such as `busy: Span`.
    #[test]
    fn units_end_the_names_of_columns() {
        let all = Table::ALL.map(|table| table.declaration().columns).concat();
        for column in all.iter().filter(|c| !c.unit.is_empty()) {
            assert!(column.name.ends_with(&format!("_{}", column.unit)), "{}", column.name);
        }
        assert!(all.iter().filter(|c| !c.unit.is_empty()).count() > 15);
    }

    /// Catches a table whose file has no column to tell runs apart.
    #[test]
    fn every_table_begins_with_the_run() {
        for table in Table::ALL {
            assert_eq!(table.declaration().columns[0].name, "run", "{table}");
        }
    }

    #[test]
    fn a_wrong_table_names_the_right_ones() {
        assert_eq!("links".parse(), Ok(Table::Links));
        assert!("hosts".parse::<Table>().unwrap_err().contains("messages, flows, links, ranks"));
        assert!("queues".parse::<Table>().unwrap_err().contains("--telemetry writes"));
        assert!("pieces".parse::<Table>().unwrap_err().contains("--breakdown writes"));
    }
}
