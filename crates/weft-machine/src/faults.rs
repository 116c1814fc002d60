//! `[[faults]]`: links that lose, corrupt, duplicate or reorder packets, and links and switches that fail.

mod schedule;

pub use schedule::ScheduledOutage;

use super::read::Reader;
use super::row::{Row, RowValue};
use super::table::Locations;
use serde::{Deserialize, Serialize};
use std::fmt;
use weft_fabric::MILLION;
use weft_keys::{KeyType, Millionths, Misfit, Problem, Writing, Written, nearest};
use weft_topo::GraphClass;
use weft_units::Span;

/// Which links a rule is about, in both directions. Names are those of tables and reports: `M1QAF1` for an
/// endpoint, `switch 7`, `router of M1QA`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum FaultyLinks {
    /// All of the machine.
    All,
    /// Those of one class of the topology.
    Class(String),
    /// All links of one endpoint or switch.
    Of(String),
    /// Those between two endpoints or switches.
    Between(String, String),
}

/// The times at which the links of a rule are off.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Outage {
    /// Never.
    Never,
    /// Once.
    Once {
        /// The virtual time from which on they lose everything.
        off_at: Span,
        /// The virtual time from which on they do no longer; `None`: they never come back.
        on_at: Option<Span>,
    },
    /// At times that are drawn from the seed.
    Random {
        /// Mean of the exponential time from when a link works to when it fails.
        mean_time_to_failure: Span,
        /// Mean of the exponential time from then to when it works again.
        mean_time_to_repair: Span,
        /// The virtual time from which on none fails any more.
        until: Span,
    },
    /// As a file says, which names the links as well.
    Schedule(Vec<ScheduledOutage>),
}

/// Links that fail alike. Several rules for one link add up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FaultRule {
    /// Which.
    pub links: FaultyLinks,
    /// Of a million packets so many are lost.
    pub drop: u32,
    /// Of a million packets so many are corrupted.
    pub corrupt: u32,
    /// Of a million packets so many arrive twice.
    pub duplicate: u32,
    /// Of a million packets so many may be overtaken by the next.
    pub reorder: u32,
    /// The times at which they lose everything.
    pub outage: Outage,
}

impl FaultRule {
    /// Outages with a time of their own that begin at the end of a run or after it.
    pub fn outages_after(&self, end: Span) -> usize {
        match &self.outage {
            Outage::Once { off_at, .. } => usize::from(*off_at >= end),
            Outage::Schedule(outages) => outages.iter().filter(|outage| outage.off_at >= end).count(),
            Outage::Never | Outage::Random { .. } => 0,
        }
    }
}

weft_keys::keys! {
    /// The keys of a rule.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub(super) struct FaultKeys {
        /// Links of this class.
        class: Option<String>;
        /// All links of this endpoint or switch.
        of: Option<String>;
        /// The two ends of the link: endpoints or switches.
        between: Option<LinkEnds>;
        /// Of a million packets so many are lost; 0 where not given.
        drop: Millionths = Millionths(0);
        /// Of a million packets so many are corrupted; 0 where not given.
        corrupt: Millionths = Millionths(0);
        /// Of a million packets so many arrive twice; 0 where not given.
        duplicate: Millionths = Millionths(0);
        /// Of a million packets so many may be overtaken by the next; 0 where not given.
        reorder: Millionths = Millionths(0);
        /// From when on the links lose everything.
        off_at: Option<Span>;
        /// Until when; for good where not given.
        on_at: Option<Span>, only_with("off_at", []);
        /// Mean of the exponential time from when a link works to when it fails.
        mean_time_to_failure: Option<Span>, not_zero("100us");
        /// Mean of the exponential time from then to when it works again.
        mean_time_to_repair: Option<Span>, not_zero("100us");
        /// From when on none fails any more, such as the length of the run.
        until: Option<Span>;
        /// A file of links and the times at which they are off.
        schedule: Option<String>;
    }
}

/// The two ends of a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LinkEnds(String, String);

impl KeyType for LinkEnds {
    const NAME: &'static str = "LinkEnds";
    const WRITING: Writing = Writing::Texts { least: 2, most: Some(2) };

    fn read(written: &Written) -> Result<LinkEnds, Problem> {
        match written {
            Written::List(ends) if ends.len() == 2 => {
                Ok(LinkEnds(String::read(&ends[0])?, String::read(&ends[1])?))
            }
            _ => {
                let help = "write between = [\"M1QAF1\", \"M1QAF2\"]: the two ends of the link";
                Err(Problem::new("a link has two ends", "not two texts", help))
            }
        }
    }

    fn show(&self) -> String {
        format!("{}, {}", self.0, self.1)
    }
}

impl RowValue for FaultRule {
    type Keys = FaultKeys;
    const NAME: &'static str = "FaultRule";
    const MEANING: &'static str =
        "Links that lose, corrupt, duplicate or reorder packets, or are off for a time or for good.";

    fn of(keys: FaultKeys, locations: &Locations, reader: &mut Reader<'_>) -> Option<FaultRule> {
        if let Err(misfit) = keys.check() {
            locations.report(misfit, reader);
            return None;
        }
        let outage = match &keys.schedule {
            Some(file) => Outage::Schedule(schedule::read(file, locations.of("schedule"), reader)?),
            None => keys.outage(),
        };
        let links = match (keys.class, keys.of, keys.between) {
            (Some(class), ..) => FaultyLinks::Class(class),
            (_, Some(end), _) => FaultyLinks::Of(end),
            (.., Some(LinkEnds(one, other))) => FaultyLinks::Between(one, other),
            (None, None, None) => FaultyLinks::All,
        };
        let [drop, corrupt, duplicate, reorder] =
            [keys.drop, keys.corrupt, keys.duplicate, keys.reorder].map(|Millionths(count)| count);
        Some(FaultRule { links, drop, corrupt, duplicate, reorder, outage })
    }
}

