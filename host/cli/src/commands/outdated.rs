//! `toolcell outdated`: where tags of registries lead now, and what other MCP servers list, for
//! people and for programs that open pull requests.
use serde_json::{Value, json};
use toolcell_policy::{AdvisedFault, Reference};
use toolcell_registry::TAGS_MAX;
use toolcell_server::catalog::folder_of;
use toolcell_server::registries::{self, Registries};
use toolcell_server::shell;

use super::registries::read_manifest;
use super::remotes::{self, KnownBridge};
use crate::args::OutdatedArgs;
use crate::exit::{Exit, Failure, reported};
use crate::terminal;

/// A registry's answers about one component.
struct ComponentNews<'m> {
    name: &'m str,
    reference: &'m Reference,
    found: FoundVersions,
    /// Why the rest is unknown.
    fault: Option<AdvisedFault>,
}

/// The answer of a bridge's server.
struct BridgeNews<'m> {
    bridge: KnownBridge<'m>,
    /// True if its list makes other tools than the embedded ones.
    is_changed: bool,
    fault: Option<AdvisedFault>,
}

#[derive(Default)]
struct FoundVersions {
    /// The tag's current digest, if it differs from the pinned one.
    moved: Option<String>,
    /// The newest version, if the tag is an older one.
    newer: Option<String>,
    /// True if the registry has more tags than are read: a newer one may be among them.
    has_more_tags: bool,
}

/// A version in the form `1.2.3`, perhaps with a `v` before it.
type Version = (u64, u64, u64);

/// Asks and prints.
pub fn run(args: &OutdatedArgs) -> anyhow::Result<Exit> {
    reported(outdated(args), args.json)
}

fn outdated(args: &OutdatedArgs) -> anyhow::Result<Exit> {
    let path = args.manifest.manifest.as_path();
    let (file, manifest) = read_manifest(path)?;
    let folder = folder_of(path);
    let registries = Registries::open(&manifest, &folder).map_err(Failure::from)?;
    let asked: Vec<ComponentNews<'_>> = registries::components(&manifest)
        .map(|(name, reference)| {
            let mut found = FoundVersions::default();
            let fault = ask(&registries, reference, &mut found).err();
            ComponentNews { name, reference, found, fault }
        })
        .collect();
    let bridges: Vec<BridgeNews<'_>> = remotes::of_manifest(&manifest, &folder)
        .into_iter()
        .map(|bridge| match bridge.changed(&manifest, &folder) {
            Ok(changed) => BridgeNews { bridge, is_changed: changed.is_some(), fault: None },
            Err(fault) => BridgeNews { bridge, is_changed: false, fault: Some(fault) },
        })
        .collect();
    let is_outdated = asked.iter().any(ComponentNews::is_outdated) || bridges.iter().any(|news| news.is_changed);
    let mut faults = asked.iter().map(|news| &news.fault).chain(bridges.iter().map(|news| &news.fault));
    let is_failed = faults.any(Option::is_some);
    if args.json {
        let bridged = bridges.iter().map(BridgeNews::json);
        let components: Vec<Value> = asked.iter().map(ComponentNews::json).chain(bridged).collect();
        let answer = json!({"outdated": is_outdated, "failed": is_failed, "components": components});
        terminal::print(&format!("{answer:#}\n"))?;
    } else {
        asked.iter().try_for_each(ComponentNews::print)?;
        bridges.iter().try_for_each(BridgeNews::print)?;
        if !is_outdated && !is_failed {
            terminal::eprint(&format!("{}: nothing is outdated\n", file.name()));
        }
    }
    Ok(match (is_outdated, is_failed) {
        (true, _) => Exit::AtFault,
        (false, true) => Exit::HostFailed,
        (false, false) => Exit::Done,
    })
}

