//! Types of columns: quantities and ids with their Arrow type and their unit.

use arrow_array::{Array, ArrayRef, Float64Array, Int32Array, StringArray, UInt32Array, UInt64Array};
use arrow_schema::DataType;
use std::sync::Arc;
use weft_units::{BitRate, Bytes, EndpointId, Energy, PortId, RankId, Span, SwitchId, Time};

/// A type that a row's field can have.
pub trait Cell: Sized {
    /// The type in the file.
    const DATA_TYPE: DataType;
    /// The unit, which ends the column's name; empty for counts, ids and texts.
    const UNIT: &'static str;
    /// Whether a row may leave it out.
    const NULLABLE: bool = false;
    /// The cells of one row group as a column; `None` only where [`Cell::NULLABLE`].
    fn column(cells: impl Iterator<Item = Option<Self>>) -> ArrayRef;
    /// The cell of a row of such a column; `None` where the column has another type, or nothing there.
    fn read(column: &dyn Array, row: usize) -> Option<Self>;
}

/// One line per type: how it is stored, its unit, its value in that unit, and the type of that value.
macro_rules! cell {
    ($type:ty, $array:ty, $data:expr, $unit:literal, $value:expr, $from:expr) => {
        impl Cell for $type {
            const DATA_TYPE: DataType = $data;
            const UNIT: &'static str = $unit;
            fn column(cells: impl Iterator<Item = Option<Self>>) -> ArrayRef {
                Arc::new(cells.map(|cell| cell.map($value)).collect::<$array>())
            }
            fn read(column: &dyn Array, row: usize) -> Option<Self> {
                let array = column.as_any().downcast_ref::<$array>()?;
                (!array.is_null(row)).then(|| $from(array.value(row)))
            }
        }
    };
}

cell!(Time, UInt64Array, DataType::UInt64, "ps", Time::as_ps, Time::from_ps);
cell!(Span, UInt64Array, DataType::UInt64, "ps", Span::as_ps, Span::from_ps);
cell!(Energy, UInt64Array, DataType::UInt64, "pj", Energy::as_pj, Energy::from_pj);
cell!(Bytes, UInt64Array, DataType::UInt64, "bytes", Bytes::get, Bytes::new);
cell!(
    BitRate,
    UInt64Array,
    DataType::UInt64,
    "bits_per_second",
    BitRate::bits_per_second,
    BitRate::from_bits_per_second
);
cell!(EndpointId, UInt32Array, DataType::UInt32, "", |id| id.0, EndpointId);
cell!(SwitchId, UInt32Array, DataType::UInt32, "", |id| id.0, SwitchId);
cell!(PortId, UInt32Array, DataType::UInt32, "", |id| id.0, PortId);
cell!(RankId, UInt32Array, DataType::UInt32, "", |id| id.0, RankId);
cell!(u32, UInt32Array, DataType::UInt32, "", |n| n, |n| n);
cell!(u64, UInt64Array, DataType::UInt64, "", |n| n, |n| n);
cell!(i32, Int32Array, DataType::Int32, "", |n| n, |n| n);
cell!(f64, Float64Array, DataType::Float64, "", |n| n, |n| n);
cell!(String, StringArray, DataType::Utf8, "", |text| text, str::to_owned);

impl<T: Cell> Cell for Option<T> {
    const DATA_TYPE: DataType = T::DATA_TYPE;
    const UNIT: &'static str = T::UNIT;
    const NULLABLE: bool = true;
    fn column(cells: impl Iterator<Item = Option<Self>>) -> ArrayRef {
        T::column(cells.map(Option::flatten))
    }
    fn read(column: &dyn Array, row: usize) -> Option<Self> {
        // A column of another type is no row without a value.
        (*column.data_type() == T::DATA_TYPE).then(|| T::read(column, row))
    }
}
