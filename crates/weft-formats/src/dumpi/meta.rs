//! The text that tells of a run: `key=value`, line by line.

use crate::error::{FilePlace, TraceError};
use crate::header::TraceHeader;
use crate::input::{Input, InputReader};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Largest number of ranks; a larger one is taken for damage.
const MAX_RANKS: u32 = 1 << 24;

/// Digits of the number in the names of the ranks' files: four, unless somebody renamed them.
const WIDTHS: [usize; 6] = [4, 5, 6, 3, 2, 1];

/// Bytes of a text that is read as one of a run: it has some ten lines.
const MAX_BYTES: u64 = 1 << 20;

/// The contents of the text.
pub(super) struct Meta {
    values: BTreeMap<String, String>,
    ranks: u32,
    prefix: String,
}

/// Whether a file that begins so is such a text.
pub(super) fn knows(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head);
    let is_key = |line: &str, key: &str| line.split_once('=').is_some_and(|(found, _)| found.trim() == key);
    ["numprocs", "fileprefix"].iter().all(|key| head.lines().any(|line| is_key(line, key)))
}

impl Meta {
    pub(super) fn read(path: &Path) -> Result<Meta, TraceError> {
        let input = Arc::new(Input::open(path)?);
        let mut values = BTreeMap::new();
        let mut reader = InputReader::new(&input, 0..input.len().min(MAX_BYTES), 4096);
        let mut ranks = None;
        for number in 1.. {
            let Some(line) = reader.line()? else { break };
            let line = String::from_utf8_lossy(line);
            let Some((key, value)) = line.split_once('=') else { continue };
            let (key, value) = (key.trim(), value.trim());
            if key == "numprocs" {
                let count = value.parse().ok().filter(|count| (1..=MAX_RANKS).contains(count));
                let wrong = || {
                    let reason = format!("numprocs={value}: expected 1 to {MAX_RANKS}; copy the file again");
                    input.error(FilePlace::Line(number), reason)
                };
                ranks = Some(count.ok_or_else(wrong)?);
            }
            values.insert(key.to_owned(), value.to_owned());
        }
        let missing = |key: &str| {
            let reason = format!("has no line {key}=…; copy the file again");
            TraceError::Run { file: input.name().to_owned(), reason }
        };
        let ranks = ranks.ok_or_else(|| missing("numprocs"))?;
        let prefix = values.get("fileprefix").ok_or_else(|| missing("fileprefix"))?;
        // The files may have been moved since.
        let prefix = prefix.rsplit('/').next().unwrap_or_default().to_owned();
        Ok(Meta { values, ranks, prefix })
    }

    /// The files of the ranks, which lie beside the text.
    pub(super) fn rank_files(&self, meta: &Path) -> Result<Vec<Input>, TraceError> {
        let path = |rank: u32, width: usize| -> PathBuf {
            meta.with_file_name(format!("{}-{rank:0width$}.bin", self.prefix))
        };
        let width = WIDTHS.into_iter().find(|&width| path(0, width).is_file()).unwrap_or(WIDTHS[0]);
        let open = |rank| {
            let path = path(rank, width);
            if !path.is_file() {
                let reason = format!(
                    "rank {rank} of {} lies in {}, which is not there; copy it beside this file",
                    self.ranks,
                    path.display()
                );
                return Err(TraceError::Run { file: meta.display().to_string(), reason });
            }
            Input::open(&path)
        };
        (0..self.ranks).map(open).collect()
    }

    /// The origin of the run.
    pub(super) fn header(&self) -> TraceHeader {
        TraceHeader {
            ranks: self.ranks,
            date: self.values.get("startime").and_then(|at| date(at)),
            ..TraceHeader::default()
        }
    }
}

/// Seconds since 1970 as a date, ISO 8601.
fn date(seconds: &str) -> Option<String> {
    let seconds: i64 = seconds.parse().ok().filter(|seconds| (0..1 << 40).contains(seconds))?;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days of the proleptic Gregorian calendar, from a first of March on: leap days end a year then.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let (hours, minutes, seconds) = (rest / 3600, rest / 60 % 60, rest % 60);
    Some(format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches leap days that are missed.
    #[test]
    fn seconds_are_a_date() {
        for (seconds, expected) in [
            ("0", "1970-01-01T00:00:00Z"),
            ("951782399", "2000-02-28T23:59:59Z"),
            ("951868800", "2000-03-01T00:00:00Z"),
            ("1393887300", "2014-03-03T22:55:00Z"),
        ] {
            assert_eq!(date(seconds).as_deref(), Some(expected));
        }
        assert_eq!(date("yesterday"), None);
    }
}
