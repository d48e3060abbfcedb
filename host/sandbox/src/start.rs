//! Start code: what a component does when it is instantiated, before any function of it is called. For an instance made ahead that
//! is before there is a call, so none is recorded or approved: host functions are errors there that name them.
use std::sync::{Arc, OnceLock};

use toolcell_policy::Limits;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{InstancePre, Linker, LinkerInstance, ResourceType};

use crate::caller::NoCaller;
use crate::engine;
use crate::reach::Reach;
use crate::state::CallState;

/// The host function that start code calls.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its start code calls {function}, which reaches nothing before a call is recorded and approved")]
pub struct StartCall {
    function: String,
}

impl StartCall {
    /// Start code that called the host, though not when it was tried: it does so now and then.
    pub(crate) fn of_the_host() -> Self {
        Self { function: "the host".to_owned() }
    }
}

/// What is known of a component's start code.
#[derive(Debug, Default)]
pub(crate) struct Start {
    /// It was tried, and called nothing.
    alone: OnceLock<()>,
    /// What it called, once it was tried or later.
    call: OnceLock<StartCall>,
}

impl Start {
    /// Whether it may run before there is a call; `None` where that was not tried yet.
    pub(crate) fn is_alone(&self) -> Option<bool> {
        if self.call.get().is_some() { Some(false) } else { self.alone.get().map(|()| true) }
    }

    /// Notes what was found. Gives it back where it is a call, and the first.
    pub(crate) fn found(&self, found: Result<(), StartCall>) -> Option<&StartCall> {
        match found {
            Ok(()) => {
                // Others may have tried it as well, and found the same.
                let _ = self.alone.set(());
                None
            }
            Err(call) => self.call.set(call).is_ok().then(|| self.call.get()).flatten(),
        }
    }
}

/// Runs the start code of one instance, whose every import is an error. Code that ends without one always does the same: it has
/// nothing to learn anything from.
///
/// # Errors
/// It did not end well for another reason.
pub(crate) async fn try_alone(pre: &InstancePre<CallState>, limits: &Limits) -> wasmtime::Result<Result<(), StartCall>> {
    let component = pre.component();
    let mut linker = Linker::new(pre.engine());
    let ty = component.component_type();
    for (name, item) in ty.imports(pre.engine()) {
        refuse(&mut linker.root(), (name, name), &item.ty, pre)?;
    }
    let mut store = engine::store(pre.engine(), limits, &Reach::sealed(""), Arc::new(NoCaller))?;
    match linker.instantiate_async(&mut store, component).await {
        Ok(_) => Ok(Ok(())),
        Err(error) => error.downcast::<StartCall>().map(Err),
    }
}

/// Defines one import, and all that is in it: functions as errors that have their full name.
fn refuse(
    linker: &mut LinkerInstance<'_, CallState>,
    (name, full): (&str, &str),
    item: &ComponentItem,
    pre: &InstancePre<CallState>,
) -> wasmtime::Result<()> {
    match item {
        ComponentItem::ComponentFunc(_) => {
            let call = StartCall { function: full.to_owned() };
            linker.func_new(name, move |_, _, _, _| Err(call.clone().into()))
        }
        ComponentItem::ComponentInstance(instance) => {
            let mut inner = linker.instance(name)?;
            for (function, item) in instance.exports(pre.engine()) {
                refuse(&mut inner, (function, &format!("{full}#{function}")), &item.ty, pre)?;
            }
            Ok(())
        }
        ComponentItem::Resource(_) => linker.resource(name, ResourceType::host::<()>(), |_, _| Ok(())),
        _ => Ok(()),
    }
}
