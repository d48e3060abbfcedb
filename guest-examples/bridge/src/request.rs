//! From arguments to one request. Nothing in a value ends the part of the request that it stands in.

use serde_json::{Map, Value};
use toolcell_bridge_lines::{Body, BodyForm, FieldStyle, Parameter, Place, Request, Style};
use toolkit::Failure;
use toolkit::http::escaped;

use crate::arguments::Arguments;
use crate::file::File;
use crate::parts;
use crate::query::{Pairs, scalar};

/// What the host is asked for.
#[derive(Debug, PartialEq)]
pub struct Wanted {
    /// With its query.
    pub path: String,
    pub fields: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
}

/// The request of these arguments.
pub fn wanted(request: &Request, arguments: &Arguments<'_>) -> Result<Wanted, Failure> {
    let mut path = request.path.clone();
    let mut query = Pairs::default();
    let mut fields = vec![("accept".to_owned(), request.accept.clone())];
    // Parts of the path one after the other: a value in braces is not a parameter.
    let mut values: Vec<(&str, String)> = Vec::new();
    for parameter in &request.parameters {
        let (value, style) = match parameter.style {
            // One text as it came.
            Style::Json => (arguments.json(&parameter.argument).map(Value::from), Style::Form),
            style => (arguments.value(&parameter.argument)?, style),
        };
        let Some(value) = value else { continue };
        match parameter.place {
            Place::Path => values.push((&parameter.name, path_value(parameter, &value)?)),
            Place::Query => query.add(&parameter.name, style, parameter.explode, &value)?,
            Place::Header => fields.push((parameter.name.clone(), header_value(parameter, &value)?)),
        }
    }
    if !fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("user-agent")) {
        fields.push(("user-agent".to_owned(), "toolcell".to_owned()));
    }
    if !values.is_empty() {
        path = filled(&path, &values)?;
    }
    if path.split('/').any(|segment| matches!(segment, "." | "..")) {
        return Err(Failure::invalid("the path would lead to another one".to_owned()));
    }
    let query = query.text();
    if !query.is_empty() {
        let between = if path.contains('?') { '&' } else { '?' };
        path = format!("{path}{between}{query}");
    }
    let body = body(request, arguments)?.map(|(media, bytes)| {
        fields.push(("content-type".to_owned(), media));
        bytes
    });
    Ok(Wanted { path, fields, body })
}

/// The path with its parameters' values.
fn filled(path: &str, values: &[(&str, String)]) -> Result<String, Failure> {
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, behind)) = rest.split_once('{') {
        let (name, behind) = behind.split_once('}').unwrap_or((behind, ""));
        let value = values.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
        let value = value.ok_or_else(|| Failure::invalid(format!("{name:?} is missing")))?;
        out.push_str(before);
        out.push_str(value);
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

/// A part of the path. It is one part for every server: neither empty, nor dots, nor with a slash.
fn path_value(parameter: &Parameter, value: &Value) -> Result<String, Failure> {
    let argument = &parameter.argument;
    let text = simple(parameter, value, str::to_owned)?;
    if text.is_empty() {
        return Err(Failure::invalid(format!("{argument:?} is empty, and a part of the path is not")));
    }
    if matches!(text.as_str(), "." | "..") || text.contains(['/', '\\']) || text.chars().any(char::is_control) {
        return Err(Failure::invalid(format!("{argument:?} is a part of the path: no slash, and not \".\" or \"..\"")));
    }
    if let Some(escape) = escape(&text) {
        let problem = format!("{argument:?} is a part of the path with {escape:?} in it: give it unencoded");
        return Err(Failure::invalid(problem));
    }
    simple(parameter, value, escaped)
}

/// An escape such as `%2F`. Escaped once more, the host refuses it: servers may read the path in two ways.
fn escape(text: &str) -> Option<&str> {
    let is_escape = |text: &&str| text.bytes().skip(1).all(|byte| byte.is_ascii_hexdigit());
    text.match_indices('%').find_map(|(at, _)| text.get(at..at + 3).filter(is_escape))
}

/// The value of a header: what is printed in ASCII, and blanks within.
fn header_value(parameter: &Parameter, value: &Value) -> Result<String, Failure> {
    let text = simple(parameter, value, str::to_owned)?;
    if text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
        return Ok(text);
    }
    Err(Failure::invalid(format!("{:?} is a header: printable ASCII in one line", parameter.argument)))
}

/// Items with commas between them; members of objects as well. What is between them stays as it is.
fn simple(parameter: &Parameter, value: &Value, written: impl Fn(&str) -> String) -> Result<String, Failure> {
    let scalar = |value: &Value| Ok::<_, Failure>(written(&scalar(&parameter.argument, value)?));
    match value {
        Value::Array(items) => Ok(items.iter().map(scalar).collect::<Result<Vec<_>, _>>()?.join(",")),
        Value::Object(members) => {
            let between = if parameter.explode { "=" } else { "," };
            let member = |(key, value): (&String, &Value)| Ok(format!("{}{between}{}", written(key), scalar(value)?));
            Ok(members.iter().map(member).collect::<Result<Vec<_>, Failure>>()?.join(","))
        }
        value => scalar(value),
    }
}

