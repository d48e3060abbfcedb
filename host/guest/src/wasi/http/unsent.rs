//! Requests and responses that a guest has made and not sent. The host keeps their texts and the
//! pieces of their bodies outside of the guest's memory, so both are bounded here: each text, and
//! all of a call together. wasmtime-wasi-http keeps whatever parses.
//!
//! Promise: the host's memory is bounded.
use std::collections::BTreeSet;

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource, ResourceTable};
use wasmtime_wasi_http::WasiHttpView as _;
use wasmtime_wasi_http::p2::bindings::http::types::{self, Method};
use wasmtime_wasi_http::p2::body::HostOutgoingBody;
use wasmtime_wasi_http::p2::types::{HostOutgoingRequest, HostOutgoingResponse};
use wasmtime_wasi_http::p3::Request;
use wasmtime_wasi_http::p3::bindings::http::types as p3_types;

use super::hooks::CHUNK_BYTES;
use crate::wasi::state::CallState;

/// Bytes of an authority, and of a method. Names of hosts have 253 bytes, methods a few; this is
/// what many servers take of a whole line.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// Bytes of a path with its query: the longest that the `http` crate takes. It passes over what
/// follows a `#`, which is kept all the same.
const PATH_BYTES_MAX: usize = u16::MAX as usize - 1;

/// Bytes of the texts and bodies of a call's unsent messages together: 64 with a body, or a
/// thousand with long addresses. Most guests have one at a time.
const UNSENT_BYTES_MAX: usize = 8 << 20;

/// Bytes of a body that wait for its connection: a piece in the queue, and one on its way there.
const BODY_BYTES: usize = 2 * CHUNK_BYTES;

/// The unsent messages of a call. Once there is no room, it looks which of them were sent or
/// dropped.
#[derive(Debug, Default)]
pub(crate) struct UnsentMessages {
    /// The handles of those that hold something.
    handles: BTreeSet<u32>,
    /// Bytes that they hold at most.
    bytes: usize,
}

impl UnsentMessages {
    /// Handles that a count looks at.
    pub(crate) fn len(&self) -> usize {
        self.handles.len()
    }

    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.bytes.saturating_add(bytes) <= UNSENT_BYTES_MAX
    }

    /// Counts the bytes that are still held. Handles of anything else are forgotten.
    pub(crate) fn count(&mut self, table: &ResourceTable) {
        let mut sum: usize = 0;
        self.handles.retain(|handle| {
            let held = held_bytes(table, *handle);
            sum = sum.saturating_add(held.unwrap_or_default());
            held.is_some()
        });
        self.bytes = sum;
    }

    /// Takes room for the message of this handle; false if there is none.
    pub(crate) fn take(&mut self, handle: u32, bytes: usize) -> bool {
        let has_room = self.has_room(bytes);
        if has_room {
            self.handles.insert(handle);
            self.bytes = self.bytes.saturating_add(bytes);
        }
        has_room
    }
}

/// The bytes of the message of this handle; `None` if it is of something else.
fn held_bytes(table: &ResourceTable, handle: u32) -> Option<usize> {
    if let Ok(request) = table.get(&Resource::<HostOutgoingRequest>::new_borrow(handle)) {
        let body = if request.body.is_some() { BODY_BYTES } else { 0 };
        let texts = [&request.authority, &request.path_with_query].map(|text| text.as_ref().map_or(0, String::len));
        return Some(texts.into_iter().sum::<usize>() + method_bytes(&request.method) + body);
    }
    if let Ok(response) = table.get(&Resource::<HostOutgoingResponse>::new_borrow(handle)) {
        return Some(if response.body.is_some() { BODY_BYTES } else { 0 });
    }
    let request = table.get(&Resource::<Request>::new_borrow(handle)).ok()?;
    let authority = request.authority.as_ref().map_or(0, |authority| authority.as_str().len());
    let path = request.path_with_query.as_ref().map_or(0, |path| path.as_str().len());
    Some(authority + path + request.method.as_str().len())
}

fn method_bytes(method: &Method) -> usize {
    match method {
        Method::Other(method) => method.len(),
        _ => 0,
    }
}

