//! Exponential times, from −ln(u) in fixed point.
//!
//! ```text
//!  u = draw / 2⁶⁴ = m · 2^-(k+1)      m in [1, 2), k leading zeros of the draw
//!  −ln(u) = (k+1) · ln 2 − ln(m)
//!  m · r_i = 1 + t,  |t| ≤ 2⁻⁸        r_i: the reciprocal of the middle of m's slice i of 128
//!  ln(m)  = −ln(r_i) + t − t²/2 + t³/3 − t⁴/4
//! ```
//!
//! The first term left out, t⁵/5, is below 2⁻⁴²: more than 40 good bits. Table-driven reduction after
//! P. Tang, "Table-driven implementation of the logarithm function in IEEE floating-point
//! arithmetic", ACM TOMS 16(4), 1990; here the tables are computed by the compiler, in integers.

use weft_units::Span;

/// Fraction bits of [`neg_ln`].
pub const FRACTION_BITS: u32 = 56;

/// Bits of m that select a slice.
const SLICE_BITS: u32 = 7;
const SLICES: usize = 1 << SLICE_BITS;

/// 1 in the format of the tables and of m: 63 fraction bits.
const ONE: u64 = 1 << 63;

const LN_2: u64 = ln(2 * ONE as u128);

/// (r_i, −ln(r_i)), both with 63 fraction bits.
const TABLE: [(u64, u64); SLICES] = {
    let mut table = [(0, 0); SLICES];
    let mut slice = 0;
    while slice < SLICES {
        // The middle of slice i lies at (2i + 1 + 2·128) / (2·128).
        let middle = 2 * slice as u128 + 1 + 2 * SLICES as u128;
        let reciprocal = ((2 * SLICES as u128) << 63) / middle;
        table[slice] = (reciprocal as u64, ln((ONE as u128 * ONE as u128) / reciprocal));
        slice += 1;
    }
    table
};

/// ln(x) for x in [1, 2], both with 63 fraction bits: 2·artanh(z) = 2(z + z³/3 + z⁵/5 + …) with
/// z = (x − 1)/(x + 1) ≤ 1/3.
const fn ln(x: u128) -> u64 {
    let one = ONE as u128;
    let z = ((x - one) << 63) / (x + one);
    let square = (z * z) >> 63;
    let (mut power, mut sum, mut odd) = (z, 0, 1);
    while power > 0 {
        sum += power / odd;
        power = (power * square) >> 63;
        odd += 2;
    }
    (2 * sum) as u64
}

/// −ln(draw / 2⁶⁴) with 56 fraction bits, at most 64 ln 2 ≈ 44.4. A draw of 0 counts as 1.
#[inline]
pub fn neg_ln(draw: u64) -> u64 {
    let draw = draw.max(1);
    let zeros = draw.leading_zeros();
    let m = draw << zeros;
    let slice = (m << 1 >> (64 - SLICE_BITS)) as usize;
    let (reciprocal, neg_ln_reciprocal) = TABLE[slice];
    // t with 63 fraction bits: the product has 126, and its whole part is 1.
    let t = ((u128::from(m) * u128::from(reciprocal)) >> 63) as i64;
    let t = t.wrapping_sub(ONE as i64);
    let power2 = product(t, t);
    let power3 = product(power2, t);
    let power4 = product(power2, power2);
    let ln_m = neg_ln_reciprocal as i64 + t - power2 / 2 + power3 / 3 - power4 / 4;
    let exponent = (u128::from(zeros + 1) * u128::from(LN_2)) >> (63 - FRACTION_BITS);
    // The approximation of a number just below 1 may lie just above it.
    (exponent as u64).saturating_sub(ln_m.max(0) as u64 >> (63 - FRACTION_BITS))
}

/// A time that is exponentially distributed around `mean`, from 64 uniform bits; no less than 1 ps.
pub fn exponential(mean: Span, draw: u64) -> Span {
    let ps = (u128::from(neg_ln(draw)) * u128::from(mean.as_ps())) >> FRACTION_BITS;
    Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX).max(1))
}

/// The product of two numbers with 63 fraction bits.
#[inline]
fn product(a: i64, b: i64) -> i64 {
    ((i128::from(a) * i128::from(b)) >> 63) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stream;

    fn error(draw: u64) -> f64 {
        let exact = 64.0 * std::f64::consts::LN_2 - (draw as f64).ln();
        (neg_ln(draw) as f64 / (1u64 << FRACTION_BITS) as f64 - exact).abs()
    }

    /// Catches a wrong table entry or term: every slice, both its edges, and all magnitudes.
    #[test]
    fn forty_bits_are_good() {
        let mut stream = Stream::new(1, 2, 3);
        for shift in 0..63 {
            for slice in 0..SLICES as u64 {
                let low = (ONE | slice << (63 - SLICE_BITS)) >> shift;
                let high = low + (((1u64 << (63 - SLICE_BITS)) - 1) >> shift);
                for draw in [low, high, low + stream.next_u64() % (high - low + 1)] {
                    assert!(error(draw) < 1.0 / (1u64 << 40) as f64, "{draw:#x}: {}", error(draw));
                }
            }
        }
    }

    #[test]
    fn the_ends() {
        assert_eq!(neg_ln(0), neg_ln(1));
        assert!(error(1) < 1e-12);
        // −ln(1 − 2⁻⁶⁴) is 2⁻⁶⁴, nothing in 56 bits; the series errs by 2⁻⁴².
        assert!(neg_ln(u64::MAX) < 1 << (FRACTION_BITS - 40));
    }

    /// Catches a mean that is off, and times that depend on anything but the draw.
    #[test]
    fn exponential_times_have_their_mean() {
        let (mean, draws) = (Span::from_us(50), 40_000u64);
        let total = |entity| -> u64 {
            let mut stream = Stream::new(9, entity, 1);
            (0..draws).map(|_| exponential(mean, stream.next_u64()).as_ps()).sum()
        };
        for entity in 0..8 {
            let of_all = total(entity);
            // The standard deviation of the mean of n exponential times is their mean by the root of n.
            let deviations =
                (of_all as f64 / draws as f64 / mean.as_ps() as f64 - 1.0) * (draws as f64).sqrt();
            assert!(deviations.abs() < 5.0, "stream {entity}: {deviations} standard deviations");
            assert_eq!(of_all, total(entity));
        }
        assert_eq!(exponential(Span::from_ps(5), u64::MAX), Span::from_ps(1));
    }
}
