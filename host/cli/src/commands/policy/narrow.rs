//! `toolcell policy suggest --narrow`: the narrowest manifest that still allows what calls used, as
//! a difference to the one there is.
use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};
use toolcell_mcp::sanitize;
use toolcell_policy::names::check_tool;
use toolcell_policy::{Finding, Manifest, Narrowed, Source, narrow};
use toolcell_server::catalog::folder_of;
use toolcell_server::{CodeCacheOptions, ManifestFile};

use super::evidence::ReadEvidence;
use crate::args::SuggestArgs;
use crate::commands::audit;
use crate::commands::registries::read_manifest;
use crate::commands::replay::recordings_of;
use crate::edit::{self, apply_or_report, unified};
use crate::exit::{Exit, Failure};
use crate::listed;
use crate::terminal::{self, counted};

/// Characters of a time that are its day.
const DAY_CHARS: usize = "2026-01-12".len();

/// A checked manifest.
pub struct CheckedManifest {
    pub file: ManifestFile,
    pub manifest: Manifest,
}

impl CheckedManifest {
    /// Reads a manifest; its problems are printed.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let (file, manifest) = read_manifest(path)?;
        Ok(Self { file, manifest })
    }

    /// The audit that the manifest names, or the default one of the current folder's manifest.
    pub fn audit(&self) -> Option<PathBuf> {
        audit::of(&self.manifest, self.file.path())
    }

    /// The folder of recordings that the manifest names, or the default one.
    pub fn recordings(&self) -> PathBuf {
        recordings_of(&self.manifest, self.file.path())
    }

    /// `toolcell.toml:12`.
    pub fn place(&self, byte: usize) -> String {
        format!("{}:{}", self.file.name(), self.file.source().position(byte).line)
    }
}

/// Prints the difference, or writes it.
pub fn run(args: &SuggestArgs) -> anyhow::Result<Exit> {
    let checked = CheckedManifest::read(&args.manifest.manifest)?;
    let audit = args.file.clone().or_else(|| checked.audit());
    let mut read = ReadEvidence::of_days(args.days);
    // Files of uses may be all the evidence there is.
    let recordings = checked.recordings();
    let is_only = args.uses.is_empty() && !recordings.is_dir();
    match &audit {
        Some(audit) if args.file.is_some() || is_only || audit.exists() => read.audit(audit)?,
        None if is_only => return Err(audit::keeps_none(checked.file.path()).into()),
        _ => {}
    }
    read.recordings(&recordings);
    read.all_uses_of(&args.uses)?;
    if read.exit != Exit::Done {
        return Ok(Exit::AtFault);
    }
    check_covered(&read, args.days, audit.as_deref())?;
    leave_out_unknown(&checked, &mut read)?;
    let folder = folder_of(checked.file.path());
    let is_folder = |path: &str| is_plain_folder(&folder, path);
    let source = checked.file.source();
    let narrowed = narrow(&source, &checked.manifest, &read.evidence, &is_folder)
        .map_err(|problem| Failure::at_fault(format!("{}: {problem}", checked.file.name()), ""))?;
    if args.json {
        terminal::print(&format!("{:#}\n", to_json(&checked, &read, &narrowed)))?;
        return Ok(Exit::Done);
    }
    terminal::eprint(&summary(&checked, &read, &narrowed));
    if args.apply {
        edit::loads(&checked.file, &narrowed.text)?;
        return apply_or_report(&checked.file, &narrowed.text, args.consent.consent());
    }
    terminal::print(&unified(checked.file.name(), checked.file.text(), &narrowed.text))?;
    Ok(Exit::Done)
}

/// Leaves out calls of names that no tool has, which a star lets a guest try. If a component cannot
/// be loaded, its tools are not known: then each possible name counts.
fn leave_out_unknown(checked: &CheckedManifest, read: &mut ReadEvidence) -> anyhow::Result<()> {
    if !read.evidence.has_calls_of_tools() {
        return Ok(());
    }
    let components = checked.manifest.components();
    let names = listed::names(&checked.file, &checked.manifest, components, &CodeCacheOptions::default())?;
    let is_complete = names.iter().all(|names| names.listed.is_ok());
    let tools = names.iter().filter_map(|names| names.listed.as_ref().ok()).flat_map(|listed| &listed.tools);
    let tools: HashSet<&str> = tools.map(|tool| tool.exposed.as_str()).collect();
    let may_be_tool = |name: &str| tools.contains(name) || (!is_complete && check_tool(name).is_ok());
    read.evidence.retain_calls_of_tools(may_be_tool);
    Ok(())
}

