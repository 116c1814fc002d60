//! The list of benchmarks.

use super::collectives::Collectives;
use super::fop_latency::{self, FopLatency};
use super::one_sided::OneSidedAccess;
use super::ops::BUFFER_BYTES;
use super::repeat::{Iteration, Loop, Repetitions};
use super::{bibw::Bibw, bw::Bw, latency::Latency, mbw_mr::MbwMr, one_way::OneWay};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use weft_trace::op::{Collective, OneSided};
use weft_units::Bytes;

/// A benchmark. Each is described in the file of its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[allow(missing_docs)] // Their names are OSU's.
pub enum Benchmark {
    Latency,
    Bw,
    Bibw,
    MbwMr,
    OneWay,
    Bcast,
    Allreduce,
    Reduce,
    Allgather,
    Alltoall,
    Barrier,
    PutLatency,
    PutBw,
    GetLatency,
    GetBw,
    FopLatency,
    AccLatency,
    GetAccLatency,
    CasLatency,
}

/// A name that no benchmark has.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("there is no benchmark `{name}`; did you mean `{near}`? There are {known}")]
pub struct UnknownBenchmark {
    name: String,
    near: &'static str,
    known: String,
}

impl Benchmark {
    /// All of them.
    pub const ALL: [Benchmark; 19] = [
        Benchmark::Latency,
        Benchmark::Bw,
        Benchmark::Bibw,
        Benchmark::MbwMr,
        Benchmark::OneWay,
        Benchmark::Bcast,
        Benchmark::Allreduce,
        Benchmark::Reduce,
        Benchmark::Allgather,
        Benchmark::Alltoall,
        Benchmark::Barrier,
        Benchmark::PutLatency,
        Benchmark::PutBw,
        Benchmark::GetLatency,
        Benchmark::GetBw,
        Benchmark::FopLatency,
        Benchmark::AccLatency,
        Benchmark::GetAccLatency,
        Benchmark::CasLatency,
    ];

