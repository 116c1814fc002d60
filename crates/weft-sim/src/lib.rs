//! The simulator as a whole: experiments on a machine, from the request to the report.
//!
//! ```text
//!  Request ──► Machine ──► Layout, parameters ──► SimulatedNetwork
//!     │     checked      assembly            network      │ run_until, epoch by epoch
//!     │                                                   ▼
//!     │                                      outputs of hosts, use of links
//!     │                                                   │ experiment
//!     ▼                                                   ▼
//!  run.json ◄── ResultsWriter ◄── rows of tables ◄── counts ──► Report
//!               (weft-results)                           └────► timeline
//! ```
//!
//! An [experiment](experiment::Experiment) is a request: the machine as text, the work, the seeds. Its
//! machine is checked by `weft-machine`, which alone reads configuration. [`weft_assembly`] makes of it what
//! the crates below take: a topology with its routing, parameters of links, switches and interfaces, the
//! protocol of messaging. A [`weft_network::NetworkSetup`] builds the network with a host behind every
//! endpoint: a source of traffic, or the ranks of programs.
//!
//! The experiment then runs the network from one virtual epoch to the next. At each epoch it takes what the
//! hosts have reported and hands rows to the result directory. It looks whether the user has interrupted the
//! run, whether a snapshot is due, and whether anything still moves. At the end it reads the counters of the
//! links and closes the directory with `run.json`. It returns a [report](experiment::Report): how the run
//! ended, the rows that were measured, how fast it was.
//!
//! | module | contents |
//! |---|---|
//! | [`experiment`] | requests, experiments and their reports |
//! | `job_sites` | which job a packet is of |
//! | `telemetry` | links and queues over virtual time |
//! | [`timeline`] | the file that a timeline viewer opens |

pub mod experiment;
mod job_sites;
mod telemetry;
pub mod timeline;
