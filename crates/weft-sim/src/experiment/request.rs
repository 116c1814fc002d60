//! Requests: everything that the results of a run depend on.

use super::live::RunRequest;
use super::osu::{ExpectedBcastRequest, OsuRequest};
use super::replay::{ReplayRequest, TraceInput};
use super::scenario::ScenarioRequest;
use super::traffic::TrafficRequest;
use serde::{Deserialize, Serialize};
use weft_machine::Files;

/// A machine as it was asked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MachineInput {
    /// The shipped machine's name, or the machine file's name without its folder.
    pub name: String,
    /// The text of the machine file.
    pub text: String,
    /// The `--set`s in their order, each `key=value`.
    pub sets: Vec<String>,
    /// The texts of the files that it names, such as that of a graph, by their names there.
    #[serde(default, skip_serializing_if = "Files::is_empty")]
    pub files: Files,
}

/// Everything that the results of a run depend on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "lowercase")]
pub enum Request {
    /// `weft traffic`.
    Traffic(TrafficRequest),
    /// `weft traffic --scenario`.
    Scenario(ScenarioRequest),
    /// `weft replay`.
    Replay(ReplayRequest),
    /// `weft osu BENCHMARK`.
    Osu(OsuRequest),
    /// `weft osu expected-bcast`.
    #[serde(rename = "osu expected-bcast")]
    ExpectedBcast(ExpectedBcastRequest),
    /// `weft run`.
    Run(RunRequest),
}

impl Request {
    /// The machine that it runs on.
    pub fn machine(&self) -> &MachineInput {
        match self {
            Request::Traffic(request) => &request.machine,
            Request::Scenario(request) => &request.machine,
            Request::Replay(request) => &request.machine,
            Request::Osu(request) => &request.machine,
            Request::ExpectedBcast(request) => &request.machine,
            Request::Run(request) => &request.machine,
        }
    }

    /// The traces that it reads.
    pub fn traces(&self) -> &[TraceInput] {
        match self {
            Request::Replay(replay) => &replay.traces,
            Request::Scenario(scenario) => &scenario.traces,
            _ => &[],
        }
    }

    /// The traces that it reads.
    pub fn traces_mut(&mut self) -> &mut [TraceInput] {
        match self {
            Request::Replay(replay) => &mut replay.traces,
            Request::Scenario(scenario) => &mut scenario.traces,
            _ => &mut [],
        }
    }
}
