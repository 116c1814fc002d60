//! Groups of ranks, as expressions: their members are known when those of all communicators are.

use std::collections::BTreeSet;
use std::sync::Arc;

/// Groups in an expression, at most: a larger one is taken for damage.
const MAX_NODES: u32 = 1000;

/// A group.
#[derive(Debug)]
pub(crate) struct RankGroup {
    made: Made,
    /// Groups in the expression, each as often as it is named.
    nodes: u32,
}

#[derive(Debug)]
enum Made {
    Empty,
    /// The members of the rank's communicator of this number.
    Of(usize),
    Union(Arc<RankGroup>, Arc<RankGroup>),
    Intersection(Arc<RankGroup>, Arc<RankGroup>),
    Difference(Arc<RankGroup>, Arc<RankGroup>),
    Include(Arc<RankGroup>, Vec<u32>),
    Exclude(Arc<RankGroup>, Vec<u32>),
}

impl RankGroup {
    pub(crate) fn empty() -> Arc<RankGroup> {
        Arc::new(RankGroup { made: Made::Empty, nodes: 1 })
    }

    pub(crate) fn of(comm: usize) -> Arc<RankGroup> {
        Arc::new(RankGroup { made: Made::Of(comm), nodes: 1 })
    }

    pub(crate) fn union(a: Arc<RankGroup>, b: Arc<RankGroup>) -> Result<Arc<RankGroup>, String> {
        RankGroup::over(a.nodes + b.nodes, Made::Union(a, b))
    }

    pub(crate) fn intersection(a: Arc<RankGroup>, b: Arc<RankGroup>) -> Result<Arc<RankGroup>, String> {
        RankGroup::over(a.nodes + b.nodes, Made::Intersection(a, b))
    }

    pub(crate) fn difference(a: Arc<RankGroup>, b: Arc<RankGroup>) -> Result<Arc<RankGroup>, String> {
        RankGroup::over(a.nodes + b.nodes, Made::Difference(a, b))
    }

    pub(crate) fn include(of: Arc<RankGroup>, places: Vec<u32>) -> Result<Arc<RankGroup>, String> {
        RankGroup::over(of.nodes, Made::Include(of, places))
    }

    pub(crate) fn exclude(of: Arc<RankGroup>, places: Vec<u32>) -> Result<Arc<RankGroup>, String> {
        RankGroup::over(of.nodes, Made::Exclude(of, places))
    }

    fn over(nodes: u32, made: Made) -> Result<Arc<RankGroup>, String> {
        match nodes < MAX_NODES {
            true => Ok(Arc::new(RankGroup { made, nodes: nodes + 1 })),
            false => Err(format!("a group made of more than {MAX_NODES} groups; trace the program again")),
        }
    }

    /// The world ranks of its members in order; `None`: a communicator of it is not known, or has fewer.
    pub(crate) fn members(&self, of: &impl Fn(usize) -> Option<Arc<Vec<u32>>>) -> Option<Vec<u32>> {
        Some(match &self.made {
            Made::Empty => Vec::new(),
            Made::Of(comm) => of(*comm)?.to_vec(),
            Made::Union(a, b) => {
                let (mut first, second) = (a.members(of)?, b.members(of)?);
                let known: BTreeSet<u32> = first.iter().copied().collect();
                first.extend(second.into_iter().filter(|rank| !known.contains(rank)));
                first
            }
            Made::Intersection(a, b) => {
                let known: BTreeSet<u32> = b.members(of)?.into_iter().collect();
                a.members(of)?.into_iter().filter(|rank| known.contains(rank)).collect()
            }
            Made::Difference(a, b) => {
                let known: BTreeSet<u32> = b.members(of)?.into_iter().collect();
                a.members(of)?.into_iter().filter(|rank| !known.contains(rank)).collect()
            }
            Made::Include(group, places) => {
                let members = group.members(of)?;
                places.iter().map(|&place| members.get(place as usize).copied()).collect::<Option<_>>()?
            }
            Made::Exclude(group, places) => {
                let places: BTreeSet<u32> = places.iter().copied().collect();
                let members = group.members(of)?.into_iter().zip(0..);
                members.filter(|(_, place)| !places.contains(place)).map(|(rank, _)| rank).collect()
            }
        })
    }
}
