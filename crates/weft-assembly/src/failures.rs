//! The machine that failures leave, by time: states, cuts, and the tables of rerouting.
//!
//! ```text
//!   links off   ────┤ a ├──┤ a,b ├─┤ b ├──────┤ c ├───────►  virtual time
//!   states           1      2       3          4             each set of links that are off together
//!   tables           A      AB      B          C             one per set; one that returns has its own again
//! ```

use super::faults::Faults;
use super::{AssemblyError, gigabytes};
use std::collections::{BTreeMap, BTreeSet};
use weft_fabric::{InForce, LinkEnd, OffInterval, OffTimes, Reroutes};
use weft_machine::Machine;
use weft_topo::{Attachment, Dead, Layout, PortId, Routing, SwitchId, Topology, UpDownTables, Wiring};
use weft_units::{Bytes, EndpointId, Span, Time};

/// Most memory for tables.
const MAX_TABLES: Bytes = Bytes::new(512 << 20);
/// States that are looked at where nothing depends on it.
const MAX_STATES: usize = 1000;
/// Endpoints and times that a message names.
const NAMED: usize = 8;

/// An interval during which the same links are off.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailureState {
    /// The interval.
    pub interval: OffInterval,
    /// The ports of the links.
    pub dead: Dead,
    /// Endpoints that cannot reach most others, group by group.
    pub cut_off: Vec<Vec<EndpointId>>,
}

/// The machine that failures leave, by time.
pub struct Failures {
    /// The graph.
    pub wiring: Wiring,
    /// In the order of time; at the end of the last one all links work, or none of them comes back.
    pub states: Vec<FailureState>,
    /// Whether there are more states, which were not looked at.
    pub is_cut_short: bool,
}

impl Failures {
    /// The states of a machine's failures.
    pub fn new(faults: &Faults, layout: &Layout, most: usize) -> Failures {
        let wiring = Wiring::new(layout);
        let whole = wiring.islands(&Dead::new());
        let mut changes: BTreeMap<Time, Vec<(SwitchId, PortId, bool)>> = BTreeMap::new();
        for (switch, port, off) in off_times(faults, layout) {
            for &OffInterval { from, until } in off.intervals() {
                changes.entry(from).or_default().push((switch, port, true));
                if until < Time::NEVER {
                    changes.entry(until).or_default().push((switch, port, false));
                }
            }
        }
        let (mut dead, mut states) = (Dead::new(), Vec::new());
        let ends: Vec<Time> = changes.keys().copied().skip(1).chain([Time::NEVER]).collect();
        for ((from, changed), until) in changes.into_iter().zip(ends) {
            for (switch, port, is_off) in changed {
                let far = match layout.peer(switch, port) {
                    Attachment::Switch(switch, port) => Some((switch, port)),
                    Attachment::Endpoint(_) | Attachment::Nothing => None,
                };
                for end in [Some((switch, port)), far].into_iter().flatten() {
                    if is_off {
                        dead.insert(end)
                    } else {
                        dead.remove(&end)
                    };
                }
            }
            if states.len() == most {
                return Failures { wiring, states, is_cut_short: true };
            }
            if !dead.is_empty() {
                let cut_off = cut_off(&wiring, &whole, &dead);
                states.push(FailureState {
                    interval: OffInterval { from, until },
                    dead: dead.clone(),
                    cut_off,
                });
            }
        }
        Failures { wiring, states, is_cut_short: false }
    }

