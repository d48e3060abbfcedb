//! `toolcell token`: makes, lists and revokes the tokens of callers over HTTP.
use toolcell_server::ManifestFile;
use toolcell_server::catalog::folder_of;
use toolcell_server::http::{TokenEntry, TokenFile};

use crate::args::{TokenArgs, TokenCommand, TokenFileArg};
use crate::exit::Exit;
use crate::terminal;

/// Runs one of its commands.
pub fn run(args: &TokenArgs) -> anyhow::Result<Exit> {
    let done = match &args.command {
        TokenCommand::New { name, scopes, file } => new(name, scopes, file),
        TokenCommand::List { file } => list(file),
        TokenCommand::Revoke { name, file } => revoke(name, file),
    };
    match done {
        Ok(said) => {
            terminal::print(&said)?;
            Ok(Exit::Done)
        }
        Err(problem) => {
            terminal::error(&problem, None);
            Ok(Exit::AtFault)
        }
    }
}

fn new(name: &str, scopes: &[String], file: &TokenFileArg) -> Result<String, String> {
    let file = opened(file)?;
    let token = file.add(name, scopes)?;
    terminal::say(&format!(
        "the token of {name}, which is shown only now; {} keeps its hash:\n",
        file.path().display()
    ));
    Ok(format!("{token}\n"))
}

fn list(file: &TokenFileArg) -> Result<String, String> {
    let line = |entry: TokenEntry| format!("{}\t{}\n", entry.name, entry.scopes.join(" "));
    Ok(opened(file)?.read()?.into_iter().map(line).collect())
}

fn revoke(name: &str, file: &TokenFileArg) -> Result<String, String> {
    let file = opened(file)?;
    if !file.path().exists() {
        // Says why, and leaves no lock behind.
        file.read()?;
    }
    file.change(|entries| {
        let before = entries.len();
        entries.retain(|entry| entry.name != name);
        let none = || format!("{name} has no token in {}", file.path().display());
        if entries.len() < before { Ok(()) } else { Err(none()) }
    })?;
    Ok(format!("the token of {name} is revoked\n"))
}

/// The named file, or else the manifest's.
fn opened(arg: &TokenFileArg) -> Result<TokenFile, String> {
    if let Some(path) = &arg.file {
        return Ok(TokenFile::at(path.clone()));
    }
    let manifest = ManifestFile::read(&arg.manifest.manifest)?;
    let parsed = toolcell_policy::parse(&manifest.source())
        .map_err(|_| format!("{} has problems; `toolcell check` shows them", arg.manifest.manifest.display()))?;
    let named = parsed.manifest.http().and_then(|http| http.tokens().map(str::to_owned));
    let named =
        named.ok_or("the manifest names no file of tokens; write [http] tokens = \"tokens.jsonl\", or --file")?;
    Ok(TokenFile::at(folder_of(&arg.manifest.manifest).join(named)))
}
