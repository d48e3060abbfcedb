//! The messages between the host and a sandbox process. Native code may send any bytes, so that
//! whatever comes is a message or is refused. A message that is read means the same once it is
//! written and read again. The report of a call keeps the limits of the call, whatever it says.
//!
//! The messages are included by their files, without the crate that runs guests.
#![no_main]
#![allow(dead_code, reason = "what the crate of these files uses besides")]

use libfuzzer_sys::fuzz_target;
use toolcell_policy::Limits;

use around::{bindings, caller, failure, load, loading, means_the_same, message, run, secrets, wall, wasi};
use message::{FromSandbox, ToSandbox};

#[path = "around_messages.rs"]
mod around;

/// Bytes of a reason or a backtrace that the host takes, as `message.rs` has them.
const TEXT_BYTES_MAX: usize = 64 << 10;

fuzz_target!(|data: &[u8]| {
    means_the_same::<ToSandbox>(data);
    let Some(said) = means_the_same::<FromSandbox>(data) else { return };
    let _ = said.call();
    if let FromSandbox::Ended(_, report) = said {
        let limits = Limits::default();
        let report = report.into_report(&limits);
        assert!(report.usage.fuel <= limits.fuel(), "more fuel than the call had");
        assert!(report.usage.log_bytes <= limits.log_bytes(), "more log than the call had");
        assert!(report.captured.text.len() as u64 <= limits.log_bytes() * 3, "more prints than the call had");
        let detail = report.outcome.err().map_or(0, |failure| failure.detail().len());
        assert!(detail <= TEXT_BYTES_MAX, "a detail of {detail} bytes");
    }
});
