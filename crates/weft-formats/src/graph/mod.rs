//! A rank as a graph: operations that start when others have started or ended. Formats of graphs are cut into
//! streams (chains.rs) and kept in a file of weft's own format, from which they are read (spool.rs).

mod chains;
mod spool;

pub(crate) use spool::{GraphFiles, StreamFiles, spool, spool_streams};

use weft_trace::op::{Collective, CommId, RankRange, SignalAt};
use weft_units::{Bytes, RankId, Span};

/// An operation of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GraphAction {
    /// Sends a message.
    Send { to: RankId, bytes: Bytes, tag: i32 },
    /// Receives one; `None`: from anybody, of any tag.
    Receive { from: Option<RankId>, bytes: Bytes, tag: Option<i32> },
    /// Computes.
    Compute { span: Span },
    /// Takes part in one of the rank's collectives, whatever else it does meanwhile.
    Collective { number: u32 },
}

/// A collective that a rank takes part in. Its sizes are those of [`weft_trace::op::CollectiveSizes`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GraphCollective {
    pub(crate) kind: Collective,
    pub(crate) comm: CommId,
    pub(crate) root: Option<RankId>,
    pub(crate) send: Bytes,
    pub(crate) receive: Bytes,
}

/// A communicator that a rank is a member of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GraphCommunicator {
    pub(crate) comm: CommId,
    pub(crate) members: Vec<RankRange>,
}

/// An operation with the core of the rank that it is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GraphOperation {
    pub(crate) action: GraphAction,
    pub(crate) core: u32,
}

/// One operation waits for another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Dependency {
    /// The one that waits.
    pub(crate) node: u32,
    /// The one that it waits for.
    pub(crate) on: u32,
    /// Whether for its start or its end.
    pub(crate) at: SignalAt,
}

/// The operations of a rank and what they wait for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct RankGraph {
    pub(crate) nodes: Vec<GraphOperation>,
    pub(crate) dependencies: Vec<Dependency>,
    /// By number. Members of a communicator begin its collectives in one order: dependencies keep it.
    pub(crate) collectives: Vec<GraphCollective>,
    /// Those other than the world, which exist from the begin on.
    pub(crate) communicators: Vec<GraphCommunicator>,
}

/// Operations that wait for each other in a circle, one of which this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DependencyCycle {
    pub(crate) node: u32,
}
