//! The functions of a component that become tools: found in its exports, and called.
use std::collections::HashMap;

use toolcell_policy::Limit;
use toolcell_wall::load::facts::LeftOutFunction;
use wasmtime::Store;
use wasmtime::component::types::{ComponentFunc, ComponentItem};
use wasmtime::component::{Component, ComponentExportIndex, Instance, Type, Val};

use super::describe::{TypeName, part_names};
use super::exports::{each, unversioned};
use super::names::{self, WitName};
use super::streams::{Readers, Reading, TypedValue};
use super::texts::WitTexts;
use super::ty::{TyId, TypedField, Types, Unsupported};
use super::{decode, encode, section};
use crate::shape::error::ShapeError;
use crate::shape::tool_call::{ToolAnswer, ToolCall};
use crate::wasi::state::CallState;
use toolcell_wall::contract;
use toolcell_wall::failure::{CallFailure, LimitReached};

/// Names of one type that are kept. Each interface that uses the type has one.
const NAMES_PER_TYPE_MAX: usize = 64;

/// Bytes of all names that are kept of a component's functions; a name counts once for each
/// function that has it. A thousand functions of five parameters with ordinary names need a
/// twentieth of it.
pub(super) const NAMES_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The functions of one component, ready to be called.
pub(crate) struct TypedFunctions {
    pub(super) types: Types,
    pub(super) functions: Vec<TypedFunction>,
    left_out: Vec<LeftOutFunction>,
    /// For the streams and futures in results.
    readers: Readers,
    /// The component's names for its types.
    pub(super) type_names: HashMap<TyId, Vec<TypeName>>,
    /// The WIT comments that it carries.
    pub(super) texts: WitTexts,
    /// Bytes left of [`NAMES_BYTES_MAX`].
    names_left: usize,
}

/// One function that is a tool.
pub(super) struct TypedFunction {
    /// The tool's name, unless the manifest gives it another.
    pub(super) tool: String,
    /// Without version, such as `acme:weather/forecasts`.
    pub(super) interface: Option<String>,
    /// The version of the interface, such as `1.0.0`.
    version: Option<String>,
    /// As in WIT: `get-forecast`.
    pub(super) name: String,
    export: ComponentExportIndex,
    pub(super) parameters: Vec<TypedField>,
    pub(super) returns: Returns,
}

/// The result of a function.
#[derive(Clone, Copy)]
pub(super) enum Returns {
    Value(Option<TyId>),
    /// A `result` at the top level: its error is the tool's error.
    Result(Option<TyId>, Option<TyId>),
}

impl Returns {
    /// The types of the result.
    fn types(self) -> impl Iterator<Item = TyId> {
        let (one, other) = match self {
            Self::Value(ty) => (ty, None),
            Self::Result(ok, err) => (ok, err),
        };
        one.into_iter().chain(other)
    }

    /// The value that the result is, with its type, if there is one.
    fn value(self, result: &mut Val) -> Option<TypedValue<'_>> {
        match (self, result) {
            (Self::Value(ty), value) => Some(TypedValue { ty: ty?, value }),
            (Self::Result(ty, _), Val::Result(Ok(value))) | (Self::Result(_, ty), Val::Result(Err(value))) => {
                Some(TypedValue { ty: ty?, value: value.as_deref_mut()? })
            }
            _ => None,
        }
    }
}

/// Names take more than the bytes that are left.
pub(super) struct TooLong;

impl From<TooLong> for ShapeError {
    fn from(_: TooLong) -> Self {
        Self::Names { bytes_max: NAMES_BYTES_MAX as u64 }
    }
}

impl TypedFunction {
    /// As in WIT, with its interface: `acme:weather/forecasts.get-forecast`.
    pub(super) fn wit_name(&self) -> String {
        WitName { version: None, ..self.names() }.to_string()
    }

    /// Its names in WIT.
    pub(super) fn names(&self) -> WitName<'_> {
        WitName { interface: self.interface.as_deref(), version: self.version.as_deref(), name: &self.name }
    }
}

impl TypedFunctions {
    /// Finds the functions among the exports of a component with these bytes. Those that JSON
    /// cannot express are listed with a reason.
    pub(crate) fn of(component: &Component, bytes: &[u8]) -> Result<Self, ShapeError> {
        let mut found = Self {
            types: Types::default(),
            functions: Vec::new(),
            left_out: Vec::new(),
            readers: Readers::default(),
            type_names: HashMap::new(),
            texts: section::texts(bytes),
            names_left: NAMES_BYTES_MAX,
        };
        each(component, &mut |names, function, export| found.add(names, function, export))?;
        found.readers = Readers::of(component, &found.types);
        found.leave_out_unread();
        found.name_tools();
        if !found.functions.is_empty() {
            found.name_types(component)?;
        }
        Ok(found)
    }

