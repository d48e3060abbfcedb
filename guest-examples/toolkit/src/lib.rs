//! What the example tools share: the tool contract as Rust types, and short ways to say common things with them.
//! Must hold nothing that only one tool needs.
//!
//! A tool is a type that implements [`Guest`], made the component's export by [`export!`]:
//!
//! ```
//! use toolkit::{CallResult, Failure, Guest, Tool};
//!
//! struct Shout;
//!
//! #[derive(serde::Deserialize)]
//! struct Arguments {
//!     text: String,
//! }
//!
//! impl Guest for Shout {
//!     fn list_tools() -> Vec<Tool> {
//!         let schema = r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;
//!         vec![Tool::new("shout", "Puts a text into capitals.", schema).read_only()]
//!     }
//!
//!     fn call_tool(name: String, arguments_json: String) -> Result<CallResult, Failure> {
//!         match name.as_str() {
//!             "shout" => {
//!                 let arguments: Arguments = toolkit::arguments(&arguments_json)?;
//!                 Ok(CallResult::text(arguments.text.to_uppercase()))
//!             }
//!             other => Err(Failure::unknown_tool(other)),
//!         }
//!     }
//! }
//!
//! toolkit::export!(Shout);
//!
//! let result = Shout::call_tool("shout".to_owned(), r#"{"text":"hello"}"#.to_owned())?;
//! assert_eq!(result.only_text(), Some("HELLO"));
//! # Ok::<(), toolkit::Failure>(())
//! ```

pub mod bindings;
pub mod calling;
mod content;
mod definition;
pub mod http;
mod outcome;
mod progress;

pub use bindings::export;
pub use bindings::exports::toolcell::mcp::tools::Guest;
pub use bindings::toolcell::mcp::types::{
    Annotations, CallResult, Content, EmbeddedResource, Failure, Hints, Icon, MediaContent, ResourceBody, ResourceLink,
    Role, TextContent, Theme, Tool,
};
pub use outcome::arguments;
pub use progress::{pass_progress, report_progress};
