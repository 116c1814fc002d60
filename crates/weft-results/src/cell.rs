//! Types of columns: quantities and ids with their Arrow type and their unit.

use arrow_array::{ArrayRef, Float64Array, Int32Array, StringArray, UInt32Array, UInt64Array};
use arrow_schema::DataType;
use std::sync::Arc;
use weft_units::{BitRate, Bytes, EndpointId, PortId, RankId, Span, SwitchId, Time};

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
}

/// One line per type: how it is stored, its unit, and its value in that unit.
macro_rules! cell {
    ($type:ty, $array:ty, $data:expr, $unit:literal, $value:expr) => {
        impl Cell for $type {
            const DATA_TYPE: DataType = $data;
            const UNIT: &'static str = $unit;
            fn column(cells: impl Iterator<Item = Option<Self>>) -> ArrayRef {
                Arc::new(cells.map(|cell| cell.map($value)).collect::<$array>())
            }
        }
    };
}

cell!(Time, UInt64Array, DataType::UInt64, "ps", Time::as_ps);
cell!(Span, UInt64Array, DataType::UInt64, "ps", Span::as_ps);
cell!(Bytes, UInt64Array, DataType::UInt64, "bytes", Bytes::get);
cell!(BitRate, UInt64Array, DataType::UInt64, "bits_per_second", BitRate::bits_per_second);
cell!(EndpointId, UInt32Array, DataType::UInt32, "", |id| id.0);
cell!(SwitchId, UInt32Array, DataType::UInt32, "", |id| id.0);
cell!(PortId, UInt32Array, DataType::UInt32, "", |id| id.0);
cell!(RankId, UInt32Array, DataType::UInt32, "", |id| id.0);
cell!(u32, UInt32Array, DataType::UInt32, "", |n| n);
cell!(u64, UInt64Array, DataType::UInt64, "", |n| n);
cell!(i32, Int32Array, DataType::Int32, "", |n| n);
cell!(f64, Float64Array, DataType::Float64, "", |n| n);
cell!(String, StringArray, DataType::Utf8, "", |text| text);

impl<T: Cell> Cell for Option<T> {
    const DATA_TYPE: DataType = T::DATA_TYPE;
    const UNIT: &'static str = T::UNIT;
    const NULLABLE: bool = true;
    fn column(cells: impl Iterator<Item = Option<Self>>) -> ArrayRef {
        T::column(cells.map(Option::flatten))
    }
}
