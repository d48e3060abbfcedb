//! `echo` for ACT: a tool as its SDK for Rust has tools written.

use act_sdk::prelude::*;

#[act_component]
mod component {
    use super::*;

    #[act_tool(description = "Gives back its text", read_only)]
    fn echo(text: String) -> ActResult<String> {
        Ok(text)
    }
}
