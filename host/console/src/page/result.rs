//! The result of a call from the console.

use maud::{Markup, html};

use crate::bounds::{CONTENT_ITEMS, PICTURE_BYTES, PICTURES_BYTES};
use crate::figure::{bytes, time};
use crate::json;
use crate::model::{Content, TryResult};
use crate::text::{block, line};

/// Types of pictures that are shown: those that hold no scripts, styles or addresses.
const PICTURE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

pub fn view(result: &TryResult) -> Markup {
    let class = if result.good { "chip good" } else { "chip bad" };
    let mut room = PICTURES_BYTES;
    html! {
        section.result #result aria-label="Result" {
            h3 { "Result of call " (result.call) " " span class=(class) { (line(&result.outcome)) } " " span.dim { (time(result.took)) } }
            @for content in result.content.iter().take(CONTENT_ITEMS) { (piece(content, &mut room)) }
            @if result.content.len() > CONTENT_ITEMS {
                p.more { (result.content.len() - CONTENT_ITEMS) " more pieces are not shown." }
            }
            @if let Some(structured) = &result.structured {
                h4 { "Structured content" }
                (json::block(structured, "Structured content"))
            }
            @if !result.denials.is_empty() {
                h4 { "Denied" }
                ul { @for denial in result.denials.iter().take(CONTENT_ITEMS) { li { (line(denial)) } } }
            }
            @if !result.log.is_empty() {
                h4 { "What it printed" }
                pre.block tabindex="0" role="region" aria-label="What it printed" { (block(&result.log)) }
            }
        }
    }
}

fn piece(content: &Content, room: &mut usize) -> Markup {
    match content {
        Content::Text(text) => html! { pre.block tabindex="0" role="region" aria-label="Text" { (block(text)) } },
        Content::Picture { media_type, base64 } => picture(media_type, base64, room),
        Content::Resource { uri, text } => html! {
            p { "Resource " span.mono { (line(uri)) } }
            @if let Some(text) = text { pre.block tabindex="0" role="region" aria-label="Resource" { (block(text)) } }
        },
        Content::Other(words) => html! { p.dim { (line(words)) } },
    }
}

fn picture(media_type: &str, base64: &str, room: &mut usize) -> Markup {
    let size = base64.len();
    let known = PICTURE_TYPES.iter().find(|known| media_type.eq_ignore_ascii_case(known));
    let is_base64 = size <= PICTURE_BYTES && base64.bytes().all(is_base64);
    if let (Some(known), true) = (known, is_base64 && size <= *room) {
        *room -= size;
        return html! { img src=(format!("data:{known};base64,{base64}")) alt="Picture in the result"; };
    }
    let why = if known.is_none() { "pictures of this type are not shown" } else { "it is too large, or not base64" };
    html! { p.dim { "A picture, " (line(media_type)) ", " (bytes(size as u64 / 4 * 3)) ": " (why) "." } }
}

const fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}
