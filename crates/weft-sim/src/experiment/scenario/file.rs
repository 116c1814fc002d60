//! Scenario files: flows of a traffic generator, in TOML.
//!
//! ```toml
//! [scenario]
//! title = "five to one, with a victim"
//! time = "1ms"            # measured time ends here
//! warm_up = "200us"       # what comes before is not counted, nor the latency of what begins before
//!
//! [[flows]]
//! name = "aggressors"
//! role = "aggressor"      # victim, aggressor or background
//! from = "0-4"            # numbers of endpoints: "0-4", "0,2,8-11", "all", or names
//! to = "15"
//! size = "64K"            # or distribution = "web-search", or distribution = [[100, 0.5], [1000, 1.0]]
//! gap = "0us"             # or rate = "10Gb/s", each flow from a time of its own within the first interval
//! class = "bulk"          # a traffic class of the machine; without it the first that takes the messages
//!
//! [[applications]]        # a recorded program beside them
//! name = "lammps"
//! role = "victim"
//! trace = "lammps.weft"   # from the folder of this file
//! made_by = "make lammps" # for who does not have the trace
//! on = "0-15"             # endpoints, filled in this order; all where not given
//! map = "switch"          # instead of `on`: of J applications with this map, every J-th switch; or "node"
//! ranks_per_host = 4      # the cores of a host where not given
//! start = "10us"          # when its ranks begin; at once where not given
//! compute_scale = 0.25    # a factor on the time of each computation, 0 to 4294; 1 where not given
//! ```
//! Services and their clients: see `services`.

mod services;

pub(super) use services::{ClientGroup, ServiceGroup, by_endpoint};

use crate::experiment::ExperimentError;
use crate::experiment::trace::kernel_named;
use serde::Deserialize;
use services::{RawClients, RawService};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use toml::Spanned;
use weft_app::{Kernel, KernelName};
use weft_assembly as assembly;
use weft_engine::{Stream, below};
use weft_fabric::TrafficClasses;
use weft_machine::{Fabric, Machine};
use weft_topo::{Layout, Topology as _};
use weft_units::{BitRate, Bytes, EndpointId, Span, Time};
use weft_workload::jobs::HostGroups;
use weft_workload::mapping::Hosts;
use weft_workload::replay::ComputeScale;
use weft_workload::scenario::{FlowPlan, OfFlow, Pace, Sizes};

/// Most flows of a scenario.
const MAX_FLOWS: usize = 4_000_000;
const _: () = assert!(MAX_FLOWS <= OfFlow::MOST);
/// The roles of groups of flows, applications and clients.
const ROLES: [&str; 3] = ["victim", "aggressor", "background"];

/// A file as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    scenario: RawHead,
    #[serde(default)]
    flows: Vec<Spanned<RawFlows>>,
    #[serde(default)]
    applications: Vec<Spanned<RawApplication>>,
    #[serde(default)]
    services: Vec<Spanned<RawService>>,
    #[serde(default)]
    clients: Vec<Spanned<RawClients>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHead {
    title: Spanned<String>,
    time: Spanned<String>,
    warm_up: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFlows {
    name: Spanned<String>,
    role: Option<Spanned<String>>,
    from: Spanned<String>,
    to: Option<Spanned<String>>,
    spread: Option<Spanned<String>>,
    size: Option<Spanned<String>>,
    distribution: Option<Spanned<RawDistribution>>,
    gap: Option<Spanned<String>>,
    rate: Option<Spanned<String>>,
    start: Option<Spanned<String>>,
    stop: Option<Spanned<String>>,
    transfers: Option<Spanned<u64>>,
    class: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawApplication {
    name: Spanned<String>,
    role: Option<Spanned<String>>,
    trace: Spanned<String>,
    made_by: Option<Spanned<String>>,
    on: Option<Spanned<String>>,
    map: Option<Spanned<String>>,
    start: Option<Spanned<String>>,
    ranks_per_host: Option<Spanned<u32>>,
    compute_scale: Option<Spanned<f64>>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected the name of a distribution, or points such as [[100, 0.5], [1000, 1.0]]"
)]
enum RawDistribution {
    Name(String),
    Points(Vec<(u64, f64)>),
}

/// The sizes of transfers or values as written, with the name of the table in which they are.
struct RawSizes<'r> {
    of: &'static str,
    size: &'r Option<Spanned<String>>,
    distribution: &'r Option<Spanned<RawDistribution>>,
}

/// A group of flows.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) role: String,
}

