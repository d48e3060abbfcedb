//! Memory that this process and those that it starts may take on this machine.
use std::fs;
use std::path::Path;

/// Assumed memory of a machine that does not report it.
const UNKNOWN_BYTES: u64 = 4 << 30;

/// Control groups around a process that are examined: more than anybody nests.
const GROUPS_MAX: usize = 32;

/// Bytes of memory that all sandbox processes and loaders have together, if the manifest does not
/// say: three quarters of the machine's. The rest is for the host and other programs.
pub fn for_sandboxes() -> u64 {
    there_is(Path::new("/proc"), Path::new("/sys/fs/cgroup")) / 4 * 3
}

/// Memory of the machine, or of the narrowest control group around this process.
fn there_is(proc: &Path, groups: &Path) -> u64 {
    let machine = fs::read_to_string(proc.join("meminfo")).ok().and_then(|text| {
        let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"))?;
        total.parse::<u64>().ok()?.checked_mul(1024)
    });
    let own = fs::read_to_string(proc.join("self/cgroup")).unwrap_or_default();
    let bounds = own.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let controllers = parts.next()?;
        let path = parts.next()?.trim_start_matches('/');
        match controllers {
            "" => least(groups, path, "memory.max"),
            other if other.split(',').any(|name| name == "memory") => {
                least(&groups.join("memory"), path, "memory.limit_in_bytes")
            }
            _ => None,
        }
    });
    // A group without a limit reports a huge one.
    bounds.chain(machine).min().unwrap_or(UNKNOWN_BYTES)
}

/// The lowest limit of a group and its parents.
fn least(root: &Path, path: &str, file: &str) -> Option<u64> {
    let folder = root.join(path);
    let around = folder.ancestors().take_while(|folder| folder.starts_with(root)).take(GROUPS_MAX);
    around.filter_map(|folder| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory on a machine of 16 GiB with these files below the folder of control groups.
    fn on(own: &str, files: &[(&str, &str)]) -> u64 {
        let root = tempfile::tempdir().unwrap();
        let proc = root.path().join("proc");
        let groups = root.path().join("groups");
        fs::create_dir_all(proc.join("self")).unwrap();
        fs::write(proc.join("meminfo"), "MemTotal:       16777216 kB\nMemFree: 1 kB\n").unwrap();
        fs::write(proc.join("self/cgroup"), own).unwrap();
        for (path, text) in files {
            let path = groups.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        there_is(&proc, &groups)
    }

    #[test]
    fn there_is_the_memory_of_the_machine_or_of_the_narrowest_group_around_the_process() {
        const GIB: u64 = 1 << 30;
        type Files = &'static [(&'static str, &'static str)];
        let table: [(&str, Files, u64); 8] = [
            ("", &[], 16 * GIB),
            ("0::/a/b\n", &[], 16 * GIB),
            ("0::/a/b\n", &[("a/b/memory.max", "max\n"), ("a/memory.max", "max\n")], 16 * GIB),
            ("0::/a/b\n", &[("a/b/memory.max", "2147483648\n"), ("a/memory.max", "max\n")], 2 * GIB),
            ("0::/a/b\n", &[("a/b/memory.max", "2147483648\n"), ("a/memory.max", "1073741824\n")], GIB),
            ("0::/\n", &[("memory.max", "1073741824\n")], GIB),
            ("0::/a\n", &[("memory.max", "109951162777600\n")], 16 * GIB),
            ("5:cpu:/a\n4:memory,hugetlb:/a\n", &[("memory/a/memory.limit_in_bytes", "1073741824\n")], GIB),
        ];
        for (own, files, bytes) in table {
            assert_eq!(on(own, files), bytes, "{own:?} {files:?}");
        }
        assert_eq!(there_is(Path::new("/nowhere"), Path::new("/nowhere")), UNKNOWN_BYTES);
    }
}
