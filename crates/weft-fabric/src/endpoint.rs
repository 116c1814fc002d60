//! An endpoint: it takes packets from its interface and injects them.
//!
//! ```text
//!   interface ── inject ──► staged, until there are credits ──► link ──► switch
//! ```
//! The other direction needs little state here. Endpoints consume whatever arrives: then the last link has no
//! credits and is never the reason for a deadlock. Or they have a [receiving buffer](crate::receive_buffer).

use crate::channel::Channel;
use crate::congestion::FlowTable;
use crate::constants::Constants;
use crate::credit::{Credit, Credits, ReturningCredits};
use crate::fault::Fault;
use crate::flow_meter::FlowMeter;
use crate::injection::InjectionChannels;
use crate::interface::Interface;
use crate::link::{CarriedCounts, CreditStall, Line, LinkKind, LinkSender, SenderState};
use crate::link_layer::LayerState;
use crate::packet::Packet;
use crate::pause::{Pause, Paused};
use serde::{Deserialize, Serialize};
use weft_topo::LinkClass;
use weft_units::{CountLedger, EndpointId, Span, Time};

/// The only port of an endpoint, as it numbers it.
const PORT: u16 = 0;

/// An endpoint and its link to the switch.
#[derive(Serialize, Deserialize)]
pub(crate) struct Endpoint<N> {
    pub(crate) id: EndpointId,
    pub(crate) interface: N,
    line: Line,
    /// Space in the switch's input buffer, where there is one channel.
    credits: Credits,
    returning: ReturningCredits,
    /// The time at which the next injection is due; an event for another time is stale.
    pub(crate) next_injection: Time,
    /// A packet that waits for credits, where there is one channel.
    pub(crate) staged: Option<Packet>,
    /// Credits and waiting packets, where there are several.
    pub(crate) channels: Option<Box<InjectionChannels>>,
    /// The flows of the endpoint under congestion control.
    pub(crate) flow_table: Option<Box<FlowTable>>,
    /// Counts by flow, where telemetry asks for them.
    pub(crate) meter: Option<Box<FlowMeter>>,
    /// Whether it has a flow table or a meter, so that a packet that comes asks once for both.
    pub(crate) has_receive_hook: bool,
    /// Faults of its link to the switch.
    pub(crate) fault: Option<Box<Fault>>,
    /// Link layer of its link to the switch, where that adds to packets.
    pub(crate) layer: Option<Box<LayerState>>,
    /// Packets that the interface has handed over since the run began.
    pub(crate) supplied: u64,
    pub(crate) carried: CarriedCounts,
    acknowledgements: u64,
    /// Stalls for lack of credits: one is running while a packet is staged.
    pub(crate) stall: CreditStall,
    /// Pauses that the switch has asked for; `None`: it never has.
    paused: Option<Box<Paused>>,
    /// Packets that the interface has received since the run began.
    pub(crate) received: u64,
    /// Their payload in bytes.
    pub(crate) received_payload: u64,
    /// Space of its receiving buffer that the interface keeps, in units of credit.
    pub(crate) held_space: u32,
}

impl<N: Interface> Endpoint<N> {
    /// An endpoint of a network with these constants, behind a link of this class.
    pub(crate) fn new(
        id: EndpointId,
        interface: N,
        (link, constants): (LinkClass, &Constants),
    ) -> Endpoint<N> {
        Endpoint {
            id,
            interface,
            line: Line::default(),
            credits: constants.initial_credits(0),
            returning: ReturningCredits::default(),
            next_injection: Time::NEVER,
            staged: None,
            channels: InjectionChannels::new(link, constants),
            flow_table: None,
            meter: None,
            has_receive_hook: false,
            fault: None,
            layer: None,
            supplied: 0,
            carried: CarriedCounts::default(),
            acknowledgements: 0,
            stall: CreditStall::default(),
            paused: None,
            received: 0,
            received_payload: 0,
            held_space: 0,
        }
    }

    /// It has been given a flow table or a meter.
    pub(crate) fn set_receive_hook(&mut self) {
        self.has_receive_hook = self.flow_table.is_some() || self.meter.is_some();
    }

    /// The time from which its line is free.
    #[inline]
    pub(crate) fn line_free(&self) -> Time {
        self.line.busy_until()
    }

    /// Whether no packet waits in the endpoint, and there are no places in which one could.
    #[inline]
    pub(crate) fn has_nothing_staged(&self) -> bool {
        self.staged.is_none() && self.channels.is_none()
    }

    /// Space will become free in the switch's buffer of a virtual channel at `time`.
    #[inline]
    pub(crate) fn expect_credit(&mut self, time: Time, vc: u8, amount: u32) {
        self.returning.push(time, Credit { channel: Channel { port: PORT, vc }, amount });
    }