    /// As it is written in commands: OSU's name without `osu_`.
    pub const fn name(self) -> &'static str {
        match self {
            Benchmark::Latency => "latency",
            Benchmark::Bw => "bw",
            Benchmark::Bibw => "bibw",
            Benchmark::MbwMr => "mbw_mr",
            Benchmark::OneWay => "one_way",
            Benchmark::Bcast => "bcast",
            Benchmark::Allreduce => "allreduce",
            Benchmark::Reduce => "reduce",
            Benchmark::Allgather => "allgather",
            Benchmark::Alltoall => "alltoall",
            Benchmark::Barrier => "barrier",
            Benchmark::PutLatency => "put_latency",
            Benchmark::PutBw => "put_bw",
            Benchmark::GetLatency => "get_latency",
            Benchmark::GetBw => "get_bw",
            Benchmark::FopLatency => "fop_latency",
            Benchmark::AccLatency => "acc_latency",
            Benchmark::GetAccLatency => "get_acc_latency",
            Benchmark::CasLatency => "cas_latency",
        }
    }

    /// The collective that it measures.
    pub const fn collective(self) -> Option<Collective> {
        match self {
            Benchmark::Bcast => Some(Collective::Broadcast),
            Benchmark::Allreduce => Some(Collective::Allreduce),
            Benchmark::Reduce => Some(Collective::Reduce),
            Benchmark::Allgather => Some(Collective::Allgather),
            Benchmark::Alltoall => Some(Collective::Alltoall),
            Benchmark::Barrier => Some(Collective::Barrier),
            _ => None,
        }
    }

    /// Whether it is for exactly two ranks.
    pub const fn is_for_two(self) -> bool {
        self.collective().is_none() && !matches!(self, Benchmark::MbwMr)
    }

    /// The only size that it has, where it has but one.
    pub const fn only_size(self) -> Option<Bytes> {
        match self {
            Benchmark::Barrier => Some(Bytes::ZERO),
            Benchmark::FopLatency | Benchmark::CasLatency => Some(fop_latency::OPERAND),
            _ => None,
        }
    }

    /// Whether it measures bandwidth: a message of no bytes has none.
    pub const fn is_of_bandwidth(self) -> bool {
        use Benchmark as B;
        matches!(self, B::Bw | B::Bibw | B::MbwMr | B::PutBw | B::GetBw)
    }

    /// The blocks that a buffer of one of `ranks` ranks holds.
    pub fn blocks(self, ranks: u32) -> u32 {
        let has_blocks = matches!(self, Benchmark::Allgather | Benchmark::Alltoall);
        if has_blocks { ranks.max(1) } else { 1 }
    }

    /// The largest size: a buffer holds all blocks.
    pub fn largest(self, ranks: u32) -> Bytes {
        Bytes::new(BUFFER_BYTES / u64::from(self.blocks(ranks)))
    }

    /// Rank whose time a latency or bandwidth is: whose last iteration a breakdown explains. Collectives
    /// have times of all ranks.
    pub const fn timed_rank(self) -> Option<u32> {
        match self {
            Benchmark::OneWay => Some(1),
            _ if self.collective().is_some() => None,
            _ => Some(0),
        }
    }

    /// The operations of one iteration.
    fn iteration(self, ranks: u32, bytes: Bytes, window: u32) -> Box<dyn Iteration> {
        let one_sided = |kind, window| Box::new(OneSidedAccess { kind, bytes, window });
        if let Some(kind) = self.collective() {
            return Box::new(Collectives { kind, bytes });
        }
        match self {
            Benchmark::Bw => Box::new(Bw { bytes, window }),
            Benchmark::Bibw => Box::new(Bibw { bytes, window }),
            Benchmark::MbwMr => Box::new(MbwMr { bw: Bw { bytes, window }, pairs: ranks / 2 }),
            Benchmark::OneWay => Box::new(OneWay { bytes }),
            Benchmark::PutLatency => one_sided(OneSided::Put, 1),
            Benchmark::PutBw => one_sided(OneSided::Put, window),
            Benchmark::GetLatency => one_sided(OneSided::Get, 1),
            Benchmark::GetBw => one_sided(OneSided::Get, window),
            Benchmark::FopLatency => Box::new(FopLatency { kind: OneSided::FetchAndOp }),
            Benchmark::CasLatency => Box::new(FopLatency { kind: OneSided::CompareAndSwap }),
            Benchmark::AccLatency => one_sided(OneSided::Accumulate, 1),
            Benchmark::GetAccLatency => one_sided(OneSided::GetAccumulate, 1),
            _ => Box::new(Latency { bytes }),
        }
    }

    /// The program: on two ranks exactly where it [is for two](Benchmark::is_for_two), else on at least
    /// two; an even number for `mbw_mr`.
    pub fn program(self, ranks: u32, bytes: Bytes, repetitions: Repetitions) -> Loop {
        let bytes = self.only_size().unwrap_or(bytes);
        let iteration = self.iteration(ranks, bytes, repetitions.window);
        Loop::new(format!("osu_{}", self.name()), ranks, repetitions, iteration)
    }
}

impl fmt::Display for Benchmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Benchmark {
    type Err = UnknownBenchmark;

    /// OSU's name with or without `osu_`; `-` may stand for `_`.
    fn from_str(text: &str) -> Result<Benchmark, UnknownBenchmark> {
        let plain = text.replace('-', "_");
        let plain = plain.strip_prefix("osu_").unwrap_or(&plain);
        let names = Benchmark::ALL.map(Benchmark::name);
        if let Some(found) = Benchmark::ALL.into_iter().find(|benchmark| benchmark.name() == plain) {
            return Ok(found);
        }
        let near = weft_keys::fewest_edits(plain, names).expect("there is at least one benchmark");
        Err(UnknownBenchmark { name: text.to_owned(), near, known: names.join(", ") })
    }
}

impl TryFrom<String> for Benchmark {
    type Error = UnknownBenchmark;
    fn try_from(text: String) -> Result<Benchmark, UnknownBenchmark> {
        text.parse()
    }
}

impl From<Benchmark> for String {
    fn from(benchmark: Benchmark) -> String {
        benchmark.name().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for benchmark in Benchmark::ALL {
            assert_eq!(benchmark.name().parse(), Ok(benchmark));
            assert_eq!(format!("osu_{benchmark}").parse(), Ok(benchmark));
        }
        assert_eq!("mbw-mr".parse(), Ok(Benchmark::MbwMr));
        let error = "latencies".parse::<Benchmark>().unwrap_err().to_string();
        assert!(error.contains("did you mean `latency`") && error.contains("get_bw"), "{error}");
    }
}
