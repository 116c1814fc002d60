//! Who goes first: one file per arbiter, and a line of `arbiters!` for each.
//!
//! ```text
//!   crossbar, per output       output queues, per line     endpoint with classes
//!            └──────────────┬──────────────┴──────────────┬─────────────┘
//!                    OutputRequests ────────────────► Arbiter ──► the request that goes
//! ```
//! A request is numbered by input port and virtual channel. An arbiter is lent the requests for an output
//! and names one. So it is written once for all kinds of switch, and tried without one.

mod age;
mod groups;
mod islip;
mod minimum_bandwidth;
mod random;
mod round_robin;
mod strict_priority;
mod weighted_round_robin;

pub(crate) use age::Age;
pub use groups::{Grouping, RequestGroups};
pub use round_robin::first_from;
pub(crate) use round_robin::{RoundRobin, next_from};

use crate::traffic_class::MAX_CLASSES;
use serde::{Deserialize, Serialize};
use weft_engine::Stream;
use weft_topo::LinkClass;

/// Declares [`ArbiterKind`], a word of machine files each, and hands on to the arbiter of each.
macro_rules! arbiters {
    ($(
        $(#[doc = $meaning:literal])+
        $name:ident = $word:literal $(($(#[doc = $of_key:literal])+ $key:ident: $type:ty = $usual:literal;))?
            in $arbiter:ty,
    )*) => {
        weft_keys::choices! {
            /// The rule by which an output chooses among requests.
            #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
            pub enum ArbiterKind: "Arbiter", "an arbiter" {
                $($(#[doc = $meaning])+ $name = $word $(($(#[doc = $of_key])+ $key: $type = $usual;))?,)*
            }
        }

        impl ArbiterKind {
            /// All of them, with the usual values of their keys.
            pub const ALL: [ArbiterKind; [$($word),*].len()] = [$(ArbiterKind::$name $(($usual))?),*];

            /// The properties of the arbiter.
            pub fn properties(self) -> Properties {
                match self {
                    $(ArbiterKind::$name { .. } => <$arbiter as Arbiter>::PROPERTIES,)*
                }
            }

            /// Does what is to be done with the arbiter.
            #[inline(always)]
            pub(crate) fn lend_to<U: ArbiterUser>(self, user: U) -> U::Output {
                match self {
                    $(ArbiterKind::$name { .. } => user.with::<$arbiter>(),)*
                }
            }
        }

        /// The memory of an arbiter beyond a turn per output.
        #[derive(Clone, Debug, Serialize, Deserialize)]
        pub(crate) enum ArbiterState {
            $($name($arbiter),)*
        }

        impl ArbiterState {
            /// The memory of the arbiter of a switch; `None`: it needs none.
            pub(crate) fn new(switch: &SwitchOutputs<'_>) -> Option<Box<ArbiterState>> {
                let state = match switch.arbiter {
                    $(ArbiterKind::$name { .. } => ArbiterState::$name(<$arbiter>::new(switch)?),)*
                };
                Some(Box::new(state))
            }
        }

        $(impl Remembered for $arbiter {
            #[inline(always)]
            fn of(state: &mut ArbiterState) -> Option<&mut Self> {
                match state {
                    ArbiterState::$name(own) => Some(own),
                    _ => None,
                }
            }
        })*
    };
}

arbiters! {
    /// Round robin at each output over its requesting inputs.
    RoundRobin = "round-robin" in RoundRobin,
    /// A uniformly random one of the requesting inputs.
    Random = "random" in random::RandomChoice,
    /// iSLIP with a number of iterations (McKeown 1999).
    Islip = "islip" (
        /// Iterations of iSLIP; 1 where not given.
        islip_iterations: u32 = 1;
    ) in islip::Islip,
    /// The oldest packet first (Abts and Weisser 2007).
    Age = "age" in Age,
    /// The traffic class of the highest priority first.
    StrictPriority = "strict-priority" in strict_priority::StrictPriority,
    /// Traffic classes in the ratio of their weights, by bytes (Shreedhar and Varghese 1996).
    WeightedRoundRobin = "weighted-round-robin" in weighted_round_robin::WeightedRoundRobin,
    /// Traffic classes by their guaranteed shares, and what is left by priority (De Sensi et al. 2020).
    MinimumBandwidth = "minimum-bandwidth" in minimum_bandwidth::MinimumBandwidth,
}

/// A rule by which outputs choose among their requests, with its memory of a switch.
pub trait Arbiter: Sized {
    /// The properties that others ask for.
    const PROPERTIES: Properties = Properties::PLAIN;

    /// The arbiter itself, where it remembers nothing but [turns](OutputRequests::turn) and random numbers.
    const MEMORYLESS: Option<Self> = None;

    /// The memory for a switch, where it has any.
    fn new(_switch: &SwitchOutputs<'_>) -> Option<Self> {
        None
    }

    /// The request of an output that goes; `None`: none can, or it [matches](Arbiter::match_all) all at once.
    fn choose<'a>(&mut self, _output: usize, _requests: &mut impl OutputRequests<'a>) -> Option<usize> {
        None
    }

    /// Starvation avoidance has the next turn of its kind belong to `request`. Where there is no memory, that
    /// is the [turn](OutputRequests::turn) of the output.
    fn give_turn(&mut self, _output: usize, _request: u16, _groups: &RequestGroups) {}

    /// Whether a request that waits would have its turn before the other is granted again, if its input were
    /// free: whether a grant to the other passes it over.
    #[inline(always)]
    fn takes_turns(_waiting: usize, _granted: usize, _groups: &RequestGroups) -> bool {
        true
    }

    /// Matches inputs and outputs of a crossbar together, where [`Properties::matches_all`] says so.
    /// `first(output, pointer)` names the request of a free output that can go and comes first from `pointer`
    /// on; `port_of` gives the input port of a request; `carry_out(output, request)` makes the match, which
    /// occupies both.
    fn match_all<S>(
        &mut self,
        _switch: &mut S,
        _port_of: impl Fn(usize) -> usize,
        _first: impl FnMut(&mut S, usize, usize) -> Option<usize>,
        _carry_out: impl FnMut(&mut S, usize, usize),
    ) {
    }
}

/// Properties of an arbiter that others ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Properties {
    /// The requests that it tells apart. Where it does, endpoints with several channels ask it too; else they
    /// send what came first.
    pub grouping: Grouping,
    /// Whether packets carry their age.
    pub keeps_ages: bool,
    /// Whether a packet that is alone may go without being chosen: a choice would change the turn alone.
    pub passes_alone: bool,
    /// Whether a crossbar has it match all inputs and outputs at once.
    pub matches_all: bool,
    /// Whether it also chooses among the virtual channels of a line in an output-queued switch; round robin
    /// does if not.
    pub serves_lines: bool,
    /// Whether a grant between whose request and the one that waits [turns are not
    /// taken](Arbiter::takes_turns) ends a reservation of the waiting one's input.
    pub ends_reservations: bool,
}

impl Properties {
    /// Those of an arbiter that looks at each output by itself and tells no requests apart.
    pub const PLAIN: Properties = Properties {
        grouping: Grouping::None,
        keeps_ages: false,
        passes_alone: false,
        matches_all: false,
        serves_lines: true,
        ends_reservations: false,
    };
}

/// The switch that an arbiter is made for.
pub struct SwitchOutputs<'a> {
    /// The arbiter, with its keys.
    pub arbiter: ArbiterKind,
    /// By output: the class of its link.
    pub links: &'a [LinkClass],
    /// The groups of requests that it tells apart.
    pub groups: &'a RequestGroups,
}

/// The requests for an output, as its arbiter sees them.
pub trait OutputRequests<'a> {
    /// A bit for each of them.
    fn all(&self) -> &'a [u64];

    /// The groups that are told apart.
    fn groups(&self) -> &'a RequestGroups;

    /// Whether one can go now.
    fn can_go(&mut self, request: usize) -> bool;

    /// The age of its packet, in ps.
    fn age(&self, request: usize) -> u64;

    /// Bytes of its packet: header, payload and footer.
    fn bytes(&self, request: usize) -> u64;

    /// The request that has the next turn: one after that which had the last.
    fn turn(&self) -> usize;

    /// This one has its turn.
    fn take_turn(&mut self, request: usize);

    /// Random numbers.
    fn random(&mut self) -> &mut Stream;

    /// The packet that a group has, from the request `pointer` on.
    #[inline(always)]
    fn head_of(&mut self, group: usize, pointer: usize) -> GroupHead {
        let (groups, all) = (self.groups(), self.all());
        match first_from(all, pointer, |request| groups.holds(group, request) && self.can_go(request)) {
            Some(request) => GroupHead::Packet { request, bytes: self.bytes(request) },
            None if groups.any(group, all) => GroupHead::Blocked,
            None => GroupHead::Empty,
        }
    }

    /// The first of those found unable to go whose input is busy, or what has been put in its place: it is
    /// passed over if another goes. Only a crossbar has such.
    #[inline(always)]
    fn waiting(&self) -> Option<usize> {
        None
    }

    /// Another is passed over, or none.
    #[inline(always)]
    fn set_waiting(&mut self, _request: Option<usize>) {}

    /// Whether the input of one is busy.
    #[inline(always)]
    fn is_input_busy(&self, _request: usize) -> bool {
        false
    }
}

/// The request that a group has for an output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupHead {
    /// No packet.
    Empty,
    /// Packets, of which none can go now.
    Blocked,
    /// A packet, the next in turn, can go.
    Packet {
        /// The request.
        request: usize,
        /// Bytes of it.
        bytes: u64,
    },
}

/// The request that goes by a rule over what each group has from its pointer on.
#[inline(always)]
fn choose_by_group<'a>(
    requests: &mut impl OutputRequests<'a>,
    pointers: [u16; MAX_CLASSES],
    choose: impl FnOnce(&RequestGroups, &[GroupHead]) -> Option<usize>,
) -> Option<usize> {
    let groups = requests.groups();
    let (mut heads, mut waiting) = ([GroupHead::Empty; MAX_CLASSES], [None; MAX_CLASSES]);
    for group in 0..groups.count() {
        requests.set_waiting(None);
        heads[group] = requests.head_of(group, pointers[group].into());
        waiting[group] = requests.waiting();
    }
    let chosen = choose(groups, &heads[..groups.count()])?;
    requests.set_waiting(waiting[groups.of(chosen)]);
    Some(chosen)
}

