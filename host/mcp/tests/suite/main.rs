//! The protocol as a client sees it: frames in, frames out, through a connection (sans-IO) and
//! through the stdio transport. One binary; one module per promise.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod asking;
mod batches;
mod calls;
mod definitions;
mod eras;
mod features;
mod generations;
mod host;
mod listing;
mod malformed;
mod results;
mod stdio;
mod subscriptions;
mod watching;