    /// The tables of every set of links that are off together, and when they are in force: `after` the links
    /// have changed.
    ///
    /// # Errors
    /// More tables than there is room for; endpoints that are cut off for good.
    pub fn reroutes(self, layout: &Layout, after: Span) -> Result<Reroutes, AssemblyError> {
        if let Some(last) = self.states.last()
            && last.interval.until == Time::NEVER
            && !last.cut_off.is_empty()
        {
            return Err(AssemblyError::CutOff { cut: describe(last, layout) });
        }
        let Failures { wiring, states, .. } = self;
        let inner_of = |dead: &Dead| -> Dead {
            let is_inner = |&&(switch, port): &&(SwitchId, PortId)| {
                matches!(layout.peer(switch, port), Attachment::Switch(..))
            };
            dead.iter().filter(is_inner).copied().collect()
        };
        let mut numbers: BTreeMap<Dead, usize> = BTreeMap::new();
        let mut timeline: Vec<InForce> = Vec::new();
        for state in &states {
            let dead = inner_of(&state.dead);
            let next = numbers.len();
            let number = (!dead.is_empty()).then(|| *numbers.entry(dead).or_insert(next));
            timeline.push(InForce { from: state.interval.from + after, tables: number });
            if state.interval.until < Time::NEVER {
                timeline.push(InForce { from: state.interval.until + after, tables: None });
            }
        }
        // Of two that begin together the later one counts: a state that follows another at once.
        timeline.reverse();
        timeline.sort_by_key(|change| std::cmp::Reverse(change.from));
        timeline.dedup_by_key(|change| change.from);
        timeline.reverse();
        let needed = u128::from(wiring.bytes_of_tables()) * numbers.len() as u128;
        if needed > u128::from(MAX_TABLES.get()) {
            let needed = Bytes::new(u64::try_from(needed).unwrap_or(u64::MAX));
            return Err(AssemblyError::Tables { states: numbers.len(), needed, limit: MAX_TABLES });
        }
        let mut sets: Vec<(usize, Dead)> = numbers.into_iter().map(|(dead, number)| (number, dead)).collect();
        sets.sort_by_key(|(number, _)| *number);
        let tables = sets.iter().map(|(_, dead)| UpDownTables::new(&wiring, dead)).collect();
        Ok(Reroutes { wiring, tables, timeline, is_adaptive: !layout.is_deterministic() })
    }

    /// Whether a link between two switches is ever off, which another route may avoid.
    pub fn between_switches(&self, layout: &Layout) -> bool {
        let is_inner = |&(switch, port): &(SwitchId, PortId)| {
            matches!(layout.peer(switch, port), Attachment::Switch(..))
        };
        self.states.iter().any(|state| state.dead.iter().any(is_inner))
    }

    /// Which endpoints are cut off when, in words, for messages.
    pub fn cuts(&self, layout: &Layout) -> Vec<String> {
        let cut = self.states.iter().filter(|state| !state.cut_off.is_empty());
        let mut lines: Vec<String> = cut.clone().take(NAMED).map(|state| describe(state, layout)).collect();
        let more = cut.count() - lines.len();
        if more > 0 {
            lines.push(format!("and during {more} more times"));
        }
        if self.is_cut_short {
            lines.push(format!(
                "there are more than {} states of failed links: later ones were not looked at",
                MAX_STATES
            ));
        }
        lines
    }
}

/// The failures of a machine, in as many states as a message needs; `None`: no link is ever off.
pub fn failures(faults: Option<&Faults>, layout: &Layout, machine: &Machine) -> Option<Failures> {
    let most = if machine.reroute_after.is_some() { usize::MAX } else { MAX_STATES };
    let failures = Failures::new(faults?, layout, most);
    (!failures.states.is_empty()).then_some(failures)
}

/// When each link is off, by one of its ports, or by the switch's where it is an endpoint's.
fn off_times<'a>(
    faults: &'a Faults,
    layout: &'a Layout,
) -> impl Iterator<Item = (SwitchId, PortId, OffTimes)> + 'a {
    let ports = (0..layout.switches()).map(SwitchId);
    let ports = ports.flat_map(|switch| (0..layout.ports(switch)).map(move |port| (switch, PortId(port))));
    ports.filter_map(move |(switch, port)| {
        let peer = layout.peer(switch, port);
        if let Attachment::Switch(other, far) = peer
            && (other, far) < (switch, port)
        {
            return None;
        }
        let off = faults.of(LinkEnd::Port(switch, port), peer, layout.link_class(switch, port)).off;
        (!off.is_never()).then_some((switch, port, off))
    })
}

/// The groups of endpoints that dead links separate from the largest part of what was joined.
fn cut_off(wiring: &Wiring, whole: &[Vec<EndpointId>], dead: &Dead) -> Vec<Vec<EndpointId>> {
    let mut islands_before: BTreeMap<EndpointId, usize> = BTreeMap::new();
    for (number, island) in whole.iter().enumerate() {
        islands_before.extend(island.iter().map(|&endpoint| (endpoint, number)));
    }
    let mut seen = BTreeSet::new();
    // The largest come first.
    wiring.islands(dead).into_iter().filter(|island| !seen.insert(islands_before[&island[0]])).collect()
}

/// A state that cuts endpoints off, in words.
fn describe(state: &FailureState, layout: &Layout) -> String {
    let OffInterval { from, until } = state.interval;
    let endpoints: Vec<EndpointId> = state.cut_off.concat();
    let named: Vec<String> =
        endpoints.iter().take(NAMED).map(|&endpoint| layout.endpoint_name(endpoint)).collect();
    let more = match endpoints.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let until = if until == Time::NEVER {
        " on, for good,".to_owned()
    } else {
        format!(" to {}", until - Time::ZERO)
    };
    let are = if endpoints.len() == 1 { "is" } else { "are" };
    let (from, named) = (from - Time::ZERO, named.join(", "));
    format!(
        "from {from}{until} {} of {} endpoints {are} cut off from the others: {named}{more}",
        endpoints.len(),
        layout.endpoints()
    )
}

