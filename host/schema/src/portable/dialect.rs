//! The keywords that a schema's own draft knows.

use serde_json::Value;

use crate::keywords;

/// A keyword, and the draft that introduced it.
struct Since {
    keyword: &'static str,
    draft: u16,
}

const fn since(keyword: &'static str, draft: u16) -> Since {
    Since { keyword, draft }
}

/// Keywords that drafts after the fourth introduced and that refuse values.
const KEYWORDS: [Since; 13] = [
    since("const", 6),
    since("contains", 6),
    since("propertyNames", 6),
    since("if", 7),
    since("then", 7),
    since("else", 7),
    since("dependentRequired", 2019),
    since("dependentSchemas", 2019),
    since("maxContains", 2019),
    since("minContains", 2019),
    since("unevaluatedItems", 2019),
    since("unevaluatedProperties", 2019),
    since("prefixItems", 2020),
];

/// The schema without keywords that its own draft ignores; `None` if it is of the newest.
pub(super) fn known(schema: &Value) -> Option<Value> {
    let uri = schema.get("$schema")?.as_str()?;
    let drafts = [("draft-04", 4), ("draft-06", 6), ("draft-07", 7), ("2019-09", 2019)];
    let (_, draft) = drafts.into_iter().find(|(name, _)| uri.contains(name))?;
    let mut schema = schema.clone();
    strip(&mut schema, draft);
    Some(schema)
}

fn strip(schema: &mut Value, draft: u16) {
    let Value::Object(members) = schema else { return };
    members.retain(|keyword, _| !KEYWORDS.iter().any(|since| since.keyword == keyword && since.draft > draft));
    for (keyword, value) in members.iter_mut().filter(|(keyword, _)| keywords::holds_schemas(keyword)) {
        match value {
            Value::Array(listed) => listed.iter_mut().for_each(|part| strip(part, draft)),
            Value::Object(named) if keywords::is_map(keyword) => {
                named.values_mut().for_each(|part| strip(part, draft));
            }
            single => strip(single, draft),
        }
    }
}