impl FaultKeys {
    /// Checks that the keys of a rule fit together.
    fn check(&self) -> Result<(), Misfit> {
        let links =
            [("class", self.class.is_some()), ("of", self.of.is_some()), ("between", self.between.is_some())];
        let mut links = links.into_iter().filter(|(_, is_given)| *is_given);
        let (link, second_link) = (links.next(), links.next());
        if let Some((key, _)) = second_link {
            let help = "keep one of `class`, `of` and `between`, or none of them for all links";
            return Err(Problem::new("a rule says twice which links it means", "", help).of(key));
        }
        let random = [self.mean_time_to_failure, self.mean_time_to_repair, self.until];
        let is_random = random.iter().any(Option::is_some);
        let times =
            [("off_at", self.off_at.is_some()), ("until", is_random), ("schedule", self.schedule.is_some())];
        if let Some((key, _)) = times.into_iter().filter(|(_, is_given)| *is_given).nth(1) {
            let help =
                "keep off_at with on_at, or the mean times, or the schedule; another rule may have the other";
            return Err(Problem::new("a rule says twice when its links are off", "", help).of(key));
        }
        if self.schedule.is_some() && link.is_some() {
            let help = "leave out `class`, `of` and `between`, or write off_at and on_at";
            return Err(Problem::new("a schedule names its links itself", "", help).of("schedule"));
        }
        if is_random && random.contains(&None) {
            let help = "write mean_time_to_failure, mean_time_to_repair and until: the virtual time from \
                        which on nothing fails any more, such as the length of the run";
            return Err(Problem::new("random failures need three times", "not all given", help).of("until"));
        }
        if let (Some(off), Some(on)) = (self.off_at, self.on_at)
            && on <= off
        {
            let title = format!("links come back at {on}, before they fail at {off}");
            let help = "let on_at be later than off_at, or leave it out: they then stay off";
            return Err(Problem::new(title, "not later than off_at", help).of("on_at"));
        }
        let together = self.drop.0 + self.corrupt.0 + self.duplicate.0 + self.reorder.0;
        if together > MILLION {
            let title = format!("a rule changes more packets than there are: {together} in a million");
            let help = format!("let drop, corrupt, duplicate and reorder together be at most {MILLION}");
            return Err(Problem::new(title, "too many together", help).of("drop"));
        }
        Ok(())
    }

    /// The times at which the links are off, where no file says them.
    fn outage(&self) -> Outage {
        match (self.off_at, self.mean_time_to_failure, self.mean_time_to_repair, self.until) {
            (Some(off_at), ..) => Outage::Once { off_at, on_at: self.on_at },
            (None, Some(mean_time_to_failure), Some(mean_time_to_repair), Some(until)) => {
                Outage::Random { mean_time_to_failure, mean_time_to_repair, until }
            }
            _ => Outage::Never,
        }
    }
}

/// Refuses rules that are asked for by a `--set` where messages are fluids.
pub(super) fn refuse_set(rules: &[Row<FaultRule>], reader: &mut Reader<'_>) {
    if let Some(rule) = rules.iter().find(|rule| rule.location.is_set()) {
        let problem = Problem::new(
            "fluids have no packets that links could lose, and keep to their paths",
            "not with flows",
            "write fabric.kind = \"packet\", or leave the faults out",
        );
        reader.report(rule.location, problem);
    }
}

/// Checks that rules name classes which the topology has; without one they go unchecked.
pub(super) fn check(
    rules: Vec<Row<FaultRule>>,
    link_classes: Option<&[GraphClass]>,
    reader: &mut Reader<'_>,
) -> Option<Vec<FaultRule>> {
    for Row { value: rule, location } in &rules {
        let FaultyLinks::Class(class) = &rule.links else { continue };
        let Some(classes) = link_classes else { continue };
        let names: Vec<&str> = classes.iter().map(|known| known.name.as_str()).collect();
        if names.contains(&class.as_str()) {
            continue;
        }
        let problem = Problem::new(
            format!("faults: this topology has no links of class `{class}`"),
            "",
            match nearest(class, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("its classes are {}", names.join(", ")),
            },
        );
        reader.report(*location, problem);
        return None;
    }
    Some(rules.into_iter().map(|row| row.value).collect())
}

impl fmt::Display for FaultRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.links {
            FaultyLinks::All => write!(f, "all links:")?,
            FaultyLinks::Class(class) => write!(f, "{class} links:")?,
            FaultyLinks::Of(end) => write!(f, "links of {end}:")?,
            FaultyLinks::Between(one, other) => write!(f, "links between {one} and {other}:")?,
        }
        write!(f, " {} packets in a million lost, {} corrupted", self.drop, self.corrupt)?;
        if self.duplicate + self.reorder > 0 {
            write!(f, ", {} duplicated, {} reordered", self.duplicate, self.reorder)?;
        }
        match &self.outage {
            Outage::Never => Ok(()),
            Outage::Once { off_at, on_at: None } => write!(f, ", off at {off_at}"),
            Outage::Once { off_at, on_at: Some(on_at) } => write!(f, ", off at {off_at}, on at {on_at}"),
            Outage::Random { mean_time_to_failure, mean_time_to_repair, until } => write!(
                f,
                ", failing after {mean_time_to_failure} and repaired after {mean_time_to_repair} in the \
                 mean, until {until}"
            ),
            Outage::Schedule(outages) => write!(f, ", {} times off by schedule", outages.len()),
        }
    }
}
