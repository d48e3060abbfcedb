//! The result of a call, with every kind of content that the protocol has.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolcell_bridge_lines::bytes_of_base64;
use toolkit::{
    Annotations, CallResult, Content, EmbeddedResource, Failure, MediaContent, ResourceBody, ResourceLink, Role,
    TextContent,
};

use crate::icons::Icons;

/// Begins keys of `_meta` that belong to the protocol between the server and this bridge.
const RESERVED: &str = "io.modelcontextprotocol/";

/// A member that some servers write as `null` where it is missing.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answered<'a> {
    result_type: Option<String>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    content: Vec<&'a RawValue>,
    #[serde(borrow)]
    structured_content: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "or_default")]
    is_error: bool,
    #[serde(default, deserialize_with = "or_default")]
    input_requests: BTreeMap<String, InputRequest>,
    request_state: Option<String>,
    #[serde(rename = "_meta")]
    meta: Option<Map<String, Value>>,
}

/// One piece of content, with the members of all kinds.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Piece {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    data: Option<String>,
    mime_type: Option<String>,
    uri: Option<String>,
    name: Option<String>,
    title: Option<String>,
    description: Option<String>,
    size: Option<u64>,
    #[serde(default, deserialize_with = "or_default")]
    icons: Icons,
    resource: Option<Resource>,
    annotations: Option<Marks>,
    #[serde(rename = "_meta")]
    meta: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
    blob: Option<String>,
    #[serde(rename = "_meta")]
    meta: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Marks {
    #[serde(default, deserialize_with = "or_default")]
    audience: Vec<String>,
    priority: Option<f64>,
    last_modified: Option<String>,
}

/// What a server answers a call with.
#[derive(Debug)]
pub enum Said {
    Result(CallResult),
    AskedFor(AskedFor),
}