/// A recorded program beside the flows.
#[derive(Clone, Debug)]
pub(super) struct Application {
    /// The name and the role.
    pub(super) group: Group,
    /// The place in the file that names its trace, as errors begin.
    pub(super) trace: String,
    /// The endpoints of its ranks, in the order in which they are filled.
    pub(super) on: Vec<EndpointId>,
    /// The field that says them.
    pub(super) places: PlacesOrigin,
    /// Ranks on each; `None`: one per core.
    pub(super) ranks_per_host: Option<u32>,
    /// The time at which its ranks begin.
    pub(super) start: Time,
    /// A factor on the time of each computation.
    pub(super) compute_scale: ComputeScale,
}

/// The place in the file that says where an application's ranks sit.
#[derive(Clone, Debug)]
pub(super) struct PlacesOrigin {
    /// File, line and field, as errors begin.
    place: String,
    mend: &'static str,
}

impl PlacesOrigin {
    /// The error of a trace with more ranks than there are places.
    pub(super) fn too_few(&self, places: usize, ranks: u32) -> ExperimentError {
        let PlacesOrigin { place, mend } = self;
        ExperimentError::input(format!(
            "{place}: the trace has {ranks} ranks, and there are {places} places; {mend}, or raise \
             `ranks_per_host`"
        ))
    }
}

/// A scenario on a machine.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) time: Time,
    pub(super) warm_up: Time,
    pub(super) groups: Vec<Group>,
    pub(super) flows: Vec<FlowPlan>,
    pub(super) applications: Vec<Application>,
    pub(super) services: Vec<ServiceGroup>,
    pub(super) clients: Vec<ClientGroup>,
    /// Bits per second that flows with a rate offer, by their source.
    rates: BTreeMap<EndpointId, u64>,
}

impl Scenario {
    /// The groups of flows, applications, clients and services, in the order of their rows.
    pub(super) fn all_groups(&self) -> impl Iterator<Item = &Group> {
        let applications = self.applications.iter().map(|application| &application.group);
        let clients = self.clients.iter().map(|clients| &clients.group);
        let services = self.services.iter().map(|service| &service.group);
        self.groups.iter().chain(applications).chain(clients).chain(services)
    }
}

/// The text of a file, for messages.
struct Text<'t> {
    name: &'t str,
    text: &'t str,
}

impl Text<'_> {
    /// A place, as errors begin: file, line and field.
    fn place(&self, at: &Range<usize>, field: &str) -> String {
        let line = self.text[..at.start.min(self.text.len())].matches('\n').count() + 1;
        format!("{}:{line}: `{field}`", self.name)
    }

    /// An error at a place: what is wrong, and the mend.
    fn refuse(&self, at: &Range<usize>, field: &str, what: &str, mend: &str) -> ExperimentError {
        ExperimentError::input(format!("{}: {what}; {mend}", self.place(at, field)))
    }

    /// An error of the reader of TOML: the key where the place has one, and the mend.
    fn refuse_toml(&self, error: &toml::de::Error) -> ExperimentError {
        let at = error.span().unwrap_or(0..0);
        let before = &self.text[..at.start.min(self.text.len())];
        let start_of_line = &before[before.rfind('\n').map_or(0, |end| end + 1)..];
        let message = error.message().trim().replace('\n', "; ");
        let value = self.text.get(at.clone()).unwrap_or_default();
        let mend = if message.contains("expected a string") {
            format!("write it in quotes, with its unit where it has one: \"{value}\"")
        } else if message.contains("expected u64") || message.contains("expected u32") {
            "write a whole number without quotes, 0 or more".to_owned()
        } else if message.starts_with("unknown field") {
            "take it out, or write one of these".to_owned()
        } else if message.starts_with("missing field") {
            "add it".to_owned()
        } else {
            "scenarios are TOML; see congestion/scenarios.md in the book".to_owned()
        };
        match start_of_line.split_once('=') {
            Some((key, _)) => self.refuse(&at, key.trim(), &message, &mend),
            None => {
                let line = before.matches('\n').count() + 1;
                ExperimentError::input(format!("{}:{line}: {message}; {mend}", self.name))
            }
        }
    }

    /// A quantity that is written as text.
    fn read<T: std::str::FromStr>(
        &self,
        given: &Spanned<String>,
        (field, example): (&str, &str),
    ) -> Result<T, ExperimentError> {
        let wrong = |_| {
            let what = format!("\"{}\" is none", given.get_ref());
            self.refuse(&given.span(), field, &what, &format!("write for example \"{example}\""))
        };
        given.get_ref().parse().map_err(wrong)
    }
}

fn parse(name: &str, text: &str) -> Result<RawFile, ExperimentError> {
    toml::from_str(text).map_err(|error| Text { name, text }.refuse_toml(&error))
}

