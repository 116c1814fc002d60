//! Which link of a layout fails how, from the rules of a machine file.
//!
//! ```text
//!   [[faults]] ──► names resolved ──► chances of each link
//!   schedule   ──►                    times at which it is off: written, or drawn from the seed
//! ```
//! Random times have a stream of their own for each rule and link, or for each rule and end where a rule
//! names an end: all links of a switch that fails fail together. They are drawn as a link is asked for, in
//! integers ([`weft_engine::exponential`]).

use super::AssemblyError;
use weft_engine::{Stream, exponential::exponential};
use weft_fabric::{ErrorRate, FaultParameters, LinkEnd, LinkParameters, MILLION, OffInterval, OffTimes};
use weft_machine::{FaultRule, FaultyLinks, Machine, Nic, Outage};
use weft_topo::{Attachment, Layout, LinkClass, Topology};
use weft_units::{EndpointId, PortId, Span, SwitchId, Time};

/// First of the purposes of the streams of random failures: each rule has one.
const PURPOSE_FIRST_RULE: u32 = 1 << 20;

/// Most failures that are drawn.
const MAX_FAILURES: u128 = 1_000_000;

/// One end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Endpoint(EndpointId),
    Switch(SwitchId),
    /// One port of a switch: one of several links in parallel.
    Port(SwitchId, PortId),
}

/// One end of a link, with the port where it is a switch's.
#[derive(Clone, Copy)]
struct Side(End, Option<PortId>);

impl Side {
    fn is(self, end: End) -> bool {
        match (end, self) {
            (End::Port(switch, port), Side(End::Switch(own), Some(own_port))) => {
                (switch, port) == (own, own_port)
            }
            (end, Side(own, _)) => end == own,
        }
    }
}

/// Which links a rule is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Selection {
    All,
    Class(LinkClass),
    Of(End),
    Between(End, End),
}

impl Selection {
    fn holds(self, from: Side, to: Side, class: LinkClass) -> bool {
        match self {
            Selection::All => true,
            Selection::Class(chosen) => class == chosen,
            Selection::Of(end) => from.is(end) || to.is(end),
            Selection::Between(one, other) => from.is(one) && to.is(other) || from.is(other) && to.is(one),
        }
    }
}

/// The faults of a machine, resolved on its layout.
#[derive(Clone, Debug)]
pub struct Faults {
    rules: Vec<Rule>,
    seed: u64,
}

/// A rule whose names are resolved.
#[derive(Clone, Debug)]
struct Rule {
    selection: Selection,
    /// The chances, and the times that are written.
    parameters: FaultParameters,
    random: Option<Random>,
}

/// Failures at times that are drawn.
#[derive(Clone, Copy, Debug)]
struct Random {
    /// The purpose of its streams.
    purpose: u32,
    to_failure: Span,
    to_repair: Span,
    until: Time,
}

impl Random {
    /// The times at which `entity` is off.
    fn draw(&self, seed: u64, entity: u64) -> OffTimes {
        let mut stream = Stream::new(seed, entity, self.purpose);
        let mut intervals = Vec::new();
        let mut now = Time::ZERO;
        loop {
            let from = now + exponential(self.to_failure, stream.next_u64());
            if from >= self.until {
                return OffTimes::new(intervals);
            }
            now = from + exponential(self.to_repair, stream.next_u64());
            intervals.push(OffInterval { from, until: now });
        }
    }
}

impl Faults {
    /// How a direction of a link fails: what all rules for it say, added up.
    pub fn of(&self, from: LinkEnd, to: Attachment, class: LinkClass) -> FaultParameters {
        let from = match from {
            LinkEnd::Endpoint(endpoint) => Side(End::Endpoint(endpoint), None),
            LinkEnd::Port(switch, port) => Side(End::Switch(switch), Some(port)),
        };
        let to = match to {
            Attachment::Endpoint(endpoint) => Side(End::Endpoint(endpoint), None),
            Attachment::Switch(switch, port) => Side(End::Switch(switch), Some(port)),
            Attachment::Nothing => return FaultParameters::default(),
        };
        let mut sum = FaultParameters::default();
        for rule in self.rules.iter().filter(|rule| rule.selection.holds(from, to, class)) {
            let chances = &rule.parameters;
            sum.drop = (sum.drop + chances.drop).min(MILLION);
            sum.corrupt = (sum.corrupt + chances.corrupt).min(MILLION - sum.drop);
            sum.duplicate = (sum.duplicate + chances.duplicate).min(MILLION - sum.drop - sum.corrupt);
            let rest = MILLION - sum.drop - sum.corrupt - sum.duplicate;
            sum.reorder = (sum.reorder + chances.reorder).min(rest);
            sum.off = sum.off.or(chances.off.clone());
            if let Some(random) = &rule.random {
                let entity = match rule.selection {
                    Selection::Of(end) => number(Side(end, None)),
                    _ => number(from).min(number(to)),
                };
                sum.off = sum.off.or(random.draw(self.seed, entity));
            }
        }
        sum
    }
}

