//! Schedules of failures: files of links and the times at which they are off.
//!
//! ```text
//!   from,to,off_at,on_at
//!   switch 0,,20us,40us            all links of switch 0
//!   switch 3,switch 17,25us,       the links between the two, for good
//! ```
//! A line that begins with `#` says nothing. The first of the others is the line of names.

use super::super::graph_file;
use super::super::read::Reader;
use super::super::source::Location;
use super::FaultyLinks;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use weft_keys::Problem;
use weft_units::Span;

/// The line of names that a schedule begins with.
const HEAD: [&str; 4] = ["from", "to", "off_at", "on_at"];

/// A line of a schedule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScheduledOutage {
    /// The links that are off.
    pub links: FaultyLinks,
    /// From when on.
    pub off_at: Span,
    /// Until when; `None`: for good.
    pub on_at: Option<Span>,
    /// The place for messages, such as `failures.csv:7`.
    pub place: String,
}

/// Reads the schedule in a file, from the folder of the machine file. `None`: a problem was reported.
pub(super) fn read(name: &str, location: Location, reader: &mut Reader<'_>) -> Option<Vec<ScheduledOutage>> {
    let folder = match location.is_set() {
        true => PathBuf::new(),
        false => graph_file::folder_of(reader.sources.file_name()),
    };
    let text = match reader.files.get(name) {
        Some(text) => Ok(text.clone()),
        None => graph_file::text_of(name, &folder),
    };
    let read = text.and_then(|text| Ok((parse(name, &text)?, text)));
    match read {
        Ok((outages, text)) => {
            reader.read_files.insert(name.to_owned(), text);
            Some(outages)
        }
        Err(problem) => {
            reader.report(location, problem);
            None
        }
    }
}

/// The outages of a schedule.
fn parse(name: &str, text: &str) -> Result<Vec<ScheduledOutage>, Problem> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#')
    });
    let fields = |line: &str| line.split(',').map(|field| field.trim().to_owned()).collect::<Vec<String>>();
    let first = lines.next();
    if first.is_none_or(|(_, line)| fields(line) != HEAD) {
        let line = first.map_or(1, |(number, _)| number);
        let help = format!("let its first line be `{}`", HEAD.join(","));
        return Err(Problem::new(format!("{name}:{line}: this is no schedule of failures"), "", help));
    }
    let mut outages = Vec::new();
    for (number, line) in lines {
        let place = format!("{name}:{number}");
        outages.push(outage(&fields(line), &place)?);
    }
    refuse_overlaps(&outages)?;
    Ok(outages)
}

/// The outage of a line.
fn outage(fields: &[String], place: &str) -> Result<ScheduledOutage, Problem> {
    let [from, to, off, on] = fields else {
        let help = "write four fields: a link's ends, when it fails and when it comes back; `to` and `on_at` \
                    may be empty";
        return Err(Problem::new(format!("{place}: a line has {} fields", fields.len()), "", help));
    };
    let time = |text: &str| {
        text.parse::<Span>().map_err(|error| {
            Problem::new(format!("{place}: `{text}` is no time: {error}"), "", "write a time such as 20us")
        })
    };
    if from.is_empty() {
        let help = "write an endpoint or switch, as `weft machine names --links` lists them";
        return Err(Problem::new(format!("{place}: no link is named"), "", help));
    }
    let off_at = time(off)?;
    let on_at = if on.is_empty() { None } else { Some(time(on)?) };
    if on_at.is_some_and(|on| on <= off_at) {
        let help = "let on_at be later than off_at, or leave it empty: the link then stays off";
        return Err(Problem::new(
            format!("{place}: it comes back at {on}, before it fails at {off}"),
            "",
            help,
        ));
    }
    let links = match to.as_str() {
        "" => FaultyLinks::Of(from.clone()),
        to => FaultyLinks::Between(from.clone(), to.to_owned()),
    };
    Ok(ScheduledOutage { links, off_at, on_at, place: place.to_owned() })
}

/// Refuses two lines for the same links whose times overlap.
fn refuse_overlaps(outages: &[ScheduledOutage]) -> Result<(), Problem> {
    let mut by_links: BTreeMap<(&str, &str), Vec<&ScheduledOutage>> = BTreeMap::new();
    for outage in outages {
        let ends = match &outage.links {
            FaultyLinks::Between(one, other) if one > other => (other.as_str(), one.as_str()),
            FaultyLinks::Between(one, other) => (one.as_str(), other.as_str()),
            FaultyLinks::Of(one) => (one.as_str(), ""),
            FaultyLinks::All | FaultyLinks::Class(_) => ("", ""),
        };
        by_links.entry(ends).or_default().push(outage);
    }
    for of_links in by_links.values_mut() {
        of_links.sort_by_key(|outage| outage.off_at);
        for pair in of_links.windows(2) {
            if pair[0].on_at.is_none_or(|on| on > pair[1].off_at) {
                let until = pair[0].on_at.map_or("for good".to_owned(), |on| format!("until {on}"));
                let what = format!("{}: it fails at {} while it is off", pair[1].place, pair[1].off_at);
                let label = "two lines overlap";
                let help = format!("by {} it is off {until}: join the two lines, or move one", pair[0].place);
                return Err(Problem::new(what, label, help));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a line that is read as another, and lines that are refused without their number.
    #[test]
    fn schedules_are_read_line_by_line() {
        let text =
            "# our cluster in May\nfrom, to, off_at, on_at\n\nswitch 0,,20us,40us\nswitch 3, 17 ,25us,\n";
        let outages = parse("may.csv", text).unwrap();
        let at = Span::from_us;
        assert_eq!(outages[0].links, FaultyLinks::Of("switch 0".to_owned()));
        assert_eq!((outages[0].off_at, outages[0].on_at), (at(20), Some(at(40))));
        assert_eq!(outages[1].links, FaultyLinks::Between("switch 3".to_owned(), "17".to_owned()));
        assert_eq!((outages[1].on_at, outages[1].place.as_str()), (None, "may.csv:5"));
        let head = "from,to,off_at,on_at\n";
        for (lines, why) in [
            ("", None),
            ("0,,20us\n", Some("may.csv:2: a line has 3 fields")),
            ("0,,soon,\n", Some("may.csv:2: `soon` is no time")),
            (",,20us,\n", Some("may.csv:2: no link is named")),
            ("0,,20us,20us\n", Some("may.csv:2: it comes back at 20us, before it fails at 20us")),
            ("0,,20us,30us\n0,,30us,40us\n", None),
            ("0,,20us,30us\n0,,29us,40us\n", Some("may.csv:3: it fails at 29us while it is off")),
            ("0,1,30us,40us\n1,0,20us,\n", Some("may.csv:2: it fails at 30us while it is off")),
        ] {
            let parsed = parse("may.csv", &format!("{head}{lines}")).map_err(|problem| problem.title);
            match why {
                None => assert!(parsed.is_ok(), "{lines}: {parsed:?}"),
                Some(why) => assert!(parsed.clone().unwrap_err().contains(why), "{lines}: {parsed:?}"),
            }
        }
        let headless = parse("may.csv", "0,,20us,\n").unwrap_err().title;
        assert!(headless.contains("may.csv:1: this is no schedule"), "{headless}");
    }
}
