//! The life of an operation in a reduction module.
//!
//! ```text
//!   programming ─► fetching ─┬ client ─► awaiting ────────────────┬─► finishing
//!                            └ server ─► gathering ─► exchanging ─┘
//! ```

use crate::block::{Block, block};
use serde::{Deserialize, Serialize};

/// How far a module is with an operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum ModuleState {
    /// Software is at it.
    Programming,
    /// The vector is coming from memory.
    Fetching,
    /// Client: its vector has gone, the result has not come.
    Awaiting,
    /// Server: vectors of its board are missing.
    Gathering,
    /// Server: vectors of other boards are missing.
    Exchanging,
    /// The result is on its way to memory and software.
    Finishing,
}

/// An event of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ModuleEvent {
    /// Software has written all that the module needs.
    Programmed,
    /// The vector has come from memory.
    Fetched,
    /// The board's vectors are reduced.
    Gathered,
    /// The last exchange is reduced.
    Exchanged,
    /// The result has come.
    Result,
}

/// Which of the two modules.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Role {
    /// On F2 to F4.
    Client,
    /// On F1.
    Server,
}

impl ModuleState {
    /// All states.
    pub const ALL: [ModuleState; 6] = [
        ModuleState::Programming,
        ModuleState::Fetching,
        ModuleState::Awaiting,
        ModuleState::Gathering,
        ModuleState::Exchanging,
        ModuleState::Finishing,
    ];

    /// The state in reports, where the reduction module (TR-488 §4.7) is a block of its own in each.
    pub const fn block(self) -> Block {
        match self {
            ModuleState::Programming => block!(Software "allreduce programming"),
            ModuleState::Fetching => block!(Logic "allreduce fetching"),
            ModuleState::Awaiting => block!(Logic "allreduce awaiting"),
            ModuleState::Gathering => block!(Logic "allreduce gathering"),
            ModuleState::Exchanging => block!(Logic "allreduce exchanging"),
            ModuleState::Finishing => block!(Logic "allreduce finishing"),
        }
    }

    /// The transition table; `None`: the event means nothing in this state and is ignored.
    pub const fn next(self, event: ModuleEvent, role: Role) -> Option<ModuleState> {
        Some(match (self, event, role) {
            (ModuleState::Programming, ModuleEvent::Programmed, _) => ModuleState::Fetching,
            (ModuleState::Fetching, ModuleEvent::Fetched, Role::Client) => ModuleState::Awaiting,
            (ModuleState::Fetching, ModuleEvent::Fetched, Role::Server) => ModuleState::Gathering,
            (ModuleState::Awaiting, ModuleEvent::Result, Role::Client) => ModuleState::Finishing,
            (ModuleState::Gathering, ModuleEvent::Gathered, Role::Server) => ModuleState::Exchanging,
            (ModuleState::Exchanging, ModuleEvent::Exchanged, Role::Server) => ModuleState::Finishing,
            _ => return None,
        })
    }
}
