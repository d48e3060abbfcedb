//! Opening a manifest for a command, with its problems on stderr.
use std::cell::OnceCell;
use std::path::Path;
use std::sync::Mutex;

use toolcell_policy::{Diagnostic, Manifest, Severity, Style, parse, render_all};
use toolcell_server::{
    LoadStep, LogLevel, ManifestFile, Note, OpenOptions, Opened, OperatorLog as _, Ready, Refusal, shell,
};

use crate::args::{CallArgs, CodeCacheArgs, SketchRights, manifest_words};
use crate::exit::{Exit, Failure};
use crate::lock_text::differences;
use crate::logging::LogControl;
use crate::sandbox_process;
use crate::sketch::{self, Sketch};
use crate::terminal::{self, Progress};
use crate::warned;

/// The advice where there is no manifest.
pub const NAME_MANIFEST: &str = "name the manifest with --manifest, or run this in its folder";

/// Reads the file of a manifest.
pub fn read(path: &Path) -> Result<ManifestFile, Failure> {
    ManifestFile::read(path).map_err(|problem| Failure::at_fault(problem, NAME_MANIFEST))
}

/// Reads and checks a manifest, for a command to which its problems do not matter. `Err` is one
/// sentence.
pub fn checked(path: &Path) -> Result<Manifest, String> {
    let words = manifest_words(path);
    let wrong = |_| format!("{} has problems; `toolcell check{words}` shows them", path.display());
    Ok(parse(&ManifestFile::read(path)?.source()).map_err(wrong)?.manifest)
}

/// True if both paths lead to one file that exists.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// Reads a manifest and loads its components, or prints the problems and fails. Records nothing. A
/// component instead of a manifest is loaded without rights.
pub fn open_or_report(path: &Path, code: &CodeCacheArgs) -> anyhow::Result<(ManifestFile, Ready)> {
    let options = OpenOptions { code: code.options(), ..OpenOptions::default() };
    open_with_rights(path, &SketchRights::default(), code, options, show_problems)
}

/// [`open_or_report`] for commands that are often repeated: the same warnings are shown once a day.
/// A component instead of a manifest has these rights.
pub fn open_again_or_report(
    path: &Path,
    rights: &SketchRights,
    code: &CodeCacheArgs,
) -> anyhow::Result<(ManifestFile, Ready)> {
    let options = OpenOptions { code: code.options(), what_works: true, ..OpenOptions::default() };
    open_with_rights(path, rights, code, options, |opened| show_problems_daily(path, opened))
}

/// [`open_again_or_report`], observing attempts of guests, for a call that may be recorded.
pub fn open_to_call_or_report(args: &CallArgs) -> anyhow::Result<(ManifestFile, Ready)> {
    let path = &args.manifest.manifest;
    let options = OpenOptions {
        code: args.code.options(),
        observing: true,
        serves: true,
        what_works: true,
        recording: args.record.is_some(),
        ..OpenOptions::default()
    };
    open_with_rights(path, &args.rights, &args.code, options, |opened| show_problems_daily(path, opened))
}

/// Prints the problems, but warnings alone only once a day.
fn show_problems_daily(path: &Path, opened: &Opened) {
    let has_errors = opened.problems.iter().any(|problem| problem.severity() == Severity::Error);
    let is_harmless = opened.ready.is_some() && !opened.problems.is_empty() && !has_errors;
    if !is_harmless || warned::is_due(path, &render_all(&opened.file.source(), &opened.problems, Style::Plain)) {
        show_problems(opened);
    }
}

/// [`open_or_report`] of a manifest with other options.
pub fn open_with_or_report(path: &Path, options: OpenOptions<'_>) -> anyhow::Result<(ManifestFile, Ready)> {
    ready_or_said(open_file(read(path)?, options, show_problems)?)
}

/// [`open_with_or_report`] for a process with this log: its level decides whether warnings alone
/// are shown, and the manifest's level is set before any message.
pub fn open_to_serve_or_report(
    path: &Path,
    options: OpenOptions<'_>,
    log: &LogControl,
) -> anyhow::Result<(ManifestFile, Ready)> {
    let file = read(path)?;
    if let Ok(parsed) = parse(&file.source()) {
        log.follow(parsed.manifest.server().log().into());
    }
    ready_or_said(open_file(file, options, |opened| {
        if opened.ready.is_none() || terminal::shows(LogLevel::Warn) {
            show_problems(opened);
        }
    })?)
}

/// Loads the components of a manifest's text; `None` where its problems were printed instead.
pub fn open_file_or_report(
    file: ManifestFile,
    options: OpenOptions<'_>,
) -> anyhow::Result<Option<(ManifestFile, Ready)>> {
    open_file(file, options, show_problems)
}

fn open_with_rights(
    path: &Path,
    rights: &SketchRights,
    code: &CodeCacheArgs,
    options: OpenOptions<'_>,
    show: impl Fn(&Opened),
) -> anyhow::Result<(ManifestFile, Ready)> {
    if sketch::is_component(path) {
        let sketch = Sketch::of(&[path.to_owned()], rights, Path::new("."), code)?;
        return open_sketch_or_report(&sketch, None, options);
    }
    let given = [&rights.allow, &rights.mounts, &rights.variables];
    if given.into_iter().any(|given| !given.is_empty()) {
        let hint = "edit the manifest with `toolcell grant`, or name a component: -m FILE.wasm";
        let problem = "--allow, --mount and --env are for a component without a manifest";
        return Err(Failure::at_fault(problem, hint).into());
    }
    ready_or_said(open_file(read(path)?, options, show)?)
}

