//! Sizes that a machine may have, and the errors for those it may not.

/// Most endpoints of one machine: sixteen times the million that weft is made for, and few enough that
/// its figures fit in memory.
pub const MAX_ENDPOINTS: u64 = 1 << 24;

/// Most switches of one machine.
pub const MAX_SWITCHES: u64 = 1 << 24;

/// Most ports of one machine, over all switches: a torus of three dimensions and most endpoints has
/// fewer.
pub const MAX_PORTS: u64 = 1 << 27;

/// A machine that cannot be built.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SizeError {
    /// A parameter outside its range.
    #[error("{parameter} is {value}; it must be {low} to {high}")]
    OutOfRange {
        /// The parameter, in words.
        parameter: &'static str,
        /// The value that was given.
        value: u64,
        /// The least value allowed.
        low: u64,
        /// The greatest value allowed, given the other parameters.
        high: u64,
    },
    /// More of something than a machine may have.
    #[error("the machine would have {} {what}; the limit is {limit}", counted(*.count))]
    TooMany {
        /// The noun for what is counted, such as endpoints.
        what: &'static str,
        /// The number that there would be, no more than 2^128 - 1.
        count: u128,
        /// The largest number allowed.
        limit: u64,
    },
    /// A number of mezzanines that does not fill the Y rings of an ExaNeSt machine.
    #[error("{0} mezzanines do not fill Y rings of four; take 1 to 4 or a multiple of 4")]
    Mezzanines(u64),
    /// A graph in which no packet can go from some switches to others.
    #[error("the graph falls into parts")]
    Apart,
}

/// A count, where none was too large to be computed.
pub fn counted(count: u128) -> String {
    // Products saturate at 128 bits; factors at 64 bits.
    if count >= u128::from(u64::MAX) { "2^64 or more".to_owned() } else { count.to_string() }
}

/// Checks a parameter and narrows it to 32 bits.
pub(crate) fn in_range(parameter: &'static str, value: u64, low: u64, high: u64) -> Result<u32, SizeError> {
    let error = SizeError::OutOfRange { parameter, value, low, high };
    if value < low || value > high {
        return Err(error);
    }
    u32::try_from(value).map_err(|_| error)
}

/// The product of `factors`, which saturates: it is only compared with limits and printed.
pub(crate) fn product(factors: impl IntoIterator<Item = u64>) -> u128 {
    factors.into_iter().fold(1, |product, factor| product.saturating_mul(u128::from(factor)))
}

/// Checks the counts of a machine against the limits.
pub(crate) fn check_counts(endpoints: u128, switches: u128, ports: u128) -> Result<(), SizeError> {
    let limits = [
        ("endpoints", endpoints, MAX_ENDPOINTS),
        ("switches", switches, MAX_SWITCHES),
        ("ports", ports, MAX_PORTS),
    ];
    match limits.into_iter().find(|&(_, count, limit)| count > u128::from(limit)) {
        Some((what, count, limit)) => Err(SizeError::TooMany { what, count, limit }),
        None => Ok(()),
    }
}

/// Bits that hold the values `0..count`.
pub(crate) fn bits_for(count: u32) -> u32 {
    u32::BITS - count.saturating_sub(1).leading_zeros()
}
