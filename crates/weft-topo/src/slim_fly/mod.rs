//! Slim Fly: two links from any switch to any other, with almost as few ports as that takes.
//!
//! ```text
//!   subgraph 0: switch (0, x, y)            subgraph 1: switch (1, m, c)
//!   q groups x of q switches y              q groups m of q switches c
//!   local: y - y' in X                      local: c - c' in X'
//!                └────── global: y = m·x + c (mod q) ──────┘
//! ```
//! The graphs of McKay, Miller and Širáň for a prime q, which is 1 or 3 modulo 4. X and X' are made of the
//! powers of a primitive root. It is a [graph](crate::Graph) and has the routings of graphs.
//!
//! # Source
//! M. Besta, T. Hoefler, "Slim Fly: a cost effective low-diameter network topology", SC 2014, section II-B;
//! B. D. McKay, M. Miller, J. Širáň, "A note on large graphs of diameter two and given maximum degree", J.
//! Combin. Theory B 74, 1998.
//!
//! # Not modelled
//! Powers of primes, for which the arithmetic is that of larger fields.

use crate::drawing::Places;
use crate::family::{Counts, Family};
use crate::graph::{Graph, GraphClass, GraphDescription, GraphLayout, GraphLink, GraphRouting, GraphSwitch};
use crate::parameters;
use crate::size::{SizeError, product};
use weft_keys::keys::Field;
use weft_keys::{Misfit, Word};

/// Largest q: 31,250 switches of it are about as many as a graph may have.
const MAX_Q: u32 = 127;

/// Classes of links, by their places in the description.
const LOCAL: u8 = 0;
const GLOBAL: u8 = 1;

parameters! {
    /// A Slim Fly.
    pub struct SlimFlyParameters routed by GraphRouting {
        /// A prime, 5 to 127: there are 2q² switches.
        q: u32;
        /// Endpoints at every switch; half the links of a switch to others, rounded up, where not given.
        p: u32 = degree(q).div_ceil(2), how("half the links of a switch: Besta and Hoefler 2014");
    }
}

/// Links of a switch to others: (3q - δ) / 2, where q is δ modulo 4 and δ is 1 or -1.
fn degree(q: u32) -> u32 {
    let thrice = q.saturating_mul(3);
    if q % 4 == 1 { thrice.saturating_sub(1) / 2 } else { thrice.saturating_add(1) / 2 }
}

/// Whether a number has no divisors.
fn is_prime(q: u32) -> bool {
    q > 1 && (2..q).take_while(|divisor| divisor * divisor <= q).all(|divisor| !q.is_multiple_of(divisor))
}

/// The powers of the least primitive root of a prime: the 0th to the (q-2)th.
fn powers(q: u32) -> Vec<u32> {
    let of = |root: u32| -> Vec<u32> {
        let next = |power: &u32| Some(power * root % q);
        std::iter::successors(Some(1), next).take(q as usize - 1).collect()
    };
    let is_primitive = |powers: &Vec<u32>| powers[1..].iter().all(|&power| power != 1);
    (2..q).map(of).find(is_primitive).unwrap_or_default()
}

/// The differences of joined switches in a group of either subgraph.
fn generators(q: u32) -> [Vec<u32>; 2] {
    let powers = powers(q);
    let of = |exponents: Vec<usize>| exponents.into_iter().map(|one| powers[one % powers.len()]).collect();
    if q % 4 == 1 {
        let all = powers.len();
        return [of((0..all).step_by(2).collect()), of((1..all).step_by(2).collect())];
    }
    // q = 4w - 1. The exponents: 0, 2, …, 2w-2, 2w-1, 2w+1, …, 4w-3, and one more each for the other.
    let w = (q as usize).div_ceil(4);
    let first: Vec<usize> = (0..2 * w - 1).step_by(2).chain((2 * w - 1..4 * w - 2).step_by(2)).collect();
    let second = first.iter().map(|exponent| exponent + 1).collect();
    [of(first), of(second)]
}

impl SlimFlyParameters {
    /// The graph.
    fn description(&self) -> GraphDescription {
        let q = self.q;
        let switch = |subgraph: u32, group: u32, member: u32| (subgraph * q + group) * q + member;
        let link = |ends, class| GraphLink { ends, count: 1, class };
        let mut links = Vec::new();
        for (subgraph, differences) in (0..).zip(generators(q)) {
            for (group, member, other) in pairs(q) {
                if differences.contains(&(other - member)) {
                    links
                        .push(link([switch(subgraph, group, member), switch(subgraph, group, other)], LOCAL));
                }
            }
        }
        for x in 0..q {
            for (m, c) in (0..q).flat_map(|m| (0..q).map(move |c| (m, c))) {
                links.push(link([switch(0, x, (m * x + c) % q), switch(1, m, c)], GLOBAL));
            }
        }
        let class = |name: &str| {
            let (name, section) = (name.to_owned(), name.to_owned());
            GraphClass { name, section, rate: None, latency: None }
        };
        GraphDescription {
            file: String::new(),
            switches: vec![GraphSwitch::default(); (2 * q * q) as usize],
            endpoints: Vec::new(),
            links,
            classes: vec![class("local"), class("global")],
            ..GraphDescription::default()
        }
    }
}

