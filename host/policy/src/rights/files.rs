//! Files and folders, and scratch space.

use std::sync::Arc;

use serde_json::json;

use super::used::{Narrower, UsedGrants, around_mount};
use super::values::{REQUESTS_MAX, check_requested};
use super::{ADDS_NOTHING, Example, Importer, Narrowing, Right, wider};
use crate::canonical::sorted;
use crate::capabilities::ReachRow;
use crate::diagnostic::Diagnostic;
use crate::edit::{self, Change, ManifestEntry, name_and_value};
use crate::explain::{Ask, AskTextError};
use crate::grants::{
    Access, Capability, FileAccess, Grants, MOUNT_FILES, MOUNT_QUOTA, Mount, MountKind, Quota, RuleRef, SCRATCH,
    Subject, no_mount,
};
use crate::limits::Spec;
use crate::names::{did_you_mean, toml_string};
use crate::quantity::{show_bytes, show_count};
use crate::read::{Entry, Problems, Section, limits, paths};
use crate::requested_permissions::RequestedPermissions;
use crate::suggest::NeededMount;
use crate::table::{keys, table};
use crate::words::Word as _;

/// The most mounts of a component: each is a preopened folder, which language runtimes list at
/// start.
const MOUNTS_MAX: usize = 64;

/// Bytes of scratch space where a text of the command line names none.
const SCRATCH_SIZE: &str = "8MiB";

const IMPORTS: &[&str] = &["wasi:filesystem/"];

table! {
    /// A folder or a file of the host, or space of the call's own: `path` or `scratch`.
    MOUNT "Mount" {
        /// The folder or the file of the host, relative to this file.
        "path": Text, {"minLength": 1, "examples": ["data"]};
        /// The access.
        "access": Words(Access::WORDS), {"default": "read", "examples": ["write"]};
        /// True makes a missing folder; otherwise it is an error of the manifest.
        "create": Flag, {"default": false, "examples": [true]};
        /// Bytes that a writable mount may hold.
        "quota": Limit(&MOUNT_QUOTA), {"examples": ["10MiB"]};
        /// Files and folders that a writable mount may hold.
        "files": Limit(&MOUNT_FILES), {"examples": [100]};
        /// Space of the call's own, gone after it, in place of `path`.
        "scratch": Optional(&SCRATCH), {"examples": ["8MiB"]};
    }
    other names {
        "host" => "path", "folder" => "path", "size" => "quota", "mode" => "access",
    }
}

table! {
    /// A mount of the component as a tool has it: with less, or as it is.
    MOUNT_OF_TOOL "ToolMount" {
        /// The tool's access.
        "access": Words(Access::WORDS), {"examples": ["read"]};
        /// Bytes that the mount may hold: at most the component's quota.
        "quota": Within(&MOUNT_QUOTA), {"examples": ["1MiB"]};
        /// Files and folders that the mount may hold: at most as many as the component's.
        "files": Within(&MOUNT_FILES), {"examples": [10]};
    }
    other names {
        "mode" => "access",
    }
}

table! {
    /// One folder or file.
    MOUNT_OF_REQUEST "RequestedMount" {
        /// The access.
        "access": Words(Access::WORDS), {"default": "read"};
    }
    other names {
        "mode" => "access",
    }
}

