//! The state in which a simulation begins.

use crate::event::Event;
use crate::lookahead::Lookahead;
use crate::model::Model;

/// A model with its sites before anything has happened. Whoever builds a model returns this, and
/// [`Simulation::new`](crate::Simulation::new) runs it.
pub struct InitialState<M: Model> {
    /// The model.
    pub model: M,
    /// The sites, by their ids.
    pub sites: Vec<M::Site>,
    /// The first events.
    pub events: Vec<Event<M::Payload>>,
    /// The least time from one site to another.
    pub lookahead: Lookahead,
}
