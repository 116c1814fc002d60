//! The largest machines in use: proof and figures within seconds (they would take hours if anything
//! were quadratic in the endpoints).

use crate::machines::{RandomView, exanest, minimal, torus, tree, ugal, walk};
use weft_topo::*;
use weft_units::EndpointId;

/// Proves the machine, takes its figures, and walks a sample of pairs.
fn examine(layout: &Layout, bound: usize) -> Figures {
    assert_ne!(prove(layout).expect("no deadlock").method, Method::Search);
    let mut rng = RandomView::new(3);
    for _ in 0..1000 {
        let from = EndpointId((rng.random() % u64::from(layout.endpoints())) as u32);
        let to = pattern::uniform(layout.endpoints(), from, rng.random());
        walk(layout, (from, to), &mut rng, bound);
    }
    figures(layout)
}

#[test]
fn the_dragonfly_of_114_582_endpoints() {
    for arrangement in [GlobalLinks::Palmtree, GlobalLinks::Absolute] {
        let figures = examine(&minimal([13, 26, 13, 339], arrangement), 3);
        assert_eq!((figures.endpoints, figures.switches, figures.diameter), (114_582, 8_814, 3));
        let links: Vec<_> = figures.links.iter().map(|class| class.links).collect();
        assert_eq!(links, [114_582, 339 * 26 * 25 / 2, 339 * 338 / 2]);
        assert_eq!(figures.bisection.links, 169 * 170);
    }
    let figures = examine(&ugal([13, 26, 13, 339], GlobalLinks::Palmtree), 5);
    let tornado = figures.channel_loads[2].load.as_ref().unwrap();
    // Tornado shifts by 169.5 groups, and 169 is a multiple of h: all 13 detours that come to a switch of
    // an intermediate group leave by the same other one. Minimal routing would load a link with 170.
    assert!((13.0..14.0).contains(&tornado.busiest()), "{tornado:?}");
}

#[test]
fn a_torus_of_32_768_endpoints() {
    let dimensions = [(32, true); 3];
    let figures = examine(&torus(&dimensions, 1, true), 48);
    assert_eq!((figures.diameter, figures.bisection.links), (48, 2048));
    assert_eq!(prove(&torus(&dimensions, 1, false)).unwrap_err().channels.len(), 32);
}

#[test]
fn trees_and_racks_of_tens_of_thousands() {
    let figures = examine(&tree(16, 4, Ascent::DModK), 6);
    assert_eq!((figures.endpoints, figures.diameter, figures.bisection.links), (65_536, 6, 32_768));
    examine(&tree(256, 2, Ascent::Random), 2);
    let figures = examine(&exanest(2048, true), 264);
    assert_eq!(figures.endpoints, 32_768);
}
