//! Attempts of a process behind walls, each with how the kernel answers it. Must not hold: links.
//!
//! An attempt runs in a process of its own, which this binary starts with `CHILD` as its first
//! argument: it enters, seals, and tries one thing.
//!
//! | file | holds |
//! |---|---|
//! | `rows.rs` | the table: name, walls left away, attempt, expected end |
//! | `files.rs`, `network.rs`, `processes.rs`, `memory.rs` | attempts that take more than a call |
//! | `site.rs` | what an attempt finds in its process |
//! | `stage.rs` | what the other side holds: folders, listeners, a secret |
//! | `reports.rs` | reports of kernels that give less |
//! | `syscalls.rs` | any system call |
//!
//! Promise: native code has the rights of its group only.
//! Promise: behind a wall only the mounts are reached.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]
#![cfg_attr(not(target_os = "linux"), allow(unused_crate_dependencies))]

#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
mod reports;
#[cfg(target_os = "linux")]
mod rows;
#[cfg(target_os = "linux")]
mod site;
#[cfg(target_os = "linux")]
mod stage;
#[cfg(target_os = "linux")]
mod syscalls;

fn main() -> std::process::ExitCode {
    #[cfg(target_os = "linux")]
    return linux::main();
    #[cfg(not(target_os = "linux"))]
    {
        let rights = toolcell_walls::kernel::Rights {
            link: None,
            folders: &[],
            memory_bytes_max: 0,
            threads_max: None,
            files_max: 0,
            file_bytes_max: None,
            without: &[],
        };
        let report = toolcell_walls::kernel::enter(&rights).seal();
        assert_eq!(report.missing().count(), toolcell_walls::kernel::Wall::ALL.len());
        std::process::ExitCode::SUCCESS
    }
}
