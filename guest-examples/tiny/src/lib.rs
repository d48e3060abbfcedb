//! `tiny`: the tool contract in under 5 KB, written down to the bytes: no standard library, no allocator to speak
//! of, no generated code in the component. It gives back its arguments as the JSON text they came in, so it needs
//! no parser, and it imports nothing. Good for seeing what the contract is made of, and what a call costs at least.
//!
//! Must hold nothing that brings formatting, panics with text or a general allocator into the component.
// Elsewhere than in WebAssembly there is nothing here, so that the workspace can be tested natively.
#![cfg(target_arch = "wasm32")]
#![no_std]

mod abi;
mod contract;
mod memory;

use abi::{Absent, CallResult, Content, List, Shared, Success, Text, TextContent, Tool};

static TOOLS: Shared<[Tool; 1]> = Shared::new([Tool {
    name: Text::new("tiny"),
    title: Absent::new(),
    description: Text::new("Gives back its arguments as JSON text. The smallest tool there is: for measuring."),
    input_schema_json: Text::new(r#"{"type":"object"}"#),
    output_schema_json: Absent::new(),
    hints: Absent::new(),
    icons: List::empty(),
    meta_json: Absent::new(),
}]);

static CONTENT: Shared<Content> = Shared::new(Content::text(TextContent {
    text: Text::new(""),
    annotations: Absent::new(),
    meta_json: Absent::new(),
}));

static ANSWER: Shared<Success> = Shared::new(Success::new(CallResult {
    content: List::empty(),
    structured_json: Absent::new(),
    is_error: 0,
    meta_json: Absent::new(),
}));

static LIST: Shared<List<Tool>> = Shared::new(List::empty());

fn list_tools() -> *const List<Tool> {
    LIST.put(|list| *list = List::new(TOOLS.address().cast(), 1))
}

fn call_tool(_name: Text, arguments_json: Text) -> *const Success {
    let content = CONTENT.put(|content| content.put_text(arguments_json));
    ANSWER.put(|answer| answer.put_content(List::new(content, 1)))
}
