//! The interfaces that guests can import, by their names and versions.

/// Every interface that this host offers. wasmtime links a component that names another patch
/// release of the same 0.2 or 0.3, older or newer.
const OFFERED: [(&str, Versions); 48] = [
    ("wasi:cli/environment", Versions::BOTH_WASI),
    ("wasi:cli/exit", Versions::BOTH_WASI),
    ("wasi:cli/stderr", Versions::BOTH_WASI),
    ("wasi:cli/stdin", Versions::BOTH_WASI),
    ("wasi:cli/stdout", Versions::BOTH_WASI),
    ("wasi:cli/terminal-input", Versions::BOTH_WASI),
    ("wasi:cli/terminal-output", Versions::BOTH_WASI),
    ("wasi:cli/terminal-stderr", Versions::BOTH_WASI),
    ("wasi:cli/terminal-stdin", Versions::BOTH_WASI),
    ("wasi:cli/terminal-stdout", Versions::BOTH_WASI),
    ("wasi:cli/types", Versions::LATER_WASI),
    ("wasi:clocks/monotonic-clock", Versions::BOTH_WASI),
    ("wasi:clocks/system-clock", Versions::LATER_WASI),
    ("wasi:clocks/types", Versions::LATER_WASI),
    ("wasi:clocks/wall-clock", Versions::WASI),
    ("wasi:config/runtime", Versions::Drafts(&["0.2.0-draft"])),
    ("wasi:config/store", Versions::Drafts(&["0.2.0-draft", "0.2.0-draft-2024-09-27", "0.2.0-rc.1"])),
    ("wasi:filesystem/preopens", Versions::BOTH_WASI),
    ("wasi:filesystem/types", Versions::BOTH_WASI),
    ("wasi:http/client", Versions::LATER_WASI),
    ("wasi:http/outgoing-handler", Versions::WASI),
    ("wasi:http/types", Versions::BOTH_WASI),
    ("wasi:io/error", Versions::WASI),
    ("wasi:io/poll", Versions::WASI),
    ("wasi:io/streams", Versions::WASI),
    ("wasi:keyvalue/atomics", Versions::Drafts(&["0.2.0-draft"])),
    ("wasi:keyvalue/batch", Versions::Drafts(&["0.2.0-draft"])),
    ("wasi:keyvalue/store", Versions::Drafts(&["0.2.0-draft"])),
    ("wasi:logging/logging", Versions::Drafts(&["", "0.1.0", "0.1.0-draft"])),
    ("wasi:random/insecure", Versions::BOTH_WASI),
    ("wasi:random/insecure-seed", Versions::BOTH_WASI),
    ("wasi:random/random", Versions::BOTH_WASI),
    ("wasi:sockets/instance-network", Versions::WASI),
    ("wasi:sockets/ip-name-lookup", Versions::BOTH_WASI),
    ("wasi:sockets/network", Versions::WASI),
    ("wasi:sockets/tcp", Versions::WASI),
    ("wasi:sockets/tcp-create-socket", Versions::WASI),
    ("wasi:sockets/types", Versions::LATER_WASI),
    ("wasi:sockets/udp", Versions::WASI),
    ("wasi:sockets/udp-create-socket", Versions::WASI),
    ("toolcell:mcp/asking", Versions::CONTRACT),
    ("toolcell:mcp/calling", Versions::CONTRACT),
    ("toolcell:mcp/cancellation", Versions::CONTRACT),
    ("toolcell:mcp/log", Versions::CONTRACT),
    ("toolcell:mcp/progress", Versions::CONTRACT),
    ("toolcell:mcp/request", Versions::CONTRACT),
    ("toolcell:mcp/types", Versions::CONTRACT),
    ("toolcell:mcp/updates", Versions::CONTRACT),
];

/// The versions in which an interface is offered.
#[derive(Clone, Copy)]
enum Versions {
    /// Each release of these series.
    Releases(&'static [&'static str]),
    /// Only these drafts, since a draft may differ from every other. Empty: without a version.
    Drafts(&'static [&'static str]),
}

impl Versions {
    const WASI: Self = Self::Releases(&["0.2."]);
    /// For components whose manifest says so.
    const LATER_WASI: Self = Self::Releases(&["0.3."]);
    const BOTH_WASI: Self = Self::Releases(&["0.2.", "0.3."]);
    /// Each version of the tool contract up to this host's own.
    const CONTRACT: Self = Self::Releases(&["1."]);

    fn contain(self, version: &str) -> bool {
        match self {
            Self::Releases(series) => series.iter().any(|series| is_release(version, series)),
            Self::Drafts(drafts) => drafts.contains(&version),
        }
    }

    fn show(self) -> String {
        let named: Vec<String> = match self {
            Self::Releases(series) => series.iter().map(|series| format!("{series}x")).collect(),
            Self::Drafts(drafts) => {
                let named = |draft: &&str| if draft.is_empty() { "no version" } else { *draft }.to_owned();
                drafts.iter().map(named).collect()
            }
        };
        named.join(" and ")
    }
}

