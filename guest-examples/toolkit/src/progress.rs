//! CallNotifier the caller how far a call has come. Holds nothing else of the host's imports.

/// Says that `done` of `total` steps are done, and what is being done now. Outside a component it does nothing,
/// so that a tool's logic can be tested natively.
pub fn report_progress(done: u32, total: u32, message: &str) {
    #[cfg(target_arch = "wasm32")]
    crate::bindings::toolcell::mcp::progress::report(f64::from(done), Some(f64::from(total)), Some(message));
    #[cfg(not(target_arch = "wasm32"))]
    let _ = (done, total, message);
}

/// Says what another service says of its progress, in that service's own numbers.
pub fn pass_progress(done: f64, total: Option<f64>, message: Option<&str>) {
    #[cfg(target_arch = "wasm32")]
    crate::bindings::toolcell::mcp::progress::report(done, total, message);
    #[cfg(not(target_arch = "wasm32"))]
    let _ = (done, total, message);
}
