//! Start code: it runs when a component is instantiated, before any of its functions is called. A
//! prewarmed instance runs it before there is a call, so no call is recorded or approved for it.
//! Host functions return errors there.
//!
//! Promise: nothing is reached before a call is recorded and approved.
use std::sync::Arc;

use toolcell_policy::Limits;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{InstancePre, Linker, LinkerInstance, ResourceType};

use crate::run::store::{self, Terms};
use crate::wasi::guest_grants::GuestGrants;
use crate::wasi::state::CallState;
use toolcell_wall::caller::NoCaller;
use toolcell_wall::start_call::StartCall;

/// Runs the start code of one instance with every import replaced by an error. Code that ends
/// without calling one learned nothing from the host, so it always does the same.
///
/// # Errors
/// It failed for another reason.
pub(crate) async fn try_alone(
    pre: &InstancePre<CallState>,
    limits: &Limits,
) -> wasmtime::Result<Result<(), StartCall>> {
    let component = pre.component();
    let mut linker = Linker::new(pre.engine());
    let ty = component.component_type();
    for (name, item) in ty.imports(pre.engine()) {
        refuse(&mut linker.root(), ImportName { name, full: name }, &item.ty, pre)?;
    }
    let mut store = store::fresh(
        pre.engine(),
        &Terms { limits, capabilities: &GuestGrants::sealed(""), caller: Arc::new(NoCaller) },
    )?;
    match linker.instantiate_async(&mut store, component).await {
        Ok(_) => Ok(Ok(())),
        Err(error) => error.downcast::<StartCall>().map(Err),
    }
}

/// An import by its name in the linker, and by its full name, such as
/// `wasi:cli/environment@0.2.6#get-arguments`.
#[derive(Clone, Copy)]
struct ImportName<'a> {
    name: &'a str,
    full: &'a str,
}

