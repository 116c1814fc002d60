//! Options that commands share.

use crate::exit::Failure;
use crate::place::OutputFile;
use crate::value::{Suggested, suggested};
use clap::builder::{StringValueParser, TypedValueParser};
use clap::{Args, ValueHint};
use std::fs::File;
use std::io::Read;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use weft_results::{Existing, ResultsWriter, Table};
use weft_sim::experiment::replay::Mapping;
use weft_sim::experiment::{
    ExperimentOptions, MachineInput, Output, RtlOptions, RtlTally, Start, WavesOptions, machine,
};
use weft_units::Span;

/// The machine.
#[derive(Args)]
pub struct MachineOptions {
    /// A machine that ships with weft (see `weft machine list`), or a machine file
    #[arg(short, long, value_name = "NAME|FILE", value_parser = machine_name(), hide_possible_values = true)]
    pub machine: String,

    #[command(flatten)]
    pub sets: SetOptions,
}

/// The name of a machine that ships, or the path of a file.
pub fn machine_name() -> Suggested<StringValueParser> {
    suggested(machine::shipped_names(), StringValueParser::new())
}

/// Changes to a machine.
#[derive(Args)]
pub struct SetOptions {
    /// Change a value of the machine file, such as topology.dims=[8,8,8]; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_set)]
    pub sets: Vec<String>,
}

fn parse_set(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() && !value.trim().is_empty() => Ok(text.to_owned()),
        _ => Err("a value is set with KEY=VALUE, such as topology.dims=[8,8,8]".to_owned()),
    }
}

impl MachineOptions {
    /// The machine with its text.
    pub fn input(&self) -> Result<MachineInput, Failure> {
        Ok(machine::input(&self.machine, &self.sets.sets)?)
    }

    /// The machine file; `None`: the machine ships with weft.
    pub fn file(&self) -> Option<&Path> {
        let is_file = self.machine.ends_with(".toml") || self.machine.contains(std::path::is_separator);
        is_file.then(|| Path::new(&self.machine))
    }

    /// Changes these values of the machine as well, except those that the user has changed; returns the
    /// changes.
    pub fn set_others(&mut self, values: &[(&str, String)]) -> Vec<String> {
        let is_set = |key: &str| {
            self.sets.sets.iter().any(|set| set.split_once('=').is_some_and(|(other, _)| other.trim() == key))
        };
        let others = values.iter().filter(|(key, _)| !is_set(key));
        let others: Vec<String> = others.map(|(key, value)| format!("{key}={value}")).collect();
        self.sets.sets.extend_from_slice(&others);
        others
    }
}

/// The mappings that need no file.
pub const MAPS: [&str; 4] = ["linear", "switch", "node", "random"];

/// The places of ranks.
#[derive(Args)]
pub struct PlaceOptions {
    /// Where ranks sit: linear, switch, node, random, or a file whose line n names the place of rank n. Of J
    /// jobs, switch gives each every J-th switch, node every J-th host
    #[arg(long, value_name = "linear|switch|node|random|FILE", default_value = "linear")]
    #[arg(value_parser = suggested(MAPS, StringValueParser::new()), hide_possible_values = true)]
    pub map: String,

    /// Ranks per host, filled in order; by default one per core
    #[arg(long, value_name = "K", value_parser = whole_number(1..=u32::MAX), allow_negative_numbers = true)]
    pub ppn: Option<u32>,
}

impl PlaceOptions {
    /// The mapping, with the text of its file.
    pub fn mapping(&self) -> Result<Mapping, Failure> {
        Ok(match self.map.as_str() {
            "linear" => Mapping::Linear,
            "random" => Mapping::Random,
            "switch" => Mapping::Switch,
            "node" => Mapping::Node,
            file => Mapping::File(read_map(file).map_err(|why| {
                Failure::input(format!(
                    "cannot read the mapping file {file}: {why}; write --map linear, switch, node or random, \
                     or a file"
                ))
            })?),
        })
    }

    /// The mapping file.
    pub fn file(&self) -> Option<&Path> {
        let file = Some(self.map.as_str()).filter(|map| !MAPS.contains(map));
        file.map(Path::new)
    }
}

