//! A value per link and interval of telemetry.

use super::link_numbers::LinkNumbers;
use super::quantity::Quantity;
use super::totals::{held, link_of};
use serde::Serialize;
use weft_results::{QueueRow, RateRow, ResultsError, StoredResult, TELEMETRY_LEVELS, Table};
use weft_units::Energy;

/// Intervals that are shown, at most; a coarser level is shown where there are more.
pub const MAX_INTERVALS: u64 = 2_000;
/// Values that are kept, at most, for the same reason: 64 MB.
pub const MAX_ENTRIES: u64 = 8_000_000;

/// A quantity of all links over the virtual time of one run. Values of 0 are not kept.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Frames {
    /// The level of telemetry.
    pub level: u32,
    /// The length of an interval.
    pub interval_ps: u64,
    /// Intervals, from time 0 on.
    pub count: usize,
    /// The highest value.
    pub most: f32,
    /// For every interval the first of its values; then the end of all.
    #[serde(skip)]
    first: Vec<usize>,
    /// Links and their values, by interval, then link.
    #[serde(skip)]
    entries: Vec<(u32, f32)>,
}

/// A row of telemetry: run, level, begin and end in ps, the link and its value.
struct Look {
    run: u32,
    level: u32,
    begin: u64,
    end: u64,
    link: Option<u32>,
    value: f64,
}

/// The rows of a level in a first pass.
#[derive(Clone, Copy, Default)]
struct Level {
    rows: u64,
    end: u64,
    interval: u64,
}

impl Frames {
    /// The values of a quantity over the time of a run, at the finest level that is small enough.
    ///
    /// # Errors
    /// A result without the table; a quantity that telemetry has not; a run of which it saw nothing.
    pub fn of(
        result: &StoredResult,
        (run, quantity): (u32, Quantity),
        numbers: &LinkNumbers,
    ) -> Result<Frames, ResultsError> {
        let visit = |of: &mut dyn FnMut(Look)| match quantity.table_over_time() {
            Some(Table::Queues) => result.visit(|row: QueueRow| of(Look::of_queue(&row, numbers))),
            Some(_) => result.visit(|row: RateRow| of(Look::of_rate(&row, quantity, numbers))),
            None => Err(nothing(result, format!("telemetry has no {}", quantity.name()))),
        };
        let mut levels = [Level::default(); TELEMETRY_LEVELS as usize];
        visit(&mut |look| {
            if let (true, Some(level)) = (look.run == run, levels.get_mut(look.level as usize)) {
                level.rows += 1;
                level.end = level.end.max(look.end);
                level.interval = level.interval.max(look.end.saturating_sub(look.begin));
            }
        })?;
        let is_small = |level: &Level| {
            level.rows <= MAX_ENTRIES && level.end.div_ceil(level.interval.max(1)) <= MAX_INTERVALS
        };
        let fitting = levels.iter().position(|level| level.rows > 0 && is_small(level));
        let Some(chosen) = fitting.or_else(|| levels.iter().rposition(|level| level.rows > 0)) else {
            return Err(nothing(result, format!("telemetry of run {run} saw nothing")));
        };
        let Level { end, interval, rows } = levels[chosen];
        if rows > 4 * MAX_ENTRIES {
            return Err(nothing(result, format!("{rows} rows of its coarsest telemetry are too many")));
        }
        let count = end.div_ceil(interval.max(1)) as usize;
        let mut all: Vec<(u32, u32, f32)> = Vec::new();
        visit(&mut |look| {
            if look.run == run
                && look.level as usize == chosen
                && let Some(link) = look.link
                && look.value > 0.0
            {
                let number = (look.begin / interval.max(1)) as usize;
                all.push((number.min(count - 1) as u32, link, look.value as f32));
            }
        })?;
        Ok(Frames::made((chosen as u32, interval, count), all))
    }

