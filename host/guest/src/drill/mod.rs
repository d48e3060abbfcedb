//! The drill: a guest with the power of native code in its sandbox process. Only builds with the
//! feature `drill` have it, which are for tests. Must not hold: attacks, which tests write.
//!
//! | file | holds |
//! |---|---|
//! | `script.rs` | the steps that a guest may take, one after another |
//! | `forged.rs` | messages to the host that no honest process sends |
//!
//! A guest calls `toolcell:drill/native@1.0.0` with a script. It runs where the guest runs: in the
//! sandbox process, behind its seal, on its only thread.
mod forged;
mod script;

use std::os::fd::{AsRawFd as _, BorrowedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use toolcell_policy::{Limit, Limits};
use toolcell_wall::load::offers::DRILL;
use toolcell_walls::kernel::Wall;
use toolcell_walls::link::Sender;
use wasmtime::StoreContextMut;
use wasmtime::component::Linker;

use crate::wasi::state::CallState;
use toolcell_wall::message::CallId;

/// The link to the host, and its socket.
static LINK: OnceLock<(Sender, RawFd)> = OnceLock::new();

/// The call that began last.
static LATEST: AtomicU64 = AtomicU64::new(0);

/// True once a guest of this process has removed the first wall of guests.
static OPEN: AtomicBool = AtomicBool::new(false);

/// Notes the link of this sandbox process.
pub(crate) fn serves(link: &Sender, socket: BorrowedFd<'_>) {
    // A process has one link.
    let _ = LINK.set((link.clone(), socket.as_raw_fd()));
}

/// Notes that a call has begun in this process.
pub(crate) fn begins(call: CallId) {
    LATEST.store(call, Ordering::Relaxed);
}

/// True if a guest of this process has removed the first wall.
pub(crate) fn is_open() -> bool {
    OPEN.load(Ordering::Relaxed)
}

/// The limits of a call: those of its tool, or the widest possible ones once a guest of this
/// process has removed the first wall. The host's own limits still hold.
pub(crate) fn limits(limits: &Limits) -> Limits {
    if !is_open() {
        return *limits;
    }
    let widest = |limits: Limits, limit: Limit| limits.with(limit, limit.spec().max).unwrap_or(limits);
    Limit::ALL.into_iter().fold(*limits, widest)
}

/// The host's variable that names walls to leave out, as on machines that lack them.
const WITHOUT: &str = "TOOLCELL_DRILL_WITHOUT";

/// The host's variable that lifts the bounds on what is loaded.
const LOADS: &str = "TOOLCELL_DRILL_LOADS";

/// True if the bounds on what is loaded are lifted. Only processes behind walls lift them.
pub(crate) fn loads_are_open() -> bool {
    static OPEN: OnceLock<bool> = OnceLock::new();
    LINK.get().is_some() && *OPEN.get_or_init(|| std::env::var_os(LOADS).is_some())
}

/// The walls to leave out.
pub(crate) fn without() -> Vec<Wall> {
    let names = std::env::var(WITHOUT).unwrap_or_default();
    names.split(',').filter_map(Wall::from_name).collect()
}

pub(crate) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    let mut native = linker.instance(DRILL)?;
    native.func_wrap_async("run", |mut store: StoreContextMut<'_, CallState>, (script,): (String,)| {
        let outside = store.data_mut().called().caller.outside();
        Box::new(async move {
            // A component on a thread of the host has no process of its own to attack.
            let Some(link) = LINK.get() else { return Err(wasmtime::Error::msg("a drill needs a sandbox process")) };
            let process = script::Process { link, call: LATEST.load(Ordering::Relaxed), outside };
            script::run(&script, &process).await.map(|answers| (answers,)).map_err(wasmtime::Error::msg)
        })
    })
}
