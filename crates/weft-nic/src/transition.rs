//! Inputs that a state machine does not take.

use std::fmt::Debug;

/// An input that is not in the table of transitions for the present state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{input:?} must not happen in state {state:?}")]
pub struct InvalidTransition<S: Debug, I: Debug> {
    /// The present state, which stays.
    pub state: S,
    /// The input.
    pub input: I,
}
