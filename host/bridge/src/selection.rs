//! Operations of a document, their names, and those that a person wants.
use std::collections::BTreeMap;

use serde_json::Value;

use crate::document::Document;
use crate::limits::{OPERATIONS_DEFAULT, OPERATIONS_MAX, PATHS_MAX};
use crate::names::{Names, of_operation, shown, tool_chars_max, without_prefix};
use crate::target::Target;
use crate::{BridgeError, BridgeOptions, LeftOut};

/// Methods of a path, in the order of OpenAPI, with the name that HTTP has for them.
const METHODS: [(&str, &str); 8] = [
    ("get", "GET"),
    ("put", "PUT"),
    ("post", "POST"),
    ("delete", "DELETE"),
    ("options", "OPTIONS"),
    ("head", "HEAD"),
    ("patch", "PATCH"),
    ("trace", "TRACE"),
];

/// Tags that an error lists: one line of a terminal.
const TAGS_SHOWN_MAX: usize = 12;

/// One operation.
pub(crate) struct Operation<'a> {
    pub(crate) method: &'static str,
    /// As the document writes it.
    pub(crate) path: &'a str,
    pub(crate) target: Target<'a>,
    /// The path's own members.
    pub(crate) item: &'a Value,
    pub(crate) value: &'a Value,
    /// Its tool's name, unique in the document.
    pub(crate) tool: String,
}

/// Operations that a person wants, and those that nobody can have.
pub(crate) struct Selected<'a> {
    pub(crate) operations: Vec<Operation<'a>>,
    pub(crate) left_out: Vec<LeftOut>,
    /// Deprecated operations that were not asked for.
    pub(crate) deprecated: usize,
}

impl Operation<'_> {
    pub(crate) fn shown(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    fn tags(&self) -> impl Iterator<Item = &str> {
        self.value.get("tags").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    fn is_deprecated(&self) -> bool {
        self.value.get("deprecated") == Some(&Value::Bool(true))
    }

    /// True if this word of `--only` names it.
    fn is_named(&self, word: &str, prefix: &str) -> bool {
        let id = self.value.get("operationId").and_then(Value::as_str);
        let is_tool = without_prefix(word, prefix).contains(&self.tool.as_str());
        id == Some(word) || is_tool || self.tags().any(|tag| tag.eq_ignore_ascii_case(word))
    }
}

/// The operations of a document that a person wants.
pub(crate) fn select<'a>(document: &Document<'a>, options: &BridgeOptions) -> Result<Selected<'a>, BridgeError> {
    let mut left_out = Vec::new();
    let mut operations = all(document, options, &mut left_out)?;
    for word in &options.only {
        if !operations.iter().any(|operation| operation.is_named(word, &options.prefix)) {
            let problem = format!("the document has no tag and no operation {}", shown(word));
            return Err(BridgeError::new(problem, tags_hint(&operations)));
        }
    }
    let is_wanted = |operation: &Operation<'_>| {
        options.only.is_empty() || options.only.iter().any(|word| operation.is_named(word, &options.prefix))
    };
    operations.retain(is_wanted);
    let before = operations.len();
    operations.retain(|operation| options.deprecated || !operation.is_deprecated());
    let deprecated = before - operations.len();
    let count = operations.len();
    if count > OPERATIONS_MAX || (count > OPERATIONS_DEFAULT && !options.all) {
        let most = if options.all { OPERATIONS_MAX } else { OPERATIONS_DEFAULT };
        let problem = format!("the document has {count} operations, and {most} become tools at most");
        let all = if count > OPERATIONS_MAX { "" } else { "; --all takes them all" };
        return Err(BridgeError::new(problem, format!("{}{all}", tags_hint(&operations))));
    }
    if operations.is_empty() {
        let first = left_out.first().map(|left: &LeftOut| format!("{} {}", left.operation, left.reason));
        let hint = match first {
            _ if deprecated > 0 => "all of them are deprecated: add --deprecated".to_owned(),
            Some(first) => first,
            None => "its paths have none; webhooks and callbacks do not become tools".to_owned(),
        };
        return Err(BridgeError::new("the document has no operation that can be a tool", hint));
    }
    Ok(Selected { operations, left_out, deprecated })
}

fn all<'a>(
    document: &Document<'a>,
    options: &BridgeOptions,
    left_out: &mut Vec<LeftOut>,
) -> Result<Vec<Operation<'a>>, BridgeError> {
    let Some(Value::Object(paths)) = document.root.get("paths") else {
        return Err(BridgeError::new(
            "the document has no paths",
            "an OpenAPI document has `openapi`, `info` and `paths`",
        ));
    };
    if paths.len() > PATHS_MAX {
        let problem = format!("the document has {} paths, and {PATHS_MAX} are read at most", paths.len());
        return Err(BridgeError::new(problem, "cut it down to the paths that you need"));
    }
    let mut names = Names::default();
    let mut operations = Vec::new();
    for (path, item) in paths {
        if path.starts_with("x-") {
            continue;
        }
        let mut leave_out = |method: &str, reason: String| {
            left_out.push(LeftOut { operation: format!("{method} {}", crate::names::clipped(path, 200)), reason });
        };
        let item = match document.followed(item) {
            Ok(item) => item,
            Err(reason) => {
                leave_out("*", reason);
                continue;
            }
        };
        for (key, method) in METHODS {
            let Some(value @ Value::Object(_)) = item.get(key) else { continue };
            // A name is given before anything is left out, so that it does not depend on that.
            let id = value.get("operationId").and_then(Value::as_str);
            let tool = names.unique(&of_operation(id, method, path), tool_chars_max(&options.prefix));
            let target = Target::of(path);
            match target.problem(method) {
                Some(reason) => leave_out(method, reason.to_owned()),
                None => operations.push(Operation { method, path, target, item, value, tool }),
            }
        }
    }
    Ok(operations)
}

/// Tags with the number of their operations, the largest first.
fn tags_hint(operations: &[Operation<'_>]) -> String {
    let mut tags: BTreeMap<&str, usize> = BTreeMap::new();
    for operation in operations {
        operation.tags().for_each(|tag| *tags.entry(tag).or_default() += 1);
    }
    let mut tags: Vec<(&str, usize)> = tags.into_iter().collect();
    tags.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
    let shown: Vec<String> =
        tags.iter().take(TAGS_SHOWN_MAX).map(|(tag, count)| format!("{} ({count})", shown(tag))).collect();
    let rest = if tags.len() > shown.len() { ", …" } else { "" };
    if shown.is_empty() {
        return "choose some with --only OPERATION".to_owned();
    }
    format!("choose some with --only TAG or --only OPERATION: its tags are {}{rest}", shown.join(", "))
}
