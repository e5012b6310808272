//! What processes cost: seconds of processors, and memory.

use std::fs;

/// The processor time of a process and its children, in ticks of the clock.
pub(crate) fn ticks(pid: u32) -> u64 {
    family(pid).into_iter().filter_map(ticks_of).sum()
}

/// How many ticks there are in a second, on Linux as it runs everywhere.
pub(crate) const TICKS: f64 = 100.0;

/// The memory that a process has in use, in kibibytes.
pub(crate) fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// The fields of `/proc/PID/stat` behind the name, which may hold spaces.
fn stat(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(stat.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect())
}

fn ticks_of(pid: u32) -> Option<u64> {
    let fields = stat(pid)?;
    Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
}

/// A process and those that it started.
fn family(pid: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let children = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let parent = |child: u32| stat(child).and_then(|fields| fields.get(1)?.parse::<u32>().ok());
    std::iter::once(pid).chain(children.filter(|child| parent(*child) == Some(pid))).collect()
}
