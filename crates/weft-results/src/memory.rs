//! Memory of this process and of the system: for `performance.json` and estimates.

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
