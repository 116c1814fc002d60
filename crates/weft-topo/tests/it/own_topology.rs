//! The topology of `examples/own_topology`, registered by one line: the checks that every family gets.

#[path = "../../examples/own_topology/hypercube/mod.rs"]
mod hypercube;

use crate::machines::{Idle, pairs, walk};
use hypercube::{ECube, HypercubeParameters};
use weft_topo::{Attachment, Method, Pattern, Routing, Topology, channel_load, figures, prove};
use weft_units::{PortId, SwitchId};

weft_topo::families! {
    Hypercube(ECube): Hypercube(HypercubeParameters);
}

/// Catches a registration that needs more than its line: counts, links, routes, the proof and the figures
/// of a family without closed forms.
#[test]
fn a_registered_family_is_whole() {
    for parameters in TopologyParameters::examples() {
        let (counts, layout) = (parameters.counts(), parameters.build().unwrap());
        assert_eq!(counts.endpoints, u128::from(layout.endpoints()));
        for switch in (0..layout.switches()).map(SwitchId) {
            for port in (0..layout.ports(switch)).map(PortId) {
                match layout.peer(switch, port) {
                    Attachment::Switch(other, back) => {
                        assert_eq!(layout.peer(other, back), Attachment::Switch(switch, port));
                    }
                    Attachment::Endpoint(endpoint) => assert_eq!(layout.attachment(endpoint), (switch, port)),
                    Attachment::Nothing => panic!("every port is joined to something"),
                }
            }
        }
        let (figures, bits) = (figures(&layout), layout.switches().ilog2());
        assert_eq!((figures.diameter, figures.bisection.links), (bits, u64::from(layout.switches() / 2)));
        let others = f64::from(layout.endpoints() - 1);
        let mean = f64::from(bits) * f64::from(layout.endpoints() / 2) / others;
        assert!((figures.mean_distance - mean).abs() < 1e-9);
        for (from, to) in pairs(&layout) {
            walk(&layout, (from, to), &mut Idle, bits as usize);
        }
        let load = channel_load(&layout, Pattern::Uniform).unwrap();
        assert!((load.busiest() - f64::from(layout.endpoints() / 2) / others).abs() < 1e-9, "{load:?}");
        assert_eq!(prove(&layout).unwrap().method, Method::Ranks);
        assert!(layout.is_deterministic());
        assert_eq!((parameters.family().name, parameters.routing()), ("binary-cube", "e-cube"));
    }
}

/// Catches a family whose sizes from a machine file reach memory before they are checked.
#[test]
fn its_sizes_are_checked() {
    let TopologyParameters::Hypercube(example) = TopologyParameters::examples().remove(0);
    for bits in [25, 127, 128, u32::MAX] {
        let parameters = TopologyParameters::Hypercube(HypercubeParameters { bits, ..example.clone() });
        assert!(parameters.build().unwrap_err().to_string().contains("the limit is"), "{bits}");
    }
}
