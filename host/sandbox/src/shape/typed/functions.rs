//! The functions of a component that become tools: found in its exports, and called. Must not hold:
//! conversion between values and JSON, or descriptions.
use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use toolcell_policy::Limit;
use wasmtime::Store;
use wasmtime::component::types::{ComponentFunc, ComponentItem};
use wasmtime::component::{Component, ComponentExportIndex, Instance, Type, Val};

use super::describe::{TypeName, part_names};
use super::texts::WitTexts;
use super::ty::{Field, TyId, Types, Unsupported, json_name};
use super::{decode, encode, section};
use crate::bindings::contract;
use crate::failure::LimitReached;
use crate::shape::error::ShapeError;
use crate::shape::tool_call::{ToolAnswer, ToolCall};
use crate::wasi::state::CallState;

/// Names of one type that are noted: each interface that uses it has one.
const NAMES_PER_TYPE_MAX: usize = 64;

/// All names that are kept of a component's functions, in bytes: a name that many functions have
/// counts for each. A thousand functions of five parameters with ordinary names have a twentieth of
/// it.
const NAMES_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The separator between the name of an interface and that of a function where both are needed.
const SEPARATOR: char = '_';

/// The functions of one component, ready to be called.
pub(crate) struct Functions {
    pub(super) types: Types,
    pub(super) functions: Vec<Function>,
    left_out: Vec<LeftOut>,
    /// The component's names for its types.
    pub(super) type_names: HashMap<TyId, Vec<TypeName>>,
    /// The WIT comments that it carries.
    pub(super) texts: WitTexts,
    /// Bytes left of [`NAMES_BYTES_MAX`].
    names_left: usize,
}

/// One function that is a tool.
pub(super) struct Function {
    /// The tool's name.
    pub(super) tool: String,
    /// Without version, such as `acme:weather/forecasts`.
    pub(super) interface: Option<String>,
    /// As in WIT: `get-forecast`.
    pub(super) name: String,
    export: ComponentExportIndex,
    pub(super) parameters: Vec<Field>,
    pub(super) returns: Returns,
}

/// The result of a function.
#[derive(Clone, Copy)]
pub(super) enum Returns {
    Value(Option<TyId>),
    /// A `result` at the top: its error is the tool's.
    Result(Option<TyId>, Option<TyId>),
}

/// A function that is no tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// As in WIT.
    pub function: String,
    /// Why: "its parameter \"at\" has a resource".
    pub reason: String,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{}\" ({})", self.function, self.reason)
    }
}

/// Names take more than is left for them.
struct TooLong;

impl From<TooLong> for ShapeError {
    fn from(_: TooLong) -> Self {
        Self::Names { bytes_max: NAMES_BYTES_MAX as u64 }
    }
}

impl Function {
    /// As in WIT, with its interface: `acme:weather/forecasts.get-forecast`.
    pub(super) fn wit_name(&self) -> String {
        full_name(self.interface.as_deref(), &self.name)
    }
}

impl Functions {
    /// Finds the functions among the exports of a component of these bytes. Those that JSON cannot
    /// serve are listed, not lost.
    pub(crate) fn of(component: &Component, bytes: &[u8]) -> Result<Self, ShapeError> {
        let mut found = Self {
            types: Types::default(),
            functions: Vec::new(),
            left_out: Vec::new(),
            type_names: HashMap::new(),
            texts: section::texts(bytes),
            names_left: NAMES_BYTES_MAX,
        };
        let (ty, engine) = (component.component_type(), component.engine());
        for (name, export) in ty.exports(engine) {
            match export.ty {
                ComponentItem::ComponentFunc(function) => {
                    if let Some(index) = component.get_export_index(None, name) {
                        found.add(None, name, &function, index)?;
                    }
                }
                ComponentItem::ComponentInstance(instance) if !is_of_runtime(name) => {
                    let Some(parent) = component.get_export_index(None, name) else { continue };
                    for (inner, export) in instance.exports(engine) {
                        let ComponentItem::ComponentFunc(function) = export.ty else { continue };
                        if let Some(index) = component.get_export_index(Some(&parent), inner) {
                            found.add(Some(name), inner, &function, index)?;
                        }
                    }
                }
                _ => {}
            }
        }
        found.tell_apart()?;
        if !found.functions.is_empty() {
            found.name_types(component)?;
        }
        Ok(found)
    }