/// Checks that the evidence is as old as it is asked for: what is used once a month seems unused
/// for a week.
fn check_covered(read: &ReadEvidence, days: u32, audit: Option<&Path>) -> Result<(), Failure> {
    if read.is_covered() {
        return Ok(());
    }
    let problem = match &read.begins {
        Some(begins) => format!(
            "the evidence begins at {}, which is not {days} days ago: a grant that is used more rarely would seem unused",
            sanitize::line(begins)
        ),
        None => match audit {
            Some(audit) => format!("{} has no records", audit.display()),
            None => "there are no records".to_owned(),
        },
    };
    Err(Failure::at_fault(
        problem,
        "take what there is with --days 0, or fewer days, and read the result with that in mind",
    ))
}

/// True if a path relative to the manifest is a folder, and no part of it is a link. The host opens
/// a mount by its path, and would follow a link.
fn is_plain_folder(manifest_folder: &Path, path: &str) -> bool {
    let mut at = manifest_folder.to_owned();
    for part in Path::new(path).components() {
        if part == Component::ParentDir {
            return false;
        }
        at.push(part);
        if !at.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
            return false;
        }
    }
    true
}

/// What the difference is made of, for people.
fn summary(checked: &CheckedManifest, read: &ReadEvidence, narrowed: &Narrowed) -> String {
    let day = |time: &Option<String>| time.as_ref().and_then(|time| time.get(..DAY_CHARS)).unwrap_or("?").to_owned();
    let since = read.since.as_ref().or(read.begins.as_ref()).cloned();
    let calls = read.evidence.all_calls();
    let mut text =
        format!("evidence: {} since {}; it begins on {}\n", counted(calls, "call"), day(&since), day(&read.begins));
    for finding in &narrowed.findings {
        let whose = whose(finding);
        let place = checked.place(finding.rule.span().start);
        let rule = finding.rule.text();
        let line = match finding.instead.as_slice() {
            [] => format!("not used: {whose}: {rule} ({place})"),
            instead => format!("too wide: {whose}: {rule} ({place}); needed: {}", instead.join(", ")),
        };
        text.push_str(&format!("{}\n", sanitize::line(&line)));
    }
    for note in &narrowed.notes {
        text.push_str(&format!("note: {}\n", sanitize::line(note)));
    }
    if read.unended > 0 {
        let unended = read.unended;
        text.push_str(&format!("note: calls without an end in the audit, whose uses are not known: {unended}\n"));
    }
    if calls > 0 && !read.names_uses {
        text.push_str("hint: with `uses = true` in [audit], the audit names what calls use\n");
    }
    if narrowed.findings.is_empty() {
        text.push_str(&format!("{}: nothing to narrow\n", checked.file.name()));
    }
    text
}

fn whose(finding: &Finding) -> String {
    let tool = finding.tool.as_ref().map_or_else(String::new, |tool| format!("/{tool}"));
    format!("{}{tool} {}", finding.component, finding.section)
}

fn to_json(checked: &CheckedManifest, read: &ReadEvidence, narrowed: &Narrowed) -> Value {
    let Source { name, .. } = checked.file.source();
    let row = |finding: &Finding| {
        json!({
            "component": finding.component, "tool": finding.tool, "section": finding.section,
            "rule": finding.rule.text(), "file": name,
            "line": checked.file.source().position(finding.rule.span().start).line,
            "unused": finding.instead.is_empty(), "instead": finding.instead,
        })
    };
    json!({
        "begins": read.begins,
        "since": read.since,
        "calls": read.evidence.all_calls(),
        "calls_without_end": read.unended,
        "names_uses": read.names_uses,
        "findings": narrowed.findings.iter().map(row).collect::<Vec<_>>(),
        "notes": narrowed.notes,
        "diff": unified(name, checked.file.text(), &narrowed.text),
    })
}
