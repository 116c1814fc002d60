//! Requests of a rank to key-value stores of the simulated machine.
//!
//! ```text
//!   weft_service_get, _put ──► post ──► key, value: sizes ──► store ──► answer ──► completion: its size
//! ```
//!
//! # Not modelled
//! Contents. A request and its answer have the sizes that those of a real store have, and no bytes.

use super::Rank;
use crate::device::{Call, Post, PostKind};
use crate::operation::{About, Completion, Operation, flag};
use weft_msg::{Transport, Work};

/// A request to the store of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServiceRequest {
    /// The node.
    pub node: u32,
    /// The key.
    pub key: u16,
    /// Bytes of the value that is put; `None`: it is a get.
    pub put: Option<u64>,
}

impl ServiceRequest {
    /// The largest value that is put, in bytes.
    pub const MOST_BYTES: u64 = 1 << 30;
}

impl Rank {
    /// Asks a store; see `weft_service_get`.
    pub fn ask(&mut self, request: ServiceRequest, context: usize) {
        let ServiceRequest { node, key, put } = request;
        let (kind, length) = match put {
            Some(length) => (PostKind::ServicePut, length),
            None => (PostKind::ServiceGet, 0),
        };
        self.enter(Call::Send);
        self.port.spend(Work::SendCall, self.protocol.send_call);
        let about = About { peer: Some(node), tag: key.into(), ignored: 0, bytes: length };
        let operation = Operation::Request { completion: Completion::of(context, flag::SERVED), about };
        let token = self.port.operations.insert(operation) as u32 + 1;
        let post = Post { to: node, key: key.into(), length, token, ..Post::default() };
        self.port.post_raw(kind, post, &[]);
        self.port.leave();
    }
}
