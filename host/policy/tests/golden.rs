//! Manifests and their diagnostics, one golden file each, and the checked-in JSON Schema.
//! `UPDATE_GOLDEN=1` writes the files anew.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use toolcell_policy::{
    AuditPolicy, Grants, Limit, Limits, LoadLimit, LoadLimits, Manifest, PausedPolicy, PromptSource, ResourceRule,
    Source, Style, TypedPolicy, json_schema, parse, render_all,
};

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Compares with a golden file, or writes it.
fn golden(path: &Path, actual: &str, differing: &mut Vec<String>) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(path, actual).unwrap();
    } else if fs::read_to_string(path).unwrap_or_default() != actual {
        differing.push(format!("{}\n{actual}", path.display()));
    }
}

/// The problems of a manifest, and its meaning where it can be used.
fn said_of(source: &Source<'_>) -> String {
    match parse(source) {
        Err(problems) => render_all(source, &problems, Style::Plain),
        Ok(parsed) => {
            let warnings = render_all(source, &parsed.warnings, Style::Plain);
            let between = if warnings.is_empty() { "" } else { "\n" };
            format!("{warnings}{between}{}", meaning(&parsed.manifest))
        }
    }
}

fn resource(text: &mut String, rule: &ResourceRule) {
    let about = (rule.name(), rule.title(), rule.description(), rule.mime_type());
    let uri = rule.uri().as_str();
    match (rule.tool(), rule.files()) {
        (tool, Some(files)) => writeln!(text, "  resource {uri}: {files:?} of {tool:?} {about:?}").unwrap(),
        (tool, None) if rule.entries().is_some() => {
            writeln!(text, "  resource {uri}: {:?} of {tool:?} {about:?}", rule.entries().unwrap()).unwrap()
        }
        (tool, None) => writeln!(text, "  resource {uri}: {}({}) {about:?}", tool.unwrap(), rule.argument()).unwrap(),
    }
    rule.values().iter().for_each(|(name, values)| writeln!(text, "    {name}: {values:?}").unwrap());
}

fn meaning(manifest: &Manifest) -> String {
    let mut text = format!("{:#?}\n", manifest.server());
    if *manifest.audit() != AuditPolicy::default() {
        writeln!(text, "{:?}", manifest.audit()).unwrap();
    }
    if *manifest.paused() != PausedPolicy::default() {
        writeln!(text, "{:?}", manifest.paused()).unwrap();
    }
    manifest.metrics().iter().for_each(|metrics| writeln!(text, "{metrics:?}").unwrap());
    manifest.alerts().iter().for_each(|alerts| writeln!(text, "{alerts:?}").unwrap());
    manifest.console().iter().for_each(|console| writeln!(text, "{console:?}").unwrap());
    manifest.traces().iter().for_each(|traces| writeln!(text, "{traces:?}").unwrap());
    if let Some(oauth) = manifest.http().and_then(|http| http.oauth()) {
        writeln!(text, "{oauth:?}").unwrap();
    }
    manifest.login_pages().iter().for_each(|pages| writeln!(text, "{pages:?}").unwrap());
    for login in manifest.logins() {
        let own = (login.client_secret(), login.client_auth(), login.redirect(), login.limits());
        writeln!(text, "login {}: {} {own:?}", login.name(), login.canonical()).unwrap();
    }
    if manifest.callers().tells_apart() {
        writeln!(text, "callers: {}", manifest.callers().canonical()).unwrap();
    }
    writeln!(text, "defaults: {}", changed(manifest.default_limits())).unwrap();
    for prompt in manifest.prompts() {
        match prompt.source() {
            PromptSource::File(file) => writeln!(text, "prompt {}: {file}", prompt.name()).unwrap(),
            PromptSource::Text(it) => writeln!(text, "prompt {}: {}", prompt.name(), prompt.canonical(it)).unwrap(),
        }
    }
    for packages in manifest.packages() {
        writeln!(text, "packages of {}: {}", packages.namespace(), packages.registry()).unwrap();
    }
    manifest.skills().iter().for_each(|skills| writeln!(text, "{skills:?}").unwrap());
    for app in manifest.apps() {
        let uri = app.uri();
        let file = app.file().unwrap_or("-");
        let size = app.file_bytes_max();
        let said = (app.title(), app.description());
        writeln!(text, "app {uri}: {file} {size} {said:?} {}", serde_json::json!(app.meta())).unwrap();
    }
    for component in manifest.components() {
        let prefix = component.prefix().unwrap_or("-");
        writeln!(text, "{}: {} prefix {prefix}", component.name(), component.source()).unwrap();
        writeln!(text, "  limits: {}", changed(component.limits())).unwrap();
        writeln!(text, "  load: {}", changed_load(component.load())).unwrap();
        typed(&mut text, component.typed());
        reach(&mut text, component.grants());
        writeln!(text, "  instance: {:?} prewarm {}", component.instance(), component.prewarm()).unwrap();
        component.wall().name().iter().for_each(|wall| writeln!(text, "  wall: {wall}").unwrap());
        component.resources().iter().for_each(|rule| resource(&mut text, rule));
        for tool in component.tools() {
            let name = component.exposed_name(tool.name()).unwrap();
            writeln!(text, "  {name}: {}", changed(component.tool_limits(tool.name()))).unwrap();
            for (key, said) in [("title", tool.title()), ("description", tool.description())] {
                said.iter().for_each(|said| writeln!(text, "    {key}: {said:?}").unwrap());
            }
            for (key, said) in tool.hints().said() {
                writeln!(text, "    {key}: {said}").unwrap();
            }
            let view = tool.view().meta();
            if !view.is_empty() {
                writeln!(text, "    view: {}", serde_json::json!(view)).unwrap();
            }
            for line in tool.program().map(|program| program.words()).unwrap_or_default() {
                writeln!(text, "    {line}").unwrap();
            }
            if tool.grants().reach() != component.grants().reach() {
                reach(&mut text, tool.grants());
            }
        }
        writeln!(text, "  canonical: {}", component.canonical()).unwrap();
    }
    text
}

