//! Answers that no recording has, for a component other than the recorded one.
//!
//! What only builds things in memory, waits, or says something is answered as a host would. What
//! reaches outside is refused, as by a host that grants nothing. Both are read off the type.
use serde_json::{Value, json};
use wasmtime::component::Type;

/// What functions begin with that reach nothing.
const REACH_NOTHING: [&str; 29] = [
    "wasi:cli/stderr#",
    "wasi:cli/stdout#",
    "wasi:http/types#[constructor]fields",
    "wasi:http/types#[constructor]outgoing-request",
    "wasi:http/types#[constructor]request-options",
    "wasi:http/types#[method]fields.append",
    "wasi:http/types#[method]fields.clone",
    "wasi:http/types#[method]fields.delete",
    "wasi:http/types#[method]fields.set",
    "wasi:http/types#[method]outgoing-body.write",
    "wasi:http/types#[method]outgoing-request.body",
    "wasi:http/types#[method]outgoing-request.headers",
    "wasi:http/types#[method]outgoing-request.set-",
    "wasi:http/types#[method]request-options.set-",
    "wasi:http/types#[static]fields.from-list",
    "wasi:http/types#[static]outgoing-body.finish",
    "wasi:io/poll#",
    "wasi:logging/",
    "wasi:sockets/instance-network#",
    "wasi:sockets/tcp#[method]tcp-socket.finish-bind",
    "wasi:sockets/tcp#[method]tcp-socket.set-",
    "wasi:sockets/tcp#[method]tcp-socket.start-bind",
    "wasi:sockets/tcp-create-socket#",
    "wasi:sockets/udp#[method]udp-socket.finish-bind",
    "wasi:sockets/udp#[method]udp-socket.set-",
    "wasi:sockets/udp#[method]udp-socket.start-bind",
    "wasi:sockets/udp-create-socket#",
    "toolcell:mcp/log#",
    "toolcell:mcp/progress#",
];

/// Cases of errors with which hosts refuse, in the order of preference.
const REFUSALS: [&str; 6] = ["access-denied", "HTTP-request-denied", "access", "refused", "denied", "closed"];

/// Bytes that a stream of a request's body takes at once: as many as the host takes.
const STREAM_BYTES: u64 = 4096;

/// True if a function reaches nothing outside, whatever its arguments are.
pub(super) fn reaches_nothing(function: &str) -> bool {
    let name = function.rsplit(['#', '.']).next().unwrap_or(function);
    name.starts_with("subscribe") || REACH_NOTHING.iter().any(|begin| function.starts_with(begin))
}

/// What a function of this type gives if all goes well. `handle` makes the number of a handle.
pub(super) fn granted(ty: &Type, handle: &mut dyn FnMut() -> u32) -> Option<Value> {
    Some(match ty {
        Type::Result(result) => {
            let inner = match result.ok() {
                Some(ty) => granted(&ty, handle)?,
                None => Value::Null,
            };
            json!({ "ok": inner })
        }
        Type::Own(_) => json!({ "handle": handle() }),
        Type::Bool => json!(true),
        Type::U64 => json!(STREAM_BYTES),
        Type::Option(_) => Value::Null,
        Type::List(_) => json!([]),
        _ => return None,
    })
}

/// What a function of this type gives if the host refuses it; `None` if it cannot say so.
pub(super) fn refused(ty: &Type) -> Option<Value> {
    let Type::Result(result) = ty else { return None };
    let error = match result.err() {
        Some(ty) => refusal(&ty)?,
        None => Value::Null,
    };
    Some(json!({ "err": error }))
}

fn refusal(ty: &Type) -> Option<Value> {
    match ty {
        Type::Enum(cases) => {
            REFUSALS.iter().find(|refusal| cases.names().any(|case| case == **refusal)).map(|case| json!(case))
        }
        Type::Variant(variant) => REFUSALS.iter().find_map(|refusal| {
            let case = variant.cases().find(|case| case.name == *refusal)?;
            Some(match case.ty {
                Some(ty) => json!({ *refusal: self::refusal(&ty)? }),
                None => json!(refusal),
            })
        }),
        Type::Record(record) => record
            .fields()
            .map(|field| Some((field.name.to_owned(), refusal(&field.ty)?)))
            .collect::<Option<_>>()
            .map(Value::Object),
        Type::String => Some(json!("the recording does not have this")),
        _ => None,
    }
}