/// Ranks of a kernel that is built to see whether its options are right, which takes milliseconds.
const MAX_RANKS_BUILT_EARLY: u32 = 4096;

/// A trace that a scenario names.
pub(super) struct NamedTrace {
    /// As written: from the scenario's folder.
    pub(super) path: String,
    /// The kernel that it is where there is no such file; `None`: no kernel can have that name.
    pub(super) kernel: Option<Result<KernelName, ExperimentError>>,
    /// The error that says that it is not there.
    pub(super) missing: ExperimentError,
    /// The error that says that it is a folder or a device.
    pub(super) no_file: ExperimentError,
}

/// The traces that a scenario names.
pub(super) fn traces(name: &str, text: &str) -> Result<Vec<NamedTrace>, ExperimentError> {
    let raw = parse(name, text)?;
    let text = Text { name, text };
    let trace = |application: Spanned<RawApplication>| {
        let RawApplication { trace, made_by, .. } = application.into_inner();
        let what = format!("there is no \"{}\" in the scenario's folder", trace.get_ref());
        let mend = match &made_by {
            Some(command) => format!("make it: {}", command.get_ref()),
            None => "record it with `weft record`".to_owned(),
        };
        let missing = text.refuse(&trace.span(), "applications.trace", &what, &mend);
        let what = format!("\"{}\" is no regular file", trace.get_ref());
        let no_file = text.refuse(&trace.span(), "applications.trace", &what, "name a trace");
        let kernel = kernel_named(trace.get_ref()).map(|name| {
            let known = name.and_then(|name| {
                match name.ranks {
                    // Whether there is room for more is known with the machine, and so they are built later.
                    ranks if ranks > MAX_RANKS_BUILT_EARLY => weft_app::check(&name)?,
                    _ => drop(Kernel::new(&name)?),
                }
                Ok(name)
            });
            known.map_err(|error| {
                let mend = "weft app list has the applications";
                text.refuse(&trace.span(), "applications.trace", &error.to_string(), mend)
            })
        });
        NamedTrace { path: trace.into_inner(), kernel, missing, no_file }
    };
    Ok(raw.applications.into_iter().map(trace).collect())
}

/// Refuses applications in a file that goes beside the ranks of a command.
pub(super) fn refuse_applications(name: &str, text: &str) -> Result<(), ExperimentError> {
    let raw = parse(name, text)?;
    let Some(application) = raw.applications.first() else { return Ok(()) };
    let what = "the program of the command is the application";
    let mend = "take [[applications]] out, or run the file with `weft traffic --scenario`";
    Err(Text { name, text }.refuse(&application.span(), "applications", what, mend))
}

/// The traffic classes of a machine by their names; none, where it has one without a name.
pub(super) struct NamedClasses<'m> {
    pub(super) names: &'m [String],
    pub(super) table: TrafficClasses,
}

impl<'m> NamedClasses<'m> {
    /// Those of a machine.
    pub(super) fn of(machine: &'m Machine) -> NamedClasses<'m> {
        match &machine.fabric {
            Fabric::Packet { switch, classes, .. } => {
                NamedClasses { names: classes, table: switch.channels.classes }
            }
            Fabric::Ideal(_) => NamedClasses { names: &[], table: TrafficClasses::default() },
        }
    }
}

/// The machine of a scenario.
pub(super) struct OnMachine<'m> {
    pub(super) layout: &'m Layout,
    pub(super) classes: NamedClasses<'m>,
    /// The longest message that its interface carries.
    pub(super) longest: Bytes,
    /// The rate of its fastest link, where it has links.
    link: Option<BitRate>,
}

impl<'m> OnMachine<'m> {
    /// A machine with its layout.
    pub(super) fn of(machine: &'m Machine, layout: &'m Layout) -> OnMachine<'m> {
        let longest = machine.nic.model().longest_message();
        let links = assembly::links(machine, layout);
        let link = links.and_then(|links| links.iter().map(|link| link.rate).max());
        OnMachine { layout, classes: NamedClasses::of(machine), longest, link }
    }
}

