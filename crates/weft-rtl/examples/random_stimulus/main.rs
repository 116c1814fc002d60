//! Blocks of RTL beside their models under random stimulus: `random_stimulus BLOCK BITS CYCLES SEED`, where
//! buses have so many bits.
//!
//! ```text
//!   random ──► model of the block ── what crosses its ports ──► RTL in step: the first difference ends it
//! ```
//! `rtl/run.py random` runs it, for the tests and for the speed in `make bench`.

mod allreduce;
mod mailbox;
mod packetizer;
mod rdma_receive;
mod segmentation;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weft_machine::Nic;
use weft_nic::ExanetParameters;
use weft_nic::ports::{Crossing, PortEvent};
use weft_rtl::{BlockName, LockStep, RtlError, RtlLibrary};
use weft_units::{Clock, EndpointId, Time};

/// The endpoint whose blocks are looked at.
const HERE: EndpointId = EndpointId(5);

/// Sets of exanest by the bits of its buses: those of caRVnet at its clock, with pages of 128 bits all the
/// same.
const SETS: [(u64, &[&str]); 2] = [
    (128, &[]),
    (
        512,
        &[
            "nic.clock=200MHz",
            "nic.host_port.word=64",
            "nic.host_port.store_clock=200MHz",
            "nic.host_port.store_word=16",
            "nic.host_port.store_latency=13 cycles",
            "nic.host_port.burst_words=4",
            "nic.host_port.outstanding_bursts=16",
            "nic.rdma.cell_buffers=16",
            "nic.rdma.cell_overhead=0 cycles",
        ],
    ),
];

/// Cycles of a run in which everything has to come about.
const WHOLE_RUN: u64 = 10_000_000;

/// The RTL beside a model, and the random numbers of the stimulus.
struct Bench {
    library: Arc<RtlLibrary>,
    blocks: BTreeSet<BlockName>,
    parameters: ExanetParameters,
    lock_step: LockStep,
    clock: Clock,
    state: u64,
}

/// Things of a class that have come about, and how often.
struct Bins<const N: usize>([(&'static str, u64); N]);

impl<const N: usize> Default for Bins<N> {
    fn default() -> Bins<N> {
        Bins([("", 0); N])
    }
}

impl<const N: usize> Bins<N> {
    /// Something of this name has come about.
    fn count(&mut self, name: &'static str) {
        let bin = self.0.iter_mut().find(|(known, _)| *known == name || known.is_empty());
        let (known, count) = bin.expect("a class has as many names as bins");
        (*known, *count) = (name, *count + 1);
    }

    /// All of it in words.
    ///
    /// # Errors
    /// In a whole run some of it has not come about.
    fn tell(&self, whole_run: bool) -> Result<String, String> {
        let told: Vec<_> = self
            .0
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        if whole_run && told.len() < N {
            return Err(format!("of {N} things that could come about these have: {}", told.join(", ")));
        }
        Ok(told.join(", "))
    }
}

impl Bench {
    /// Resets the RTL in the middle of whatever it does, behind any inputs.
    fn reset(&mut self) {
        let seed = self.below(u64::MAX);
        let library = self.library.behind_random_inputs(seed);
        let lock_step = LockStep::new(&library, &self.blocks, &self.parameters, None);
        self.lock_step = lock_step.expect("the blocks have begun before");
    }

    /// A random number below `limit`.
    fn below(&mut self, limit: u64) -> u64 {
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ mixed >> 31) % limit
    }

    /// Whether something happens that does so often in a thousand.
    fn in_thousand(&mut self, often: u64) -> bool {
        self.below(1000) < often
    }

    /// Something has crossed a port at `at`.
    fn cross(&mut self, at: Time, what: Crossing) {
        self.cross_of(HERE, at, what);
    }

    /// Something has crossed a port of an endpoint at `at`.
    fn cross_of(&mut self, endpoint: EndpointId, at: Time, what: Crossing) {
        let event = PortEvent { endpoint, at, what };
        let taken = self.lock_step.take(&event, |endpoint| endpoint.to_string());
        taken.expect("the blocks have begun as the first event came");
    }

    /// Steps the RTL up to `now`.
    ///
    /// # Errors
    /// The first difference, in words.
    fn advance(&mut self, now: Time) -> Result<(), String> {
        let never = AtomicBool::new(false);
        let difference = self.lock_step.advance(now, &never);
        difference.map_or(Ok(()), |difference| Err(difference.to_string()))
    }

    /// Steps the RTL to the end, at `now`.
    ///
    /// # Errors
    /// The first difference, in words.
    fn finish(&mut self, now: Time) -> Result<(), String> {
        self.lock_step.finish(now).map_or(Ok(()), |difference| Err(difference.to_string()))
    }
}

fn run(block: &str, bits: u64, cycles: u64, seed: u64) -> Result<String, String> {
    let of_bits = SETS.iter().find(|(of, _)| *of == bits);
    let (_, sets) = of_bits.ok_or_else(|| format!("there are no buses of {bits} bits"))?;
    let sets = [&["nic.segmentation.agent=hardware"], *sets].concat();
    let machine = weft_machine::load("exanest", &sets).map_err(|errors| errors.to_string())?;
    let Nic::Exanet(nic) = &machine.nic else { return Err("exanest has another interface".to_owned()) };
    let parameters: ExanetParameters = nic.parameters(0);
    let library = RtlLibrary::find().map_err(|error| error.to_string())?;
    let blocks = BTreeSet::from([block.parse().map_err(|error: RtlError| error.to_string())?]);
    let lock_step = LockStep::new(&library, &blocks, &parameters, None).map_err(|error| error.to_string())?;
    let clock = parameters.mailbox.clock;
    let mut bench = Bench { library, blocks, parameters, lock_step, clock, state: seed };
    let end = clock.edge(cycles);
    match block {
        "allreduce" => allreduce::run(&mut bench, &parameters, end),
        "mailbox" => mailbox::run(&mut bench, &parameters.mailbox, end),
        "packetizer" => packetizer::run(&mut bench, &parameters.packetizer, end),
        "rdma_receive" => rdma_receive::run(&mut bench, &parameters, end),
        "segmentation" => segmentation::run(&mut bench, &parameters, end),
        _ => Err(format!("there is no random stimulus for {block}")),
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |word: &String| word.parse::<u64>().ok();
    let [block, bits, cycles, seed] = &words[..] else {
        println!("random_stimulus BLOCK BITS CYCLES SEED");
        return ExitCode::from(2);
    };
    let (Some(bits), Some(cycles), Some(seed)) = (number(bits), number(cycles), number(seed)) else {
        println!("BITS, CYCLES and SEED are whole numbers");
        return ExitCode::from(2);
    };
    match run(block, bits, cycles, seed) {
        Ok(said) => {
            println!("{block} of {bits} bits, {cycles} cycles, seed {seed}: {said}, no difference");
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("{block} of {bits} bits, seed {seed}: {why}");
            ExitCode::FAILURE
        }
    }
}
