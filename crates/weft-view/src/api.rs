//! Figures by address: all of them are computed in `weft-analysis` and `weft-sim`.
//!
//! | address | gives | parameters, besides `result` and `run` |
//! |---|---|---|
//! | `live` | whether a run goes on, and how often it has written more | none |
//! | `results` | results, their runs, tables and quantities | none of these |
//! | `report` | the parts of `weft report`, without pictures | |
//! | `ranks` | rows of the ranks | |
//! | `machine` | the drawing | |
//! | `totals` | a value per link, as f32 | `quantity` |
//! | `frames` | intervals of telemetry | `quantity` |
//! | `frame` | a value per link, as f32 | `quantity`, `interval` |
//! | `history` | a value per interval and link | `quantity`, `links` |
//! | `link`, `switch`, `endpoint` | rows of the tables | `number` |
//! | `path` | the way between two endpoints | `from`, `to` |
//! | `pair` | where the time of messages between two endpoints goes | `from`, `to` |
//! | `messages` | the slowest messages | `from`, `to`, `limit` |
//! | `pieces` | pieces of a message | `source`, `sequence` |
//! | `picture` | as `weft plot` draws it | `kind`, `results` |
//! | `timeline` | a file for Perfetto | |

use crate::query::Query;
use crate::shown::Shown;
use crate::source::Source;
use crate::timeline;
use serde::Serialize;
use serde_json::{Value, json};
use weft_analysis::picture::{PictureKind, ShownPart};
use weft_analysis::report::Report;
use weft_analysis::view::{self, LinkNumbers, MessageFilter, Quantity};
use weft_results::{RankRow, ResultsError, RunOf, Table};
use weft_sim::experiment::machine::MachineMap;
use weft_units::{EndpointId, PortId, SwitchId};

/// Messages that are listed, unless other are asked for, and at most.
const LISTED: usize = 50;
const MAX_LISTED: usize = 1_000;

/// An answer.
pub enum Answer {
    /// JSON.
    Json(Vec<u8>),
    /// Numbers of 32 bits, little endian.
    Numbers(Vec<u8>),
}

/// A question that has no answer.
#[derive(Debug)]
pub struct Refusal {
    /// The HTTP status. The text comes as JSON: `{"absent": …}` with [`Refusal::ABSENT`], `{"error": …}` with
    /// any other.
    pub status: u16,
    /// The reason.
    pub why: String,
}

impl Refusal {
    /// The status where the result has nothing of what is asked for: an answer too, and no failure in the
    /// browser's log.
    pub const ABSENT: u16 = 200;

    /// Something about the question is wrong.
    pub fn input(why: impl Into<String>) -> Refusal {
        Refusal { status: 400, why: why.into() }
    }

    fn absent(why: impl Into<String>) -> Refusal {
        Refusal { status: Refusal::ABSENT, why: why.into() }
    }

    /// The server cannot read what it has.
    fn failed(why: impl Into<String>) -> Refusal {
        Refusal { status: 500, why: why.into() }
    }
}

impl From<ResultsError> for Refusal {
    fn from(error: ResultsError) -> Refusal {
        use ResultsError::{Killed, NoTable, NotYet, NothingToDraw, StillWritten};
        match error {
            NoTable { .. } | NotYet { .. } | NothingToDraw { .. } | StillWritten(_) | Killed(_) => {
                Refusal::absent(error.to_string())
            }
            _ => Refusal::failed(error.to_string()),
        }
    }
}

