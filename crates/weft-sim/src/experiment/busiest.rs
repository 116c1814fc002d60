//! The busiest links of a run, and names of links for people.

use weft_fabric::LinkEnd;
use weft_network::LinkUse;
use weft_topo::{Attachment, Layout, Topology as _};
use weft_units::Span;

/// `part` of `whole`; 0 of nothing.
pub(crate) fn share(part: Span, whole: Span) -> f64 {
    if whole == Span::ZERO { 0.0 } else { part.as_ps() as f64 / whole.as_ps() as f64 }
}

/// The `count` links that sent for longest, the busiest first; those that come first among equals. Links
/// that sent nothing are left out.
pub(crate) struct Busiest {
    count: usize,
    links: Vec<LinkUse>,
}

impl Busiest {
    /// None so far.
    pub(crate) fn new(count: usize) -> Busiest {
        Busiest { count, links: Vec::with_capacity(count + 1) }
    }

    /// Looks at a link.
    pub(crate) fn see(&mut self, link: LinkUse) {
        let place = self.links.partition_point(|other| other.busy >= link.busy);
        if place < self.count && link.busy > Span::ZERO {
            self.links.insert(place, link);
            self.links.truncate(self.count);
        }
    }

    /// The links.
    pub(crate) fn links(&self) -> &[LinkUse] {
        &self.links
    }
}

/// A link for people: `M1QAF1 → switch` for the injection of an endpoint, `M1QAF1 → M1QAF2` between
/// switches with one endpoint each, `switch 3 → switch 7` between others.
pub(crate) fn link_name(layout: &Layout, link: &LinkUse) -> String {
    name_of_link(layout, link.from, link.to)
}

/// A link for people, by its ends.
pub(crate) fn name_of_link(layout: &Layout, from: LinkEnd, to: Attachment) -> String {
    let from = match from {
        LinkEnd::Endpoint(endpoint) => format!("endpoint {}", layout.endpoint_name(endpoint)),
        LinkEnd::Port(switch, _) => layout.switch_name(switch),
    };
    let to = match to {
        Attachment::Endpoint(endpoint) => format!("endpoint {}", layout.endpoint_name(endpoint)),
        Attachment::Switch(switch, _) => layout.switch_name(switch),
        Attachment::Nothing => "all".to_owned(),
    };
    format!("{from} → {to}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_assembly::layout;
    use weft_machine::load;
    use weft_units::{BitRate, EndpointId, PortId, SwitchId};

    fn link(from: u32, busy_ps: u64) -> LinkUse {
        let ends = (LinkEnd::Endpoint(EndpointId(from)), Attachment::Switch(SwitchId(from), PortId(0)));
        let unused = LinkUse::unused(ends.0, ends.1, "x".to_owned(), BitRate::from_gigabits(10));
        LinkUse { busy: Span::from_ps(busy_ps), ..unused }
    }

    /// Catches a list that is not sorted, or in which equals change places.
    #[test]
    fn the_busiest_come_first_and_equals_in_their_order() {
        let mut busiest = Busiest::new(3);
        for (number, busy) in [5, 0, 9, 5, 7, 5].into_iter().enumerate() {
            busiest.see(link(number as u32, busy));
        }
        let order: Vec<_> = busiest.links().iter().map(|link| link.from).collect();
        assert_eq!(order, [2, 4, 0].map(|e| LinkEnd::Endpoint(EndpointId(e))));
    }

    #[test]
    fn links_are_named_after_endpoints_where_they_can_be() {
        let rack = layout(&load("exanest", &[] as &[&str]).unwrap()).unwrap();
        assert_eq!(link_name(&rack, &link(0, 1)), "endpoint M1QAF1 → switch of M1QAF1");
        let tree = layout(&load("bxi3-fattree", &[] as &[&str]).unwrap()).unwrap();
        assert_eq!(link_name(&tree, &link(0, 1)), "endpoint 0 → switch 0");
    }
}
