//! Memory of this process and of the system: for `performance.json` and estimates.

use std::fmt;
use std::path::{Path, PathBuf};

/// The most memory that this process ever held in bytes; `None` where the system does not say.
/// From `VmHWM` of `/proc/self/status`, proc(5).
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    kilobytes(&status, "VmHWM:")
}

/// Memory that this process may still take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AvailableMemory {
    /// In bytes.
    pub bytes: u64,
    /// The limit that leaves no more.
    pub limit: MemoryLimit,
}

/// A limit of memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemoryLimit {
    /// The free memory of the computer, proc(5).
    System,
    /// This file of a control group, as of a batch job or a container, cgroups(7).
    ControlGroup(PathBuf),
    /// A limit of the process, getrlimit(2): the option of `ulimit` that sets it.
    Process(&'static str),
}

impl fmt::Display for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryLimit::System => write!(f, "the free memory of this computer; end other programs"),
            MemoryLimit::ControlGroup(file) => {
                write!(f, "the limit of this job or container ({}); raise it", file.display())
            }
            MemoryLimit::Process(option) => write!(f, "the limit of ulimit {option}; raise it"),
        }
    }
}

/// Memory that this process may still take: the least of what the system has available, what its control
/// groups leave, and what is left of its own limits; `None` where the system does not say.
pub fn available_memory() -> Option<AvailableMemory> {
    let memory = std::fs::read_to_string("/proc/meminfo").ok()?;
    let system = AvailableMemory { bytes: kilobytes(&memory, "MemAvailable:")?, limit: MemoryLimit::System };
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let groups = limit_files(&groups).into_iter().filter_map(left_in_group);
    let least = process_limits().into_iter().chain(groups).chain([system]);
    least.min_by_key(|available| available.bytes)
}

/// The number of this line of a file of proc(5), in bytes.
fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes.saturating_mul(1024))
}

/// The rest that a control group leaves, by the file of its limit; `None`: there is no limit. Of what the
/// group uses, files that were read count as free: the system drops them first.
fn left_in_group(file: PathBuf) -> Option<AvailableMemory> {
    let number = |file: &Path| std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    // `max`: no limit.
    let limit = number(&file)?;
    let used = number(&file.with_file_name("memory.current"))
        .or_else(|| number(&file.with_file_name("memory.usage_in_bytes")));
    let statistics = std::fs::read_to_string(file.with_file_name("memory.stat")).unwrap_or_default();
    let files = statistics.lines().find_map(|line| line.strip_prefix("inactive_file "));
    let files = files.and_then(|bytes| bytes.trim().parse().ok()).unwrap_or(0);
    let bytes = limit.saturating_sub(used.unwrap_or(0).saturating_sub(files));
    Some(AvailableMemory { bytes, limit: MemoryLimit::ControlGroup(file) })
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

/// The unused rests of the process's own limits: of its address space, and of its data.
fn process_limits() -> Vec<AvailableMemory> {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let left = |(name, used, option): (&str, &str, &'static str)| {
        let limit = limits.lines().find_map(|line| line.strip_prefix(name))?;
        let limit: u64 = limit.split_whitespace().next()?.parse().ok()?;
        let bytes = limit.saturating_sub(kilobytes(&status, used)?);
        Some(AvailableMemory { bytes, limit: MemoryLimit::Process(option) })
    };
    [("Max address space", "VmSize:", "-v"), ("Max data size", "VmData:", "-d")]
        .into_iter()
        .filter_map(left)
        .collect()
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

    /// Catches a group that counts as empty, files that count as used, and a group without a limit that
    /// counts.
    #[test]
    fn a_group_leaves_what_it_does_not_use() {
        let group = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(group.path().join(name), text).unwrap();
        let file = group.path().join("memory.max");
        let limit = MemoryLimit::ControlGroup(file.clone());
        write("memory.max", "1000000\n");
        let left = |bytes| Some(AvailableMemory { bytes, limit: limit.clone() });
        assert_eq!(left_in_group(file.clone()), left(1_000_000));
        write("memory.current", "700000\n");
        write("memory.stat", "anon 5\ninactive_file 200000\nactive_file 7\n");
        assert_eq!(left_in_group(file.clone()), left(500_000));
        write("memory.current", "1700000\n");
        assert_eq!(left_in_group(file.clone()), left(0));
        write("memory.max", "max\n");
        assert_eq!(left_in_group(file), None);
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