/// Answers what is asked for below `api/`.
///
/// # Errors
/// Questions that cannot be read, and what a result has not.
pub fn answer(source: &Source, address: &str) -> Result<Answer, Refusal> {
    let (name, query) = Query::split(address);
    if name == "live" {
        return json(&source.progress());
    }
    let now = source.now();
    let shown: &[Shown] = &now;
    let question = || Question::of(shown, &query);
    match name {
        "results" => json(&shown.iter().map(described).collect::<Vec<_>>()),
        "picture" => picture(shown, &query),
        "report" => {
            let question = question()?;
            let map = question.map().ok();
            let ways = |from, to| map?.only_way(from, to);
            json(&Report::without_pictures(&question.shown.result, &[], &ways)?)
        }
        "machine" => json(&question()?.map()?.drawing()),
        "totals" => {
            let question = question()?;
            let totals = question.shown.totals((question.run, question.quantity()?), question.numbers()?)?;
            Ok(numbers(&totals))
        }
        "frames" => {
            let question = question()?;
            json(&*question.shown.frames((question.run, question.quantity()?), question.numbers()?)?)
        }
        "frame" => {
            let question = question()?;
            let of = (question.run, question.quantity()?);
            let frames = question.shown.frames(of, question.numbers()?)?;
            Ok(numbers(&frames.values(query.required("interval")?, question.numbers()?)))
        }
        "history" => history(&question()?),
        "link" => link(&question()?),
        "switch" => {
            let question = question()?;
            json(&view::switch(&question.shown.result, question.run, SwitchId(query.required("number")?))?)
        }
        "endpoint" => {
            let question = question()?;
            let endpoint = EndpointId(query.required("number")?);
            json(&view::endpoint(&question.shown.result, question.run, endpoint)?)
        }
        "path" => {
            let (from, to): (String, String) = (query.required("from")?, query.required("to")?);
            let path = question()?.map()?.path(&from, &to);
            json(&path.map_err(|error| Refusal::input(error.to_string()))?)
        }
        "pair" => {
            let question = question()?;
            let pair = (EndpointId(query.required("from")?), EndpointId(query.required("to")?));
            json(&view::between(&question.shown.result, question.run, pair)?)
        }
        "messages" => {
            let question = question()?;
            let end = |name| Ok::<_, Refusal>(query.optional(name)?.map(EndpointId));
            let limit = query.optional("limit")?.unwrap_or(LISTED).min(MAX_LISTED);
            let filter = MessageFilter { run: question.run, from: end("from")?, to: end("to")?, limit };
            json(&view::messages(&question.shown.result, filter)?)
        }
        "pieces" => {
            let question = question()?;
            let message = (EndpointId(query.required("source")?), query.required("sequence")?);
            json(&view::pieces(&question.shown.result, question.run, message)?)
        }
        "ranks" => {
            let question = question()?;
            let mut ranks: Vec<RankRow> = Vec::new();
            question.shown.result.visit(|row: RankRow| {
                if row.run == question.run {
                    ranks.push(row);
                }
            })?;
            json(&ranks)
        }
        "timeline" => {
            let question = question()?;
            match &question.shown.timeline {
                Some(path) => std::fs::read(path).map(Answer::Json).map_err(|error| {
                    Refusal::failed(format!("cannot read the timeline {}: {error}", path.display()))
                }),
                None => json(&timeline::of_messages(question.shown, question.run)?),
            }
        }
        _ => Err(Refusal { status: 404, why: format!("there is nothing at api/{name}") }),
    }
}

/// A question about a run of a result.
struct Question<'a> {
    shown: &'a Shown,
    run: u32,
    query: &'a Query<'a>,
}

impl<'a> Question<'a> {
    fn of(shown: &'a [Shown], query: &'a Query<'a>) -> Result<Question<'a>, Refusal> {
        let number = query.optional::<usize>("result")?.unwrap_or(0);
        let shown =
            shown.get(number).ok_or_else(|| Refusal::input(format!("there is no result {number}")))?;
        Ok(Question { shown, run: query.optional("run")?.unwrap_or(0), query })
    }

    fn map(&self) -> Result<&'a MachineMap, Refusal> {
        self.shown.map().map_err(Refusal::absent)
    }

    fn numbers(&self) -> Result<&'a LinkNumbers, Refusal> {
        Ok(self.map()?.numbers())
    }

    fn quantity(&self) -> Result<Quantity, Refusal> {
        let name: String = self.query.required("quantity")?;
        let unknown = || Refusal::input(format!("there is no quantity `{name}`"));
        Quantity::of(&name).ok_or_else(unknown)
    }
}