impl AssemblyError {
    /// The message of [`AssemblyError::Tables`].
    pub(super) fn tables(states: usize, needed: Bytes, limit: Bytes) -> String {
        format!(
            "fabric.reroute: the tables of {states} sets of failed links take {}, and at most {} are \
             allowed; let fewer links fail, or a shorter time (`until`), or use a smaller machine",
            gigabytes(needed),
            gigabytes(limit)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{faults, layout};
    use weft_machine::load;

    fn failures_of(sets: &[&str]) -> (Machine, Layout, Option<Failures>) {
        let machine = load("ethernet-100g-spineleaf", sets).unwrap();
        let layout = layout(&machine).unwrap();
        let faults = faults(&machine, &layout, 1).unwrap();
        let failures = failures(faults.as_ref(), &layout, &machine);
        (machine, layout, failures)
    }

    /// Catches a state that is missed, that lasts too long or that names the wrong endpoints.
    #[test]
    fn states_and_cuts_follow_the_links() {
        let rules = "faults=[{of=\"switch 0\", off_at=\"20us\", on_at=\"40us\"}, \
                     {of=\"endpoint 0\", off_at=\"30us\", on_at=\"50us\"}, \
                     {of=\"endpoint 1\", off_at=\"60us\"}]";
        let (_, layout, failures) = failures_of(&[rules]);
        let failures = failures.unwrap();
        let at = |us| Time::ZERO + Span::from_us(us);
        let times: Vec<OffInterval> = failures.states.iter().map(|state| state.interval).collect();
        let interval = |from, until| OffInterval { from: at(from), until: at(until) };
        let last = OffInterval { from: at(60), until: Time::NEVER };
        // The link of endpoint 0 is one of those of switch 0, so that nothing changes at 30us.
        assert_eq!(times, [interval(20, 40), interval(40, 50), last]);
        let of_leaf = (0..layout.endpoints()).map(EndpointId);
        let of_leaf: Vec<EndpointId> = of_leaf.filter(|&e| layout.attachment(e).0 == SwitchId(0)).collect();
        assert_eq!(failures.states[0].cut_off.concat(), of_leaf);
        assert_eq!(failures.states[1].cut_off, [vec![EndpointId(0)]]);
        let lines = failures.cuts(&layout);
        let expected =
            format!("from 40us to 50us 1 of {} endpoints is cut off from the others: 0", layout.endpoints());
        assert_eq!(lines[1], expected);
        assert!(lines[2].starts_with("from 60us on, for good, 1 of"), "{}", lines[2]);
    }

    /// Catches tables that are in force at other times, that are made twice, and a cut for good that is not
    /// refused.
    #[test]
    fn tables_follow_the_states_after_the_reaction_time() {
        let reroute = ["fabric.reroute=up-down", "fabric.reroute_after=2us"];
        let (one, other) = (
            "{of=\"switch 0 port 20\", off_at=\"20us\", on_at=\"40us\"}",
            "{of=\"switch 0 port 20\", off_at=\"60us\", on_at=\"61us\"}",
        );
        let rules =
            format!("faults=[{one}, {other}, {{of=\"endpoint 1\", off_at=\"30us\", on_at=\"35us\"}}]");
        let (machine, layout, failures) = failures_of(&[&rules, reroute[0], reroute[1]]);
        let reroutes = failures.unwrap().reroutes(&layout, machine.reroute_after.unwrap()).unwrap();
        assert_eq!(reroutes.tables.len(), 1, "the same link twice, and an endpoint's");
        let times: Vec<(u64, Option<usize>)> =
            reroutes.timeline.iter().map(|change| (change.from.as_ps() / 1_000_000, change.tables)).collect();
        let on = Some(0);
        assert_eq!(times, [(22, on), (32, on), (37, on), (42, None), (62, on), (63, None)]);
        let for_good = "faults=[{of=\"switch 0\", off_at=\"20us\"}]";
        let (_, layout, failures) = failures_of(&[for_good, reroute[0], reroute[1]]);
        let error = failures.unwrap().reroutes(&layout, Span::ZERO).err().unwrap().to_string();
        assert!(error.contains("for good") && error.contains("cut off from the others: 0, 1"), "{error}");
    }
}
