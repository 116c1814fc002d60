//! Facts about a machine that need no run: values, figures, proofs, a drawing, differences from another.

mod cost;
mod dataflow;
mod diff;
mod draw;
mod groups;
mod map;
mod self_test;

pub use cost::{MachineCost, cost};
pub use dataflow::{DataflowMachine, dataflow};
pub use diff::{FigureDifference, KeyDifference, MachineDifferences, diff};
pub use draw::draw;
pub use map::{MachineDrawing, MachineMap, MachinePath, PathError};
pub use self_test::{SelfTestReport, SelfTestRow, SelfTestWanted, self_test, self_test_of};
pub use weft_nic::communication_ip::self_test::TestPattern;
pub use weft_topo::SourcesCounted;

use super::{ExperimentError, MachineInput, ProgressListener};
use serde::Serialize;
use weft_assembly as assembly;
use weft_fabric::parameters::FlowControl;
pub use weft_machine::TemplateKeys;
use weft_machine::{
    Constant, Diagnostics, Fabric, FaultRule, Files, Machine, Nic, Outage, SHIPPED, check_text,
    check_with_files, list as shipped_machines,
};
use weft_results::{AssumedConstant, Stopwatch};
use weft_topo::{
    Attachment, ChannelPlan, ClassUse, Layout, MessageClass, MessageClasses, PatternLoad, Rerouted,
    Routing as _, Topology as _, WithChannels, figures_with_progress, prove, prove_classes,
};
use weft_units::{Bytes, EndpointId, PortId, SwitchId, Time};

/// A machine that ships with weft.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ShippedMachine {
    /// The name for `-m`.
    pub name: String,
    /// A description in one line.
    pub summary: String,
    /// Endpoints at the default size.
    pub endpoints: u64,
    /// Cores at the default size.
    pub cores: u64,
}

/// One value of a machine file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MachineValue {
    /// The key, such as `links.mezzanine.latency`.
    pub key: String,
    /// The value as written, or as `--set`.
    pub value: String,
    /// Measured, datasheet, assumed, calibrated, derived, unsourced or set.
    pub kind: &'static str,
    /// The document and place, and how the value follows from it.
    pub source: String,
}

/// Channel-load bound of a pattern.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PatternBound {
    /// The pattern.
    pub pattern: String,
    /// The highest load per endpoint, as a share of the injection rate, that no routing of this kind can
    /// exceed, for messages of one largest packet; `None` where the pattern does not exist on the machine.
    pub max_load: Option<f64>,
    /// Why it does not.
    pub undefined: Option<String>,
}

/// Links of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LinkCount {
    /// The kind.
    pub class: String,
    /// Links, each counted once for both directions.
    pub links: u64,
}

/// The report of `weft machine show`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MachineFigures {
    /// The name.
    pub machine: String,
    /// The title.
    pub title: String,
    /// Endpoints.
    pub endpoints: u64,
    /// Hosts.
    pub hosts: u64,
    /// Cores.
    pub cores: u64,
    /// Switches.
    pub switches: u64,
    /// Links, each counted once for both directions.
    pub links: u64,
    /// The same by kind.
    pub links_by_class: Vec<LinkCount>,
    /// The price of links and ports, in the currency of the file; `None`: it does not say all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<MachineCost>,
    /// The most links between two endpoints on a minimal path, injection and ejection included.
    pub diameter_hops: u32,
    /// Mean over all ordered pairs of distinct endpoints that can reach each other.
    pub mean_distance_hops: f64,
    /// Links that a halving of the endpoints cuts.
    pub bisection_links: u64,
    /// Which halving.
    pub bisection_cut: String,
    /// The endpoints that figures without a closed form are counted from: distances and the uniform load.
    #[serde(skip_serializing_if = "SourcesCounted::are_all")]
    pub sources: SourcesCounted,
    /// Bounds of the common patterns.
    pub bounds: Vec<PatternBound>,
    /// Head-room by kind of links; empty unless `fabric.flow_control` is `pause`.
    pub headroom: Vec<HeadroomLine>,
    /// About the memory that simulating it under load takes.
    pub memory_estimate_bytes: u64,
    /// Every value with its source.
    pub values: Vec<MachineValue>,
    /// The keys that packets would heed and fluids do not, where messages are fluids.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without_effect: Vec<String>,
}

