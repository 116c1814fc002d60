//! A kernel of one's own: a ring that passes blocks on, and adds up a residual.
//!
//! The book's page on writing a kernel walks through it.

// ANCHOR: uses
use weft_app::options::{AppOption, Options};
use weft_app::part::KernelPart;
use weft_app::phase::{
    AllRanks, Computation, NeighbourExchange, NeighbourList, NeighbourMessages, SendStyle,
};
use weft_app::{App, AppError, Verification};
use weft_units::Bytes;
// ANCHOR_END: uses

// ANCHOR: kernel
/// The application.
pub const RING: App = App {
    name: "ring",
    summary: "a ring that passes blocks on",
    laws: "Each step every rank sends its block to the next rank and an empty message to the one before, \
           computes 2 operations a number of its block, and the residual is summed over all ranks.",
    checked: Verification::Unchecked("an example"),
    options: &[
        AppOption { name: "block", default: "64K", about: "size of a block" },
        AppOption { name: "steps", default: "10", about: "number of steps" },
    ],
    memory: None,
    build,
};

fn build(options: &Options<'_>) -> Result<Vec<KernelPart>, AppError> {
    let block = options.bytes("block", Bytes::new(1 << 30))?;
    let steps = options.count("steps", 1..=1 << 40)?;
    let ring = Ring { ranks: options.ranks(), block };
    let exchange = NeighbourExchange { neighbours: ring, style: SendStyle::Nonblocking };
    let computation = Computation { flops: 2 * block.get() / 8, bytes: block };
    let step = vec![exchange.into(), computation.into(), AllRanks::sum(1).into()];
    Ok(vec![KernelPart::repeat(steps, step)])
}
// ANCHOR_END: kernel

// ANCHOR: neighbours
struct Ring {
    ranks: u32,
    block: Bytes,
}

impl NeighbourList for Ring {
    fn count(&self, _: u32) -> u32 {
        if self.ranks > 1 { 2 } else { 0 }
    }

    fn neighbour(&self, rank: u32, index: u32) -> NeighbourMessages {
        // To the next rank goes a block; from the one before comes one.
        let next = (rank + 1) % self.ranks;
        let before = (rank + self.ranks - 1) % self.ranks;
        let (neighbour, send, receive) = match index {
            0 => (next, self.block, Bytes::ZERO),
            _ => (before, Bytes::ZERO, self.block),
        };
        let (send_tag, receive_tag) = if index == 0 { (0, 1) } else { (1, 0) };
        NeighbourMessages { rank: neighbour, send, send_tag, receive, receive_tag }
    }
}
// ANCHOR_END: neighbours

fn main() -> Result<(), AppError> {
    use weft_trace::TraceSource as _;
    let options = std::collections::BTreeMap::new();
    let parts = (RING.build)(&Options::new(&RING, 8, &options)?)?;
    let kernel = weft_app::Kernel::of("ring@8".to_owned(), 8, parts);
    println!("{} operations on {} ranks", kernel.operations(), kernel.ranks());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use weft_app::Kernel;
    use weft_trace::{Kind, TraceSource as _};

    #[test]
    fn a_ring_passes_one_block_on_in_each_step() {
        let given = BTreeMap::from([("steps".to_owned(), "3".to_owned())]);
        let parts = (RING.build)(&Options::new(&RING, 4, &given).unwrap()).unwrap();
        let kernel = Kernel::of("ring@4,steps=3".to_owned(), 4, parts);
        assert_eq!(kernel.operations_of(Kind::Work), 3 * 4);
        // Two receives, two sends, a wait, a computation and a sum.
        assert_eq!(kernel.operations(), 3 * 4 * 7);
        weft_formats::validate(&kernel.into()).unwrap();
        assert!((RING.build)(&Options::new(&RING, 1, &given).unwrap()).is_ok());
    }
}
