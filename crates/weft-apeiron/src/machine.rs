//! The machine that a design runs on: the Communication IP with its ports and its clock.
//!
//! ```text
//!  communication-ip ◄─ sets(design) ◄─ --set of the user ◄─ kernels_apart
//! ```
//! Each kernel's port is an endpoint of its node: it has FIFOs and a way into the switch of its own (§2).
//! A kernel's own cycles are in the model's aggregator and dispatcher, which are calibrated with both. Here
//! kernels spend theirs themselves, so that they are taken out.
//!
//! # Source
//! TEXTAROSSA D2.8 §2.1, §5.2, appendices A and C.

use crate::config::Design;

/// The machine by its name.
pub const MACHINE: &str = "communication-ip";

/// Cycles that a kernel spends itself of those that the model's dispatcher has: the one until a word that it
/// writes is there. A word is read in the cycle in which the kernel's next write may be. Nothing is taken out
/// of the aggregator, which is calibrated with packets in a row: there a kernel's words hide behind those
/// before.
pub const KERNEL_CYCLES: u32 = 1;

/// Time in transceivers and cable of a link between FPGAs, in ps: `links.default.latency` of the machine,
/// less a cycle of 100 MHz at either end.
const TRANSCEIVERS_PS: u64 = 200_000;

/// The values that make the machine that of a design, each as KEY=VALUE: one node, whose ports hang off the
/// switch each by a way of its own.
pub fn sets(design: &Design) -> Vec<String> {
    let megahertz = u64::from(design.megahertz);
    // A word of 128 bits per cycle.
    let rate = format!("{}Mb/s", 128 * megahertz);
    let ports = ports(design);
    vec![
        "topology.dims=[1]".to_owned(),
        format!("nic.clock={megahertz}MHz"),
        format!("switch.clock={megahertz}MHz"),
        format!("topology.endpoints_per_switch={ports}"),
        format!("host.endpoints_per_host={ports}"),
        "nic.intra_node.ports=1".to_owned(),
        format!("links.endpoint.latency={}ps", cycles_ps(1, megahertz)),
        format!("links.default.latency={}ps", TRANSCEIVERS_PS + cycles_ps(2, megahertz)),
        format!("nic.bram.rate={rate}"),
        format!("nic.ddr.rate={rate}"),
        "host.cores=1".to_owned(),
    ]
}

/// Time of some cycles, in ps. Where that is no whole number, a little less: an edge of the clock and the
/// end of a packet are each rounded up to the next ps, and what comes after its edge waits a cycle.
fn cycles_ps(cycles: u64, megahertz: u64) -> u64 {
    let all = cycles * 1_000_000;
    if all.is_multiple_of(megahertz) { all / megahertz } else { all / megahertz - 2 }
}

/// The values that put the ports of a node at one endpoint, where there is no switch.
pub fn without_switch(design: &Design) -> Vec<String> {
    vec![
        "topology.endpoints_per_switch=1".to_owned(),
        "host.endpoints_per_host=1".to_owned(),
        format!("nic.intra_node.ports={}", ports(design)),
    ]
}

/// Ports of a node: kernels without one have streams to others alone.
fn ports(design: &Design) -> usize {
    design.kernels.iter().filter(|kernel| kernel.port.is_some()).count()
}

/// The values that take the kernels' own part out of a machine whose dispatcher takes so many cycles: they
/// find their buffers themselves, wherever these are.
pub fn kernels_apart(dispatcher: u32) -> Vec<String> {
    let cycles = dispatcher.saturating_sub(KERNEL_CYCLES);
    vec!["nic.buffers=bram".to_owned(), format!("nic.intra_node.dispatcher={cycles} cycles")]
}

/// InterNode ports that a node of a grid with these sizes needs: two along a dimension of three nodes or
/// more, one where there are two.
pub fn links_of(sizes: &[u32]) -> u32 {
    sizes.iter().map(|size| (size - 1).min(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::latency;

    /// Catches a machine of another clock or with other ports than the design.
    #[test]
    fn the_machine_has_the_designs_clock_and_ports() {
        let design = Design { megahertz: 50, ..latency() };
        let sets = sets(&design);
        for set in ["nic.clock=50MHz", "topology.endpoints_per_switch=2", "nic.bram.rate=6400Mb/s"] {
            assert!(sets.iter().any(|own| own == set), "{set}: {sets:?}");
        }
        assert!(sets.contains(&"links.default.latency=240000ps".to_owned()));
        assert_eq!([cycles_ps(1, 100), cycles_ps(1, 75), cycles_ps(2, 75)], [10_000, 13_331, 26_664]);
        assert_eq!(kernels_apart(13)[1], "nic.intra_node.dispatcher=12 cycles");
        assert_eq!(kernels_apart(0)[1], "nic.intra_node.dispatcher=0 cycles");
    }

    /// Catches grids that ask for more cables than they have.
    #[test]
    fn cables_of_a_grid() {
        for (sizes, links) in [(&[1][..], 0), (&[2], 1), (&[3], 2), (&[2, 2, 2], 3), (&[4, 4, 4], 6)] {
            assert_eq!(links_of(sizes), links, "{sizes:?}");
        }
    }
}