/// The body, with its media type.
fn body(request: &Request, arguments: &Arguments<'_>) -> Result<Option<(String, Vec<u8>)>, Failure> {
    let Some(definition) = &request.body else { return Ok(None) };
    let Some(json) = arguments.json(&definition.argument) else { return Ok(None) };
    let media = definition.media.clone();
    if definition.form == BodyForm::Json {
        return Ok(Some((media, json.as_bytes().to_vec())));
    }
    let Some(value) = &arguments.value(&definition.argument)? else { return Ok(None) };
    let bytes = match definition.form {
        BodyForm::Json => Vec::new(),
        BodyForm::Pairs => pairs(definition, members(definition, value)?)?.into_bytes(),
        BodyForm::Parts => return parts::body(definition, members(definition, value)?).map(Some),
        BodyForm::Text => scalar(&definition.argument, value)?.into_bytes(),
        BodyForm::File => {
            let file = File::of(&definition.argument, value)?;
            return Ok(Some((file.media.unwrap_or(media), file.bytes)));
        }
    };
    Ok(Some((media, bytes)))
}

fn members<'v>(definition: &Body, value: &'v Value) -> Result<&'v Map<String, Value>, Failure> {
    let wrong = || Failure::invalid(format!("{:?} is not an object of a form's fields", definition.argument));
    value.as_object().ok_or_else(wrong)
}

