//! The functions of a component that become tools: found in its exports, described, called. Must not hold: how values
//! and JSON convert.
use std::collections::HashMap;
use std::fmt;

use wasmtime::Store;
use wasmtime::component::types::{ComponentFunc, ComponentItem};
use wasmtime::component::{Component, ComponentExportIndex, Instance, Val};

use super::schema::{self, Docs, NoDocs};
use super::ty::{Field, TyId, Types, Unsupported, json_name};
use super::{decode, encode};
use crate::bindings::contract;
use crate::shape::{Answer, Ask};
use crate::state::CallState;

/// Interfaces of WASI are for runtimes, not for models: `wasi:cli/run`, `wasi:http/incoming-handler`.
const NOT_TOOLS: &str = "wasi:";

/// What stands between the name of an interface and that of a function where both are needed.
const SEPARATOR: char = '_';

/// The functions of one component, ready to be called.
pub(crate) struct Functions {
    types: Types,
    functions: Vec<Function>,
    left_out: Vec<LeftOut>,
}

/// One function that is a tool.
struct Function {
    /// The tool's name.
    tool: String,
    /// As in WIT: `get-forecast`, or `acme:weather/forecasts.get-forecast`.
    wit_name: String,
    export: ComponentExportIndex,
    parameters: Vec<Field>,
    returns: Returns,
}

/// What a function gives back.
#[derive(Clone, Copy)]
enum Returns {
    Value(Option<TyId>),
    /// A `result` at the top: its error is the tool's.
    Result(Option<TyId>, Option<TyId>),
}

/// A function that is no tool.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// Functions that would have the same name as tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameTaken {
    /// The tool's name.
    pub tool: String,
    /// Both, as in WIT.
    pub functions: [String; 2],
}

impl Functions {
    /// Finds the functions among a component's exports. Those that JSON cannot serve are listed, not lost.
    pub(crate) fn of(component: &Component) -> Result<Self, NameTaken> {
        let mut found = Self { types: Types::default(), functions: Vec::new(), left_out: Vec::new() };
        let (ty, engine) = (component.component_type(), component.engine());
        let exports: Vec<_> = ty.exports(engine).map(|(name, export)| (name.to_owned(), export.ty)).collect();
        for (name, item) in exports {
            match item {
                ComponentItem::ComponentFunc(function) => {
                    if let Some(index) = component.get_export_index(None, &name) {
                        found.add(None, &name, &function, index);
                    }
                }
                ComponentItem::ComponentInstance(instance) if !name.starts_with(NOT_TOOLS) => {
                    let Some(parent) = component.get_export_index(None, &name) else { continue };
                    let inner: Vec<_> =
                        instance.exports(engine).map(|(inner, export)| (inner.to_owned(), export.ty)).collect();
                    for (inner, item) in inner {
                        let ComponentItem::ComponentFunc(function) = item else { continue };
                        if let Some(index) = component.get_export_index(Some(&parent), &inner) {
                            found.add(Some(&name), &inner, &function, index);
                        }
                    }
                }
                _ => {}
            }
        }
        found.tell_apart()?;
        Ok(found)
    }

