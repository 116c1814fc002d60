//! Types of columns: quantities and ids with their type in the file and their unit.

use crate::row::{Column, RowGroup, Unreadable, next_column};
use parquet::basic::LogicalType;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{ByteArray, ByteArrayType, DataType as Physical, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::RowGroupReader;
use parquet::file::writer::SerializedColumnWriter;
use serde::Serialize;
use serde::ser::SerializeMap;
use std::fmt;
use weft_units::ledger::{LinkColumns, Shown, View as _};
use weft_units::{BitRate, Bytes, EndpointId, Energy, PacketCounts, PortId, RankId, Span, SwitchId, Time};

type Result<T, E = ParquetError> = std::result::Result<T, E>;

/// The type of a column in the file, by the name that readers of Parquet have for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataType {
    /// 32 bits with a sign.
    Int32,
    /// 32 bits without a sign.
    UInt32,
    /// 64 bits without a sign.
    UInt64,
    /// A double.
    Float64,
    /// A text.
    Utf8,
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl DataType {
    /// The meaning of a column's numbers or bytes; `None`: that of the physical type.
    pub(crate) fn logical(self) -> Option<LogicalType> {
        match self {
            DataType::Int32 | DataType::Float64 => None,
            DataType::UInt32 => Some(LogicalType::integer(32, false)),
            DataType::UInt64 => Some(LogicalType::integer(64, false)),
            DataType::Utf8 => Some(LogicalType::String),
        }
    }
}

/// A type that a row's field can have.
pub trait Cell: Sized {
    /// The type by which it is stored.
    type Physical: Physical;
    /// The type in the file.
    const DATA_TYPE: DataType;
    /// The unit, which ends the column's name; empty for counts, ids and texts.
    const UNIT: &'static str;
    /// Whether a row may leave it out.
    const NULLABLE: bool = false;
    /// The value that is stored; `None` only where [`Cell::NULLABLE`].
    fn stored(self) -> Option<<Self::Physical as Physical>::T>;
    /// The cell of a stored value; `None` where it cannot be of this type.
    fn of(stored: Option<<Self::Physical as Physical>::T>) -> Option<Self>;
}

/// One line per type: how it is stored, its unit, its value in that unit, and the type of that value.
macro_rules! cell {
    ($type:ty, $physical:ty, $data:ident, $unit:literal, $value:expr, $from:expr) => {
        impl Cell for $type {
            type Physical = $physical;
            const DATA_TYPE: DataType = DataType::$data;
            const UNIT: &'static str = $unit;
            fn stored(self) -> Option<<$physical as Physical>::T> {
                Some($value(self))
            }
            fn of(stored: Option<<$physical as Physical>::T>) -> Option<Self> {
                stored.and_then($from)
            }
        }
    };
}

/// The same of a quantity of 64 bits without a sign.
macro_rules! quantity {
    ($type:ty, $unit:literal, $value:expr, $from:expr) => {
        cell!($type, Int64Type, UInt64, $unit, |cell| $value(cell) as i64, |stored| Some($from(
            stored as u64
        )));
    };
}

/// The same of a number of 32 bits without a sign.
macro_rules! number {
    ($type:ty, $value:expr, $from:expr) => {
        cell!($type, Int32Type, UInt32, "", |cell: $type| $value(cell) as i32, |stored| Some($from(
            stored as u32
        )));
    };
}

quantity!(Time, "ps", Time::as_ps, Time::from_ps);
quantity!(Span, "ps", Span::as_ps, Span::from_ps);
quantity!(Energy, "pj", Energy::as_pj, Energy::from_pj);
quantity!(Bytes, "bytes", Bytes::get, Bytes::new);
quantity!(BitRate, "bits_per_second", BitRate::bits_per_second, BitRate::from_bits_per_second);
quantity!(u64, "", u64::from, u64::from);
number!(EndpointId, |id: EndpointId| id.0, EndpointId);
number!(SwitchId, |id: SwitchId| id.0, SwitchId);
number!(PortId, |id: PortId| id.0, PortId);
number!(RankId, |id: RankId| id.0, RankId);
number!(u32, u32::from, u32::from);
cell!(i32, Int32Type, Int32, "", i32::from, Some);
cell!(f64, DoubleType, Float64, "", f64::from, Some);
cell!(
    String,
    ByteArrayType,
    Utf8,
    "",
    |text: String| ByteArray::from(text.into_bytes()),
    |bytes: ByteArray| { String::from_utf8(bytes.data().to_vec()).ok() }
);

impl<T: Cell> Cell for Option<T> {
    type Physical = T::Physical;
    const DATA_TYPE: DataType = T::DATA_TYPE;
    const UNIT: &'static str = T::UNIT;
    const NULLABLE: bool = true;
    fn stored(self) -> Option<<T::Physical as Physical>::T> {
        self.and_then(T::stored)
    }
    fn of(stored: Option<<T::Physical as Physical>::T>) -> Option<Self> {
        match stored {
            None => Some(None),
            stored => T::of(stored).map(Some),
        }
    }
}

/// The cells of one field of a row: one, or several where the field is a struct of counters.
pub(crate) trait Cells: Sized {
    /// Reads them from a row group.
    type Reader;
    /// Their columns. `name` and `doc` are those of the field.
    fn columns(name: &'static str, doc: &[&str]) -> Vec<Column>;
    /// Writes them as the next columns of a row group.
    fn write(cells: impl Iterator<Item = Self> + Clone, group: &mut RowGroup<'_>) -> Result<()>;
    /// Opens their columns.
    fn open(group: &dyn RowGroupReader, name: &'static str) -> Result<Self::Reader, Unreadable>;
    /// Those of the next rows.
    fn next(reader: &mut Self::Reader, rows: usize) -> Result<Vec<Self>, Unreadable>;
    /// Puts them into a map by their names.
    fn show<M: SerializeMap>(&self, name: &'static str, map: &mut M) -> Result<(), M::Error>;
}

impl<C: Cell + Serialize> Cells for C {
    type Reader = CellReader<C>;

    fn columns(name: &'static str, doc: &[&str]) -> Vec<Column> {
        vec![Column::of::<C>(name, doc)]
    }

    fn write(cells: impl Iterator<Item = C> + Clone, group: &mut RowGroup<'_>) -> Result<()> {
        write(cells, next_column(group)?)
    }

    fn open(group: &dyn RowGroupReader, name: &'static str) -> Result<CellReader<C>, Unreadable> {
        CellReader::open(group, name)
    }

    fn next(reader: &mut CellReader<C>, rows: usize) -> Result<Vec<C>, Unreadable> {
        reader.next(rows)
    }

    fn show<M: SerializeMap>(&self, name: &'static str, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry(name, self)
    }
}

/// The counts of a link: a column for each that the view shows.
impl Cells for PacketCounts {
    type Reader = Vec<CellReader<u64>>;

    fn columns(_: &'static str, _: &[&str]) -> Vec<Column> {
        let column = |shown: &Shown| Column { unit: shown.unit, ..Column::of::<u64>(shown.name, shown.doc) };
        LinkColumns::SHOWN.iter().map(column).collect()
    }

    fn write(cells: impl Iterator<Item = PacketCounts> + Clone, group: &mut RowGroup<'_>) -> Result<()> {
        let numbers = |shown: &Shown| {
            let get = shown.get;
            write(cells.clone().map(move |counts| get(&counts)), next_column(group)?)
        };
        LinkColumns::SHOWN.iter().try_for_each(numbers)
    }

    fn open(group: &dyn RowGroupReader, _: &'static str) -> Result<Vec<CellReader<u64>>, Unreadable> {
        LinkColumns::SHOWN.iter().map(|shown| CellReader::open(group, shown.name)).collect()
    }

    fn next(readers: &mut Vec<CellReader<u64>>, rows: usize) -> Result<Vec<PacketCounts>, Unreadable> {
        let mut all = vec![PacketCounts::default(); rows];
        for (shown, reader) in LinkColumns::SHOWN.iter().zip(readers) {
            all.iter_mut().zip(reader.next(rows)?).for_each(|(counts, number)| (shown.set)(counts, number));
        }
        Ok(all)
    }

    fn show<M: SerializeMap>(&self, _: &'static str, map: &mut M) -> Result<(), M::Error> {
        LinkColumns::SHOWN.iter().try_for_each(|shown| map.serialize_entry(shown.name, &(shown.get)(self)))
    }
}

/// Writes the cells of one row group as a column.
fn write<C: Cell>(cells: impl Iterator<Item = C>, mut column: SerializedColumnWriter<'_>) -> Result<()> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    for cell in cells {
        let stored = cell.stored();
        levels.push(i16::from(stored.is_some()));
        values.extend(stored);
    }
    column.typed::<C::Physical>().write_batch(&values, C::NULLABLE.then_some(&levels), None)?;
    column.close()
}

/// Reads a column of a row group.
pub(crate) struct CellReader<C: Cell> {
    name: &'static str,
    reader: ColumnReaderImpl<C::Physical>,
    /// Whether the file may leave out values.
    nullable: bool,
}

impl<C: Cell> CellReader<C> {
    /// The column of a name, which must be of the cell's type.
    fn open(group: &dyn RowGroupReader, name: &'static str) -> Result<CellReader<C>, Unreadable> {
        let columns = group.metadata().schema_descr().columns();
        let found = columns.iter().position(|column| column.path().parts() == [name]);
        let Some(number) = found.filter(|&number| {
            let column = &columns[number];
            column.logical_type_ref().cloned() == C::DATA_TYPE.logical() && column.max_rep_level() == 0
        }) else {
            return Err(Unreadable::Column(name));
        };
        let nullable = columns[number].max_def_level() > 0;
        let reader = C::Physical::get_column_reader(group.get_column_reader(number)?);
        Ok(CellReader { name, reader: reader.ok_or(Unreadable::Column(name))?, nullable })
    }

    /// The next cells. None of them may lack a value, or have one that means nothing.
    fn next(&mut self, rows: usize) -> Result<Vec<C>, Unreadable> {
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        let (records, ..) = self.reader.read_records(rows, Some(&mut levels), None, &mut values)?;
        if records < rows {
            return Err(Unreadable::Column(self.name));
        }
        if !self.nullable {
            levels = vec![1; records];
        }
        let mut values = values.into_iter();
        let cells = levels.into_iter().map(|level| C::of(if level > 0 { values.next() } else { None }));
        cells.collect::<Option<_>>().ok_or(Unreadable::Column(self.name))
    }
}