/// Fields with `&` between them. Without a word of the document, objects have their members in brackets.
fn pairs(definition: &Body, members: &Map<String, Value>) -> Result<String, Failure> {
    let mut pairs = Pairs::default();
    for (member, value) in members {
        let name = definition.names.get(member).unwrap_or(member);
        let default = if value.is_object() { Style::Deep } else { Style::Form };
        let default = FieldStyle { style: default, explode: true };
        let FieldStyle { style, explode } = definition.styles.get(name).copied().unwrap_or(default);
        pairs.add(name, style, explode, value)?;
    }
    Ok(pairs.text())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn request() -> Request {
        serde_json::from_value(json!({
            "method": "POST", "path": "/v1/pets/{id}/{kind}.json", "accept": "application/json", "output": "free",
            "parameters": [
                {"name": "id", "argument": "id", "place": "path", "style": "simple", "explode": false},
                {"name": "kind", "argument": "kind", "place": "path", "style": "simple", "explode": false},
                {"name": "q[x]", "argument": "q_x", "place": "query", "style": "form", "explode": true},
                {"name": "X-Trace", "argument": "trace", "place": "header", "style": "simple", "explode": false},
            ],
            "body": {"argument": "body", "media": "application/json", "form": "json"},
        }))
        .unwrap()
    }

    fn body_of(form: BodyForm, media: &str) -> Body {
        serde_json::from_value(json!({"argument": "body", "media": media, "form": form})).unwrap()
    }

    fn made(request: &Request, arguments: &Value) -> Result<Wanted, Failure> {
        wanted(request, &Arguments::of(&arguments.to_string()).unwrap())
    }

    fn of(arguments: &Value) -> Result<Wanted, String> {
        made(&request(), arguments).map_err(|failure| failure.message().to_owned())
    }

    #[test]
    fn arguments_stand_where_the_document_says() {
        let made = of(&json!({
            "id": "São {kind}?#%", "kind": ["a", 1], "q_x": ["a&b", "c"], "trace": "one two", "body": {"a": [1]}, "other": 1,
        }));
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = Wanted {
            path: "/v1/pets/S%C3%A3o%20%7Bkind%7D%3F%23%25/a,1.json?q%5Bx%5D=a%26b&q%5Bx%5D=c".to_owned(),
            fields: vec![
                field("accept", "application/json"),
                field("X-Trace", "one two"),
                field("user-agent", "toolcell"),
                field("content-type", "application/json"),
            ],
            body: Some(b"{\"a\":[1]}".to_vec()),
        };
        assert_eq!(made, Ok(expected));
    }

    #[test]
    fn no_value_leaves_its_part_of_the_path() {
        let part = "\"id\" is a part of the path: no slash, and not \".\" or \"..\"";
        for id in ["a/b", "/", "..", ".", "..\\x", "a\u{0}b", "a\r\nb"] {
            assert_eq!(of(&json!({"id": id, "kind": "k"})), Err(part.to_owned()), "{id:?}");
        }
        let empty = "\"id\" is empty, and a part of the path is not";
        assert_eq!(of(&json!({"id": "", "kind": "k"})), Err(empty.to_owned()));
        assert_eq!(of(&json!({"kind": "k"})), Err("\"id\" is missing".to_owned()));
        for (id, escape) in [("..%2f", "%2f"), ("50%25", "%25"), ("%zz%41", "%41")] {
            let problem = format!("\"id\" is a part of the path with {escape:?} in it: give it unencoded");
            assert_eq!(of(&json!({"id": id, "kind": "k"})), Err(problem));
        }
        assert!(of(&json!({"id": "50%é%2", "kind": "k"})).unwrap().path.starts_with("/v1/pets/50%25%C3%A9%252/"));
        let joined: Request = serde_json::from_value(json!({
            "method": "GET", "path": "/{a}{b}/x", "accept": "*/*", "output": "free", "parameters": [
                {"name": "a", "argument": "a", "place": "path", "style": "simple", "explode": false},
                {"name": "b", "argument": "b", "place": "path", "style": "simple", "explode": false},
            ],
        }))
        .unwrap();
        let arguments = json!({"a": [".", ""], "b": "x"});
        assert!(made(&joined, &arguments).is_ok());
    }

    #[test]
    fn no_value_ends_its_header() {
        for trace in ["a\r\nHost: b", "a\nb", "a\u{0}", "é", "\t"] {
            let error = "\"trace\" is a header: printable ASCII in one line";
            assert_eq!(of(&json!({"id": "i", "kind": "k", "trace": trace})), Err(error.to_owned()), "{trace:?}");
        }
    }

    #[test]
    fn a_json_text_is_sent_as_it_came() {
        let mut request = request();
        request.path = "/".to_owned();
        request.parameters.retain(|parameter| parameter.place == Place::Query);
        for parameter in &mut request.parameters {
            parameter.style = Style::Json;
        }
        let text = r#"{"body":{"n": 123456789012345678901234567890, "m": 1.50},"q_x":[1234567890123456789012]}"#;
        let made = wanted(&request, &Arguments::of(text).unwrap()).unwrap();
        assert_eq!(made.path, "/?q%5Bx%5D=%5B1234567890123456789012%5D");
        assert_eq!(made.body.unwrap(), br#"{"n": 123456789012345678901234567890, "m": 1.50}"#);
    }

    #[test]
    fn a_form_has_fields_as_the_document_says() {
        let mut request = request();
        request.path = "/".to_owned();
        request.parameters.clear();
        let style = |style: &str, explode: bool| json!({"style": style, "explode": explode});
        let body = json!({
            "argument": "body", "media": "application/x-www-form-urlencoded", "form": "pairs",
            "names": {"ids": "ids[]"},
            "styles": {
                "items": style("deep", true), "list": style("form", false), "bars": style("pipe", false),
                "json": style("json", false), "flat": style("form", true),
            },
        });
        request.body = Some(serde_json::from_value(body).unwrap());
        let arguments = json!({"body": {
            "a": "x y", "bars": ["p", "q"], "flat": {"f": 1}, "ids": [1, 2], "items": [{"price": 2}],
            "json": {"k": [1]}, "list": ["a,b", "c"], "meta": {"k": 1}, "tags": ["p", "q"],
        }});
        let text = String::from_utf8(made(&request, &arguments).unwrap().body.unwrap()).unwrap();
        let pairs: Vec<&str> = text.split('&').collect();
        assert_eq!(
            pairs,
            [
                "a=x%20y",
                "bars=p%7Cq",
                "f=1",
                "ids%5B%5D=1",
                "ids%5B%5D=2",
                "items%5B0%5D%5Bprice%5D=2",
                "json=%7B%22k%22%3A%5B1%5D%7D",
                "list=a%2Cb,c",
                "meta%5Bk%5D=1",
                "tags=p",
                "tags=q",
            ]
        );
    }

    #[test]
    fn a_text_and_a_file_are_sent_as_they_are() {
        let mut request = request();
        request.path = "/".to_owned();
        request.parameters.clear();
        let mut sent = |form: BodyForm, media: &str, value: Value| {
            request.body = Some(Box::new(body_of(form, media)));
            let made = made(&request, &json!({"body": value}));
            made.map(|made| (made.fields[2].1.clone(), made.body.unwrap()))
                .map_err(|failure| failure.message().to_owned())
        };
        let of = |media: &str, bytes: &[u8]| Ok((media.to_owned(), bytes.to_vec()));
        assert_eq!(sent(BodyForm::Text, "text/xml", json!("<a/>")), of("text/xml", b"<a/>"));
        assert_eq!(sent(BodyForm::File, "image/png", json!({"base64": "iQA="})), of("image/png", b"\x89\0"));
        let named = json!({"text": "a", "media_type": "text/csv"});
        assert_eq!(sent(BodyForm::File, "application/octet-stream", named), of("text/csv", b"a"));
        for (value, problem) in [
            (json!("a"), "\"body\" is a file: either its text or its base64"),
            (json!({"text": "a", "base64": ""}), "\"body\" is a file: either its text or its base64"),
            (json!({"base64": "!"}), "the base64 of \"body\" is not base64"),
            (
                json!({"text": "a", "media_type": "a/b\r\nX: y"}),
                "the media_type of \"body\" is not one, such as image/png",
            ),
        ] {
            assert_eq!(sent(BodyForm::File, "a/b", value), Err(problem.to_owned()));
        }
    }
}