/// The longest mapping file: 4 bytes for each of 16 million ranks.
const MAX_MAP_BYTES: u64 = 64 << 20;
/// The longest line of a mapping file: names of endpoints are far shorter.
const MAX_MAP_LINE_BYTES: usize = 4096;

/// Reads a mapping file that is not too long.
fn read_map(file: &str) -> Result<String, String> {
    let text = read_text(Path::new(file), MAX_MAP_BYTES)?;
    match text.lines().position(|line| line.len() > MAX_MAP_LINE_BYTES) {
        Some(line) => Err(format!("line {} is longer than {MAX_MAP_LINE_BYTES} bytes", line + 1)),
        None => Ok(text),
    }
}

/// The text of a file of at most `max_bytes`, a number of MiB. A device has no length: it is read no further.
///
/// # Errors
/// The reason why the file cannot be read, as the end of a sentence.
pub fn read_text(path: &Path, max_bytes: u64) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(max_bytes + 1).read_to_end(&mut bytes));
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > max_bytes {
        return Err(format!("it is longer than {} MiB", max_bytes >> 20));
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

/// A mapping in JSON.
pub fn mapping_name(map: &Mapping) -> &'static str {
    match map {
        Mapping::Linear => "linear",
        Mapping::Random => "random",
        Mapping::Switch => "switch",
        Mapping::Node => "node",
        Mapping::File(_) => "file",
    }
}

/// The form of a report.
#[derive(Args, Clone, Copy)]
pub struct FormatOptions {
    /// Print one JSON document on standard output, with units in the key names
    #[arg(long)]
    pub json: bool,
}

/// The form of a report, and the remarks beside it.
#[derive(Args, Clone, Copy)]
pub struct ReportOptions {
    #[command(flatten)]
    pub format: FormatOptions,

    /// Print nothing on standard error but errors: no progress, no estimate, no remarks
    #[arg(long)]
    pub quiet: bool,
}

/// Threads of a simulation.
#[derive(Args, Clone, Copy)]
pub struct ThreadOptions {
    /// Threads that simulate; results do not depend on their number
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = whole_number(1..=1024), allow_negative_numbers = true)]
    pub threads: u32,
}

/// The destination of results.
#[derive(Args)]
pub struct ResultOptions {
    /// Directory for results; without it only the report is printed
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,

    /// Replace the results, the timeline and the trace that are there already
    #[arg(long)]
    pub force: bool,

    /// Tables to write
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = Table::defaults())]
    #[arg(requires = "output", help = tables_help(), value_parser = table(), hide_possible_values = true)]
    pub tables: Vec<Table>,

    /// Write the traffic of links and the fill of queues each time this much virtual time has passed, as the
    /// tables rates and queues
    #[arg(long, value_name = "TIME", value_parser = parse_positive_span, requires = "output")]
    pub telemetry: Option<Span>,

    /// Look as often as --telemetry says, also where that never ends or fills a disk
    #[arg(long, requires = "telemetry")]
    pub no_limit: bool,

    /// Write a timeline to this file, for Perfetto (https://ui.perfetto.dev)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub timeline: Option<PathBuf>,

    /// Check during the run that no packet, credit or byte is lost
    #[arg(long)]
    pub check: bool,
}

