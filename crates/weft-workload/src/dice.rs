//! A random source for tests: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).

/// A function that returns 64 uniform bits per call, the same ones for the same seed.
pub(crate) fn rng(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Whether counts that should be equal differ by no more than chance allows: Pearson's chi-square
/// statistic within 4 standard deviations of its mean.
pub(crate) fn evenly_spread(counts: &[u64]) -> bool {
    let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    let chi_square: f64 = counts.iter().map(|&n| (n as f64 - expected).powi(2) / expected).sum();
    let freedom = counts.len() as f64 - 1.0;
    (chi_square - freedom).abs() < 4.0 * (2.0 * freedom).sqrt()
}
