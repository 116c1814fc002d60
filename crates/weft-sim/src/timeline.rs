//! Timelines as Chrome trace events, which <https://ui.perfetto.dev> opens.
//!
//! ```text
//!  rank 0  ▇▇compute▇▇▇▇│send│──wait──│▇▇compute▇▇
//!                          ╲ message
//!  rank 1  ▇▇compute▇│──────wait──────►│▇▇compute▇▇▇▇
//! ```
//!
//! A rank is a track of process 1, a counter a track of process 2. Events may come in any order: the
//! viewer sorts them. Times are microseconds with six decimals, so no picosecond is lost.
//!
//! # Source
//! "Trace Event Format" (Google): phases X (complete), s and f (flow), i (instant), C (counter), M
//! (metadata).

use serde::Serialize;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use weft_results::ResultsError;
use weft_trace::Region;
use weft_units::{Bytes, RankId, Span, Time};

const RANKS: u32 = 1;
const COUNTERS: u32 = 2;

/// The activity of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activity {
    /// It computes.
    Compute,
    /// It is in the software of the messaging layer.
    Communicate,
    /// It waits.
    Wait,
}

impl Activity {
    const fn name(self) -> &'static str {
        match self {
            Activity::Compute => "compute",
            Activity::Communicate => "communicate",
            Activity::Wait => "wait",
        }
    }
}

/// A message, drawn as an arrow from one slice to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrow {
    /// Distinguishes the messages of a timeline.
    pub id: u64,
    /// The sender.
    pub from: RankId,
    /// A time within the sender's slice.
    pub sent: Time,
    /// The receiver.
    pub to: RankId,
    /// A time within the receiver's slice.
    pub received: Time,
    /// Payload.
    pub bytes: Bytes,
}

/// Writes a timeline as the run goes. Memory does not grow with it.
///
/// The file is there, and closed JSON, after [`TimelineWriter::finish`] and when the writer is dropped; until
/// then it is called `PATH.part`, which is removed after a failed write.
pub struct TimelineWriter {
    path: PathBuf,
    /// Where it is written: at its path, if that is no file, such as a pipe.
    partial: PathBuf,
    /// `None` after finishing or failing.
    file: Option<BufWriter<File>>,
    first: bool,
}

impl TimelineWriter {
    /// A timeline at `path`; an existing file is written over.
    pub fn create(path: &Path) -> Result<TimelineWriter, ResultsError> {
        let mut partial = path.as_os_str().to_owned();
        let is_special = path.exists() && !path.is_file();
        partial.push(if is_special { "" } else { ".part" });
        let file = File::create(&partial).map_err(|e| ResultsError::file("write", path, e))?;
        let file = Some(BufWriter::new(file));
        let mut writer = TimelineWriter { path: path.to_owned(), partial: partial.into(), file, first: true };
        writer.write(|file| file.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":["))?;
        for (process, name) in [(RANKS, "ranks"), (COUNTERS, "counters")] {
            writer.event(format_args!(
                r#""ph":"M","name":"process_name","pid":{process},"args":{{"name":"{name}"}}"#
            ))?;
        }
        Ok(writer)
    }

    /// Names the track of a rank, such as `rank 3 (M1QAF1)`.
    pub fn track(&mut self, rank: RankId, name: &str) -> Result<(), ResultsError> {
        self.event(format_args!(
            r#""ph":"M","name":"thread_name","pid":{RANKS},"tid":{rank},"args":{{"name":{}}}"#,
            Text(name)
        ))
    }

    /// A rank was active from `start` to `end`; `name` says how, such as `MPI_Wait`.
    pub fn slice(
        &mut self,
        rank: RankId,
        (activity, name): (Activity, &str),
        start: Time,
        end: Time,
    ) -> Result<(), ResultsError> {
        self.event(format_args!(
            r#""ph":"X","name":{},"cat":"{}","pid":{RANKS},"tid":{rank},"ts":{},"dur":{}"#,
            Text(name),
            activity.name(),
            Microseconds(start - Time::ZERO),
            Microseconds(end - start)
        ))
    }

    /// A message.
    pub fn message(&mut self, arrow: Arrow) -> Result<(), ResultsError> {
        const MESSAGE: &str = r#""name":"message","cat":"message""#;
        let Arrow { id, from, sent, to, received, bytes } = arrow;
        self.event(format_args!(
            r#""ph":"s",{MESSAGE},"id":{id},"pid":{RANKS},"tid":{from},"ts":{},"args":{{"bytes":{}}}"#,
            Microseconds(sent - Time::ZERO),
            bytes.get()
        ))?;
        self.event(format_args!(
            r#""ph":"f","bp":"e",{MESSAGE},"id":{id},"pid":{RANKS},"tid":{to},"ts":{}"#,
            Microseconds(received - Time::ZERO)
        ))
    }

    /// A marker of the program.
    pub fn marker(&mut self, rank: RankId, time: Time, text: &str) -> Result<(), ResultsError> {
        self.event(format_args!(
            r#""ph":"i","s":"t","name":{},"cat":"marker","pid":{RANKS},"tid":{rank},"ts":{}"#,
            Text(text),
            Microseconds(time - Time::ZERO)
        ))
    }

    /// A rank was in a region of interest from `start` to `end`: a slice around its others.
    pub fn region(
        &mut self,
        rank: RankId,
        region: Region,
        start: Time,
        end: Time,
    ) -> Result<(), ResultsError> {
        self.event(format_args!(
            r#""ph":"X","name":"region {region}","cat":"region","pid":{RANKS},"tid":{rank},"ts":{},"dur":{}"#,
            Microseconds(start - Time::ZERO),
            Microseconds(end - start)
        ))
    }

    /// A value that changes over time, on a track of its own named `name`, its unit included.
    pub fn counter(&mut self, name: &str, time: Time, value: u64) -> Result<(), ResultsError> {
        self.event(format_args!(
            r#""ph":"C","name":{},"pid":{COUNTERS},"ts":{},"args":{{"value":{value}}}"#,
            Text(name),
            Microseconds(time - Time::ZERO)
        ))
    }

    /// Closes the file.
    pub fn finish(mut self) -> Result<(), ResultsError> {
        self.close()
    }

    fn close(&mut self) -> Result<(), ResultsError> {
        if self.file.is_none() {
            return Ok(());
        }
        self.write(|file| file.write_all(b"\n]}\n").and_then(|()| file.flush()))?;
        self.file = None;
        if self.partial != self.path {
            fs::rename(&self.partial, &self.path)
                .map_err(|error| ResultsError::file("write", &self.path, error))?;
        }
        Ok(())
    }

    fn event(&mut self, fields: fmt::Arguments<'_>) -> Result<(), ResultsError> {
        let separator = if std::mem::take(&mut self.first) { "\n" } else { ",\n" };
        self.write(|file| write!(file, "{separator}{{{fields}}}"))
    }

    fn write(
        &mut self,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), ResultsError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        write(file).map_err(|error| {
            if let Some(file) = self.file.take() {
                // What the buffer holds would fail again.
                let _ = file.into_parts();
            }
            if self.partial.is_file() {
                // The failed write is the error to report.
                let _ = fs::remove_file(&self.partial);
            }
            ResultsError::file("write", &self.path, error)
        })
    }
}