impl ResultOptions {
    /// The options of a fresh run in one thread; `breakdown`: with the pieces of messages. A directory or a
    /// timeline that must not be written to is refused here, before anything is built; the run reads
    /// `inputs`.
    pub fn experiment_options(
        &self,
        words: &[String],
        breakdown: bool,
        inputs: &[&Path],
    ) -> Result<ExperimentOptions, Failure> {
        let existing = if self.force { Existing::Replace } else { Existing::Refuse };
        if let Some(directory) = &self.output {
            ResultsWriter::check(directory, existing)?;
        }
        if let Some(path) = &self.timeline {
            refuse_other_form(path)?;
            self.check_file(OutputFile { option: "--timeline", contents: "timeline", path }, inputs)?;
        }
        if self.telemetry.is_none() && self.tables.contains(&Table::FlowRates) {
            let mend = "add --telemetry TIME, such as --telemetry 5us, or leave it out";
            return Err(Failure::input(format!("--tables flow_rates is a look at each interval: {mend}")));
        }
        let mut tables = self.tables.clone();
        tables.extend(breakdown.then_some(Table::Pieces));
        if self.telemetry.is_some() {
            tables.extend([Table::Rates, Table::Queues]);
        }
        tables.sort();
        tables.dedup();
        let output =
            self.output.clone().map(|directory| Output { directory, tables, start: Start::Fresh(existing) });
        Ok(ExperimentOptions {
            threads: 1,
            output,
            live: false,
            save_every: None,
            timeline: self.timeline.clone(),
            check: self.check,
            unlimited: self.no_limit,
            rtl: None,
            command: words.to_vec(),
        })
    }

    /// Refuses a file that takes the place of something else.
    pub fn check_file(&self, file: OutputFile<'_>, inputs: &[&Path]) -> Result<(), Failure> {
        file.refuse_inputs(inputs)?;
        if let Some(directory) = &self.output {
            file.refuse_within(directory)?;
        }
        if self.force { Ok(()) } else { file.refuse_existing() }
    }
}

/// A table that is asked for by name.
fn table() -> Suggested<impl TypedValueParser<Value = Table>> {
    suggested(Table::named().into_iter().map(Table::name), |text: &str| text.parse::<Table>())
}

/// The help of `--tables`.
fn tables_help() -> String {
    let named = Table::named().into_iter().map(Table::name).collect::<Vec<_>>().join(", ");
    format!("Tables to write, of {named}; flow_rates goes with --telemetry")
}

/// How a simulation runs and where its results go.
#[derive(Args)]
pub struct SimulationOptions {
    #[command(flatten)]
    pub threads: ThreadOptions,

    #[command(flatten)]
    pub results: ResultOptions,

    /// Save the whole state each time this much virtual time has passed, for `weft rerun --resume`
    #[arg(long, value_name = "TIME", value_parser = parse_positive_span, requires = "output")]
    pub save_every: Option<Span>,

    #[command(flatten)]
    pub report: ReportOptions,
}

impl SimulationOptions {
    /// The options of a fresh run, which reads `inputs`.
    pub fn experiment_options(
        &self,
        words: &[String],
        breakdown: bool,
        inputs: &[&Path],
    ) -> Result<ExperimentOptions, Failure> {
        let (threads, save_every) = (self.threads.threads, self.save_every);
        let options = self.results.experiment_options(words, breakdown, inputs)?;
        Ok(ExperimentOptions { threads, save_every, ..options })
    }
}

/// Options of runs beside which RTL may run.
#[derive(Args)]
pub struct RtlArguments {
    /// Run the RTL of these blocks, allreduce, mailbox, packetizer, rdma_receive or segmentation, in step
    /// with the model: the first output that differs ends the run as rtl-differs (exit status 1). Needs
    /// `make rtl`
    #[arg(long, value_name = "BLOCK,…", value_delimiter = ',')]
    rtl: Vec<String>,

    /// Only at these endpoints, such as M1QAF1; by default at all
    #[arg(long, value_name = "ENDPOINT,…", value_delimiter = ',', requires = "rtl")]
    rtl_at: Vec<String>,

    /// The RTL decides in the place of the model's blocks
    #[arg(long, requires = "rtl")]
    rtl_drive: bool,

    /// Write the ports of these blocks as waves, to a file .vcd or .fst: those of the first endpoint where
    /// something happens, in the first run
    #[arg(long, value_name = "FILE", requires = "rtl")]
    waves: Option<PathBuf>,

    /// Write waves from this virtual time on
    #[arg(long, value_name = "TIME", requires = "waves")]
    waves_from: Option<Span>,

    /// Write waves up to this virtual time
    #[arg(long, value_name = "TIME", requires = "waves")]
    waves_to: Option<Span>,
}

