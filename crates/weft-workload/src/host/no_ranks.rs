//! A host without ranks.

use super::RankHost;
use serde::{Deserialize, Serialize};
use weft_engine::Payload;
use weft_fabric::HopRecord;
use weft_nic::{Delivered, Host, HostContext, Observer, Offer};
use weft_units::Time;

/// No ranks: they send nothing, and nothing comes for them. What is beside them is told of messages as soon
/// as their last packets have come, which saves an event per message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NoRanks;

/// A thing that there is not: the timers and headers of who has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Never {}

impl Payload for Never {
    fn tie(&self) -> u128 {
        match *self {}
    }
}

/// The links that packets crossed, if asked for; in no particular order.
#[derive(Default)]
pub struct Hops(pub Vec<HopRecord>);

impl Observer for Hops {
    fn hop(&mut self, hop: &HopRecord) {
        self.0.push(*hop);
    }
}

impl RankHost for NoRanks {}

impl Host for NoRanks {
    type Parameters = ();
    type Timer = Never;
    type Header = Never;
    type Output = Hops;

    const PASSIVE: bool = true;

    fn is_active(&self) -> bool {
        false
    }

    fn start(&mut self, (): &(), _: &mut impl HostContext<Self>) {}

    fn timer(&mut self, timer: Never, (): &(), _: &mut impl HostContext<Self>) {
        match timer {}
    }

    fn sent(&mut self, _: u32, (): &(), _: &mut impl HostContext<Self>) {}

    fn delivered(&mut self, _: &Delivered<Never>, (): &(), _: &mut impl HostContext<Self>) {}

    fn next_offer(&self) -> Time {
        Time::NEVER
    }

    fn offer(&mut self, (): &(), _: Time) -> Offer<Never> {
        Offer::Nothing
    }
}
