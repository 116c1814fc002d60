//! Dependencies that follow from others. Converters of recorded traces write all that went before.

use crate::graph::Dependency;
use weft_trace::op::SignalAt;

/// Dependencies that are looked at for each there is, at most: so the search ends.
const LOOKS_PER_DEPENDENCY: usize = 64;

/// A thing that an operation need not wait for.
#[derive(Clone, Copy)]
struct Implied {
    /// The operation.
    of: u32,
    at: SignalAt,
}

/// Leaves out dependencies that others imply: an operation need not wait for what those wait for on which it
/// depends. `order` has all operations, each behind those that it waits for.
pub(super) fn without_implied(dependencies: Vec<Dependency>, order: &[u32]) -> Vec<Dependency> {
    let mut looks = dependencies.len().saturating_mul(LOOKS_PER_DEPENDENCY);
    let mut needs: Vec<Vec<Dependency>> = vec![Vec::new(); order.len()];
    for dependency in dependencies {
        needs[dependency.node as usize].push(dependency);
    }
    let mut implied: Vec<Option<Implied>> = vec![None; order.len()];
    for &node in order {
        let mut own = std::mem::take(&mut needs[node as usize]);
        for need in &own {
            let earlier = &needs[need.on as usize];
            let Some(left) = looks.checked_sub(earlier.len()) else { break };
            looks = left;
            for earlier in earlier {
                let known = implied[earlier.on as usize].filter(|known| known.of == node);
                let at = known.map_or(earlier.at, |known| known.at.max(earlier.at));
                implied[earlier.on as usize] = Some(Implied { of: node, at });
            }
        }
        own.retain(|need| {
            !implied[need.on as usize].is_some_and(|known| known.of == node && known.at >= need.at)
        });
        needs[node as usize] = own;
    }
    needs.concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::Index;
    use std::collections::BTreeSet;

    /// Catches a list of all that went before which stays as it is.
    #[test]
    fn a_sequence_keeps_its_steps() {
        let steps = |node: u32| (0..node).map(move |on| Dependency { node, on, at: SignalAt::End });
        let all = (0..50).flat_map(steps).collect();
        let order: Vec<u32> = (0..50).collect();
        let kept: Vec<(u32, u32)> =
            without_implied(all, &order).iter().map(|need| (need.node, need.on)).collect();
        assert_eq!(kept, (1..50).map(|node| (node, node - 1)).collect::<Vec<_>>());
    }

    /// The moments that come before each operation, by way of any others.
    fn before(count: u32, dependencies: &[Dependency]) -> Vec<BTreeSet<(u32, SignalAt)>> {
        let mut before: Vec<BTreeSet<(u32, SignalAt)>> = Vec::new();
        for node in 0..count {
            let mut own = BTreeSet::new();
            for need in dependencies.iter().filter(|need| need.node == node) {
                own.extend(before[need.on as usize].iter().copied());
                own.insert((need.on, SignalAt::Start));
                own.insert((need.on, need.at));
            }
            before.push(own);
        }
        before
    }

    proptest! {
        /// Catches a dependency that is left out and does not follow from those that stay.
        #[test]
        fn what_comes_before_stays(
            count in 1..12u32,
            needs in prop::collection::vec((any::<Index>(), any::<Index>(), any::<bool>()), 0..60),
        ) {
            let dependency = |(a, b, at_end): &(Index, Index, bool)| {
                let (a, b) = (a.index(count as usize) as u32, b.index(count as usize) as u32);
                let at = if *at_end { SignalAt::End } else { SignalAt::Start };
                (a != b).then(|| Dependency { node: a.max(b), on: a.min(b), at })
            };
            let all: Vec<Dependency> = needs.iter().filter_map(dependency).collect();
            let order: Vec<u32> = (0..count).collect();
            let kept = without_implied(all.clone(), &order);
            prop_assert!(kept.len() <= all.len());
            prop_assert_eq!(before(count, &kept), before(count, &all));
        }
    }
}
