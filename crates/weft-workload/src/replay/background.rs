//! Flows beside the ranks: traffic of a generator at the same endpoints and on the same links.
//!
//! ```text
//!   ranks ── virtual interfaces 0, 1, … ──┐
//!                                         ├──► interface ──► fabric
//!   flows ── one more virtual interface ──┘
//! ```
//! No rank is told of their transfers, and no processor of a rank works on them: they are those of a
//! [scenario](crate::scenario).

use super::{ReplayHeader, ReplayHost, ReplayParameters, ReplayTimer};
use crate::scenario::{Form, Generators, Next, ScenarioParameters};
use weft_msg::{Body, Envelope, SendEntry};
use weft_nic::{Delivered, HostContext};
use weft_units::{Bytes, EndpointId, RankId};

/// The seat in the header of a transfer, which is of no rank.
const NO_RANK: u32 = u32::MAX;
/// The bit of tokens of transfers. Those of ranks' sends are places in a list, which is shorter.
const TOKEN: u32 = 1 << 31;

/// The flows of a run of ranks.
#[derive(Clone, Debug)]
pub struct Background {
    /// The flows.
    pub scenario: ScenarioParameters,
    /// The virtual interface that they use at every endpoint: the first that no rank has.
    pub interface: u16,
}

impl Background {
    fn form(&self) -> Form<ReplayHost> {
        Form { interface: self.interface, header, timer: ReplayTimer::Flow, token: |place| place | TOKEN }
    }
}

/// The header of a transfer of a flow. Its envelope has no meaning.
fn header(flow: u32) -> ReplayHeader {
    let body = Body::Receipt { send: SendEntry::new(0) };
    let envelope = Envelope::new(RankId(0), Bytes::ZERO, body);
    ReplayHeader { envelope, seat: NO_RANK, number: flow, home: EndpointId(0), stripe: None }
}

impl ReplayHeader {
    /// The flow of a transfer; `None`: it is of a rank.
    #[inline]
    pub fn flow(&self) -> Option<u32> {
        (self.seat == NO_RANK).then_some(self.number)
    }
}

impl ReplayHost {
    /// The same with flows that begin at its endpoint.
    pub fn with_flows(self, flows: Generators) -> ReplayHost {
        ReplayHost { flows: Some(Box::new(flows)), ..self }
    }

    pub(super) fn start_flows(&self, parameters: &ReplayParameters, context: &mut impl HostContext<Self>) {
        if let (Some(flows), Some(background)) = (&self.flows, &parameters.background) {
            flows.start(&background.form(), &background.scenario, context);
        }
    }

    pub(super) fn begin_transfer(
        &mut self,
        next: Next,
        parameters: &ReplayParameters,
        context: &mut impl HostContext<Self>,
    ) {
        if let (Some(flows), Some(background)) = (&mut self.flows, &parameters.background) {
            let begun = flows.begin(next, &background.form(), &background.scenario, context);
            let now = context.now();
            begun.into_iter().for_each(|flow| context.output().background.begun(flow, now));
        }
    }

    /// Whether a token was that of a transfer, which the interface has taken.
    #[inline]
    pub(super) fn transfer_sent(
        &self,
        token: u32,
        parameters: &ReplayParameters,
        context: &mut impl HostContext<Self>,
    ) -> bool {
        let (Some(flows), Some(background)) = (&self.flows, &parameters.background) else { return false };
        let is_transfer = token & TOKEN != 0;
        if is_transfer {
            flows.sent(token & !TOKEN, &background.form(), &background.scenario, context);
        }
        is_transfer
    }
}

impl ReplayParameters {
    /// A transfer of a flow has come.
    #[cold]
    pub(super) fn transfer_delivered(
        &self,
        flow: u32,
        message: &Delivered<ReplayHeader>,
        context: &mut impl HostContext<ReplayHost>,
    ) {
        if let Some(background) = &self.background {
            let here = context.endpoint();
            context.output().background.delivered(flow, message, here, &background.scenario);
        }
    }
}