impl Drop for TimelineWriter {
    fn drop(&mut self) {
        if self.file.is_some() {
            // Whoever wants to know of a failure calls finish.
            let _ = self.close();
        }
    }
}

/// Microseconds with six decimals.
struct Microseconds(Span);

impl fmt::Display for Microseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ps = self.0.as_ps();
        write!(f, "{}.{:06}", ps / 1_000_000, ps % 1_000_000)
    }
}

/// A JSON string.
struct Text<'a>(&'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut json = Vec::new();
        self.0.serialize(&mut serde_json::Serializer::new(&mut json)).map_err(|_| fmt::Error)?;
        f.write_str(std::str::from_utf8(&json).map_err(|_| fmt::Error)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn read(path: &Path) -> Vec<Value> {
        let document: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        document["traceEvents"].as_array().unwrap().clone()
    }

    fn some_of_everything(timeline: &mut TimelineWriter) {
        let at = Time::from_ps;
        timeline.track(RankId(0), "rank 0 \"quoted\\\n\u{1}").unwrap();
        timeline.slice(RankId(0), (Activity::Wait, "MPI_Wait"), at(1), at(1_000_002)).unwrap();
        let (sent, received) = (at(5), at(7_000_000));
        timeline
            .message(Arrow { id: 9, from: RankId(0), sent, to: RankId(1), received, bytes: Bytes::new(64) })
            .unwrap();
        timeline.marker(RankId(1), at(3), "step 1").unwrap();
        timeline.region(RankId(0), Region::of_level(3).unwrap(), at(0), at(2_000_000)).unwrap();
        timeline.counter("queued_bytes", at(4), u64::MAX).unwrap();
    }

    #[test]
    fn a_timeline_reads_back_to_the_picosecond() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.json");
        let mut timeline = TimelineWriter::create(&path).unwrap();
        some_of_everything(&mut timeline);
        timeline.finish().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(r#""ts":0.000001,"dur":1.000001"#), "{text}");
        let events = read(&path);
        let phases: Vec<_> = events.iter().map(|e| e["ph"].as_str().unwrap()).collect();
        assert_eq!(phases, ["M", "M", "M", "X", "s", "f", "i", "X", "C"]);
        assert_eq!(events[2]["args"]["name"], "rank 0 \"quoted\\\n\u{1}");
        assert_eq!((&events[4]["id"], &events[5]["id"]), (&Value::from(9), &Value::from(9)));
        assert_eq!((&events[7]["name"], &events[7]["cat"]), (&"region 3".into(), &"region".into()));
        assert_eq!(events[8]["args"]["value"], u64::MAX);
    }

    /// Catches a file cut off where the run was.
    #[test]
    fn a_dropped_timeline_is_valid() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.json");
        some_of_everything(&mut TimelineWriter::create(&path).unwrap());
        assert_eq!(read(&path).len(), 9);
    }

    #[test]
    fn a_full_disk_is_named_and_nothing_is_written_twice() {
        let mut timeline = TimelineWriter::create(Path::new("/dev/full")).unwrap();
        let long = "x".repeat(10_000);
        let error = timeline.marker(RankId(0), Time::ZERO, &long).unwrap_err();
        assert!(matches!(&error, ResultsError::DiskFull(path) if path == Path::new("/dev/full")), "{error}");
    }
}