/// Reads a scenario for a machine. `seed`: of permutations.
pub(super) fn read(
    (name, text): (&str, &str),
    OnMachine { layout, classes, longest, link }: &OnMachine<'_>,
    seed: u64,
) -> Result<Scenario, ExperimentError> {
    let raw = parse(name, text)?;
    let text = Text { name, text };
    let RawHead { title, time, warm_up } = raw.scenario;
    if title.get_ref().trim().is_empty() {
        return Err(text.refuse(
            &title.span(),
            "scenario.title",
            "it is empty",
            "say in a line what happens",
        ));
    }
    let end: Span = text.read(&time, ("scenario.time", "1ms"))?;
    let after = match &warm_up {
        Some(given) => text.read(given, ("scenario.warm_up", "200us"))?,
        None => Span::ZERO,
    };
    if end == Span::ZERO || after >= end {
        return Err(text.refuse(
            &time.span(),
            "scenario.time",
            "nothing is measured between warm_up and time",
            "write a time above warm_up",
        ));
    }
    let mut scenario = Scenario {
        time: Time::ZERO + end,
        warm_up: Time::ZERO + after,
        groups: Vec::new(),
        flows: Vec::new(),
        applications: Vec::new(),
        services: Vec::new(),
        clients: Vec::new(),
        rates: BTreeMap::new(),
    };
    let reading = |at| Flows { text: &text, layout, classes, at, seed, end, longest: *longest, link: *link };
    for flows in raw.flows {
        reading(flows.span()).add(flows.into_inner(), &mut scenario)?;
    }
    let map_of = |raw: &Spanned<RawApplication>| Some(raw.get_ref().map.as_ref()?.get_ref().clone());
    let maps: Vec<Option<String>> = raw.applications.iter().map(map_of).collect();
    for (number, application) in raw.applications.into_iter().enumerate() {
        let reading = reading(application.span());
        let alike = |maps: &[Option<String>], map| maps.iter().filter(|other| *other == map).count();
        let turn = MapTurn { number: alike(&maps[..number], &maps[number]), of: alike(&maps, &maps[number]) };
        reading.add_application(application.into_inner(), turn, &mut scenario)?;
    }
    for service in raw.services {
        reading(service.span()).add_service(service.into_inner(), &mut scenario)?;
    }
    for clients in raw.clients {
        reading(clients.span()).add_clients(clients.into_inner(), &mut scenario)?;
    }
    Ok(scenario)
}

/// The place of an application among those with the same `map`.
#[derive(Clone, Copy)]
struct MapTurn {
    number: usize,
    of: usize,
}

/// The reading of one `[[flows]]`, `[[applications]]`, `[[services]]` or `[[clients]]`.
struct Flows<'t> {
    text: &'t Text<'t>,
    layout: &'t Layout,
    classes: &'t NamedClasses<'t>,
    at: Range<usize>,
    seed: u64,
    end: Span,
    /// The longest message of the machine's interface.
    longest: Bytes,
    /// The rate of the machine's fastest link.
    link: Option<BitRate>,
}