/// What a modern server wants to know before it goes on.
#[derive(Debug)]
pub struct AskedFor {
    /// By the keys of the server. Each run of the call sees them in the same order.
    pub requests: BTreeMap<String, InputRequest>,
    pub state: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct InputRequest {
    pub method: String,
    #[serde(default)]
    pub params: Box<RawValue>,
}

/// What a result says.
pub fn of(text: &str) -> Result<Said, Failure> {
    let wrong = |error: serde_json::Error| Failure::Failed(format!("the server's result is not one of MCP: {error}"));
    let said: Answered<'_> = serde_json::from_str(text).map_err(wrong)?;
    match said.result_type.as_deref() {
        None | Some("complete") => {}
        Some("input_required") => {
            return Ok(Said::AskedFor(AskedFor { requests: said.input_requests, state: said.request_state }));
        }
        Some(other) => return Err(Failure::Failed(format!("the server answers with {other:?} in place of a result"))),
    }
    let content = said.content.into_iter().map(|piece| content(piece.get())).collect::<Result<_, _>>()?;
    let mut result = CallResult::new(content);
    result.structured_json = said.structured_content.map(|value| value.get().to_owned());
    result.is_error = said.is_error;
    result.meta_json = meta(said.meta);
    Ok(Said::Result(result))
}

fn content(text: &str) -> Result<Content, Failure> {
    let piece: Piece = serde_json::from_str(text)
        .map_err(|error| Failure::Failed(format!("a piece of the server's result is not one of MCP: {error}")))?;
    let missing = |member: &str| Failure::Failed(format!("a piece of the server's result has no {member:?}"));
    let annotations = piece.annotations.map(Marks::annotations);
    let meta_json = meta(piece.meta);
    Ok(match piece.kind.as_str() {
        "text" => {
            let text = piece.text.ok_or_else(|| missing("text"))?;
            Content::Text(TextContent { text, annotations, meta_json })
        }
        kind @ ("image" | "audio") => {
            let data = bytes(&piece.data.ok_or_else(|| missing("data"))?)?;
            let mime_type = piece.mime_type.ok_or_else(|| missing("mimeType"))?;
            let media = MediaContent { data, mime_type, annotations, meta_json };
            if kind == "image" { Content::Image(media) } else { Content::Audio(media) }
        }
        "resource_link" => Content::ResourceLink(ResourceLink {
            uri: piece.uri.ok_or_else(|| missing("uri"))?,
            name: piece.name.ok_or_else(|| missing("name"))?,
            title: piece.title,
            description: piece.description,
            mime_type: piece.mime_type,
            size: piece.size,
            annotations,
            icons: piece.icons.0,
            meta_json,
        }),
        "resource" => {
            let resource = piece.resource.ok_or_else(|| missing("resource"))?;
            let body = match (resource.text, resource.blob) {
                (Some(text), _) => ResourceBody::Text(text),
                (None, Some(blob)) => ResourceBody::Blob(bytes(&blob)?),
                (None, None) => return Err(missing("text")),
            };
            // The protocol has a `_meta` at both; the resource's own wins.
            let meta_json = meta(resource.meta).or(meta_json);
            Content::EmbeddedResource(EmbeddedResource {
                uri: resource.uri,
                mime_type: resource.mime_type,
                body,
                annotations,
                meta_json,
            })
        }
        // A kind of a later revision is shown as it came.
        _ => Content::text(text),
    })
}

fn bytes(text: &str) -> Result<Vec<u8>, Failure> {
    bytes_of_base64(text).ok_or_else(|| Failure::Failed("a piece of the server's result is not base64".to_owned()))
}

/// `_meta` without the protocol's own keys.
fn meta(meta: Option<Map<String, Value>>) -> Option<String> {
    let mut meta = meta?;
    meta.retain(|key, _| !key.starts_with(RESERVED));
    (!meta.is_empty()).then(|| Value::Object(meta).to_string())
}

impl Marks {
    fn annotations(self) -> Annotations {
        let role = |role: &String| match role.as_str() {
            "user" => Some(Role::User),
            "assistant" => Some(Role::Assistant),
            _ => None,
        };
        Annotations {
            audience: self.audience.iter().filter_map(role).collect(),
            priority: self.priority,
            last_modified: self.last_modified,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use serde_json::json;

    use super::*;

    fn result(text: &str) -> Result<CallResult, Failure> {
        of(text).map(|said| match said {
            Said::Result(result) => result,
            Said::AskedFor(asked) => panic!("{asked:?}"),
        })
    }

    fn one(piece: Value) -> Result<Content, String> {
        let result = result(&json!({"content": [piece]}).to_string());
        result.map(|mut result| result.content.remove(0)).map_err(|failure| failure.message().to_owned())
    }

    #[test]
    fn every_kind_of_content_is_kept() {
        let marks = json!({"audience": ["user", "other"], "priority": 0.5, "lastModified": "2026-01-01T00:00:00Z"});
        let text = one(
            json!({"type": "text", "text": "a", "annotations": marks, "_meta": {"k": 1, "io.modelcontextprotocol/x": 2}}),
        );
        let Ok(Content::Text(text)) = text else { panic!("{text:?}") };
        let annotations = text.annotations.unwrap();
        assert_eq!((annotations.audience, annotations.priority), (vec![Role::User], Some(0.5)));
        assert_eq!((text.text.as_str(), text.meta_json.as_deref()), ("a", Some("{\"k\":1}")));
        let image = one(json!({"type": "image", "data": "iQA=", "mimeType": "image/png"}));
        assert!(
            matches!(image, Ok(Content::Image(image)) if image.data == [0x89, 0] && image.mime_type == "image/png")
        );
        let audio = one(json!({"type": "audio", "data": "", "mimeType": "audio/wav"}));
        assert!(matches!(audio, Ok(Content::Audio(_))));
        let link = one(
            json!({"type": "resource_link", "uri": "a:b", "name": "n", "size": 3, "icons": [{"src": "https://a/i", "theme": "dark"}]}),
        );
        assert!(matches!(link, Ok(Content::ResourceLink(link)) if link.size == Some(3) && link.icons.len() == 1));
        let text = one(json!({"type": "resource", "resource": {"uri": "a:b", "text": "t", "_meta": {"k": 1}}}));
        assert!(matches!(
            text,
            Ok(Content::EmbeddedResource(EmbeddedResource { body: ResourceBody::Text(_), meta_json: Some(_), .. }))
        ));
        let blob = one(json!({"type": "resource", "resource": {"uri": "a:b", "blob": "AA=="}}));
        assert!(
            matches!(blob, Ok(Content::EmbeddedResource(EmbeddedResource { body: ResourceBody::Blob(bytes), .. })) if bytes == [0])
        );
        let later = one(json!({"type": "hologram", "x": 1}));
        assert!(matches!(later, Ok(Content::Text(text)) if text.text == r#"{"type":"hologram","x":1}"#));
    }

    #[test]
    fn a_result_keeps_its_error_and_its_value_as_it_came() {
        let result = result(
            r#"{"content":[],"structuredContent":{"a":1.50},"isError":true,"_meta":{"io.modelcontextprotocol/serverInfo":{}}}"#,
        );
        let result = result.unwrap();
        assert_eq!((result.structured_json.as_deref(), result.is_error), (Some("{\"a\":1.50}"), true));
        assert_eq!(result.meta_json, None);
    }

    #[test]
    fn null_is_a_member_that_is_missing() {
        let result = result(
            r#"{"content":[{"type":"text","text":"a","annotations":{"audience":null,"priority":null},"icons":null,"_meta":null}],
                "isError":null,"structuredContent":null,"_meta":null,"resultType":null,"inputRequests":null}"#,
        );
        let result = result.unwrap();
        assert_eq!((result.is_error, result.structured_json, result.meta_json), (false, None, None));
        assert!(matches!(result.content.as_slice(), [Content::Text(text)] if text.text == "a"));
        assert!(super::of(r#"{"content":null}"#).is_ok());
    }

    #[test]
    fn what_is_not_a_result_is_a_failure() {
        for (text, problem) in [
            ("{\"resultType\":\"task\"}", "the server answers with \"task\" in place of a result"),
            ("[]", "the server's result is not one of MCP"),
            ("{\"content\":[{\"type\":\"text\"}]}", "a piece of the server's result has no \"text\""),
            ("{\"content\":[{}]}", "a piece of the server's result is not one of MCP"),
            (
                "{\"content\":[{\"type\":\"image\",\"data\":\"!\",\"mimeType\":\"a\"}]}",
                "a piece of the server's result is not base64",
            ),
        ] {
            let failure = of(text).unwrap_err();
            assert!(failure.message().starts_with(problem), "{text}: {failure:?}");
        }
    }

    #[test]
    fn what_a_round_asks_for_is_kept_as_it_came() {
        let said = of(
            r#"{"resultType":"input_required","inputRequests":{"b":{"method":"m","params":{"x": 1.50}},"a":{"method":"n"}},"requestState":"s"}"#,
        );
        let Ok(Said::AskedFor(asked)) = said else { panic!("{said:?}") };
        let requests: Vec<_> = asked
            .requests
            .iter()
            .map(|(key, request)| format!("{key} {} {}", request.method, request.params.get()))
            .collect();
        assert_eq!(requests, ["a n null", "b m {\"x\": 1.50}"]);
        assert_eq!(asked.state.as_deref(), Some("s"));
    }
}