/// Defines one import and everything in it. Its functions return errors with their full names.
fn refuse(
    linker: &mut LinkerInstance<'_, CallState>,
    import: ImportName<'_>,
    item: &ComponentItem,
    pre: &InstancePre<CallState>,
) -> wasmtime::Result<()> {
    let ImportName { name, full } = import;
    match item {
        ComponentItem::ComponentFunc(_) => {
            let call = StartCall::of(full);
            linker.func_new(name, move |_, _, _, _| Err(call.clone().into()))
        }
        ComponentItem::ComponentInstance(instance) => {
            let mut inner = linker.instance(name)?;
            for (function, item) in instance.exports(pre.engine()) {
                let full = format!("{full}#{function}");
                refuse(&mut inner, ImportName { name: function, full: &full }, &item.ty, pre)?;
            }
            Ok(())
        }
        ComponentItem::Resource(_) => linker.resource(name, ResourceType::host::<()>(), |_, _| Ok(())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, LazyLock, Mutex};

    use super::*;
    use crate::load::component::ToolComponent;
    use crate::load::sandbox::Sandbox;
    use crate::run::instance::GuestInstance;
    use crate::run::warm::{PrewarmBudget, PrewarmSetup, PrewarmedInstances, PrewarmedTool};
    use toolcell_wall::pool_sizes::SandboxOptions;

    static SANDBOX: LazyLock<Sandbox> = LazyLock::new(|| Sandbox::new(SandboxOptions::default()).unwrap());

    /// Start code that calls `call`, from one import.
    #[derive(Clone, Copy)]
    struct StartCode {
        interface: &'static str,
        function: &'static str,
        ty: &'static str,
        call: &'static str,
    }

    /// A component with this start code.
    fn component(code: StartCode) -> Arc<ToolComponent> {
        let StartCode { interface, function, ty, call } = code;
        let result = if ty.contains("u64") { "(result i64)" } else { "" };
        let text = format!(
            r#"(component
                (import "{interface}" (instance $host (export "{function}" (func {ty}))))
                (alias export $host "{function}" (func $lifted))
                (core func $lowered (canon lower (func $lifted)))
                (core module $module
                    (import "host" "call" (func $call {result}))
                    (func $start {call})
                    (start $start)
                    (func (export "run")))
                (core instance $instance (instantiate $module (with "host" (instance (export "call" (func $lowered))))))
                (func (export "run") (canon lift (core func $instance "run"))))"#
        );
        Arc::new(ToolComponent::load(&SANDBOX, &wat::parse_str(text).unwrap()).unwrap())
    }

    const CLOCK: &str = "wasi:clocks/monotonic-clock@0.2.12";
    const NOW: StartCode =
        StartCode { interface: CLOCK, function: "now", ty: "(result u64)", call: "(drop (call $call))" };
    const ALONE: StartCode = StartCode { call: "", ..NOW };

    #[tokio::test]
    async fn each_host_function_is_an_error_that_names_it() {
        let table = [
            (NOW, "wasi:clocks/monotonic-clock@0.2.12#now"),
            (
                StartCode { interface: "wasi:random/random@0.2.12", function: "get-random-u64", ..NOW },
                "wasi:random/random@0.2.12#get-random-u64",
            ),
            (
                StartCode { interface: "wasi:random/insecure@0.2.12", function: "get-insecure-random-u64", ..NOW },
                "wasi:random/insecure@0.2.12#get-insecure-random-u64",
            ),
        ];
        for (code, name) in table {
            let found = try_alone(component(code).pre(), &Limits::default()).await.unwrap();
            let text =
                format!("its start code calls {name}, which reaches nothing before a call is recorded and approved");
            assert_eq!(found.unwrap_err().to_string(), text);
        }
        assert_eq!(try_alone(component(ALONE).pre(), &Limits::default()).await.unwrap(), Ok(()));
    }

    #[tokio::test]
    async fn an_instance_whose_start_code_calls_the_host_all_the_same_has_nothing_and_serves_no_call() {
        let limits = Limits::default();
        for (code, alone) in [(NOW, false), (ALONE, true)] {
            let component = component(code);
            let granted = GuestGrants::sealed("granted");
            let terms = Terms { limits: &limits, capabilities: &granted, caller: Arc::new(NoCaller) };
            let slot = SANDBOX.slots().take_prewarm(component.slot_units()).unwrap();
            let mut instance = GuestInstance::empty(&component, &terms, slot).unwrap();
            instance.store.data_mut().starting();
            instance.instantiate(&component).await.unwrap();
            assert_eq!(instance.store.data_mut().started(), alone);
            assert_eq!(
                Arc::ptr_eq(instance.store.data().capabilities(), &granted),
                alone,
                "its rights are gone at the first call"
            );
        }
    }

    /// Prewarms instances; returns true if one is ready, and the notices.
    async fn made(code: StartCode) -> (bool, Vec<String>) {
        let component = component(code);
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let made = Arc::new(AtomicUsize::new(0));
        let hears = Arc::clone(&said);
        let counts = Arc::clone(&made);
        let ahead = PrewarmSetup {
            budget: PrewarmBudget::new(1 << 30),
            spawn: Arc::new(move |work| {
                counts.fetch_add(1, Ordering::SeqCst);
                drop(tokio::spawn(work));
            }),
            notify: Arc::new(move |name, call| hears.lock().unwrap().push(format!("{name}: {call}"))),
        };
        let budget = Arc::clone(&ahead.budget);
        let warm = PrewarmedInstances::new(
            PrewarmedTool { component, limits: Limits::default(), capabilities: GuestGrants::sealed("tool"), count: 2 },
            ahead,
        );
        for _ in 0..100 {
            drop(warm.take());
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
        }
        let said = said.lock().unwrap().clone();
        assert_eq!(said.is_empty(), made.load(Ordering::SeqCst) > 3, "what is known is not tried again");
        drop(budget);
        (warm.take().is_some(), said)
    }

    #[tokio::test]
    async fn nothing_is_made_ahead_of_a_component_whose_start_code_calls_the_host() {
        let (some, said) = made(NOW).await;
        assert!(!some);
        let text = "tool: its start code calls wasi:clocks/monotonic-clock@0.2.12#now, which reaches nothing before a call is \
                    recorded and approved";
        assert_eq!(said, [text]);
        let (some, said) = made(ALONE).await;
        assert!(some && said.is_empty(), "{said:?}");
    }
}
