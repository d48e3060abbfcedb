//! Prompts, as one revision writes them.

use crate::content::CallResult;
use crate::frame::{Object, push_list};
use crate::tool::{McpPrompt, ToolDefinition};

use super::Features;
use super::definition::{push_icons, push_meta};
use super::result::{push_content, push_result_meta};

/// Appends one entry of `prompts/list`.
pub(crate) fn push_prompt(out: &mut Vec<u8>, definition: &ToolDefinition, prompt: &McpPrompt, features: &Features) {
    let mut entry = Object::open(out);
    entry.text("name", prompt.name());
    entry.text_if("title", definition.title.as_deref().filter(|_| features.titles));
    entry.text_if("description", Some(definition.description.as_str()).filter(|text| !text.is_empty()));
    if !prompt.arguments().is_empty() {
        push_list(entry.key("arguments"), prompt.arguments(), |out, argument| {
            let mut item = Object::open(out);
            item.text("name", &argument.name);
            item.text_if("title", argument.title.as_deref().filter(|_| features.titles));
            item.text_if("description", argument.description.as_deref());
            item.flag("required", argument.required);
        });
    }
    if features.icons {
        push_icons(&mut entry, &definition.icons);
    }
    if features.metas {
        push_meta(&mut entry, &definition.meta);
    }
}

/// Appends the result of one `prompts/get`. `identity` is the server's `Implementation` as JSON.
pub(crate) fn push_prompt_result(
    out: &mut Vec<u8>,
    definition: &ToolDefinition,
    result: &CallResult,
    features: &Features,
    identity: &str,
) {
    let mut object = Object::open(out);
    if features.typed_results {
        object.text("resultType", "complete");
    }
    let own = result.prompt.description.as_deref();
    let description = own.or(Some(definition.description.as_str())).filter(|text| !text.is_empty());
    object.text_if("description", description);
    push_list(object.key("messages"), result.content.iter().enumerate(), |out, (place, content)| {
        let role = result.prompt.roles.get(place).copied().unwrap_or(crate::content::Role::User);
        let mut message = Object::open(out);
        message.text("role", role.name());
        push_content(message.key("content"), content, features);
    });
    push_result_meta(&mut object, &result.meta, features, identity);
}