/// Files and folders.
pub(crate) static FILES: Right = Right {
    section: "filesystem",
    keys: keys! {
        /// Folders and files, by their path in the guest's tree. The longest path that leads to
        /// a file is its mount.
        "filesystem": Named(&Table(&MOUNT)),
            {"propertyNames": {"pattern": "^/"}, "maxProperties": MOUNTS_MAX};
    },
    keys_of_tool: keys! {
        /// The component's mounts that this tool has, as they are or with less; `{}` for none.
        "filesystem": Named(&Table(&MOUNT_OF_TOOL)), {"propertyNames": {"pattern": "^/"}};
    },
    keys_of_request: keys! {
        /// Folders and files, by their paths in the guest's tree.
        "filesystem": Named(&Table(&MOUNT_OF_REQUEST)), {};
    },
    narrowing: Some(Narrowing::Mounts),
    read: |_, entry, _, grants, problems| {
        let mut mounts: Vec<Mount> = Vec::new();
        for entry in entry.entries(MOUNTS_MAX, "grants::too_many", "mounts", problems) {
            let Some(mount) = mount(&entry, &grants.subject, problems) else { continue };
            if mounts.iter().any(|other| other.guest == mount.guest) {
                let message = format!("{:?} is mounted twice", mount.guest);
                problems.add(entry.key_error("grants::duplicate", message));
                continue;
            }
            warn_of_overlap(&mounts, &mount, problems);
            mounts.push(mount);
        }
        longest_first(&mut mounts);
        grants.files = mounts;
    },
    narrow: |_, entry, grants, problems| {
        let mut kept = Vec::new();
        for entry in entry.section(problems).map(|section| section.entries()).unwrap_or_default() {
            let guest = paths::guest_path(entry.key).unwrap_or_else(|_| entry.key.to_owned());
            let Some(mount) = grants.files.iter().find(|mount| mount.guest == guest) else {
                let hint = match did_you_mean(&guest, grants.files.iter().map(Mount::guest)) {
                    Some(meant) => format!("did you mean {meant:?}?"),
                    None => "a tool names its component's mounts by the same paths".to_owned(),
                };
                problems.add(wider(&format!("the component has no mount {guest:?}"), entry.key_span, &hint));
                continue;
            };
            if let Some(kind) = entry.section(problems).and_then(|section| narrowed_kind(mount, &section, problems)) {
                let narrowed =
                    mount.access() == Access::Write && matches!(kind, MountKind::Host { access: Access::Read, .. });
                kept.push(Mount { kind, narrowed, span: entry.key_span, ..mount.clone() });
            }
        }
        longest_first(&mut kept);
        grants.files = kept;
        true
    },
    read_request: |_, entry, requested, problems| {
        for entry in entry.entries(REQUESTS_MAX, "grants::too_many", "paths", problems) {
            let path = match paths::guest_path(entry.key) {
                Ok(path) => path,
                Err(wrong) => {
                    let message = format!("the path {:?} {wrong}", entry.key);
                    problems.add(entry.key_error("grants::mount", message).hint("write it like \"/data\""));
                    continue;
                }
            };
            check_requested(&path, entry.key_span.clone(), problems);
            if requested.files.iter().any(|(other, _)| *other == path) {
                problems.add(entry.key_error("grants::duplicate", format!("{path:?} appears twice")));
            }
            let Some(section) = entry.table(&MOUNT_OF_REQUEST, problems) else { continue };
            let access = section.get("access").and_then(|entry| entry.word(problems));
            requested.files.push((path, access.unwrap_or(Access::Read)));
        }
    },
    requested: |_, requested| {
        requested.files.iter().map(|(path, access)| format!("{} {path}", access.name())).collect()
    },
    beyond: |_, requested, grants| {
        grants.files().iter().filter(|mount| !is_requested(mount, requested)).map(Mount::span).collect()
    },
    canonical: |_, grants| {
        let quota = |quota: Quota| json!({ "bytes": quota.bytes, "files": quota.files });
        let form = |mount: &Mount| match mount.kind() {
            MountKind::Host { path, access, create, quota: limit } => json!({
                "path": path, "access": access.name(), "create": create, "quota": limit.map(quota),
            }),
            MountKind::Scratch { quota: limit } => json!({ "scratch": quota(*limit) }),
        };
        sorted(grants.files().iter().map(|mount| (mount.guest(), form(mount))))
    },
    reach: |_, grants| {
        let room = |quota: Quota| format!("{} in {} files", show_bytes(quota.bytes), show_count(quota.files));
        let row = |mount: &Mount| {
            let guest = mount.guest();
            let text = match mount.kind() {
                MountKind::Host { path, access, quota, .. } => {
                    let limit = quota.map(|quota| format!(", {}", room(quota))).unwrap_or_default();
                    format!("{} {guest} from {path:?}{limit}", access.name())
                }
                MountKind::Scratch { quota } => format!("scratch {guest}, {}, gone after the call", room(*quota)),
            };
            ReachRow::new(Capability::Filesystem, text, Some(mount.span()))
        };
        grants.files().iter().map(row).collect()
    },
    // Reading and writing are separate lines: removing one leaves the other unchanged.
    lock_lines: |_, grants| {
        let room = |quota: Quota| format!("{} in {} files", show_bytes(quota.bytes), quota.files);
        let lines = |mount: &Mount| {
            let guest = mount.guest();
            match mount.kind() {
                MountKind::Scratch { quota } => vec![format!("scratch {guest}: {}", room(*quota))],
                MountKind::Host { path, access, create, quota } => {
                    let mut lines = vec![format!("read {guest}: {path}")];
                    if *access == Access::Write {
                        let room = quota.map(room).unwrap_or_default();
                        let made = if *create { ", made where missing" } else { "" };
                        lines.push(format!("write {guest}: {path}, {room}{made}"));
                    }
                    lines
                }
            }
        };
        grants.files().iter().flat_map(lines).collect()
    },
    what: "files",
    imports: IMPORTS,
    verbs: &["read", "write", "create", "remove"],
    ask_forms: &["read /data/x", "write /data/x"],
    // An absolute path with `.` and `..` resolved, as the guest would.
    ask: |_, verb, path| {
        if !path.starts_with('/') {
            return Err(AskTextError::hint_of("the path is not absolute", format!("write \"{verb} /{path}\"")));
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop();
                }
                part => parts.push(part),
            }
        }
        let want = FileAccess::of(verb).unwrap_or(FileAccess::Read);
        Ok(Ask::File { want, path: format!("/{}", parts.join("/")) })
    },
    evidence: Some(Capability::Filesystem),
    own_table: |_, grants| {
        let spans = |grants: &Grants| grants.files().iter().map(Mount::span).collect::<Vec<_>>();
        grants.wider.as_ref().is_some_and(|wider| spans(wider) != spans(grants))
    },
    narrower: |right, used| used.grants.files().iter().flat_map(|mount| narrower_mount(right, mount, used)).collect(),
    neighbours: |_, grants, uses| {
        grants.files().iter().map(|mount| around_mount(&rule_of(mount), mount, uses)).collect()
    },
    explain: |_, grants, ask, notes| {
        let Ask::File { want, path } = ask else { return None };
        if let Err(denial) = grants.file(*want, path) {
            return Some(Err(denial));
        }
        let Some(mount) = grants.mount_of(path) else {
            return Some(Err(no_mount(grants.subject(), *want, path, false)));
        };
        if *want != FileAccess::Read
            && let Some(quota) = mount.quota()
        {
            let bytes = show_bytes(quota.bytes);
            notes.push(format!("at most {bytes} in at most {} files are allowed there", quota.files));
        }
        Some(Ok(rule_of(mount)))
    },
    // A folder within another one is part of it.
    needed: |_, needs| {
        let within = |path: &str, folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        let is_inner = |path: &str| needs.files.keys().any(|folder| within(path, folder));
        let mut lines = Vec::new();
        // An existing mount stays, even if another one contains it.
        for (path, needed) in needs.files.iter().filter(|(path, needed)| needed.host.is_some() || !is_inner(path)) {
            let writes = |other: &str, inner: &NeededMount| inner.writes && (other == path || within(other, path));
            let write = needs.files.iter().any(|(other, inner)| writes(other, inner));
            let access = if write { "write" } else { "read" };
            let host = needed.host.as_deref().unwrap_or_else(|| path.trim_start_matches('/'));
            let host = if host.is_empty() { "." } else { host };
            // A writable folder need not exist.
            let create = if write && needed.host.is_none() { ", create = true" } else { "" };
            let guest = toml_string(path);
            let host = toml_string(host);
            lines.push(format!("{guest} = {{ path = {host}, access = \"{access}\"{create} }}"));
        }
        lines
    },
    forms: &["read /data = ./data", "write /data = ./data create quota=10MiB", "scratch /tmp"],
    help: "  read PATH = FOLDER          files, at this path of the guest
  write PATH = FOLDER         the same, to write as well; behind it stands
                              what bounds it: create quota=10MiB files=100
  scratch PATH                space of the call's own, 8 MiB\n",
    entry: |right, verb, rest| {
        let (name, value) = name_and_value(rest);
        match verb {
            "read" | "write" if name.starts_with('/') => Some(mount_right(verb, rest)),
            "scratch" if name.starts_with('/') => {
                let value = edit::table([("scratch", value.unwrap_or(SCRATCH_SIZE).into())]);
                Some(ManifestEntry { section: right.section, key: name.to_owned(), value })
            }
            _ => None,
        }
    },
    blank: " = FOLDER",
    example: Some(Example {
        imports: IMPORTS,
        importer: Importer::Library,
        what: "files",
        grant: "filesystem = { \"/data\" = { path = \"data\", access = \"read\" } }",
        right: "read /data = ./data",
    }),
    ..Right::NONE
};