impl RtlArguments {
    /// The options of a run that reads `inputs` and has these results, with its RTL.
    pub fn put_into(
        &self,
        options: ExperimentOptions,
        results: &ResultOptions,
        inputs: &[&Path],
    ) -> Result<ExperimentOptions, Failure> {
        let RtlArguments { rtl: blocks, rtl_at: at, rtl_drive: drive, waves, waves_from, waves_to } = self;
        if blocks.is_empty() {
            return Ok(options);
        }
        if options.save_every.is_some() {
            let why = "--rtl: what the RTL holds is not saved; leave --save-every out";
            return Err(Failure::input(why.to_owned()));
        }
        if let Some(path) = waves {
            results.check_file(OutputFile { option: "--waves", contents: "file of waves", path }, inputs)?;
            if options.timeline.as_ref() == Some(path) {
                let why = "--waves and --timeline name one file; name two";
                return Err(Failure::input(why.to_owned()));
            }
        }
        let trimmed = |names: &[String]| names.iter().map(|name| name.trim().to_owned()).collect();
        let (blocks, at) = (trimmed(blocks), trimmed(at));
        let waves = waves.clone().map(|file| WavesOptions { file, from: *waves_from, to: *waves_to });
        let rtl = RtlOptions { blocks, at, drive: *drive, waves, tally: RtlTally::default() };
        Ok(ExperimentOptions { rtl: Some(rtl), ..options })
    }
}

/// Reads a whole number of a range.
pub fn whole_number(range: RangeInclusive<u32>) -> impl Fn(&str) -> Result<u32, String> + Clone {
    move |text| {
        let number = text.trim().parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| match *range.end() {
            u32::MAX if text.trim().parse::<u128>().is_ok_and(|number| number > u32::MAX.into()) => {
                format!("`{text}` is too large: the most is {}", u32::MAX)
            }
            u32::MAX => format!("`{text}` is not a whole number from {} on", range.start()),
            end => format!("`{text}` is not a whole number from {} to {end}", range.start()),
        })
    }
}

/// Refuses a timeline whose name asks for what is not written.
fn refuse_other_form(timeline: &Path) -> Result<(), Failure> {
    if timeline == Path::new("-") {
        return Err(Failure::input(
            "--timeline - would make a file of this name; name one such as run.json, or /dev/stdout",
        ));
    }
    let packed = ["gz", "zst", "xz", "bz2"].map(|packed| timeline.extension() == Some(packed.as_ref()));
    if packed.contains(&true) {
        return Err(Failure::input(format!(
            "--timeline {}: a timeline is plain JSON; name it run.json, and compress it when it is whole: \
             Perfetto opens .json.gz",
            timeline.display()
        )));
    }
    Ok(())
}

/// A seed.
pub fn parse_seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "a seed is a whole number from 0 to 18446744073709551615".to_owned())
}

/// A time above zero.
pub fn parse_positive_span(text: &str) -> Result<Span, String> {
    match text.parse::<Span>() {
        Ok(Span::ZERO) => Err("a time of 0 never passes; write 20us or 1.5ms".to_owned()),
        other => other.map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches counts that are refused without the numbers that are taken.
    #[test]
    fn whole_numbers_say_which_are_taken() {
        let ranks = whole_number(1..=65536);
        assert_eq!(ranks("1024"), Ok(1024));
        for wrong in ["0", "-1", "abc", "1.5", "65537", "18446744073709551616", ""] {
            assert_eq!(ranks(wrong), Err(format!("`{wrong}` is not a whole number from 1 to 65536")));
        }
        let any = whole_number(1..=u32::MAX);
        assert!(any("0").unwrap_err().ends_with("from 1 on"));
        assert_eq!(any("4294967296"), Err("`4294967296` is too large: the most is 4294967295".to_owned()));
    }

    /// Catches a map that fills the memory, and a line that names are compared with for minutes.
    #[test]
    fn maps_have_a_longest_length() {
        assert_eq!(read_map("/dev/zero"), Err("it is longer than 64 MiB".to_owned()));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("map");
        std::fs::write(&file, format!("0\n{}", "x".repeat(5000))).unwrap();
        assert_eq!(read_map(file.to_str().unwrap()), Err("line 2 is longer than 4096 bytes".to_owned()));
    }
}