/// True for `0.2.12` with `0.2.`, but not for `0.2.0-draft`.
fn is_release(version: &str, series: &str) -> bool {
    let rest = version.strip_prefix(series);
    rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

/// The interface that gives a guest the power of native code, in builds for drills.
#[cfg(feature = "drill")]
pub const DRILL: &str = "toolcell:drill/native@1.0.0";

/// True if this host offers the import.
#[must_use]
pub fn offered(import: &str) -> bool {
    #[cfg(feature = "drill")]
    if import == DRILL {
        return true;
    }
    let (interface, version) = import.split_once('@').unwrap_or((import, ""));
    versions(interface).is_some_and(|versions| versions.contain(version))
}

/// The import, with the versions in which this host offers the same interface, if any.
#[must_use]
pub fn with_offer(import: &str) -> String {
    let (interface, _) = import.split_once('@').unwrap_or((import, ""));
    match versions(interface) {
        Some(versions) => format!("{import} (offered: {})", versions.show()),
        None => import.to_owned(),
    }
}

fn versions(interface: &str) -> Option<Versions> {
    OFFERED.iter().find_map(|(name, versions)| (*name == interface).then_some(*versions))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_release_is_offered_and_no_other_version() {
        for version in ["0.2.0", "0.2.3", "0.2.12", "0.2.99"] {
            assert!(offered(&format!("wasi:io/streams@{version}")), "{version}");
        }
        for version in ["0.3.0", "0.2.", "0.2.0-rc-2023-11-10", "0.20.0", "1.0.0", ""] {
            assert!(!offered(&format!("wasi:io/streams@{version}")), "{version}");
        }
        assert!(!offered("wasi:io/streams"));
        for version in ["0.2.3", "0.3.0", "0.3.1"] {
            assert!(offered(&format!("wasi:cli/stdout@{version}")), "{version}");
        }
        for version in ["0.3.0-rc-2025-09-16", "0.4.0"] {
            assert!(!offered(&format!("wasi:cli/stdout@{version}")), "{version}");
        }
        assert!(offered("wasi:http/client@0.3.0") && !offered("wasi:http/handler@0.3.0"));
        assert!(!offered("wasi:cli/run@0.2.0"), "a tool exports it");
    }

    /// The interfaces of a row's first cell: names in back quotes, of the package before them where
    /// they have none.
    fn named(cell: &str) -> Vec<String> {
        let mut package = "";
        let names = cell.split('`').skip(1).step_by(2);
        names
            .map(|name| match name.split_once('/') {
                Some((of, _)) => {
                    package = of;
                    name.to_owned()
                }
                None if name.contains(':') => format!("{name}/*"),
                None => format!("{package}/{name}"),
            })
            .collect()
    }

    fn is(interface: &str, named: &str) -> bool {
        named.strip_suffix('*').map_or(interface == named, |begins| interface.starts_with(begins))
    }

    #[test]
    fn the_page_names_each_interface_with_its_versions_and_no_other() {
        let page = include_str!("../../../docs/interfaces.md");
        let (there, missing) = page.split_once("## What is not there").unwrap();
        let rows = |part: &'static str| part.lines().filter(|line| line.starts_with("| `"));
        let cells = |row: &'static str| row.split(" | ").map(|cell| cell.trim_start_matches("| ")).collect::<Vec<_>>();
        let mut held = Vec::new();
        for row in rows(there) {
            let cells = cells(row);
            for name in named(cells[0]) {
                let found = OFFERED.iter().filter(|(interface, _)| is(interface, &name)).collect::<Vec<_>>();
                assert!(!found.is_empty(), "{name} is not offered");
                for (interface, versions) in found {
                    let mut listed = cells[1].split(", ").collect::<Vec<_>>();
                    listed.sort_unstable();
                    let mut offered = match versions {
                        Versions::Releases(series) => {
                            series.iter().map(|series| format!("{series}x")).collect::<Vec<_>>()
                        }
                        Versions::Drafts(drafts) => drafts
                            .iter()
                            .map(|draft| if draft.is_empty() { "without version" } else { draft }.to_owned())
                            .collect(),
                    };
                    offered.sort_unstable();
                    assert_eq!(listed, offered, "{interface}");
                    held.push(*interface);
                }
            }
        }
        for (interface, _) in OFFERED {
            assert!(held.contains(&interface), "{interface} is in no row");
        }
        let missing = rows(missing).flat_map(|row| named(cells(row)[0]));
        let offered: Vec<String> =
            missing.filter(|name| OFFERED.iter().any(|(interface, _)| is(interface, name))).collect();
        // Another draft of it.
        assert_eq!(offered, ["wasi:keyvalue/*"]);
    }

    #[test]
    fn an_interface_in_another_version_is_told_with_what_is_offered() {
        let told = |import: &str| with_offer(import);
        assert_eq!(told("wasi:keyvalue/store@0.2.0-draft2"), "wasi:keyvalue/store@0.2.0-draft2 (offered: 0.2.0-draft)");
        assert_eq!(told("wasi:http/types@0.4.0"), "wasi:http/types@0.4.0 (offered: 0.2.x and 0.3.x)");
        assert_eq!(told("wasi:sockets/types@0.4.0"), "wasi:sockets/types@0.4.0 (offered: 0.3.x)");
        assert_eq!(
            told("wasi:config/store@0.3.0"),
            "wasi:config/store@0.3.0 (offered: 0.2.0-draft and 0.2.0-draft-2024-09-27 and 0.2.0-rc.1)"
        );
        assert_eq!(
            told("wasi:logging/logging@1.0.0"),
            "wasi:logging/logging@1.0.0 (offered: no version and 0.1.0 and 0.1.0-draft)"
        );
        assert_eq!(told("toolcell:mcp/log@2.0.0"), "toolcell:mcp/log@2.0.0 (offered: 1.x)");
        assert_eq!(told("evil:corp/api@1.0.0"), "evil:corp/api@1.0.0");
    }
}
