//! The kinds of phases of a kernel. One file each.

mod collective;
mod computation;
mod exchange;
mod halo;
mod remap;
mod swap;

pub use collective::AllRanks;
pub use computation::Computation;
pub use exchange::{NeighbourExchange, NeighbourList, NeighbourMessages, SendStyle};
pub use halo::{GridHalo, HaloTags, Stencil};
pub use remap::{GridLayout, GridSplit, Remap, RemapPhase, SplitRule};
pub use swap::{Swap, SwapList, SwapMessage, SwapSequence, SwapShape, SwapStyle};

use weft_units::Address;

/// All that a rank sends lies here.
const SEND_BUFFER: Address = Address::new(0x10_0000_0000);
/// All that it receives.
const RECEIVE_BUFFER: Address = Address::new(0x20_0000_0000);
