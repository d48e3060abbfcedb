//! `toolcell token`: makes, lists and revokes the tokens of callers over HTTP.
use toolcell_server::ManifestFile;
use toolcell_server::catalog::folder_of;
use toolcell_server::http::{TokenEntry, TokenFile, hash, new_token};

use crate::args::{TokenArgs, TokenCommand, TokenFileArg};
use crate::exit::Exit;
use crate::terminal;

/// Longest name of a caller, in characters.
const NAME_CHARS_MAX: usize = 64;

/// Names that stand for callers without a token.
const TAKEN: [&str; 2] = ["local", "anyone"];

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
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(plain) || TAKEN.contains(&name) {
        let taken = TAKEN.join(" and ");
        return Err(format!(
            "{name:?} cannot be a caller's name: 1 to {NAME_CHARS_MAX} of A-Z a-z 0-9 - _ . @, and not {taken}"
        ));
    }
    let file = opened(file)?;
    let mut entries = if file.path().exists() { file.read()? } else { Vec::new() };
    if entries.iter().any(|entry| entry.name == name) {
        return Err(format!("{name} has a token already; `toolcell token revoke {name}` takes it away"));
    }
    let token = new_token()?;
    entries.push(TokenEntry { name: name.to_owned(), hash: hash(&token), scopes: scopes.to_vec() });
    file.write(&entries)?;
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
    let mut entries = file.read()?;
    let before = entries.len();
    entries.retain(|entry| entry.name != name);
    if entries.len() == before {
        return Err(format!("{name} has no token in {}", file.path().display()));
    }
    file.write(&entries)?;
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
