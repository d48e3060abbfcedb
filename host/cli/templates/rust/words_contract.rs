//! The component's exports are in `component`, for WebAssembly alone; what they do is in
//! `counts.rs`, which is tested natively.

#[cfg(any(test, target_family = "wasm"))]
mod counts;

#[cfg(target_family = "wasm")]
mod component {
    wit_bindgen::generate!({ world: "tool-component" });

    use exports::toolcell::mcp::tools::Guest;
    use toolcell::mcp::types::{CallResult, Failure, Hints, Tool};

    struct Component;
    export!(Component);

    /// The arguments, as `schemas/input.json` describes them.
    #[derive(serde::Deserialize)]
    struct Arguments {
        text: String,
        #[serde(default = "one")]
        min_length: usize,
    }

    fn one() -> usize {
        1
    }

    impl Guest for Component {
        fn list_tools() -> Vec<Tool> {
            vec![Tool {
                name: "count_words".to_owned(),
                title: Some("Count words".to_owned()),
                description: "Counts the lines and words of a text, and finds its longest word.".to_owned(),
                input_schema_json: include_str!("../schemas/input.json").to_owned(),
                output_schema_json: Some(include_str!("../schemas/output.json").to_owned()),
                hints: Some(Hints {
                    read_only: Some(true),
                    destructive: Some(false),
                    idempotent: Some(true),
                    open_world: Some(false),
                }),
                icons: Vec::new(),
                meta_json: None,
            }]
        }

        fn call_tool(_name: String, arguments_json: String) -> Result<CallResult, Failure> {
            let Arguments { text, min_length } =
                serde_json::from_str(&arguments_json).map_err(|error| Failure::InvalidInput(error.to_string()))?;
            let counts = crate::counts::count(&text, min_length).map_err(Failure::InvalidInput)?;
            let mut answer = serde_json::json!({ "lines": counts.lines, "words": counts.words });
            if let Some(longest) = counts.longest {
                answer["longest"] = longest.into();
            }
            Ok(CallResult {
                content: Vec::new(), // the host adds the text of the structured answer
                structured_json: Some(answer.to_string()),
                is_error: false,
                meta_json: None,
            })
        }
    }
}
