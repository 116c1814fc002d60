//! Puppets: ranks that are threads of this process, and write into their devices what a test tells them.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use weft_assembly::{self as assembly, AssemblyError};
use weft_client::device::{DeviceError, Shared, State, Turn};
use weft_host::job::Job;
use weft_host::live::seating;
use weft_host::run::{LiveError, LiveRun};
use weft_host::{Death, Domains, HostModel, LiveSetup};
use weft_machine::{Machine, MessageBuffers};
use weft_msg::Protocol;
use weft_sim::experiment::live::{LiveAccount, RunRequest};
use weft_sim::experiment::replay::Mapping;
use weft_sim::experiment::{ExperimentError, ExperimentOptions, MachineInput};
use weft_units::{EndpointId, Span};

/// The protection domains of the jobs here: their own, and another.
pub const DOMAINS: [u16; 2] = [1, 9];

/// How a puppet ends its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// It gives the turn away in this state.
    Hand(State),
    /// It gives it away, and writes this number where its state is.
    Say(u32),
    /// It ends.
    End,
}

/// A job that cannot be set up, or a device that cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum PuppetError {
    /// The device file cannot be opened.
    #[error("the device cannot be opened: {0}")]
    File(#[from] io::Error),
    /// The file is not a device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The machine has no such topology.
    #[error(transparent)]
    Assembly(#[from] AssemblyError),
    /// The account of a run cannot be opened.
    #[error(transparent)]
    Account(#[from] ExperimentError),
    /// The run cannot be made.
    #[error(transparent)]
    Run(#[from] LiveError),
}

/// Plays a rank until `act`, which is called in its turns, ends it, or the job stops. The rank joins at once.
///
/// # Errors
/// The rank's device cannot be opened.
pub fn play(
    job: &Arc<Job>,
    rank: u32,
    mut act: impl FnMut(&mut Shared) -> Move + Send + 'static,
) -> Result<JoinHandle<()>, PuppetError> {
    let file = File::options().read(true).write(true).open(job.device_path(rank))?;
    let (device, mut lists) = (Shared::open(&file)?, Shared::open(&file)?);
    let job = Arc::clone(job);
    Ok(std::thread::spawn(move || {
        let mut next = Move::Hand(State::Ready);
        loop {
            match next {
                Move::Hand(state) => device.set_state(state),
                Move::Say(number) => device.set_state_number(number),
                Move::End => return job.died(rank, Death::Exited(0)),
            }
            device.give_turn(Turn::Simulator);
            while device.turn() == Turn::Simulator {
                if job.is_stopping() {
                    return;
                }
                device.sleep_while(Turn::Simulator, Some(Duration::from_millis(20)));
            }
            next = act(&mut lists);
        }
    }))
}

/// A job of ranks at these endpoints, without processes, that writes no results, with the costs of `exanest`.
/// If not `overlapping`, each turn ends where it begins.
///
/// # Errors
/// The run cannot be set up.
pub fn job(
    machine: &Machine,
    protocol: &Protocol,
    endpoints: &[EndpointId],
    overlapping: bool,
) -> Result<LiveRun, PuppetError> {
    let layout = assembly::layout(machine)?;
    let request = RunRequest {
        machine: MachineInput {
            name: String::new(),
            text: String::new(),
            sets: Vec::new(),
            files: Default::default(),
        },
        program: vec!["puppet".to_owned()],
        ranks: endpoints.len() as u32,
        map: Mapping::Linear,
        ranks_per_host: None,
        host: "none".to_owned(),
        fast_polling: false,
        seed: 1,
        domains: Vec::new(),
        breakdown: false,
        region: None,
        telemetry: None,
        scenario: None,
    };
    let options = ExperimentOptions { check: true, ..ExperimentOptions::default() };
    let account = LiveAccount::open(request, options, seating(endpoints), (machine, &layout))?;
    let setup = LiveSetup {
        overlapping,
        protocol,
        rails: 1,
        host: HostModel::None,
        poll: Span::from_ns(50),
        clock_read: Span::from_ns(20),
        jumps: false,
        watchdog: None,
        message_buffers: MessageBuffers::Partner,
        domains: Domains::new(&DOMAINS),
        seed: 1,
    };
    Ok(LiveRun::new(machine, layout, account, &setup)?)
}
