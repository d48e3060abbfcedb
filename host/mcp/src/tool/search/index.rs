//! BM25 over the definitions of tools: words, the tools that contain them, and the best tools for a
//! query.

use std::collections::HashMap;

use serde_json::Value;

use super::words::{each_word, is_empty_word};
use crate::tool::{McpTool, ToolDefinition};

/// Weights of a word by its place. The name matters most; many tools share descriptions of
/// parameters.
const NAME: f32 = 3.0;
const TITLE: f32 = 2.0;
const DESCRIPTION: f32 = 1.0;
const PARAMETER: f32 = 1.0;
const PARAMETER_TEXT: f32 = 0.5;

/// The damping of repeated words, and of long texts: the usual values of BM25.
const SATURATION: f32 = 1.2;
const LENGTH_PART: f32 = 0.75;

/// Different words of a query that are searched. More would cost time without improving the result.
const QUERY_WORDS_MAX: usize = 32;

/// The words of all tools.
#[derive(Debug)]
pub(in crate::tool) struct WordIndex {
    /// The tools that contain a word, with its weight in each.
    words: HashMap<Box<str>, Vec<(u32, f32)>>,
    /// The sum of the weights in each tool.
    lengths: Vec<f32>,
}

/// The tools that a search may find.
#[derive(Clone, Debug)]
pub(in crate::tool) struct VisibleTools {
    /// True for each one, by its index.
    places: Vec<bool>,
    count: f32,
    /// The mean of their lengths.
    length: f32,
}

impl WordIndex {
    /// Reads the first `text_bytes_max` bytes of each tool's texts: name, title, description,
    /// parameters, in this order.
    pub(in crate::tool) fn of<'t>(tools: impl Iterator<Item = &'t McpTool>, text_bytes_max: usize) -> Self {
        let mut index = Self { words: HashMap::new(), lengths: Vec::new() };
        for (tool, place) in tools.zip(0..) {
            let mut weights: HashMap<Box<str>, f32> = HashMap::new();
            let mut length = 0.0;
            let mut left = text_bytes_max;
            each_text(tool.definition(), &mut |text, weight| {
                let text = text.get(..text.floor_char_boundary(left)).unwrap_or_default();
                left -= text.len();
                each_word(text, |word| {
                    length += weight;
                    match weights.get_mut(word) {
                        Some(sum) => *sum += weight,
                        None => drop(weights.insert(Box::from(word), weight)),
                    }
                });
                left > 0
            });
            for (word, weight) in weights {
                index.words.entry(word).or_default().push((place, weight));
            }
            index.lengths.push(length);
        }
        index
    }

    /// The tools that `may` allows, by index.
    pub(in crate::tool) fn seen(&self, may: Vec<bool>) -> VisibleTools {
        let seen = |place: usize| may.get(place).copied().unwrap_or(false);
        let lengths = self.lengths.iter().enumerate().filter(|(place, _)| seen(*place));
        let (count, sum) = lengths.fold((0.0, 0.0), |(count, sum), (_, length)| (count + 1.0, sum + length));
        VisibleTools { count, length: if count > 0.0 { sum / count } else { 0.0 }, places: may }
    }

    /// The indices of the tools that contain a word of the query, the best first. Invisible tools
    /// do not influence the order.
    pub(in crate::tool) fn find(&self, query: &str, seen: &VisibleTools) -> Vec<usize> {
        let mut words: Vec<String> = Vec::new();
        each_word(query, |word| {
            let known = words.len() >= QUERY_WORDS_MAX || words.iter().any(|known| known == word);
            if !known && !is_empty_word(word) {
                words.push(word.to_owned());
            }
        });
        let mut scores: HashMap<u32, f32> = HashMap::new();
        for having in words.iter().filter_map(|word| self.words.get(word.as_str())) {
            let may = |place: &u32| seen.places.get(*place as usize) == Some(&true);
            let having: Vec<&(u32, f32)> = having.iter().filter(|(place, _)| may(place)).collect();
            #[expect(clippy::cast_precision_loss, reason = "there are fewer tools than a float counts exactly")]
            let number = having.len() as f32;
            let rarity = (1.0 + (seen.count - number + 0.5) / (number + 0.5)).ln();
            for (place, weight) in having {
                let length = self.lengths.get(*place as usize).copied().unwrap_or_default();
                let relative = if seen.length > 0.0 { length / seen.length } else { 1.0 };
                let damped = weight + SATURATION * (1.0 - LENGTH_PART + LENGTH_PART * relative);
                *scores.entry(*place).or_default() += rarity * weight * (SATURATION + 1.0) / damped;
            }
        }
        let mut found: Vec<(u32, f32)> = scores.into_iter().collect();
        found.sort_unstable_by(|(one, more), (other, less)| less.total_cmp(more).then(one.cmp(other)));
        found.into_iter().map(|(place, _)| place as usize).collect()
    }
}

/// Calls `each` with every text of a definition and its weight, until it returns false.
fn each_text(definition: &ToolDefinition, each: &mut impl FnMut(&str, f32) -> bool) {
    let title = definition.title.as_deref().or(definition.hints.title.as_deref()).unwrap_or_default();
    let texts = [(definition.name.as_str(), NAME), (title, TITLE), (&definition.description, DESCRIPTION)];
    if texts.into_iter().all(|(text, weight)| each(text, weight)) {
        each_parameter(&definition.input_schema, each);
    }
}

/// Calls `each` with the names and the texts of a schema's properties, at any depth. Schemas are
/// bounded in size and depth; the list here holds the remaining ones.
fn each_parameter(schema: &Value, each: &mut impl FnMut(&str, f32) -> bool) {
    let mut left = vec![schema];
    while let Some(value) = left.pop() {
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    let goes_on = match (key.as_str(), member) {
                        ("properties", Value::Object(parameters)) => {
                            parameters.keys().all(|name| each(name, PARAMETER))
                        }
                        ("description" | "title", Value::String(text)) => each(text, PARAMETER_TEXT),
                        ("enum", Value::Array(values)) => {
                            values.iter().filter_map(Value::as_str).all(|text| each(text, PARAMETER_TEXT))
                        }
                        _ => true,
                    };
                    if !goes_on {
                        return;
                    }
                    if key != "enum" && (member.is_object() || member.is_array()) {
                        left.push(member);
                    }
                }
            }
            Value::Array(values) => left.extend(values.iter().filter(|value| value.is_object() || value.is_array())),
            _ => {}
        }
    }
}
