//! Which link of a layout fails how, from the rules of a machine file.

use super::AssemblyError;
use weft_fabric::{FaultParameters, LinkEnd, MILLION};
use weft_machine::{FaultRule, FaultyLinks, Machine};
use weft_topo::{Attachment, Layout, LinkClass, Topology};
use weft_units::{EndpointId, PortId, SwitchId, Time};

/// One end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Endpoint(EndpointId),
    Switch(SwitchId),
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
    fn holds(self, from: End, to: End, class: LinkClass) -> bool {
        match self {
            Selection::All => true,
            Selection::Class(chosen) => class == chosen,
            Selection::Of(end) => from == end || to == end,
            Selection::Between(one, other) => (from, to) == (one, other) || (from, to) == (other, one),
        }
    }
}

/// The faults of a machine, resolved on its layout.
#[derive(Clone, Debug)]
pub struct Faults {
    rules: Vec<(Selection, FaultParameters)>,
}

impl Faults {
    /// How a direction of a link fails: what all rules for it say, added up.
    pub fn of(&self, from: LinkEnd, to: Attachment, class: LinkClass) -> FaultParameters {
        let from = match from {
            LinkEnd::Endpoint(endpoint) => End::Endpoint(endpoint),
            LinkEnd::Port(switch, _) => End::Switch(switch),
        };
        let to = match to {
            Attachment::Endpoint(endpoint) => End::Endpoint(endpoint),
            Attachment::Switch(switch, _) => End::Switch(switch),
            Attachment::Nothing => return FaultParameters::default(),
        };
        let mut sum = FaultParameters::default();
        for (_, rule) in self.rules.iter().filter(|(selection, _)| selection.holds(from, to, class)) {
            sum.drop = (sum.drop + rule.drop).min(MILLION);
            sum.corrupt = (sum.corrupt + rule.corrupt).min(MILLION - sum.drop);
            sum.off_at = [sum.off_at, rule.off_at].into_iter().flatten().min();
        }
        sum
    }
}

/// The faults of a machine; `None`: nothing fails.
///
/// # Errors
/// A rule that names an end which the machine does not have, or two ends that no link joins.
pub fn faults(machine: &Machine, layout: &Layout) -> Result<Option<Faults>, AssemblyError> {
    let resolved = (0..).zip(&machine.faults).map(|(number, rule)| resolve(number, rule, layout));
    let rules = resolved.collect::<Result<Vec<_>, _>>()?;
    Ok((!rules.is_empty()).then_some(Faults { rules }))
}

fn resolve(
    number: usize,
    rule: &FaultRule,
    layout: &Layout,
) -> Result<(Selection, FaultParameters), AssemblyError> {
    let end = |name: &str| {
        let found = match layout.switch(name) {
            Some(switch) => Ok(End::Switch(switch)),
            None => layout.endpoint(name.strip_prefix("endpoint ").unwrap_or(name)).map(End::Endpoint),
        };
        found.map_err(|unknown| AssemblyError::Fault { number, why: unknown.to_string() })
    };
    let selection = match &rule.links {
        FaultyLinks::All => Selection::All,
        FaultyLinks::Class(name) => {
            let class = layout.link_classes().iter().position(|class| class == name);
            let why = || format!("there are no links of class `{name}`");
            let class = class.ok_or_else(|| AssemblyError::Fault { number, why: why() })?;
            Selection::Class(LinkClass(class as u8))
        }
        FaultyLinks::Of(name) => Selection::Of(end(name)?),
        FaultyLinks::Between(one, other) => {
            let ends = (end(one)?, end(other)?);
            if !joined(layout, ends.0, ends.1) {
                let why = format!("no link joins {one} and {other}");
                return Err(AssemblyError::Fault { number, why });
            }
            Selection::Between(ends.0, ends.1)
        }
    };
    let FaultRule { drop, corrupt, off_at, .. } = *rule;
    Ok((selection, FaultParameters { drop, corrupt, off_at: off_at.map(|span| Time::ZERO + span) }))
}

/// Whether a link joins two ends.
fn joined(layout: &Layout, one: End, other: End) -> bool {
    match (one, other) {
        (End::Endpoint(_), End::Endpoint(_)) => false,
        (End::Endpoint(endpoint), End::Switch(switch)) | (End::Switch(switch), End::Endpoint(endpoint)) => {
            layout.attachment(endpoint).0 == switch
        }
        (End::Switch(one), End::Switch(other)) => (0..layout.ports(one)).any(
            |port| matches!(layout.peer(one, PortId(port)), Attachment::Switch(there, _) if there == other),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assembly::layout;
    use weft_machine::load;

    fn resolved(sets: &[&str]) -> Result<Option<Faults>, AssemblyError> {
        let machine = load("exanest", sets).unwrap();
        faults(&machine, &layout(&machine).unwrap())
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
        let losing = |drop, corrupt| FaultParameters { drop, corrupt, off_at: None };
        let off = FaultParameters { drop: 1, corrupt: 0, off_at: Some(Time::from_ps(3_000_000)) };
        // QFDB A of mezzanine 1 has switches 0 to 3, its router is 4; router 9 is that of QFDB B.
        assert_eq!(of(4, 1), losing(11, 5));
        assert_eq!(of(9, 1), losing(11, 0));
        assert_eq!(of(9, 2), losing(11, 5), "the link back to the router of QFDB A");
        assert_eq!(of(4, 3), losing(1, 5), "a y link of that router");
        assert_eq!((of(0, 1), of(1, 1)), (off, off), "both directions");
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
    }
}
