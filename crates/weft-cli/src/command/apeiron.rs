//! `weft apeiron`: dataflow kernels on the Communication IP.

use super::run::{ExecutionOptions, RanksWanted};
use crate::exit::{Failure, Status};
use crate::options::{MachineOptions, SetOptions, whole_number};
use crate::output;
use crate::place::write_whole;
use clap::{Args, Subcommand, ValueHint};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use weft_apeiron::build::{self, BuildPlan, Step, Toolchain};
use weft_apeiron::{
    Design, DesignError, DesignStream, Mistake, connections, linker, machine as design_machine, picture,
};
use weft_sim::experiment::machine::{self, DataflowMachine};
use weft_units::Clock;

/// The variable by which host programs learn of their machine.
const MACHINE_VARIABLE: &str = "WEFT_APEIRON";

/// The subcommands of `weft apeiron`.
#[derive(Subcommand)]
pub enum ApeironCommand {
    /// Check a config.yaml: every mistake with its line and the mend
    Check(ConfigOptions),
    /// Show the connections and frequency of a design, as vpp_linker.cfg has them
    Show(ConfigOptions),
    /// Draw a design as SVG: kernels, dispatchers and aggregators, ports, links
    Draw(DrawOptions),
    /// Build kernels and host programs with the C++ compiler, and the description that programs take by -b
    Build(BuildOptions),
    /// Run a host program of a design in virtual time, one process on each node
    Run(Box<RunOptions>),
}

/// A design.
#[derive(Args)]
pub struct ConfigOptions {
    /// The config.yaml of the design
    #[arg(value_name = "CONFIG", value_hint = ValueHint::FilePath)]
    config: PathBuf,
}

/// Options of `weft apeiron draw`.
#[derive(Args)]
pub struct DrawOptions {
    #[command(flatten)]
    design: ConfigOptions,

    /// The picture
    #[arg(short, long, value_name = "FILE.svg", value_hint = ValueHint::FilePath)]
    output: PathBuf,
}

/// Options of `weft apeiron build`.
#[derive(Args)]
pub struct BuildOptions {
    #[command(flatten)]
    design: ConfigOptions,

    /// The description of the design; programs are built beside it, kernels below FILE.d
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: PathBuf,
}

/// Options of `weft apeiron run`.
#[derive(Args)]
pub struct RunOptions {
    #[command(flatten)]
    design: ConfigOptions,

    #[command(flatten)]
    sets: SetOptions,

    /// Nodes that run the program, from the first on; by default all of the machine, which has one unless
    /// topology.dims says more
    #[arg(short = 'n', long, value_name = "N", value_parser = whole_number(1..=65536))]
    #[arg(allow_negative_numbers = true)]
    nodes: Option<u32>,

    #[command(flatten)]
    execution: ExecutionOptions,
}

impl ApeironCommand {
    /// Does it. `words` is the command as typed.
    pub fn run(self, words: &[String]) -> Result<Status, Failure> {
        match self {
            ApeironCommand::Check(options) => check(&options),
            ApeironCommand::Show(options) => {
                output::text(&linker::config(&options.design()?))?;
                Ok(Status::Done)
            }
            ApeironCommand::Draw(options) => {
                let picture = picture::svg(&options.design.design()?);
                write_whole(&options.output, picture.as_bytes())?;
                Ok(Status::Done)
            }
            ApeironCommand::Build(options) => options.build(),
            ApeironCommand::Run(options) => options.run(words),
        }
    }
}

impl From<DesignError> for Failure {
    fn from(error: DesignError) -> Failure {
        match error {
            DesignError::Unwritable { .. } => Failure::not_kept(error.to_string()),
            _ => Failure::input(error.to_string()),
        }
    }
}

impl ConfigOptions {
    fn design(&self) -> Result<Design, Failure> {
        Ok(Design::read(&self.config)?)
    }
}

/// Says what a design is, or what is wrong with it.
fn check(options: &ConfigOptions) -> Result<Status, Failure> {
    let design = options.design()?;
    connections::check(&design)?;
    let (megahertz, links) = (design.megahertz, design.links);
    let mut text = format!("{}: {} MHz, {links} InterNode ports\n", design.name(), megahertz);
    for kernel in &design.kernels {
        let (name, inputs, outputs) = (&kernel.name, kernel.inputs, kernel.outputs);
        let _ = match kernel.port {
            Some(port) => writeln!(text, "port {port}: {name}, {inputs} input and {outputs} output channels"),
            None => writeln!(text, "no port: {name}"),
        };
    }
    for DesignStream { name, from, to, depth, count, .. } in &design.streams {
        let count = count.map_or(String::new(), |count| format!("{count} x "));
        let _ = writeln!(text, "stream {name}: from {from} to {to}, {count}{depth} words");
    }
    output::text(&text)?;
    Ok(Status::Done)
}

/// The machine of a design, with what a user has changed.
fn machine_of(design: &Design, sets: &SetOptions) -> Result<(MachineOptions, DataflowMachine), Failure> {
    let mut all = design_machine::sets(design);
    all.extend_from_slice(&sets.sets);
    let seen = machine::dataflow(&machine::input(design_machine::MACHINE, &all)?)?;
    check_clocks(design, &seen)?;
    if seen.switch_clock.is_none() {
        all.extend(design_machine::without_switch(design));
    }
    let needed = design_machine::links_of(&seen.nodes);
    if needed > design.links {
        let [x, y, z] = seen.nodes;
        let mistake = Mistake {
            file: design.name(),
            line: design.links_line,
            what: format!("links: {} are too few for {x} x {y} x {z} nodes", design.links),
            mend: format!("write links: {needed}, or fewer nodes in --set topology.dims"),
        };
        return Err(DesignError::Mistakes(vec![mistake]).into());
    }
    all.extend(design_machine::kernels_apart(seen.dispatcher));
    let machine =
        MachineOptions { machine: design_machine::MACHINE.to_owned(), sets: SetOptions { sets: all } };
    Ok((machine, seen))
}

