//! The drill: a guest that has broken out of WebAssembly, and what it gets. Each row of its tables
//! is one attack by system calls, memory or messages, against a host that has something to take.
//!
//! The attacks run in the program of the drill, `toolcell-drill`. In it a guest that imports
//! `toolcell:drill/native` has the power of native code in its sandbox process, behind its walls.
//!
//! | file | holds |
//! |---|---|
//! | `site.rs` | the host, with all that an attacker wants |
//! | `row.rs` | one attack, how it ends, and what has to hold after each |
//! | `files.rs`, `network.rs`, `processes.rs`, `rights.rs`, `memory.rs` | attacks by system calls |
//! | `messages.rs`, `doors.rs` | attacks on the host by its messages |
//! | `loads.rs` | components that cost more than their bytes, where the bounds of loading are taken away |
//! | `bounds.rs` | attacks of guests whose first wall, the bound, is taken away |
//!
//! Promise: native code has the rights of its group only.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod bounds;
mod doors;
mod files;
mod loads;
mod memory;
mod messages;
mod network;
mod processes;
mod required;
mod rights;
mod row;
mod site;

/// The least number of attacks that the tables together have.
const ROWS_MIN: usize = 60;

#[test]
fn the_tables_are_as_long_as_they_should_be_and_name_each_attack_once() {
    let tables = [files::ROWS, network::ROWS, processes::ROWS, rights::ROWS, memory::ROWS, messages::ROWS, doors::ROWS];
    let mut names: Vec<_> = tables.into_iter().flatten().map(|row| row.name).collect();
    assert!(names.len() >= ROWS_MIN, "only {} attacks", names.len());
    names.sort_unstable();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
    assert_eq!(twice, None);
}
