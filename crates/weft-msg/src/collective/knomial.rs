//! k-nomial tree of radix 4: broadcast, reduce.
//!
//! Members are counted from the root, in digits to the base 4. A member's parent is the member without
//! its lowest digit that is not 0; it sends to the farthest children first.
//!
//! ```text
//!   16 members     0 ─▶ 4 8 12 1 2 3
//!                  4 ─▶ 5 6 7      8 ─▶ 9 10 11      12 ─▶ 13 14 15
//! ```
//!
//! Messages: p − 1. Depth: ⌈log4 p⌉.
//!
//! # Source
//! Open MPI 4.1, `ompi_coll_base_topo_build_kmtree` and `ompi_coll_base_bcast_intra_knomial`; the radix is
//! the default of `coll_tuned_bcast_algorithm_knomial_radix`.

use super::tree::{Family, Tree};

const RADIX: u32 = 4;

/// The algorithm.
pub(crate) const KNOMIAL: Tree = Tree { family };

/// The neighbours of `v` among `members`.
fn family(v: u32, members: u32) -> Family {
    let (v, members, radix) = (u64::from(v), u64::from(members), u64::from(RADIX));
    let mut family = Family::default();
    // The worth of its lowest digit that is not 0; the root's is above all.
    let mut worth = 1;
    while worth < members && v % (radix * worth) == 0 {
        worth *= radix;
    }
    if worth < members {
        family.parent = Some((v / (radix * worth) * (radix * worth)) as u32);
    }
    let mut below = worth / radix;
    while below > 0 {
        let children = (1..radix).map(|digit| v + digit * below).filter(|child| *child < members);
        family.children.extend(children.map(|child| child as u32));
        below /= radix;
    }
    family
}
