//! Arguments of `toolcell top`.
use clap::Args as ClapArgs;

use super::AskArgs;

/// `toolcell top`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Keys: Tab, 1, 2, 3 change the view; arrows, j and k choose a row, Enter shows all of it; s stops a call, a allows, d
declines, r allows and remembers, m mutes; p pauses; q, Esc and Ctrl-C leave. Each decision is asked about first. It
needs decide = true in [console]. Where this is not a terminal, the views are printed once.")]
pub struct TopArgs {
    #[command(flatten)]
    pub ask: AskArgs,
    /// Print the views once, as plain text
    #[arg(long, conflicts_with = "json")]
    pub once: bool,
}
