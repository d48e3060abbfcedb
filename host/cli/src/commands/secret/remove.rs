//! `toolcell secret remove`: removes a secret from the manifest, and its value if this program
//! keeps it.
use toolcell_policy::SecretSource;
use toolcell_policy::edit::ManifestEntry;
use toolcell_server::ManifestFile;
use toolcell_server::catalog::folder_of;
use toolcell_server::secret_store::forget;

use super::{Edited, FOLDER};
use crate::args::SecretRemoveArgs;
use crate::edit::{self, Screen, agree};
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Edits the manifest, then removes the value.
pub fn run(args: &SecretRemoveArgs) -> anyhow::Result<Exit> {
    let (file, text, place, is_ours) = edited(args)?;
    agree(&file, &text, args.consent.consent(), Screen::Stdout)?;
    edit::write(&file, &text)?;
    let is_gone = is_ours
        && forget(&place, &folder_of(file.path()))
            .map_err(|problem| Failure::at_fault(problem, "the manifest names it no longer"))?;
    let value = if is_gone { "its value is removed" } else { "its value is not touched" };
    terminal::eprint(&format!("{}: {} is gone; {value}: {}\n", file.name(), args.name, place));
    Ok(Exit::Done)
}

/// The manifest, its text without the secret, the place of the value, and true if this program
/// keeps the value there only for this secret.
fn edited(args: &SecretRemoveArgs) -> Result<(ManifestFile, String, SecretSource, bool), Failure> {
    let mut edited = Edited::read(&args.manifest.manifest)?;
    let component = edited.component(&args.name, args.component.as_deref())?;
    let Some(place) = edited.place(&component, &args.name).cloned() else {
        let problem = format!("{component} has no secret {}", args.name);
        return Err(Failure::at_fault(problem, "`toolcell secret list` shows the secrets"));
    };
    let all = edited.manifest.components().iter().flat_map(|component| component.grants().secrets());
    let is_shared = all.filter(|secret| *secret.source() == place).count() > 1;
    let ours = format!("{}/{FOLDER}/", edited.manifest.server().state());
    let is_ours = !is_shared
        && match &place {
            SecretSource::Env(_) | SecretSource::Login(_) | SecretSource::Program(_) => false,
            SecretSource::File(path) => path.strip_prefix(&ours).is_some_and(|name| !name.contains('/')),
            SecretSource::Keyring { .. } => true,
        };
    edited.edit.remove(&component, &ManifestEntry::secret(&args.name, "", Vec::new()));
    let text = edited.edit.text();
    Ok((edited.file, text, place, is_ours))
}
