//! A host and its interface, while the fabric calls them.

use crate::data::DataError;
use crate::host::{Delivered, Failure, Host, HostContext};

/// A host, with the view of its interface that it has while it is called. All interfaces call their hosts
/// through it.
pub struct Hosted<'a, H: Host, N> {
    /// The host.
    pub host: &'a mut H,
    /// The parameters that all hosts share.
    pub parameters: &'a H::Parameters,
    /// The interface, as the host sees it.
    pub node: N,
}

impl<H: Host, N: HostContext<H>> Hosted<'_, H, N> {
    /// The run begins.
    #[inline]
    pub fn start(&mut self) {
        self.host.start(self.parameters, &mut self.node);
    }

    /// A timer of the host has fired.
    #[inline]
    pub fn host_timer(&mut self, timer: H::Timer) {
        self.host.timer(timer, self.parameters, &mut self.node);
    }

    /// The interface has taken all data of the message that was sent with `token`.
    #[inline]
    pub fn sent(&mut self, token: u32) {
        self.host.sent(token, self.parameters, &mut self.node);
    }

    /// The host notices a message.
    #[inline]
    pub fn deliver(&mut self, message: &Delivered<H::Header>) {
        self.host.delivered(message, self.parameters, &mut self.node);
    }

    /// The allreduce that was asked for with `token` is done.
    #[inline]
    pub fn accelerated(&mut self, token: u32) {
        self.host.accelerated(token, self.parameters, &mut self.node);
    }

    /// A message of the host has failed.
    #[inline]
    pub fn fail(&mut self, failure: &Failure) {
        self.host.failed(failure, self.parameters, &mut self.node);
    }

    /// The bytes of a message to the host, or of a result, are wrong.
    #[inline]
    pub fn damage(&mut self, error: &DataError, header: Option<&H::Header>) {
        debug_assert_eq!(error.destination, self.node.endpoint());
        self.host.damaged(error, header, &mut self.node);
    }
}
