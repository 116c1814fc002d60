//! The rules of a table of algorithms: which algorithm carries out which collective, under which conditions.

use super::algorithm::Algorithm;
use serde::{Deserialize, Serialize};
use weft_trace::op::Collective;
use weft_units::Bytes;

/// The smallest number of elements in the vector for which a rule holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Elements {
    /// Any number.
    #[default]
    Any,
    /// One for each of the largest power of two of members, or more.
    PowerOfTwo,
    /// One for each member, or more.
    Members,
}

/// One line of the table: `algorithm` carries out `collective` where all conditions hold.
///
/// What the bytes are that a rule asks for, all members must know alike:
/// the vector (broadcast, reduce, allreduce, scan, exscan, reduce-scatter), the sum of all blocks
/// (allgather, allgatherv), one block (gather, scatter, alltoall), and 0 for barrier, gatherv, scatterv
/// and alltoallv, whose members do not know each other's sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rule {
    /// The collective.
    pub collective: Collective,
    /// At least so many members.
    pub min_ranks: u32,
    /// At most so many members.
    pub max_ranks: u32,
    /// At least so many bytes.
    pub min_bytes: Bytes,
    /// At most so many bytes.
    pub max_bytes: Bytes,
    /// The bytes are divided by the number of members before they are compared.
    pub per_member: bool,
    /// Only where the number of members is a power of two.
    pub power_of_two: bool,
    /// Only where the vector has so many elements.
    pub elements: Elements,
    /// Only where the call does not block.
    pub non_blocking: bool,
    /// The algorithm.
    pub algorithm: Algorithm,
}

impl Rule {
    /// `algorithm` for every `collective`, to be narrowed.
    pub const fn always(collective: Collective, algorithm: Algorithm) -> Rule {
        Rule {
            collective,
            min_ranks: 0,
            max_ranks: u32::MAX,
            min_bytes: Bytes::ZERO,
            max_bytes: Bytes::new(u64::MAX),
            per_member: false,
            power_of_two: false,
            elements: Elements::Any,
            non_blocking: false,
            algorithm,
        }
    }

    pub(super) const fn up_to(self, bytes: u64) -> Rule {
        Rule { max_bytes: Bytes::new(bytes), ..self }
    }

    pub(super) const fn on_at_most(self, ranks: u32) -> Rule {
        Rule { max_ranks: ranks, ..self }
    }

    pub(super) const fn on_at_least(self, ranks: u32) -> Rule {
        Rule { min_ranks: ranks, ..self }
    }

    pub(super) const fn on_powers_of_two(self) -> Rule {
        Rule { power_of_two: true, ..self }
    }

    pub(super) const fn with(self, elements: Elements) -> Rule {
        Rule { elements, ..self }
    }

    pub(super) const fn not_blocking(self) -> Rule {
        Rule { non_blocking: true, ..self }
    }

    pub(super) const fn per_member(self) -> Rule {
        Rule { per_member: true, ..self }
    }

    /// Whether all its conditions hold.
    pub(super) fn holds(&self, collective: Collective, size: CollectiveSize) -> bool {
        let members = size.members.max(1);
        let bytes = if self.per_member { size.bytes.get() / u64::from(members) } else { size.bytes.get() };
        let needed = match self.elements {
            Elements::Any => 0,
            Elements::PowerOfTwo => 1 << members.ilog2(),
            Elements::Members => u64::from(members),
        };
        self.collective == collective
            && (self.min_ranks..=self.max_ranks).contains(&size.members)
            && (self.min_bytes..=self.max_bytes).contains(&Bytes::new(bytes))
            && (!self.power_of_two || members.is_power_of_two())
            && size.elements >= needed
            && (!self.non_blocking || size.non_blocking)
    }
}

/// The size of a collective, as the rules ask for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CollectiveSize {
    /// The number of members.
    pub members: u32,
    /// Bytes, as [`Rule`] says.
    pub bytes: Bytes,
    /// Elements of the vector; 0 where there is none.
    pub elements: u64,
    /// Whether the call does not block.
    pub non_blocking: bool,
}