    /// Frames of values by interval and link; several of one link are added.
    fn made((level, interval_ps, count): (u32, u64, usize), mut all: Vec<(u32, u32, f32)>) -> Frames {
        all.sort_by_key(|(interval, link, _)| (*interval, *link));
        let (mut first, mut entries) = (Vec::with_capacity(count + 1), Vec::with_capacity(all.len()));
        let mut most: f32 = 0.0;
        for (interval, link, value) in all {
            while first.len() <= interval as usize {
                first.push(entries.len());
            }
            let begin = first[interval as usize];
            match entries[begin..].last_mut() {
                Some((last, sum)) if *last == link => *sum += value,
                _ => entries.push((link, value)),
            }
            most = most.max(entries.last().map_or(0.0, |(_, value)| *value));
        }
        first.resize(count + 1, entries.len());
        Frames { level, interval_ps, count, most, first, entries }
    }

    /// The values of an interval by the number of the link.
    pub fn values(&self, interval: usize, numbers: &LinkNumbers) -> Vec<f32> {
        let mut values = vec![0.0; numbers.count()];
        for (link, value) in self.entries_of(interval) {
            values[*link as usize] = *value;
        }
        values
    }

    /// The value of a link in every interval.
    pub fn history(&self, link: u32) -> Vec<f32> {
        let of = |interval| {
            let entries = self.entries_of(interval);
            let place = entries.binary_search_by_key(&link, |(link, _)| *link);
            place.map_or(0.0, |place| entries[place].1)
        };
        (0..self.count).map(of).collect()
    }

    /// Links and their values in an interval.
    fn entries_of(&self, interval: usize) -> &[(u32, f32)] {
        match (self.first.get(interval), self.first.get(interval + 1)) {
            (Some(begin), Some(end)) => &self.entries[*begin..*end],
            _ => &[],
        }
    }
}

impl Look {
    fn of_queue(row: &QueueRow, numbers: &LinkNumbers) -> Look {
        let (begin, end) = (row.begin_ps.as_ps(), row.end_ps.as_ps());
        let link = link_of(row, numbers);
        Look { run: row.run, level: row.level, begin, end, link, value: held(row) as f64 }
    }

    fn of_rate(row: &RateRow, quantity: Quantity, numbers: &LinkNumbers) -> Look {
        let (begin, end) = (row.begin_ps.as_ps(), row.end_ps.as_ps());
        let time = match quantity {
            Quantity::Stall => row.stall_ps,
            Quantity::Pause => row.paused_ps,
            Quantity::Sleep => row.asleep_ps.unwrap_or_default(),
            _ => row.busy_ps,
        };
        let value = match quantity {
            Quantity::Energy => row.energy_pj.map_or(0.0, Energy::as_uj_f64),
            _ => time.as_ps() as f64 / end.saturating_sub(begin).max(1) as f64,
        };
        let link = numbers.leaving(row.from_endpoint, row.from_switch, row.from_port);
        Look { run: row.run, level: row.level, begin, end, link, value }
    }
}

fn nothing(result: &StoredResult, why: String) -> ResultsError {
    let mend = format!("{why}; run it again with --telemetry, such as --telemetry 10us");
    ResultsError::NothingToDraw { directory: result.directory.clone(), why: mend }
}

#[cfg(test)]
mod tests {
    use super::super::link_numbers::tests::star;
    use super::*;

    /// Catches values of a neighbouring interval, and queues of one link that hide each other.
    #[test]
    fn values_stand_in_their_interval() {
        let frames = Frames::made((0, 10, 4), vec![(2, 1, 0.5), (0, 4, 1.0), (2, 0, 0.25), (2, 1, 0.5)]);
        assert_eq!(frames.values(0, &star()), [0.0, 0.0, 0.0, 0.0, 1.0]);
        assert_eq!(frames.values(1, &star()), [0.0; 5]);
        assert_eq!(frames.values(2, &star()), [0.25, 1.0, 0.0, 0.0, 0.0]);
        assert_eq!(frames.values(9, &star()), [0.0; 5]);
        assert_eq!(frames.history(1), [0.0, 0.0, 1.0, 0.0]);
        assert_eq!((frames.most, frames.count), (1.0, 4));
    }
}