/// The report of `weft machine check`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MachineCheck {
    /// The name.
    pub machine: String,
    /// Whether no set of packets can wait for each other in a circle.
    pub deadlock_free: bool,
    /// How that was shown, or the cycle.
    pub proof: Vec<String>,
    /// Why classes of messages do not wait for each other at endpoints, or how they can; empty on the ideal
    /// network.
    pub endpoint_proof: Vec<String>,
    /// How endpoints treat the classes of messages; empty on the ideal network.
    pub message_classes: Vec<MessageClassLine>,
    /// The machine that failures of links leave; `None`: none is ever off.
    pub failures: Option<FailureCheck>,
    /// Head-room by kind of links; empty unless `fabric.flow_control` is `pause`.
    pub headroom: Vec<HeadroomLine>,
    /// The values that are not known of the hardware.
    pub assumed: Vec<MachineValue>,
    /// Real time that reading the machine and building its layout took, with the tables of a graph.
    pub build_time_s: f64,
    /// Real time that the proof took, and all other checks.
    pub proof_time_s: f64,
}

/// The machine that failures leave, in [`MachineCheck`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FailureCheck {
    /// Intervals during which the same links are off.
    pub states: u64,
    /// Which endpoints are cut off from the others, and when.
    pub cuts: Vec<String>,
    /// Tables of rerouting, each for a set of links that are off together; `None`: routes do not change.
    pub tables: Option<u64>,
    /// How each of these was shown to be free of deadlock, or its cycle.
    pub proof: Vec<String>,
}

/// The head-room of the input buffers behind links of a kind, under pause.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HeadroomLine {
    /// The kind of links.
    pub class: String,
    /// Longest wait of a pause frame for the reverse line.
    pub wait_ps: u64,
    /// Pause frames on the line.
    pub frames_ps: u64,
    /// Of the link, there and back.
    pub propagation_ps: u64,
    /// From the frame's arrival until the sender's line begins no more packets.
    pub response_ps: u64,
    /// Bytes that must fit after the mark at which the sender pauses, the last packet included.
    pub needed_bytes: u64,
    /// The head-room that the machine has.
    pub kept_bytes: u64,
}

/// The head-room of each kind of links of a machine.
fn headroom(machine: &Machine, layout: &Layout) -> Vec<HeadroomLine> {
    let Ok(assembly::FabricParameters::Packet(parameters)) =
        assembly::fabric_parameters(machine, layout.clone(), 0)
    else {
        return Vec::new();
    };
    let given = match parameters.switch.flow_control {
        FlowControl::Pause(pause) => pause.headroom,
        FlowControl::Credits | FlowControl::Drop => None,
    };
    let line = |(class, needed): (&str, weft_fabric::Headroom)| HeadroomLine {
        class: class.to_owned(),
        wait_ps: needed.wait.as_ps(),
        frames_ps: needed.frames.as_ps(),
        propagation_ps: needed.propagation.as_ps(),
        response_ps: needed.response.as_ps(),
        needed_bytes: needed.bytes.get(),
        kept_bytes: given.unwrap_or(needed.bytes).get(),
    };
    parameters.headroom().into_iter().map(line).collect()
}

