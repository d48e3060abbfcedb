//! A guest's results in the protocol's terms, and results and definitions in a guest's. JSON texts
//! from the guest are parsed here. A guest that returns something else gets one clear error, and so
//! does the client.
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use toolcell_mcp::{
    CallResult, ContentAnnotations, ContentIcon, ContentKind, IconTheme, Map, PromptParts, ResourceBody, ResourceLink,
    ResultContent, Role, ToolDefinition, sanitize,
};
use toolcell_sandbox::{CalledResult, contract};

/// Deepest nesting of a `_meta`, as of a structured result: with the levels of a kept result around
/// it, it must stay below the 127 that are read back.
const META_DEPTH_MAX: usize = 120;

/// The result, or the reason why it is invalid.
pub fn result(answer: contract::GuestResult) -> Result<CallResult, String> {
    let structured = answer.structured_json.map(|text| json("structured-json", text)).transpose()?;
    let content = answer
        .content
        .into_iter()
        .enumerate()
        .map(|(index, item)| {
            self::content(item).map_err(|problem| format!("meta-json of content item {index} {problem}"))
        })
        .collect::<Result<_, _>>()
        .map_err(invalid)?;
    Ok(CallResult {
        content,
        structured,
        is_error: answer.is_error,
        prompt: PromptParts::default(),
        aside: Vec::new(),
        meta: meta(answer.meta_json).map_err(|problem| invalid(format!("meta-json {problem}")))?,
    })
}

