//! `toolcell inspect oci://…`: the artifact of a component in a registry, its attachments, and its
//! signers.
use std::path::Path;

use serde_json::{Map, Value, json};
use toolcell_mcp::sanitize;
use toolcell_policy::{AdvisedFault, Reference};
use toolcell_registry::{Attached, Manifest, StoredComponent};
use toolcell_server::catalog::folder_of;
use toolcell_server::machine::Machine;
use toolcell_server::registries::{LeftOut, Registries};
use toolcell_server::shell;
use toolcell_server::trust::{Signed, claimed_kind};

use super::{inspect, json_text};
use crate::args::InspectArgs;
use crate::commands::registries::{beside, fetch, left_out_json, left_out_lines, manifest_if_any, pinned};
use crate::exit::{Exit, Failure};
use crate::manifest::report_note;
use crate::sandbox_process;
use crate::terminal;

/// Annotations that are shown to people; JSON has all.
const ANNOTATIONS_SHOWN: usize = 20;

/// Attached artifacts that are shown to people.
const ATTACHED_SHOWN: usize = 20;

/// Characters of a text of the artifact that are shown to people: a stranger wrote it.
const SHOWN_CHARS_MAX: usize = 60;

/// An artifact of the store.
struct InspectedArtifact {
    reference: Reference,
    component: StoredComponent,
    manifest: Option<Manifest>,
    attached: Vec<Attached>,
    /// Attached artifacts that could not be fetched.
    left_out: LeftOut,
    /// Who signed it; `None` if the command's manifest has no rule for it.
    signed: Result<Option<Signed>, AdvisedFault>,
}

