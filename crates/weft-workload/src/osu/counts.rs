//! How often each benchmark repeats its iteration: enough for a figure that no longer moves, or as OSU does.
//!
//! | benchmark | size | usual | OSU |
//! |---|---|---|---|
//! | latencies | up to 8 KiB, above | 5, 5 | 10,000, 1,000 |
//! | bandwidths of two ranks | the same | 5, 5 | 100, 20 |
//! | `mbw_mr` | the same; above 64 KiB | 100, 20; 5 | 100, 20; 20 |
//! | collectives | up to 8 KiB, above | 5, 5 | 1,000, 100 |
//!
//! Between two ranks an iteration is exact and all are alike: a few are enough. The pairs of `mbw_mr` leave
//! the barrier apart and share wires, and what that costs at both ends is a share of the whole time: with
//! these counts it is below a hundredth. Windows of larger messages last longer, and fewer of them do.
//!
//! # Source
//! OSU micro-benchmarks 5.x, the defaults of `-i` and `-x`: `LAT_LOOP`, `BW_LOOP`, `COLL_LOOP` and their
//! skips, for small messages and for those above `LARGE_MESSAGE_SIZE`.

use super::{Benchmark, Repetitions, WINDOW};
use serde::{Deserialize, Serialize};
use weft_units::Bytes;

/// The largest message that is small to OSU.
const SMALL: Bytes = Bytes::new(8 << 10);
/// The largest message of which `mbw_mr` usually takes OSU's iterations.
const MEDIUM: Bytes = Bytes::new(64 << 10);

/// Iterations of a benchmark, and those before them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Iterations that are measured.
    pub iterations: u32,
    /// Iterations before them.
    pub warm_up: u32,
}

/// How often a benchmark repeats what it measures, before its size is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub enum Iterations {
    /// As often as the figure needs.
    #[default]
    Usual,
    /// As often as OSU.
    Osu,
    /// This often.
    Exactly(u32),
}

/// [`Iterations`] as they are written.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Number(u32),
    Word(String),
}

impl From<Iterations> for Written {
    fn from(iterations: Iterations) -> Written {
        match iterations {
            Iterations::Usual => Written::Word("usual".to_owned()),
            Iterations::Osu => Written::Word("osu".to_owned()),
            Iterations::Exactly(count) => Written::Number(count),
        }
    }
}

impl TryFrom<Written> for Iterations {
    type Error = String;

    fn try_from(written: Written) -> Result<Iterations, String> {
        match written {
            Written::Number(count) => Ok(Iterations::Exactly(count)),
            Written::Word(word) if word == "usual" => Ok(Iterations::Usual),
            Written::Word(word) if word == "osu" => Ok(Iterations::Osu),
            Written::Word(word) => {
                Err(format!("iterations are a number, `usual` or `osu`, and not `{word}`"))
            }
        }
    }
}

impl Iterations {
    /// How often `benchmark` repeats messages of `bytes`.
    pub fn counts(self, benchmark: Benchmark, bytes: Bytes) -> Counts {
        let usual = Counts { iterations: 5, warm_up: 2 };
        match self {
            Iterations::Osu => osu(benchmark, bytes),
            Iterations::Usual if benchmark == Benchmark::MbwMr && bytes <= MEDIUM => osu(benchmark, bytes),
            Iterations::Usual => usual,
            Iterations::Exactly(iterations) => Counts { iterations, ..usual },
        }
    }
}

/// OSU's own counts.
fn osu(benchmark: Benchmark, bytes: Bytes) -> Counts {
    let counts = |iterations, warm_up| Counts { iterations, warm_up };
    let is_small = bytes <= SMALL;
    if benchmark.is_of_bandwidth() {
        if is_small { counts(100, 10) } else { counts(20, 2) }
    } else if benchmark.collective().is_some() {
        if is_small { counts(1_000, 100) } else { counts(100, 10) }
    } else if is_small {
        counts(10_000, 100)
    } else {
        counts(1_000, 10)
    }
}

impl Repetitions {
    /// The repetitions of `benchmark` with messages of `bytes`; `warm_up` is what was asked for, if anything.
    pub fn of(
        iterations: Iterations,
        warm_up: Option<u32>,
        barrier: bool,
        (benchmark, bytes): (Benchmark, Bytes),
    ) -> Repetitions {
        let counts = iterations.counts(benchmark, benchmark.only_size().unwrap_or(bytes));
        let warm_up = warm_up.unwrap_or(counts.warm_up);
        Repetitions { warm_up, iterations: counts.iterations, barrier, window: WINDOW }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a count of OSU's in the wrong row, and a bound that is off by one.
    #[test]
    fn osu_has_fewer_iterations_of_large_messages() {
        let counts = |benchmark: Benchmark, bytes| {
            let Counts { iterations, warm_up } = Iterations::Osu.counts(benchmark, Bytes::new(bytes));
            (iterations, warm_up)
        };
        for (benchmark, small, large) in [
            (Benchmark::Latency, (10_000, 100), (1_000, 10)),
            (Benchmark::GetLatency, (10_000, 100), (1_000, 10)),
            (Benchmark::Bibw, (100, 10), (20, 2)),
            (Benchmark::MbwMr, (100, 10), (20, 2)),
            (Benchmark::PutBw, (100, 10), (20, 2)),
            (Benchmark::Alltoall, (1_000, 100), (100, 10)),
        ] {
            assert_eq!(counts(benchmark, 8192), small, "{benchmark}");
            assert_eq!(counts(benchmark, 8193), large, "{benchmark}");
        }
        assert_eq!(counts(Benchmark::Barrier, 0), (1_000, 100));
    }

    /// Catches a number that replaces the warm-up too, and a warm-up that does not count.
    #[test]
    fn what_is_asked_for_is_done() {
        let of = |iterations, warm_up| {
            let Repetitions { iterations, warm_up, .. } =
                Repetitions::of(iterations, warm_up, true, (Benchmark::Bw, Bytes::new(8)));
            (iterations, warm_up)
        };
        assert_eq!(of(Iterations::Exactly(7), None), (7, 2));
        assert_eq!(of(Iterations::Exactly(7), Some(0)), (7, 0));
        assert_eq!(of(Iterations::Osu, Some(3)), (100, 3));
        assert_eq!(of(Iterations::Usual, None), (5, 2));
    }
}
