//! `toolcell secret set`: keeps a value, and names its place in the manifest.
use std::fs::File;
use std::io::IsTerminal as _;
use std::os::fd::AsFd as _;

use toolcell_policy::SecretSource;
use toolcell_policy::edit::{ManifestEntry, Value};
use toolcell_server::catalog::folder_of;
use toolcell_server::secret_store::GivenSecret;

use super::Edited;
use crate::args::SecretSetArgs;
use crate::edit::{self, Screen, agree};
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Service of secrets in a keyring.
const SERVICE: &str = "toolcell";

/// Longest name of a secret that can be kept, in characters: it becomes part of a file's name.
const NAME_CHARS_MAX: usize = 128;

/// Keeps the value, then writes its place into the manifest if that is new.
pub fn run(args: &SecretSetArgs) -> anyhow::Result<Exit> {
    let (file, text, place) = edited(args)?;
    let changes = text != file.text();
    if changes {
        agree(&file, &text, args.consent.consent(), Screen::Stdout)?;
    }
    given(&args.name)?.keep(&place, &folder_of(file.path())).map_err(Failure::from)?;
    let mut named = String::new();
    if changes {
        edit::write(&file, &text)?;
        named = format!("; {} says so", file.name());
    }
    terminal::eprint(&format!("{} is kept in {place}{named}\n", args.name));
    Ok(Exit::Done)
}

/// The manifest, its text with the secret's place, and the place.
fn edited(args: &SecretSetArgs) -> Result<(toolcell_server::ManifestFile, String, SecretSource), Failure> {
    let name = args.name.as_str();
    check_name(name)?;
    let mut edited = Edited::read(&args.manifest.manifest)?;
    let component = edited.component(name, args.component.as_deref())?;
    let before = edited.place(&component, name).cloned();
    let place = place(args, &component, before.as_ref(), &edited);
    let from = place.to_string();
    let delivery = delivery(args);
    let is_there = edited.edit.secret_source(&component, name).is_some();
    if !is_there && delivery.is_empty() {
        let problem = format!("{component} has no secret {name}, and nothing says where it goes");
        let hint = "add --header Authorization --value 'Bearer {}' --for https://…, or --query NAME --for https://…, or --expose";
        return Err(Failure::usage(problem, hint));
    }
    if is_there && !delivery.is_empty() {
        let problem = format!("{component} has a secret {name} already, and the manifest says where it goes");
        return Err(Failure::usage(problem, "leave --header, --query, --for and --expose out, or edit the manifest"));
    }
    if is_there {
        edited.edit.set_secret_source(&component, name, &from);
    } else {
        let entry = ManifestEntry::secret(name, &from, delivery);
        let added = edited.edit.add(&component, &entry);
        added
            .map_err(|problem| Failure::at_fault(format!("{name} cannot be added: {problem}"), "edit the manifest"))?;
    }
    // An unchanged place leaves the text unchanged.
    let text = if before.as_ref() == Some(&place) { edited.file.text().to_owned() } else { edited.edit.text() };
    Ok((edited.file, text, place))
}

/// Where the value will be kept: according to the manifest, unless that is the environment.
fn place(args: &SecretSetArgs, component: &str, before: Option<&SecretSource>, edited: &Edited) -> SecretSource {
    match before {
        Some(place @ SecretSource::Keyring { .. }) => place.clone(),
        Some(place @ SecretSource::File(_)) if !args.keyring => place.clone(),
        _ if args.keyring => {
            SecretSource::Keyring { service: SERVICE.to_owned(), account: format!("{component}.{}", args.name) }
        }
        _ => SecretSource::File(edited.usual_file(component, &args.name)),
    }
}

fn delivery(args: &SecretSetArgs) -> Vec<(&'static str, Value)> {
    let texts = [("header", &args.header), ("value", &args.value), ("query", &args.query), ("for", &args.target)];
    let mut keys: Vec<_> =
        texts.into_iter().filter_map(|(key, text)| Some((key, Value::from(text.as_ref()?.as_str())))).collect();
    keys.extend(args.expose.then(|| ("expose", true.into())));
    keys
}

fn check_name(name: &str) -> Result<(), Failure> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.chars().all(plain) {
        return Ok(());
    }
    let hint = format!("a secret that is kept has a name of 1 to {NAME_CHARS_MAX} of A-Z a-z 0-9 _ - .");
    Err(Failure::usage(format!("{name:?} cannot be the name of a file"), hint))
}

/// The value: typed on a terminal, or everything on stdin.
fn given(name: &str) -> Result<GivenSecret, Failure> {
    let hint = "a secret is one line of 1 byte to 32 KiB";
    let wrong = |problem: String| Failure::at_fault(format!("{name} is not set: {problem}"), hint);
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return GivenSecret::read(stdin.lock()).map_err(wrong);
    }
    // The standard library would keep the value in its buffer.
    let input = stdin.as_fd().try_clone_to_owned().map_err(|error| wrong(error.to_string()))?;
    let prompt = || terminal::eprint(&format!("Value of {name} (it is not shown): "));
    let typed = GivenSecret::type_in(File::from(input), prompt);
    terminal::eprint("\n");
    match typed {
        Ok(Some(value)) => Ok(value),
        Ok(None) => Err(Failure::said(Exit::AtFault)),
        Err(problem) => Err(wrong(problem)),
    }
}
