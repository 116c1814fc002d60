//! Statistics of a steady state: when it is reached, and how far its mean can be trusted.
//!
//! ```text
//!  epoch means   ╱╲  ─ ╲╱─╲╱──╱╲─╲╱──╱╲──
//!               ╱  ╲╱
//!  |  warm-up        | batch | batch | …     MSER-5, then batch means with a Student t interval
//! ```
//!
//! These are reports: they use floating point and never feed back into the model's decisions
//! except at virtual times that the experiment fixes.

use serde::{Deserialize, Serialize};

/// Number of epochs in one batch of MSER-5.
const EPOCHS_PER_MSER_BATCH: usize = 5;

/// Number of batches of [`batch_means`]. B. Schmeiser, "Batch size effects in the analysis of simulation
/// output", Operations Research 30(3), 1982: 10 to 30 are enough, more only cost coverage.
const BATCHES: usize = 20;

/// The epoch at which the steady state begins, or `None` where the series does not show that it has:
/// fewer than ten batches of five, or a series that still moves half-way.
///
/// MSER-5: K. White, "An effective truncation heuristic for bias reduction in simulation output",
/// Simulation 69(6), 1997; with batches of five after K. White, M. Cobb, S. Spratt, WSC 2000. The
/// series is cut where the standard error of what is left is least. The cut is looked for in the first
/// half only, since near the end a few batches agree by chance; where the least error lies at the very
/// end of that half, the transient is not over.
pub fn warm_up(epoch_means: &[f64]) -> Option<usize> {
    let batches: Vec<f64> = epoch_means.chunks_exact(EPOCHS_PER_MSER_BATCH).map(mean).collect();
    if batches.len() < 10 {
        return None;
    }
    let half = batches.len() / 2;
    // From the end, so that each truncation point costs one step: Welford's sums of what is left.
    let (mut left, mut mean_left, mut squares) = (0.0, 0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for (start, value) in batches.iter().enumerate().rev() {
        left += 1.0;
        let difference = value - mean_left;
        mean_left += difference / left;
        squares += difference * (value - mean_left);
        // Ties go to the earlier point.
        if start <= half && squares / (left * left) <= best.0 {
            best = (squares / (left * left), start);
        }
    }
    (best.1 < half).then_some(best.1 * EPOCHS_PER_MSER_BATCH)
}

/// A mean with its 95 % confidence interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half the width of the interval: the true mean lies within `mean ± half_width` 95 times in 100.
    pub half_width: f64,
}

impl Interval {
    /// Of independent samples, such as the means of several seeds. `None` below two: one sample says
    /// nothing about its spread.
    pub fn of_independent(samples: &[f64]) -> Option<Interval> {
        if samples.len() < 2 {
            return None;
        }
        let (count, mean) = (samples.len() as f64, mean(samples));
        let variance = samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0);
        Some(Interval { mean, half_width: student_t(samples.len() - 1) * (variance / count).sqrt() })
    }

    /// The half width as a share of the mean: the usual stop criterion.
    pub fn relative(&self) -> f64 {
        self.half_width / self.mean.abs()
    }
}

/// The interval of one run, from its epoch means after warm-up.
///
/// Neighbouring epochs are correlated, so that the plain formula would promise too much. The means of
/// 20 long batches are nearly independent (A. Law, Simulation Modeling and Analysis, §9.5.3).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct BatchMeans {
    /// The mean over all batches and its interval.
    pub interval: Interval,
    /// Correlation of neighbouring batches. Above [`BatchMeans::SUSPECT`] the batches are too short
    /// and the interval too narrow: measure for longer.
    pub correlation: f64,
}

impl BatchMeans {
    /// Independent batches exceed this correlation once in 20 times (1.645/√20).
    pub const SUSPECT: f64 = 0.37;
}

/// Batch means of a steady series. Epochs that do not fill the batches are left out at the front.
/// `None` below 20 epochs.
pub fn batch_means(steady: &[f64]) -> Option<BatchMeans> {
    let length = steady.len() / BATCHES;
    if length == 0 {
        return None;
    }
    let batches: Vec<f64> =
        steady[steady.len() - length * BATCHES..].chunks_exact(length).map(mean).collect();
    let interval = Interval::of_independent(&batches)?;
    let deviations: Vec<f64> = batches.iter().map(|x| x - interval.mean).collect();
    let squares: f64 = deviations.iter().map(|d| d * d).sum();
    let products: f64 = deviations.windows(2).map(|pair| pair[0] * pair[1]).sum();
    Some(BatchMeans { interval, correlation: if squares > 0.0 { products / squares } else { 0.0 } })
}