/// A number of an end of its own; that of a switch's port, where there is one. Ports come before endpoints,
/// so that both ends of an endpoint's link give its switch's port.
fn number(side: Side) -> u64 {
    let port = |switch: SwitchId, port: u32| u64::from(switch.0) << 32 | u64::from(port);
    match side {
        Side(End::Port(switch, number), _) | Side(End::Switch(switch), Some(number)) => {
            port(switch, number.0)
        }
        Side(End::Switch(switch), None) => port(switch, u32::MAX),
        Side(End::Endpoint(endpoint), _) => 1 << 63 | u64::from(endpoint.0),
    }
}

/// The faults of a machine, where random failures are drawn from `seed`; `None`: nothing fails.
///
/// # Errors
/// A rule that names an end which the machine does not have, or two ends that no link joins; more random
/// failures than can be kept; packets copied where the interface would take a copy for another packet.
pub fn faults(machine: &Machine, layout: &Layout, seed: u64) -> Result<Option<Faults>, AssemblyError> {
    let mut rules = Vec::new();
    for (number, rule) in (0..).zip(&machine.faults) {
        let takes_copies = !matches!(&machine.nic, Nic::Overheads(nic) if !nic.reliability.is_reliable());
        if rule.duplicate > 0 && !takes_copies {
            return Err(AssemblyError::Duplicates { number });
        }
        rules.extend(resolve(number, rule, layout)?);
    }
    Ok((!rules.is_empty()).then_some(Faults { rules, seed }))
}

/// Whether links of a machine may lose or damage packets that are on them.
pub fn links_may_fail(machine: &Machine, layout: &Layout) -> bool {
    let has_errors =
        |links: Vec<LinkParameters>| links.iter().any(|link| link.layer.bit_errors != ErrorRate::NONE);
    !machine.faults.is_empty() || crate::links(machine, layout).is_some_and(has_errors)
}

fn resolve(number: usize, rule: &FaultRule, layout: &Layout) -> Result<Vec<Rule>, AssemblyError> {
    let refused = |why: String| AssemblyError::Fault { number, why };
    let written = |off: Span, on: Option<Span>| {
        let until = on.map_or(Time::NEVER, |on| Time::ZERO + on);
        OffTimes::new(vec![OffInterval { from: Time::ZERO + off, until }])
    };
    let &FaultRule { drop, corrupt, duplicate, reorder, ref outage, .. } = rule;
    let chances = FaultParameters { drop, corrupt, duplicate, reorder, off: OffTimes::NEVER };
    let selection = select(&rule.links, layout).map_err(refused)?;
    let (mut off, mut random) = (OffTimes::NEVER, None);
    match outage {
        Outage::Never => {}
        &Outage::Once { off_at, on_at } => off = written(off_at, on_at),
        &Outage::Random { mean_time_to_failure, mean_time_to_repair, until } => {
            let entities = match selection {
                Selection::Of(_) => 1,
                _ => (0..layout.switches()).map(|switch| u128::from(layout.ports(SwitchId(switch)))).sum(),
            };
            let cycle = u128::from(mean_time_to_failure.as_ps()) + u128::from(mean_time_to_repair.as_ps());
            let expected = u128::from(until.as_ps()) * entities / cycle;
            if expected > MAX_FAILURES {
                return Err(AssemblyError::TooManyFailures { number, expected, limit: MAX_FAILURES });
            }
            random = Some(Random {
                purpose: PURPOSE_FIRST_RULE + number as u32,
                to_failure: mean_time_to_failure,
                to_repair: mean_time_to_repair,
                until: Time::ZERO + until,
            });
        }
        Outage::Schedule(outages) => {
            let mut rules = Vec::new();
            for outage in outages {
                let selection = select(&outage.links, layout);
                let selection = selection.map_err(|why| refused(format!("{}: {why}", outage.place)))?;
                let off = written(outage.off_at, outage.on_at);
                let parameters = FaultParameters { off, ..Default::default() };
                rules.push(Rule { selection, parameters, random: None });
            }
            rules.push(Rule { selection, parameters: chances, random: None });
            return Ok(rules);
        }
    }
    Ok(vec![Rule { selection, parameters: FaultParameters { off, ..chances }, random }])
}