/// The proof that no packets wait for each other in a circle, or the circle, under a flow control. The
/// channel of tables around failures is not among the routing's.
fn channel_proof(flow_control: FlowControl, layout: &Layout, plan: ChannelPlan) -> Result<String, String> {
    let plan = ChannelPlan { routing: layout.virtual_channels().max(1), ..plan };
    let of_channels = || {
        let proved = match plan.is_plain() {
            true => prove(layout),
            false => prove(&WithChannels { layout, plan }),
        };
        proved.map(|proof| proof.to_string()).map_err(|cycle| cycle.to_string())
    };
    match flow_control {
        FlowControl::Credits => of_channels(),
        // A paused channel holds what waits for it, as one without credits does.
        FlowControl::Pause(_) => {
            let said = |text: String| {
                format!(
                    "{text}\nunder pause a channel that is told to stop holds its buffer, as one without \
                     credits does"
                )
            };
            of_channels().map(said).map_err(said)
        }
        FlowControl::Drop => {
            Ok("under drop no packet waits for a buffer behind a link: one that finds it full is lost"
                .to_owned())
        }
    }
}

/// A class of messages in [`MachineCheck`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MessageClassLine {
    /// The class: RTS, CTS, data, ACK or NACK.
    pub class: String,
    /// The classes that its arrival makes an endpoint send.
    pub causes: Vec<String>,
    /// The virtual channels on which it travels.
    pub virtual_channels: Vec<u32>,
    /// The classes that an endpoint must be able to send before it takes one; empty: it takes every one.
    pub refused_until: Vec<String>,
}

/// The machines that ship.
pub fn list() -> Vec<ShippedMachine> {
    let line = |listed: weft_machine::Listed| ShippedMachine {
        name: listed.name,
        summary: listed.title,
        endpoints: listed.endpoints,
        cores: listed.cores,
    };
    shipped_machines().into_iter().map(line).collect()
}

/// The names of the machines that ship.
pub fn shipped_names() -> impl Iterator<Item = &'static str> {
    weft_machine::SHIPPED.iter().map(|shipped| shipped.name)
}

/// An endpoint in the report of `weft machine names`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct EndpointName {
    /// The endpoint's number.
    pub endpoint: u32,
    /// The name, as `--from`, `--to` and mapping files write it.
    pub name: String,
    /// The host's number.
    pub host: u32,
}

/// A link in the report of `weft machine names --links`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LinkName {
    /// One end, as `[[faults]]` takes it: an endpoint or a switch.
    pub from: String,
    /// The other end.
    pub to: String,
    /// The port of the first end, where it is a switch's.
    pub from_port: Option<u32>,
    /// The port of the other end.
    pub to_port: Option<u32>,
    /// The kind of link.
    pub class: String,
}

/// The links of a machine, each once: those of endpoints first, then those between switches by the lower end.
///
/// # Errors
/// A machine that is not valid.
pub fn links(input: &MachineInput) -> Result<impl Iterator<Item = LinkName> + use<>, ExperimentError> {
    let (_, layout) = assembled(input)?;
    let layout = std::rc::Rc::new(layout);
    let class = |layout: &Layout, switch, port| {
        layout.link_classes()[usize::from(layout.link_class(switch, port).0)].to_owned()
    };
    let of_endpoints = layout.clone();
    let endpoints = (0..layout.endpoints()).map(EndpointId).map(move |endpoint| {
        let (switch, port) = of_endpoints.attachment(endpoint);
        LinkName {
            from: of_endpoints.endpoint_name(endpoint),
            to: of_endpoints.switch_name(switch),
            from_port: None,
            to_port: Some(port.0),
            class: class(&of_endpoints, switch, port),
        }
    });
    let switches = (0..layout.switches()).map(SwitchId).flat_map(move |switch| {
        let layout = layout.clone();
        (0..layout.ports(switch)).map(PortId).filter_map(move |port| match layout.peer(switch, port) {
            Attachment::Switch(other, far) if (switch, port) < (other, far) => Some(LinkName {
                from: layout.switch_name(switch),
                to: layout.switch_name(other),
                from_port: Some(port.0),
                to_port: Some(far.0),
                class: class(&layout, switch, port),
            }),
            _ => None,
        })
    });
    Ok(endpoints.chain(switches))
}

