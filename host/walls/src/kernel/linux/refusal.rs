//! The kernel's answers when a wall does not stand.

use std::{fmt, io};

/// A step of a wall that the kernel refused.
#[derive(Debug)]
pub(super) struct Refusal(String);

impl Refusal {
    /// A wall that cannot be built, in words.
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    /// A system call that the kernel itself never refuses with this error: an earlier filter does.
    pub(super) fn filtered(call: &str, error: &io::Error) -> Self {
        let by = match error.raw_os_error() {
            Some(libc::EPERM) => "; a filter of system calls around the host refuses it (systemd: SystemCallFilter=)",
            _ => "",
        };
        Self(format!("{call}: {error}{by}"))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Names the step that failed.
pub(super) trait WallStep<T> {
    /// The value, or a refusal that names `step`.
    fn step(self, step: &str) -> Result<T, Refusal>;
}

impl<T, E: Into<io::Error>> WallStep<T> for Result<T, E> {
    fn step(self, step: &str) -> Result<T, Refusal> {
        self.map_err(|error| Refusal(format!("{step}: {}", error.into())))
    }
}
