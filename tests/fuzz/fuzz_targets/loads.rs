//! Components that stand for more than their bytes: every section of the binary format, nested and
//! multiplied. Each is refused at once, or the engine reads it in bounded time and memory. A
//! component that the counting calls broken is broken for the engine as well.
//!
//! An input that begins like a component is one. Any other is a row of choices for the generator.
//! Findings are time and memory as much as crashes. The run ends at an input that takes too long,
//! or that asks too much of the allocator.
//!
//! The counting is included by its files, without the crate that runs guests, and the engine
//! without its compiler.
#![no_main]
#![allow(dead_code, reason = "what the crate of these files uses besides")]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use rustix::time::{ClockId, clock_gettime};
use wasmparser::{Validator, WasmFeatures};
use wasmtime_environ::component::{ComponentTypesBuilder, Translator};
use wasmtime_environ::{ScopeVec, Tunables};

#[path = "../../../host/guest/src/load/survey/tests/encode.rs"]
mod encode;
#[path = "../../../host/guest/src/load/survey/tests/generate.rs"]
mod generate;
#[allow(unused_imports, reason = "what the sandbox tells others of it")]
#[path = "../../../host/guest/src/load/survey/mod.rs"]
mod survey;

/// The constant of their own crate that the files above name.
mod engine {
    pub(crate) const INSTANCE_BYTES_MAX: usize = 1 << 20;
}

/// Bound on counting, in CPU time, since on a busy machine wall time is longer. Counting the
/// largest generated input takes less, with every check on.
const COUNTED_WITHIN: Duration = Duration::from_secs(4);

/// Choices, one for each byte of an input. After the last byte every choice is the first.
struct Bytes<'a>(&'a [u8]);

impl generate::Dice for Bytes<'_> {
    fn below(&mut self, bound: u64) -> u64 {
        let Some((byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        u64::from(*byte) % bound
    }
}

fuzz_target!(|data: &[u8]| {
    let bytes = if data.starts_with(b"\0asm") { data.to_vec() } else { generate::component(&mut Bytes(data)) };
    let began = cpu_time();
    let counted = survey::component(&bytes).and_then(|_| survey::check_code(&bytes));
    let took = cpu_time().saturating_sub(began);
    assert!(took < COUNTED_WITHIN, "{took:?} to count {} bytes", bytes.len());
    match counted {
        Err(survey::Refusal::Excess(_)) => {}
        Err(survey::Refusal::Broken(reason)) => assert!(!is_read(&bytes), "the engine takes it, though {reason}"),
        // The engine may accept or refuse it, within the time and the memory of a run.
        Ok(()) => drop(is_read(&bytes)),
    }
});

/// CPU time that this thread has taken so far.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// True if the engine reads it: it parses, it is valid, its functions' bodies too, and everything
/// that it instantiates can be written out.
fn is_read(bytes: &[u8]) -> bool {
    // Below, the engine leaves bodies to its compiler.
    let is_valid = Validator::new_with_features(features()).validate_all(bytes).is_ok();
    if !is_valid || !bytes.starts_with(&encode::COMPONENT) {
        return is_valid;
    }
    let tunables = Tunables::default_u64();
    let scope = ScopeVec::new();
    let mut validator = Validator::new_with_features(features());
    let mut types = ComponentTypesBuilder::new(&validator);
    Translator::new(&tunables, &mut validator, &mut types, &scope).translate(bytes).is_ok()
}

/// The features of a host: those that no guest language needs are off.
fn features() -> WasmFeatures {
    let off = WasmFeatures::MEMORY64 | WasmFeatures::THREADS | WasmFeatures::GC;
    WasmFeatures::default() & !off
}
