//! Wall time: for `performance.json` and progress only, never for the model.

/// A stopwatch of wall time, started when it is made.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::disallowed_types, reason = "speed is measured in wall time; no model sees it")]
pub struct Stopwatch(std::time::Instant);

impl Stopwatch {
    /// A stopwatch that starts now.
    #[allow(clippy::disallowed_methods, reason = "speed is measured in wall time; no model sees it")]
    #[allow(clippy::disallowed_types, reason = "speed is measured in wall time; no model sees it")]
    pub fn start() -> Stopwatch {
        Stopwatch(std::time::Instant::now())
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// The present date and time as RFC 3339 in UTC: `2026-11-20T17:10:37Z`.
#[allow(clippy::disallowed_methods, reason = "the date of a run goes into performance.json only")]
#[allow(clippy::disallowed_types, reason = "the date of a run goes into performance.json only")]
pub fn date() -> String {
    humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string()
}

/// When a command began: its date, and a stopwatch started at that moment.
#[derive(Clone, Debug)]
pub struct Beginning {
    /// The date as RFC 3339 in UTC.
    pub date: String,
    /// Wall time since then.
    pub stopwatch: Stopwatch,
}

impl Beginning {
    /// The present moment.
    pub fn now() -> Beginning {
        Beginning { date: date(), stopwatch: Stopwatch::start() }
    }
}