impl Flows<'_> {
    fn add(&self, raw: RawFlows, scenario: &mut Scenario) -> Result<(), ExperimentError> {
        let text = self.text;
        let group = scenario.groups.len() as u32;
        let role = self.role("flows.role", raw.role.as_ref())?;
        self.check_unused("flows.name", &raw.name, scenario)?;
        let given = RawSizes { of: "flows", size: &raw.size, distribution: &raw.distribution };
        let sizes = self.sizes(given)?;
        let pace = match (&raw.gap, &raw.rate) {
            (Some(_), Some(rate)) => {
                let mend = "leave one of them out";
                return Err(text.refuse(&rate.span(), "flows.rate", "there is a `gap` as well", mend));
            }
            (None, Some(rate)) => Pace::Rate(text.read(rate, ("flows.rate", "10Gb/s"))?),
            (Some(gap), None) => Pace::Gap(text.read(gap, ("flows.gap", "5us"))?),
            (None, None) => Pace::Gap(Span::ZERO),
        };
        if pace == Pace::Rate(BitRate::from_bits_per_second(0)) {
            let at = raw.rate.as_ref().map_or(self.at.clone(), Spanned::span);
            return Err(text.refuse(&at, "flows.rate", "it is zero", "write a rate, such as \"10Gb/s\""));
        }
        let (start, stop) = self.start_and_stop([("flows.start", &raw.start), ("flows.stop", &raw.stop)])?;
        let transfers = self.not_zero(raw.transfers.as_ref(), "flows.transfers")?;
        let class = raw.class.as_ref().map(|name| self.class(name)).transpose()?;
        let mut rng = Stream::new(self.seed, group.into(), PURPOSE_PHASE);
        let pairs = self.pairs(&raw, group)?;
        self.check_repeated(&raw.from, &pairs)?;
        if let (Pace::Rate(rate), Some(given)) = (pace, &raw.rate) {
            let sources = pairs.iter().map(|(source, _)| *source);
            self.check_rate(given, rate, (sources, &mut scenario.rates))?;
        }
        for (source, to) in pairs {
            scenario.flows.push(FlowPlan {
                group,
                source,
                to,
                sizes: sizes.clone(),
                pace,
                start: Time::ZERO + start,
                phase: if raw.start.is_some() { Span::ZERO } else { phase(pace, &sizes, &mut rng) },
                stop: Time::ZERO + stop,
                transfers,
                class,
            });
        }
        if scenario.flows.len() > MAX_FLOWS {
            let mend = format!("name fewer endpoints; there can be {MAX_FLOWS} flows");
            return Err(text.refuse(&self.at, "flows", "these are too many flows", &mend));
        }
        scenario.groups.push(Group { name: raw.name.into_inner(), role });
        Ok(())
    }

    /// Refuses flows whose rates, with those of the groups before, their source's link does not carry.
    fn check_rate(
        &self,
        given: &Spanned<String>,
        rate: BitRate,
        (sources, rates): (impl Iterator<Item = EndpointId>, &mut BTreeMap<EndpointId, u64>),
    ) -> Result<(), ExperimentError> {
        let Some(link) = self.link else { return Ok(()) };
        for source in sources {
            let sum = rates.entry(source).or_default();
            *sum = sum.saturating_add(rate.bits_per_second());
            if *sum > link.bits_per_second() {
                let sum = BitRate::from_bits_per_second(*sum);
                let what = format!(
                    "the flows of endpoint {} have rates of {sum} in all, and no link carries more than \
                     {link}",
                    source.0
                );
                let mend = "write a lower rate, or spread the flows over more endpoints";
                return Err(self.text.refuse(&given.span(), "flows.rate", &what, mend));
            }
        }
        Ok(())
    }

    /// Refuses two flows of a group from one endpoint to the same ones: a comma is between endpoints, and
    /// not between the parts of a name.
    fn check_repeated(
        &self,
        from: &Spanned<String>,
        pairs: &[(EndpointId, Vec<EndpointId>)],
    ) -> Result<(), ExperimentError> {
        let mut seen = BTreeSet::new();
        let Some((twice, _)) = pairs.iter().find(|pair| !seen.insert(*pair)) else { return Ok(()) };
        let what = format!("\"{}\" has endpoint {} twice", from.get_ref(), twice.0);
        let name = self.layout.endpoint_name(*twice);
        let mend = format!("a comma is between two endpoints: write it once, as \"{name}\"");
        Err(self.text.refuse(&from.span(), "flows.from", &what, &mend))
    }

    /// A number of things to do, of which there is at least one; `None`: it is not given.
    fn not_zero(&self, given: Option<&Spanned<u64>>, field: &str) -> Result<Option<u64>, ExperimentError> {
        match given {
            Some(given) if *given.get_ref() == 0 => {
                let mend = "write 1 or more, or leave it out for as many as there is time for";
                Err(self.text.refuse(&given.span(), field, "it is zero", mend))
            }
            given => Ok(given.map(|count| *count.get_ref())),
        }
    }

    /// The first and the last time of what has both, in this order, with the names of their fields.
    fn start_and_stop(
        &self,
        [(start_field, start_given), (stop_field, stop_given)]: [(&str, &Option<Spanned<String>>); 2],
    ) -> Result<(Span, Span), ExperimentError> {
        let time = |given: &Option<Spanned<String>>, field, usual| match given {
            Some(given) => self.text.read::<Span>(given, (field, "100us")),
            None => Ok(usual),
        };
        let start = time(start_given, start_field, Span::ZERO)?;
        let stop = time(stop_given, stop_field, self.end)?;
        if start >= stop {
            let at = start_given.as_ref().or(stop_given.as_ref()).map_or(self.at.clone(), Spanned::span);
            let mend = "let it start earlier";
            return Err(self.text.refuse(&at, start_field, "it is not before stop", mend));
        }
        // Beside ranks the run may go on.
        Ok((start, stop.min(self.end)))
    }

    /// Refuses an empty name, one that another has, and one that a terminal would act on.
    fn check_unused(
        &self,
        field: &str,
        name: &Spanned<String>,
        scenario: &Scenario,
    ) -> Result<(), ExperimentError> {
        if let Some(control) = name.get_ref().chars().find(|sign| sign.is_control()) {
            let what = format!("it holds a control character, {}", control.escape_unicode());
            return Err(self.text.refuse(&name.span(), field, &what, "leave it out"));
        }
        if name.get_ref().trim().is_empty() {
            return Err(self.text.refuse(
                &name.span(),
                field,
                "it is empty",
                "write a name of one word or more",
            ));
        }
        if scenario.all_groups().any(|other| other.name == *name.get_ref()) {
            let what = format!("two groups are called \"{}\"", name.get_ref());
            return Err(self.text.refuse(&name.span(), field, &what, "give each its own name"));
        }
        Ok(())
    }

    /// The role of a group, which must be one.
    fn role(&self, field: &str, given: Option<&Spanned<String>>) -> Result<String, ExperimentError> {
        let (at, what) = match given {
            Some(role) if ROLES.contains(&role.get_ref().as_str()) => return Ok(role.get_ref().clone()),
            Some(role) => (role.span(), format!("\"{}\" is no role", role.get_ref())),
            None => (self.at.clone(), "it is missing".to_owned()),
        };
        let [one, other, last] = ROLES;
        let mend = format!("write role = \"{one}\", \"{other}\" or \"{last}\"");
        Err(self.text.refuse(&at, field, &what, &mend))
    }

    fn add_application(
        &self,
        raw: RawApplication,
        turn: MapTurn,
        scenario: &mut Scenario,
    ) -> Result<(), ExperimentError> {
        let role = self.role("applications.role", raw.role.as_ref())?;
        self.check_unused("applications.name", &raw.name, scenario)?;
        let on = match (&raw.on, &raw.map) {
            (Some(_), Some(map)) => {
                let mend = "leave one of them out";
                return Err(self.text.refuse(
                    &map.span(),
                    "applications.map",
                    "there is an `on` as well",
                    mend,
                ));
            }
            (Some(given), None) => self.endpoints(given, "applications.on")?,
            (None, Some(map)) => self.mapped(map, turn)?,
            (None, None) => (0..self.layout.endpoints()).map(EndpointId).collect(),
        };
        let places = match (&raw.on, &raw.map) {
            (Some(on), _) => ("applications.on", on.span(), "name more endpoints"),
            (None, Some(map)) => ("applications.map", map.span(), "leave it out"),
            (None, None) => ("applications", self.at.clone(), "take a larger machine"),
        };
        let (field, at, mend) = places;
        let places = PlacesOrigin { place: self.text.place(&at, field), mend };
        let start = match &raw.start {
            Some(given) => self.text.read(given, ("applications.start", "10us"))?,
            None => Span::ZERO,
        };
        if let Some(given) = raw.start.as_ref().filter(|_| start >= self.end) {
            let what = "it is not before the scenario's `time`";
            return Err(self.text.refuse(&given.span(), "applications.start", what, "let it start earlier"));
        }
        if let Some(given) = raw.ranks_per_host.as_ref().filter(|given| *given.get_ref() == 0) {
            let mend = "write 1 or more, or leave it out";
            return Err(self.text.refuse(&given.span(), "applications.ranks_per_host", "it is zero", mend));
        }
        let compute_scale = match &raw.compute_scale {
            None => ComputeScale::default(),
            Some(given) => given.get_ref().to_string().parse().map_err(|_| {
                let mend = "write a number from 0, which leaves computation out, to 4294, such as 0.25";
                self.text.refuse(&given.span(), "applications.compute_scale", "it is no factor", mend)
            })?,
        };
        let trace = self.text.place(&raw.trace.span(), "applications.trace");
        let group = Group { name: raw.name.into_inner(), role };
        let ranks_per_host = raw.ranks_per_host.map(Spanned::into_inner);
        let start = Time::ZERO + start;
        scenario.applications.push(Application {
            group,
            trace,
            on,
            places,
            ranks_per_host,
            start,
            compute_scale,
        });
        Ok(())
    }

    /// The endpoints of an application that are dealt to it.
    fn mapped(&self, map: &Spanned<String>, turn: MapTurn) -> Result<Vec<EndpointId>, ExperimentError> {
        // Applications are placed by endpoint: each counts as a host.
        let hosts = Hosts { hosts: self.layout.endpoints(), cores: 1, endpoints_per_host: 1 };
        let groups = match map.get_ref().as_str() {
            "node" => HostGroups::nodes(hosts),
            "switch" => HostGroups::switches(hosts, |host| self.layout.attachment(EndpointId(host)).0),
            other => {
                let what = format!("\"{other}\" is none");
                let mend = "write \"switch\" or \"node\", or use `on`";
                return Err(self.text.refuse(&map.span(), "applications.map", &what, mend));
            }
        };
        Ok(groups.of_job(turn.number, turn.of).into_iter().map(EndpointId).collect())
    }

    /// The traffic class of that name.
    fn class(&self, given: &Spanned<String>) -> Result<u8, ExperimentError> {
        let NamedClasses { names, table } = self.classes;
        let refuse = |what: &str, mend: &str| self.text.refuse(&given.span(), "flows.class", what, mend);
        let takes = |class: usize| table.all().get(class).is_some_and(|class| class.takes_named(false));
        let quoted = |place: usize| format!("\"{}\"", names[place]);
        let known: Vec<String> = (0..names.len()).filter(|place| takes(*place)).map(quoted).collect();
        let mend = match known.is_empty() {
            true => "leave it out, or add [[switch.classes]] to the machine".to_owned(),
            false => format!("write {}", known.join(" or ")),
        };
        let name = given.get_ref();
        match names.iter().position(|known| known == name) {
            Some(class) if takes(class) => Ok(class as u8),
            Some(_) => Err(refuse(&format!("class \"{name}\" takes no messages of flows"), &mend)),
            None => Err(refuse(&format!("the machine has no traffic class \"{name}\""), &mend)),
        }
    }

    fn sizes(&self, RawSizes { of, size, distribution }: RawSizes<'_>) -> Result<Sizes, ExperimentError> {
        let text = self.text;
        let (size_field, distribution_field) = (&*format!("{of}.size"), &*format!("{of}.distribution"));
        match (size, distribution) {
            (Some(_), Some(given)) => {
                let mend = "leave one of them out";
                Err(text.refuse(&given.span(), distribution_field, "there is a `size` as well", mend))
            }
            (Some(size), None) => {
                let bytes: Bytes = text.read(size, (size_field, "64K"))?;
                if bytes == Bytes::ZERO {
                    return Err(text.refuse(&size.span(), size_field, "it is zero", "write 1 or more"));
                }
                self.check_length(bytes, &size.span(), size_field)?;
                Ok(Sizes::Fixed(bytes))
            }
            (None, Some(given)) => match given.get_ref() {
                RawDistribution::Name(name) => Sizes::named(name).ok_or_else(|| {
                    let mend = format!("write {}, or points", Sizes::NAMES.join(", "));
                    let what = format!("no distribution is called \"{name}\"");
                    text.refuse(&given.span(), distribution_field, &what, &mend)
                }),
                RawDistribution::Points(points) => {
                    if let Some((_, share)) = points.iter().find(|(_, share)| !(0.0..=1.0).contains(share)) {
                        let what = format!("{share:?} is no share of the transfers");
                        let mend = "write shares from 0.0 to 1.0, such as [[100, 0.5], [1000, 1.0]]";
                        return Err(text.refuse(&given.span(), distribution_field, &what, mend));
                    }
                    let share = |share: f64| (share * 1e6).round() as u32;
                    let mut whole: Vec<(u64, u32)> =
                        points.iter().map(|&(size, up_to)| (size, share(up_to))).collect();
                    if whole.first().is_some_and(|first| first.1 > 0) {
                        whole.insert(0, (whole[0].0.saturating_sub(1), 0));
                    }
                    let rises = whole.is_sorted_by(|one, next| one.0 < next.0 && one.1 < next.1);
                    if whole.len() < 2 || !rises || whole.last().is_none_or(|last| last.1 != 1_000_000) {
                        let what = "sizes and shares must both rise, up to a share of 1.0";
                        let mend = "write [[bytes, share up to it], …], such as [[100, 0.5], [1000, 1.0]]";
                        return Err(text.refuse(&given.span(), distribution_field, what, mend));
                    }
                    let sizes = Sizes::Drawn(whole);
                    self.check_length(sizes.largest(), &given.span(), distribution_field)?;
                    Ok(sizes)
                }
            },
            (None, None) => {
                let mend = "write size = \"64K\", or distribution = \"web-search\"";
                let what = if of == "flows" { "transfers have no size" } else { "values have no size" };
                Err(text.refuse(&self.at, size_field, what, mend))
            }
        }
    }

    /// Refuses transfers that the machine's interface does not carry.
    fn check_length(&self, bytes: Bytes, at: &Range<usize>, field: &str) -> Result<(), ExperimentError> {
        if bytes <= self.longest {
            return Ok(());
        }
        let what = format!("the machine's interface carries no message of {bytes}");
        let mend = format!("write at most \"{}\"", self.longest);
        Err(self.text.refuse(at, field, &what, &mend))
    }

    /// Sources with their destinations.
    fn pairs(
        &self,
        raw: &RawFlows,
        group: u32,
    ) -> Result<Vec<(EndpointId, Vec<EndpointId>)>, ExperimentError> {
        let text = self.text;
        let from = self.endpoints(&raw.from, "flows.from")?;
        let spread = raw.spread.as_ref().map(|spread| spread.get_ref().as_str());
        if spread == Some("permutation") {
            if let Some(to) = &raw.to {
                let mend = "leave `to` out: destinations are those of `from`";
                return Err(text.refuse(&to.span(), "flows.to", "a permutation has no other", mend));
            }
            return Ok(permutation(&from, self.seed, group));
        }
        let Some(given) = &raw.to else {
            let mend = "write to = \"15\", or spread = \"permutation\"";
            return Err(text.refuse(&self.at, "flows.to", "flows go nowhere", mend));
        };
        let to = self.endpoints(given, "flows.to")?;
        let others = |source: EndpointId| to.iter().copied().filter(|to| *to != source).collect::<Vec<_>>();
        let pairs: Vec<(EndpointId, Vec<EndpointId>)> = match spread {
            None if to.len() == 1 => from.iter().map(|&source| (source, others(source))).collect(),
            None | Some("pairs") if to.len() == from.len() => {
                let pair = |(&source, &to): (&EndpointId, &EndpointId)| {
                    (source, if source == to { Vec::new() } else { vec![to] })
                };
                from.iter().zip(&to).map(pair).collect()
            }
            Some("random") => from.iter().map(|&source| (source, others(source))).collect(),
            Some("all") => {
                let each =
                    |&source: &EndpointId| others(source).into_iter().map(move |to| (source, vec![to]));
                from.iter().flat_map(each).collect()
            }
            None | Some("pairs") => {
                let what = format!("{} sources and {} destinations are no pairs", from.len(), to.len());
                let mend = "write as many of each, or spread = \"random\" or \"all\"";
                return Err(text.refuse(&given.span(), "flows.to", &what, mend));
            }
            Some(other) => {
                let at = raw.spread.as_ref().map_or(self.at.clone(), Spanned::span);
                let mend = "write \"pairs\", \"random\", \"all\" or \"permutation\"";
                return Err(text.refuse(&at, "flows.spread", &format!("\"{other}\" is none"), mend));
            }
        };
        if let Some((source, _)) = pairs.iter().find(|(_, to)| to.is_empty()) {
            let what = format!("endpoint {} would send to itself", source.0);
            return Err(text.refuse(&given.span(), "flows.to", &what, "name another destination"));
        }
        Ok(pairs)
    }

    /// A set of endpoints: `all`, numbers, ranges and names, with commas between them.
    fn endpoints(&self, given: &Spanned<String>, field: &str) -> Result<Vec<EndpointId>, ExperimentError> {
        let count = self.layout.endpoints();
        let mut found = Vec::new();
        for part in given.get_ref().split(',').map(str::trim) {
            let number = |text: &str| text.trim().parse::<u32>().ok().filter(|number| *number < count);
            if part == "all" {
                found.extend((0..count).map(EndpointId));
            } else if let Some(number) = number(part) {
                found.push(EndpointId(number));
            } else if let Some((first, last)) =
                part.split_once('-').and_then(|(a, b)| Some((number(a)?, number(b)?)))
                && first <= last
            {
                found.extend((first..=last).map(EndpointId));
            } else if let Ok(endpoint) = weft_topo::Topology::endpoint(self.layout, part) {
                found.push(endpoint);
            } else {
                let what = format!("\"{part}\" is no endpoint of this machine");
                let mend = format!("write numbers from 0 to {}, such as \"0-4\", or names", count - 1);
                return Err(self.text.refuse(&given.span(), field, &what, &mend));
            }
        }
        Ok(found)
    }
}

