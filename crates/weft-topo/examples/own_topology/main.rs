//! A topology of one's own, as a folder of three files and a line of registration. The page of the book on
//! adding one is made of this folder, and `tests/it/own_topology.rs` runs its checks.

mod hypercube;

use hypercube::{ECube, HypercubeParameters};
use weft_topo::{figures, prove};

// ANCHOR: register
weft_topo::families! {
    Hypercube(ECube): Hypercube(HypercubeParameters);
}
// ANCHOR_END: register

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for parameters in TopologyParameters::examples() {
        let layout = parameters.build()?;
        let figures = figures(&layout);
        println!("{} endpoints, diameter {}: {}", figures.endpoints, figures.diameter, prove(&layout)?);
    }
    Ok(())
}
