//! Locks that pin typed tools with schemas in an earlier version's form.
use std::borrow::Cow;

use serde_json::{Value, json};
use toolcell_schema::{SchemaUse, portable};

use super::pinned::{Lock, PinnedTool, digest, sorted};

/// `sha256:…` of the patterns that earlier versions wrote for 64-bit integers, and today's.
const PATTERNS: [(&str, &str); 2] = [
    ("sha256:b336c4f56f0b4da2d1c461971cacab98ccd1993c914fd50349f13bfb3746dfd6", "^(0|[1-9][0-9]{0,19})$"),
    ("sha256:2e6566088364363fcf7c38f3d0a912fb16cef88c30b811ce82a7c2aabbbc9d85", "^(0|-?[1-9][0-9]{0,18})$"),
];

/// Today's pattern of a float as text in arguments.
const DECIMALS: &str = "^-?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?$";

/// The lock, with each definition that differs only in the host's own form replaced by today's.
/// Only components without the tool contract are affected: others write their own definitions.
pub(super) fn settled<'l>(locked: &'l Lock, now: &Lock) -> Cow<'l, Lock> {
    let mut settled = Cow::Borrowed(locked);
    for (name, component) in &now.components {
        let was = locked.components.get(name);
        let Some(was) = was.filter(|was| was.contract == "none" && component.contract == "none") else { continue };
        for (tool, is) in &component.tools {
            let Some(pinned) = was.tools.get(tool).filter(|pinned| is_same_in_another_form(pinned, is)) else {
                continue;
            };
            let replaced = PinnedTool {
                definition: is.definition.clone(),
                definition_digest: is.definition_digest.clone(),
                ..pinned.clone()
            };
            if let Some(component) = settled.to_mut().components.get_mut(name) {
                component.tools.insert(tool.clone(), replaced);
            }
        }
    }
    settled
}

fn is_same_in_another_form(locked: &PinnedTool, now: &PinnedTool) -> bool {
    let is_whole = locked.definition_digest == digest(&locked.definition);
    locked.definition_digest != now.definition_digest && is_whole && form(&locked.definition) == form(&now.definition)
}

/// A definition with its schemas in today's form.
fn form(definition: &Value) -> Value {
    let mut definition = definition.clone();
    for (field, used) in [("inputSchema", SchemaUse::Arguments), ("outputSchema", SchemaUse::Result)] {
        if let Some(schema) = definition.get_mut(field) {
            shorten(schema);
            if used == SchemaUse::Arguments {
                take_decimals(schema);
            }
            *schema = portable(schema, used);
        }
    }
    sorted(definition)
}

/// Replaces earlier patterns by today's.
fn shorten(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(pattern)) = members.get_mut("pattern") {
                let written = toolcell_sandbox::ComponentDigest::of(pattern.as_bytes()).to_string();
                if let Some((_, today)) = PATTERNS.iter().find(|(earlier, _)| *earlier == written) {
                    (*today).clone_into(pattern);
                }
            }
            members.values_mut().for_each(shorten);
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        _ => {}
    }
}

/// Adds what earlier versions did not take for a float in arguments: decimal digits as text.
fn take_decimals(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::Array(choices)) = members.get_mut("anyOf") {
                let names = json!({"type": "string", "enum": ["NaN", "Infinity", "-Infinity"]});
                if *choices == [json!({"type": "number"}), names] {
                    choices.push(json!({"type": "string", "pattern": DECIMALS}));
                }
            }
            members.values_mut().for_each(take_decimals);
        }
        Value::Array(items) => items.iter_mut().for_each(take_decimals),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::pinned::{Lock, PinnedComponent, PinnedTool, digest};
    use super::settled;

    fn lock(contract: &str, input: Value) -> Lock {
        let definition = json!({"inputSchema": input, "name": "t"});
        let tool = PinnedTool { definition_digest: digest(&definition), definition, ..PinnedTool::default() };
        let tools = [("t".to_owned(), tool)].into();
        let component = PinnedComponent { contract: contract.to_owned(), tools, ..PinnedComponent::default() };
        Lock { components: [("c".to_owned(), component)].into() }
    }

    #[test]
    fn the_host_s_own_form_of_a_type_is_no_difference_and_a_component_s_is_one() {
        let was = json!({"type": "object", "properties": {"n": {"anyOf": [
            {"type": "integer", "minimum": 0, "maximum": u64::MAX}, {"type": "string", "pattern": U64}]},
            "p": {"type": "array", "prefixItems": [{"const": "a"}], "items": false, "minItems": 1, "maxItems": 1}}});
        let is = json!({"type": "object", "properties": {"n": {"anyOf": [
            {"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^(0|[1-9][0-9]{0,19})$"}]},
            "p": {"type": "array", "prefixItems": [{"type": "string", "enum": ["a"]}], "items": {}, "minItems": 1, "maxItems": 1}}});
        let now = lock("none", is.clone());
        assert_eq!(*settled(&lock("none", was.clone()), &now), now);
        let written = lock("1.2.0", was.clone());
        assert_eq!(*settled(&written, &lock("1.2.0", is)), written, "a component wrote it");
        let other = lock("none", json!({"type": "object", "properties": {"n": {"type": "integer"}}}));
        assert_eq!(*settled(&other, &now), other);
        let mut forged = lock("none", was);
        forged.components.values_mut().flat_map(|component| component.tools.values_mut()).for_each(|tool| {
            tool.definition_digest = "sha256:0".to_owned();
        });
        assert_eq!(*settled(&forged, &now), forged, "its definition is not what its digest pins");
    }

    #[test]
    fn a_float_that_may_be_text_now_is_no_difference_in_arguments() {
        let float = json!([{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"], "type": "string"}]);
        let mut wider = float.clone();
        wider
            .as_array_mut()
            .into_iter()
            .for_each(|all| all.push(json!({"type": "string", "pattern": super::DECIMALS})));
        let of = |choice: &Value| {
            let maybe = json!({"anyOf": [{"anyOf": choice, "description": "A ratio."}, {"type": "null"}]});
            json!({"type": "object", "properties": {"n": {"anyOf": choice}, "m": maybe}})
        };
        let now = lock("none", of(&wider));
        assert_eq!(*settled(&lock("none", of(&float)), &now), now);
        let written = lock("1.2.0", of(&float));
        assert_eq!(*settled(&written, &lock("1.2.0", of(&wider))), written, "a component wrote it");
    }

    const U64: &str = "^(?:0|[1-9][0-9]{0,18}|1[0-7][0-9]{18}|18[0-3][0-9]{17}|184[0-3][0-9]{16}|1844[0-5][0-9]{15}|18446[0-6][0-9]{14}|184467[0-3][0-9]{13}|1844674[0-3][0-9]{12}|184467440[0-6][0-9]{10}|1844674407[0-2][0-9]{9}|18446744073[0-6][0-9]{8}|1844674407370[0-8][0-9]{6}|18446744073709[0-4][0-9]{5}|184467440737095[0-4][0-9]{4}|1844674407370955[0-0][0-9]{3}|18446744073709551[0-5][0-9]{2}|184467440737095516[0-0][0-9]{1}|1844674407370955161[0-4][0-9]{0}|18446744073709551615)$";
}
