//! `toolcell add SOURCE`: a component's entry and lock, and a copy of its file. Must not hold:
//! where its bytes come from.
//!
//! The file is placed before the manifest is written, and removed again if anything fails. The
//! manifest is the last thing written.
pub mod bridge;
mod document;
mod pinning;
mod placing;
mod remote;
mod source;
pub mod texts;

use std::io::IsTerminal as _;
use std::path::Path;

use serde_json::{Value, json};
use toolcell_mcp::sanitize;
use toolcell_policy::edit::{ComponentEntry, ManifestEdit};
use toolcell_policy::{Manifest, Source, names, parse};
use toolcell_sandbox::ShapeName;
use toolcell_server::catalog::folder_of;
use toolcell_server::lock;
use toolcell_server::machine::Machine;
use toolcell_server::{ManifestFile, OpenOptions, shell};

use crate::args::{AddArgs, Consent};
use crate::commands::inspect::{self, Inspected};
use crate::commands::metadata::{self, Offer};
use crate::commands::registries::{EMPTY, left_out_json, left_out_lines};
use crate::commands::{grant, requested_permissions};
use crate::edit::{self, Screen, agree};
use crate::exit::{Exit, Failure, reported};
use crate::manifest::{open_file_or_report, report_note};
use crate::sandbox_process;
use crate::terminal;
use pinning::{WrittenLock, pin};
use placing::PlacedFile;
use source::{FoundComponent, ServedFrom};

/// Component that is being added.
struct Addition {
    name: String,
    found: FoundComponent,
    inspected: Inspected,
    entry: ComponentEntry,
    /// Its author's suggestions, sorted; empty if they are not wanted.
    offer: Offer,
}

/// Adds the component and prints what it is.
pub fn run(args: &AddArgs) -> anyhow::Result<Exit> {
    reported(add(args), args.json)
}

fn add(args: &AddArgs) -> anyhow::Result<Exit> {
    let manifest = args.manifest.manifest.as_path();
    let (file, mut edit) = opened(manifest)?;
    check_names(args, &edit)?;
    document::check_options(args)?;
    let machine = Machine::start(&args.code.options(), None, &sandbox_process::guests())?;
    machine.notes.iter().for_each(report_note);
    let mut addition = Addition::of(args, &edit, &machine)?;
    drop(machine);
    if !args.json {
        terminal::print(&addition.text())?;
    }
    let asks = args.consent.consent() == Consent::Asked && !args.json && std::io::stdin().is_terminal();
    if asks {
        addition.ask_for_limits()?;
    }
    if let Err(problem) = edit.insert_component(&addition.name, &addition.entry) {
        let problem = format!("{} cannot have it: {problem}", file.name());
        return Err(Failure::at_fault(problem, "give it another name with --name").into());
    }
    if let Some(bridge) = &addition.found.bridge
        && let Err(problem) = bridge.grant(&addition.name, &mut edit)
    {
        let problem = format!("{} cannot have its grants: {problem}", file.name());
        return Err(Failure::at_fault(problem, "give it another name with --name").into());
    }
    if asks {
        addition.ask_for_permissions(&mut edit)?;
    }
    let screen = if args.json { Screen::Stderr } else { Screen::Stdout };
    agree(&file, &edit.text(), args.consent.consent(), screen)?;
    addition.write(args, &file, &edit)
}

/// The manifest to edit, which may not exist yet.
fn opened(manifest: &Path) -> Result<(ManifestFile, ManifestEdit), Failure> {
    if manifest.exists() {
        return edit::read(manifest);
    }
    let wrong = |problem: String| Failure::at_fault(problem, "");
    let edit = ManifestEdit::of(EMPTY).map_err(wrong)?;
    Ok((ManifestFile::unwritten(manifest, String::new()), edit))
}

/// Checks names of the command line before anything is fetched or compiled.
fn check_names(args: &AddArgs, edit: &ManifestEdit) -> Result<(), Failure> {
    if let Some(prefix) = &args.prefix
        && let Err(problem) = names::check_prefix(prefix)
    {
        let hint = "a prefix is 1 to 63 of A-Z, a-z, 0-9, _ and -";
        return Err(Failure::usage(format!("the prefix {prefix:?} {problem}"), hint));
    }
    args.name.as_deref().map_or(Ok(()), |name| check_name(name, edit))
}

