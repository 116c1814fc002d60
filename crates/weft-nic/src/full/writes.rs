//! RDMA writes as the plainest thing that works: a start, then cells as the port to memory reads them.
//!
//! # Not modelled
//! Pages and channels, blocks, acknowledgements, translation: the RDMA blocks have them.

use super::parameters::FullParameters;
use crate::host_port::HostPort;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_units::{Bytes, EndpointId, Time};

/// A write that is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Write {
    pub to: EndpointId,
    pub number: u32,
    pub bytes: Bytes,
    pub sent: Bytes,
    pub born: Time,
    pub token: Option<u32>,
    pub watch: bool,
    /// When its next cell has been read.
    pub ready: Time,
}

/// All writes of an interface.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Writes {
    /// When the segmentation agent is free.
    agent: Time,
    /// Those whose cells take turns.
    under_way: VecDeque<Write>,
}

impl Writes {
    /// A descriptor has come at `came`.
    pub fn start(
        &mut self,
        came: Time,
        mut write: Write,
        host_port: &mut HostPort,
        parameters: &FullParameters,
    ) {
        self.agent = self.agent.max(came) + parameters.rdma.start;
        let first = write.bytes.min(parameters.cell);
        write.ready = host_port.read(self.agent, first, &parameters.host_port).ended;
        self.under_way.push_back(write);
    }

    /// When a cell will be ready.
    pub fn ready(&self) -> Time {
        self.under_way.iter().map(|write| write.ready).min().unwrap_or(Time::MAX)
    }

    /// The next cell at `now`: its write after it, and how much it carries.
    pub fn next(
        &mut self,
        now: Time,
        host_port: &mut HostPort,
        parameters: &FullParameters,
    ) -> Option<(Write, Bytes)> {
        let place = self.under_way.iter().position(|write| write.ready <= now)?;
        let mut write = self.under_way.remove(place)?;
        let piece = (write.bytes - write.sent).min(parameters.cell);
        write.sent += piece;
        if write.sent < write.bytes {
            let next = (write.bytes - write.sent).min(parameters.cell);
            write.ready = host_port.read(write.ready, next, &parameters.host_port).ended;
            self.under_way.push_back(write);
        }
        Some((write, piece))
    }

    /// Writes that have not been sent whole.
    pub fn len(&self) -> usize {
        self.under_way.len()
    }
}