/// Roles and description of a prompt's result, as a sandbox returns them.
#[derive(Deserialize)]
struct GivenPromptParts {
    description: Option<String>,
    roles: Vec<Speaker>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Speaker {
    User,
    Assistant,
}

/// The result of a prompt, or the reason why it is invalid. Its pieces are messages.
pub fn prompt(mut answer: contract::GuestResult) -> Result<CallResult, String> {
    let parts = answer.structured_json.take().unwrap_or_default();
    let parts: GivenPromptParts =
        serde_json::from_str(&parts).map_err(|_| invalid("it does not say who speaks".to_owned()))?;
    let roles = parts.roles.iter().map(|speaker| match speaker {
        Speaker::User => Role::User,
        Speaker::Assistant => Role::Assistant,
    });
    let prompt = PromptParts { description: parts.description.map(clean), roles: roles.collect() };
    if answer.content.is_empty() {
        return Err(invalid("it has no messages".to_owned()));
    }
    Ok(CallResult { prompt, ..result(answer)? })
}

fn clean(text: String) -> String {
    sanitize::text(&text).into_owned()
}

fn invalid(problem: String) -> String {
    format!("the tool returned an invalid result: {problem}")
}

fn json(field: &str, text: String) -> Result<Box<RawValue>, String> {
    RawValue::from_string(text).map_err(|error| invalid(format!("{field} is not JSON: {error}")))
}

/// A `_meta` object, empty if the guest gave none.
pub fn meta(text: Option<String>) -> Result<Map, String> {
    match text.as_deref().map(serde_json::from_str::<Value>) {
        None => Ok(Map::new()),
        Some(Ok(value)) if depth(&value) > META_DEPTH_MAX => {
            Err(format!("is nested deeper than {META_DEPTH_MAX} levels"))
        }
        Some(Ok(Value::Object(map))) => Ok(map),
        Some(Ok(other)) => Err(format!("is not a JSON object, but {}", kind(&other))),
        Some(Err(error)) => Err(format!("is not a JSON object: {error}")),
    }
}

/// The levels of objects and arrays in a value. A parsed one has few.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// The kind of a JSON value, for people.
const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn content(item: contract::GuestContent) -> Result<ResultContent, String> {
    let (kind, annotations, meta_json) = match item {
        contract::GuestContent::Text(text) => (ContentKind::Text(text.text), text.annotations, text.meta_json),
        contract::GuestContent::Image(media) => {
            let kind = ContentKind::Image { data: media.data, mime_type: media.mime_type };
            (kind, media.annotations, media.meta_json)
        }
        contract::GuestContent::Audio(media) => {
            let kind = ContentKind::Audio { data: media.data, mime_type: media.mime_type };
            (kind, media.annotations, media.meta_json)
        }
        contract::GuestContent::ResourceLink(link) => resource_link(link),
        contract::GuestContent::EmbeddedResource(resource) => {
            let body = match resource.body {
                contract::GuestResourceBody::Text(text) => ResourceBody::Text(text),
                contract::GuestResourceBody::Blob(bytes) => ResourceBody::Blob(bytes),
            };
            let kind = ContentKind::EmbeddedResource { uri: resource.uri, mime_type: resource.mime_type, body };
            (kind, resource.annotations, resource.meta_json)
        }
    };
    Ok(ResultContent { kind, annotations: annotations.map(self::annotations), meta: meta(meta_json)? })
}

fn resource_link(link: contract::GuestLink) -> (ContentKind, Option<contract::ContentHints>, Option<String>) {
    let kind = ContentKind::ResourceLink(ResourceLink {
        uri: link.uri,
        name: link.name,
        title: link.title,
        description: link.description,
        mime_type: link.mime_type,
        size_bytes: link.size,
        icons: icons(link.icons),
    });
    (kind, link.annotations, link.meta_json)
}

/// Hints about a piece of content, or a resource.
pub fn annotations(annotations: contract::ContentHints) -> ContentAnnotations {
    let audience = annotations.audience.into_iter().map(|role| match role {
        contract::GuestRole::User => Role::User,
        contract::GuestRole::Assistant => Role::Assistant,
    });
    ContentAnnotations {
        audience: audience.collect(),
        priority: annotations.priority,
        last_modified: annotations.last_modified,
    }
}

/// A result, for the tool that called.
pub fn called(result: CallResult) -> CalledResult {
    CalledResult {
        content: result.content.into_iter().map(given).collect(),
        structured_json: result.structured.map(|json| json.get().to_owned()),
    }
}

fn given(item: ResultContent) -> contract::GuestContent {
    let annotations = item.annotations.map(hints);
    let meta_json = meta_text(&item.meta);
    match item.kind {
        ContentKind::Text(text) => contract::GuestContent::Text(contract::TextContent { text, annotations, meta_json }),
        ContentKind::Image { data, mime_type } => {
            contract::GuestContent::Image(contract::MediaContent { data, mime_type, annotations, meta_json })
        }
        ContentKind::Audio { data, mime_type } => {
            contract::GuestContent::Audio(contract::MediaContent { data, mime_type, annotations, meta_json })
        }
        ContentKind::ResourceLink(link) => contract::GuestContent::ResourceLink(contract::GuestLink {
            uri: link.uri,
            name: link.name,
            title: link.title,
            description: link.description,
            mime_type: link.mime_type,
            size: link.size_bytes,
            annotations,
            icons: link.icons.into_iter().map(picture).collect(),
            meta_json,
        }),
        ContentKind::EmbeddedResource { uri, mime_type, body } => {
            let body = match body {
                ResourceBody::Text(text) => contract::GuestResourceBody::Text(text),
                ResourceBody::Blob(bytes) => contract::GuestResourceBody::Blob(bytes),
            };
            let embedded = contract::EmbeddedResource { uri, mime_type, body, annotations, meta_json };
            contract::GuestContent::EmbeddedResource(embedded)
        }
    }
}

fn hints(annotations: ContentAnnotations) -> contract::ContentHints {
    let audience = annotations.audience.into_iter().map(|role| match role {
        Role::User => contract::GuestRole::User,
        Role::Assistant => contract::GuestRole::Assistant,
    });
    contract::ContentHints {
        audience: audience.collect(),
        priority: annotations.priority,
        last_modified: annotations.last_modified,
    }
}

fn picture(icon: ContentIcon) -> contract::GuestIcon {
    contract::GuestIcon {
        src: icon.src,
        mime_type: icon.mime_type,
        sizes: icon.sizes,
        theme: icon.theme.map(|theme| match theme {
            IconTheme::Light => contract::Theme::Light,
            IconTheme::Dark => contract::Theme::Dark,
        }),
    }
}

fn meta_text(meta: &Map) -> Option<String> {
    (!meta.is_empty()).then(|| serde_json::to_string(meta).ok()).flatten()
}

/// A definition, for a tool that may call this one.
pub fn described(definition: &ToolDefinition) -> contract::GuestTool {
    let hints = &definition.hints;
    contract::GuestTool {
        name: definition.name.clone(),
        title: definition.title.clone(),
        description: definition.description.clone(),
        input_schema_json: definition.input_schema.to_string(),
        output_schema_json: definition.output_schema.as_ref().map(ToString::to_string),
        hints: Some(contract::GuestToolHints {
            read_only: hints.read_only,
            destructive: hints.destructive,
            idempotent: hints.idempotent,
            open_world: hints.open_world,
        }),
        icons: definition.icons.iter().cloned().map(picture).collect(),
        meta_json: meta_text(&definition.meta),
    }
}

/// Icons of a definition or a link.
pub fn icons(icons: Vec<contract::GuestIcon>) -> Vec<ContentIcon> {
    let icon = |icon: contract::GuestIcon| ContentIcon {
        src: icon.src,
        mime_type: icon.mime_type,
        sizes: icon.sizes,
        theme: icon.theme.map(|theme| match theme {
            contract::Theme::Light => IconTheme::Light,
            contract::Theme::Dark => IconTheme::Dark,
        }),
    };
    icons.into_iter().map(icon).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_meta_that_is_taken_can_be_read_back_from_a_kept_result() {
        let nested = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        let given = |levels| {
            let text =
                contract::TextContent { text: String::new(), annotations: None, meta_json: Some(nested(levels)) };
            let content = vec![contract::GuestContent::Text(text)];
            let meta_json = Some(nested(levels));
            result(contract::GuestResult { content, structured_json: None, is_error: false, meta_json })
        };
        let taken = given(META_DEPTH_MAX).unwrap();
        // As one of the ends of nested calls that a paused call keeps.
        let kept = serde_json::to_string(&vec![vec![&taken]]).unwrap();
        assert!(serde_json::from_str::<Vec<Vec<CallResult>>>(&kept).is_ok());
        let refused = given(META_DEPTH_MAX + 1).unwrap_err();
        assert!(refused.contains("is nested deeper than 120 levels"), "{refused}");
    }
}