/// A mount as a rule: its path and its access.
fn rule_of(mount: &Mount) -> RuleRef {
    RuleRef::new(&format!("{} = {}", toml_string(mount.guest()), mount.access().name()), mount.span())
}

/// What a mount may become: nothing, read only, or a folder of it. A folder is only named if no
/// link leads to it, as the host would follow that.
fn narrower_mount(right: &Right, mount: &Mount, used: &UsedGrants<'_>) -> Vec<Narrower> {
    let is_mine = |path: &str| used.grants.mount_of(path).is_some_and(|of| of.guest() == mount.guest());
    let uses: Vec<(FileAccess, &str)> = used
        .uses
        .iter()
        .filter_map(|ask| if let Ask::File { want, path } = ask { Some((*want, path.as_str())) } else { None })
        .filter(|(_, path)| is_mine(path))
        .collect();
    let guest = mount.guest().to_owned();
    let narrower = |instead: Vec<String>, change| Narrower { rule: rule_of(mount), instead, change };
    let MountKind::Host { path, access, .. } = mount.kind() else {
        let change = Change::Name { section: right.section, name: guest };
        return if uses.is_empty() { vec![narrower(Vec::new(), change)] } else { Vec::new() };
    };
    if uses.is_empty() {
        return vec![narrower(Vec::new(), Change::Name { section: right.section, name: guest })];
    }
    let mut found = Vec::new();
    let is_read = uses.iter().all(|(want, _)| *want == FileAccess::Read);
    if is_read && *access == Access::Write {
        let instead = vec![format!("{} = read", toml_string(&guest))];
        found.push(narrower(instead, Change::ReadOnly { guest: guest.clone() }));
    }
    let is_component = used.grants.wider.is_none() && !used.tools_name_mounts;
    let paths: Vec<&str> = uses.iter().filter_map(|(_, path)| mount.rest_of(path)).collect();
    if let Some(inner) = shared_folder(&paths).filter(|_| is_component && is_read) {
        let folders = inner.match_indices('/').map(|(at, _)| at).chain([inner.len()]);
        let deepest = folders.filter_map(|end| inner.get(..end)).filter(|folder| !folder.is_empty());
        let host = |folder: &str| format!("{}/{folder}", path.trim_end_matches('/'));
        let chosen = deepest.take_while(|folder| (used.is_folder)(&host(folder))).last();
        if let Some(folder) = chosen {
            let inner = format!("{}/{folder}", guest.trim_end_matches('/'));
            let instead = vec![format!("{} = read", toml_string(&inner))];
            let change = Change::Folder { guest, inner, path: host(folder) };
            found.push(narrower(instead, change));
        }
    }
    found
}