/// The links that are meant, or why none can be.
fn select(links: &FaultyLinks, layout: &Layout) -> Result<Selection, String> {
    Ok(match links {
        FaultyLinks::All => Selection::All,
        FaultyLinks::Class(name) => {
            let class = layout.link_classes().iter().position(|class| class == name);
            let class = class.ok_or_else(|| format!("there are no links of class `{name}`"))?;
            Selection::Class(LinkClass(class as u8))
        }
        FaultyLinks::Of(name) => Selection::Of(end(name, layout)?),
        FaultyLinks::Between(one, other) => {
            let ends = (end(one, layout)?, end(other, layout)?);
            if !joined(layout, ends.0, ends.1) {
                return Err(format!("no link joins {one} and {other}"));
            }
            Selection::Between(ends.0, ends.1)
        }
    })
}

/// The end of a name: of an endpoint, a switch, or a port of a switch such as `switch 3 port 17`.
fn end(name: &str, layout: &Layout) -> Result<End, String> {
    if let Some((switch, port)) = name.rsplit_once(" port ")
        && let (Some(switch), Ok(port)) = (layout.switch(switch), port.parse::<u32>())
    {
        let ports = layout.ports(switch);
        return match port < ports && layout.peer(switch, PortId(port)) != Attachment::Nothing {
            true => Ok(End::Port(switch, PortId(port))),
            false => Err(format!("no link is at port {port} of {}", layout.switch_name(switch))),
        };
    }
    if let Some(number) = name.strip_prefix("switch ").and_then(|number| number.parse::<u32>().ok())
        && layout.switch(name).is_none()
    {
        return Err(format!("there is no switch {number}; they are 0 to {}", layout.switches() - 1));
    }
    let found = match layout.switch(name) {
        Some(switch) => Ok(End::Switch(switch)),
        None => layout.endpoint(name.strip_prefix("endpoint ").unwrap_or(name)).map(End::Endpoint),
    };
    found.map_err(|unknown| unknown.to_string())
}

