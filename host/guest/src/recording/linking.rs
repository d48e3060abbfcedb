//! A component's imports, each with a function that records or replays.
use std::sync::Arc;

use wasmtime::Store;
use wasmtime::component::types::{ComponentInstance, ComponentItem};
use wasmtime::component::{
    Component, ComponentExportIndex, Instance, InstancePre, Linker, LinkerInstance, ResourceType,
};

use super::relay::{PACKAGE, interface_name, relay_name};
use super::{direct, player, recorder, tape_name};
use crate::wasi::state::CallState;

/// The store of a guest that calls the host.
pub(super) type GuestStore<'s> = wasmtime::StoreContextMut<'s, CallState>;

/// A component whose calls cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotRecordable {
    /// It imports a function that the relay does not have.
    #[error("calls cannot be recorded: the component imports \"{0}\", which recordings do not have yet")]
    Import(String),
    /// The engine refuses a link.
    #[error("calls cannot be recorded: {0}")]
    Engine(String),
}

impl From<wasmtime::Error> for NotRecordable {
    fn from(error: wasmtime::Error) -> Self {
        Self::Engine(crate::engine::errors::one_line(&error))
    }
}

/// A component linked to functions that record or replay.
pub(crate) struct RecordingLink {
    component: InstancePre<CallState>,
    /// The relay, if it records.
    relay: Option<InstancePre<CallState>>,
}

/// A function of a component's imports.
pub(super) struct LinkedFunction {
    /// Its name on a tape.
    pub(super) name: String,
    /// The relay's function of the same type, if calls are recorded.
    pub(super) relayed: Option<ComponentExportIndex>,
}

/// The most types of handles that a component imports. WASI 0.2 has some thirty.
const HANDLE_TYPES_MAX: u32 = 256;

/// The number of a type of handles that the linker gave to an instance.
pub(super) fn handle_type(ty: &ResourceType) -> Option<u32> {
    (0..HANDLE_TYPES_MAX).find(|number| ResourceType::host_dynamic(*number) == *ty)
}

impl RecordingLink {
    /// Links a component so that its calls are recorded. They reach the host through this relay.
    ///
    /// # Errors
    /// [`NotRecordable`].
    pub(crate) fn recording(relay: &InstancePre<CallState>, component: &Component) -> Result<Self, NotRecordable> {
        let linker = Linking::of(component, Some(relay.component()))?;
        Ok(Self { component: linker.instantiate_pre(component)?, relay: Some(relay.clone()) })
    }

    /// Links a component so that its calls are answered from a tape. It reaches nothing.
    ///
    /// # Errors
    /// [`NotRecordable`].
    pub(crate) fn replaying(component: &Component) -> Result<Self, NotRecordable> {
        let linker = Linking::of(component, None)?;
        Ok(Self { component: linker.instantiate_pre(component)?, relay: None })
    }

    /// Makes an instance for one call.
    pub(crate) async fn instantiate(&self, store: &mut Store<CallState>) -> wasmtime::Result<Instance> {
        self.component.instantiate_async(store).await
    }

    /// The relay, if it records.
    pub(super) fn relay(&self) -> Option<&InstancePre<CallState>> {
        self.relay.as_ref()
    }
}

struct Linking<'c> {
    component: &'c Component,
    relay: Option<&'c Component>,
    /// The types of its handles, each with its number as its place.
    handles: Vec<ResourceType>,
}

impl<'c> Linking<'c> {
    fn of(component: &'c Component, relay: Option<&'c Component>) -> Result<Linker<CallState>, NotRecordable> {
        let mut linker = Linker::new(component.engine());
        let mut linking = Self { component, relay, handles: Vec::new() };
        for (name, item) in component.component_type().imports(component.engine()) {
            match &item.ty {
                ComponentItem::ComponentInstance(instance) => {
                    linking.interface(&mut linker.instance(name)?, name, instance)?;
                }
                ComponentItem::ComponentFunc(_) => return Err(NotRecordable::Import(name.to_owned())),
                ComponentItem::Resource(ty) => linking.resource(&mut linker.root(), name, *ty)?,
                _ => {}
            }
        }
        Ok(linker)
    }

    fn interface(
        &mut self,
        linker: &mut LinkerInstance<'_, CallState>,
        interface: &str,
        instance: &ComponentInstance,
    ) -> Result<(), NotRecordable> {
        for (name, item) in instance.exports(self.component.engine()) {
            match &item.ty {
                // An async function of WASI 0.3.
                ComponentItem::ComponentFunc(function) if function.async_() => {
                    return Err(NotRecordable::Import(tape_name(interface, name)));
                }
                ComponentItem::ComponentFunc(_) => self.function(linker, interface, name)?,
                ComponentItem::Resource(ty) => self.resource(linker, name, *ty)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn function(
        &self,
        linker: &mut LinkerInstance<'_, CallState>,
        interface: &str,
        name: &str,
    ) -> Result<(), NotRecordable> {
        let tape_name = tape_name(interface, name);
        let Some(relay) = self.relay else {
            let function = Arc::new(LinkedFunction { name: tape_name, relayed: None });
            return Ok(linker.func_new(name, move |store, ty, arguments, results| {
                player::answer(store, &function, &ty, player::Values { arguments, results })
            })?);
        };
        if direct::link(linker, name, &tape_name)? {
            return Ok(());
        }
        let found = relayed(relay, interface, name).ok_or_else(|| NotRecordable::Import(tape_name.clone()))?;
        let function = Arc::new(LinkedFunction { name: tape_name, relayed: Some(found) });
        Ok(linker.func_new_async(name, move |store, ty, arguments, results| {
            let function = Arc::clone(&function);
            Box::new(async move { recorder::pass(store, &function, &ty, arguments, results).await })
        })?)
    }

    fn resource(
        &mut self,
        linker: &mut LinkerInstance<'_, CallState>,
        name: &str,
        ty: ResourceType,
    ) -> Result<(), NotRecordable> {
        let place = self.handles.iter().position(|known| *known == ty).unwrap_or_else(|| {
            self.handles.push(ty);
            self.handles.len() - 1
        });
        let number = u32::try_from(place).ok().filter(|number| *number < HANDLE_TYPES_MAX);
        let number = number.ok_or_else(|| NotRecordable::Import(name.to_owned()))?;
        let ty = ResourceType::host_dynamic(number);
        if self.relay.is_some() {
            linker.resource_async(name, ty, |store, handle| Box::new(recorder::dropped(store, handle)))?;
        } else {
            linker.resource(name, ty, player::dropped)?;
        }
        Ok(())
    }
}

/// The relay's function for a function of an interface.
fn relayed(relay: &Component, interface: &str, function: &str) -> Option<ComponentExportIndex> {
    let export = format!("{PACKAGE}/{}", relay_name(interface_name(interface)));
    let (_, interface) = relay.get_export(None, &export)?;
    relay.get_export(Some(&interface), relay_name(function)).map(|(_, function)| function)
}