    fn add(&mut self, interface: Option<&str>, name: &str, function: &ComponentFunc, export: ComponentExportIndex) {
        let wit_name = match interface {
            Some(interface) => format!("{}.{name}", unversioned(interface)),
            None => name.to_owned(),
        };
        // What a runtime needs for itself, such as componentize-py's `init`.
        if interface.is_none_or(|interface| !interface.contains(':')) && name == "init" && interface.is_some() {
            return;
        }
        match self.signature(name, function) {
            Ok((parameters, returns)) => {
                self.functions.push(Function { tool: json_name(name), wit_name, export, parameters, returns });
            }
            Err(reason) => self.left_out.push(LeftOut { function: wit_name, reason }),
        }
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
    fn tell_apart(&mut self) -> Result<(), NameTaken> {
        let mut uses: HashMap<String, usize> = HashMap::new();
        for function in &self.functions {
            *uses.entry(function.tool.clone()).or_default() += 1;
        }
        for function in &mut self.functions {
            let Some((interface, _)) = function.wit_name.rsplit_once('.') else { continue };
            if uses.get(&function.tool).is_some_and(|uses| *uses > 1) {
                let short = interface.rsplit_once('/').map_or(interface, |(_, short)| short);
                function.tool = format!("{}{SEPARATOR}{}", json_name(short), function.tool);
            }
        }
        let mut first: HashMap<&str, &str> = HashMap::new();
        for function in &self.functions {
            if let Some(other) = first.insert(&function.tool, &function.wit_name) {
                let functions = [other.to_owned(), function.wit_name.clone()];
                return Err(NameTaken { tool: function.tool.clone(), functions });
            }
        }
        Ok(())
    }

    /// Whether there is nothing to serve.
    pub(crate) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The functions that are no tools.
    pub(crate) fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// The tools, as a component that keeps the contract would list them.
    pub(crate) fn tools(&self, docs: &dyn FunctionDocs) -> Vec<contract::Tool> {
        self.functions.iter().map(|function| self.tool(function, docs)).collect()
    }

    fn tool(&self, function: &Function, docs: &dyn FunctionDocs) -> contract::Tool {
        let known = docs.of_function(&function.wit_name);
        let description =
            known.text.map_or_else(|| format!("Calls {} of the component.", function.wit_name), str::to_owned);
        let input = schema::of_fields(&self.types, docs.of_types(), &function.parameters, known.parameters);
        let (Returns::Value(result) | Returns::Result(result, _)) = function.returns;
        let output = schema::of_result(&self.types, docs.of_types(), result);
        contract::Tool {
            name: function.tool.clone(),
            title: None,
            description,
            input_schema_json: input.to_string(),
            output_schema_json: Some(output.to_string()),
            hints: None,
            icons: Vec::new(),
            meta_json: None,
        }
    }

    /// Calls the function that is this tool.
    ///
    /// # Errors
    /// The engine's: a trap, or a limit. What the guest itself reports is a result.
    pub(crate) async fn call(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        ask: Ask<'_>,
    ) -> wasmtime::Result<Answer> {
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
        let output_bytes_max = usize::try_from(ask.limits.output_bytes()).unwrap_or(usize::MAX).saturating_add(1);
        Ok(self.answer(function, results.first(), output_bytes_max))
    }

    fn answer(&self, function: &Function, value: Option<&Val>, bytes_max: usize) -> Answer {
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
        match json {
            Ok(json) => Ok(contract::CallResult {
                content: vec![text(json.clone())],
                structured_json: Some(json),
                is_error,
                meta_json: None,
            }),
            Err(error) => Err(contract::Failure::Failed(error.to_string())),
        }
    }
}

/// Where texts about functions come from.
pub(crate) trait FunctionDocs {
    /// What a function does, by its WIT name without version.
    fn of_function(&self, wit_name: &str) -> KnownFunction<'_>;
    /// What its types are.
    fn of_types(&self) -> &dyn Docs;
}

/// What is known of a function beside its signature.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KnownFunction<'a> {
    pub(crate) text: Option<&'a str>,
    pub(crate) parameters: &'a [Option<String>],
}

/// `acme:weather/forecasts@1.0.0` without its version.
fn unversioned(interface: &str) -> &str {
    interface.split_once('@').map_or(interface, |(name, _)| name)
}

/// The JSON once more as text, for clients that show nothing else.
fn text(text: String) -> contract::Content {
    contract::Content::Text(contract::TextContent { text, annotations: None, meta_json: None })
}

/// Nothing is known.
pub(crate) struct NoFunctionDocs;

impl FunctionDocs for NoFunctionDocs {
    fn of_function(&self, _: &str) -> KnownFunction<'_> {
        KnownFunction::default()
    }

    fn of_types(&self) -> &dyn Docs {
        &NoDocs
    }
}
