//! Requests of real ranks to services of the simulated machine.
//!
//! ```text
//!   post ──► requests ──► the services of this endpoint, which ask the store ──► answer ──► notice
//! ```

use super::{Handler, LiveHost};
use crate::nonsense::Nonsense;
use weft_client::device::{Notice, NoticeKind, Post, PostKind, RawEnvelope};
use weft_client::rank::ServiceRequest;
use weft_nic::HostContext;
use weft_units::{Bytes, EndpointId, Time};
use weft_workload::replay::Cause;
use weft_workload::services::key_value::{RankAnswer, RankRequest, RequestError};

impl<C: HostContext<LiveHost>> Handler<'_, C> {
    /// A rank asks a store.
    pub(super) fn carry_request(&mut self, seat: usize, post: &Post, at: Time) -> Result<(), Nonsense> {
        let (key, length) = (post.key, post.length);
        let key = u16::try_from(key).map_err(|_| Nonsense::Request { key, length })?;
        if length > ServiceRequest::MOST_BYTES {
            return Err(Nonsense::Request { key: key.into(), length });
        }
        self.parameters.pending.asked();
        self.host.requests.push_back(RankRequest {
            seat: seat as u32,
            token: post.token,
            store: EndpointId(post.to),
            key,
            put: (post.kind == PostKind::ServicePut as u32).then_some(Bytes::new(length)),
            at,
        });
        Ok(())
    }

    /// A request has ended.
    pub(super) fn request_ended(mut self, answer: &RankAnswer) {
        let seat = answer.seat as usize;
        let (error, bytes) = match answer.outcome {
            Ok(bytes) => (0, bytes),
            Err(RequestError::NoStore) => (libc::ENXIO, Bytes::ZERO),
            Err(RequestError::TooMany) => (libc::ENOBUFS, Bytes::ZERO),
            Err(RequestError::Lost) => (libc::ETIMEDOUT, Bytes::ZERO),
        };
        let envelope = RawEnvelope { bytes: bytes.get(), ..RawEnvelope::default() };
        let (kind, token) = (NoticeKind::Done as u32, answer.token);
        let notice = Notice { kind, token, error, envelope, ..Notice::default() };
        // The messages of a request are in no record of ranks' messages: what came before is not known.
        self.tell(seat, notice, Vec::new(), Cause::Beginning);
    }
}