/// What was loaded; otherwise the problems were printed.
fn ready_or_said(opened: Option<(ManifestFile, Ready)>) -> anyhow::Result<(ManifestFile, Ready)> {
    Ok(opened.ok_or_else(|| Failure::said(Exit::AtFault))?)
}

fn open_file(
    file: ManifestFile,
    options: OpenOptions<'_>,
    show: impl Fn(&Opened),
) -> anyhow::Result<Option<(ManifestFile, Ready)>> {
    let opened = open(file, options)?;
    show(&opened);
    let summary = opened.summary();
    let name = opened.file.name().to_owned();
    let is_refused = opened.refusal.is_some();
    let ready = ready_or_report(opened);
    if ready.is_none() && !is_refused {
        terminal::eprint(&format!("\n{name}: {summary}\n"));
    }
    Ok(ready)
}

/// Loads the components of a command line, or prints the problems in terms of its options. With a
/// path, the text will be written there.
pub fn open_sketch_or_report(
    sketch: &Sketch,
    path: Option<&Path>,
    options: OpenOptions<'_>,
) -> anyhow::Result<(ManifestFile, Ready)> {
    let opened = open(sketch.file(path), options)?;
    sketch.report(&opened.problems);
    ready_or_said(ready_or_report(opened))
}

fn ready_or_report(opened: Opened) -> Option<(ManifestFile, Ready)> {
    let words = manifest_words(opened.file.path());
    opened.refusal.iter().for_each(|refusal| report_refusal(refusal, &words));
    let ready = opened.ready.filter(|_| opened.refusal.is_none())?;
    Some((opened.file, ready))
}

/// Opens a manifest, with progress if it takes long: a line that is redrawn on a terminal, else a
/// line every five seconds.
pub fn open(file: ManifestFile, options: OpenOptions<'_>) -> anyhow::Result<Opened> {
    let bar: Mutex<OnceCell<Progress>> = Mutex::default();
    let show = |step: LoadStep<'_>, total: usize| match step {
        LoadStep::Loaded(done) => {
            if let Ok(bar) = bar.lock() {
                bar.get_or_init(|| Progress::new("compiling components", total)).at(done);
            }
        }
        LoadStep::Compiling(_) if terminal::draws() => {}
        LoadStep::Compiling(compiling) => terminal::note(&format!("{compiling}\n")),
    };
    let opened = file.open(&OpenOptions { progress: Some(&show), guests: sandbox_process::guests(), ..options })?;
    drop(bar);
    opened.ready.iter().flat_map(|ready| &ready.machine.notes).for_each(report_note);
    Ok(opened)
}

/// Prints a remark on the start.
pub fn report_note(note: &Note) {
    match note {
        Note::CodeDraftsRemoved(drafts) => terminal::note(&format!(
            "note: drafts of compiled code, left by a process that was stopped, were removed: {drafts}\n"
        )),
        Note::CodeNotKept(error) => terminal::warning(&format!("compiled code is not kept: {error}")),
    }
}

/// Prints every problem to stderr: drawn, or as JSON if stderr is JSON.
pub fn show_problems(opened: &Opened) {
    if terminal::speaks_json() {
        return opened.problems.iter().for_each(|problem| terminal::write(&line_of(opened, problem)));
    }
    if !opened.problems.is_empty() {
        terminal::eprint(&render_all(&opened.file.source(), &opened.problems, terminal::stderr_style()));
    }
}

fn line_of(opened: &Opened, problem: &Diagnostic) -> String {
    let level = match problem.severity() {
        Severity::Error => tracing::Level::ERROR,
        Severity::Warning => tracing::Level::WARN,
    };
    let fields = match problem.to_json(&opened.file.source()) {
        serde_json::Value::Object(fields) => fields,
        other => serde_json::Map::from_iter([("message".to_owned(), other)]),
    };
    terminal::json_line(level, fields)
}

/// Prints why nothing is served. `words` names the manifest in commands.
fn report_refusal(refusal: &Refusal, words: &str) {
    match refusal {
        Refusal::Audit(problem) => {
            terminal::error(problem, Some("name another file with --audit or in [audit], or mend this one"))
        }
        Refusal::NoLock(path) => {
            let problem = format!("there is no {}, and --locked serves nothing else", path.display());
            let hint = format!("write it with `toolcell lock{words}`, read it, and keep it in version control");
            terminal::error(&problem, Some(&hint));
        }
        Refusal::Lock(error) => terminal::error(&error.to_string(), Some(error.hint())),
        Refusal::Drift { lock, drifts } => {
            terminal::error(&format!("what would be served is not what {} pins", lock.display()), None);
            terminal::eprint(&differences(drifts));
            let others = drifts.iter().any(|drift| drift.other_signers);
            let flag = if others { "; other signers need --allow-signer-change" } else { "" };
            let pins = match drifts.as_slice() {
                [drift] => format!("`toolcell approve {}{words}` pins it as it is now", shell::word(&drift.component)),
                _ => format!("`toolcell approve NAME{words}` pins one of them as it is now"),
            };
            let hint = format!("{pins}, `toolcell lock{words}` all");
            terminal::eprint(&format!("\nhint: {hint}{flag}\n"));
        }
    }
}
