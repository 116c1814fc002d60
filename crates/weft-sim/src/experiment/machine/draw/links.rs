//! Links as lines: those between the same two things, of one class, are one line.

use std::collections::BTreeMap;
use weft_topo::{Attachment, Layout, PortId, SwitchId, Topology as _};

/// A line of a drawing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line {
    /// The two things that it joins, by number, the lower one first.
    pub ends: (u32, u32),
    /// The class of its links.
    pub class: u8,
    /// Links in it.
    pub links: u64,
    /// Lines of other classes that join the same two things and come before it.
    pub beside: u32,
}

/// All links of a machine as lines.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Bundles {
    /// Lines between different things, by their ends.
    pub lines: Vec<Line>,
    /// Links within each thing.
    pub inside: Vec<u64>,
    /// Endpoints at each thing.
    pub endpoints: Vec<u64>,
}

impl Bundles {
    /// The lines between switches.
    pub fn between_switches(layout: &Layout) -> Bundles {
        Bundles::between(layout, layout.switches() as usize, |switch| switch.0)
    }

    /// The lines between `count` things, of which each holds the switches that `thing` says.
    pub fn between(layout: &Layout, count: usize, thing: impl Fn(SwitchId) -> u32) -> Bundles {
        let mut bundles: BTreeMap<((u32, u32), u8), u64> = BTreeMap::new();
        let (mut inside, mut endpoints) = (vec![0; count], vec![0; count]);
        for switch in (0..layout.switches()).map(SwitchId) {
            let here = thing(switch);
            for port in (0..layout.ports(switch)).map(PortId) {
                match layout.peer(switch, port) {
                    Attachment::Nothing => {}
                    Attachment::Endpoint(_) => endpoints[here as usize] += 1,
                    // Each link is seen from both ends and counted at its lower one.
                    Attachment::Switch(other, back) if (other.0, back.0) > (switch.0, port.0) => {
                        let there = thing(other);
                        if here == there {
                            inside[here as usize] += 1;
                        } else {
                            let class = layout.link_class(switch, port).0;
                            let ends = (here.min(there), here.max(there));
                            *bundles.entry((ends, class)).or_insert(0) += 1;
                        }
                    }
                    Attachment::Switch(..) => {}
                }
            }
        }
        let mut lines: Vec<Line> = Vec::with_capacity(bundles.len());
        for ((ends, class), links) in bundles {
            let beside = lines.last().filter(|last| last.ends == ends).map_or(0, |last| last.beside + 1);
            lines.push(Line { ends, class, links, beside });
        }
        Bundles { lines, inside, endpoints }
    }
}
