//! `weft app`: application kernels on a machine.

use super::replay::{JobName, JobOptions};
use crate::exit::{Failure, Status};
use crate::options::{FormatOptions, whole_number};
use crate::output;
use clap::{ArgMatches, Args, FromArgMatches, Subcommand};
use serde::Serialize;
use std::collections::BTreeMap;
use weft_sim::experiment::app::{self, App, KernelName, Verification};

/// A kernel to be run, or a question about kernels.
pub enum AppOptions {
    /// A kernel on a machine.
    Run(Box<RunOptions>),
    /// A question about kernels.
    About(AppCommand),
}

impl FromArgMatches for AppOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<AppOptions, clap::Error> {
        match matches.subcommand_name() {
            Some(_) => AppCommand::from_arg_matches(matches).map(AppOptions::About),
            None => RunOptions::from_arg_matches(matches).map(|run| AppOptions::Run(Box::new(run))),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = AppOptions::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for AppOptions {
    // clap's derive knows no command that has options of its own or a subcommand, but not both.
    fn augment_args(command: clap::Command) -> clap::Command {
        let command = AppCommand::augment_subcommands(RunOptions::augment_args(command));
        let command = command.subcommand_required(false).subcommand_negates_reqs(true);
        command.args_conflicts_with_subcommands(true)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        AppOptions::augment_args(command)
    }
}

/// A kernel on a machine.
#[derive(Args)]
pub struct RunOptions {
    /// The application; weft app list has them
    #[arg(value_name = "NAME")]
    app: String,

    /// Number of ranks
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = whole_number(1..=i32::MAX as u32))]
    ranks: u32,

    /// Options of the application; weft app show NAME has them
    #[arg(long, value_name = "OPTION=VALUE,...", value_delimiter = ',')]
    with: Vec<String>,

    #[command(flatten)]
    jobs: JobOptions,
}

/// Questions about kernels, without running one.
#[derive(Subcommand)]
pub enum AppCommand {
    /// List the applications, and what each was checked against
    List(FormatOptions),
    /// Show the laws of an application, their source, and its options
    Show(ShowOptions),
}

/// One application.
#[derive(Args)]
pub struct ShowOptions {
    /// The application
    #[arg(value_name = "NAME")]
    app: String,

    #[command(flatten)]
    format: FormatOptions,
}

impl AppOptions {
    /// Does it.
    pub fn run(self, words: &[String]) -> Result<Status, Failure> {
        match self {
            AppOptions::Run(run) => run.run(words),
            AppOptions::About(AppCommand::List(format)) => list(format),
            AppOptions::About(AppCommand::Show(options)) => show(&options),
        }
    }
}

impl RunOptions {
    fn run(self, words: &[String]) -> Result<Status, Failure> {
        if let Some((app, rest)) = self.app.split_once('@') {
            let with =
                rest.split_once(',').map_or(String::new(), |(_, options)| format!(" --with {options}"));
            let ranks = self.ranks;
            return Err(Failure::input(format!(
                "`{}` is a kernel with its ranks, as weft replay takes it; write weft app {app} --ranks \
                 {ranks}{with}",
                self.app
            )));
        }
        let mut name = KernelName { app: self.app, ranks: self.ranks, options: BTreeMap::new() };
        for option in &self.with {
            name.add(option).map_err(|error| Failure::input(error.to_string()))?;
        }
        self.jobs.run(&[JobName::Kernel(name)], words)
    }
}

/// An application, in a document.
#[derive(Serialize)]
struct AppDocument {
    name: &'static str,
    summary: &'static str,
    laws: &'static str,
    checked: bool,
    checked_against: &'static str,
    options: Vec<OptionDocument>,
}

/// One of its options.
#[derive(Serialize)]
struct OptionDocument {
    name: &'static str,
    default: &'static str,
    about: &'static str,
}

fn document(app: &App) -> AppDocument {
    let App { name, summary, laws, checked, options, .. } = *app;
    let (checked, checked_against) = match checked {
        Verification::Against(program) => (true, program),
        Verification::Unchecked(why) => (false, why),
    };
    let option = |option: &app::AppOption| OptionDocument {
        name: option.name,
        default: option.default,
        about: option.about,
    };
    let options = options.iter().map(option).collect();
    AppDocument { name, summary, laws, checked, checked_against, options }
}

fn checked(app: &App) -> String {
    match app.checked {
        Verification::Against(program) => program.to_owned(),
        Verification::Unchecked(why) => format!("unchecked: {why}"),
    }
}

fn list(format: FormatOptions) -> Result<Status, Failure> {
    if format.json {
        let rows: Vec<AppDocument> = app::all().map(document).collect();
        output::document(&serde_json::json!({ "command": "app list", "rows": rows }))?;
    } else {
        let rows = app::all().map(|app| [app.name.to_owned(), app.summary.to_owned(), checked(app)]);
        output::text(&output::narrow_table(["application", "", "checked against"], rows))?;
    }
    Ok(Status::Done)
}

fn show(options: &ShowOptions) -> Result<Status, Failure> {
    let app = app::find(&options.app).map_err(|error| Failure::input(error.to_string()))?;
    if options.format.json {
        output::document(&document(app))?;
    } else {
        let rows =
            app.options.iter().map(|option| [option.name, option.default, option.about].map(str::to_owned));
        let table = output::table(["option", "default", ""], [false, false, false], rows);
        let facts = [["application", app.name], ["", app.summary], ["checked against", &checked(app)]];
        let facts =
            output::table(["", ""], [false, false], facts.map(|fact| fact.map(str::to_owned)).into_iter());
        output::text(&format!("{facts}\n{}\n\n{table}", app.laws))?;
    }
    Ok(Status::Done)
}