/// A random permutation without an endpoint that sends to itself: one circle through all of them.
fn permutation(all: &[EndpointId], seed: u64, group: u32) -> Vec<(EndpointId, Vec<EndpointId>)> {
    let mut rng = Stream::new(seed, group.into(), PURPOSE_PERMUTATION);
    let mut order = all.to_vec();
    for last in (1..order.len()).rev() {
        let other = below(last as u32 + 1, &mut || rng.next_u64()) as usize;
        order.swap(last, other);
    }
    let next = |place: usize| order[(place + 1) % order.len()];
    (0..order.len())
        .map(|place| (order[place], vec![next(place)]))
        .filter(|(from, to)| to[0] != *from)
        .collect()
}

const PURPOSE_PERMUTATION: u32 = 42;
const PURPOSE_PHASE: u32 = 43;

/// The time from the start of a flow to its first transfer, so that flows of one rate do not begin all at
/// once: drawn from the mean time between two transfers. Those with a gap have none.
fn phase(pace: Pace, sizes: &Sizes, rng: &mut Stream) -> Span {
    let Pace::Rate(rate) = pace else { return Span::ZERO };
    let interval = rate.span(Bytes::new(sizes.mean())).as_ps();
    Span::from_ps(((u128::from(interval) * u128::from(rng.next_u64())) >> 64) as u64)
}
