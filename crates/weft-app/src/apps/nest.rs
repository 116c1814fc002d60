//! NEST: spiking neurons, whose ranks tell each other their spikes.
//!
//! ```text
//!   building:  each rank makes its share of the synapses, then all meet
//!   working:   for each interval   neurons move │ allgather of spikes │ spikes reach their synapses
//! ```
//! Since release 2.16 NEST exchanges by an all-to-all, whose blocks hold the spikes that a process has for
//! another. A block has room for half more than the most spikes that any process has had for another so far.
//!
//! An interval is the shortest delay of a synapse: no spike acts earlier than in the next one.

use crate::app::{App, AppError, Verification};
use crate::options::{AppOption, Options};
use crate::part::KernelPart;
use crate::phase::{AllRanks, Computation};
use weft_trace::op::Collective;
use weft_units::Bytes;

/// The application.
pub const APP: App = App {
    name: "nest",
    summary: "NEST: spiking neurons, spikes exchanged by allgather; building and working phase",
    laws: "Source: D1.4 section 9.1. Neurons are dealt out round-robin to processes times threads, at most \
           32 threads (the section's own limit). In each interval every process gives all others the \
           spikes of its neurons, 4 bytes each, as an allgather of equal blocks: spikes = neurons / \
           processes x rate x interval. A neuron takes 20 operations a step of 0.1 ms (integrate and fire, \
           exponential currents), a spike 2 operations and 16 bytes at each of its synapses on the \
           process. Building takes 50 operations and 48 bytes a synapse. The section gives no sizes of the \
           network: neurons, synapses, rate and operations are assumed. With exchange=alltoall the exchange \
           is that of NEST 3.10 (event_delivery_manager.cpp, mpi_manager.cpp): 8 bytes for each spike and \
           process with synapses of its neuron, in blocks of half more than the most spikes of a process in \
           an interval, 10 minima of two numbers over all processes before and after the intervals, and a \
           barrier.",
    checked: Verification::Against(
        "NEST 3.10.0, exchange=alltoall: number of exchanges, and all other collectives; tests/apps. The \
         size of blocks is fitted, by peak from the recording. The document's allgather is that of releases \
         before 2.16: unchecked",
    ),
    options: &[
        AppOption { name: "neurons", default: "1000000", about: "neurons of all processes (assumed)" },
        AppOption { name: "synapses", default: "1000", about: "synapses of a neuron (assumed)" },
        AppOption { name: "rate", default: "3", about: "spikes of a neuron in a second (assumed)" },
        AppOption { name: "interval", default: "10", about: "steps of 0.1 ms in an interval (assumed)" },
        AppOption { name: "time", default: "100", about: "simulated biological time in ms" },
        AppOption { name: "threads", default: "1", about: "threads of a process, at most 32" },
        AppOption {
            name: "exchange",
            default: "allgather",
            about: "exchange of spikes, allgather or alltoall",
        },
        AppOption {
            name: "peak",
            default: "0",
            about: "most spikes of a process in an interval, for alltoall; 0: the mean",
        },
        AppOption { name: "building", default: "yes", about: "answer whether to build first, yes or no" },
    ],
    memory: None,
    build,
};

/// Operations of a neuron in a step.
const NEURON_FLOPS: u64 = 20;
/// Operations of a spike at a synapse, and the bytes that it touches there.
const SYNAPSE_FLOPS: u64 = 2;
const SYNAPSE_BYTES: u64 = 16;
/// Operations for making a synapse, and the bytes that it takes.
const BUILDING_FLOPS: u64 = 50;
const BUILDING_BYTES: u64 = 48;
/// Bytes of a spike in an all-to-all (`spike_data.h`).
const SPIKE_BYTES: u64 = 8;
/// Times that NEST agrees on before and after the intervals, each as its start and end.
const TIMES: u64 = 10;
/// Steps in a second of biological time.
const STEPS: u64 = 10_000;

fn build(options: &Options<'_>) -> Result<Vec<KernelPart>, AppError> {
    let neurons = options.count("neurons", 1..=1 << 33)?;
    let synapses = options.count("synapses", 1..=1 << 20)?;
    let rate = options.count("rate", 1..=1000)?;
    let interval = options.count("interval", 1..=1000)?;
    let time = options.count("time", 1..=1 << 30)?;
    let threads = options.count("threads", 1..=32)?;
    let is_alltoall = options.word("exchange", &["allgather", "alltoall"])? == 1;
    let peak = options.count("peak", 0..=1 << 33)?;
    if peak > 0 && !is_alltoall {
        return Err(options
            .refuse_value("peak", "0 where exchange is allgather, whose blocks do not grow".to_owned()));
    }
    let builds = options.word("building", &["no", "yes"])? == 1;
    let ranks = u64::from(options.ranks());
    let own = neurons.div_ceil(ranks);
    // Spikes of a process in an interval, and of all: at least the one that the block has room for.
    let spikes_of = |neurons: u64| (neurons * rate * interval).div_ceil(STEPS);
    let (block, all) = (spikes_of(own), spikes_of(neurons));
    // Synapses are dealt out as neurons are: each process has its share of those of any neuron.
    let share = |whole: u64| whole.div_ceil(ranks * threads);
    let moving = Computation {
        flops: own.div_ceil(threads) * NEURON_FLOPS * interval,
        bytes: Bytes::new(own.div_ceil(threads) * 64),
    };
    let reached = share(all * synapses);
    let delivery = Computation { flops: reached * SYNAPSE_FLOPS, bytes: Bytes::new(reached * SYNAPSE_BYTES) };
    let gather = match is_alltoall {
        false => AllRanks::moving(Collective::Allgather, Bytes::new(4 * block)),
        // Room for two spikes at least.
        true => {
            let most = if peak == 0 { block } else { peak };
            AllRanks::moving(Collective::Alltoall, Bytes::new(SPIKE_BYTES * (most * 3 / 2).max(2)))
        }
    };
    let mut parts = Vec::new();
    if builds {
        let made = share(neurons) * synapses;
        let making = Computation { flops: made * BUILDING_FLOPS, bytes: Bytes::new(made * BUILDING_BYTES) };
        let meeting = AllRanks::moving(Collective::Barrier, Bytes::ZERO);
        parts.extend([making.into(), meeting.into()]);
    }
    let intervals = (time * STEPS / 1000).div_ceil(interval);
    let times = || is_alltoall.then(|| KernelPart::repeat(TIMES, vec![AllRanks::least(2).into()]));
    parts.extend(times());
    parts.push(KernelPart::repeat(intervals, vec![moving.into(), gather.into(), delivery.into()]));
    // NEST waits for all processes at the end of a run.
    parts.extend(is_alltoall.then(|| AllRanks::moving(Collective::Barrier, Bytes::ZERO).into()));
    parts.extend(times());
    Ok(parts)
}
