//! Ranks that are threads of this process and write into their devices whatever they are told to: for tests and fuzzing of
//! what the simulator makes of it.

use crate::HostModel;
use crate::job::{Death, Job};
use crate::live::seating;
use crate::run::{LiveError, LiveRun, LiveSetup};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use weft_client::device::{DeviceError, Shared, State, Turn};
use weft_msg::Protocol;
use weft_sim::experiment::live::{LiveAccount, RunRequest};
use weft_sim::experiment::replay::Mapping;
use weft_sim::experiment::{ExperimentError, MachineInput, RunOptions};
use weft_sim::machine::Machine;
use weft_topo::Layout;
use weft_units::{EndpointId, Span};

/// What a puppet does at the end of its turn.
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
    /// Its file is not there.
    #[error("the device cannot be opened: {0}")]
    File(#[from] io::Error),
    /// It is none.
    #[error(transparent)]
    Device(#[from] DeviceError),
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
/// Its device is not there.
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

/// A job of ranks at these endpoints, without processes, that writes no results: the machine's costs are those of `exanest`. Turns
/// overlap, or each ends where it begins.
///
/// # Errors
/// No run can be made of it.
pub fn job(
    machine: &Machine,
    layout: Layout,
    protocol: &Protocol,
    endpoints: &[EndpointId],
    overlapping: bool,
) -> Result<LiveRun, PuppetError> {
    let request = RunRequest {
        machine: MachineInput { name: String::new(), text: String::new(), sets: Vec::new() },
        program: vec!["puppet".to_owned()],
        ranks: endpoints.len() as u32,
        map: Mapping::Linear,
        ranks_per_host: None,
        host: "none".to_owned(),
        fast_polling: false,
        seed: 1,
        breakdown: false,
    };
    let options = RunOptions { check: true, ..RunOptions::default() };
    let account = LiveAccount::open(request, options, seating(endpoints), (machine, &layout))?;
    let setup = LiveSetup {
        overlapping,
        protocol,
        host: HostModel::None,
        poll: Span::from_ns(50),
        clock_read: Span::from_ns(20),
        jumps: false,
        watchdog: None,
        seed: 1,
    };
    Ok(LiveRun::new(machine, layout, account, &setup)?)
}
