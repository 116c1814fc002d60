//! Descriptors that wait for the send unit: one that a process has stored and that no channel or context has
//! taken.
//!
//! ```text
//!   ExaNet    process ─► [ d d … ] ───────────────────► a free channel of the process's own page
//!
//!   caRVnet   process ─► descriptor channel [ d d … ] ─┐
//!             process ─► descriptor channel [ d … ]   ─┼─ in turn ─► a context of all processes
//!             …                        (on-chip SRAM) ─┘
//! ```
//! A channel of ExaNet's page holds its descriptor until the transfer has ended. A descriptor channel of
//! caRVnet is a queue in SRAM, whose process stores the next descriptor while earlier ones wait; the hardware
//! gives the context that becomes free to the first descriptor of the channel whose turn it is. A process
//! whose channel is full keeps its descriptor until there is space.
//!
//! # Source
//! RED-SEA D1.4 §8: descriptor channels in on-chip SRAM, allocated to different processes; engines that
//! allocate and release contexts dynamically; §8.2, Fig. 23: the first read of memory 10 cycles behind the
//! descriptor; §8.2, item 6: pipelined, transactions at the clock's speed. Neither the size of a channel nor
//! the number of contexts is in the text; that the channels take turns is ours.

use super::transfer::{ChannelKind, Descriptor};
use crate::server::{Server, Service};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use weft_units::{Clock, Span, Time};

weft_keys::keys! {
    /// Contexts that the send unit gives to descriptors and takes back, in place of channels of pages.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct SourceContexts {
        /// Contexts: transfers of all processes that may be under way.
        count: u32, within(1, 1 << 16);
        /// From a descriptor to the first read of memory, in whole cycles: SRAM, allocation, segmentation.
        /// One begins per cycle.
        allocation: u32, cycles_of("nic.clock");
    }
}

/// Which descriptor channel: the process's, and the kind of its transfers.
pub(super) type DescriptorChannel = (u32, ChannelKind);

/// The descriptors, by the channel in which they wait.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Descriptors {
    waiting: BTreeMap<DescriptorChannel, VecDeque<Descriptor>>,
    /// The channel that was served last.
    served: Option<DescriptorChannel>,
    allocator: Server,
}

impl Descriptors {
    /// A descriptor waits behind those of its channel.
    pub(super) fn push(&mut self, channel: DescriptorChannel, descriptor: Descriptor) {
        self.waiting.entry(channel).or_default().push_back(descriptor);
    }

    /// The number of those that wait in a channel.
    pub(super) fn held(&self, channel: DescriptorChannel) -> usize {
        self.waiting.get(&channel).map_or(0, VecDeque::len)
    }

    /// Whether none waits in any channel.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes the first descriptor of a channel.
    pub(super) fn take(&mut self, channel: DescriptorChannel) -> Option<Descriptor> {
        let queue = self.waiting.get_mut(&channel)?;
        let descriptor = queue.pop_front();
        if queue.is_empty() {
            self.waiting.remove(&channel);
        }
        descriptor
    }

    /// Takes the first descriptor of the channel whose turn it is: the next after the one served last.
    pub(super) fn take_in_turn(&mut self) -> Option<(DescriptorChannel, Descriptor)> {
        let after = self.served.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.waiting.range((after, Bound::Unbounded)).next();
        let channel = *next.or_else(|| self.waiting.iter().next())?.0;
        self.served = Some(channel);
        Some((channel, self.take(channel)?))
    }

    /// A descriptor gets its context at `now`; done when the first read of its data can be issued.
    pub(super) fn allocate(&mut self, now: Time, contexts: &SourceContexts, clock: &Clock) -> Service {
        let begun = self.allocator.serve(now, 1, clock);
        let rest = u64::from(contexts.allocation.saturating_sub(1));
        Service { ended: begun.ended + clock.cycles(rest), ..begun }
    }

    /// The time in which contexts have been allocated.
    pub(super) fn worked(&self) -> Span {
        self.allocator.worked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gvas::Pdid;
    use crate::rdma::Location;
    use proptest::prelude::*;
    use weft_fabric::ClassTag;
    use weft_units::{Address, Bytes, EndpointId};

    fn descriptor(message: u32) -> Descriptor {
        let location = Location { space: 0, address: Address::new(0) };
        Descriptor {
            source: location,
            to: EndpointId(1),
            destination: location,
            bytes: Bytes::new(64),
            domain: Pdid(0),
            message,
            posted: Time::ZERO,
            token: None,
            watch: false,
            class: ClassTag::default(),
        }
    }

    /// Catches a process that is served twice while another waits, and a channel that loses its order.
    #[test]
    fn channels_take_turns_and_keep_their_order() {
        let mut descriptors = Descriptors::default();
        let mut message = 0;
        for page in [3, 3, 3, 0, 0, 7] {
            descriptors.push((page, ChannelKind::Write), descriptor(message));
            message += 1;
        }
        descriptors.push((3, ChannelKind::Read), descriptor(message));
        let order = std::iter::from_fn(|| descriptors.take_in_turn());
        let order: Vec<(u32, u32)> = order.map(|((page, _), it)| (page, it.message)).collect();
        assert_eq!(order, [(0, 3), (3, 0), (3, 6), (7, 5), (0, 4), (3, 1), (3, 2)]);
        assert!(descriptors.is_empty());
    }

    /// Catches allocation that is not pipelined, and a latency that is counted from another edge.
    #[test]
    fn a_descriptor_per_cycle_each_ten_cycles_to_its_first_read() {
        let clock = Clock::from_hertz(200_000_000).unwrap();
        let contexts = SourceContexts { count: 4, allocation: 10 };
        let mut descriptors = Descriptors::default();
        let ended = [(); 3].map(|()| descriptors.allocate(Time::ZERO, &contexts, &clock).ended);
        assert_eq!(ended, [10, 11, 12].map(|cycle| clock.edge(cycle)));
        assert_eq!(descriptors.worked(), clock.cycles(3));
    }

    proptest! {
        /// Catches a descriptor that is lost, repeated, or passed over for ever: any pushes and turns. Who is
        /// first in a channel is served before any other channel has been served twice.
        #[test]
        fn every_descriptor_is_served_once_and_soon(
            steps in prop::collection::vec(prop::option::of(0u32..6), 1..200),
        ) {
            let mut descriptors = Descriptors::default();
            let (mut pushed, mut served) = (0u32, Vec::new());
            for step in steps.iter().copied().chain(std::iter::repeat_n(None, 200)) {
                match step {
                    Some(page) => {
                        descriptors.push((page, ChannelKind::Write), descriptor(pushed));
                        pushed += 1;
                    }
                    None => {
                        let waiting: Vec<_> = descriptors.waiting.keys().copied().collect();
                        let Some((channel, it)) = descriptors.take_in_turn() else { continue };
                        let last = served.last().map(|(last, _)| *last);
                        prop_assert!(last != Some(channel) || waiting == [channel]);
                        served.push((channel, it.message));
                    }
                }
            }
            let mut messages: Vec<u32> = served.iter().map(|(_, message)| *message).collect();
            for channel in (0..6).map(|page| (page, ChannelKind::Write)) {
                prop_assert!(served.iter().filter(|it| it.0 == channel).is_sorted_by_key(|it| it.1));
            }
            messages.sort_unstable();
            prop_assert_eq!(messages, (0..pushed).collect::<Vec<u32>>());
        }
    }
}
