//! `weft machine`: what there is to know of a machine without running anything on it.

mod diff;
mod draw;
mod new;
mod selftest;

use crate::exit::{Failure, Status};
use crate::options::{FormatOptions, SetOptions, machine_name};
use crate::output;
use crate::progress::Bar;
use clap::{Args, Subcommand};
use weft_sim::experiment::MachineInput;
use weft_sim::experiment::machine::{
    self, EndpointName, HeadroomLine, LinkName, MachineCheck, MachineFigures, MachineValue, MessageClassLine,
    ShippedMachine, SourcesCounted,
};
use weft_units::Span;

/// The subcommands of `weft machine`.
#[derive(Subcommand)]
pub enum MachineCommand {
    /// List the machines that ship with weft
    List(FormatOptions),
    /// Show every value with its source, and figures: diameter, bisection, channel-load bounds
    Show(OneMachine),
    /// Show the deadlock proof, and how many values no source gives: --assumed lists them
    Check(CheckOptions),
    /// List the endpoints by name, as weft osu and mapping files write them; the links with --links
    Names(NamesOptions),
    /// Draw the switches and links as SVG; by groups, subtrees or layers above 1,000 switches
    Draw(draw::DrawOptions),
    /// List the values and figures in which two machines differ; status 1 if there are any
    Diff(diff::DiffOptions),
    /// Run the self-test of the machine's interface: packet generator, consumer, performance counter
    Selftest(selftest::SelftestOptions),
    /// Print a machine file to start from: that of another machine, with a comment above every key
    New(new::NewOptions),
}

/// The name of a machine, with or without -m.
#[derive(Args)]
pub struct MachineName {
    /// A machine that ships with weft, or a machine file
    #[arg(value_name = "NAME|FILE", required_unless_present = "by_option")]
    #[arg(value_parser = machine_name(), hide_possible_values = true)]
    machine: Option<String>,

    /// The same, as commands that simulate take it
    #[arg(short = 'm', long = "machine", value_name = "NAME|FILE", value_parser = machine_name())]
    #[arg(hide_possible_values = true, conflicts_with = "machine")]
    by_option: Option<String>,
}

impl MachineName {
    /// The name, or the path of the file.
    pub fn get(&self) -> &str {
        // clap has refused that neither is given.
        self.machine.as_ref().or(self.by_option.as_ref()).map_or("", String::as_str)
    }
}

/// One machine.
#[derive(Args)]
pub struct OneMachine {
    #[command(flatten)]
    name: MachineName,

    #[command(flatten)]
    sets: SetOptions,

    #[command(flatten)]
    format: FormatOptions,
}

impl OneMachine {
    /// The machine with its text.
    fn input(&self) -> Result<MachineInput, Failure> {
        Ok(machine::input(self.name.get(), &self.sets.sets)?)
    }
}

/// Options of `weft machine check`.
#[derive(Args)]
pub struct CheckOptions {
    #[command(flatten)]
    one: OneMachine,

    /// List the values that no source gives, instead of their number
    #[arg(long)]
    assumed: bool,
}

/// The things whose names are listed.
#[derive(Args)]
pub struct NamesOptions {
    #[command(flatten)]
    one: OneMachine,

    /// List the links instead, by their ends, as [[faults]] takes them
    #[arg(long)]
    links: bool,
}

impl MachineCommand {
    /// Does it.
    pub fn run(self) -> Result<Status, Failure> {
        match self {
            MachineCommand::List(format) => list(format),
            MachineCommand::Show(one) => show(&one),
            MachineCommand::Check(options) => check(&options),
            MachineCommand::Names(NamesOptions { one, links: true }) => links(&one),
            MachineCommand::Names(NamesOptions { one, links: false }) => names(&one),
            MachineCommand::Draw(options) => options.run(),
            MachineCommand::Diff(options) => options.run(),
            MachineCommand::Selftest(options) => options.run(),
            MachineCommand::New(options) => options.run(),
        }
    }
}

