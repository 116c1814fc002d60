//! The datatypes of SimGrid, which its traces name by number.

use weft_trace::DataType;
use weft_trace::op::CollectiveSizes;

/// Bytes and type of each, by its number. A character and a wide one are no numbers to be reduced.
const DATATYPES: [(u64, DataType); 25] = [
    (8, DataType::Float64),
    (4, DataType::Int32),
    (1, DataType::Other),
    (2, DataType::Int16),
    (8, DataType::Int64),
    (4, DataType::Float32),
    (1, DataType::Other),
    (8, DataType::Int64),
    (1, DataType::Int8),
    (1, DataType::Uint8),
    (2, DataType::Uint16),
    (4, DataType::Uint32),
    (8, DataType::Uint64),
    (8, DataType::Uint64),
    (16, DataType::Other),
    (4, DataType::Other),
    (1, DataType::Other),
    (1, DataType::Int8),
    (2, DataType::Int16),
    (4, DataType::Int32),
    (8, DataType::Int64),
    (1, DataType::Uint8),
    (2, DataType::Uint16),
    (4, DataType::Uint32),
    (8, DataType::Uint64),
];

/// Datatypes by the bytes of one, where the type is not known: byte, short, int, double and long double.
const BY_SIZE: [(u64, u32); 5] = [(1, BYTE), (2, 3), (4, 1), (8, 0), (16, 14)];

/// The number of `MPI_BYTE`.
pub(super) const BYTE: u32 = 6;

/// Bytes and type of the datatype of this number.
pub(super) fn datatype(number: usize) -> Option<(u64, DataType)> {
    DATATYPES.get(number).copied()
}

/// The number of elements in some bytes of a collective, and the number of their datatype: bytes, where no
/// datatype fits.
pub(super) fn elements(bytes: u64, sizes: &CollectiveSizes) -> (u64, u32) {
    let size = u64::from(sizes.element);
    let fits = size > 0 && bytes.is_multiple_of(size);
    let known = sizes.reduction.data_type.filter(|known| *known != DataType::Other);
    let named = known.and_then(|known| DATATYPES.iter().zip(0..).find(|(row, _)| **row == (size, known)));
    let named = named.map(|(_, number)| number);
    let by_size = || BY_SIZE.iter().find(|row| row.0 == size).map(|row| row.1);
    match named.or_else(by_size).filter(|_| fits) {
        Some(number) => (bytes / size, number),
        None => (bytes, BYTE),
    }
}