fn check_name(name: &str, edit: &ManifestEdit) -> Result<(), Failure> {
    if let Err(problem) = names::check_component(name) {
        let hint = "a component's name is 1 to 64 of a-z 0-9 _ -, and begins with a letter or a digit";
        return Err(Failure::usage(format!("the name {name:?} {problem}"), hint));
    }
    if edit.components().iter().any(|other| other == name) {
        let problem = format!("the manifest has a component {name:?} already");
        let hint = format!("give this one another name with --name, or `toolcell remove {name}` first");
        return Err(Failure::at_fault(problem, hint));
    }
    Ok(())
}

impl Addition {
    fn of(args: &AddArgs, edit: &ManifestEdit, machine: &Machine) -> Result<Self, Failure> {
        let folder = folder_of(&args.manifest.manifest);
        let mut found = source::find(args, &edit.text(), &folder, machine)?;
        let name = args.name.clone().unwrap_or_else(|| found.name.clone());
        check_name(&name, edit)?;
        let shown = Path::new(&found.shown);
        let inspected = inspect::inspect(machine, shown, &found.bytes).map_err(|fault| fault.of(&found.shown))?;
        if let Err(problem) = &inspected.found.tools {
            let hint = format!("`toolcell inspect` shows what {} is", found.shown);
            return Err(Failure::at_fault(format!("{} cannot be served: {problem}", found.shown), hint));
        }
        let written = match &found.place {
            ServedFrom::Copy => format!("{}/{name}.wasm", placing::FOLDER),
            ServedFrom::Link(written) | ServedFrom::Store(written) => written.clone(),
        };
        let is_of_project = found.entry.is_some();
        let mut entry = found.entry.take().unwrap_or_else(|| ComponentEntry::new(&written));
        entry.set("source", written.into());
        if let Some(prefix) = &args.prefix {
            entry.set("prefix", prefix.as_str().into());
        }
        if inspected.found.inspection.is_later_wasi() {
            entry.set("wasi", "0.3".into());
        }
        if let Some(bridge) = &found.bridge {
            bridge.enter(&mut entry);
        }
        if inspected.found.skips_functions() {
            entry.set("skip_unsupported", true.into());
        }
        let mut addition = Self { name, found, inspected, entry, offer: Offer::default() };
        // A project's manifest says what its author wants.
        if !args.no_metadata && !is_of_project {
            addition.take_suggestions(edit);
        }
        Ok(addition)
    }

    /// Sorts the author's suggestions, and applies those that this manifest's defaults allow.
    fn take_suggestions(&mut self, edit: &ManifestEdit) {
        let Ok(Some(metadata)) = &self.inspected.metadata else { return };
        let Ok(tools) = &self.inspected.found.tools else { return };
        // A manifest that cannot be read is reported when it is written.
        let Some(manifest) = with_component(edit, &self.name, &self.entry) else { return };
        let Some(policy) = manifest.component(&self.name) else { return };
        self.offer = Offer::of(metadata, tools, policy);
        self.offer.taken.iter().for_each(|suggestion| self.entry.suggest(suggestion));
    }

    /// Its file, digest, tools, and the grants that it may need.
    fn text(&self) -> String {
        let style = terminal::stdout_style();
        let inspection = &self.inspected.found.inspection;
        let mut text = format!("{}\n", terminal::bold(&sanitize::line(&self.found.shown), style));
        text.push_str(&format!("  digest   {}\n", inspection.digest()));
        text.push_str(&format!("  size     {} bytes\n", inspection.size_bytes()));
        if let Some(bridge) = &self.found.bridge {
            return format!("{text}{}\n", bridge.text());
        }
        let tools = match (&self.inspected.found.tools, self.inspected.found.shape) {
            (_, Some(ShapeName::Program)) => "those that the manifest makes of this program".to_owned(),
            (Ok(tools), _) => tools.iter().map(|tool| sanitize::line(&tool.name)).collect::<Vec<_>>().join(", "),
            (Err(_), _) => String::new(),
        };
        text.push_str(&format!("  tools    {tools}\n"));
        for left_out in &self.inspected.found.left_out {
            text.push_str(&format!("  not      {}\n", sanitize::line(&left_out.to_string())));
        }
        text.push_str(&self.inspected.needs.text());
        text.push_str(&requested_permissions::text(&self.inspected.requested));
        match &self.inspected.metadata {
            Err(_) => text.push_str(&metadata::text(&self.inspected.metadata)),
            Ok(_) => text.push_str(&self.offer.text()),
        }
        for line in self.found.signers.iter().chain(&left_out_lines(&self.found.not_attached)) {
            text.push_str(&format!("  {}\n", sanitize::line(line)));
        }
        for section in &self.found.left_out {
            text.push_str(&format!("  its project grants it {section}: that is not taken over\n"));
        }
        text.push('\n');
        text
    }

