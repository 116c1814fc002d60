//! Wall clock and memory of this process: for `performance.json` and progress only, never for the model.

/// Measures wall time from its making.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::disallowed_types, reason = "speed is measured in wall time; no model sees it")]
pub struct Stopwatch(std::time::Instant);

impl Stopwatch {
    /// Starts.
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

/// Now, as RFC 3339 in UTC: `2026-11-20T17:10:37Z`.
#[allow(clippy::disallowed_methods, reason = "the date of a run goes into performance.json only")]
#[allow(clippy::disallowed_types, reason = "the date of a run goes into performance.json only")]
pub fn date() -> String {
    humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string()
}

/// The most memory that this process ever held in bytes; `None` where the system does not say.
/// From `VmHWM` of `/proc/self/status`, proc(5).
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Memory that this process may still take in bytes: what the system has available, proc(5), and what
/// its control group allows, cgroups(7); `None` where the system does not say.
pub fn available_memory() -> Option<u64> {
    let memory = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    let limit = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let limit = limit.and_then(|text| text.trim().parse().ok()).unwrap_or(u64::MAX);
    Some(limit.min(kilobytes.saturating_mul(1024)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a reading of the wrong line or unit: touching 64 MiB must raise the peak to at least that.
    #[test]
    fn peak_memory_covers_what_was_touched() {
        let touched = vec![1u8; 64 << 20];
        assert!(touched.iter().map(|&byte| u64::from(byte)).sum::<u64>() == 64 << 20);
        let peak = peak_memory().expect("Linux says");
        assert!((64 << 20..64 << 30).contains(&peak), "{peak}");
    }
}
