//! Queues of a scenario as a figure: the packets in the deepest one of some switches, in a window of time.

use super::publication::Measure;
use crate::experiment::scenario::ScenarioRequest;
use crate::experiment::{Control, Experiment, ExperimentError, ExperimentOptions, Output, Start};
use weft_results::{Existing, QueueRow, StoredResult, Table};
use weft_units::{Span, Time};

/// Time between two looks at queues. A packet of 4 KB takes a tenth of it on a link of 400 Gb/s.
const LOOKS: Span = Span::from_us(1);

/// The most packets in a queue of the switches `measure.group`, such as `0-7`, between `measure.from` and
/// `measure.to`.
pub(super) fn deepest(
    request: ScenarioRequest,
    measure: &Measure,
    control: Control<'_>,
) -> Result<f64, ExperimentError> {
    let bad = |what: &str| ExperimentError::input(format!("queues of {}: {what}", measure.size));
    let switches = measure.group.as_deref().and_then(|group| group.split_once('-'));
    let switches = switches.and_then(|(first, last)| Some(first.parse::<u32>().ok()?..=last.parse().ok()?));
    let switches = switches.ok_or_else(|| bad("write the switches as group = \"0-7\""))?;
    let time = |text: &Option<String>, otherwise| match text {
        None => Ok(otherwise),
        Some(text) => text.parse::<Span>().map(|span| Time::ZERO + span).map_err(ExperimentError::input),
    };
    let (from, to) = (time(&measure.from, Time::ZERO)?, time(&measure.to, Time::MAX)?);
    let folder = tempfile::tempdir().map_err(|error| bad(&error.to_string()))?;
    let directory = folder.path().join("queues");
    let (tables, start) = (vec![Table::Queues], Start::Fresh(Existing::Refuse));
    let output = Some(Output { directory: directory.clone(), tables, start });
    let options = ExperimentOptions { output, ..ExperimentOptions::default() };
    let report = ScenarioRequest { telemetry: Some(LOOKS), ..request }.run(&options, control)?;
    let mut deepest = 0;
    StoredResult::open(&directory)?.visit(|row: QueueRow| {
        let is_meant = row.level == 0 && switches.contains(&row.switch.0);
        if is_meant && (from..to).contains(&row.begin_ps) {
            deepest = deepest.max(row.most_packets);
        }
    })?;
    match deepest {
        0 => Err(bad(&report.detail.unwrap_or_else(|| "no packet waited there and then".to_owned()))),
        deepest => Ok(f64::from(deepest)),
    }
}
