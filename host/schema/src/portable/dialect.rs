//! The keywords that a schema's own draft knows.

use serde_json::Value;

use crate::keywords;

/// Keywords that drafts after the fourth introduced and that refuse values, each with its draft.
const KEYWORDS: [(&str, u16); 13] = [
    ("const", 6),
    ("contains", 6),
    ("propertyNames", 6),
    ("if", 7),
    ("then", 7),
    ("else", 7),
    ("dependentRequired", 2019),
    ("dependentSchemas", 2019),
    ("maxContains", 2019),
    ("minContains", 2019),
    ("unevaluatedItems", 2019),
    ("unevaluatedProperties", 2019),
    ("prefixItems", 2020),
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
    members.retain(|keyword, _| !KEYWORDS.iter().any(|(later, since)| later == keyword && *since > draft));
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