/// An arbiter whose memory may be among those of a switch.
pub(crate) trait Remembered: Arbiter {
    /// The memory, if it is that of this arbiter.
    fn of(state: &mut ArbiterState) -> Option<&mut Self>;

    /// Lends it its memory; `None`: that is of another.
    #[inline(always)]
    fn lend<R>(state: &mut Option<Box<ArbiterState>>, to: impl FnOnce(&mut Self) -> Option<R>) -> Option<R> {
        match Self::MEMORYLESS {
            Some(mut own) => to(&mut own),
            None => Self::of(state.as_deref_mut()?).and_then(to),
        }
    }
}

/// A place that uses whichever arbiter a machine has.
pub(crate) trait ArbiterUser {
    type Output;
    fn with<A: Remembered>(self) -> Self::Output;
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Requests that can all go, in a single list.
    pub(crate) struct Listed<'a> {
        bits: &'a [u64],
        groups: &'a RequestGroups,
        turn: usize,
        random: Stream,
    }

    impl<'a> Listed<'a> {
        pub(crate) fn of(bits: &'a [u64], groups: &'a RequestGroups) -> Listed<'a> {
            Listed { bits, groups, turn: 0, random: Stream::new(1, 0, 0) }
        }
    }

    impl<'a> OutputRequests<'a> for Listed<'a> {
        fn all(&self) -> &'a [u64] {
            self.bits
        }

        fn groups(&self) -> &'a RequestGroups {
            self.groups
        }

        fn can_go(&mut self, _: usize) -> bool {
            true
        }

        fn age(&self, request: usize) -> u64 {
            request as u64 % 4
        }

        fn bytes(&self, _: usize) -> u64 {
            1_000
        }

        fn turn(&self) -> usize {
            self.turn
        }

        fn take_turn(&mut self, request: usize) {
            self.turn = request + 1;
        }

        fn random(&mut self) -> &mut Stream {
            &mut self.random
        }
    }

    /// Names the requests that an arbiter lets go, one after the other, from outputs that always have these.
    struct Order<'a>(&'a SwitchOutputs<'a>, u64);

    impl ArbiterUser for Order<'_> {
        type Output = Vec<usize>;
        fn with<A: Remembered>(self) -> Vec<usize> {
            let mut memory = ArbiterState::new(self.0);
            let bits = [self.1];
            let mut requests = Listed::of(&bits, self.0.groups);
            let choose = |_| A::lend(&mut memory, |arbiter| arbiter.choose(0, &mut requests));
            (0..8).filter_map(choose).collect()
        }
    }

    /// Catches an arbiter of the list that finds no memory, that of another, or that names a request which is
    /// not there.
    #[test]
    fn each_arbiter_of_the_list_chooses_among_its_requests() {
        let groups = RequestGroups::new(2, vec![(0b10, 1_000), (0b01, 1_000)]);
        let groups = groups.with_shares(vec![0, 0], vec![[5_000; MAX_CLASSES]], 1_000);
        for arbiter in ArbiterKind::ALL.into_iter().filter(|kind| !kind.properties().matches_all) {
            let switch = SwitchOutputs { arbiter, links: &[LinkClass(0); 3], groups: &groups };
            let order = arbiter.lend_to(Order(&switch, 0b110_0101));
            assert_eq!(order.len(), 8, "{arbiter:?}");
            assert!(order.iter().all(|request| 0b110_0101 >> request & 1 == 1), "{arbiter:?}: {order:?}");
        }
    }
}
