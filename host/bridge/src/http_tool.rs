//! One request over HTTP as a tool, without a document: what a manifest says in a few lines.
use serde_json::{Map, Value};
use toolcell_bridge_lines::{Body, BridgeServer, OutputForm, Parameter, Place, Request, Style};

use crate::definitions::{Definitions, ToolCall, ToolDefinition, hints_of_method};
use crate::grants::BridgeGrants;
use crate::limits::TOOL_TEXT_BYTES_MAX;
use crate::names::{clipped, shown};
use crate::server::{Base, is_segment};
use crate::target::Target;
use crate::{Bridge, BridgeError};

/// The argument that becomes the request's body.
const BODY: &str = "body";

/// A request, and the tool that makes it.
#[derive(Clone, Copy, Debug)]
pub struct HttpToolRequest<'a> {
    /// The tool's name.
    pub name: &'a str,
    /// The method, in capitals.
    pub method: &'a str,
    /// The address, with `{NAME}` in an argument's place.
    pub url: &'a str,
    /// What the tool does, for the model.
    pub description: &'a str,
    /// JSON Schema of the arguments, an object.
    pub input: &'a Map<String, Value>,
}

impl Bridge {
    /// The only tool of a request.
    ///
    /// # Errors
    /// The address cannot be asked, or its arguments are not those of the schema.
    pub fn of_http_tool(tool: &HttpToolRequest<'_>) -> Result<Self, BridgeError> {
        let address = Address::of(tool)?;
        let mut parameters = address.in_path(tool)?;
        let (fixed, in_query) = address.in_query(tool)?;
        parameters.extend(in_query);
        let body = body(tool)?;
        check_used(tool, &parameters)?;
        let path = if fixed.is_empty() { address.path } else { format!("{}?{fixed}", address.path) };
        let request = Request {
            method: tool.method.to_owned(),
            path,
            parameters,
            body,
            accept: "application/json, */*;q=0.5".to_owned(),
            output: OutputForm::Free,
        };
        let definition = ToolDefinition {
            name: tool.name.to_owned(),
            title: None,
            description: clipped(tool.description, TOOL_TEXT_BYTES_MAX),
            input: Value::Object(tool.input.clone()),
            output: None,
            hints: hints_of_method(tool.method),
            icons: None,
            call: ToolCall::Http(request),
        };
        let tools = vec![definition];
        let grants = BridgeGrants::of(&address.base.origin, &tools);
        let server = BridgeServer::Origin(address.base.origin.to_string());
        Ok(Self {
            title: tool.name.to_owned(),
            origin: address.base.origin,
            definitions: Definitions { server, tools },
            grants,
            left_out: Vec::new(),
            notes: Vec::new(),
        })
    }
}

/// An address in its parts.
struct Address {
    base: Base,
    path: String,
    query: String,
}

impl Address {
    fn of(tool: &HttpToolRequest<'_>) -> Result<Self, BridgeError> {
        let hint = "write an address such as https://api.example.com/v1/places/{city}?lang={lang}";
        let wrong = |problem: String| BridgeError::new(problem, hint);
        let (before, query) = tool.url.split_once('?').unwrap_or((tool.url, ""));
        let (scheme, rest) =
            before.split_once("://").ok_or_else(|| wrong(format!("{} is not an address", shown(tool.url))))?;
        let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let base = Base::parse(&format!("{scheme}://{authority}")).map_err(wrong)?;
        if let Some(reason) = Target::of_path(path).problem(tool.method) {
            return Err(wrong(format!("{} {reason}", shown(tool.url))));
        }
        Ok(Self { base, path: path.to_owned(), query: query.to_owned() })
    }

    fn in_path(&self, tool: &HttpToolRequest<'_>) -> Result<Vec<Parameter>, BridgeError> {
        let mut parameters: Vec<Parameter> = Vec::new();
        let mut rest = self.path.as_str();
        while let Some((name, behind)) = rest.split_once('{').and_then(|(_, behind)| behind.split_once('}')) {
            rest = behind;
            if parameters.iter().any(|known| known.name == name) {
                continue;
            }
            check_known(tool, name)?;
            let required = tool.input.get("required").and_then(Value::as_array);
            if !required.is_some_and(|required| required.iter().any(|known| known == name)) {
                let problem =
                    format!("the argument {} is a part of the path, and a call may leave it out", shown(name));
                return Err(BridgeError::new(problem, "require it, or move it into the query"));
            }
            parameters.push(parameter(name, name, Place::Path, Style::Simple));
        }
        Ok(parameters)
    }

    /// The parts of the query that never change, and the parameters in it.
    fn in_query(&self, tool: &HttpToolRequest<'_>) -> Result<(String, Vec<Parameter>), BridgeError> {
        let mut fixed: Vec<&str> = Vec::new();
        let mut parameters = Vec::new();
        for part in self.query.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let argument = value.strip_prefix('{').and_then(|value| value.strip_suffix('}'));
            let is_plain = |text: &str| text.is_empty() || is_segment(text);
            match argument {
                Some(argument) if is_plain(name) => {
                    check_known(tool, argument)?;
                    parameters.push(parameter(name, argument, Place::Query, Style::Form));
                }
                None if is_plain(name) && is_plain(value) => fixed.push(part),
                _ => {
                    let problem =
                        format!("the part {} of the query is neither name=value nor name={{argument}}", shown(part));
                    return Err(BridgeError::new(problem, "an argument is the whole value of its part"));
                }
            }
        }
        Ok((fixed.join("&"), parameters))
    }
}

fn parameter(name: &str, argument: &str, place: Place, style: Style) -> Parameter {
    Parameter { name: name.to_owned(), argument: argument.to_owned(), place, style, explode: place == Place::Query }
}

fn properties<'t>(tool: &HttpToolRequest<'t>) -> Option<&'t Map<String, Value>> {
    tool.input.get("properties").and_then(Value::as_object)
}

fn check_known(tool: &HttpToolRequest<'_>, name: &str) -> Result<(), BridgeError> {
    if name != BODY && properties(tool).is_some_and(|properties| properties.contains_key(name)) {
        return Ok(());
    }
    let problem = format!("the address has {{{name}}}, which is not an argument of input");
    Err(BridgeError::new(problem, format!("add it: input = {{ {name} = \"what it is\" }}")))
}

fn body(tool: &HttpToolRequest<'_>) -> Result<Option<Box<Body>>, BridgeError> {
    if !properties(tool).is_some_and(|properties| properties.contains_key(BODY)) {
        return Ok(None);
    }
    if matches!(tool.method, "GET" | "HEAD") {
        let problem = format!("a request with {} has no body, and input has {BODY:?}", tool.method);
        return Err(BridgeError::new(problem, "set another method, or move the argument into the query"));
    }
    Ok(Some(Box::new(crate::body::json(BODY.to_owned(), "application/json".to_owned()))))
}

/// Checks that each argument stands somewhere in the request.
fn check_used(tool: &HttpToolRequest<'_>, parameters: &[Parameter]) -> Result<(), BridgeError> {
    let is_used = |name: &str| name == BODY || parameters.iter().any(|parameter| parameter.argument == name);
    match properties(tool).into_iter().flat_map(Map::keys).find(|name| !is_used(name)) {
        None => Ok(()),
        Some(name) => {
            let hint = format!("write it into the query, {name}={{{name}}}, or below `body`");
            Err(BridgeError::new(format!("the argument {} of input stands nowhere in the request", shown(name)), hint))
        }
    }
}