/// The path that all of these begin with, in whole segments; `None` if they share none.
fn shared_folder(paths: &[&str]) -> Option<String> {
    let mut paths = paths.iter().map(|path| path.split('/').collect::<Vec<&str>>());
    let mut shared = paths.next()?;
    for path in paths {
        let same = shared.iter().zip(&path).take_while(|(one, other)| one == other).count();
        shared.truncate(same);
    }
    let plain = |segment: &&str| !matches!(*segment, "" | "." | "..");
    let shared: Vec<&str> = shared.into_iter().take_while(plain).collect();
    (!shared.is_empty()).then(|| shared.join("/"))
}

/// `PATH = FOLDER`, followed by bounds of the mount: `create`, `quota=10MiB`, `files=100`.
fn mount_right(access: &str, right: &str) -> ManifestEntry {
    let mut rest = right;
    let mut words = Vec::new();
    while let Some((before, word)) = rest.rsplit_once(' ').filter(|(before, _)| !before.ends_with('=')) {
        let setting = match word.split_once('=') {
            None if word == "create" => ("create", edit::Value::from(true)),
            Some(("quota", bytes)) => ("quota", edit::Value::from(bytes)),
            Some(("files", count)) => {
                ("files", count.parse::<i64>().map_or_else(|_| edit::Value::from(count), edit::Value::from))
            }
            _ => break,
        };
        words.push(setting);
        rest = before.trim_end();
    }
    let (name, folder) = match name_and_value(rest) {
        (name, Some(folder)) => (name, folder),
        (name, None) => (name, name.trim_start_matches('/')),
    };
    let folder = if folder.is_empty() { "." } else { folder };
    let mut entry = ManifestEntry::mount(name, folder, access);
    if let edit::Value::InlineTable(table) = &mut entry.value {
        words.into_iter().rev().for_each(|(key, value)| drop(table.insert(key, value)));
    }
    entry
}

