//! The last changes of a block's ports, for waves of a cycle that nobody knew of before.

use crate::library::{Instance, RtlPort};
use std::collections::VecDeque;

/// A signal of waves: a port, or a part of one.
pub(super) struct Signal {
    pub name: String,
    pub port: RtlPort,
}

/// The signals of a block, in their order. A bus of more words is told word by word.
pub(super) fn signals(rtl: &Instance) -> impl Iterator<Item = Signal> {
    rtl.ports().flat_map(|(name, port)| {
        port.lanes().map(move |lane| {
            let low = 64 * (lane.word - port.word);
            let name = if lane == port { name.to_owned() } else { format!("{name}_{low}") };
            Signal { name, port: lane }
        })
    })
}

/// A signal, by its number, has this value from a cycle on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Change {
    pub cycle: u64,
    pub signal: usize,
    pub value: u128,
}

/// A change as it is kept, in 32 bytes.
struct KeptChange {
    cycle: u64,
    signal: u32,
    /// The low half of the value first.
    value: [u64; 2],
}

/// The last changes of a block, and the values before them.
pub(crate) struct RecentChanges {
    ports: Vec<RtlPort>,
    /// Values before the first change that is kept; `None`: the block has had no cycle before.
    before: Option<Vec<[u64; 2]>>,
    last: Option<Vec<[u64; 2]>>,
    changes: VecDeque<KeptChange>,
    /// The cycle from which on no change is missing.
    whole_from: u64,
}

impl RecentChanges {
    /// Those of a block that has had no cycle.
    pub fn new(rtl: &Instance) -> RecentChanges {
        let ports = signals(rtl).map(|signal| signal.port).collect();
        RecentChanges { ports, before: None, last: None, changes: VecDeque::new(), whole_from: 0 }
    }

    /// Takes what has changed in a cycle that is over.
    pub fn take(&mut self, rtl: &Instance, cycle: u64) {
        let is_first = self.last.is_none();
        let last = self.last.get_or_insert_with(|| vec![[0; 2]; self.ports.len()]);
        for (signal, (port, last)) in self.ports.iter().zip(last).enumerate() {
            let value = rtl.get(*port);
            let value = [value as u64, (value >> 64) as u64];
            if is_first || *last != value {
                *last = value;
                self.changes.push_back(KeptChange { cycle, signal: signal as u32, value });
            }
        }
    }

    /// Keeps so many changes at most.
    pub fn keep(&mut self, most: usize) {
        let too_many = self.changes.len().saturating_sub(most);
        for KeptChange { cycle, signal, value } in self.changes.drain(..too_many) {
            self.before.get_or_insert_with(|| vec![[0; 2]; self.ports.len()])[signal as usize] = value;
            self.whole_from = cycle;
        }
        if self.changes.capacity() / 4 > most {
            self.changes.shrink_to(2 * most);
        }
    }

    /// The cycle from which on no change is missing.
    pub(super) fn whole_from(&self) -> u64 {
        self.whole_from
    }

    /// The values before the first change that is kept, as changes in a cycle.
    pub(super) fn values_before(&self, cycle: u64) -> impl Iterator<Item = Change> {
        let values = self.before.iter().flatten().enumerate();
        values.map(move |(signal, value)| Change { cycle, signal, value: whole(*value) })
    }

    /// The changes from a cycle on, as far as before another.
    pub(super) fn between(&self, from: u64, before: u64) -> impl Iterator<Item = Change> {
        let first = self.changes.partition_point(|change| change.cycle < from);
        let changes = self.changes.range(first..).take_while(move |change| change.cycle < before);
        changes.map(|change| Change {
            cycle: change.cycle,
            signal: change.signal as usize,
            value: whole(change.value),
        })
    }
}

fn whole([low, high]: [u64; 2]) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}
