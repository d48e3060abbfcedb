//! Systems that are not Linux: they give no wall.

use super::report::Report;
use super::rights::Rights;

/// A process that has entered; here, one without a wall.
#[derive(Debug)]
pub struct Entered {
    report: Report,
}

/// Builds nothing, and says so.
pub fn enter(_: &Rights<'_>) -> Entered {
    let reason = format!("the walls need Linux, this is {}", std::env::consts::OS);
    Entered { report: Report::of_none(&reason) }
}

impl Entered {
    /// The report: nothing stands.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Builds nothing, and says so.
    pub fn seal(self) -> Report {
        self.report
    }
}

/// Closes nothing: no process is started for components there.
pub fn close_inherited() -> std::io::Result<()> {
    Ok(())
}

/// Changes nothing: processes end by signals there.
pub fn end_on_abort() -> std::io::Result<()> {
    Ok(())
}

/// Changes nothing: the system's allocator decides.
pub fn free_large_blocks() {}

/// Nothing: the system's allocator does not say.
pub fn heap_bytes() -> Option<u32> {
    None
}

/// Changes nothing: the system's allocator decides.
pub fn trim_heap() {}

/// True: what the system has is found by reserving it.
pub fn has_address_space(_: u64) -> bool {
    true
}
