//! `toolcell annotate COMPONENT --wit PATH`: puts the comments of WIT into a component, since
//! builds leave them out. With `--wants FILE` it puts in the permissions that the component
//! requests, with `--metadata MANIFEST` what its author suggests.
use std::path::Path;

use toolcell_guest::{WitTexts, annotate};
use toolcell_policy::edit::ManifestEdit;
use toolcell_policy::{
    Diagnostic, Metadata, REQUESTED_PERMISSIONS_BYTES_MAX, RequestedPermissions, Source, parse, render_all,
};
use toolcell_sandbox::{COMPONENT_BYTES_MAX, with_metadata, with_permissions};
use toolcell_server::file::{plain, read_bounded, write_whole};
use toolcell_server::{ManifestFile, wit};

use super::metadata;
use crate::args::AnnotateArgs;
use crate::exit::{Exit, Failure};
use crate::terminal;

/// The first eight bytes of a component.
const COMPONENT_PREAMBLE: &[u8] = b"\0asm\x0d\0\x01\0";

/// Packages whose comments are left out: those of the host's interfaces.
const HOSTS: [&str; 2] = ["wasi", "toolcell"];

/// The first bytes of a component or a module.
const WASM: &[u8] = b"\0asm";

/// Writes the annotated component, and prints what it now contains.
pub fn run(args: &AnnotateArgs) -> anyhow::Result<Exit> {
    let output = args.output.as_ref().unwrap_or(&args.component);
    let (component, lines) = annotated(args)?;
    write(output, &component)?;
    let output = toolcell_mcp::sanitize::line(&output.display().to_string()).into_owned();
    terminal::print(&lines.iter().map(|line| format!("{output}: {line}\n")).collect::<String>())?;
    Ok(Exit::Done)
}

/// The component with everything that is added, and a line for each.
fn annotated(args: &AnnotateArgs) -> Result<(Vec<u8>, Vec<String>), Failure> {
    let shown = args.component.display();
    let mut component = read_bounded(&args.component, COMPONENT_BYTES_MAX)
        .map_err(|problem| Failure::at_fault(format!("{shown} {problem}"), ""))?;
    let mut lines = Vec::new();
    if let Some(wit) = &args.wit {
        let count;
        (component, count) = described(&component, args, wit)?;
        lines.push(format!("{count} descriptions of functions, types and their parts"));
    }
    if let Some(wants) = &args.wants {
        let count;
        (component, count) = requesting(&component, args, wants)?;
        lines.push(match count {
            0 => "it requests no permissions".to_owned(),
            count => format!("{count} requested permissions"),
        });
    }
    if let Some(manifest) = &args.metadata {
        let count;
        (component, count) = suggesting(&component, args, manifest)?;
        lines.push(format!("{count} suggestions of its author"));
    }
    Ok((component, lines))
}

/// The component with the comments of WIT, and their number.
fn described(component: &[u8], args: &AnnotateArgs, wit: &Path) -> Result<(Vec<u8>, usize), Failure> {
    if !component.starts_with(COMPONENT_PREAMBLE) {
        let problem = format!("{} is not a WebAssembly component", args.component.display());
        return Err(Failure::at_fault(problem, "name a built component"));
    }
    // Models only see a component's own functions, not its imports.
    let files = wit::files(wit, &wit.display().to_string()).map_err(|problem| Failure::at_fault(problem, ""))?;
    let texts = WitTexts::parse(&files).map_err(|problem| Failure::at_fault(problem.to_string(), ""))?.without(&HOSTS);
    match texts.count() {
        0 => Err(Failure::at_fault(
            format!("{} describes nothing", wit.display()),
            "write comments of three slashes before functions, types, fields and cases",
        )),
        count => Ok((annotate(component, &texts), count)),
    }
}

/// The component with the requested permissions of a file, and their number. The text is added
/// unchanged.
fn requesting(component: &[u8], args: &AnnotateArgs, wants: &Path) -> Result<(Vec<u8>, usize), Failure> {
    check_wasm(component, args)?;
    let name = wants.display().to_string();
    let text = read_bounded(wants, REQUESTED_PERMISSIONS_BYTES_MAX as u64)
        .map_err(|problem| Failure::at_fault(format!("{name} {problem}"), ""))?;
    let text = String::from_utf8(text).map_err(|_| Failure::at_fault(format!("{name} is not UTF-8 text"), ""))?;
    let requested = RequestedPermissions::parse(&text).map_err(|problems| {
        terminal::eprint(&render_all(&Source { name: &name, text: &text }, &problems, terminal::stderr_style()));
        Failure::at_fault(
            format!("{name} has no requested permissions that can be read"),
            "it has the keys with which a tool is narrowed",
        )
    })?;
    Ok((with_permissions(component, &text), requested.rights().len()))
}

fn check_wasm(component: &[u8], args: &AnnotateArgs) -> Result<(), Failure> {
    if component.starts_with(WASM) {
        return Ok(());
    }
    let problem = format!("{} is not WebAssembly", args.component.display());
    Err(Failure::at_fault(problem, "name a built .wasm component"))
}

/// The component with the metadata of its entry in a manifest, and the number of suggestions. The
/// text is added in its normal form.
fn suggesting(component: &[u8], args: &AnnotateArgs, manifest: &Path) -> Result<(Vec<u8>, usize), Failure> {
    check_wasm(component, args)?;
    let name = manifest.display().to_string();
    let file =
        ManifestFile::read(manifest).map_err(|problem| Failure::at_fault(problem, "name the author's manifest"))?;
    let wrong = |problems: &[Diagnostic], source: &Source<'_>| {
        terminal::eprint(&render_all(source, problems, terminal::stderr_style()));
        Failure::at_fault(format!("{name} has no metadata that can be read"), "")
    };
    let source = file.source();
    parse(&source).map_err(|problems| wrong(&problems, &source))?;
    let edit = ManifestEdit::of(file.text())
        .map_err(|problem| Failure::at_fault(format!("{name} is not TOML: {problem}"), ""))?;
    let entry = metadata::entry_of(&edit, manifest, &args.component).ok_or_else(|| {
        let problem = format!("{name} has no component with the file {}", args.component.display());
        Failure::at_fault(problem, "name the file as the manifest's source does")
    })?;
    let text = entry.metadata();
    let read =
        Metadata::parse(&text).map_err(|problems| wrong(&problems, &Source { name: "metadata", text: &text }))?;
    match read.suggestions().len() {
        0 => Err(Failure::at_fault(
            format!("{name} has nothing to suggest for this component"),
            "suggestions are limits, load, and title, description, hints and limits of tools",
        )),
        count => Ok((with_metadata(component, &read.text()), count)),
    }
}

/// Writes it by way of a hidden draft: readers see the old or the new file, and `toolcell dev`
/// ignores the draft.
fn write(path: &Path, component: &[u8]) -> Result<(), Failure> {
    write_whole(path, component)
        .map_err(|error| Failure::at_fault(format!("{} cannot be written: {}", path.display(), plain(&error)), ""))
}
