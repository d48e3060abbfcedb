//! The component's exports are in `component`, for WebAssembly alone; the rest is tested natively.

#[cfg(target_family = "wasm")]
mod component {
    wit_bindgen::generate!({ world: "tool-component" });

    use exports::toolcell::mcp::tools::Guest;
    use toolcell::mcp::asking::{Answer, Form, Inquiry, Question, Refusal, ask};
    use toolcell::mcp::types::{CallResult, Content, Failure, Hints, TextContent, Tool};

    struct Component;
    export!(Component);

    /// The arguments, as `schemas/input.json` describes them.
    #[derive(serde::Deserialize)]
    struct Arguments {
        people: u32,
    }

    impl Guest for Component {
        fn list_tools() -> Vec<Tool> {
            vec![Tool {
                name: "book_table".to_owned(),
                title: Some("Book a table".to_owned()),
                description: "Books a table in the canteen, for a day that the person is asked for.".to_owned(),
                input_schema_json: include_str!("../schemas/input.json").to_owned(),
                output_schema_json: None,
                hints: Some(Hints {
                    read_only: Some(false),
                    destructive: Some(false),
                    idempotent: Some(false),
                    open_world: Some(false),
                }),
                icons: Vec::new(),
                meta_json: None,
            }]
        }

        fn call_tool(_name: String, arguments_json: String) -> Result<CallResult, Failure> {
            let Arguments { people } =
                serde_json::from_str(&arguments_json).map_err(|error| Failure::InvalidInput(error.to_string()))?;
            let filled_in = asked(format!("A table for {people}: on which day?"))?;
            let text = TextContent {
                text: crate::booked(people, filled_in.as_deref()),
                annotations: None,
                meta_json: None,
            };
            Ok(CallResult { content: vec![Content::Text(text)], structured_json: None, is_error: false, meta_json: None })
        }
    }

    /// The day that the person filled in, as JSON. With some clients the call ends here, and begins
    /// anew once there is an answer: ask first, then change things.
    fn asked(message: String) -> Result<Option<String>, Failure> {
        let form = Form { message, schema_json: crate::DAY.to_owned() };
        let inquiry = Inquiry { key: "day".to_owned(), question: Question::Form(form) };
        match ask(&[inquiry]) {
            Ok(answers) => Ok(answers.into_iter().find_map(|answer| match answer {
                Answer::Accepted(filled_in) => Some(filled_in),
                _ => None,
            })),
            Err(Refusal::Unsupported(_)) => Err(Failure::Failed("this client asks nobody".to_owned())),
            Err(_) => Err(Failure::Failed("nobody answered".to_owned())),
        }
    }
}

/// The form that the person fills in.
pub const DAY: &str = r#"{
  "type": "object",
  "properties": { "day": { "type": "string", "title": "Day", "format": "date" } },
  "required": ["day"]
}"#;

/// The booking in words; `filled_in` is JSON, and absent where the person chose no day.
pub fn booked(people: u32, filled_in: Option<&str>) -> String {
    let filled_in = filled_in.and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
    match filled_in.as_ref().and_then(|form| form["day"].as_str()) {
        Some(day) => format!("A table for {people} is booked on {day}."),
        None => "Nothing is booked: the person chose no day.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{DAY, booked};

    #[test]
    fn the_day_is_the_person_s() {
        assert_eq!(booked(2, Some(r#"{"day":"2026-01-31"}"#)), "A table for 2 is booked on 2026-01-31.");
        assert_eq!(booked(2, None), "Nothing is booked: the person chose no day.");
        assert!(serde_json::from_str::<serde_json::Value>(DAY).is_ok());
    }
}