    /// Asks a person about each limit beyond the manifest's default, and applies the accepted ones.
    fn ask_for_limits(&mut self) -> anyhow::Result<()> {
        for beyond in std::mem::take(&mut self.offer.beyond) {
            if edit::agrees(&format!("Give it {}? [y/N] ", requested_permissions::clipped(&beyond.line())))? {
                self.entry.suggest(&beyond.suggestion);
                self.offer.taken.push(beyond.suggestion);
            } else {
                self.offer.beyond.push(beyond);
            }
        }
        Ok(())
    }

    /// Asks a person about each complete requested permission, and adds the accepted ones.
    fn ask_for_permissions(&self, edit: &mut ManifestEdit) -> anyhow::Result<()> {
        let Ok(Some(requested)) = &self.inspected.requested else { return Ok(()) };
        for right in requested.rights().iter().filter(|right| requested_permissions::is_whole(right)) {
            let Some(granted) = self.granting(edit, right) else { continue };
            if edit::agrees(&format!("Grant it {}? [y/N] ", requested_permissions::clipped(right)))? {
                *edit = granted;
            }
        }
        Ok(())
    }

    /// The manifest with a right; `None` if the component could not use it.
    fn granting(&self, edit: &ManifestEdit, right: &str) -> Option<ManifestEdit> {
        let mut granted = ManifestEdit::of(&edit.text()).ok()?;
        grant::grant(&mut granted, &self.name, right, &edit::rights::read(right).ok()?).ok()?;
        let text = granted.text();
        let manifest = parse(&Source { name: "", text: &text }).ok()?.manifest;
        let imports = self.inspected.found.inspection.imports();
        manifest.component(&self.name)?.check_imports(imports).is_empty().then_some(granted)
    }

    /// Places the file, checks the whole manifest, writes the lock and finally the manifest.
    fn write(&self, args: &AddArgs, file: &ManifestFile, edit: &ManifestEdit) -> anyhow::Result<Exit> {
        let manifest = file.path();
        let placed = match &self.found.place {
            ServedFrom::Link(_) | ServedFrom::Store(_) => None,
            ServedFrom::Copy => Some(PlacedFile::write(&folder_of(manifest), &self.name, &self.found.bytes)?),
        };
        let opened = ManifestFile::unwritten(manifest, edit.text());
        let options = OpenOptions { code: args.code.options(), ..OpenOptions::default() };
        if let Some(bridge) = &self.found.bridge
            && let Some(command) = bridge.secret_command(manifest)
            && lacks_values(file, &opened)?
        {
            edit::write(file, opened.text())?;
            placed.into_iter().for_each(PlacedFile::keep);
            return self.print_unpinned(args, &command);
        }
        let Some((opened, ready)) = open_file_or_report(opened, options)? else {
            let problem = format!("{} would have these problems, and stays as it is", file.name());
            let hint = "`--no-metadata` takes nothing of what its author suggests";
            let hint = if self.offer.taken.is_empty() { "" } else { hint };
            return Err(Failure::at_fault(problem, hint).into());
        };
        let is_linked = matches!(self.found.place, ServedFrom::Link(_));
        let locked = pin(manifest, &self.name, &ready.catalog, is_linked)?;
        if let Err(failure) = edit::write(file, opened.text()) {
            locked.take_back();
            return Err(failure.into());
        }
        placed.into_iter().for_each(PlacedFile::keep);
        if args.json {
            terminal::print(&inspect::json_text(&self.json(&locked, manifest)))?;
        } else {
            self.print_next(args, &locked);
        }
        Ok(Exit::Done)
    }

