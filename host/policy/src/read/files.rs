//! Reads `filesystem` tables.

use std::sync::Arc;

use super::{Entry, Problems, Section, limits, paths};
use crate::diagnostic::Diagnostic;
use crate::grants::{Access, MOUNT_FILES, MOUNT_QUOTA, Mount, MountKind, Quota, SCRATCH, Subject};
use crate::table::table;

/// The most mounts of a component: each is a preopened folder, which language runtimes list at
/// start.
pub(super) const MOUNTS_MAX: usize = 64;

table! {
    /// A folder or a file of the host, or space of the call's own: `path` or `scratch`.
    pub(crate) MOUNT "Mount" {
        /// The folder or the file of the host, relative to this file.
        "path": Text, {"minLength": 1, "examples": ["data"]};
        /// The access.
        "access": Words(&["read", "write"]), {"default": "read", "examples": ["write"]};
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

/// The mounts, the longest guest path first. What is wrong is noted and left out.
pub(crate) fn read(entry: &Entry<'_>, subject: &Arc<Subject>, problems: &mut Problems) -> Vec<Mount> {
    let entries = entry.entries(MOUNTS_MAX, "grants::too_many", "mounts", problems);
    let mut mounts: Vec<Mount> = Vec::new();
    for entry in entries {
        let Some(mount) = mount(&entry, subject, problems) else { continue };
        if mounts.iter().any(|other| other.guest == mount.guest) {
            let message = format!("{:?} is mounted twice", mount.guest);
            problems.add(entry.key_error("grants::duplicate", message));
            continue;
        }
        warn_of_overlap(&mounts, &mount, problems);
        mounts.push(mount);
    }
    mounts.sort_by(|one, other| other.guest.len().cmp(&one.guest.len()).then_with(|| one.guest.cmp(&other.guest)));
    mounts
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

/// A mount's table; a text in its place is what people write first.
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
    let write = match section.get("access") {
        Some(entry) => entry.one_of(["read", "write"], [false, true], problems),
        None => Some(false),
    };
    let create = match section.get("create") {
        Some(entry) => entry.boolean(problems),
        None => Some(false),
    };
    let quota = quota(section, problems);
    let write = write?;
    if !write {
        refuse_quota(section, problems);
    }
    let access = if write { Access::Write } else { Access::Read };
    Some(MountKind::Host { path: path?, access, create: create?, quota: write.then_some(quota) })
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

pub(crate) fn refuse_quota(section: &Section<'_>, problems: &mut Problems) {
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

/// A folder that is read at one path and written at another is not read-only for the guest.
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