    /// Packets that wait for credits, or for others on the line.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        let held = self.flow_table.as_ref().map_or(0, |flow_table| flow_table.held());
        usize::from(self.staged.is_some()) + self.channels.as_ref().map_or(held, |ch| ch.staged() + held)
    }

    /// Counts the credits of all channels that have returned by `now`, where there are several.
    pub(crate) fn collect_credits(&mut self, now: Time) {
        let Endpoint { channels, returning, .. } = self;
        if let Some(channels) = channels {
            returning.take(PORT.into(), now, |credit| {
                channels.credits[usize::from(credit.channel.vc)].give_back(credit.amount);
            });
        }
    }

    /// Counts the credits that have returned by `now`, for however many channels.
    pub(crate) fn count_credits(&mut self, now: Time) {
        match self.channels {
            Some(_) => self.collect_credits(now),
            None => {
                self.has_credit(u32::MAX, now);
            }
        }
    }

    /// The space behind the link for a virtual channel.
    #[inline]
    fn credits_of(&self, vc: u8) -> Credits {
        self.channels.as_ref().map_or(self.credits, |channels| channels.credits[usize::from(vc)])
    }

    /// A lost packet's credit returns, where it has spent one.
    #[cold]
    pub(crate) fn expect_credit_of_lost(&mut self, time: Time, vc: u8, amount: u32) {
        if !self.credits_of(vc).is_unlimited() {
            self.expect_credit(time, vc, amount);
        }
    }

    /// A pause frame takes effect at `now`.
    pub(crate) fn on_pause(&mut self, pause: Pause, now: Time) {
        let credits = if pause.stops { Credits::PAUSED } else { Credits::UNLIMITED };
        match &mut self.channels {
            Some(channels) => channels.credits[usize::from(pause.channel.vc)] = credits,
            None => self.credits = credits,
        }
        self.paused.get_or_insert_default().on_pause(pause.stops, now);
    }

    /// Whether there are credits for a packet that takes `room` at `now`.
    #[inline]
    pub(crate) fn has_credit(&mut self, space: u32, now: Time) -> bool {
        if !self.credits.cover(space) {
            let Endpoint { credits, returning, .. } = self;
            returning.take(PORT.into(), now, |credit| credits.give_back(credit.amount));
        }
        self.credits.cover(space)
    }

    /// The time at which the next credit returns; [`Time::NEVER`]: none is known to return.
    #[inline]
    pub(crate) fn next_credit(&self) -> Time {
        self.returning.first(PORT.into())
    }

    /// Credits of a virtual channel that it has or is known to get.
    pub(crate) fn all_credits(&self, vc: u8) -> u64 {
        let returning = self.returning.all().filter(|(_, credit)| credit.channel.vc == vc);
        u64::from(self.credits_of(vc).units())
            + returning.map(|(_, credit)| u64::from(credit.amount)).sum::<u64>()
    }

    /// The sending half of its link, for a virtual channel.
    #[inline]
    pub(crate) fn sender<'a>(&'a mut self, kind: &'a LinkKind, vc: u8) -> LinkSender<'a> {
        LinkSender {
            kind,
            line: &mut self.line,
            credits: match &mut self.channels {
                Some(channels) => &mut channels.credits[usize::from(vc)],
                None => &mut self.credits,
            },
            carried: &mut self.carried,
            acknowledgements: &mut self.acknowledgements,
            fault: self.fault.as_deref_mut(),
            layer: self.layer.as_deref_mut(),
        }
    }

    /// The link to the switch, of a class, to be reported at `now`.
    pub(crate) fn sender_state<'a>(
        &'a self,
        class: LinkClass,
        constants: &'a Constants,
        now: Time,
    ) -> SenderState<'a> {
        SenderState {
            kind: constants.link(class),
            class,
            carried: self.carried,
            stalled: self.stall.total(self.stalls(), now),
            paused: self.paused.as_ref().map_or(Span::ZERO, |paused| paused.total(now)),
            obeyed: self.paused.as_ref().map_or(0, |paused| paused.frames()),
            frames: 0,
            counts: self.counts(now),
            layer: self.layer.as_deref(),
            control: self.flow_table.as_deref().map(|table| &table.link_control),
            now,
        }
    }

    /// Whether a packet could go but for credits.
    fn stalls(&self) -> bool {
        self.staged.is_some() || self.channels.as_ref().is_some_and(|channels| channels.stalls)
    }

    /// Acknowledgements that it has sent since the counters were last reset.
    pub(crate) fn acknowledgements(&self) -> u64 {
        self.acknowledgements
    }

    /// Sets the counters of its link to zero. A stall that is running then counts from `now`.
    pub(crate) fn reset_counters(&mut self, now: Time) {
        (self.carried, self.acknowledgements) = (CarriedCounts::default(), 0);
        self.stall.reset(now);
        self.interface.counts_mut().into_iter().for_each(CountLedger::reset);
        self.flow_table.iter_mut().for_each(|flow_table| flow_table.resent = 0);
        self.fault.iter_mut().for_each(|fault| fault.reset(now));
        self.layer.iter_mut().for_each(|layer| layer.reset(now));
        self.paused.iter_mut().for_each(|paused| paused.reset(now));
    }

    /// Finds a credit that nobody has given, for the tests of checks.
    #[cfg(test)]
    pub(crate) fn forge_credit(&mut self) {
        self.credits.give_back(1);
    }
}
