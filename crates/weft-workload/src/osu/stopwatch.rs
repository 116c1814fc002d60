//! From readings of clocks to figures.

use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Span, Time};

/// One iteration on a rank's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Window {
    /// The beginning of the iteration.
    pub from: Time,
    /// The end of the iteration.
    pub to: Time,
}

impl Window {
    /// How long it is.
    pub fn span(&self) -> Span {
        self.to - self.from
    }
}

/// The sums over the readings of one rank's clock. Readings begin and end measured iterations in turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Stopwatch {
    /// The beginning of the iteration that is under way.
    begun: Option<Time>,
    /// Iterations that have ended.
    iterations: u32,
    /// Time inside them.
    total: Span,
    first: Option<Window>,
    last: Option<Window>,
}

impl Stopwatch {
    /// The clock is read.
    pub fn read(&mut self, clock: Time) {
        match self.begun.take() {
            None => self.begun = Some(clock),
            Some(from) => {
                let window = Window { from, to: clock };
                self.iterations += 1;
                self.total = self.total.saturating_add(window.span());
                self.first.get_or_insert(window);
                self.last = Some(window);
            }
        }
    }

    /// Iterations that have ended.
    pub fn iterations(&self) -> u32 {
        self.iterations
    }

    /// The last measured iteration.
    pub fn last(&self) -> Option<Window> {
        self.last
    }

    /// Mean time inside an iteration, in ps.
    pub(super) fn mean_ps(&self) -> f64 {
        self.total.as_ps() as f64 / f64::from(self.iterations.max(1))
    }

    /// From the beginning of the first measured iteration to the end of the last, in ps.
    pub(super) fn elapsed_ps(&self) -> f64 {
        match (self.first, self.last) {
            (Some(first), Some(last)) => (last.to - first.from).as_ps() as f64,
            _ => 0.0,
        }
    }

    /// From the beginning of the first measured iteration of any of `times` to the end of the last one of
    /// any, in ps.
    pub(super) fn elapsed_of_all_ps(times: &[Stopwatch]) -> f64 {
        let first = times.iter().filter_map(|times| times.first).map(|window| window.from).min();
        let last = times.iter().filter_map(|times| times.last).map(|window| window.to).max();
        first.zip(last).map_or(0.0, |(first, last)| (last - first).as_ps() as f64)
    }
}

/// The results of a benchmark.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Latency in us, as the benchmark defines it.
    pub latency_us: Option<f64>,
    /// Of collectives: the mean of the rank with the shortest.
    pub latency_min_us: Option<f64>,
    /// Of collectives: the mean of the rank with the longest.
    pub latency_max_us: Option<f64>,
    /// Payload in 10⁹ bit/s.
    pub bandwidth_gbps: Option<f64>,
    /// Messages per second.
    pub messages_per_second: Option<f64>,
}

impl Figures {
    /// A latency in ps.
    pub(super) fn latency(ps: f64) -> Figures {
        Figures { latency_us: Some(ps / 1e6), ..Figures::default() }
    }

    /// The rate of `messages` messages of `bytes` each in `ps`.
    pub(super) fn rate(messages: f64, bytes: Bytes, ps: f64) -> Figures {
        // Where nothing takes time there is no rate.
        let per_second = (ps > 0.0).then(|| messages / ps * 1e12);
        Figures {
            bandwidth_gbps: per_second.map(|rate| rate * bytes.get() as f64 * 8.0 / 1e9),
            messages_per_second: per_second,
            ..Figures::default()
        }
    }

    /// The mean over ranks of each rank's mean, with the least and the most of them.
    pub(super) fn over_ranks(times: &[Stopwatch]) -> Figures {
        let means = || times.iter().map(|times| times.mean_ps() / 1e6);
        Figures {
            latency_us: Some(means().sum::<f64>() / times.len().max(1) as f64),
            latency_min_us: means().reduce(f64::min),
            latency_max_us: means().reduce(f64::max),
            ..Figures::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_begin_and_end_iterations_in_turn() {
        let mut watch = Stopwatch::default();
        for ps in [10, 30, 100, 140, 200] {
            watch.read(Time::from_ps(ps));
        }
        assert_eq!((watch.iterations(), watch.mean_ps(), watch.elapsed_ps()), (2, 30.0, 130.0));
        assert_eq!(watch.last(), Some(Window { from: Time::from_ps(100), to: Time::from_ps(140) }));
    }

    /// Catches a time of several ranks that leaves out by how far apart they begin or end.
    #[test]
    fn the_time_of_all_is_from_the_first_beginning_to_the_last_end() {
        let watch = |readings: [u64; 4]| {
            let mut watch = Stopwatch::default();
            readings.into_iter().for_each(|ps| watch.read(Time::from_ps(ps)));
            watch
        };
        let apart = [watch([50, 60, 70, 90]), watch([10, 20, 30, 40]), watch([30, 40, 80, 85])];
        assert_eq!(Stopwatch::elapsed_of_all_ps(&apart), 80.0);
        assert_eq!(Stopwatch::elapsed_of_all_ps(&[Stopwatch::default()]), 0.0);
    }

    #[test]
    fn rates_are_in_decimal_bits() {
        let figures = Figures::rate(10.0, Bytes::new(125), 1e6);
        assert_eq!((figures.bandwidth_gbps, figures.messages_per_second), (Some(10.0), Some(1e7)));
        assert_eq!(Figures::rate(1.0, Bytes::new(1), 0.0), Figures::default());
    }
}