    /// Notes the component's names of the types that its functions use. A world's types are imports
    /// of its component.
    fn name_types(&mut self, component: &Component) -> Result<(), TooLong> {
        let (ty, engine) = (component.component_type(), component.engine());
        let exports = ty.exports(engine).map(|(name, export)| (name, export.ty));
        let imports = ty.imports(engine).map(|(name, import)| (name, import.ty));
        for (name, item) in exports.chain(imports) {
            match item {
                ComponentItem::Type(ty) => self.name_type(None, name, &ty)?,
                ComponentItem::ComponentInstance(instance) => {
                    for (inner, export) in instance.exports(engine) {
                        if let ComponentItem::Type(ty) = export.ty {
                            self.name_type(Some(unversioned(name)), inner, &ty)?;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Counts names that are kept, or made up of others, before they are.
    fn count(&mut self, bytes: usize) -> Result<(), TooLong> {
        self.names_left = self.names_left.checked_sub(bytes).ok_or(TooLong)?;
        Ok(())
    }

    fn name_type(&mut self, interface: Option<&str>, name: &str, ty: &Type) -> Result<(), TooLong> {
        let Some(id) = self.types.find(ty).filter(|id| self.types.get(*id).has_parts()) else { return Ok(()) };
        let named = self.type_names.get(&id).map_or(0, Vec::len);
        if named >= NAMES_PER_TYPE_MAX {
            return Ok(());
        }
        // Each of its parts is described under this name.
        let parts: usize = part_names(self.types.get(id)).iter().map(|part| name.len() + part.len()).sum();
        self.count(interface.map_or(0, str::len) + name.len() + parts)?;
        let known = TypeName { interface: interface.map(str::to_owned), name: name.to_owned() };
        let names = self.type_names.entry(id).or_default();
        if !names.contains(&known) {
            names.push(known);
        }
        Ok(())
    }

    fn add(
        &mut self,
        interface: Option<&str>,
        name: &str,
        function: &ComponentFunc,
        export: ComponentExportIndex,
    ) -> Result<(), TooLong> {
        let interface = interface.map(unversioned);
        // A parameter's name is kept as in WIT and as in JSON, and described behind that of its
        // function.
        let parameters: usize = function.params().map(|(part, _)| name.len() + 3 * part.len()).sum();
        let own = size_of::<Function>() + 2 * name.len() + interface.map_or(0, str::len);
        self.count(own + parameters)?;
        match self.signature(name, function) {
            Ok((parameters, returns)) => {
                let (tool, interface, name) = (json_name(name), interface.map(str::to_owned), name.to_owned());
                self.functions.push(Function { tool, interface, name, export, parameters, returns });
            }
            Err(reason) => self.left_out.push(LeftOut { function: full_name(interface, name), reason }),
        }
        Ok(())
    }

    fn signature(&mut self, name: &str, function: &ComponentFunc) -> Result<(Vec<Field>, Returns), String> {
        if name.starts_with('[') {
            return Err("it belongs to a resource".to_owned());
        }
        if function.async_() {
            return Err("it is async, as in WASI 0.3".to_owned());
        }
        let part = |what: &str| {
            let what = what.to_owned();
            move |unsupported: Unsupported| format!("{what} has {unsupported}")
        };
        let mut parameters = Vec::new();
        for (name, ty) in function.params() {
            parameters.push(self.types.parameter(name, &ty).map_err(part(&format!("its parameter {name:?}")))?);
        }
        let mut results = function.results();
        let returns = match results.next() {
            None => Returns::Value(None),
            Some(wasmtime::component::Type::Result(result)) => {
                let mut side = |ty: Option<wasmtime::component::Type>| ty.map(|ty| self.types.add(&ty)).transpose();
                let ok = side(result.ok()).map_err(part("its result"))?;
                Returns::Result(ok, side(result.err()).map_err(part("its error"))?)
            }
            Some(ty) => Returns::Value(Some(self.types.add(&ty).map_err(part("its result"))?)),
        };
        Ok((parameters, returns))
    }

    /// Puts the interface's name before those of functions that share theirs.
    fn tell_apart(&mut self) -> Result<(), ShapeError> {
        let mut uses: HashMap<String, usize> = HashMap::new();
        for function in &self.functions {
            *uses.entry(function.tool.clone()).or_default() += 1;
        }
        for function in &mut self.functions {
            let Some(interface) = function.interface.as_deref() else { continue };
            if uses.get(&function.tool).is_some_and(|uses| *uses > 1) {
                let short = interface.rsplit_once('/').map_or(interface, |(_, short)| short);
                function.tool = format!("{}{SEPARATOR}{}", json_name(short), function.tool);
            }
        }
        let mut first: HashMap<&str, &Function> = HashMap::new();
        for function in &self.functions {
            if let Some(other) = first.insert(&function.tool, function) {
                let functions = [other.wit_name(), function.wit_name()];
                return Err(ShapeError::SameName { tool: function.tool.clone(), functions });
            }
        }
        Ok(())
    }

    /// The number of functions.
    pub(crate) fn len(&self) -> usize {
        self.functions.len()
    }

    /// True if there is nothing to serve.
    pub(crate) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The functions that are no tools.
    pub(crate) fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// Calls the function that is this tool.
    ///
    /// # Errors
    /// The engine's: a trap, or a limit. A failure that the guest itself reports is a result.
    pub(crate) async fn call(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        ask: ToolCall<'_>,
    ) -> wasmtime::Result<ToolAnswer> {
        let Some(function) = self.functions.iter().find(|function| function.tool == ask.tool) else {
            return Ok(Err(contract::Failure::InvalidInput(format!("there is no tool {:?}", ask.tool))));
        };
        let arguments = match decode::arguments(
            &self.types,
            &function.parameters,
            ask.arguments_json,
            ask.limits.host_data_bytes(),
        ) {
            Ok(arguments) => arguments,
            Err(error) => return Ok(Err(contract::Failure::InvalidInput(error.to_string()))),
        };
        let Some(export) = instance.get_func(&mut *store, function.export) else {
            return Err(wasmtime::Error::msg("the instance lacks a function of its component"));
        };
        let count = usize::from(!matches!(function.returns, Returns::Value(None)));
        let mut results = vec![Val::Bool(false); count];
        export.call_async(&mut *store, &arguments, &mut results).await?;
        // Their room is free for the answer's text.
        drop(arguments);
        let output_bytes_max = usize::try_from(ask.limits.output_bytes()).unwrap_or(usize::MAX).saturating_add(1);
        self.answer(function, results.first(), output_bytes_max)
    }

    fn answer(&self, function: &Function, value: Option<&Val>, bytes_max: usize) -> wasmtime::Result<ToolAnswer> {
        let (json, is_error) = match (function.returns, value) {
            (Returns::Value(ty), value) => (encode::result(&self.types, ty, value, bytes_max), false),
            (Returns::Result(ok, _), Some(Val::Result(Ok(value)))) => {
                (encode::result(&self.types, ok, value.as_deref(), bytes_max), false)
            }
            (Returns::Result(_, err), Some(Val::Result(Err(value)))) => {
                (encode::error(&self.types, err, value.as_deref(), bytes_max), true)
            }
            _ => (Err(encode::EncodeError::Mismatch), false),
        };
        // Clients that show text alone get it as text: that is done for every tool without any.
        let json = json.map_err(|error| match error {
            encode::EncodeError::TooLong => wasmtime::Error::new(LimitReached(Limit::Output)),
            encode::EncodeError::Mismatch => wasmtime::Error::new(error),
        })?;
        let (content, structured_json) = (Vec::new(), Some(json));
        Ok(Ok(contract::CallResult { content, structured_json, is_error, meta_json: None }))
    }
}

/// The functions of a component that has any, even where JSON serves none of them.
///
/// # Errors
/// Two of them would have the same name, or their names take too much.
pub(crate) fn detect(component: &Component, bytes: &[u8]) -> Result<Option<Functions>, ShapeError> {
    let functions = Functions::of(component, bytes)?;
    Ok((!functions.is_empty() || !functions.left_out().is_empty()).then_some(functions))
}

/// True for interfaces that runtimes call, not models: those of WASI (`wasi:cli/run`,
/// `wasi:http/incoming-handler`), and the one through which componentize-py prepares its
/// components.
fn is_of_runtime(interface: &str) -> bool {
    interface.starts_with("wasi:") || interface == "exports"
}

fn full_name(interface: Option<&str>, name: &str) -> String {
    interface.map_or_else(|| name.to_owned(), |interface| format!("{interface}.{name}"))
}

/// `acme:weather/forecasts@1.0.0` without its version.
fn unversioned(interface: &str) -> &str {
    interface.split_once('@').map_or(interface, |(name, _)| name)
}
