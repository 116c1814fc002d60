//! A trace in one page: all that `weft trace info` and `weft trace stats` say, with the pictures.

use super::picture::subtitle;
use super::{ExperimentError, TraceInfo, TraceOptions, TracePicture, TraceStats, read, tables};
use std::path::Path;
use weft_analysis::picture::Picture;
use weft_analysis::sections::{ReportSection, ReportTable, SectionedReport};
use weft_formats::{Trace, TraceError};

/// Rows of a table of the page.
const MOST_ROWS: usize = 256;

/// Reads a trace and makes the contents of its page.
///
/// # Errors
/// A trace that cannot be read.
pub fn report(path: &Path, options: &TraceOptions) -> Result<SectionedReport, ExperimentError> {
    let of = |trace: &Trace| Ok::<_, TraceError>((TraceInfo::of(trace)?, TraceStats::of(trace)?));
    let ((info, stats), _) = read(path, options, |trace| of(trace).map_err(ExperimentError::input))?;
    let name = path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into());
    Ok(SectionedReport {
        name,
        facts: facts(&info, &stats),
        warnings: warnings(&stats),
        sections: sections(&stats, &subtitle(path, info.format, &stats)),
    })
}

fn facts(info: &TraceInfo, stats: &TraceStats) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let mut fact = |name: &str, text: String| {
        if !text.is_empty() {
            facts.push((name.to_owned(), text));
        }
    };
    fact("program", info.command.join(" "));
    fact("recorded by", info.recorder.clone());
    fact("date", info.date.clone().unwrap_or_default());
    if let Some(host) = &info.virtual_time {
        fact("time", format!("virtual, --host {host}"));
    }
    fact("library", info.mpi_library.clone());
    fact("format", info.format.to_owned());
    fact("size of the file", format!("{} B", info.file_bytes));
    fact("ranks", stats.ranks.to_string());
    if let Some(streams) = info.streams {
        fact("streams", format!("{}, with {} events", streams.streams, streams.events));
    }
    let (least, most) = (info.rank_operations_min, info.rank_operations_max);
    fact("operations", format!("{}, {least} to {most} per rank", stats.operations));
    fact("messages", format!("{} with {} bytes", stats.messages, stats.message_bytes));
    let calls: u64 = stats.collectives.values().map(|of| of.calls).sum();
    fact("calls of collectives", calls.to_string());
    if stats.one_sided_operations > 0 {
        let (operations, bytes) = (stats.one_sided_operations, stats.one_sided_bytes);
        fact("one-sided operations", format!("{operations} with {bytes} bytes"));
    }
    let any = (stats.any_source_receives, stats.any_tag_receives);
    fact("receives with a wildcard", format!("{} of any source, {} of any tag", any.0, any.1));
    let (sum, least, most) = (stats.computation_sum_us, stats.computation_min_us, stats.computation_max_us);
    fact("computation", format!("{sum:.3} us, {least:.3} to {most:.3} us in one rank"));
    facts
}

fn warnings(stats: &TraceStats) -> Vec<String> {
    let cut = stats.interrupted.then(|| "The trace ends where its recording was interrupted".to_owned());
    let missing = stats.unrecorded.iter().map(|(call, count)| format!("Not recorded: {count} × {call}"));
    let notes = stats.notes.iter().map(|(note, count)| format!("Note of the reader: {count} × {note}"));
    cut.into_iter().chain(missing).chain(notes).collect()
}

/// The sections that have something to show.
fn sections(stats: &TraceStats, subtitle: &str) -> Vec<ReportSection> {
    let pictures = |kind: TracePicture| -> Vec<Picture> { kind.of(stats, subtitle).into_iter().collect() };
    let section = |title: &str, remark: &str, kind, tables: Vec<ReportTable>| ReportSection {
        title: title.to_owned(),
        remark: remark.to_owned(),
        pictures: pictures(kind),
        tables: tables.into_iter().filter(|table| !table.rows.is_empty()).collect(),
    };
    let matrix = match stats.matrix.block_ranks {
        1 => "Point-to-point messages by direction, without collectives.".to_owned(),
        block => format!(
            "Point-to-point messages by direction, without collectives. {block} successive ranks are one \
             block."
        ),
    };
    let mut sections = vec![
        section("Operations", "", TracePicture::Operations, vec![tables::operations(stats, MOST_ROWS)]),
        section(
            "Messages by size",
            "Sizes are those that the program gave.",
            TracePicture::MessageSizes,
            vec![tables::message_sizes(stats, MOST_ROWS)],
        ),
        section(
            "Collectives",
            "Each rank that takes part counts as a call. The size of a call is the larger of what its rank \
             gives and takes.",
            TracePicture::CollectiveSizes,
            vec![tables::collectives(stats, MOST_ROWS), tables::collective_sizes(stats, MOST_ROWS)],
        ),
        ReportSection {
            title: "Communicators".to_owned(),
            remark: "A name is the first member, and the number among its communicators.".to_owned(),
            pictures: Vec::new(),
            tables: vec![tables::communicators(stats, MOST_ROWS)],
        },
        section(
            "From rank to rank",
            &matrix,
            TracePicture::CommunicationMatrix,
            vec![tables::pairs(stats, MOST_ROWS)],
        ),
        section(
            "Over time",
            "Time is what a rank has computed before: a trace does not say how long calls took. A replay \
             does.",
            TracePicture::Evolution,
            vec![tables::evolution(stats, MOST_ROWS)],
        ),
        section("Ranks", "", TracePicture::Ranks, vec![tables::ranks(stats, MOST_ROWS)]),
    ];
    sections.retain(|section| !section.pictures.is_empty() || !section.tables.is_empty());
    sections
}