fn list(format: FormatOptions) -> Result<Status, Failure> {
    let machines = machine::list();
    if format.json {
        output::document(&serde_json::json!({ "command": "machine list", "rows": machines }))?;
    } else {
        let row = |m: ShippedMachine| [m.name, m.endpoints.to_string(), m.cores.to_string(), m.summary];
        output::text(&output::table(
            ["machine", "endpoints", "cores", ""],
            [false, true, true, false],
            machines.into_iter().map(row),
        ))?;
    }
    Ok(Status::Done)
}

fn show(one: &OneMachine) -> Result<Status, Failure> {
    let input = one.input()?;
    let figures = machine::show(&input, &Bar::new(false))?;
    if one.format.json {
        output::document(&figures)?
    } else {
        output::page(&figures_text(&figures))?
    }
    Ok(Status::Done)
}

fn figures_text(figures: &MachineFigures) -> String {
    let by_class: Vec<String> =
        figures.links_by_class.iter().map(|count| format!("{} {}", count.links, count.class)).collect();
    let by_class = by_class.join(", ");
    let cost = figures.cost.map_or_else(String::new, |cost| {
        format!("; price {}, {:.1} for an endpoint", cost.total, cost.per_endpoint())
    });
    let lines = [
        ["endpoints", &figures.endpoints.to_string()],
        ["switches", &figures.switches.to_string()],
        ["hosts, cores", &format!("{}, {}", figures.hosts, figures.cores)],
        ["links", &format!("{} ({by_class}){cost}", figures.links)],
        ["diameter", &format!("{} hops", figures.diameter_hops)],
        ["mean distance", &format!("{:.4} hops", figures.mean_distance_hops)],
        ["bisection", &format!("{} links, {}", figures.bisection_links, figures.bisection_cut)],
        [
            "memory to simulate",
            &format!("about {}B", output::thousands(figures.memory_estimate_bytes as f64)),
        ],
    ];
    let head = output::table(
        [&figures.machine, ""],
        [false, false],
        lines.into_iter().map(|line| line.map(str::to_owned)),
    );
    let bounds = figures.bounds.iter().map(|bound| {
        let max_load = bound.max_load.map_or("-".to_owned(), |load| format!("{load:.4}"));
        let is_sampled = bound.pattern == "uniform" && figures.sources == SourcesCounted::Sample;
        let sampled = is_sampled.then(|| "of the mean over links, from a sample; some carry more".to_owned());
        [bound.pattern.clone(), max_load, bound.undefined.clone().or(sampled).unwrap_or_default()]
    });
    let bounds = output::table(["pattern", "channel-load bound", ""], [false, true, false], bounds);
    let headroom = headroom_text(&figures.headroom);
    let without_effect = match &figures.without_effect[..] {
        [] => String::new(),
        keys => format!("\nwithout effect under flows: {}\n", keys.join(", ")),
    };
    format!("{head}\n{bounds}\n{headroom}{}{without_effect}", values_text(&figures.values))
}

/// The head-room of each kind of links, with a warning where the machine keeps less than it needs.
fn headroom_text(lines: &[HeadroomLine]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let ns = |ps: u64| format!("{:.1}", Span::from_ps(ps).as_ns_f64());
    let rows = lines.iter().map(|line| {
        let is_short = line.kept_bytes < line.needed_bytes;
        [
            line.class.clone(),
            ns(line.wait_ps),
            ns(line.frames_ps),
            ns(line.propagation_ps),
            ns(line.response_ps),
            line.needed_bytes.to_string(),
            line.kept_bytes.to_string(),
            if is_short { "WARNING: too small, packets may be lost".to_owned() } else { String::new() },
        ]
    });
    let heads = [
        "links",
        "wait (ns)",
        "frames (ns)",
        "propagation (ns)",
        "response (ns)",
        "head-room needed (B)",
        "kept (B)",
        "",
    ];
    let table = output::table(heads, [false, true, true, true, true, true, true, false], rows);
    format!("{table}\n")
}