/// Shadows the functions of WASI 0.2 that make the host keep a text or a body.
pub(crate) fn add_bounds(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    type Message = Resource<HostOutgoingRequest>;
    type Answer = Resource<HostOutgoingResponse>;
    type Set = wasmtime::Result<(Result<(), ()>,)>;
    type Opened = wasmtime::Result<(Result<Resource<HostOutgoingBody>, ()>,)>;
    let mut types = linker.instance("wasi:http/types@0.2.12")?;
    types.func_wrap(
        "[method]outgoing-request.set-method",
        |mut store: StoreContextMut<'_, CallState>, (request, method): (Message, Method)| -> Set {
            let state = store.data_mut();
            if !admits(state, request.rep(), method_bytes(&method), TEXT_BYTES_MAX)? {
                return Ok((Err(()),));
            }
            Ok((types::HostOutgoingRequest::set_method(&mut state.http(), request, method)?,))
        },
    )?;
    types.func_wrap(
        "[method]outgoing-request.set-authority",
        |mut store: StoreContextMut<'_, CallState>, (request, authority): (Message, Option<String>)| -> Set {
            let state = store.data_mut();
            if !admits(state, request.rep(), bytes_of(&authority), TEXT_BYTES_MAX)? {
                return Ok((Err(()),));
            }
            Ok((types::HostOutgoingRequest::set_authority(&mut state.http(), request, authority)?,))
        },
    )?;
    types.func_wrap(
        "[method]outgoing-request.set-path-with-query",
        |mut store: StoreContextMut<'_, CallState>, (request, path): (Message, Option<String>)| -> Set {
            let state = store.data_mut();
            if !admits(state, request.rep(), bytes_of(&path), PATH_BYTES_MAX)? {
                return Ok((Err(()),));
            }
            Ok((types::HostOutgoingRequest::set_path_with_query(&mut state.http(), request, path)?,))
        },
    )?;
    types.func_wrap(
        "[method]outgoing-request.body",
        |mut store: StoreContextMut<'_, CallState>, (request,): (Message,)| -> Opened {
            let state = store.data_mut();
            if !admits(state, request.rep(), BODY_BYTES, BODY_BYTES)? {
                return Ok((Err(()),));
            }
            Ok((types::HostOutgoingRequest::body(&mut state.http(), request)?,))
        },
    )?;
    types.func_wrap(
        "[method]outgoing-response.body",
        |mut store: StoreContextMut<'_, CallState>, (response,): (Answer,)| -> Opened {
            let state = store.data_mut();
            if !admits(state, response.rep(), BODY_BYTES, BODY_BYTES)? {
                return Ok((Err(()),));
            }
            Ok((types::HostOutgoingResponse::body(&mut state.http(), response)?,))
        },
    )
}

/// The same for WASI 0.3, where the bodies are the guest's own streams.
pub(crate) fn add_p3_bounds(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    type Message = Resource<Request>;
    type Set = wasmtime::Result<(Result<(), ()>,)>;
    let mut types = linker.instance("wasi:http/types@0.3.0")?;
    types.func_wrap(
        "[method]request.set-method",
        |mut store: StoreContextMut<'_, CallState>, (request, method): (Message, p3_types::Method)| -> Set {
            let state = store.data_mut();
            let bytes = match &method {
                p3_types::Method::Other(method) => method.len(),
                _ => 0,
            };
            if !admits(state, request.rep(), bytes, TEXT_BYTES_MAX)? {
                return Ok((Err(()),));
            }
            Ok((p3_types::HostRequest::set_method(&mut state.http(), request, method)?,))
        },
    )?;
    types.func_wrap(
        "[method]request.set-authority",
        |mut store: StoreContextMut<'_, CallState>, (request, authority): (Message, Option<String>)| -> Set {
            let state = store.data_mut();
            if !admits(state, request.rep(), bytes_of(&authority), TEXT_BYTES_MAX)? {
                return Ok((Err(()),));
            }
            Ok((p3_types::HostRequest::set_authority(&mut state.http(), request, authority)?,))
        },
    )?;
    types.func_wrap(
        "[method]request.set-path-with-query",
        |mut store: StoreContextMut<'_, CallState>, (request, path): (Message, Option<String>)| -> Set {
            let state = store.data_mut();
            let path = path.map(without_fragment);
            if !admits(state, request.rep(), bytes_of(&path), PATH_BYTES_MAX)? {
                return Ok((Err(()),));
            }
            Ok((p3_types::HostRequest::set_path_with_query(&mut state.http(), request, path)?,))
        },
    )
}