/// Says before a run that its routing upsets connections which want their packets in order.
pub(crate) fn warn_of_order(machine: &Machine, layout: &Layout, progress: &dyn ProgressListener) {
    let wants_order = || machine.nic.model().wants_order(assembly::links_may_fail(machine, layout));
    if machine.has_packets() && !layout.is_deterministic() && wants_order() {
        progress.warn(
            "nic.reliability.kind = \"go-back-n\" takes packets in order, and this routing sends those of a \
             pair over several paths: each that is overtaken is sent again, with all behind it; choose \
             \"selective-repeat\", or a routing of one path",
        );
    }
}

/// Says before a run which endpoints its failures cut off, and when, for each seed that draws its own; and
/// whether its routes lead on into links that are off.
pub(crate) fn warn_of_failures(
    machine: &Machine,
    layout: &Layout,
    seeds: &[u64],
    progress: &dyn ProgressListener,
) -> Result<(), ExperimentError> {
    if matches!(machine.fabric, Fabric::Ideal(_)) {
        return Ok(());
    }
    let is_random = machine.faults.iter().any(|rule| matches!(rule.outage, Outage::Random { .. }));
    let seeds = if is_random { seeds } else { &seeds[..seeds.len().min(1)] };
    for &seed in seeds {
        let faults = assembly::faults(machine, layout, seed).map_err(ExperimentError::input)?;
        let Some(failures) = assembly::failures(faults.as_ref(), layout, machine) else { continue };
        let drawn = if is_random { format!("seed {seed}: ") } else { String::new() };
        failures.cuts(layout).iter().for_each(|line| progress.warn(&format!("{drawn}{line}")));
        let keeps_routes = machine.reroute_after.is_none() && layout.is_deterministic();
        if keeps_routes && failures.between_switches(layout) {
            progress.warn(&format!(
                "{drawn}this routing goes on sending into links that are off, and what goes there is lost; \
                 fabric.reroute = \"up-down\" leads around them"
            ));
        }
    }
    Ok(())
}

