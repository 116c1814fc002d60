//! The points of whichever algorithm a network has.

use crate::algorithm::{Algorithm, Arrival, Crossing, Notice, Path, ShortCircuit, Stamp};
use crate::keys::{Configured, CongestionKeys, FlowSetting};
use serde::{Deserialize, Serialize};
use weft_units::{BitRate, Bytes, Span, Time};

/// Needs of an algorithm that a network must meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Need {
    /// All packets of a flow take one way, as its notices do.
    pub one_way: bool,
    /// No packet is lost in a full buffer.
    pub lossless: bool,
}

macro_rules! algorithms {
    ($($name:ident in $module:ident, $need:expr, {
        $($(#[doc = $meaning:literal])+ $kind:ident = $word:literal,)+
    })*) => {
        $(use crate::$module::{self, $name};)*

        weft_keys::words! {
            /// The algorithms by their names in machine files.
            #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
            pub enum CongestionKind: "CongestionKind", "a way to control congestion" {
                /// Flows send as fast as they can.
                #[default]
                None = "none",
                $($($(#[doc = $meaning])+ $kind = $word,)+)*
            }
        }

        impl CongestionKind {
            /// The names of all.
            pub(crate) const NAMES: &'static [&'static str] = &["none", $($($word),+),*];
        }

        /// The algorithm of a network, with its constants.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
        #[expect(missing_docs, reason = "the modules say what they are")]
        pub enum Congestion {
            $($name($module::Parameters),)*
        }

        /// Congestion point of an algorithm.
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
        #[expect(missing_docs, reason = "the modules say what they are")]
        pub enum CongestionPoint {
            $($name(<$name as Algorithm>::Link),)*
        }

        /// Reaction point of an algorithm, at the source.
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
        #[expect(missing_docs, reason = "the modules say what they are")]
        pub enum ReactionPoint {
            $($name(<$name as Algorithm>::Flow),)*
        }

        /// Notification point of an algorithm, at the destination.
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
        #[expect(missing_docs, reason = "the modules say what they are")]
        pub enum NotificationPoint {
            $($name(<$name as Algorithm>::Receiver),)*
        }

        impl Congestion {
            /// The algorithm of a machine file for a flow; `None`: there is none.
            pub(crate) fn of(keys: &CongestionKeys, flow: &FlowSetting<'_>) -> Option<Congestion> {
                match flow.kind {
                    CongestionKind::None => None,
                    $($(CongestionKind::$kind)|+ => Some(Congestion::$name($name::parameters(keys, flow))),)*
                }
            }

            /// The algorithm's name in machine files: the first, where it has several.
            pub fn name(&self) -> &'static str {
                match self { $(Congestion::$name(_) => [$($word),+][0],)* }
            }

            /// Needs that a network must meet.
            pub fn need(&self) -> Need {
                match self { $(Congestion::$name(_) => $need,)* }
            }

            /// The state of a link that no packet has crossed.
            pub fn link(&self) -> CongestionPoint {
                match self { $(Congestion::$name(_) => CongestionPoint::$name(Default::default()),)* }
            }

            /// The state of a flow that begins.
            pub fn open(&self, path: &Path, now: Time) -> ReactionPoint {
                match self {
                    $(Congestion::$name(parameters) => {
                        ReactionPoint::$name($name::open(path, now, parameters))
                    })*
                }
            }

            /// The state of a flow at its destination.
            pub fn receiver(&self) -> NotificationPoint {
                match self { $(Congestion::$name(_) => NotificationPoint::$name(Default::default()),)* }
            }

            /// See [`Algorithm::timeout`].
            pub fn timeout(&self) -> Option<Span> {
                match self { $(Congestion::$name(parameters) => $name::timeout(parameters),)* }
            }

            /// See [`Algorithm::MEASURES`].
            pub fn measures(&self) -> bool {
                match self { $(Congestion::$name(_) => $name::MEASURES,)* }
            }

            /// See [`Algorithm::RELAYS`].
            pub fn relays(&self) -> bool {
                match self { $(Congestion::$name(_) => $name::RELAYS,)* }
            }

            /// See [`Algorithm::TELLS_RATES`].
            pub fn tells_rates(&self) -> bool {
                match self { $(Congestion::$name(_) => $name::TELLS_RATES,)* }
            }

            /// See [`Algorithm::concerns`].
            #[inline]
            pub fn concerns(&self, crossing: &Crossing) -> bool {
                match self { $(Congestion::$name(parameters) => $name::concerns(crossing, parameters),)* }
            }

            /// See [`Algorithm::trims`].
            pub fn trims(&self) -> bool {
                match self { $(Congestion::$name(parameters) => $name::trims(parameters),)* }
            }

            /// The answer to a notice that has come to the destination.
            pub fn reflect(&self, notice: &Notice) -> Option<Notice> {
                match self { $(Congestion::$name(parameters) => $name::reflect(notice, parameters),)* }
            }
        }

        impl CongestionPoint {
            /// See [`Algorithm::fair_rate`].
            pub fn fair_rate(&self) -> Option<BitRate> {
                match self { $(CongestionPoint::$name(link) => $name::fair_rate(link),)* }
            }

            /// See [`Algorithm::cross`].
            #[inline]
            pub fn cross(
                &mut self,
                stamp: &mut Stamp,
                crossing: &Crossing,
                (random, congestion): (&mut dyn FnMut() -> u64, &Congestion),
            ) {
                match (self, congestion) {
                    $((CongestionPoint::$name(link), Congestion::$name(parameters)) => {
                        $name::cross(link, stamp, crossing, (random, parameters));
                    })*
                    _ => debug_assert!(false, "states of one algorithm"),
                }
            }

            /// See [`Algorithm::relay`].
            pub fn relay(
                &mut self,
                notice: &mut Notice,
                at: &Crossing,
                congestion: &Congestion,
            ) -> Option<ShortCircuit> {
                match (self, congestion) {
                    $((CongestionPoint::$name(link), Congestion::$name(parameters)) => {
                        $name::relay(link, notice, at, parameters)
                    })*
                    _ => None,
                }
            }
        }

        impl ReactionPoint {
            /// See [`Algorithm::earliest`].
            pub fn earliest(&self, bytes: Bytes, now: Time, congestion: &Congestion) -> Time {
                match (self, congestion) {
                    $((ReactionPoint::$name(flow), Congestion::$name(parameters)) => {
                        $name::earliest(flow, bytes, now, parameters)
                    })*
                    _ => now,
                }
            }

            /// See [`Algorithm::rest`].
            pub fn rest(&mut self, until: Time) {
                match self { $(ReactionPoint::$name(flow) => $name::rest(flow, until),)* }
            }

            /// See [`Algorithm::is_quiet`].
            pub fn is_quiet(&self) -> bool {
                match self { $(ReactionPoint::$name(flow) => $name::is_quiet(flow),)* }
            }

            /// See [`Algorithm::send`].
            pub fn send(&mut self, bytes: Bytes, now: Time, congestion: &Congestion) -> u16 {
                match (self, congestion) {
                    $((ReactionPoint::$name(flow), Congestion::$name(parameters)) => {
                        $name::send(flow, bytes, now, parameters)
                    })*
                    _ => 0,
                }
            }

            /// See [`Algorithm::learn`].
            pub fn learn(&mut self, notice: &Notice, now: Time, congestion: &Congestion) {
                match (self, congestion) {
                    $((ReactionPoint::$name(flow), Congestion::$name(parameters)) => {
                        $name::learn(flow, notice, now, parameters);
                    })*
                    _ => debug_assert!(false, "states of one algorithm"),
                }
            }

            /// See [`Algorithm::lose`].
            pub fn lose(&mut self, stamp: u16, now: Time, congestion: &Congestion) {
                match (self, congestion) {
                    $((ReactionPoint::$name(flow), Congestion::$name(parameters)) => {
                        $name::lose(flow, stamp, now, parameters);
                    })*
                    _ => debug_assert!(false, "states of one algorithm"),
                }
            }

            /// See [`Algorithm::resend`].
            pub fn resend(&mut self, stamp: u16, now: Time) {
                match self { $(ReactionPoint::$name(flow) => $name::resend(flow, stamp, now),)* }
            }

            /// See [`Algorithm::confirm`].
            pub fn confirm(&mut self, before: u16) {
                match self { $(ReactionPoint::$name(flow) => $name::confirm(flow, before),)* }
            }

            /// See [`Algorithm::due`].
            pub fn due(&self) -> Time {
                match self { $(ReactionPoint::$name(flow) => $name::due(flow),)* }
            }

            /// See [`Algorithm::step`].
            pub fn step(&mut self, now: Time, congestion: &Congestion) -> Option<Notice> {
                match (self, congestion) {
                    $((ReactionPoint::$name(flow), Congestion::$name(parameters)) => {
                        $name::step(flow, now, parameters)
                    })*
                    _ => None,
                }
            }

            /// See [`Algorithm::is_as_new`].
            pub fn is_as_new(&self, now: Time, congestion: &Congestion) -> bool {
                match (self, congestion) {
                    $((ReactionPoint::$name(flow), Congestion::$name(parameters)) => {
                        $name::is_as_new(flow, now, parameters)
                    })*
                    _ => true,
                }
            }

            /// See [`Algorithm::rate`].
            pub fn rate(&self, now: Time, congestion: &Congestion) -> Option<BitRate> {
                match (self, congestion) {
                    $((ReactionPoint::$name(flow), Congestion::$name(parameters)) => {
                        Some($name::rate(flow, now, parameters))
                    })*
                    _ => None,
                }
            }
        }

        impl NotificationPoint {
            /// See [`Algorithm::receive`].
            pub fn receive(&mut self, arrival: &Arrival, congestion: &Congestion) -> Option<Notice> {
                match (self, congestion) {
                    $((NotificationPoint::$name(receiver), Congestion::$name(parameters)) => {
                        $name::receive(receiver, arrival, parameters)
                    })*
                    _ => None,
                }
            }

            /// See [`Algorithm::answers_by`].
            pub fn answers_by(&self, congestion: &Congestion) -> Time {
                match (self, congestion) {
                    $((NotificationPoint::$name(receiver), Congestion::$name(parameters)) => {
                        $name::answers_by(receiver, parameters)
                    })*
                    _ => Time::NEVER,
                }
            }

            /// See [`Algorithm::answer`].
            pub fn answer(&mut self, now: Time, congestion: &Congestion) -> Option<Notice> {
                match (self, congestion) {
                    $((NotificationPoint::$name(receiver), Congestion::$name(parameters)) => {
                        $name::answer(receiver, now, parameters)
                    })*
                    _ => None,
                }
            }
        }
    };
}

const ONE_LOSSLESS_WAY: Need = Need { one_way: true, lossless: true };

algorithms! {
    Acc in acc, ONE_LOSSLESS_WAY, {
        /// Accurate Congestion Control.
        Acc = "acc",
        /// The same with flow-rate packets at pulses alone.
        AccFrpOnly = "acc-frp-only",
        /// The same with flow-init messages and no enhancement.
        AccFrpInit = "acc-frp-init",
    }
    Dcqcn in dcqcn, Need::default(), {
        /// Marks, notifications and rates.
        Dcqcn = "dcqcn",
    }
    Hpcc in hpcc, ONE_LOSSLESS_WAY, {
        /// Windows by the use of links.
        Hpcc = "hpcc",
    }
    Swift in swift, Need::default(), {
        /// Windows by delay.
        Swift = "swift",
    }
    Nscc in nscc, Need::default(), {
        /// Windows by marks and delay, of Ultra Ethernet.
        Nscc = "nscc",
    }
    Ib in ib, Need { lossless: true, one_way: false }, {
        /// Marks and a table of delays, of InfiniBand.
        Ib = "ib",
    }
}
