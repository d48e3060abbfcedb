//! Texts written for a revision read back as the given values, as far as the revision can carry
//! them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Revision, Structured, push_definition, push_implementation, push_result};
use crate::content::{
    CallResult, ContentAnnotations, ContentIcon, ContentKind, IconTheme, Map, ResourceBody, ResourceLink,
    ResultContent, Role,
};
use crate::server::ServerInfo;
use crate::task::TaskPlan;
use crate::tool::{ToolDefinition, ToolHints};

const IDENTITY: &str = r#"{"name":"s","version":"1"}"#;

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Value {
    let mut out = Vec::new();
    write(&mut out);
    assert!(!out.contains(&b'\n'), "one line");
    serde_json::from_slice(&out).unwrap()
}

fn text() -> impl Strategy<Value = String> {
    any::<String>()
}

fn meta() -> impl Strategy<Value = Map> {
    proptest::collection::btree_map("[a-z]{1,6}/[a-z]{1,6}", text(), 0..3)
        .prop_map(|map| map.into_iter().map(|(key, value)| (key, Value::from(value))).collect())
}

fn icon() -> impl Strategy<Value = ContentIcon> {
    (
        text(),
        option::of(text()),
        vec(text(), 0..3),
        option::of(prop_oneof![Just(IconTheme::Light), Just(IconTheme::Dark)]),
    )
        .prop_map(|(src, mime_type, sizes, theme)| ContentIcon { src, mime_type, sizes, theme })
}

fn definition() -> impl Strategy<Value = ToolDefinition> {
    let hints = (option::of(text()), option::of(any::<bool>()), option::of(any::<bool>())).prop_map(
        |(title, read_only, destructive)| ToolHints { title, read_only, destructive, ..ToolHints::default() },
    );
    let output =
        option::of(prop_oneof![Just(json!({"type": "object"})), Just(json!({"type": "array"})), Just(json!({}))]);
    (("[a-z]{1,9}", option::of(text()), text()), output, hints, vec(icon(), 0..3), meta()).prop_map(
        |((name, title, description), output_schema, hints, icons, meta)| ToolDefinition {
            name,
            title,
            description,
            input_schema: json!({"type": "object", "properties": {"z": {}, "a": {}}}),
            output_schema,
            hints,
            icons,
            meta,
        },
    )
}

fn link() -> impl Strategy<Value = ResourceLink> {
    (
        (text(), text(), option::of(text())),
        option::of(text()),
        option::of(text()),
        option::of(0..1_u64 << 53),
        vec(icon(), 0..2),
    )
        .prop_map(|((uri, name, title), description, mime_type, size_bytes, icons)| ResourceLink {
            uri,
            name,
            title,
            description,
            mime_type,
            size_bytes,
            icons,
        })
}

fn kind() -> impl Strategy<Value = ContentKind> {
    let bytes = || vec(any::<u8>(), 0..40);
    let body = prop_oneof![text().prop_map(ResourceBody::Text), bytes().prop_map(ResourceBody::Blob)];
    prop_oneof![
        text().prop_map(ContentKind::Text),
        (bytes(), text()).prop_map(|(data, mime_type)| ContentKind::Image { data, mime_type }),
        (bytes(), text()).prop_map(|(data, mime_type)| ContentKind::Audio { data, mime_type }),
        link().prop_map(ContentKind::ResourceLink),
        (text(), option::of(text()), body).prop_map(|(uri, mime_type, body)| ContentKind::EmbeddedResource {
            uri,
            mime_type,
            body
        }),
    ]
}

fn content() -> impl Strategy<Value = ResultContent> {
    let annotations = (
        vec(prop_oneof![Just(Role::User), Just(Role::Assistant)], 0..3),
        option::of((0..=100_u32).prop_map(|hundredths| f64::from(hundredths) / 100.0)),
        option::of(text()),
    )
        .prop_map(|(audience, priority, last_modified)| ContentAnnotations { audience, priority, last_modified });
    (kind(), option::of(annotations), meta()).prop_map(|(kind, annotations, meta)| ResultContent {
        kind,
        annotations,
        meta,
    })
}

