//! Atomic operations: element by element, on bytes in the order of the machine (little-endian).
//!
//! Integers wrap around. `PTL_LONG_DOUBLE` and its complex are not computed: their width differs from
//! machine to machine.

use serde::{Deserialize, Serialize};

/// An operation (`ptl_op_t`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum AtomicOperation {
    Min,
    Max,
    Sum,
    Product,
    LogicalOr,
    LogicalAnd,
    BitOr,
    BitAnd,
    LogicalXor,
    BitXor,
    Swap,
    /// Swaps where the operand equals what is there.
    SwapIfEqual,
    SwapIfNotEqual,
    /// Swaps where the operand is at most what is there.
    SwapIfLessOrEqual,
    SwapIfLess,
    SwapIfGreaterOrEqual,
    SwapIfGreater,
    /// Swaps the bits that are set in the operand.
    MaskedSwap,
}

impl AtomicOperation {
    /// Whether it is a swap that needs an operand.
    pub fn takes_operand(self) -> bool {
        use AtomicOperation as O;
        let compares = matches!(self, O::SwapIfEqual | O::SwapIfNotEqual | O::SwapIfLessOrEqual);
        compares || matches!(self, O::SwapIfLess | O::SwapIfGreaterOrEqual | O::SwapIfGreater | O::MaskedSwap)
    }

    /// Whether it is defined for elements of a type.
    pub fn is_for(self, data_type: DataType) -> bool {
        use AtomicOperation as O;
        match data_type {
            DataType::Float | DataType::Double => !matches!(
                self,
                O::LogicalOr
                    | O::LogicalAnd
                    | O::LogicalXor
                    | O::BitOr
                    | O::BitAnd
                    | O::BitXor
                    | O::MaskedSwap
            ),
            DataType::FloatComplex | DataType::DoubleComplex => {
                matches!(self, O::Sum | O::Product | O::Swap | O::SwapIfEqual | O::SwapIfNotEqual)
            }
            _ => true,
        }
    }
}

/// The type of the elements (`ptl_datatype_t`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum DataType {
    Int8,
    Uint8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Uint64,
    Float,
    FloatComplex,
    Double,
    DoubleComplex,
}

impl DataType {
    /// Bytes of an element.
    pub const fn width(self) -> usize {
        match self {
            DataType::Int8 | DataType::Uint8 => 1,
            DataType::Int16 | DataType::Uint16 => 2,
            DataType::Int32 | DataType::Uint32 | DataType::Float => 4,
            DataType::Int64 | DataType::Uint64 | DataType::Double | DataType::FloatComplex => 8,
            DataType::DoubleComplex => 16,
        }
    }
}

/// Arithmetic of one type of elements.
trait Element: Copy + PartialEq + PartialOrd {
    fn read(bytes: &[u8]) -> Option<Self>;
    fn write(self, bytes: &mut [u8]);
    fn combine(self, with: Self, operation: AtomicOperation) -> Self;
    fn mask(self, with: Self, mask: Self) -> Self;
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Element for $type {
            fn read(bytes: &[u8]) -> Option<$type> {
                Some(<$type>::from_le_bytes(bytes.try_into().ok()?))
            }

            fn write(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }

            fn combine(self, with: $type, operation: AtomicOperation) -> $type {
                use AtomicOperation as O;
                let truth = <$type>::from;
                match operation {
                    O::Min => self.min(with),
                    O::Max => self.max(with),
                    O::Sum => self.wrapping_add(with),
                    O::Product => self.wrapping_mul(with),
                    O::LogicalOr => truth((self != 0 || with != 0) as u8 as $type),
                    O::LogicalAnd => truth((self != 0 && with != 0) as u8 as $type),
                    O::LogicalXor => truth(((self != 0) != (with != 0)) as u8 as $type),
                    O::BitOr => self | with,
                    O::BitAnd => self & with,
                    O::BitXor => self ^ with,
                    _ => with,
                }
            }

            fn mask(self, with: $type, mask: $type) -> $type {
                self & !mask | with & mask
            }
        }
    )*};
}

macro_rules! floats {
    ($($type:ty)*) => {$(
        impl Element for $type {
            fn read(bytes: &[u8]) -> Option<$type> {
                Some(<$type>::from_le_bytes(bytes.try_into().ok()?))
            }

            fn write(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }

            fn combine(self, with: $type, operation: AtomicOperation) -> $type {
                match operation {
                    AtomicOperation::Min => if with < self { with } else { self },
                    AtomicOperation::Max => if with > self { with } else { self },
                    AtomicOperation::Sum => self + with,
                    AtomicOperation::Product => self * with,
                    _ => with,
                }
            }

            fn mask(self, with: $type, _: $type) -> $type {
                with
            }
        }
    )*};
}

integers!(i8 u8 i16 u16 i32 u32 i64 u64);
floats!(f32 f64);

/// A complex number: real part, then imaginary.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Complex<T>(T, T);

