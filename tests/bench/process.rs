//! Figures of a running process, as the kernel gives them.

use std::fs::read_to_string;
use std::time::Duration;

use anyhow::Context as _;

/// The unit of times in `stat`, in milliseconds. The kernel shows 100 ticks a second, whatever it
/// counts internally.
const TICK_MS: u64 = 10;

/// The process, and the processes that it and they have started.
pub fn family(process: u32) -> Vec<u32> {
    let mut family = vec![process];
    let mut at = 0;
    while let Some(parent) = family.get(at).copied() {
        at += 1;
        // One that ended meanwhile has none.
        let threads = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        for thread in threads {
            let children = read_to_string(thread.path().join("children")).unwrap_or_default();
            family.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
    }
    family
}

/// CPU time of the process's threads, in user and kernel mode together, and of those that it has
/// started and that live. It is exact if the kernel counts each thread's run time. Otherwise it
/// comes from `stat`, in steps of 10 ms.
///
/// # Errors
/// The process is gone.
pub fn cpu_time(process: u32) -> anyhow::Result<Duration> {
    let others = family(process).into_iter().skip(1).filter_map(|other| cpu_time_of(other).ok());
    Ok(others.sum::<Duration>() + cpu_time_of(process)?)
}

fn cpu_time_of(process: u32) -> anyhow::Result<Duration> {
    match run_time(process) {
        Some(nanoseconds) => Ok(Duration::from_nanos(nanoseconds)),
        None => cpu_time_of_stat(process),
    }
}

fn run_time(process: u32) -> Option<u64> {
    let mut total = 0_u64;
    for thread in std::fs::read_dir(format!("/proc/{process}/task")).ok()? {
        let path = thread.ok()?.path().join("schedstat");
        // A thread that ended meanwhile is left out.
        let Ok(text) = read_to_string(path) else { continue };
        total += text.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    (total > 0).then_some(total)
}

fn cpu_time_of_stat(process: u32) -> anyhow::Result<Duration> {
    // utime and stime are fields 14 and 15.
    ticks(&format!("/proc/{process}/stat"), 14)
}

/// CPU time of the ended children of this process, and of theirs, in steps of 10 ms.
///
/// # Errors
/// The kernel does not say.
pub fn cpu_time_of_children() -> anyhow::Result<Duration> {
    // cutime and cstime are fields 16 and 17.
    ticks("/proc/self/stat", 16)
}

/// The sum of two fields of this file, which are in ticks. The first field is number 1.
fn ticks(file: &str, field: usize) -> anyhow::Result<Duration> {
    let text = read_to_string(file)?;
    // The name, in parentheses, may contain anything; only numbers follow it, from field 3 on.
    let (_, fields) = text.rsplit_once(')').context("no such stat")?;
    let ticks: u64 =
        fields.split_whitespace().skip(field - 3).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * TICK_MS))
}

/// Resident memory in MB (10^6 bytes).
#[derive(Clone, Copy, Default)]
pub struct Resident {
    /// Now, with pages of files: the program, and the code of components.
    pub now: f64,
    /// The most so far.
    pub peak: f64,
    /// Now, without pages of files.
    pub own: f64,
}

/// Resident memory of the process.
///
/// # Errors
/// The process is gone.
pub fn resident(process: u32) -> anyhow::Result<Resident> {
    let text = read_to_string(format!("/proc/{process}/status"))?;
    let of = |key| megabytes(&text, key);
    Ok(Resident { now: of("VmRSS:")?, peak: of("VmHWM:")?, own: of("RssAnon:")? })
}

/// Resident memory of a process and those that it has started, in MB (10^6 bytes). Pages that
/// several of them have count once, where the kernel tells.
#[derive(Clone, Copy, Default)]
pub struct ResidentOfAll {
    /// With pages of files: the program, and the code of components.
    pub now: f64,
    /// Without pages of files.
    pub own: f64,
    /// The number of processes.
    pub processes: usize,
}

/// Resident memory of the process and those that it has started.
///
/// # Errors
/// The process is gone.
pub fn resident_of_all(process: u32) -> anyhow::Result<ResidentOfAll> {
    let mut all = ResidentOfAll::default();
    for member in family(process) {
        match share(member) {
            Ok(Share { now, own }) => {
                all.now += now;
                all.own += own;
                all.processes += 1;
            }
            Err(error) if member == process => return Err(error),
            // One that ended meanwhile has none.
            Err(_) => {}
        }
    }
    Ok(all)
}

/// A process's share of memory, in MB: of a page that several have, each has a part.
struct Share {
    now: f64,
    own: f64,
}

fn share(process: u32) -> anyhow::Result<Share> {
    match read_to_string(format!("/proc/{process}/smaps_rollup")) {
        Ok(text) => Ok(Share { now: megabytes(&text, "Pss:")?, own: megabytes(&text, "Pss_Anon:")? }),
        // The kernel does not tell: all its pages count.
        Err(_) => resident(process).map(|resident| Share { now: resident.now, own: resident.own }),
    }
}

/// The figure behind `key`, which is in KiB.
fn megabytes(text: &str, key: &str) -> anyhow::Result<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)).context("the process is gone")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024.0 / 1e6)
}
