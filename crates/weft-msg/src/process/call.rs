//! The call that a stream of the program is in, and those of its other streams meanwhile.
//!
//! ```text
//!   Process.call            the call of the stream at work
//!   Process.parked[s]       that of stream s, while another is at work
//! ```
//! A rank with one stream parks none. Requests, queues and tables are the rank's: a message that comes while
//! one stream is at work may end the call of another.

use super::{Process, WaitingFor};
use crate::matching::PostedReceive;
use serde::{Deserialize, Serialize};
use weft_trace::op::StreamId;

/// The call that a stream is in.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct StreamCall {
    pub(super) waiting: WaitingFor,
    /// How often it still polls before it waits: see [`WaitCosts::Polls`](crate::protocol::WaitCosts::Polls).
    pub(super) polls_left: u8,
    /// The message that it looks for.
    pub(super) probe: Option<Box<PostedReceive>>,
    /// Whether it does so by tests.
    pub(super) tests: bool,
}

impl Process {
    /// Another stream of the program is at work from now on.
    pub fn switch_to(&mut self, stream: StreamId) {
        let from = self.stream();
        if from == stream {
            return;
        }
        let parked = self.parked.get_or_insert_default();
        let most = from.index().max(stream.index());
        if parked.len() <= most {
            parked.resize(most + 1, StreamCall::default());
        }
        parked[from.index()] = std::mem::take(&mut self.call);
        self.call = std::mem::take(&mut parked[stream.index()]);
        self.requests.switch_to(stream);
    }

    /// Whether the call of the stream at work still waits for what it waited for: then nobody need look.
    pub fn still_waits(&self) -> bool {
        match self.call.waiting {
            WaitingFor::Nothing | WaitingFor::Probe | WaitingFor::Window => false,
            WaitingFor::Collective(_) => true,
            WaitingFor::Wait | WaitingFor::Waitall | WaitingFor::Waitany => self.requests.is_waiting(),
        }
    }

    /// The stream at work.
    pub fn stream(&self) -> StreamId {
        self.requests.stream()
    }

    /// A blocking collective is over: the stream that is in it goes on.
    pub(super) fn collective_over(&mut self, key: u32) {
        let parked = self.parked.iter_mut().flat_map(|parked| parked.iter_mut());
        let mut calls = std::iter::once(&mut self.call).chain(parked);
        if let Some(call) = calls.find(|call| call.waiting == WaitingFor::Collective(key)) {
            call.waiting = WaitingFor::Nothing;
        }
    }
}
