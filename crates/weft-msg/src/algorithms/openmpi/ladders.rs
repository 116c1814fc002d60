//! The ladders themselves, for operations that commute.
//!
//! # Source
//! Open MPI 4.1.6, `ompi/mca/coll/tuned/coll_tuned_decision_fixed.c`, by function.

use crate::algorithms::algorithm::Algorithm as A;
use weft_trace::op::Collective as C;

/// Up to fewer members than the number: the steps.
pub(super) type Rung = (u32, &'static [SizeRung]);
/// Up to fewer bytes than the number: the algorithm.
pub(super) type SizeRung = (u64, A);

/// Any number of members.
pub(super) const MORE: u32 = u32::MAX;
/// Any number of bytes.
const REST: u64 = u64::MAX;

/// Every ladder with its collective.
pub(super) const LADDERS: &[(C, &[Rung])] = &[
    (C::Barrier, BARRIER),
    (C::Broadcast, BROADCAST),
    (C::Reduce, REDUCE),
    (C::Allreduce, ALLREDUCE),
    (C::Gather, GATHER),
    (C::Scatter, SCATTER),
    (C::Allgather, ALLGATHER),
    (C::Allgatherv, ALLGATHERV),
    (C::Alltoall, ALLTOALL),
    (C::Alltoallv, ALLTOALLV),
    (C::ReduceScatter, REDUCE_SCATTER),
    (C::ReduceScatterBlock, REDUCE_SCATTER_BLOCK),
];

/// `ompi_coll_tuned_barrier_intra_dec_fixed`.
const BARRIER: &[Rung] = &[
    (4, &[(REST, A::RecursiveDoubling)]),
    (8, &[(REST, A::Linear)]),
    (64, &[(REST, A::RecursiveDoubling)]),
    (256, &[(REST, A::Dissemination)]),
    (512, &[(REST, A::Binomial)]),
    (1_024, &[(REST, A::Dissemination)]),
    (4_096, &[(REST, A::Binomial)]),
    (MORE, &[(REST, A::Dissemination)]),
];

/// `ompi_coll_tuned_bcast_intra_dec_fixed`.
const BROADCAST: &[Rung] = &[
    (
        4,
        &[
            (32, A::Chain),
            (256, A::BinaryTree),
            (512, A::Chain),
            (1_024, A::Knomial),
            (32_768, A::Linear),
            (131_072, A::BinaryTree),
            (262_144, A::Chain),
            (524_288, A::Linear),
            (1_048_576, A::Binomial),
            (REST, A::BinaryTree),
        ],
    ),
    (
        8,
        &[
            (64, A::BinaryTree),
            (128, A::Binomial),
            (2_048, A::BinaryTree),
            (8_192, A::Binomial),
            (1_048_576, A::Linear),
            (REST, A::Chain),
        ],
    ),
    (
        16,
        &[
            (8, A::Knomial),
            (64, A::BinaryTree),
            (4_096, A::Knomial),
            (16_384, A::BinaryTree),
            (32_768, A::Binomial),
            (REST, A::Linear),
        ],
    ),
    (32, &[(4_096, A::Knomial), (1_048_576, A::Binomial), (REST, A::ScatterDoubling)]),
    (64, &[(2_048, A::Binomial), (REST, A::Knomial)]),
    (128, &[(REST, A::Knomial)]),
    (
        256,
        &[
            (2, A::Binomial),
            (16_384, A::BinaryTree),
            (32_768, A::Linear),
            (65_536, A::BinaryTree),
            (REST, A::Knomial),
        ],
    ),
    (1_024, &[(16_384, A::Knomial), (32_768, A::SplitBinaryTree), (REST, A::Knomial)]),
    (2_048, &[(524_288, A::Knomial), (REST, A::ScatterDoubling)]),
    (4_096, &[(262_144, A::Knomial), (REST, A::ScatterDoubling)]),
    (
        MORE,
        &[(8_192, A::Knomial), (16_384, A::BinaryTree), (262_144, A::Knomial), (REST, A::ScatterDoubling)],
    ),
];

/// `ompi_coll_tuned_reduce_intra_dec_fixed`.
const REDUCE: &[Rung] = &[
    (4, &[(8, A::Rabenseifner), (16, A::BinaryTree), (32, A::Chain), (262_144, A::Linear), (REST, A::Chain)]),
    (
        8,
        &[
            (4_096, A::BinaryTree),
            (65_536, A::Chain),
            (262_144, A::Binomial),
            (524_288, A::Linear),
            (1_048_576, A::Binomial),
            (REST, A::Linear),
        ],
    ),
    (16, &[(8_192, A::BinaryTree), (REST, A::Binomial)]),
    (32, &[(4_096, A::BinaryTree), (REST, A::Binomial)]),
    (256, &[(REST, A::Binomial)]),
    (512, &[(8_192, A::Binomial), (16_384, A::InOrderBinaryTree), (REST, A::Binomial)]),
    (2_048, &[(REST, A::Binomial)]),
    (
        4_096,
        &[
            (512, A::Binomial),
            (1_024, A::InOrderBinaryTree),
            (8_192, A::Binomial),
            (16_384, A::InOrderBinaryTree),
            (REST, A::Binomial),
        ],
    ),
    (
        MORE,
        &[
            (16, A::Binomial),
            (32, A::InOrderBinaryTree),
            (1_024, A::Binomial),
            (2_048, A::InOrderBinaryTree),
            (8_192, A::Binomial),
            (16_384, A::InOrderBinaryTree),
            (REST, A::Binomial),
        ],
    ),
];

/// `ompi_coll_tuned_allreduce_intra_dec_fixed`.
const ALLREDUCE: &[Rung] = &[
    (
        4,
        &[
            (8, A::Ring),
            (4_096, A::RecursiveDoubling),
            (8_192, A::Ring),
            (16_384, A::RecursiveDoubling),
            (262_144, A::Ring),
            (REST, A::Rabenseifner),
        ],
    ),
    (8, &[(16, A::Ring), (8_192, A::RecursiveDoubling), (REST, A::Rabenseifner)]),
    (16, &[(8_192, A::RecursiveDoubling), (REST, A::Rabenseifner)]),
    (32, &[(64, A::Ring), (4_096, A::RecursiveDoubling), (REST, A::Rabenseifner)]),
    (64, &[(128, A::Ring), (REST, A::Rabenseifner)]),
    (128, &[(262_144, A::RecursiveDoubling), (REST, A::Rabenseifner)]),
    (256, &[(131_072, A::NonOverlapping), (262_144, A::RecursiveDoubling), (REST, A::Rabenseifner)]),
    (512, &[(4_096, A::NonOverlapping), (REST, A::Rabenseifner)]),
    (2_048, &[(2_048, A::NonOverlapping), (16_384, A::RecursiveDoubling), (REST, A::Rabenseifner)]),
    (
        4_096,
        &[
            (2_048, A::NonOverlapping),
            (4_096, A::Ring),
            (16_384, A::RecursiveDoubling),
            (REST, A::Rabenseifner),
        ],
    ),
    (
        MORE,
        &[
            (2_048, A::NonOverlapping),
            (16_384, A::Ring),
            (32_768, A::RecursiveDoubling),
            (REST, A::Rabenseifner),
        ],
    ),
];

/// `ompi_coll_tuned_gather_intra_dec_fixed`.
const GATHER: &[Rung] = &[
    (
        4,
        &[
            (4, A::Linear),
            (32_768, A::Binomial),
            (65_536, A::Linear),
            (131_072, A::Binomial),
            (REST, A::Linear),
        ],
    ),
    (8, &[(1_024, A::Binomial), (8_192, A::Linear), (32_768, A::Binomial), (REST, A::Linear)]),
    (256, &[(REST, A::Binomial)]),
    (512, &[(2_048, A::Binomial), (8_192, A::Linear), (REST, A::Binomial)]),
    (MORE, &[(REST, A::Binomial)]),
];

/// `ompi_coll_tuned_scatter_intra_dec_fixed`.
const SCATTER: &[Rung] = &[
    (4, &[(REST, A::Linear)]),
    (8, &[(2_048, A::Binomial), (4_096, A::Linear), (8_192, A::Binomial), (REST, A::Linear)]),
    (16, &[(16_384, A::Binomial), (REST, A::Linear)]),
    (32, &[(16_384, A::Binomial), (REST, A::Linear)]),
    (64, &[(512, A::Binomial), (8_192, A::Linear), (16_384, A::Binomial), (REST, A::Linear)]),
    (MORE, &[(512, A::Binomial), (REST, A::Linear)]),
];

/// `ompi_coll_tuned_allgather_intra_dec_fixed`.
const ALLGATHER: &[Rung] = &[
    (3, &[(REST, A::Ring)]),
    (32, &[(REST, A::RecursiveDoubling)]),
    (64, &[(1_024, A::RecursiveDoubling), (65_536, A::NeighborExchange), (REST, A::Ring)]),
    (128, &[(512, A::RecursiveDoubling), (65_536, A::NeighborExchange), (REST, A::Ring)]),
    (
        256,
        &[
            (512, A::RecursiveDoubling),
            (131_072, A::NeighborExchange),
            (524_288, A::Ring),
            (1_048_576, A::NeighborExchange),
            (REST, A::Ring),
        ],
    ),
    (
        512,
        &[
            (32, A::RecursiveDoubling),
            (128, A::Bruck),
            (1_024, A::RecursiveDoubling),
            (131_072, A::NeighborExchange),
            (524_288, A::Ring),
            (1_048_576, A::NeighborExchange),
            (REST, A::Ring),
        ],
    ),
    (
        1_024,
        &[
            (64, A::RecursiveDoubling),
            (256, A::Bruck),
            (2_048, A::RecursiveDoubling),
            (REST, A::NeighborExchange),
        ],
    ),
    (
        2_048,
        &[
            (4, A::RecursiveDoubling),
            (8, A::Bruck),
            (16, A::RecursiveDoubling),
            (32, A::Bruck),
            (256, A::RecursiveDoubling),
            (512, A::Bruck),
            (4_096, A::RecursiveDoubling),
            (REST, A::NeighborExchange),
        ],
    ),
    (
        4_096,
        &[
            (32, A::Bruck),
            (128, A::RecursiveDoubling),
            (512, A::Bruck),
            (4_096, A::RecursiveDoubling),
            (REST, A::NeighborExchange),
        ],
    ),
    (
        MORE,
        &[
            (2, A::RecursiveDoubling),
            (8, A::Bruck),
            (16, A::RecursiveDoubling),
            (512, A::Bruck),
            (4_096, A::RecursiveDoubling),
            (REST, A::NeighborExchange),
        ],
    ),
];

/// `ompi_coll_tuned_allgatherv_intra_dec_fixed`.
const ALLGATHERV: &[Rung] = &[
    (3, &[(REST, A::Ring)]),
    (
        8,
        &[
            (256, A::NonOverlapping),
            (4_096, A::NeighborExchange),
            (8_192, A::Ring),
            (16_384, A::NeighborExchange),
            (262_144, A::Bruck),
            (REST, A::NeighborExchange),
        ],
    ),
    (16, &[(1_024, A::NonOverlapping), (REST, A::Bruck)]),
    (32, &[(128, A::NonOverlapping), (262_144, A::Bruck), (REST, A::Ring)]),
    (64, &[(256, A::NonOverlapping), (8_192, A::Bruck), (REST, A::Ring)]),
    (128, &[(256, A::NonOverlapping), (4_096, A::Bruck), (REST, A::Ring)]),
    (256, &[(1_024, A::Bruck), (65_536, A::NeighborExchange), (REST, A::Ring)]),
    (512, &[(1_024, A::Bruck), (REST, A::Ring)]),
    (
        1_024,
        &[
            (512, A::Bruck),
            (1_024, A::NonOverlapping),
            (4_096, A::Bruck),
            (1_048_576, A::NeighborExchange),
            (REST, A::Ring),
        ],
    ),
    (MORE, &[(4_096, A::Bruck), (REST, A::NeighborExchange)]),
];

/// `ompi_coll_tuned_alltoall_intra_dec_fixed`.
const ALLTOALL: &[Rung] = &[
    (3, &[(32_768, A::Pairwise), (262_144, A::Linear), (REST, A::Pairwise)]),
    (8, &[(524_288, A::Linear), (1_048_576, A::Pairwise), (REST, A::Linear)]),
    (16, &[(REST, A::Linear)]),
    (32, &[(4, A::Linear), (512, A::Bruck), (REST, A::Linear)]),
    (64, &[(512, A::Bruck), (REST, A::Linear)]),
    (128, &[(1_024, A::Bruck), (262_144, A::Linear), (REST, A::Pairwise)]),
    (256, &[(1_024, A::Bruck), (262_144, A::Linear), (REST, A::Pairwise)]),
    (512, &[(1_024, A::Bruck), (32_768, A::Linear), (REST, A::Pairwise)]),
    (1_024, &[(512, A::Bruck), (262_144, A::Linear), (REST, A::Pairwise)]),
    (2_048, &[(512, A::Bruck), (REST, A::Linear)]),
    (4_096, &[(1_024, A::Bruck), (REST, A::Linear)]),
    (MORE, &[(2_048, A::Bruck), (REST, A::Linear)]),
];

/// `ompi_coll_tuned_alltoallv_intra_dec_fixed`.
const ALLTOALLV: &[Rung] = &[
    (4, &[(REST, A::Pairwise)]),
    (64, &[(REST, A::Linear)]),
    (128, &[(REST, A::Pairwise)]),
    (256, &[(REST, A::Linear)]),
    (1_024, &[(REST, A::Pairwise)]),
    (MORE, &[(REST, A::Linear)]),
];

/// `ompi_coll_tuned_reduce_scatter_intra_dec_fixed`.
const REDUCE_SCATTER: &[Rung] = &[
    (4, &[(65_536, A::Ring), (131_072, A::Butterfly), (REST, A::Ring)]),
    (8, &[(8, A::NonOverlapping), (262_144, A::RecursiveHalving), (REST, A::Ring)]),
    (32, &[(262_144, A::RecursiveHalving), (REST, A::Ring)]),
    (64, &[(64, A::NonOverlapping), (2_048, A::RecursiveHalving), (524_288, A::Butterfly), (REST, A::Ring)]),
    (
        128,
        &[
            (256, A::NonOverlapping),
            (512, A::RecursiveHalving),
            (2_048, A::Butterfly),
            (4_096, A::RecursiveHalving),
            (REST, A::Butterfly),
        ],
    ),
    (256, &[(256, A::NonOverlapping), (512, A::RecursiveHalving), (REST, A::Butterfly)]),
    (512, &[(256, A::NonOverlapping), (1_024, A::RecursiveHalving), (REST, A::Butterfly)]),
    (
        1_024,
        &[
            (512, A::NonOverlapping),
            (2_048, A::RecursiveHalving),
            (8_192, A::Butterfly),
            (16_384, A::RecursiveHalving),
            (REST, A::Butterfly),
        ],
    ),
    (
        2_048,
        &[
            (512, A::NonOverlapping),
            (4_096, A::RecursiveHalving),
            (16_384, A::Butterfly),
            (32_768, A::RecursiveHalving),
            (REST, A::Butterfly),
        ],
    ),
    (4_096, &[(512, A::NonOverlapping), (4_096, A::RecursiveHalving), (REST, A::Butterfly)]),
    (MORE, &[(1_024, A::NonOverlapping), (8_192, A::RecursiveHalving), (REST, A::Butterfly)]),
];

/// `ompi_coll_tuned_reduce_scatter_block_intra_dec_fixed`.
const REDUCE_SCATTER_BLOCK: &[Rung] = &[
    (
        4,
        &[
            (4, A::RecursiveHalving),
            (8, A::Butterfly),
            (16, A::RecursiveHalving),
            (128, A::Butterfly),
            (256, A::RecursiveHalving),
            (4_096, A::Butterfly),
            (8_192, A::RecursiveHalving),
            (131_072, A::Butterfly),
            (REST, A::NonOverlapping),
        ],
    ),
    (
        8,
        &[
            (32, A::RecursiveHalving),
            (256, A::Butterfly),
            (8_192, A::RecursiveHalving),
            (16_384, A::Butterfly),
            (1_048_576, A::RecursiveHalving),
            (REST, A::NonOverlapping),
        ],
    ),
    (
        16,
        &[
            (4, A::NonOverlapping),
            (32, A::RecursiveHalving),
            (128, A::Butterfly),
            (524_288, A::RecursiveHalving),
            (4_194_304, A::NonOverlapping),
            (REST, A::Butterfly),
        ],
    ),
    (
        32,
        &[
            (32, A::NonOverlapping),
            (524_288, A::RecursiveHalving),
            (2_097_152, A::NonOverlapping),
            (4_194_304, A::RecursiveHalving),
            (REST, A::Butterfly),
        ],
    ),
    (
        MORE,
        &[
            (4, A::RecursiveHalving),
            (16, A::NonOverlapping),
            (65_536, A::Butterfly),
            (262_144, A::NonOverlapping),
            (REST, A::Butterfly),
        ],
    ),
];
