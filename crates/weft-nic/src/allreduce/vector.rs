//! The arithmetic of the reduction modules: one vector from two, element by element.
//!
//! The lower operand is that of the lower ranks. Sums of integers wrap around; a sum that is no number is
//! the canonical NaN; a minimum or maximum is the upper operand where it compares less or greater, and
//! else the lower one. So the result is settled bit by bit, and the same at every module.
//!
//! # Source
//! TR-488 §4.7: sum, min, max; int, float, double.

use serde::{Deserialize, Serialize};

/// An arithmetic operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Operation {
    /// The sum.
    Sum,
    /// The least.
    Min,
    /// The greatest.
    Max,
}

/// The type of the elements, little-endian.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum DataType {
    /// Signed, 32 bits.
    Int,
    /// IEEE 754 binary32.
    Float,
    /// IEEE 754 binary64.
    Double,
}

impl DataType {
    /// Bytes of an element.
    pub const fn width(self) -> usize {
        match self {
            DataType::Int | DataType::Float => 4,
            DataType::Double => 8,
        }
    }
}

/// The allreduce of these vectors, in the documented order and without any machine: boards of `board`
/// vectors each in rank order, then pairs of boards. At least one vector, and a power of two of boards.
pub fn reference(vectors: &[Vec<u8>], board: usize, operation: Operation, data_type: DataType) -> Vec<u8> {
    let fold = |group: &[Vec<u8>]| {
        let mut all = group.iter().cloned();
        let first = all.next().unwrap_or_default();
        all.fold(first, |mut low, high| {
            reduce(&mut low, &high, operation, data_type);
            low
        })
    };
    let mut boards: Vec<Vec<u8>> = vectors.chunks(board.max(1)).map(fold).collect();
    while boards.len() > 1 {
        boards = boards.chunks(2).map(fold).collect();
    }
    boards.pop().unwrap_or_default()
}

/// Reduces `upper` into `lower`, both of one length; bytes beyond the last whole element stay.
pub fn reduce(lower: &mut [u8], upper: &[u8], operation: Operation, data_type: DataType) {
    match data_type {
        DataType::Int => each(lower, upper, |a, b| {
            let (a, b) = (i32::from_le_bytes(a), i32::from_le_bytes(b));
            let result = match operation {
                Operation::Sum => a.wrapping_add(b),
                Operation::Min => a.min(b),
                Operation::Max => a.max(b),
            };
            result.to_le_bytes()
        }),
        DataType::Float => each(lower, upper, |a, b| {
            let (a, b) = (f32::from_le_bytes(a), f32::from_le_bytes(b));
            let sum = a + b;
            let result = match operation {
                Operation::Sum if sum.is_nan() => f32::from_bits(0x7FC0_0000),
                Operation::Sum => sum,
                Operation::Min if b < a => b,
                Operation::Max if b > a => b,
                _ => a,
            };
            result.to_le_bytes()
        }),
        DataType::Double => each(lower, upper, |a, b| {
            let (a, b) = (f64::from_le_bytes(a), f64::from_le_bytes(b));
            let sum = a + b;
            let result = match operation {
                Operation::Sum if sum.is_nan() => f64::from_bits(0x7FF8_0000_0000_0000),
                Operation::Sum => sum,
                Operation::Min if b < a => b,
                Operation::Max if b > a => b,
                _ => a,
            };
            result.to_le_bytes()
        }),
    }
}

fn each<const N: usize>(lower: &mut [u8], upper: &[u8], combine: impl Fn([u8; N], [u8; N]) -> [u8; N]) {
    for (low, high) in lower.as_chunks_mut::<N>().0.iter_mut().zip(upper.as_chunks::<N>().0) {
        *low = combine(*low, *high);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubles(values: &[f64]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    /// Catches operands that are swapped: of -0 and +0 neither is less, so the lower one stays.
    #[test]
    fn the_lower_operand_stays_where_neither_is_less() {
        for operation in [Operation::Min, Operation::Max] {
            let mut lower = doubles(&[0.0, -0.0, f64::NAN, 1.0]);
            let before = lower.clone();
            reduce(&mut lower, &doubles(&[-0.0, 0.0, 1.0, f64::NAN]), operation, DataType::Double);
            assert_eq!(lower, before);
        }
    }

    #[test]
    fn each_type_and_operation_is_what_it_says() {
        let ints = |values: [i32; 3]| values.map(i32::to_le_bytes).concat();
        let cases = [
            (Operation::Sum, ints([i32::MIN, 5, -1])),
            (Operation::Min, ints([1, -2, -8])),
            (Operation::Max, ints([i32::MAX, 7, 7])),
        ];
        for (operation, expected) in cases {
            let mut lower = ints([i32::MAX, 7, -8]);
            reduce(&mut lower, &ints([1, -2, 7]), operation, DataType::Int);
            assert_eq!(lower, expected, "{operation:?}");
        }
        let floats = |values: [f32; 2]| values.map(f32::to_le_bytes).concat();
        let mut lower = floats([1.5, f32::INFINITY]);
        reduce(&mut lower, &floats([2.25, f32::NEG_INFINITY]), Operation::Sum, DataType::Float);
        assert_eq!(lower, [3.75f32.to_le_bytes(), 0x7FC0_0000u32.to_le_bytes()].concat());
        let mut lower = doubles(&[1.0, 4.0]);
        reduce(&mut lower, &doubles(&[0.5, 5.0]), Operation::Max, DataType::Double);
        assert_eq!(lower, doubles(&[1.0, 5.0]));
    }
}