/// Groups, and the pairs of switches in each, the lower one first.
fn pairs(q: u32) -> impl Iterator<Item = (u32, u32, u32)> {
    let of_group =
        move |group| (0..q).flat_map(move |member| (member + 1..q).map(move |other| (group, member, other)));
    (0..q).flat_map(of_group)
}

impl Family for SlimFlyParameters {
    const NAME: &'static str = "slim-fly";
    const TITLE: &'static str = "Slim Fly";
    // The last two go by modules and by a table, of which a Slim Fly has none.
    const ROUTINGS: &'static [Word] = match <GraphRouting as Field>::WORDS {
        [of_any_graph @ .., _hierarchical, _table] => of_any_graph,
        _ => &[],
    };
    type Layout = GraphLayout;

    fn check(&self) -> Result<(), Misfit> {
        if (5..=MAX_Q).contains(&self.q) && is_prime(self.q) {
            return Ok(());
        }
        Err(Misfit {
            key: "q",
            title: format!("there is no Slim Fly of q = {} here", self.q),
            label: format!("not a prime of 5 to {MAX_Q}"),
            help: "write q = 5, 7, 11, 13, 17, 19, 23, …".to_owned(),
        })
    }

    fn counts(&self) -> Counts {
        let [q, p] = [self.q, self.p].map(u64::from);
        let switches = product([2, q, q]);
        let ports = switches.saturating_mul(u128::from(p) + u128::from(degree(self.q)));
        // On two links a packet turns from down to up once at most.
        let virtual_channels = self.routing.virtual_channels(1);
        Counts { endpoints: product([2, q, q, p]), switches, ports, virtual_channels }
    }

    fn build(&self) -> Result<GraphLayout, SizeError> {
        let graph = Graph::new(&self.description(), self.p)?;
        GraphLayout::new(graph, self.routing).map_err(|_| SizeError::Apart)
    }

    fn places(&self, _: &Self::Layout) -> Places {
        // A half of the circle for each subgraph, with a gap between them.
        let q = self.q;
        let slots: Vec<u32> = (0..2 * q).map(|group| group + group / q).collect();
        let groups = Places::groups_with_gaps((&slots, 2 * q + 2), &Places::ring(q), |group, member| {
            group * q + member
        });
        let name = |group: u32| format!("group {}, {}", group / q, group % q);
        Places { parts: (0..2 * q).map(name).collect(), ..groups }
    }

    fn examples() -> Vec<SlimFlyParameters> {
        let routings = [
            GraphRouting::ShortestPath,
            GraphRouting::Ecmp { hash_seed: 7 },
            GraphRouting::Spray,
            GraphRouting::RoundRobin,
            GraphRouting::Multipath { hash_seed: 1 },
            GraphRouting::Adaptive,
            GraphRouting::Valiant,
            GraphRouting::UgalL { ugal_threshold: weft_units::Bytes::ZERO },
            GraphRouting::UgalG { ugal_threshold: weft_units::Bytes::ZERO },
        ];
        let large = SlimFlyParameters { q: 7, p: 2, routing: GraphRouting::ShortestPath };
        routings.map(|routing| SlimFlyParameters { q: 5, p: 1, routing }).into_iter().chain([large]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClosedForms, Routing, Topology};
    use weft_units::SwitchId;

    /// Catches a wrong set of differences: then some switches are three links apart, or have other degrees.
    #[test]
    fn any_two_switches_are_two_links_apart() {
        for q in [5, 7, 11, 13, 17, 19, 23] {
            let layout = SlimFlyParameters { q, p: 1, routing: GraphRouting::ShortestPath }.build().unwrap();
            assert_eq!((layout.switches(), layout.diameter()), (2 * q * q, Some(2)), "q = {q}");
            let degrees = (0..layout.switches()).map(|switch| layout.ports(SwitchId(switch)) - 1);
            assert!(degrees.into_iter().all(|ports| ports == degree(q)), "q = {q}");
            assert_eq!(layout.virtual_channels(), 2);
        }
    }

    /// Catches a q that is no prime and is built, and one that is and is refused.
    #[test]
    fn only_primes_are_taken() {
        let taken = |&q: &u32| SlimFlyParameters { q, p: 1, routing: GraphRouting::Spray }.check().is_ok();
        let primes: Vec<u32> = (0..40).filter(taken).collect();
        assert_eq!(primes, [5, 7, 11, 13, 17, 19, 23, 29, 31, 37]);
        assert!(!taken(&131) && !taken(&u32::MAX));
    }
}