fn values_text(values: &[MachineValue]) -> String {
    let rows = values.iter().map(|v| [v.key.clone(), v.value.clone(), v.kind.to_owned(), v.source.clone()]);
    output::table(["key", "value", "kind", "source"], [false; 4], rows)
}

fn names(one: &OneMachine) -> Result<Status, Failure> {
    let rows = machine::names(&one.input()?)?;
    if one.format.json {
        let rows: Vec<_> = rows.collect();
        output::document(&serde_json::json!({ "command": "machine names", "rows": rows }))?;
    } else {
        let row = |row: EndpointName| [row.endpoint.to_string(), row.name, row.host.to_string()];
        output::text(&output::table(["endpoint", "name", "host"], [true, false, true], rows.map(row)))?;
    }
    Ok(Status::Done)
}

fn links(one: &OneMachine) -> Result<Status, Failure> {
    let rows = machine::links(&one.input()?)?;
    if one.format.json {
        let rows: Vec<_> = rows.collect();
        output::document(&serde_json::json!({ "command": "machine names --links", "rows": rows }))?;
    } else {
        let port = |port: Option<u32>| port.map_or("-".to_owned(), |port| port.to_string());
        let row = |row: LinkName| [row.from, row.to, port(row.from_port), port(row.to_port), row.class];
        let columns = ["from", "to", "port", "port there", "class"];
        output::text(&output::table(columns, [false, false, true, true, false], rows.map(row)))?;
    }
    Ok(Status::Done)
}

fn check(CheckOptions { one, assumed }: &CheckOptions) -> Result<Status, Failure> {
    let check = machine::check(&one.input()?)?;
    if one.format.json {
        output::document(&check)?
    } else {
        output::page(&check_text(&check, *assumed))?
    }
    Ok(if check.deadlock_free { Status::Done } else { Status::EndedBadly })
}

/// The proof, and the values that no source gives: their number, or with `lists_assumed` all of them.
fn check_text(check: &MachineCheck, lists_assumed: bool) -> String {
    let verdict = if check.deadlock_free { "free of deadlock" } else { "NOT free of deadlock" };
    let proof: String =
        check.proof.iter().chain(&check.endpoint_proof).map(|line| format!("  {line}\n")).collect();
    let assumed = match check.assumed.as_slice() {
        [] => "every value is known of the hardware\n".to_owned(),
        values if !lists_assumed => {
            let are = if values.len() == 1 { "value is" } else { "values are" };
            format!("{} {are} not known of the hardware: --assumed lists them\n", values.len())
        }
        values => format!("values that are not known of the hardware:\n{}", values_text(values)),
    };
    let classes = match check.message_classes.as_slice() {
        [] => String::new(),
        classes => format!("classes of messages at endpoints:\n{}\n", classes_text(classes)),
    };
    let failures = check.failures.as_ref().map_or(String::new(), |failures| {
        let states = match failures.states {
            1 => "one state of failed links".to_owned(),
            states => format!("{states} states of failed links"),
        };
        let lines = failures.proof.iter().chain(&failures.cuts).map(|line| format!("  {line}\n"));
        format!("{states}:\n{}", lines.collect::<String>())
    });
    let headroom = headroom_text(&check.headroom);
    format!("{}: {verdict}\n{proof}{failures}{classes}{headroom}{assumed}", check.machine)
}

fn classes_text(classes: &[MessageClassLine]) -> String {
    let rows = classes.iter().map(|line| {
        let channels: Vec<String> = line.virtual_channels.iter().map(ToString::to_string).collect();
        let taken = match line.refused_until.as_slice() {
            [] => "whatever comes".to_owned(),
            needed => format!("when {} can be sent", needed.join(", ")),
        };
        [line.class.clone(), line.causes.join(", "), channels.join(", "), taken]
    });
    output::table(["class", "causes", "virtual channels", "taken"], [false; 4], rows)
}
