//! Functions of the host that a recorded guest calls without the relay: those that give a number
//! and reach nothing. They are called more often than all others, and the relay takes longer than
//! they do.
//!
//! Nothing depends on this table. A function that is not in it goes through the relay.
use serde::Serialize;
use wasmtime::StoreContextMut;
use wasmtime::component::{ComponentType, LinkerInstance, Lower};
use wasmtime_wasi::WasiView as _;
use wasmtime_wasi::clocks::WasiClocksView as _;
use wasmtime_wasi::p2::bindings::clocks::{monotonic_clock, wall_clock};
use wasmtime_wasi::p2::bindings::random::{insecure, random};

use super::recorder::{self, NoteHead};
use crate::wasi::state::CallState;

/// Links a function of this name on the tape, if it needs no relay. False if it needs one.
pub(super) fn link(linker: &mut LinkerInstance<'_, CallState>, name: &str, tape_name: &str) -> wasmtime::Result<bool> {
    let mut noting = Noting { linker, name, tape_name };
    match tape_name {
        "wasi:clocks/monotonic-clock#now" => {
            noting.link(number(|state| monotonic_clock::Host::now(&mut state.clocks())))?;
        }
        "wasi:clocks/monotonic-clock#resolution" => {
            noting.link(number(|state| monotonic_clock::Host::resolution(&mut state.clocks())))?;
        }
        "wasi:clocks/wall-clock#now" => {
            noting.link(time(|state| wall_clock::Host::now(&mut state.clocks())))?;
        }
        "wasi:clocks/wall-clock#resolution" => {
            noting.link(time(|state| wall_clock::Host::resolution(&mut state.clocks())))?;
        }
        "wasi:random/random#get-random-u64" => {
            noting.link(number(|state| random::Host::get_random_u64(state.ctx().ctx.random())))?;
        }
        "wasi:random/insecure#get-insecure-random-u64" => {
            noting.link(number(|state| insecure::Host::get_insecure_random_u64(state.ctx().ctx.random())))?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// A function of the host that is being linked.
struct Noting<'n, 'l> {
    linker: &'n mut LinkerInstance<'l, CallState>,
    /// Its name in its interface.
    name: &'n str,
    tape_name: &'n str,
}

impl Noting<'_, '_> {
    /// Links it, so that each result is noted.
    fn link<R, S>(&mut self, function: NotedFunction<R, S>) -> wasmtime::Result<()>
    where
        R: ComponentType + Lower + Send + Sync + 'static,
        S: Serialize + 'static,
    {
        let head = NoteHead::new(self.tape_name, function.values);
        self.linker.func_wrap(self.name, move |mut store: StoreContextMut<'_, CallState>, (): ()| {
            recorder::note(&mut store, &head, &function).map(|result| (result,))
        })
    }
}

/// A function that is called and noted.
pub(super) struct NotedFunction<R, S> {
    /// What the host does in it.
    pub(super) call: fn(&mut CallState) -> wasmtime::Result<R>,
    /// Its result as the tape shows it.
    pub(super) show: fn(&R) -> S,
    /// Values in what is shown: brackets and commas.
    pub(super) values: usize,
}

fn number(call: fn(&mut CallState) -> wasmtime::Result<u64>) -> NotedFunction<u64, u64> {
    NotedFunction { call, show: |number| *number, values: 0 }
}

/// A time as a recording has records.
#[derive(Serialize)]
struct ShownTime {
    seconds: u64,
    nanoseconds: u32,
}

fn time(
    call: fn(&mut CallState) -> wasmtime::Result<wall_clock::Datetime>,
) -> NotedFunction<wall_clock::Datetime, ShownTime> {
    let show = |time: &wall_clock::Datetime| ShownTime { seconds: time.seconds, nanoseconds: time.nanoseconds };
    NotedFunction { call, show, values: 2 }
}
