//! `sonify`: makes a row of numbers audible, for ears that are free while eyes are not.
//! The lesson: audio content.
//!
//! Holds the tool's definition and its words; must hold no sound.

mod sound;
mod wav;

use serde::Deserialize;
use sound::Style;
use toolkit::{Annotations, CallResult, Content, Failure, Guest, Role, Tool};

struct Sonify;

toolkit::export!(Sonify);

/// Seconds where the caller does not say; the schema says the same.
const SECONDS_DEFAULT: f64 = 4.0;

#[derive(Deserialize)]
struct Arguments {
    values: Vec<Option<f64>>,
    seconds: Option<f64>,
    #[serde(default)]
    style: Style,
}

impl Guest for Sonify {
    fn list_tools() -> Vec<Tool> {
        vec![
            Tool::new(
                "sonify",
                "Makes a row of numbers audible: the higher the number, the higher the tone. Gives a short WAV sound. \
                 Use it to let the user hear a trend, or where a picture does not help.",
                include_str!("../schemas/input.json"),
            )
            .title("Hear numbers")
            .read_only(),
        ]
    }

    fn call_tool(name: String, arguments_json: String) -> Result<CallResult, Failure> {
        match name.as_str() {
            "sonify" => sonify(&toolkit::arguments(&arguments_json)?),
            other => Err(Failure::unknown_tool(other)),
        }
    }
}

fn sonify(arguments: &Arguments) -> Result<CallResult, Failure> {
    let seconds = arguments.seconds.unwrap_or(SECONDS_DEFAULT);
    let Some(words) = in_words(&arguments.values, seconds) else {
        return Err(Failure::invalid("there is nothing to hear: every value is null"));
    };
    let samples = sound::samples(&arguments.values, seconds, arguments.style);
    let audio = Content::audio(wav::file(&samples), "audio/wav");
    Ok(CallResult::new(vec![
        audio.annotated(Annotations::audience(&[Role::User]).priority(1.0)),
        Content::text(words).annotated(Annotations::audience(&[Role::Assistant]).priority(0.3)),
    ]))
}

/// The sound in words, for who does not hear it; nothing where there is no number.
fn in_words(values: &[Option<f64>], seconds: f64) -> Option<String> {
    let numbers = || values.iter().zip(1..).filter_map(|(value, place): (_, usize)| value.map(|value| (value, place)));
    let (least, lowest) = numbers().reduce(|best, next| if next.0 < best.0 { next } else { best })?;
    let (most, highest) = numbers().reduce(|best, next| if next.0 > best.0 { next } else { best })?;
    let count = values.len();
    Some(format!(
        "{count} values in {seconds} seconds; lowest tone at value {lowest} ({least}), highest at value {highest} ({most})."
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use serde_json::{Value, json};

    fn call(arguments: &Value) -> Result<CallResult, String> {
        Sonify::call_tool("sonify".to_owned(), arguments.to_string()).map_err(|failure| failure.message().to_owned())
    }

    #[test]
    fn a_row_of_numbers_is_a_sound_and_a_sentence() {
        let result = call(&json!({"values": [3, null, 1, 9], "seconds": 0.5})).unwrap();
        let [Content::Audio(audio), Content::Text(text)] = <[Content; 2]>::try_from(result.content).unwrap() else {
            panic!("a sound and a text");
        };
        assert_eq!(audio.mime_type, "audio/wav");
        assert_eq!(audio.data.len(), 44 + 8_000 * 2);
        assert_eq!(text.text, "4 values in 0.5 seconds; lowest tone at value 3 (1), highest at value 4 (9).");
    }

    #[test]
    fn silence_alone_is_the_callers_mistake() {
        let message = call(&json!({"values": [null, null]})).unwrap_err();
        assert_eq!(message, "there is nothing to hear: every value is null");
    }
}
