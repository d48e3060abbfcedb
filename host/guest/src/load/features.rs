//! The features of WebAssembly that are off in the engine, each with its name and the way to build
//! without it.
use wasmparser::{Validator, WasmFeatures};

use super::error::LoadError;

/// Bytes of a component that is searched for features. It is validated once for each feature, which
/// takes some seconds for the largest interpreters.
const BYTES_MAX: usize = 32 << 20;

/// A feature that is off.
#[derive(Debug, PartialEq, Eq)]
pub struct OffFeature {
    flags: WasmFeatures,
    /// In the plural, such as "64-bit memories".
    pub(super) name: &'static str,
    /// The way to build without it.
    pub(super) without: &'static str,
    /// True if its types also need [`REFERENCES`].
    has_references: bool,
}

/// References that need a garbage collector.
const REFERENCES: WasmFeatures = WasmFeatures::GC_TYPES;

/// All features that are off.
const OFF: [OffFeature; 13] = [
    OffFeature {
        flags: WasmFeatures::EXCEPTIONS.union(WasmFeatures::LEGACY_EXCEPTIONS),
        name: "WebAssembly exceptions",
        without: "build C++ with -fno-exceptions, C without setjmp (no -fwasm-exceptions, no -mllvm -wasm-enable-sjlj), Rust with panic = \"abort\"",
        has_references: false,
    },
    OffFeature {
        flags: WasmFeatures::THREADS.union(WasmFeatures::SHARED_EVERYTHING_THREADS),
        name: "threads and shared memories",
        without: "build without -pthread, -matomics and targets that end in -threads",
        has_references: false,
    },
    OffFeature {
        flags: WasmFeatures::MEMORY64,
        name: "64-bit memories",
        without: "build for a target of wasm32, not of wasm64",
        has_references: false,
    },
    OffFeature {
        flags: WasmFeatures::GC,
        name: "garbage-collected types",
        without: "build with a compiler that brings its own memory management, or with its linear-memory target",
        has_references: true,
    },
    OffFeature {
        flags: REFERENCES,
        name: "references to the host's values (externref)",
        without: "build with -mno-reference-types, in Rust with -C target-feature=-reference-types",
        has_references: false,
    },
    OffFeature {
        flags: WasmFeatures::WIDE_ARITHMETIC,
        name: "wide arithmetic",
        without: "build without -mwide-arithmetic, in Rust without -C target-feature=+wide-arithmetic",
        has_references: false,
    },
    OffFeature {
        flags: WasmFeatures::STACK_SWITCHING,
        name: "stack switching",
        without: "build without it",
        has_references: true,
    },
    OffFeature {
        flags: WasmFeatures::CUSTOM_PAGE_SIZES,
        name: "memories with pages of other sizes",
        without: "link without --page-size",
        has_references: false,
    },
    OffFeature {
        flags: WasmFeatures::MEMORY_CONTROL,
        name: "memory control",
        without: "build without memory.discard",
        has_references: false,
    },
    OffFeature {
        flags: WasmFeatures::CM_ASYNC_STACKFUL,
        name: "async functions without a callback",
        without: "build with a toolchain that lifts async functions with a callback, as wit-bindgen, componentize-py and componentize-qjs do",
        has_references: false,
    },
    OffFeature {
        flags: WasmFeatures::CM_MORE_ASYNC_BUILTINS,
        name: "optional async built-ins (reads and writes that wait, cancellations that do not)",
        without: "build with bindings that read and write streams asynchronously and wait for a cancellation, as wit-bindgen does",
        has_references: false,
    },
    OffFeature {
        flags: WasmFeatures::CM_THREADING,
        name: "threads of the component model",
        without: "build without threads",
        has_references: false,
    },
    OffFeature {
        flags: WasmFeatures::CM_ERROR_CONTEXT,
        name: "error contexts",
        without: "describe errors by a string or a variant in place of an error-context",
        has_references: false,
    },
];

/// Replaces the error of a component that the engine refused by one that names the disabled
/// features it uses, if those are the cause. Only for bytes whose parts are counted and within
/// their bounds.
pub(super) fn named(error: LoadError, bytes: &[u8]) -> LoadError {
    match error {
        LoadError::Invalid { reason } if bytes.len() <= BYTES_MAX => match needed(bytes) {
            features if features.is_empty() => LoadError::Invalid { reason },
            features => LoadError::Features(features),
        },
        other => other,
    }
}

