//! The links of topologies.

use crate::machines::any_machine;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use weft_topo::*;
use weft_units::{EndpointId, PortId, SwitchId};

proptest! {
    /// Catches links with one end, ends of different class, and class numbers without a name.
    #[test]
    fn links_are_the_same_from_both_ends(layout in any_machine()) {
        for switch in (0..layout.switches()).map(SwitchId) {
            for port in (0..layout.ports(switch)).map(PortId) {
                let class = layout.link_class(switch, port);
                prop_assert!(usize::from(class.0) < layout.link_classes().len());
                match layout.peer(switch, port) {
                    Attachment::Nothing => {}
                    Attachment::Endpoint(endpoint) => {
                        prop_assert_eq!(layout.attachment(endpoint), (switch, port));
                        prop_assert_eq!(class, LinkClass(0));
                    }
                    Attachment::Switch(other, back) => {
                        prop_assert_ne!(other, switch);
                        prop_assert!(back.0 < layout.ports(other));
                        prop_assert_eq!(layout.peer(other, back), Attachment::Switch(switch, port));
                        prop_assert_eq!(layout.link_class(other, back), class);
                        prop_assert_ne!(class, LinkClass(0));
                    }
                }
            }
        }
    }

    /// Catches endpoints that are attached nowhere or share a port, and addresses that collide.
    #[test]
    fn every_endpoint_is_attached_once(layout in any_machine()) {
        let endpoints = || (0..layout.endpoints()).map(EndpointId);
        let ports: BTreeSet<_> = endpoints().map(|e| layout.attachment(e)).collect();
        let addresses: BTreeSet<_> = endpoints().map(|e| layout.endpoint_address(e).0).collect();
        prop_assert_eq!(ports.len(), layout.endpoints() as usize);
        prop_assert_eq!(addresses.len(), layout.endpoints() as usize);
        for (endpoint, (switch, port)) in endpoints().map(|e| (e, layout.attachment(e))) {
            prop_assert_eq!(layout.peer(switch, port), Attachment::Endpoint(endpoint));
        }
        let switches: BTreeSet<_> =
            (0..layout.switches()).map(|s| layout.switch_address(SwitchId(s)).0).collect();
        prop_assert_eq!(switches.len(), layout.switches() as usize);
    }

    /// Catches a part of a part that lies in two, or a switch whose endpoints are in two: trees of
    /// collectives would go in and out of it.
    #[test]
    fn parts_lie_within_each_other(layout in any_machine()) {
        let (mut groups, mut within) = (BTreeMap::new(), BTreeMap::new());
        for endpoint in (0..layout.endpoints()).map(EndpointId) {
            let [group, part] = layout.parts_of(endpoint);
            prop_assert_eq!(*groups.entry(part).or_insert(group), group);
            let switch = layout.attachment(endpoint).0;
            prop_assert_eq!(*within.entry(switch).or_insert(part), part);
        }
    }

    /// Catches state that saving a run would lose.
    #[test]
    fn layouts_survive_saving(layout in any_machine()) {
        let saved = postcard::to_allocvec(&layout).unwrap();
        prop_assert_eq!(postcard::from_bytes::<Layout>(&saved).unwrap(), layout);
    }
}
