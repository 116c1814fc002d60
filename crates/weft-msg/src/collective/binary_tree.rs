//! Binary tree, level by level: broadcast, reduce.
//!
//! Members are counted from the root. On a level of n members the children of v are v + n and v + 2n, so
//! that the odd members are on one side of the root and the even ones on the other.
//!
//! ```text
//!   11 members        0
//!                 ┌───┴───┐
//!                 1       2
//!               ┌─┴─┐   ┌─┴─┐
//!               3   5   4   6
//!               7   9   8  10
//! ```
//!
//! Messages: p − 1. Depth: ⌊log2 p⌋.
//!
//! # Source
//! Open MPI 4.1, `ompi_coll_base_topo_build_tree` with a fan-out of 2,
//! `ompi_coll_base_bcast_intra_bintree`, `ompi_coll_base_reduce_intra_binary`.

use super::tree::{Family, Tree};

/// The algorithm.
pub(crate) const BINARY_TREE: Tree = Tree { family };

/// The neighbours of `v` among `members`.
pub(super) fn family(v: u32, members: u32) -> Family {
    let (v, members) = (u64::from(v), u64::from(members));
    // Members on v's level; those above are one less.
    let level = 1 << (v + 1).ilog2();
    let children = [v + level, v + 2 * level].into_iter().filter(|child| *child < members);
    let children = children.map(|child| child as u32).collect();
    let parent = (v > 0).then(|| {
        let above = level / 2;
        let near = v - above;
        (if near < level - 1 { near } else { near - above }) as u32
    });
    Family { parent, children }
}