    /// Ends without a lock: it pins a component only once its secrets have values.
    fn print_unpinned(&self, args: &AddArgs, command: &str) -> anyhow::Result<Exit> {
        let manifest = args.manifest.manifest.as_path();
        if args.json {
            let locked = WrittenLock { path: lock::path_beside(manifest), before: None, after: None };
            terminal::print(&inspect::json_text(&self.json(&locked, manifest)))?;
        }
        let text = format!(
            "{}: {} is added, and a secret has no value yet\n\nhint: `{command}` asks for it; then `toolcell lock` pins the component\n",
            manifest.display(),
            self.name
        );
        terminal::eprint(&shell::named(&text));
        Ok(Exit::Done)
    }

    fn print_next(&self, args: &AddArgs, locked: &WrittenLock) {
        let path = args.manifest.manifest.as_path();
        let manifest = path.display();
        let added = match &locked.after {
            Some(_) => format!("{manifest}: {} is added, and pinned in {}\n", self.name, locked.path.display()),
            None => format!("{manifest}: {} is added; `toolcell lock` pins it\n", self.name),
        };
        terminal::eprint(&shell::named(&added));
        let commands = requested_permissions::commands(&self.name, &args.manifest.manifest, &self.inspected.requested);
        if !commands.is_empty() {
            terminal::eprint(&format!(
                "\nhint: grant what you agree with of what it requests, and nothing else:\n{commands}"
            ));
        } else if let Some(bridge) = &self.found.bridge {
            let first = bridge.login_command(path).map_or_else(String::new, |command| format!("`{command}` logs in, "));
            let text = format!("\nhint: {first}`toolcell list` shows its tools, `toolcell call` calls one\n");
            terminal::eprint(&shell::named(&text));
        } else if let Some(need) = self.inspected.needs.asked.first() {
            let text = format!("\nhint: allow it something with `toolcell grant {} \"{}\"`\n", self.name, need.right);
            terminal::eprint(&shell::named(&text));
        }
    }

    fn json(&self, locked: &WrittenLock, manifest: &Path) -> Value {
        let inspection = &self.inspected.found.inspection;
        let tools: Vec<&str> = self.inspected.found.tools.iter().flatten().map(|tool| tool.name.as_str()).collect();
        let mut json = json!({
            "ok": true,
            "component": self.name,
            "source": self.entry.text("source"),
            "digest": inspection.digest().to_string(),
            "size_bytes": inspection.size_bytes(),
            "shape": self.inspected.found.shape.map(ShapeName::as_str),
            "tools": tools,
            "imports": inspection.imports(),
            "can_ask_for": self.inspected.needs.asked.iter().map(|need| need.what).collect::<Vec<_>>(),
            "can_use": self.inspected.needs.brought.iter().map(|need| need.what).collect::<Vec<_>>(),
            "not_taken_over": self.found.left_out,
            "signed_by": self.found.signers,
            "left_out": left_out_json(&self.found.not_attached),
            "manifest": manifest,
            "lock": locked.after.is_some().then_some(&*locked.path),
        });
        if let Some(members) = json.as_object_mut() {
            let carried = requested_permissions::json(&self.inspected.requested).into_iter();
            let carried = carried.chain(metadata::json(&self.inspected.metadata)).chain(self.offer.json());
            members.extend(carried.map(|(name, value)| (name.to_owned(), value)));
            let bridge = self.found.bridge.iter().map(|bridge| (bridge.key().to_owned(), bridge.json()));
            members.extend(bridge);
        }
        json
    }
}

/// True if all that keeps the new text from loading is that secrets have no values here.
fn lacks_values(file: &ManifestFile, edited: &ManifestFile) -> anyhow::Result<bool> {
    edit::loads(file, edited.text())?;
    edit::lacks_values(edited)
}

/// The manifest with this component, if it can be read.
fn with_component(edit: &ManifestEdit, name: &str, entry: &ComponentEntry) -> Option<Manifest> {
    let mut edit = ManifestEdit::of(&edit.text()).ok()?;
    edit.insert_component(name, entry).ok()?;
    let text = edit.text();
    Some(parse(&Source { name: "", text: &text }).ok()?.manifest)
}