/// True if a mount is within a component's requested permissions.
fn is_requested(mount: &Mount, requested: &RequestedPermissions) -> bool {
    if matches!(mount.kind(), MountKind::Scratch { .. }) {
        return true;
    }
    let above = requested.files.iter().filter(|(request, _)| leads_to(request, mount.guest()));
    let nearest = above.max_by_key(|(request, _)| request.len());
    let below = || requested.files.iter().filter(|(request, _)| leads_to(mount.guest(), request));
    nearest.is_some_and(|(_, access)| *access >= mount.access()) && below().all(|(_, access)| *access >= mount.access())
}

/// True if a path is a folder or below it; both in normal form.
fn leads_to(folder: &str, path: &str) -> bool {
    let rest = path.strip_prefix(folder.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A path belongs to the first mount that leads to it.
fn longest_first(mounts: &mut [Mount]) {
    mounts.sort_by(|one, other| other.guest.len().cmp(&one.guest.len()).then_with(|| one.guest.cmp(&other.guest)));
}

fn mount(entry: &Entry<'_>, subject: &Arc<Subject>, problems: &mut Problems) -> Option<Mount> {
    let guest = paths::guest_path(entry.key).map_err(|wrong| {
        let message = format!("the mount {:?} {wrong}", entry.key);
        problems.add(entry.key_error("grants::mount", message).hint("write it like \"/data\""));
    });
    let section = mount_table(entry, problems)?;
    section.check_keys(&MOUNT, problems);
    let kind = match (section.get("path"), section.get("scratch")) {
        (Some(path), None) => host(&path, &section, problems),
        (None, Some(scratch)) => scratch_space(&scratch, &section, problems),
        (Some(_), Some(scratch)) => {
            let problem =
                Diagnostic::error("grants::mount", format!("{:?} has both a path and scratch space", entry.key));
            problems.refuse(problem.at(scratch.key_span).hint("keep one of them"))
        }
        (None, None) => {
            let problem = Diagnostic::error("manifest::missing", format!("the mount {:?} has no path", entry.key));
            problems.refuse(
                problem
                    .at(entry.span.clone())
                    .hint("add path = \"FOLDER\", or scratch = \"8MiB\" for space of the call's own"),
            )
        }
    };
    let span = entry.key_span.clone();
    let subject = Arc::clone(subject);
    Some(Mount { guest: guest.ok()?, span, kind: kind?, subject, narrowed: false })
}

/// A mount's table. People often write a text instead.
fn mount_table<'t>(entry: &Entry<'t>, problems: &mut Problems) -> Option<Section<'t>> {
    let Some(path) = entry.as_str() else { return entry.section(problems) };
    problems.refuse(
        entry
            .error("manifest::type", format!("the mount {:?} must be a table, not a string", entry.key))
            .hint(format!("write {:?} = {{ path = {path:?}, access = \"read\" }}", entry.key)),
    )
}

fn host(path: &Entry<'_>, section: &Section<'_>, problems: &mut Problems) -> Option<MountKind> {
    let path = paths::host_path(path, problems);
    let access = match section.get("access") {
        Some(entry) => entry.word(problems),
        None => Some(Access::Read),
    };
    let create = match section.get("create") {
        Some(entry) => entry.boolean(problems),
        None => Some(false),
    };
    let quota = quota(section, problems);
    let access = access?;
    if access == Access::Read {
        refuse_quota(section, problems);
    }
    let quota = (access == Access::Write).then_some(quota);
    Some(MountKind::Host { path: path?, access, create: create?, quota })
}

