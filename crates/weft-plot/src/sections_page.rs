//! The page on a trace or a study: facts, contents, and a part for each section.

use crate::image::{DrawError, svg};
use crate::page::{Heading, Page};
use weft_analysis::sections::{ReportTable, SectionedReport};

/// The page of one trace, or of one study.
///
/// # Errors
/// A picture that cannot be drawn.
pub fn sectioned_report(report: &SectionedReport) -> Result<String, DrawError> {
    let mut page = Page::new(&format!("weft: {}", report.name));
    page.markup("<h1>").text(&report.name).markup("</h1>\n").facts(&report.facts);
    for warning in &report.warnings {
        page.warning(warning);
    }
    page.markup("<ul>");
    for (number, section) in report.sections.iter().enumerate() {
        let anchor = anchor(number);
        page.markup("<li><a href=\"#").text(&anchor).markup("\">").text(&section.title).markup("</a></li>\n");
    }
    page.markup("</ul>\n");
    for (number, section) in report.sections.iter().enumerate() {
        page.markup("<h2 id=\"").text(&anchor(number)).markup("\">").text(&section.title).markup("</h2>\n");
        if !section.remark.is_empty() {
            page.remark(&section.remark);
        }
        for picture in &section.pictures {
            page.figure(&svg(picture)?);
        }
        section.tables.iter().for_each(|table| write_table(&mut page, table));
    }
    Ok(page.end())
}

fn anchor(number: usize) -> String {
    format!("part-{}", number + 1)
}

fn write_table(page: &mut Page, table: &ReportTable) {
    let headings: Vec<Heading<'_>> =
        table.columns.iter().map(|column| (column.name.as_ref(), column.is_number)).collect();
    page.table(&headings, table.rows.iter().cloned());
    if !table.left_off.is_empty() {
        page.remark(&format!("{}; --json has all.", table.left_off));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_analysis::sections::{ReportColumn, ReportSection};

    /// Catches text of a trace that becomes markup, and a link of the contents that leads nowhere.
    #[test]
    fn text_of_traces_is_never_markup() {
        let text = || "<img src=x onerror=alert(1)><script>alert(2)</script>".to_owned();
        let table = ReportTable {
            columns: vec![ReportColumn { name: "operation".into(), is_number: false }],
            rows: vec![vec![text()]],
            left_off: text(),
        };
        let section =
            ReportSection { title: text(), remark: text(), pictures: Vec::new(), tables: vec![table] };
        let (facts, warnings) = (vec![(text(), text())], vec![text()]);
        let sections = vec![section.clone(), section];
        let page = sectioned_report(&SectionedReport { name: text(), facts, warnings, sections }).unwrap();
        assert!(!page.contains("<img") && !page.contains("<script"), "{page}");
        for part in ["part-1", "part-2"] {
            assert!(page.contains(&format!("href=\"#{part}\"")) && page.contains(&format!("id=\"{part}\"")));
        }
    }
}
