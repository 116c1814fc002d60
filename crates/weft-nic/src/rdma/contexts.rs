//! The contexts of the receive unit: the blocks that are coming in, found by what tells a block from others.
//!
//! They are few, and one is looked for with each cell: their keys lie side by side in order, so that a search
//! reads little memory, and what is known of the blocks beside them in the same order.

use super::receive::Context;
use super::transfer::ChannelId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_units::{EndpointId, Time};

/// The identity of a block that is coming in, in one number: source, channel, transaction, the first of
/// them the most significant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(super) struct BlockKey(u128);

impl BlockKey {
    #[inline]
    pub(super) fn new(source: EndpointId, channel: ChannelId, transaction: u32) -> BlockKey {
        let connection = u128::from(source.0) << 16 | u128::from(channel.0);
        BlockKey(connection << 32 | u128::from(transaction))
    }

    fn transaction(self) -> u32 {
        self.0 as u32
    }
}

/// All contexts that are in use. In a snapshot they are a map, so that what is read has its order, whatever
/// was written.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "BTreeMap<BlockKey, Context>", into = "BTreeMap<BlockKey, Context>")]
pub(super) struct Contexts {
    /// In their order, each once.
    keys: Vec<BlockKey>,
    /// As many, in the same order.
    contexts: Vec<Context>,
}

impl From<BTreeMap<BlockKey, Context>> for Contexts {
    fn from(map: BTreeMap<BlockKey, Context>) -> Contexts {
        let (keys, contexts) = map.into_iter().unzip();
        Contexts { keys, contexts }
    }
}

impl From<Contexts> for BTreeMap<BlockKey, Context> {
    fn from(Contexts { keys, contexts }: Contexts) -> BTreeMap<BlockKey, Context> {
        keys.into_iter().zip(contexts).collect()
    }
}

impl Contexts {
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The place of a block's context, until one comes or goes.
    #[inline]
    pub(super) fn find(&self, key: BlockKey) -> Option<usize> {
        self.keys.binary_search(&key).ok()
    }

    /// The context at a place that was found.
    #[inline]
    pub(super) fn at(&mut self, place: usize) -> &mut Context {
        &mut self.contexts[place]
    }

    /// Adds the context of a block that has none; returns its place.
    pub(super) fn insert(&mut self, key: BlockKey, context: Context) -> usize {
        let place = self.keys.partition_point(|other| *other < key);
        self.keys.insert(place, key);
        self.contexts.insert(place, context);
        place
    }

    pub(super) fn remove(&mut self, place: usize) {
        if place + 1 == self.keys.len() {
            // Mostly there are few.
            self.keys.pop();
            self.contexts.pop();
        } else {
            self.keys.remove(place);
            self.contexts.remove(place);
        }
    }

    /// Removes the contexts of a channel's blocks for whose transactions `ended` holds.
    pub(super) fn remove_ended(
        &mut self,
        source: EndpointId,
        channel: ChannelId,
        ended: impl Fn(u32) -> bool,
    ) {
        let (low, high) = (BlockKey::new(source, channel, 0), BlockKey::new(source, channel, u32::MAX));
        let begin = self.keys.partition_point(|key| *key < low);
        let end = self.keys.partition_point(|key| *key <= high);
        for place in (begin..end).rev() {
            if ended(self.keys[place].transaction()) {
                self.remove(place);
            }
        }
    }

    /// The time of the last cell of a channel's blocks that are coming in.
    pub(super) fn last_cell(&self, source: EndpointId, channel: ChannelId) -> Option<Time> {
        let (low, high) = (BlockKey::new(source, channel, 0), BlockKey::new(source, channel, u32::MAX));
        let begin = self.keys.partition_point(|key| *key < low);
        let end = self.keys.partition_point(|key| *key <= high);
        self.contexts[begin..end].iter().map(|context| context.touched).max()
    }

    /// The place of the context whose last cell came first; of several, that of the least block.
    pub(super) fn most_silent(&self) -> Option<(usize, &Context)> {
        self.contexts.iter().enumerate().min_by_key(|(place, context)| (context.touched, *place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Catches keys out of their order, a context in another one's place, one that is removed with its
        /// neighbours' transfer, another choice of the silent one, and what a snapshot loses: a sorted map
        /// does the same.
        #[test]
        fn contexts_are_found_as_in_a_sorted_map(
            steps in prop::collection::vec((0u8..8, 0u32..2, 0u16..2, 0u32..6, 0u64..4), 1..60),
        ) {
            let (mut contexts, mut map) = (Contexts::default(), BTreeMap::new());
            for (step, source, channel, transaction, touched) in steps {
                let (source, channel) = (EndpointId(source), ChannelId(channel));
                let touched = Time::from_ps(touched);
                contexts = BTreeMap::from(contexts).into();
                let key = BlockKey::new(source, channel, transaction);
                let place = contexts.find(key);
                prop_assert_eq!(place.is_some(), map.contains_key(&(source, channel, transaction)));
                match (step, place) {
                    (0, _) => {
                        contexts.remove_ended(source, channel, |ended| ended < transaction);
                        map.retain(|key: &(EndpointId, ChannelId, u32), _| {
                            (key.0, key.1) != (source, channel) || key.2 >= transaction
                        });
                    }
                    (1, Some(place)) => {
                        contexts.remove(place);
                        map.remove(&(source, channel, transaction));
                    }
                    (_, Some(place)) => {
                        contexts.at(place).touched = touched;
                        map.insert((source, channel, transaction), touched);
                    }
                    (_, None) => {
                        let place = contexts.insert(key, Context::new(touched, false));
                        prop_assert_eq!(contexts.find(key), Some(place));
                        map.insert((source, channel, transaction), touched);
                    }
                }
                let keys = map.keys().map(|&(source, channel, transaction)| {
                    BlockKey::new(source, channel, transaction)
                });
                let held: Vec<Time> = contexts.contexts.iter().map(|context| context.touched).collect();
                prop_assert_eq!(held, map.values().copied().collect::<Vec<_>>());
                prop_assert_eq!(&contexts.keys, &keys.collect::<Vec<_>>());
                let silent = map.iter().min_by_key(|(key, touched)| (**touched, **key));
                let silent = silent.map(|(&(source, channel, transaction), _)| {
                    contexts.find(BlockKey::new(source, channel, transaction))
                });
                prop_assert_eq!(contexts.most_silent().map(|(place, _)| Some(place)), silent);
            }
        }
    }
}