/// Refuses a machine whose Communication IP has another clock than the design.
fn check_clocks(design: &Design, seen: &DataflowMachine) -> Result<(), DesignError> {
    let own = Clock::from_hertz(1_000_000 * u64::from(design.megahertz));
    let clocks = [("nic.clock", Some(seen.clock)), ("switch.clock", seen.switch_clock)];
    let others = clocks.into_iter().filter_map(|(key, clock)| Some((key, clock?)));
    let mistakes: Vec<Mistake> = others
        .filter(|(_, clock)| own != Some(*clock))
        .map(|(key, clock)| Mistake {
            file: design.name(),
            line: design.freq_line,
            what: format!(
                "the design has freq: {}, and {key} is {clock}: kernels and Communication IP have one clock",
                design.megahertz
            ),
            mend: format!(
                "leave --set {key} out, and write its frequency here; the IP carries 100 MHz at most"
            ),
        })
        .collect();
    if mistakes.is_empty() { Ok(()) } else { Err(DesignError::Mistakes(mistakes)) }
}

impl BuildOptions {
    fn build(&self) -> Result<Status, Failure> {
        let design = self.design.design()?;
        machine_of(&design, &SetOptions { sets: Vec::new() })?;
        let library = weft_host::client_library().map_err(|missing| Failure::input(missing.to_string()))?;
        let compiler = std::env::var_os("CXX").filter(|word| !word.is_empty()).unwrap_or("c++".into());
        let options = std::env::var("CXXFLAGS").unwrap_or_default();
        let options = options.split_whitespace().map(OsString::from).collect();
        let toolchain = Toolchain { compiler, options, library };
        let plan = build::plan(&design, &toolchain, &self.output)?;
        plan.check_places()?;
        let BuildPlan { files, steps, description } = plan;
        prepare(&self.output)?;
        // What is there is not that of this design any more, should the build fail.
        let _ = std::fs::remove_file(&description.0);
        for (path, text) in &files {
            write(path, text)?;
        }
        for step in &steps {
            compile(step)?;
        }
        write_whole(&description.0, description.1.as_bytes())?;
        Ok(Status::Done)
    }
}

/// Makes the folder of a design's parts, so that a place which cannot be written is told by its own name.
fn prepare(output: &Path) -> Result<(), Failure> {
    let mut parts = output.as_os_str().to_owned();
    parts.push(".d");
    let made = std::fs::create_dir_all(parts);
    Ok(made.map_err(|error| DesignError::Unwritable { path: output.to_owned(), error })?)
}

/// Writes a file that is built from, and the folders that it lies in.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let written = std::fs::create_dir_all(folder).and_then(|()| {
        // One that is as it was keeps its time.
        match std::fs::read_to_string(path).is_ok_and(|before| before == text) {
            true => Ok(()),
            false => std::fs::write(path, text),
        }
    });
    Ok(written.map_err(|error| DesignError::Unwritable { path: path.to_owned(), error })?)
}

/// Prints a command, and runs it.
fn compile(step: &Step) -> Result<(), Failure> {
    let line: Vec<String> = step.words.iter().map(|word| quoted(&word.to_string_lossy())).collect();
    output::text(&format!("{}\n", line.join(" ")))?;
    let [compiler, arguments @ ..] = &step.words[..] else { return Ok(()) };
    let status = Command::new(compiler).args(arguments).status().map_err(|error| {
        Failure::input(format!(
            "cannot run the C++ compiler, {}: {error}; install one (apt-get install g++), or name it in CXX",
            compiler.display()
        ))
    })?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::input(format!(
            "{} was not built: mend what the compiler says above",
            step.makes.display()
        ))),
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=+,:@%".contains(&byte);
    match !word.is_empty() && word.bytes().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

impl RunOptions {
    fn run(self, words: &[String]) -> Result<Status, Failure> {
        let RunOptions { design, sets, nodes, mut execution } = self;
        let design = design.design()?;
        let (machine, seen) = machine_of(&design, &sets)?;
        let [x, y, z] = seen.nodes;
        let all = x.saturating_mul(y).saturating_mul(z);
        if nodes.is_some_and(|nodes| nodes > all) {
            return Err(Failure::input(format!(
                "the machine has {all} nodes; write -n {all} or less, or more in --set topology.dims"
            )));
        }
        if execution.places.ppn.is_some_and(|ppn| ppn != 1) {
            return Err(Failure::input("a node has one host program here; leave --ppn out"));
        }
        execution.places.ppn = Some(1);
        let (latency, rate) =
            seen.sync.map_or((0, 0), |sync| (sync.latency.as_ps(), sync.rate.bits_per_second()));
        let (payload, megahertz, contents) = (seen.payload.get(), design.megahertz, build::contents(&design));
        let (version, ddr) = (build::VERSION, seen.ddr_latency);
        let surroundings =
            format!("{version} {x} {y} {z} {ddr} {latency} {rate} {payload} {megahertz} {contents}");
        let environment = vec![(OsString::from(MACHINE_VARIABLE), OsString::from(surroundings))];
        let ranks = nodes.unwrap_or(all);
        execution.run(RanksWanted { machine, ranks, environment, may_use_mpi: false }, words)
    }
}