fn json(value: &impl Serialize) -> Result<Answer, Refusal> {
    let text = serde_json::to_vec(value);
    text.map(Answer::Json).map_err(|error| Refusal::failed(error.to_string()))
}

fn numbers(values: &[f32]) -> Answer {
    Answer::Numbers(values.iter().flat_map(|value| value.to_le_bytes()).collect())
}

/// A result in the list of results.
fn described(shown: &Shown) -> Value {
    let result = &shown.result;
    let runs = result.runs();
    let runs: Vec<Value> = match runs.is_empty() {
        true => vec![json!({ "run": 0, "label": "" })],
        false => {
            let of = |run: &RunOf<'_>| {
                let warm_up = &run.row["warm_up_us"];
                json!({ "run": run.run, "label": run.label(), "warm_up_us": warm_up })
            };
            runs.iter().map(of).collect()
        }
    };
    let tables: Vec<&str> =
        Table::ALL.into_iter().filter(|table| result.has(*table)).map(Table::name).collect();
    let quantities = Quantity::ALL.map(|quantity| {
        let (whole, over_time) = quantity.is_in(result);
        json!({ "name": quantity, "unit": quantity.unit(), "whole": whole, "over_time": over_time })
    });
    json!({
        "name": result.name(),
        "directory": result.directory,
        "command": result.command(),
        "machine": result.machine(),
        "changes": result.changes(),
        "ended": result.ended(),
        "weft_version": result.manifest.weft_version,
        "runs": runs,
        "tables": tables,
        "quantities": quantities,
        "has_timeline": shown.timeline.is_some(),
        "kinds": PictureKind::ALL.map(|kind| json!({ "name": kind.name(), "title": kind.title() })),
    })
}

/// A picture of one or several results, by their numbers in `results`.
fn picture(shown: &[Shown], query: &Query<'_>) -> Result<Answer, Refusal> {
    let kind: String = query.required("kind")?;
    let kind: PictureKind = kind.parse().map_err(Refusal::input)?;
    let wanted = query.text("results").unwrap_or_else(|| "0".to_owned());
    let mut results = Vec::new();
    for number in wanted.split(',') {
        let shown = number.parse::<usize>().ok().and_then(|number| shown.get(number));
        let shown = shown.ok_or_else(|| Refusal::input(format!("there is no result {number}")))?;
        // Pictures are made of results that they own: the tables stay where they are.
        results.push(shown.result.clone());
    }
    let part = ShownPart { run: query.optional("run")?, ..ShownPart::default() };
    json(&kind.of(&results, part)?)
}

/// The values of links in every interval, in a row for each link.
fn history(question: &Question<'_>) -> Result<Answer, Refusal> {
    let frames = question.shown.frames((question.run, question.quantity()?), question.numbers()?)?;
    let wanted: String = question.query.required("links")?;
    let links: Result<Vec<u32>, _> = wanted.split(',').map(str::parse).collect();
    let links = links.map_err(|_| Refusal::input(format!("links={wanted} are no numbers of links")))?;
    let rows: Vec<Vec<f32>> = links.iter().map(|link| frames.history(*link)).collect();
    json(&json!({ "interval_ps": frames.interval_ps, "level": frames.level, "links": rows }))
}

/// The row of a link, by its number.
fn link(question: &Question<'_>) -> Result<Answer, Refusal> {
    let number: u32 = question.query.required("number")?;
    let numbers = question.numbers()?;
    let from = if number < numbers.endpoints {
        Ok(EndpointId(number))
    } else {
        let switch = numbers.first.partition_point(|first| *first <= number).saturating_sub(1);
        let begin = numbers.first.get(switch).copied().unwrap_or(0);
        Err((SwitchId(switch as u32), PortId(number.saturating_sub(begin))))
    };
    json(&view::link(&question.shown.result, question.run, from)?)
}
