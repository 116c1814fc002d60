//! Memory of this process and of the system: for `performance.json` and estimates.

use std::path::{Path, PathBuf};

/// The most memory that this process ever held in bytes; `None` where the system does not say.
/// From `VmHWM` of `/proc/self/status`, proc(5).
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Memory that this process may still take in bytes: what the system has available, proc(5), what its
/// control groups allow, cgroups(7), and what is left of its address space (`ulimit -v`), getrlimit(2);
/// `None` where the system does not say.
pub fn available_memory() -> Option<u64> {
    let memory = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = limit_files(&groups).into_iter().filter_map(|file| {
        let text = std::fs::read_to_string(file).ok()?;
        // `max`: no limit.
        text.trim().parse::<u64>().ok()
    });
    let limit = limits.chain(address_space_left()).min().unwrap_or(u64::MAX);
    Some(limit.min(kilobytes.saturating_mul(1024)))
}

/// The files with the limits of the control groups that `/proc/self/cgroup` names, and of those above them.
fn limit_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        // Number, controllers, path: version 2 has no controllers.
        let mut fields = line.splitn(3, ':').skip(1);
        let (root, name) = match fields.next() {
            Some("") => ("/sys/fs/cgroup", "memory.max"),
            Some(list) if list.split(',').any(|controller| controller == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let path = Path::new(fields.next().unwrap_or("/"));
        let below_root = |group: &Path| Path::new(root).join(group.strip_prefix("/").unwrap_or(group));
        // In a container the path is that of its host: the root has the container's own limit.
        files.extend(path.ancestors().map(|group| below_root(group).join(name)));
    }
    files
}

/// The unused rest of the limit of the address space; `None`: there is no limit.
fn address_space_left() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit: u64 = limit.split_whitespace().next()?.parse().ok()?;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let used = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
    let kilobytes: u64 = used.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(limit.saturating_sub(kilobytes.saturating_mul(1024)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches the limit of a batch job or a container that is not looked at.
    #[test]
    fn all_groups_above_the_own_one_limit_it() {
        let files = |groups: &str| -> Vec<String> {
            limit_files(groups).iter().map(|file| file.to_string_lossy().into_owned()).collect()
        };
        assert_eq!(
            files("0::/slurm/job_7\n"),
            [
                "/sys/fs/cgroup/slurm/job_7/memory.max",
                "/sys/fs/cgroup/slurm/memory.max",
                "/sys/fs/cgroup/memory.max"
            ]
        );
        assert_eq!(
            files("4:cpu,memory:/job\n3:pids:/job\n"),
            [
                "/sys/fs/cgroup/memory/job/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes"
            ]
        );
        assert!(files("").is_empty());
    }

    /// Catches a reading of the wrong line or unit: touching 64 MiB must raise the peak to at least that.
    #[test]
    fn peak_memory_covers_what_was_touched() {
        let touched = vec![1u8; 64 << 20];
        assert!(touched.iter().map(|&byte| u64::from(byte)).sum::<u64>() == 64 << 20);
        let peak = peak_memory().expect("Linux says");
        assert!((64 << 20..64 << 30).contains(&peak), "{peak}");
    }
}