/// A path as the `http` crate reads it. What follows a `#` would be kept, and not found by a count.
fn without_fragment(path: String) -> String {
    match path.split_once('#') {
        Some(("", _)) => "/".to_owned(),
        Some((path, _)) => path.to_owned(),
        None => path,
    }
}

fn bytes_of(text: &Option<String>) -> usize {
    text.as_ref().map_or(0, String::len)
}

/// True if a message may hold this many more bytes. A refusal is a call of the host as well.
fn admits(state: &mut CallState, handle: u32, bytes: usize, bytes_max: usize) -> wasmtime::Result<bool> {
    let admitted = bytes <= bytes_max && state.holds_unsent(handle, bytes)?;
    if !admitted {
        state.called();
    }
    Ok(admitted)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::uri::PathAndQuery;
    use wasmtime_wasi_http::FieldMap;

    use super::*;

    /// An unsent request with an authority of this many bytes.
    fn request(table: &mut ResourceTable, bytes: usize) -> Resource<HostOutgoingRequest> {
        let request = HostOutgoingRequest {
            method: Method::Get,
            scheme: None,
            authority: Some("a".repeat(bytes)),
            path_with_query: None,
            headers: FieldMap::default(),
            body: None,
        };
        table.push(request).unwrap()
    }

    #[test]
    fn unsent_requests_of_a_call_are_bounded_in_sum_and_those_that_left_give_their_room_back() {
        let mut table = ResourceTable::new();
        let mut unsent = UnsentMessages::default();
        let mut requests = Vec::new();
        while unsent.has_room(TEXT_BYTES_MAX) {
            let request = request(&mut table, TEXT_BYTES_MAX);
            assert!(unsent.take(request.rep(), TEXT_BYTES_MAX));
            requests.push(request);
        }
        assert_eq!(requests.len(), UNSENT_BYTES_MAX / TEXT_BYTES_MAX);
        unsent.count(&table);
        assert!(!unsent.take(requests[0].rep(), 1), "all of them are still there");
        table.delete(requests.pop().unwrap()).unwrap();
        assert!(!unsent.take(requests[0].rep(), 1), "nobody has counted since");
        unsent.count(&table);
        assert!(unsent.take(requests[0].rep(), TEXT_BYTES_MAX) && !unsent.has_room(1));
        assert_eq!(unsent.len(), requests.len());
        // A handle may be of something else by now.
        table.delete(requests.pop().unwrap()).unwrap();
        let _other = table.push("something else").unwrap();
        unsent.count(&table);
        assert_eq!((unsent.len(), unsent.bytes), (requests.len(), requests.len() * TEXT_BYTES_MAX));
    }

    #[test]
    fn a_path_ends_where_its_fragment_begins_as_the_crate_reads_it() {
        for path in ["/a#b", "#b", "#", "/a?c=1#b#d", "/a?c=1", "?c=1#b"] {
            let kept: PathAndQuery = path.parse().unwrap();
            let cut: PathAndQuery = without_fragment(path.to_owned()).parse().unwrap();
            assert_eq!(cut.as_str(), kept.as_str(), "{path}");
        }
    }

    #[test]
    fn a_text_that_is_set_again_and_again_counts_once() {
        let mut table = ResourceTable::new();
        let mut unsent = UnsentMessages::default();
        let request = request(&mut table, TEXT_BYTES_MAX);
        for _ in 0..10 * UNSENT_BYTES_MAX / TEXT_BYTES_MAX {
            if !unsent.has_room(TEXT_BYTES_MAX) {
                unsent.count(&table);
            }
            assert!(unsent.take(request.rep(), TEXT_BYTES_MAX));
        }
    }
}
