//! The time axis of pictures of telemetry: the finest level with few enough intervals.

use super::panel::Axis;
use super::shown::ShownRun;
use weft_results::{INTERVALS_PER_COARSER, ResultsError, TELEMETRY_LEVELS};
use weft_units::Time;

/// Intervals in a picture, at most.
const MAX_INTERVALS: u64 = 400;
pub(super) const PS_PER_US: f64 = 1e6;

/// The time axis of one run, or of a part of it.
pub(super) struct Intervals {
    level: u32,
    interval: u64,
    /// The number of the first that is shown, of all of the level.
    first: u64,
    pub count: usize,
}

impl Intervals {
    /// Of the window that is shown of a run whose telemetry ends at `end`, in ps.
    pub fn of(shown: &ShownRun<'_>, end: u64) -> Result<Intervals, ResultsError> {
        let nothing = |what: &str| {
            let why = format!("telemetry of run {} {what}", shown.run);
            Err(ResultsError::NothingToDraw { directory: shown.result.directory.clone(), why })
        };
        if end == 0 {
            return nothing(
                "saw nothing that this picture shows (flows, of fabric.kind = flow, fill no queues); choose \
                 another --what, such as rates or link-utilization, or another --run",
            );
        }
        let (from, to) = (shown.window.from.as_ps(), shown.window.to.map_or(end, |to| to.as_ps().min(end)));
        if from >= to {
            let end = end as f64 / PS_PER_US;
            return nothing(&format!("ends at {end} us; choose an earlier --from, or a later --to"));
        }
        let asked = shown.result.manifest.request["telemetry_ps"].as_u64().filter(|ps| *ps > 0);
        let finest = asked.unwrap_or(end);
        let coarsest = TELEMETRY_LEVELS - 1;
        let length = |level: u32| finest.saturating_mul(u64::from(INTERVALS_PER_COARSER).pow(level));
        let count = |level: u32| to.div_ceil(length(level)) - from / length(level);
        let level = (0..coarsest).find(|level| count(*level) <= MAX_INTERVALS).unwrap_or(coarsest);
        let interval = length(level);
        Ok(Intervals { level, interval, first: from / interval, count: count(level) as usize })
    }

    /// The number of a row's interval among those that are shown; `None`: it is of another level, or outside
    /// of the window.
    pub fn number(&self, level: u32, begin: Time) -> Option<usize> {
        let number = (begin.as_ps() / self.interval).checked_sub(self.first)? as usize;
        (level == self.level && number < self.count).then_some(number)
    }

    /// The time at which an interval begins, in us.
    fn begin(&self, number: f64) -> f64 {
        (self.first as f64 + number) * self.interval as f64 / PS_PER_US
    }

    /// The length of an interval, in ps.
    pub fn length(&self) -> u64 {
        self.interval
    }

    pub fn edges(&self) -> Vec<f64> {
        (0..=self.count).map(|edge| self.begin(edge as f64)).collect()
    }

    /// A line with a point in the middle of each interval.
    pub fn points(&self, values: &[f64]) -> Vec<[f64; 2]> {
        values.iter().enumerate().map(|(number, value)| [self.begin(number as f64 + 0.5), *value]).collect()
    }

    /// The axis, which begins with the window.
    pub fn axis(&self) -> Axis {
        Axis { from_zero: self.first == 0, ..Axis::new("time", "µs") }
    }
}