/// The disabled features that this component needs, if it validates with all of them on.
fn needed(bytes: &[u8]) -> Vec<&'static OffFeature> {
    let all = OFF.iter().fold(WasmFeatures::default(), |all, feature| all.union(feature.flags));
    let is_valid = |features| Validator::new_with_features(features).validate_all(bytes).is_ok();
    if !is_valid(all) {
        return Vec::new();
    }
    let mut needed: Vec<_> = OFF.iter().filter(|feature| !is_valid(all.difference(feature.flags))).collect();
    if needed.iter().any(|feature| feature.has_references) {
        needed.retain(|feature| feature.flags != REFERENCES);
    }
    needed
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::load::component::ToolComponent;
    use crate::load::sandbox::Sandbox;
    use toolcell_wall::pool_sizes::SandboxOptions;

    /// A component with this module, and with a tool.
    fn with_module(module: &str) -> Vec<u8> {
        let tool = "(core module $m (func (export \"f\"))) (core instance $i (instantiate $m))
            (func $f (canon lift (core func $i \"f\"))) (export \"f\" (func $f))";
        wat::parse_str(format!("(component (core module {module}) {tool})")).unwrap()
    }

    #[test]
    fn each_feature_that_is_off_is_named_with_the_way_to_build_without_it() {
        let sandbox = Sandbox::new(SandboxOptions { calls_max: 1, ..SandboxOptions::default() }).unwrap();
        for (module, names, hint) in [
            (
                "(tag $t) (func (block $h (try_table (catch_all $h) (throw $t)) (unreachable)))",
                "WebAssembly exceptions",
                "-fno-exceptions",
            ),
            ("(tag $t) (func try throw $t catch_all end)", "WebAssembly exceptions", "-fno-exceptions"),
            ("(memory 1 1 shared)", "threads and shared memories", "-pthread"),
            ("(memory 1) (func i32.const 0 i32.atomic.load drop)", "threads and shared memories", "-matomics"),
            ("(memory i64 1)", "64-bit memories", "wasm32"),
            ("(type (struct (field i32)))", "garbage-collected types", "linear-memory"),
            ("(func (param externref))", "references to the host's values (externref)", "-mno-reference-types"),
            ("(func (result i64 i64) i64.const 1 i64.const 2 i64.mul_wide_u)", "wide arithmetic", "-mwide-arithmetic"),
            ("(type $f (func)) (type (cont $f))", "stack switching", "without it"),
            ("(memory 1 (pagesize 1))", "memories with pages of other sizes", "--page-size"),
            (
                "(memory i64 1) (tag $t) (func throw $t) (func (param externref))",
                "WebAssembly exceptions, 64-bit memories, references to the host's values (externref)",
                "-fno-exceptions",
            ),
        ] {
            let bytes = with_module(module);
            let Err(error) = ToolComponent::load(&sandbox, &bytes) else { panic!("{module} loads") };
            assert_eq!(error.to_string(), format!("uses {names}, which the engine has off"), "{module}");
            assert!(error.hint().contains(hint), "{module}: {}", error.hint());
            assert!(!error.to_string().contains('\n'));
        }
    }

    #[test]
    fn what_is_not_valid_whatever_is_on_is_told_in_the_engines_words() {
        assert_eq!(needed(&with_module("(func (result i32) i64.const 0)")), Vec::<&OffFeature>::new());
        assert_eq!(needed(&with_module("(memory i64 1) (func (result i32) i64.const 0)")), Vec::<&OffFeature>::new());
        // Features that are on are never named.
        let on = "(memory 1) (memory 1) (table 1 funcref) (func (param v128) return_call 0)";
        assert_eq!(needed(&with_module(on)), Vec::<&OffFeature>::new());
    }

    #[test]
    fn looking_for_features_takes_a_bounded_time() {
        let body = "i32.const 1 i32.const 2 i32.add drop ".repeat(200_000);
        let large = with_module(&format!("(memory i64 1) (func {body})"));
        let began = Instant::now();
        let names: Vec<&str> = needed(&large).iter().map(|feature| feature.name).collect();
        assert_eq!(names, ["64-bit memories"]);
        assert!(began.elapsed() < Duration::from_secs(20), "{:?} for {} bytes", began.elapsed(), large.len());
        let refused = LoadError::Invalid { reason: "words".to_owned() };
        assert!(matches!(named(refused, &vec![0; BYTES_MAX + 1]), LoadError::Invalid { .. }));
    }
}
