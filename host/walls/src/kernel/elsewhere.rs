//! Systems other than Linux: no wall stands.

use super::report::Report;
use super::rights::Rights;

/// A process that has entered; here, one without a wall.
#[derive(Debug)]
pub struct Entered {
    report: Report,
}

/// Builds nothing, and reports that.
pub fn enter(_: &Rights<'_>) -> Entered {
    let reason = format!("the walls need Linux, this is {}", std::env::consts::OS);
    Entered { report: Report::of_none(&reason) }
}

impl Entered {
    /// The report: every wall is missing.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Builds nothing, and reports that.
    pub fn seal(self) -> Report {
        self.report
    }
}

/// Closes nothing: no process is started for components there.
pub fn close_inherited() -> std::io::Result<()> {
    Ok(())
}

/// Changes nothing: what the standard library opens is closed in other programs anyhow.
pub fn keep_descriptors() -> std::io::Result<()> {
    Ok(())
}

/// Changes nothing: processes end by signals there.
pub fn end_on_abort() -> std::io::Result<()> {
    Ok(())
}

/// Changes nothing: the system's allocator decides.
pub fn free_large_blocks() {}

/// `None`: the system's allocator does not report it.
pub fn heap_bytes() -> Option<u32> {
    None
}

/// Changes nothing: the system's allocator decides.
pub fn trim_heap() {}

/// True: reserving it shows what the system has.
pub fn has_address_space(_: u64) -> bool {
    true
}