macro_rules! complexes {
    ($($type:ty)*) => {$(
        impl Element for Complex<$type> {
            fn read(bytes: &[u8]) -> Option<Self> {
                let (real, imaginary) = bytes.split_at(bytes.len() / 2);
                Some(Complex(<$type>::read(real)?, <$type>::read(imaginary)?))
            }

            fn write(self, bytes: &mut [u8]) {
                let middle = bytes.len() / 2;
                let (real, imaginary) = bytes.split_at_mut(middle);
                self.0.write(real);
                self.1.write(imaginary);
            }

            fn combine(self, with: Self, operation: AtomicOperation) -> Self {
                let (Complex(a, b), Complex(c, d)) = (self, with);
                match operation {
                    AtomicOperation::Sum => Complex(a + c, b + d),
                    AtomicOperation::Product => Complex(a * c - b * d, a * d + b * c),
                    _ => with,
                }
            }

            fn mask(self, with: Self, _: Self) -> Self {
                with
            }
        }
    )*};
}

complexes!(f32 f64);

fn each<T: Element>(
    memory: &mut [u8],
    data: &[u8],
    operand: &[u8],
    (operation, width): (AtomicOperation, usize),
) {
    use AtomicOperation as O;
    let compared = T::read(operand.get(..width).unwrap_or_default());
    for (place, with) in memory.chunks_exact_mut(width).zip(data.chunks_exact(width)) {
        let (Some(old), Some(new)) = (T::read(place), T::read(with)) else { continue };
        let swaps = |wanted: fn(&T, &T) -> bool| match compared {
            Some(operand) if wanted(&operand, &old) => new,
            _ => old,
        };
        let result = match operation {
            O::SwapIfEqual => swaps(T::eq),
            O::SwapIfNotEqual => swaps(T::ne),
            O::SwapIfLessOrEqual => swaps(T::le),
            O::SwapIfLess => swaps(T::lt),
            O::SwapIfGreaterOrEqual => swaps(T::ge),
            O::SwapIfGreater => swaps(T::gt),
            O::MaskedSwap => compared.map_or(old, |mask| old.mask(new, mask)),
            _ => old.combine(new, operation),
        };
        result.write(place);
    }
}

/// Applies an operation to the elements in `memory`. `operand` is that of a swap that compares or masks.
pub fn apply(memory: &mut [u8], (data, operand): (&[u8], &[u8]), operation: AtomicOperation, of: DataType) {
    let how = (operation, of.width());
    match of {
        DataType::Int8 => each::<i8>(memory, data, operand, how),
        DataType::Uint8 => each::<u8>(memory, data, operand, how),
        DataType::Int16 => each::<i16>(memory, data, operand, how),
        DataType::Uint16 => each::<u16>(memory, data, operand, how),
        DataType::Int32 => each::<i32>(memory, data, operand, how),
        DataType::Uint32 => each::<u32>(memory, data, operand, how),
        DataType::Int64 => each::<i64>(memory, data, operand, how),
        DataType::Uint64 => each::<u64>(memory, data, operand, how),
        DataType::Float => each::<f32>(memory, data, operand, how),
        DataType::FloatComplex => each::<Complex<f32>>(memory, data, operand, how),
        DataType::Double => each::<f64>(memory, data, operand, how),
        DataType::DoubleComplex => each::<Complex<f64>>(memory, data, operand, how),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_i32(old: i32, new: i32, operand: i32, operation: AtomicOperation) -> i32 {
        let mut memory = old.to_le_bytes();
        apply(&mut memory, (&new.to_le_bytes(), &operand.to_le_bytes()), operation, DataType::Int32);
        i32::from_le_bytes(memory)
    }

    /// Catches an operation that does the work of another, and a comparison the wrong way round.
    #[test]
    fn each_operation_has_its_result() {
        use AtomicOperation as O;
        let results = [
            (O::Min, 3),
            (O::Max, 5),
            (O::Sum, 8),
            (O::Product, 15),
            (O::LogicalOr, 1),
            (O::LogicalAnd, 1),
            (O::LogicalXor, 0),
            (O::BitOr, 7),
            (O::BitAnd, 1),
            (O::BitXor, 6),
            (O::Swap, 3),
            (O::SwapIfEqual, 5),
            (O::SwapIfNotEqual, 3),
            (O::SwapIfLessOrEqual, 3),
            (O::SwapIfLess, 3),
            (O::SwapIfGreaterOrEqual, 5),
            (O::SwapIfGreater, 5),
            (O::MaskedSwap, 3),
        ];
        for (operation, result) in results {
            // 5 is there, 3 comes, 2 is the operand; the mask takes the bit of 2 from 3: 5 & !2 | 3 & 2 = 7.
            let expected = if operation == O::MaskedSwap { 7 } else { result };
            assert_eq!(on_i32(5, 3, 2, operation), expected, "{operation:?}");
        }
        assert_eq!(on_i32(i32::MAX, 1, 0, O::Sum), i32::MIN);
        assert_eq!(on_i32(5, 3, 5, O::SwapIfEqual), 3);
    }

    /// Catches elements of another width, and an imaginary part that is left out.
    #[test]
    fn elements_have_the_width_of_their_type() {
        let mut memory = [1u8, 255, 7];
        apply(&mut memory, (&[1, 1], &[]), AtomicOperation::Sum, DataType::Uint8);
        assert_eq!(memory, [2, 0, 7]);
        let complex = |a: f64, b: f64| [a.to_le_bytes(), b.to_le_bytes()].concat();
        let mut memory = complex(1.0, 2.0);
        let by = complex(3.0, -1.0);
        apply(&mut memory, (&by, &[]), AtomicOperation::Product, DataType::DoubleComplex);
        assert_eq!(memory, complex(5.0, 5.0));
    }
}