/// Pulls into the store, inspects and prints.
pub(super) fn run(args: &InspectArgs, written: &str) -> anyhow::Result<Exit> {
    let artifact = InspectedArtifact::fetch(args, written)?;
    // Bytes that the rule rejects are never parsed.
    if let Err(fault) = &artifact.signed {
        let mut json = artifact.json();
        json.extend(
            [
                ("ok", json!(false)),
                ("problem", json!(fault.problem)),
                ("hint", json!(shell::named(fault.hint().unwrap_or_default()))),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        terminal::print(&if args.json { json_text(&Value::Object(json)) } else { artifact.text() })?;
        if !args.json {
            terminal::error(&fault.problem, fault.hint());
        }
        return Ok(Exit::AtFault);
    }
    let machine = Machine::start(&args.code.options(), None, &sandbox_process::guests())?;
    machine.notes.iter().for_each(report_note);
    let name = artifact.reference.to_string();
    let inspected = inspect(&machine, Path::new(&name), &artifact.component.bytes).map_err(Failure::from)?;
    let text = if args.json {
        let mut json = inspected.json();
        if let Some(members) = json.as_object_mut() {
            members.extend(artifact.json());
        }
        json_text(&json)
    } else {
        format!("{}\n{}", artifact.text(), inspected.text("component"))
    };
    terminal::print(&text)?;
    Ok(inspected.exit(args.strict))
}

impl InspectedArtifact {
    fn fetch(args: &InspectArgs, written: &str) -> Result<Self, Failure> {
        let hint = "write oci://HOST/REPOSITORY:TAG, or @sha256:DIGEST after it";
        let reference = Reference::parse(written).map_err(|error| Failure::usage(error.to_string(), hint))?;
        let (_, manifest) = manifest_if_any(&args.manifest.manifest)?;
        let folder = folder_of(&args.manifest.manifest);
        let registries = Registries::open(&manifest, &folder)?;
        let reference = pinned(&registries, reference)?;
        let left_out = fetch(&registries, &reference)?;
        let (component, attached) = registries.stored(&reference)?;
        let signed = registries.verify(&reference, &component, &attached).map_err(|fault| beside(fault, &left_out));
        let manifest = Manifest::parse(&component.manifest_bytes).ok();
        Ok(Self { reference, component, manifest, attached, left_out, signed })
    }

    fn text(&self) -> String {
        let mut text = format!("{}\n", terminal::bold(&self.reference.to_string(), terminal::stdout_style()));
        let mut line = |name: &str, said: &str| text.push_str(&format!("  {name:10}  {said}\n"));
        if self.component.index_bytes.is_some() {
            line("index", self.reference.digest().map_or("", |digest| digest.as_str()));
        }
        line("manifest", &format!("{}, {} bytes", self.component.manifest, self.component.manifest_bytes.len()));
        for layer in self.manifest.iter().flat_map(|manifest| &manifest.layers) {
            line("layer", &format!("{}, {} bytes, {}", layer.digest, layer.size, shown(&layer.media_type)));
        }
        for (key, value) in self.component.annotations.iter().take(ANNOTATIONS_SHOWN) {
            line("annotation", &format!("{} = {}", shown(key), shown(value)));
        }
        let more = self.component.annotations.len().saturating_sub(ANNOTATIONS_SHOWN);
        if more > 0 {
            line("annotation", &format!("and {more} more"));
        }
        match &self.signed {
            Ok(Some(Signed { by, .. })) => by.iter().for_each(|signed| line("signed", &sanitize::line(signed))),
            Ok(None) => line("signed", "nobody vouches for it: no [trust] of the manifest names its repository"),
            Err(_) => line("signed", "not as [trust] of the manifest asks"),
        }
        for attached in self.attached.iter().take(ATTACHED_SHOWN) {
            let bytes: usize = attached.layers.iter().map(|layer| layer.bytes.len()).sum();
            let kind = kinds(attached).join(", ");
            line("attached", &format!("{}, {bytes} bytes, says it is: {kind}", attached.digest));
        }
        let more = self.attached.len().saturating_sub(ATTACHED_SHOWN);
        if more > 0 {
            line("attached", &format!("and {more} more"));
        }
        for said in left_out_lines(&self.left_out) {
            line("attached", &said);
        }
        text
    }

    fn json(&self) -> Map<String, Value> {
        let layers = self.manifest.iter().flat_map(|manifest| &manifest.layers).map(|layer| {
            json!({"digest": layer.digest.to_string(), "size_bytes": layer.size, "media_type": layer.media_type,
                "annotations": layer.annotations})
        });
        let attached = self.attached.iter().map(|attached| {
            let bytes: usize = attached.layers.iter().map(|layer| layer.bytes.len()).sum();
            json!({"digest": attached.digest.to_string(), "size_bytes": bytes, "artifact_type": attached.artifact_type,
                "claims": kinds(attached)})
        });
        let (signed_by, root) = match &self.signed {
            Ok(Some(signed)) => (signed.by.clone(), signed.root.clone()),
            _ => (Vec::new(), None),
        };
        let trust = match &self.signed {
            Ok(Some(_)) => "verified",
            Ok(None) => "no rule",
            Err(_) => "refused",
        };
        let members = [
            ("source", json!(self.reference.to_string())),
            ("manifest_digest", json!(self.component.manifest.to_string())),
            ("manifest_bytes", json!(self.component.manifest_bytes.len())),
            ("artifact_type", json!(self.manifest.as_ref().map(Manifest::kind))),
            ("annotations", json!(self.component.annotations)),
            ("layers", Value::Array(layers.collect())),
            ("trust", json!(trust)),
            ("signed_by", json!(signed_by)),
            ("trusted_root", json!(root)),
            ("attached", Value::Array(attached.collect())),
            ("left_out", left_out_json(&self.left_out)),
        ];
        members.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
    }
}

/// The kinds that an attached artifact claims to be. Nothing has verified them.
fn kinds(attached: &Attached) -> Vec<String> {
    let mut kinds: Vec<String> = attached
        .layers
        .iter()
        .map(|layer| claimed_kind(attached, layer).map_or_else(|| shown(&attached.artifact_type), str::to_owned))
        .collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

fn shown(text: &str) -> String {
    let text = sanitize::line(text);
    match text.chars().count() > SHOWN_CHARS_MAX {
        true => format!("{}…", text.chars().take(SHOWN_CHARS_MAX - 1).collect::<String>()),
        false => text.into_owned(),
    }
}