/// The texts for functions.
fn typed(text: &mut String, typed: &TypedPolicy) {
    if *typed != TypedPolicy::default() {
        writeln!(text, "  wit: {} skip {}", typed.wit().unwrap_or("-"), typed.skip_unsupported()).unwrap();
    }
    for export in typed.exports() {
        writeln!(text, "  export {}: {}", export.function(), export.tool()).unwrap();
    }
    for description in typed.descriptions() {
        writeln!(text, "  describe {}: {:?}", description.key(), description.text()).unwrap();
    }
}

/// The grants in words.
fn reach(text: &mut String, grants: &Grants) {
    for row in grants.reach() {
        writeln!(text, "    {}: {}", row.capability().name(), row.text()).unwrap();
    }
}

/// The limits that differ from the built-in ones.
fn changed(limits: &Limits) -> String {
    let differs = |limit: &Limit| limits.get(*limit) != limit.spec().default;
    let shown =
        Limit::ALL.into_iter().filter(differs).map(|limit| format!("{} = {}", limit.spec().key, limits.show(limit)));
    listed(shown.collect())
}

/// The limits of loading that differ from the built-in ones.
fn changed_load(limits: &LoadLimits) -> String {
    let differs = |limit: &LoadLimit| limits.get(*limit) != limit.spec().default;
    let shown = LoadLimit::ALL.into_iter().filter(differs);
    listed(shown.map(|limit| format!("{} = {}", limit.spec().key, limits.show(limit))).collect())
}

fn listed(shown: Vec<String>) -> String {
    if shown.is_empty() { "as built in".to_owned() } else { shown.join(", ") }
}

#[test]
fn each_manifest_is_answered_as_its_golden_file_says() {
    let mut manifests: Vec<_> =
        fs::read_dir(here().join("tests/golden")).unwrap().map(|entry| entry.unwrap().path()).collect();
    manifests.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    manifests.sort();
    assert!(manifests.len() >= 15, "only {} manifests", manifests.len());
    let mut differing = Vec::new();
    for path in &manifests {
        let text = fs::read_to_string(path).unwrap();
        let source = Source { name: path.file_name().unwrap().to_str().unwrap(), text: &text };
        golden(&path.with_extension("expected"), &said_of(&source), &mut differing);
    }
    assert!(differing.is_empty(), "UPDATE_GOLDEN=1 accepts:\n{}", differing.join("\n"));
}

#[test]
fn the_checked_in_schema_is_the_generated_one() {
    let mut differing = Vec::new();
    let schema = format!("{}\n", serde_json::to_string_pretty(&json_schema()).unwrap());
    golden(&here().join("toolcell.schema.json"), &schema, &mut differing);
    assert!(differing.is_empty(), "UPDATE_GOLDEN=1 accepts:\n{}", differing.join("\n"));
}

#[test]
fn a_manifest_cut_off_anywhere_is_answered() {
    for name in ["whole", "unknown_keys", "syntax", "wrong_types_inside"] {
        let text = fs::read_to_string(here().join(format!("tests/golden/{name}.toml"))).unwrap();
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            let source = Source { name: "m.toml", text: text.get(..end).unwrap() };
            assert!(!said_of(&source).is_empty(), "{name} cut at {end}");
        }
    }
}