/// Asks a component's registry. Answers before a failure are kept.
fn ask(registries: &Registries<'_>, reference: &Reference, found: &mut FoundVersions) -> Result<(), AdvisedFault> {
    let Some(tag) = reference.tag() else { return Ok(()) };
    let digest = registries.resolve(&with_tag_alone(reference, tag)?)?;
    found.moved = (reference.digest() != Some(&digest)).then(|| digest.to_string());
    if let Some(own) = version(tag) {
        let tags = registries.tags(reference)?;
        let versions = tags.names.iter().filter_map(|tag| Some((version(tag)?, tag)));
        found.newer = versions.filter(|(version, _)| *version > own).max().map(|(_, tag)| tag.clone());
        found.has_more_tags = !tags.is_complete;
    }
    Ok(())
}

fn with_tag_alone(reference: &Reference, tag: &str) -> Result<Reference, AdvisedFault> {
    reference.clone().bare().with_tag(tag).map_err(|error| AdvisedFault::unadvised(error.to_string()))
}

/// Reads `1.2.3` or `v1.2.3`. Other tags, and pre-releases, are not versions to update to.
fn version(tag: &str) -> Option<Version> {
    let mut parts = tag.strip_prefix('v').unwrap_or(tag).split('.').map(|part| {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| part.parse().ok()).flatten()
    });
    let version = (parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some(version)
}

impl ComponentNews<'_> {
    const fn is_outdated(&self) -> bool {
        self.found.moved.is_some() || self.found.newer.is_some()
    }

    fn print(&self) -> anyhow::Result<()> {
        let Self { name, reference, found: FoundVersions { moved, newer, has_more_tags }, fault } = self;
        if let Some(digest) = moved {
            let tag = reference.tag().unwrap_or_default();
            let text = format!("{name}: {tag} leads to {digest} now; `toolcell update {name}` shows it\n");
            terminal::print(&shell::named(&text))?;
        }
        if let Some(newer) = newer {
            let text = format!("{name}: there is {newer}; `toolcell update {name} --tag {newer}` shows it\n");
            terminal::print(&shell::named(&text))?;
        }
        if *has_more_tags {
            terminal::warning(&format!(
                "{name}: its repository has more tags than the {TAGS_MAX} that are looked at: a newer version may be among them"
            ));
        }
        if let Some(fault) = fault {
            terminal::error(&format!("{name}: {reference}: {}", fault.problem), fault.hint());
        }
        Ok(())
    }

    /// As JSON, with `null` for unknown values.
    fn json(&self) -> Value {
        let Self { name, reference, found: FoundVersions { moved, newer, has_more_tags }, fault } = self;
        json!({
            "name": name, "source": reference.to_string(), "digest": reference.digest().map(ToString::to_string),
            "outdated": (self.is_outdated() || fault.is_none()).then_some(self.is_outdated()),
            "tag_leads_to": moved, "newest": newer, "tags_complete": fault.is_none().then_some(!has_more_tags),
            "problem": fault.as_ref().map(|fault| &fault.problem), "hint": fault.as_ref().and_then(AdvisedFault::hint).map(shell::named),
        })
    }
}

impl BridgeNews<'_> {
    fn print(&self) -> anyhow::Result<()> {
        let name = self.bridge.component.name();
        let url = &self.bridge.server.url;
        if self.is_changed {
            let text = format!("{name}: {url} lists other tools now; `toolcell update {name}` shows them\n");
            terminal::print(&shell::named(&text))?;
        }
        if let Some(fault) = &self.fault {
            terminal::error(&format!("{name}: {}", fault.problem), fault.hint());
        }
        Ok(())
    }

    /// As JSON, with `null` for unknown values.
    fn json(&self) -> Value {
        json!({
            "name": self.bridge.component.name(), "source": self.bridge.server.url,
            "outdated": self.fault.is_none().then_some(self.is_changed),
            "problem": self.fault.as_ref().map(|fault| &fault.problem),
            "hint": self.fault.as_ref().and_then(AdvisedFault::hint).map(shell::named),
        })
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