fn result() -> impl Strategy<Value = CallResult> {
    let structured = option::of(prop_oneof![Just("{\"a\":[1]}"), Just("[1,2]"), Just("null")])
        .prop_map(|json| json.map(|json| RawValue::from_string(json.to_owned()).unwrap()));
    (vec(content(), 0..4), structured, any::<bool>(), meta()).prop_map(|(content, structured, is_error, meta)| {
        CallResult { content, structured, is_error, meta, ..CallResult::default() }
    })
}

/// Decodes base64, independently of the encoder.
fn decode_base64(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        other => panic!("{other}"),
    };
    assert_eq!(text.len() % 4, 0);
    let mut out = Vec::new();
    let mut bits = 0_u32;
    let mut held = 0;
    for byte in text.trim_end_matches('=').bytes() {
        bits = (bits << 6) | u32::from(value(byte));
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push(u8::try_from((bits >> held) & 0xFF).unwrap());
        }
    }
    out
}

fn string(value: &Value, key: &str) -> Option<String> {
    value.get(key).map(|text| text.as_str().unwrap().to_owned())
}

fn object(value: &Value, key: &str) -> Map {
    value.get(key).map(|object| object.as_object().unwrap().clone()).unwrap_or_default()
}

fn read_icons(value: &Value) -> Vec<ContentIcon> {
    let icons = value.get("icons").and_then(Value::as_array).cloned().unwrap_or_default();
    let sizes = |icon: &Value| {
        let sizes = icon.get("sizes").and_then(Value::as_array).cloned().unwrap_or_default();
        sizes.iter().map(|size| size.as_str().unwrap().to_owned()).collect()
    };
    let theme =
        |icon: &Value| icon.get("theme").map(|theme| if theme == "dark" { IconTheme::Dark } else { IconTheme::Light });
    icons
        .iter()
        .map(|icon| ContentIcon {
            src: string(icon, "src").unwrap(),
            mime_type: string(icon, "mimeType"),
            sizes: sizes(icon),
            theme: theme(icon),
        })
        .collect()
}

fn read_definition(value: &Value) -> ToolDefinition {
    let hints = value.get("annotations").cloned().unwrap_or_default();
    let hint = |key: &str| hints.get(key).and_then(Value::as_bool);
    ToolDefinition {
        name: string(value, "name").unwrap(),
        title: string(value, "title"),
        description: string(value, "description").unwrap(),
        input_schema: value["inputSchema"].clone(),
        output_schema: value.get("outputSchema").cloned(),
        hints: ToolHints {
            title: string(&hints, "title"),
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
        },
        icons: read_icons(value),
        meta: object(value, "_meta"),
    }
}

/// The part of a definition that the revision carries.
fn carried_definition(mut definition: ToolDefinition, revision: Revision) -> ToolDefinition {
    let features = revision.features();
    if !features.titles {
        let title = definition.title.take();
        definition.hints.title = definition.hints.title.or(title);
    }
    if !features.hints {
        definition.hints = ToolHints::default();
    }
    if !features.icons {
        definition.icons.clear();
    }
    if !features.metas {
        definition.meta.clear();
    }
    definition.output_schema = definition.output_schema.filter(|schema| match features.structured {
        Structured::No => false,
        Structured::Objects => schema["type"] == "object",
        Structured::Any => true,
    });
    definition
}

