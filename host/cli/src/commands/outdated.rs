//! `toolcell outdated`: where tags of registries lead now, for people and for programs that open
//! pull requests.
use serde_json::{Value, json};
use toolcell_policy::Reference;
use toolcell_server::catalog::folder_of;
use toolcell_server::registries::{self, Registries};
use toolcell_server::secrets::Fault;

use super::registries::{failed, read_manifest};
use crate::args::OutdatedArgs;
use crate::exit::{Exit, Failure};
use crate::terminal;

/// The answers of registries about one component.
struct News<'m> {
    name: &'m str,
    reference: &'m Reference,
    found: Result<Found, Fault>,
}

struct Found {
    /// Where the tag leads, if that is another digest than the pinned one.
    moved: Option<String>,
    /// The newest version, if the tag is an older one.
    newer: Option<String>,
}

/// A version in the form `1.2.3`, perhaps with a `v` before it.
type Version = (u64, u64, u64);

/// Asks and prints.
pub fn run(args: &OutdatedArgs) -> anyhow::Result<Exit> {
    match outdated(args)? {
        Ok(exit) => Ok(exit),
        Err(failure) => failure.tell(args.json),
    }
}

fn outdated(args: &OutdatedArgs) -> anyhow::Result<Result<Exit, Failure>> {
    let path = args.manifest.manifest.as_path();
    let (file, manifest) = match read_manifest(path) {
        Ok(read) => read,
        Err(failure) => return Ok(Err(failure)),
    };
    let folder = folder_of(path);
    let registries = match Registries::open(&manifest, &folder) {
        Ok(registries) => registries,
        Err(fault) => return Ok(Err(failed(fault))),
    };
    let asked: Vec<News<'_>> = registries::components(&manifest)
        .map(|(name, reference)| News { name, reference, found: ask(&registries, reference) })
        .collect();
    let is_current = |news: &News<'_>| matches!(&news.found, Ok(Found { moved: None, newer: None }));
    let is_done = asked.iter().all(is_current);
    if args.json {
        let components: Vec<Value> = asked.iter().map(News::json).collect();
        terminal::print(&format!("{:#}\n", json!({"outdated": !is_done, "components": components})))?;
    } else if is_done {
        terminal::say(&format!("{}: nothing is outdated\n", file.name()));
    } else {
        asked.iter().filter(|news| !is_current(news)).try_for_each(News::say)?;
    }
    Ok(Ok(if is_done { Exit::Done } else { Exit::AtFault }))
}

fn ask(registries: &Registries<'_>, reference: &Reference) -> Result<Found, Fault> {
    let Some(tag) = reference.tag() else { return Ok(Found { moved: None, newer: None }) };
    let digest = registries.resolve(&with_tag_alone(reference, tag)?)?;
    let moved = (reference.digest() != Some(&digest)).then(|| digest.to_string());
    let newer = match version(tag) {
        None => None,
        Some(own) => {
            let tags = registries.tags(reference)?.names;
            let versions = tags.iter().filter_map(|tag| Some((version(tag)?, tag)));
            versions.filter(|(version, _)| *version > own).max().map(|(_, tag)| tag.clone())
        }
    };
    Ok(Found { moved, newer })
}

fn with_tag_alone(reference: &Reference, tag: &str) -> Result<Reference, Fault> {
    reference.clone().bare().with_tag(tag).map_err(|error| (error.to_string(), String::new()))
}

/// Reads `1.2.3` or `v1.2.3`. Others, and those before a release, are no versions to move to.
fn version(tag: &str) -> Option<Version> {
    let mut parts = tag.strip_prefix('v').unwrap_or(tag).split('.').map(|part| {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| part.parse().ok()).flatten()
    });
    let version = (parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some(version)
}

impl News<'_> {
    fn say(&self) -> anyhow::Result<()> {
        let Self { name, reference, found } = self;
        match found {
            Ok(Found { moved, newer }) => {
                if let Some(digest) = moved {
                    let tag = reference.tag().unwrap_or_default();
                    terminal::print(&format!(
                        "{name}: {tag} leads to {digest} now; `toolcell update {name}` shows it\n"
                    ))?;
                }
                if let Some(newer) = newer {
                    terminal::print(&format!(
                        "{name}: there is {newer}; `toolcell update {name} --tag {newer}` shows it\n"
                    ))?;
                }
            }
            Err((problem, hint)) => {
                let hint = Some(hint.as_str()).filter(|hint| !hint.is_empty());
                terminal::error(&format!("{name}: {reference}: {problem}"), hint);
            }
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let Self { name, reference, found } = self;
        let (source, digest) = (reference.to_string(), reference.digest().map(ToString::to_string));
        match found {
            Ok(Found { moved, newer }) => json!({
                "name": name, "source": source, "digest": digest, "outdated": moved.is_some() || newer.is_some(),
                "tag_leads_to": moved, "newest": newer,
            }),
            Err((problem, _)) => json!({"name": name, "source": source, "digest": digest, "problem": problem}),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_three_numbers() {
        assert!(version("1.10.0") > version("1.9.9") && version("v2.0.0") > version("1.10.0"));
        for tag in ["latest", "1.2", "1.2.3.4", "1.2.3-rc.1", "1.2.x", "", "..", "1.2.+3", "1.2.99999999999999999999"] {
            assert_eq!(version(tag), None, "{tag}");
        }
    }
}
