//! Names and values in queries and forms.

use serde_json::Value;
use toolcell_bridge_lines::Style;
use toolkit::Failure;
use toolkit::http::escaped;

/// Pairs with `&` between them, escaped.
#[derive(Default)]
pub struct Pairs {
    text: String,
}

impl Pairs {
    pub fn text(self) -> String {
        self.text
    }

    fn push(&mut self, name: &str, escaped_value: &str) {
        if !self.text.is_empty() {
            self.text.push('&');
        }
        self.text.push_str(&escaped(name));
        self.text.push('=');
        self.text.push_str(escaped_value);
    }

    /// Adds a value in its style.
    pub fn add(&mut self, name: &str, style: Style, explode: bool, value: &Value) -> Result<(), Failure> {
        match (style, value) {
            (_, Value::Null) => {}
            (Style::Json, value) => self.push(name, &escaped(&value.to_string())),
            (Style::Deep, value) => self.deep(name, value),
            (_, Value::Array(items)) if explode => {
                for item in items {
                    self.push(name, &escaped(&scalar(name, item)?));
                }
            }
            (style, Value::Array(items)) => {
                let items: Vec<String> =
                    items.iter().map(|item| Ok(escaped(&scalar(name, item)?))).collect::<Result<_, Failure>>()?;
                self.push(name, &items.join(separator(style)));
            }
            (_, Value::Object(members)) if explode => {
                for (key, member) in members.iter().filter(|(_, member)| !member.is_null()) {
                    self.push(key, &escaped(&scalar(name, member)?));
                }
            }
            (style, Value::Object(members)) => {
                let mut items = Vec::new();
                for (key, member) in members.iter().filter(|(_, member)| !member.is_null()) {
                    items.extend([escaped(key), escaped(&scalar(name, member)?)]);
                }
                self.push(name, &items.join(separator(style)));
            }
            (_, value) => self.push(name, &escaped(&scalar(name, value)?)),
        }
        Ok(())
    }

    /// `name[member][index]=value`. Arguments are nested less deep than a stack reaches.
    fn deep(&mut self, name: &str, value: &Value) {
        match value {
            Value::Null => {}
            Value::Object(members) => {
                members.iter().for_each(|(key, member)| self.deep(&format!("{name}[{key}]"), member))
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, item)| self.deep(&format!("{name}[{index}]"), item));
            }
            Value::String(text) => self.push(name, &escaped(text)),
            other => self.push(name, &escaped(&other.to_string())),
        }
    }
}

/// Between the items of a list.
fn separator(style: Style) -> &'static str {
    match style {
        Style::Space => "%20",
        Style::Pipe => "%7C",
        _ => ",",
    }
}

/// A text, a number, or true or false as text. A value inside a list or an object is JSON where it
/// is neither.
pub fn scalar(name: &str, value: &Value) -> Result<String, Failure> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        Value::Null => Err(Failure::invalid(format!("{name:?} is null"))),
        Value::Array(_) | Value::Object(_) => Ok(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn each_style_writes_its_own_pairs() {
        for (style, explode, value, expected) in [
            (Style::Form, true, json!("a b&c"), "k=a%20b%26c"),
            (Style::Form, true, json!(1.5), "k=1.5"),
            (Style::Form, true, json!(null), ""),
            (Style::Form, true, json!(["a", 1]), "k=a&k=1"),
            (Style::Form, false, json!(["a,b", true]), "k=a%2Cb,true"),
            (Style::Space, false, json!(["a", "b"]), "k=a%20b"),
            (Style::Pipe, false, json!(["a", "b"]), "k=a%7Cb"),
            (Style::Form, true, json!({"x": 1, "y": null}), "x=1"),
            (Style::Form, false, json!({"x": 1, "y": "z"}), "k=x,1,y,z"),
            (Style::Deep, true, json!({"x": {"y": [1, 2]}}), "k%5Bx%5D%5By%5D%5B0%5D=1&k%5Bx%5D%5By%5D%5B1%5D=2"),
            (Style::Json, false, json!({"x": 1}), "k=%7B%22x%22%3A1%7D"),
        ] {
            let mut pairs = Pairs::default();
            pairs.add("k", style, explode, &value).unwrap();
            assert_eq!(pairs.text(), expected, "{style:?} {explode} {value}");
        }
    }
}
