//! The interfaces that guests can import, each with its implementation. No policy: rights are
//! decided when an import is called.
use wasmtime::StoreContextMut;
use wasmtime::component::{ComponentType, HasSelf, Lift, Linker, Lower};
use wasmtime_wasi::cli::{WasiCli, WasiCliView as _};
use wasmtime_wasi::p2::bindings::{cli, random as wasi_random};
use wasmtime_wasi::random::WasiRandom;
use wasmtime_wasi::{WasiView as _, p2};
use wasmtime_wasi_config::WasiConfig;

use crate::bindings;
use crate::wasi::files;
use crate::wasi::state::CallState;
use crate::wasi::{http, keyvalue, random, sockets};

/// The imports that this host offers: packages, and single interfaces up to the version where not
/// all of a package is offered.
const OFFERED: [&str; 13] = [
    "wasi:cli/",
    "wasi:clocks/",
    "wasi:filesystem/",
    "wasi:io/",
    "wasi:random/",
    "wasi:sockets/",
    "wasi:http/types@",
    "wasi:http/outgoing-handler@",
    "wasi:config/store@",
    "wasi:keyvalue/store@",
    "wasi:keyvalue/atomics@",
    "wasi:keyvalue/batch@",
    "toolcell:mcp/",
];

/// Interfaces of WASI are offered in these versions alone.
const WASI: &str = "wasi:";
const WASI_VERSIONS: &str = "0.2.";

type State = CallState;

/// True if this host offers the import.
pub(crate) fn offered(name: &str) -> bool {
    let of_wasi = name.starts_with(WASI);
    let version = name.rsplit_once('@').map(|(_, version)| version);
    OFFERED.iter().any(|package| name.starts_with(package))
        && (!of_wasi || version.is_none_or(|version| version.starts_with(WASI_VERSIONS)))
}

/// Adds every interface that this host offers.
pub(crate) fn add_all(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    // wasi:io, clocks, standard input and output.
    p2::add_to_linker_proxy_interfaces_async(linker)?;
    // These replace the interfaces that came with the proxies.
    linker.allow_shadowing(true);
    random::add_to_linker(linker)?;
    linker.allow_shadowing(false);
    add_cli(linker)?;
    files::add_to_linker(linker, State::files)?;
    sockets::add_to_linker(linker)?;
    // wasi:config, over the tool's values.
    wasmtime_wasi_config::add_to_linker(linker, |state: &mut State| {
        WasiConfig::from(state.called().capabilities().config())
    })?;
    linker.allow_shadowing(true);
    add_setting(linker)?;
    linker.allow_shadowing(false);
    keyvalue::add_to_linker(linker, State::keyvalue)?;
    // wasi:http, outgoing alone.
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)?;
    linker.allow_shadowing(true);
    http::add_handle(linker)?;
    linker.allow_shadowing(false);
    bindings::ToolComponent::add_to_linker::<_, HasSelf<_>>(linker, State::called)
}

/// The error of `wasi:config/store`. A value in memory is found or not, so none is ever made.
#[derive(ComponentType, Lift, Lower)]
#[component(variant)]
enum SettingError {
    #[component(name = "upstream")]
    Upstream(String),
    #[component(name = "io")]
    Io(String),
}

/// `get` of `wasi:config/store`, which notes a key that is missing where attempts are observed.
fn add_setting(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut store = linker.instance("wasi:config/store@0.2.0-rc.1")?;
    store.func_wrap("get", |mut store: StoreContextMut<'_, State>, (key,): (String,)| {
        Ok((Ok::<_, SettingError>(store.data_mut().called().setting(&key)),))
    })
}

fn add_cli(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    wasi_random::insecure_seed::add_to_linker::<State, WasiRandom>(linker, |state| state.ctx().ctx.random())?;
    cli::exit::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::environment::add_to_linker::<State, HasSelf<_>>(linker, State::reached)?;
    cli::terminal_input::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::terminal_output::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::terminal_stdin::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::terminal_stdout::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::terminal_stderr::add_to_linker::<State, WasiCli>(linker, State::cli)
}