fn read_content(value: &Value) -> ResultContent {
    let text = |key: &str| string(value, key);
    let kind = match value["type"].as_str().unwrap() {
        "text" => ContentKind::Text(text("text").unwrap()),
        "image" => {
            ContentKind::Image { data: decode_base64(&text("data").unwrap()), mime_type: text("mimeType").unwrap() }
        }
        "audio" => {
            ContentKind::Audio { data: decode_base64(&text("data").unwrap()), mime_type: text("mimeType").unwrap() }
        }
        "resource_link" => ContentKind::ResourceLink(ResourceLink {
            uri: text("uri").unwrap(),
            name: text("name").unwrap(),
            title: text("title"),
            description: text("description"),
            mime_type: text("mimeType"),
            size_bytes: value.get("size").map(|size| size.as_u64().unwrap()),
            icons: read_icons(value),
        }),
        "resource" => {
            let resource = &value["resource"];
            let body = match string(resource, "text") {
                Some(text) => ResourceBody::Text(text),
                None => ResourceBody::Blob(decode_base64(resource["blob"].as_str().unwrap())),
            };
            ContentKind::EmbeddedResource {
                uri: string(resource, "uri").unwrap(),
                mime_type: string(resource, "mimeType"),
                body,
            }
        }
        other => panic!("{other}"),
    };
    let annotations = value.get("annotations").map(|annotations| ContentAnnotations {
        audience: annotations
            .get("audience")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
            .iter()
            .map(|role| if role == "user" { Role::User } else { Role::Assistant })
            .collect(),
        priority: annotations.get("priority").map(|priority| priority.as_f64().unwrap()),
        last_modified: string(annotations, "lastModified"),
    });
    ResultContent { kind, annotations, meta: object(value, "_meta") }
}

/// The part of a piece of content that the revision carries.
fn carried_content(mut content: ResultContent, revision: Revision) -> ResultContent {
    let features = revision.features();
    content.kind = match content.kind {
        ContentKind::Audio { data, mime_type } if !features.audio => {
            ContentKind::Text(format!("[{mime_type}, {} bytes: this protocol revision carries no audio]", data.len()))
        }
        ContentKind::ResourceLink(link) if !features.links => ContentKind::Text(format!("{}: {}", link.name, link.uri)),
        ContentKind::ResourceLink(link) if !features.icons => {
            ContentKind::ResourceLink(ResourceLink { icons: Vec::new(), ..link })
        }
        kind => kind,
    };
    if let Some(annotations) = &mut content.annotations {
        annotations.last_modified = annotations.last_modified.take().filter(|_| features.last_modified);
    }
    content.annotations = content.annotations.filter(|annotations| *annotations != ContentAnnotations::default());
    if !features.metas {
        content.meta.clear();
    }
    content
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_definition_reads_back_in_every_revision(definition in definition()) {
        for revision in Revision::ALL {
            let value = written(|out| push_definition(out, &definition, TaskPlan::Never, revision.features()));
            prop_assert_eq!(read_definition(&value), carried_definition(definition.clone(), revision), "{}", revision);
        }
    }

    #[test]
    fn a_result_reads_back_in_every_revision(result in result()) {
        for revision in Revision::ALL {
            let features = revision.features();
            let value = written(|out| push_result(out, &result, features, IDENTITY));
            let contents: Vec<ResultContent> = value["content"].as_array().unwrap().iter().map(read_content).collect();
            let mut expected: Vec<ResultContent> =
                result.content.iter().map(|content| carried_content(content.clone(), revision)).collect();
            let json = result.structured.as_ref().map(|json| json.get());
            let carries = json.is_some_and(|json| match features.structured {
                Structured::No => false,
                Structured::Objects => json.starts_with('{'),
                Structured::Any => true,
            });
            // Legacy clients hold errors to the output schema too.
            let carries = carries && (revision.is_modern() || !result.is_error);
            let said = |json: &str| result.content.iter().any(|content| matches!(&content.kind, ContentKind::Text(text) if text == json));
            if let Some(json) = json.filter(|json| !carries && !said(json)) {
                expected.push(ResultContent::text(json));
            }
            prop_assert_eq!(contents, expected, "{}", revision);
            let structured = json.filter(|_| carries).map(|json| serde_json::from_str::<Value>(json).unwrap());
            prop_assert_eq!(value.get("structuredContent").cloned(), structured);
            prop_assert_eq!(&value["isError"], &json!(result.is_error));
            let mut meta = result.meta.clone();
            if revision.is_modern() {
                meta.insert("io.modelcontextprotocol/serverInfo".into(), serde_json::from_str(IDENTITY).unwrap());
            }
            prop_assert_eq!(object(&value, "_meta"), meta);
            prop_assert_eq!(value.get("resultType").is_some(), revision.is_modern());
        }
    }
}