/// Whether a link joins two ends.
fn joined(layout: &Layout, one: End, other: End) -> bool {
    let (own, far) = if let End::Endpoint(_) = one { (other, one) } else { (one, other) };
    let (End::Switch(switch) | End::Port(switch, _)) = own else { return false };
    (0..layout.ports(switch)).map(PortId).any(|port| {
        let there = match layout.peer(switch, port) {
            Attachment::Switch(there, port) => Side(End::Switch(there), Some(port)),
            Attachment::Endpoint(endpoint) => Side(End::Endpoint(endpoint), None),
            Attachment::Nothing => return false,
        };
        Side(End::Switch(switch), Some(port)).is(own) && there.is(far)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout;
    use weft_machine::load;

    fn resolved(sets: &[&str]) -> Result<Option<Faults>, AssemblyError> {
        let machine = load("exanest", sets).unwrap();
        faults(&machine, &layout(&machine).unwrap(), 1)
    }

    /// Catches rules that concern other links than they name, or one direction only.
    #[test]
    fn rules_concern_the_links_that_they_name() {
        let text = "faults=[{class=\"x\", drop=10}, {of=\"router of M1QA\", corrupt=5}, \
                    {between=[\"switch of M1QAF1\",\"switch of M1QAF2\"], off_at=\"3us\"}, \
                    {of=\"M1QAF3\", drop=999_999}, {drop=1}]";
        let faults = resolved(&[text]).unwrap().unwrap();
        let machine = load("exanest", &[] as &[&str]).unwrap();
        let layout = layout(&machine).unwrap();
        let of = |switch: u32, port: u32| {
            let (switch, port) = (SwitchId(switch), PortId(port));
            let from = LinkEnd::Port(switch, port);
            faults.of(from, layout.peer(switch, port), layout.link_class(switch, port))
        };
        let losing = |drop, corrupt| FaultParameters { drop, corrupt, ..Default::default() };
        let off = OffTimes::after(Time::from_ps(3_000_000));
        let off = FaultParameters { drop: 1, off, ..Default::default() };
        // QFDB A of mezzanine 1 has switches 0 to 3, its router is 4; router 9 is that of QFDB B.
        assert_eq!(of(4, 1), losing(11, 5));
        assert_eq!(of(9, 1), losing(11, 0));
        assert_eq!(of(9, 2), losing(11, 5), "the link back to the router of QFDB A");
        assert_eq!(of(4, 3), losing(1, 5), "a y link of that router");
        assert_eq!((of(0, 1), of(1, 1)), (off.clone(), off), "both directions");
        assert_eq!(of(0, 2), losing(1, 0));
        assert_eq!(of(2, 0), losing(1_000_000, 0), "what is lost is never more than everything");
        let to = Attachment::Switch(SwitchId(2), PortId(0));
        assert_eq!(faults.of(LinkEnd::Endpoint(EndpointId(2)), to, LinkClass(0)), losing(1_000_000, 0));
        assert!(resolved(&[]).unwrap().is_none());
    }

    #[test]
    fn ends_that_do_not_exist_are_named() {
        let text = |set: &str| resolved(&[set]).unwrap_err().to_string();
        let error = text("faults=[{of=\"M1QAF9\"}]");
        assert!(error.starts_with("faults.0: no endpoint is called `M1QAF9`"), "{error}");
        let error = text("faults=[{between=[\"switch 0\",\"switch 7\"]}]");
        assert!(error.starts_with("faults.0: no link joins switch 0 and switch 7"), "{error}");
        let error = text("faults=[{of=\"switch 7777\",off_at=\"1us\"}]");
        assert!(error.starts_with("faults.0: there is no switch 7777; they are 0 to "), "{error}");
        let error = text("faults=[{of=\"switch 0 port 77\",off_at=\"1us\"}]");
        assert!(error.starts_with("faults.0: no link is at port 77 of"), "{error}");
        let random = "mean_time_to_failure=\"1ns\",mean_time_to_repair=\"1ns\",until=\"1s\"";
        let error = text(&format!("faults=[{{{random}}}]"));
        assert!(error.contains("mean times"), "{error}");
    }

    /// Catches a link of which one direction fails at other times than the other, links of a switch that do
    /// not fail together, links that fail alike, and times that do not depend on the seed.
    #[test]
    fn random_failures_concern_both_directions() {
        let random = "mean_time_to_failure=\"50us\", mean_time_to_repair=\"10us\", until=\"2ms\"";
        let machine = load("exanest", &[format!("faults=[{{class=\"x\", {random}}}]")]).unwrap();
        let of_switch = load("exanest", &[format!("faults=[{{of=\"router of M1QA\", {random}}}]")]).unwrap();
        let layout = layout(&machine).unwrap();
        let off = |machine: &Machine, seed, switch: SwitchId, port: PortId| {
            let faults = faults(machine, &layout, seed).unwrap().unwrap();
            let (to, class) = (layout.peer(switch, port), layout.link_class(switch, port));
            faults.of(LinkEnd::Port(switch, port), to, class).off
        };
        let ports = (0..layout.ports(SwitchId(4))).map(PortId);
        let mut seen = Vec::new();
        for port in ports.filter(|&port| layout.peer(SwitchId(4), port) != Attachment::Nothing) {
            let one = off(&machine, 1, SwitchId(4), port);
            if let Attachment::Switch(other, back) = layout.peer(SwitchId(4), port) {
                assert_eq!(one, off(&machine, 1, other, back));
                assert_eq!(off(&of_switch, 1, SwitchId(4), port), off(&of_switch, 1, other, back));
            }
            assert_eq!(off(&of_switch, 1, SwitchId(4), port), off(&of_switch, 1, SwitchId(4), PortId(0)));
            if !one.is_never() {
                // 2 ms by 60 us: 33 failures, give or take five standard deviations of 6 at most.
                assert!((4..=62).contains(&one.intervals().len()), "{}", one.intervals().len());
                assert_ne!(one, off(&machine, 2, SwitchId(4), port));
                seen.push(one);
            }
        }
        assert_eq!(seen.len(), 2, "a router has two x links");
        assert_ne!(seen[0], seen[1]);
    }
}