/// Whether failures cut endpoints off from the others, under any of these seeds.
pub(super) fn cuts_endpoints_off(
    machine: &Machine,
    layout: &Layout,
    seeds: &[u64],
) -> Result<bool, ExperimentError> {
    for &seed in seeds {
        let faults = assembly::faults(machine, layout, seed).map_err(ExperimentError::input)?;
        let failures = assembly::failures(faults.as_ref(), layout, machine);
        let cuts =
            |failures: assembly::Failures| failures.states.iter().any(|state| !state.cut_off.is_empty());
        if failures.is_some_and(cuts) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Outages with a time of their own that begin at the end of a run or after it.
pub(super) fn outages_after(faults: &[FaultRule], end: Time) -> usize {
    faults.iter().map(|rule| rule.outages_after(end - Time::ZERO)).sum()
}

/// The endpoints of a machine by name, in the order of their numbers.
///
/// # Errors
/// A machine that is not valid.
pub fn names(input: &MachineInput) -> Result<impl Iterator<Item = EndpointName> + use<>, ExperimentError> {
    let (machine, layout) = assembled(input)?;
    let per_host = machine.host.endpoints_per_host;
    Ok((0..layout.endpoints()).map(move |endpoint| EndpointName {
        endpoint,
        name: layout.endpoint_name(EndpointId(endpoint)),
        host: endpoint / per_host,
    }))
}

/// The machine that `-m` names, with its text: a file where the name ends in `.toml` or holds a `/`,
/// otherwise one that ships.
///
/// # Errors
/// A name that does not ship, with the nearest that does; a file that cannot be read; everything that is
/// wrong with the machine, at the path that was named, since results keep the name without its folder.
pub fn input(path: &str, sets: &[String]) -> Result<MachineInput, ExperimentError> {
    let (name, text) = weft_machine::text(path).map_err(refused)?;
    let mut input = MachineInput { name, text, sets: sets.to_vec(), files: Files::new() };
    let machine = match is_shipped(&input) {
        true => checked(&input)?,
        false => check_text(path, &input.text, sets).map_err(refused)?,
    };
    input.files = machine.files;
    Ok(input)
}

/// The text of a machine file called `name` to start from: that of the machine `like`, with a comment above
/// every key; of `keys` it depends whether those that it does not set are there as comments.
///
/// # Errors
/// A name that `-m` does not take, and everything that is wrong with `like`.
pub fn template(name: &str, like: &str, keys: TemplateKeys) -> Result<String, ExperimentError> {
    weft_machine::template(name, like, keys).map_err(refused)
}

fn is_shipped(input: &MachineInput) -> bool {
    SHIPPED.iter().any(|shipped| shipped.name == input.name)
}

/// The machine, checked.
///
/// # Errors
/// Everything that is wrong with it.
pub fn checked(input: &MachineInput) -> Result<Machine, ExperimentError> {
    let origin = if is_shipped(input) { format!("{}.toml", input.name) } else { input.name.clone() };
    check_with_files(&origin, &input.text, &input.files, &input.sets).map_err(refused)
}

/// Diagnostics have several lines, and begin on one of their own.
fn refused(diagnostics: Diagnostics) -> ExperimentError {
    ExperimentError::input(format!("the machine cannot be used\n{diagnostics}"))
}

/// Machine and layout.
pub(crate) fn assembled(input: &MachineInput) -> Result<(Machine, Layout), ExperimentError> {
    let machine = checked(input)?;
    let layout = assembly::layout(&machine).map_err(ExperimentError::input)?;
    Ok((machine, layout))
}

/// Refuses messages that the machine's interface does not carry, given by `option`.
pub(crate) fn check_length(machine: &Machine, option: &str, bytes: Bytes) -> Result<(), ExperimentError> {
    let longest = machine.nic.model().longest_message();
    match bytes > longest {
        false => Ok(()),
        true => Err(ExperimentError::input(format!(
            "{option} {bytes}: the machine's interface carries no message of that size; write at most \
             {longest}"
        ))),
    }
}

/// A machine in full for `run.json`: every value in use with its source.
pub(crate) fn described(machine: &Machine) -> serde_json::Value {
    serde_json::json!({
        "name": machine.name,
        "title": machine.title,
        "description": machine.description,
        "endpoints": machine.topology.endpoints(),
        "values": machine.constants,
    })
}

/// The values in use that are not known of the hardware, for `run.json`.
pub(crate) fn assumed(machine: &Machine) -> Vec<AssumedConstant> {
    let constant = |constant: &Constant| AssumedConstant {
        key: constant.path.clone(),
        value: constant.value.clone(),
        source: source(constant),
    };
    machine.doubtful().map(constant).collect()
}

/// Where a value is from, and how it follows.
fn source(constant: &Constant) -> String {
    let range = [&constant.range, &constant.range_source];
    let parts = [&constant.source, &constant.how, &constant.row].into_iter().chain(range);
    parts.flatten().map(String::as_str).collect::<Vec<_>>().join("; ")
}

fn value(constant: &Constant) -> MachineValue {
    MachineValue {
        key: constant.path.clone(),
        value: constant.value.clone(),
        kind: constant.kind.name(),
        source: source(constant),
    }
}

/// How fast the links of each class carry messages of `bytes`, as a share of the endpoints' links.
pub(crate) fn relative_rates(machine: &Machine, layout: &Layout, bytes: Bytes) -> Vec<f64> {
    let links = assembly::links(machine, layout).unwrap_or_default();
    let seconds = |link| assembly::message_time(machine, link, bytes).as_ps_f64();
    let endpoint = links.first().map_or(1.0, seconds);
    links.iter().map(|link| endpoint / seconds(link)).collect()
}

/// A machine's values and figures.
///
/// # Errors
/// A machine that does not check.
pub fn show(
    input: &MachineInput,
    progress: &dyn ProgressListener,
) -> Result<MachineFigures, ExperimentError> {
    progress.advance(0.0, "building");
    let (machine, layout) = assembled(input)?;
    let figures = figures_with_progress(&layout, &mut |share| progress.advance(share, "figures"));
    let rates = relative_rates(&machine, &layout, machine.packet.payload);
    let is_ideal = matches!(machine.fabric, Fabric::Ideal(_));
    let bound = |PatternLoad { pattern, load }: PatternLoad| PatternBound {
        pattern: pattern.to_string(),
        // The ideal network has no channels between its endpoints.
        max_load: load.as_ref().ok().map(|load| if is_ideal { 1.0 } else { load.bound(&rates) }),
        undefined: load.err().map(|why| why.to_string()),
    };
    Ok(MachineFigures {
        endpoints: figures.endpoints.into(),
        hosts: machine.hosts(),
        cores: machine.cores(),
        switches: figures.switches.into(),
        links: figures.links.iter().map(|class| class.links).sum(),
        links_by_class: figures
            .links
            .iter()
            .map(|count| LinkCount { class: count.class.clone(), links: count.links })
            .collect(),
        cost: cost::priced(&machine, &layout).ok(),
        diameter_hops: figures.diameter + 2,
        mean_distance_hops: figures.mean_distance + 2.0,
        bisection_links: figures.bisection.links,
        bisection_cut: figures.bisection.cut,
        sources: figures.sources,
        bounds: figures.channel_loads.into_iter().map(bound).collect(),
        headroom: headroom(&machine, &layout),
        memory_estimate_bytes: assembly::memory_estimate(&machine, 0).get(),
        values: machine.constants.iter().map(value).collect(),
        without_effect: without_effect(input, &machine)?,
        title: machine.title,
        machine: machine.name,
    })
}

/// The keys of a machine that it has with packets and not with fluids.
fn without_effect(input: &MachineInput, machine: &Machine) -> Result<Vec<String>, ExperimentError> {
    if !machine.flows {
        return Ok(Vec::new());
    }
    let sets = input.sets.iter().map(String::as_str).chain(["fabric.kind=packet"]);
    let sets = sets.map(str::to_owned).collect();
    let packets = checked(&MachineInput { sets, ..input.clone() })?;
    let has = |path: &str| machine.constants.iter().any(|constant| constant.path == path);
    Ok(packets.constants.into_iter().map(|constant| constant.path).filter(|path| !has(path)).collect())
}

/// The deadlock proof.
///
/// # Errors
/// A machine that does not check.
pub fn check(input: &MachineInput) -> Result<MachineCheck, ExperimentError> {
    let building = Stopwatch::start();
    let (machine, layout) = assembled(input)?;
    let build_time_s = building.seconds();
    let proving = Stopwatch::start();
    assembly::check(&machine, &layout).map_err(ExperimentError::input)?;
    let lines = |text: String| -> Vec<String> { text.lines().map(|line| line.trim().to_owned()).collect() };
    let assumed = machine.doubtful().map(value).collect();
    let plan = assembly::channel_plan(&machine, &layout).map_err(ExperimentError::input)?;
    let (Fabric::Packet { switch, .. }, Some(plan)) = (&machine.fabric, plan.filter(|_| !machine.flows))
    else {
        let network = if machine.flows { "a network of fluids" } else { "the ideal network" };
        let proof = vec![format!("{network} has no buffers to wait for")];
        let (endpoint_proof, message_classes) = (Vec::new(), Vec::new());
        let (machine, deadlock_free, headroom) = (machine.name, true, Vec::new());
        let failures = None;
        return Ok(MachineCheck {
            machine,
            deadlock_free,
            proof,
            endpoint_proof,
            message_classes,
            failures,
            headroom,
            assumed,
            build_time_s,
            proof_time_s: proving.seconds(),
        });
    };
    let mut classes = machine.nic.model().message_classes(plan.total());
    for known in &mut classes.0 {
        let table = &switch.channels.classes;
        let channels = |class: u32| plan.of_class(class);
        known.virtual_channels = match known.class {
            MessageClass::Rts => table.of_messages(false).flat_map(channels).collect(),
            MessageClass::Cts => table.of_messages(true).flat_map(channels).collect(),
            // Data that is sent at once asks for nothing and answers nothing; that of an announced message
            // is a reply.
            MessageClass::Data => {
                table.of_messages(false).chain(table.of_messages(true)).flat_map(channels).collect()
            }
            MessageClass::Ack | MessageClass::Nack => table.of_answers().flat_map(channels).collect(),
            MessageClass::Reduction => table.of_messages(false).flat_map(channels).collect(),
        };
    }
    let (failures, tables_are_free) = check_failures(&machine, &layout)?;
    let channels = channel_proof(switch.flow_control, &layout, plan);
    let endpoints = prove_classes(&classes).map(|proof| proof.to_string()).map_err(|cycle| cycle.to_string());
    let (groups, trees_are_covered) =
        groups::prove_groups(&machine, &layout).map_err(ExperimentError::input)?;
    let deadlock_free = channels.is_ok() && endpoints.is_ok() && trees_are_covered && tables_are_free;
    let said = |proof: Result<String, String>| lines(proof.unwrap_or_else(|cycle| cycle));
    Ok(MachineCheck {
        headroom: headroom(&machine, &layout),
        deadlock_free,
        proof: said(channels).into_iter().chain(groups).collect(),
        endpoint_proof: said(endpoints).into_iter().chain(kept_by_programs(&machine.nic)).collect(),
        message_classes: classes.0.iter().map(|known| class_line(known, &classes)).collect(),
        failures,
        assumed,
        build_time_s,
        proof_time_s: proving.seconds(),
        machine: machine.name,
    })
}

/// The warning that no proof covers programs, which decide when their ports take packets.
fn kept_by_programs(nic: &Nic) -> Option<String> {
    matches!(nic, Nic::CommunicationIp(_)).then(|| {
        "ports keep what their programs do not read: kernels that only send to each other stand still"
            .to_owned()
    })
}

/// The states of a machine's failures with the proofs of their tables, and whether all of these hold. Random
/// failures are those of seed 1.
fn check_failures(
    machine: &Machine,
    layout: &Layout,
) -> Result<(Option<FailureCheck>, bool), ExperimentError> {
    let faults = assembly::faults(machine, layout, 1).map_err(ExperimentError::input)?;
    let Some(failures) = assembly::failures(faults.as_ref(), layout, machine) else {
        return Ok((None, true));
    };
    let (states, cuts) = (failures.states.len() as u64, failures.cuts(layout));
    let Some(after) = machine.reroute_after else {
        return Ok((Some(FailureCheck { states, cuts, tables: None, proof: Vec::new() }), true));
    };
    let reroutes = failures.reroutes(layout, after).map_err(ExperimentError::input)?;
    let (mut proof, mut turns) = (Vec::new(), 0);
    for (number, tables) in reroutes.tables.iter().enumerate() {
        match prove(&Rerouted::new(layout, &reroutes.wiring, tables)) {
            Ok(shown) => turns += shown.turns,
            Err(cycle) => proof.push(format!("tables {number}: {cycle}")),
        }
    }
    let (count, are_free) = (reroutes.tables.len(), proof.is_empty());
    let has_successors = count > 1;
    if are_free {
        proof.push(format!(
            "up*/down* tables of {count} sets of failed links: all {turns} turns raise the channel's rank"
        ));
        proof.push(
            "changes of routes: no packet goes back from the virtual channel of the tables to those of the \
             routing, so no circle closes over both"
                .to_owned(),
        );
        if has_successors {
            proof.push(
                "tables that follow others: switches drop what waits in the channel of the tables".to_owned(),
            );
        }
    }
    Ok((Some(FailureCheck { states, cuts, tables: Some(count as u64), proof }), are_free))
}

/// The line of a class among those that the interface knows.
fn class_line(known: &ClassUse, all: &MessageClasses) -> MessageClassLine {
    let is_known = |class: &&MessageClass| all.0.iter().any(|known| known.class == **class);
    MessageClassLine {
        class: known.class.to_string(),
        causes: known.class.causes().iter().filter(is_known).map(ToString::to_string).collect(),
        virtual_channels: known.virtual_channels.iter().copied().collect(),
        refused_until: known.refused_until.iter().map(ToString::to_string).collect(),
    }
}