fn scratch_space(scratch: &Entry<'_>, section: &Section<'_>, problems: &mut Problems) -> Option<MountKind> {
    for entry in ["access", "create", "quota"].iter().filter_map(|key| section.get(key)) {
        let message = format!("{} with scratch can never apply", entry.key);
        problems.add(entry.key_error("grants::mount", message).hint("remove it"));
    }
    let bytes = limits::value(scratch, &SCRATCH, problems)?;
    let files = section.number(&MOUNT_FILES, problems);
    Some(MountKind::Scratch { quota: Quota { bytes, files: files.unwrap_or(MOUNT_FILES.default) } })
}

fn quota(section: &Section<'_>, problems: &mut Problems) -> Quota {
    let [bytes, files] =
        [&MOUNT_QUOTA, &MOUNT_FILES].map(|spec| section.number(spec, problems).unwrap_or(spec.default));
    Quota { bytes, files }
}

fn refuse_quota(section: &Section<'_>, problems: &mut Problems) {
    for entry in ["quota", "files"].iter().filter_map(|key| section.get(key)) {
        let message = format!("{} without access = \"write\" can never apply", entry.key);
        problems.add(
            entry
                .key_error("grants::mount", message)
                .label("nothing can be written there")
                .hint("remove it, or set access = \"write\""),
        );
    }
}

/// A folder that is mounted both read-only and writable is writable for the guest.
fn warn_of_overlap(mounts: &[Mount], mount: &Mount, problems: &mut Problems) {
    let MountKind::Host { path, .. } = &mount.kind else { return };
    for other in mounts.iter().filter(|other| other.access() != mount.access()) {
        let MountKind::Host { path: other_path, .. } = &other.kind else { continue };
        let one = paths::parts(path);
        let two = paths::parts(other_path);
        if path.starts_with('/') != other_path.starts_with('/') || !(one.starts_with(&two) || two.starts_with(&one)) {
            continue;
        }
        let message =
            format!("{:?} and {:?} lead to the same files, and one of them can be written", other.guest, mount.guest);
        problems.add(
            Diagnostic::warning("grants::overlap", message)
                .at(mount.span())
                .label(format!("{path:?} here, {other_path:?} there"))
                .hint("what is written through one mount is read through the other"),
        );
    }
}

/// A mount of the component as a tool's table leaves it.
fn narrowed_kind(mount: &Mount, section: &Section<'_>, problems: &mut Problems) -> Option<MountKind> {
    section.check_keys(&MOUNT_OF_TOOL, problems);
    let access = match section.get("access") {
        Some(entry) => {
            let access = entry.word(problems)?;
            let scratch = matches!(mount.kind, MountKind::Scratch { .. });
            if access > mount.access() {
                let message = format!("the component may only read {:?}", mount.guest);
                return problems.refuse(wider(&message, entry.span, ADDS_NOTHING));
            }
            if scratch && access == Access::Read {
                let message = "scratch space that cannot be written stays empty";
                return problems.refuse(entry.error("grants::mount", message).hint("leave the mount out"));
            }
            access
        }
        None => mount.access(),
    };
    let quota = match (mount.quota(), access) {
        (Some(wide), Access::Write) => Some(Quota {
            bytes: number(section, &MOUNT_QUOTA, wide.bytes, problems),
            files: number(section, &MOUNT_FILES, wide.files, problems),
        }),
        _ => {
            refuse_quota(section, problems);
            None
        }
    };
    Some(match (&mount.kind, quota) {
        (MountKind::Scratch { .. }, Some(quota)) => MountKind::Scratch { quota },
        (MountKind::Scratch { quota }, None) => MountKind::Scratch { quota: *quota },
        (MountKind::Host { path, create, .. }, quota) => {
            MountKind::Host { path: path.clone(), access, create: *create, quota }
        }
    })
}

fn number(section: &Section<'_>, spec: &'static Spec, wide: u64, problems: &mut Problems) -> u64 {
    let Some(entry) = section.get(spec.key) else { return wide };
    match limits::value(&entry, spec, problems) {
        Some(value) if value > wide => {
            let message = format!("{} is more than the component's {}", spec.key, spec.show(wide));
            problems.add(wider(&message, entry.span, ADDS_NOTHING));
            wide
        }
        Some(value) => value,
        None => wide,
    }
}