    /// Notes the component's names of the types that its functions use. The types of a world are
    /// imports of its component.
    fn name_types(&mut self, component: &Component) -> Result<(), TooLong> {
        let ty = component.component_type();
        let engine = component.engine();
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

    /// Charges names before they are kept or composed.
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
        names: WitName<'_>,
        function: &ComponentFunc,
        export: ComponentExportIndex,
    ) -> Result<(), TooLong> {
        let name = names.name;
        // A parameter's name is kept as in WIT and as in JSON, and described under that of its
        // function.
        let parameters: usize = function.params().map(|(part, _)| name.len() + 3 * part.len()).sum();
        self.count(size_of::<TypedFunction>() + name.len() + names.bytes() + parameters)?;
        match self.signature(name, function) {
            Ok((parameters, returns)) => self.functions.push(TypedFunction {
                // Set once all functions are known.
                tool: String::new(),
                interface: names.interface.map(str::to_owned),
                version: names.version.map(str::to_owned),
                name: name.to_owned(),
                export,
                parameters,
                returns,
            }),
            Err(reason) => self.left_out.push(LeftOutFunction { function: names.to_string(), reason }),
        }
        Ok(())
    }

    /// Leaves out the functions whose results have streams that nothing reads.
    fn leave_out_unread(&mut self) {
        for function in std::mem::take(&mut self.functions) {
            if self.readers.cover(&self.types, function.returns.types()) {
                self.functions.push(function);
            } else {
                let reason = format!("its result has {}", Unsupported::Unread);
                self.left_out.push(LeftOutFunction { function: function.names().to_string(), reason });
            }
        }
    }

    /// Gives each function the name of its tool. A function is left out if another one could have
    /// each of its names.
    fn name_tools(&mut self) {
        let names: Vec<WitName<'_>> = self.functions.iter().map(TypedFunction::names).collect();
        let tools = names::of_tools(&names);
        for (mut function, tool) in std::mem::take(&mut self.functions).into_iter().zip(tools) {
            match tool {
                Some(tool) => {
                    function.tool = tool;
                    self.functions.push(function);
                }
                None => {
                    let reason = "another function has its name".to_owned();
                    self.left_out.push(LeftOutFunction { function: function.names().to_string(), reason });
                }
            }
        }
    }

    fn signature(&mut self, name: &str, function: &ComponentFunc) -> Result<(Vec<TypedField>, Returns), String> {
        if let Some((kind, _)) = name.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            return Err(match kind {
                "constructor" => "it makes a resource".to_owned(),
                "static" => "it is a static function of a resource".to_owned(),
                _ => format!("it is a {kind} of a resource"),
            });
        }
        if name.contains('/') {
            return Err("it is in an instance within an interface".to_owned());
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

    pub(crate) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Each function that is a tool, as in WIT with interface and version.
    pub(crate) fn served(&self) -> Vec<String> {
        self.functions.iter().map(|function| function.names().to_string()).collect()
    }

    /// The functions that are not tools.
    pub(crate) fn take_left_out(&mut self) -> Vec<LeftOutFunction> {
        std::mem::take(&mut self.left_out)
    }

    /// The function of this tool, or with this name in WIT.
    fn find(&self, tool: &str) -> Option<&TypedFunction> {
        let by_tool = self.functions.iter().find(|function| function.tool == tool);
        by_tool.or_else(|| self.functions.iter().find(|function| function.names().is(tool)))
    }

    /// Calls a function by the name of its tool or by its own in WIT.
    ///
    /// # Errors
    /// An error of the engine: a trap, or a limit. A failure that the guest itself reports is a
    /// result.
    pub(crate) async fn call(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        ask: ToolCall<'_>,
    ) -> wasmtime::Result<ToolAnswer> {
        let Some(function) = self.find(ask.tool) else {
            return Ok(Err(CallFailure::InvalidInput(format!("there is no tool {:?}", ask.tool))));
        };
        let arguments = match decode::arguments(
            &self.types,
            &function.parameters,
            ask.arguments_json,
            ask.limits.host_data_bytes(),
        ) {
            Ok(arguments) => arguments,
            Err(error) => return Ok(Err(CallFailure::InvalidInput(error.to_string()))),
        };
        let Some(export) = instance.get_func(&mut *store, function.export) else {
            return Err(wasmtime::Error::msg("the instance lacks a function of its component"));
        };
        let count = usize::from(!matches!(function.returns, Returns::Value(None)));
        let mut results = vec![Val::Bool(false); count];
        export.call_async(&mut *store, &arguments, &mut results).await?;
        // Frees their room for the answer's text.
        drop(arguments);
        if let Some(value) = results.first_mut().and_then(|result| function.returns.value(result)) {
            self.readers.read_all(store, instance, Reading::new(&self.types, ask.limits), value).await?;
        }
        let output_bytes_max = usize::try_from(ask.limits.output_bytes()).unwrap_or(usize::MAX).saturating_add(1);
        self.answer(function, results.first(), output_bytes_max)
    }

    fn answer(&self, function: &TypedFunction, value: Option<&Val>, bytes_max: usize) -> wasmtime::Result<ToolAnswer> {
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
        // Clients that only show text get it as text, as for every tool without any.
        let json = json.map_err(|error| match error {
            encode::EncodeError::TooLong => wasmtime::Error::new(LimitReached(Limit::Output)),
            encode::EncodeError::Mismatch => wasmtime::Error::new(error),
        })?;
        let content = Vec::new();
        let structured_json = Some(json);
        Ok(Ok(contract::GuestResult { content, structured_json, is_error, meta_json: None }))
    }
}