/// Whether the network accepts less than it is offered by more than `tolerance` (0.05: five
/// hundredths). Both loads are those measured after warm-up, in the same unit: a random process
/// offers a little more or less than it was asked to.
pub fn is_saturated(offered: f64, accepted: f64, tolerance: f64) -> bool {
    accepted < offered * (1.0 - tolerance)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The 97.5 % quantile of Student's t distribution, for two-sided 95 % intervals: the usual table up
/// to 30 degrees of freedom, above it the first two terms of its expansion around the normal quantile
/// (M. Abramowitz, I. Stegun, Handbook of Mathematical Functions, 26.7.5), good to 10⁻⁴ there. A
/// statistics crate would bring a linear-algebra crate for this one function.
fn student_t(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    const NORMAL: f64 = 1.959_964;
    match TABLE.get(freedom - 1) {
        Some(&quantile) => quantile,
        None => {
            let (z, n) = (NORMAL, freedom as f64);
            z + (z.powi(3) + z) / (4.0 * n) + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n * n)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::rng;

    /// A first-order autoregressive series x' = ρ x + noise of unit variance, around `level`, after a
    /// start `jump` away from it.
    #[derive(Clone, Copy, Default)]
    struct Autoregressive {
        rho: f64,
        level: f64,
        jump: f64,
    }

    impl Autoregressive {
        fn series(self, seed: u64, epochs: usize) -> Vec<f64> {
            let mut random = rng(seed);
            let mut uniform = move || random() as f64 / u64::MAX as f64 - 0.5;
            let mut x = self.jump;
            let mut step = || {
                let noise: f64 = (0..12).map(|_| uniform()).sum();
                x = self.rho * x + noise;
                self.level + x
            };
            (0..epochs).map(|_| step()).collect()
        }
    }

    const AROUND_TEN: Autoregressive = Autoregressive { rho: 0.5, level: 10.0, jump: 0.0 };

    /// Catches an interval that promises too much (without batches: 74 %, by theory) or too little: the mean
    /// of an AR(1) series is known, and 95 of 100 intervals must hold it.
    #[test]
    fn ninety_five_of_a_hundred_intervals_hold_the_mean() {
        const RUNS: u64 = 1000;
        let held = (0..RUNS).filter(|&seed| {
            let series = AROUND_TEN.series(seed, 2000);
            let Interval { mean, half_width } = batch_means(&series).unwrap().interval;
            (mean - 10.0).abs() <= half_width
        });
        // Binomial: 950 ± 7; batches leave a little correlation, which costs about 1 %.
        let held = held.count();
        assert!((920..=971).contains(&held), "{held} of {RUNS}");
    }

    /// Catches a wrong scale: the interval's width against theory, σ²/(1 − ρ)² / n for the mean.
    #[test]
    fn the_interval_is_as_wide_as_theory_says() {
        let widths = (0..200)
            .map(|seed| batch_means(&AROUND_TEN.series(seed, 20_000)).unwrap().interval.half_width.powi(2));
        let measured = widths.sum::<f64>() / 200.0;
        let theory = student_t(19).powi(2) / (1.0 - 0.5f64).powi(2) / 20_000.0;
        assert!((measured / theory - 1.0).abs() < 0.1, "{measured} vs {theory}");
    }

    /// Catches a transient that is left in, and a steady series that is thrown away.
    #[test]
    fn warm_up_is_cut_and_no_more() {
        let falling = Autoregressive { rho: 0.9, level: 100.0, jump: 80.0 };
        let settled: Vec<_> = (0..50).map(|seed| warm_up(&falling.series(seed, 500)).unwrap()).collect();
        // 80 · 0.9^n is within the series' own spread of 2.3 after 34 epochs.
        assert!(settled.iter().all(|&cut| (20..=250).contains(&cut)), "{settled:?}");
        let steady = Autoregressive { rho: 0.0, level: 100.0, jump: 0.0 };
        let steady: usize = (0..50).map(|seed| warm_up(&steady.series(seed, 500)).unwrap()).sum();
        assert!(steady / 50 < 75, "{}", steady / 50);
    }

    /// Catches a growing queue that is taken for a steady state, and a verdict on too little.
    #[test]
    fn a_series_that_still_grows_is_not_steady() {
        let growing: Vec<f64> = (0..500).map(f64::from).collect();
        assert_eq!(warm_up(&growing), None);
        assert_eq!(warm_up(&[1.0; 49]), None);
        assert_eq!(warm_up(&[1.0; 50]), Some(0));
    }

    /// Catches batches that are too short going unnoticed.
    #[test]
    fn short_batches_of_a_slow_series_are_suspect() {
        let white_noise = Autoregressive::default();
        let slow = batch_means(&Autoregressive { rho: 0.99, ..white_noise }.series(1, 400)).unwrap();
        assert!(slow.correlation > BatchMeans::SUSPECT, "{slow:?}");
        let fast = batch_means(&white_noise.series(1, 400)).unwrap();
        assert!(fast.correlation < BatchMeans::SUSPECT, "{fast:?}");
    }

    #[test]
    fn seeds_by_hand() {
        let Interval { mean, half_width } = Interval::of_independent(&[4.0, 6.0, 8.0]).unwrap();
        assert_eq!(mean, 6.0);
        assert!((half_width - 4.303 * 2.0 / 3f64.sqrt()).abs() < 1e-9);
        assert_eq!(Interval::of_independent(&[4.0]), None);
    }

    /// Against the tables: 2.040 for 31, 2.009 for 50, 1.984 for 100.
    #[test]
    fn large_samples_approach_the_normal_quantile() {
        for (freedom, quantile) in [(31, 2.0395), (50, 2.0086), (100, 1.9840)] {
            assert!((student_t(freedom) - quantile).abs() < 1e-4, "{freedom}: {}", student_t(freedom));
        }
    }

    #[test]
    fn saturation_is_less_accepted_than_offered() {
        assert!(is_saturated(0.8, 0.7, 0.05));
        assert!(!is_saturated(0.8, 0.78, 0.05));
        assert!(!is_saturated(0.0, 0.0, 0.05));
    }
}
