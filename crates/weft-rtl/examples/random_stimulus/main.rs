//! Blocks of RTL beside their models under random stimulus: `random_stimulus BLOCK CYCLES SEED`.
//!
//! ```text
//!   random ──► model of the block ── what crosses its ports ──► RTL in step: the first difference ends it
//! ```
//! `rtl/run.py random` runs it, for the tests and for the speed in `make bench`.

mod mailbox;
mod packetizer;

use std::collections::BTreeSet;
use std::process::ExitCode;
use weft_machine::Nic;
use weft_nic::ExanetParameters;
use weft_nic::ports::{Crossing, PortEvent};
use weft_rtl::{LockStep, RtlLibrary};
use weft_units::{Clock, EndpointId, Time};

/// The endpoint whose blocks are looked at.
const HERE: EndpointId = EndpointId(5);

/// The RTL beside a model, and the random numbers of the stimulus.
struct Bench {
    lock_step: LockStep,
    clock: Clock,
    state: u64,
}

impl Bench {
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
        let event = PortEvent { endpoint: HERE, at, what };
        let taken = self.lock_step.take(&event, |endpoint| endpoint.to_string());
        taken.expect("the blocks have begun as the first event came");
    }

    /// Steps the RTL up to `now`.
    ///
    /// # Errors
    /// The first difference, in words.
    fn advance(&mut self, now: Time) -> Result<(), String> {
        self.lock_step.advance(now).map_or(Ok(()), |difference| Err(difference.to_string()))
    }

    /// Steps the RTL to the end, at `now`.
    ///
    /// # Errors
    /// The first difference, in words.
    fn finish(&mut self, now: Time) -> Result<(), String> {
        self.lock_step.finish(now).map_or(Ok(()), |difference| Err(difference.to_string()))
    }
}

fn run(block: &str, cycles: u64, seed: u64) -> Result<String, String> {
    let machine = weft_machine::load("exanest", &[] as &[&str]).map_err(|errors| errors.to_string())?;
    let Nic::Exanet(nic) = &machine.nic else { return Err("exanest has another interface".to_owned()) };
    let parameters: ExanetParameters = nic.parameters(0);
    let library = RtlLibrary::find().map_err(|error| error.to_string())?;
    let blocks = BTreeSet::from([block.parse().map_err(|error: weft_rtl::RtlError| error.to_string())?]);
    let lock_step = LockStep::new(&library, &blocks, &parameters, None).map_err(|error| error.to_string())?;
    let clock = parameters.mailbox.clock;
    let mut bench = Bench { lock_step, clock, state: seed };
    let end = clock.edge(cycles);
    match block {
        "mailbox" => mailbox::run(&mut bench, &parameters.mailbox, end),
        "packetizer" => packetizer::run(&mut bench, &parameters.packetizer, end),
        _ => Err(format!("there is no random stimulus for {block}")),
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |word: &String| word.parse::<u64>().ok();
    let [block, cycles, seed] = &words[..] else {
        println!("random_stimulus BLOCK CYCLES SEED");
        return ExitCode::from(2);
    };
    let (Some(cycles), Some(seed)) = (number(cycles), number(seed)) else {
        println!("CYCLES and SEED are whole numbers");
        return ExitCode::from(2);
    };
    match run(block, cycles, seed) {
        Ok(said) => {
            println!("{block}, {cycles} cycles, seed {seed}: {said}, no difference");
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("{block}, seed {seed}: {why}");
            ExitCode::FAILURE
        }
    }
}