#[test]
fn every_kind_of_content_as_each_revision_has_it() {
    let annotations = Some(ContentAnnotations {
        audience: vec![Role::User],
        priority: Some(7.0),
        last_modified: Some("2026-01-12T15:00:58Z".into()),
    });
    let link =
        ResourceLink { uri: "file:///a".into(), name: "a".into(), size_bytes: Some(3), ..ResourceLink::default() };
    let result = CallResult {
        content: vec![
            ResultContent { annotations, ..ResultContent::text("hi") },
            ResultContent::new(ContentKind::Audio { data: vec![1, 2, 3], mime_type: "audio/wav".into() }),
            ResultContent::new(ContentKind::ResourceLink(link)),
            ResultContent::new(ContentKind::EmbeddedResource {
                uri: "file:///b".into(),
                mime_type: Some("text/plain".into()),
                body: ResourceBody::Text("b".into()),
            }),
        ],
        ..CallResult::default()
    };
    let embedded = r#"{"type":"resource","resource":{"uri":"file:///b","mimeType":"text/plain","text":"b"}}"#;
    let audio = r#"{"type":"audio","data":"AQID","mimeType":"audio/wav"}"#;
    let dated = r#""annotations":{"audience":["user"],"priority":1.0,"lastModified":"2026-01-12T15:00:58Z"}"#;
    let undated = r#""annotations":{"audience":["user"],"priority":1.0}"#;
    let linked = r#"{"type":"resource_link","uri":"file:///a","name":"a","size":3}"#;
    let told = r#"{"type":"text","text":"a: file:///a"}"#;
    let silent = r#"{"type":"text","text":"[audio/wav, 3 bytes: this protocol revision carries no audio]"}"#;
    for (revision, annotated, audio, link) in [
        (Revision::V2024_11_05, undated, silent, told),
        (Revision::V2025_03_26, undated, audio, told),
        (Revision::V2025_06_18, dated, audio, linked),
        (Revision::V2025_11_25, dated, audio, linked),
    ] {
        let mut out = Vec::new();
        push_result(&mut out, &result, revision.features(), IDENTITY);
        let expected = format!(
            r#"{{"content":[{{"type":"text","text":"hi",{annotated}}},{audio},{link},{embedded}],"isError":false}}"#
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected, "{revision}");
    }
}

#[test]
fn the_protocols_own_keys_are_not_the_tools_to_set() {
    let mut result = CallResult::text("x");
    result.meta.insert("io.modelcontextprotocol/serverInfo".into(), json!("forged"));
    result.meta.insert("io.modelcontextprotocol/subscriptionId".into(), json!(1));
    result.meta.insert("toolcell/usage".into(), json!({"fuel": 1}));
    let value = written(|out| push_result(out, &result, Revision::V2026_07_28.features(), IDENTITY));
    let expected =
        json!({"toolcell/usage": {"fuel": 1}, "io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}});
    assert_eq!(value["_meta"], expected);
    let legacy = written(|out| push_result(out, &result, Revision::V2025_11_25.features(), IDENTITY));
    assert_eq!(legacy["_meta"], json!({"toolcell/usage": {"fuel": 1}}));
}

#[test]
fn the_server_says_of_itself_what_the_revision_knows() {
    let info = ServerInfo {
        name: "n".into(),
        title: Some("T".into()),
        version: "1".into(),
        description: Some("d".into()),
        website_url: Some("https://example.com".into()),
        ..ServerInfo::default()
    };
    for (revision, expected) in [
        (Revision::V2025_03_26, r#"{"name":"n","version":"1"}"#),
        (Revision::V2025_06_18, r#"{"name":"n","title":"T","version":"1"}"#),
        (
            Revision::V2025_11_25,
            r#"{"name":"n","title":"T","version":"1","description":"d","websiteUrl":"https://example.com"}"#,
        ),
    ] {
        let value = written(|out| push_implementation(out, &info, revision.features()));
        assert_eq!(value.to_string(), expected);
    }
}

#[test]
fn outside_of_a_conversation_no_server_is_named() {
    let json = Revision::V2026_07_28.result_json(&CallResult::text("hi"));
    assert_eq!(json, r#"{"resultType":"complete","content":[{"type":"text","text":"hi"}],"isError":false}"#);
}
