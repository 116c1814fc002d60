//! The computation of a reduction: the operation, and the type of the elements.
//!
//! A library of messages takes the same time for all of them. Hardware that reduces has a few only, so
//! whoever replays a trace asks for both.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The computation of a reduction on its elements, as far as the trace says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Reduction {
    /// The operation on two elements; `None`: the trace does not say, or the collective reduces nothing.
    pub operation: Option<ReductionOperation>,
    /// The type of the elements; `None`: the trace does not say, or the collective reduces nothing.
    pub data_type: Option<DataType>,
}

impl fmt::Display for Reduction {
    /// As far as it is known: `sum of float64`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.operation, self.data_type) {
            (Some(operation), Some(data_type)) => write!(f, "{operation} of {data_type}"),
            (Some(operation), None) => operation.fmt(f),
            (None, Some(data_type)) => write!(f, "unknown of {data_type}"),
            (None, None) => f.write_str("unknown"),
        }
    }
}

macro_rules! named {
    ($(#[$doc:meta])* $type:ident { $($name:literal $variant:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
        #[allow(missing_docs)] // Their names say it; the last is for those that are not listed.
        pub enum $type { $($variant,)* }

        impl $type {
            /// All of them, in the order of their numbers in a part of a recording.
            pub const ALL: &'static [$type] = &[$($type::$variant),*];

            /// The name in trace files and in messages.
            pub const fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)* }
            }

            /// The one of that name.
            pub fn from_name(name: &[u8]) -> Option<$type> {
                $type::ALL.iter().copied().find(|known| known.name().as_bytes() == name)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

named! {
    /// The operation of a reduction, by the names of the MPI standard (MPI-4.1, section 6.9.2). `Other` is
    /// one that the program has made.
    ReductionOperation {
        "max" Max,
        "min" Min,
        "sum" Sum,
        "prod" Product,
        "land" LogicalAnd,
        "band" BitwiseAnd,
        "lor" LogicalOr,
        "bor" BitwiseOr,
        "lxor" LogicalXor,
        "bxor" BitwiseXor,
        "minloc" MinLocation,
        "maxloc" MaxLocation,
        "other" Other,
    }
}

named! {
    /// The type of the elements of a reduction: by its width, as `MPI_LONG` differs between computers.
    /// `Other` is complex, logical, a pair, a byte without a meaning, or one that the program has made.
    DataType {
        "int8" Int8,
        "int16" Int16,
        "int32" Int32,
        "int64" Int64,
        "uint8" Uint8,
        "uint16" Uint16,
        "uint32" Uint32,
        "uint64" Uint64,
        "float32" Float32,
        "float64" Float64,
        "other" Other,
    }
}

impl DataType {
    /// The signed integer of so many bytes.
    pub const fn signed(bytes: u64) -> DataType {
        match bytes {
            1 => DataType::Int8,
            2 => DataType::Int16,
            4 => DataType::Int32,
            8 => DataType::Int64,
            _ => DataType::Other,
        }
    }

    /// The unsigned integer of so many bytes.
    pub const fn unsigned(bytes: u64) -> DataType {
        match bytes {
            1 => DataType::Uint8,
            2 => DataType::Uint16,
            4 => DataType::Uint32,
            8 => DataType::Uint64,
            _ => DataType::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches two of one name, and a name that reads back as another.
    #[test]
    fn every_name_reads_back() {
        for &operation in ReductionOperation::ALL {
            assert_eq!(ReductionOperation::from_name(operation.name().as_bytes()), Some(operation));
        }
        for &data_type in DataType::ALL {
            assert_eq!(DataType::from_name(data_type.name().as_bytes()), Some(data_type));
        }
        assert_eq!(ReductionOperation::from_name(b"MPI_SUM"), None);
        assert_eq!(DataType::from_name(b"long"), None);
    }
}
