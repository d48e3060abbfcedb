//! The interfaces that guests can import, each with its implementation.
use wasmtime::component::{HasSelf, Linker};
use wasmtime_wasi::cli::{WasiCli, WasiCliView as _};
use wasmtime_wasi::p2::bindings::{cli, random as wasi_random};
use wasmtime_wasi::random::WasiRandom;
use wasmtime_wasi::{WasiView as _, p2};

use crate::bindings;
use crate::wasi::state::CallState;
use crate::wasi::{config, files, http, keyvalue, logging, p3, random, sockets};
use toolcell_wall::load::facts::GuestEngine;

type State = CallState;

/// Adds every interface that this host offers to components of an engine. WASI 0.3 needs the one
/// for async components.
pub(crate) fn add_all(linker: &mut Linker<State>, engine: GuestEngine) -> wasmtime::Result<()> {
    if engine == GuestEngine::Async {
        p3::add_to_linker(linker)?;
    }
    // wasi:io, clocks, standard input and output.
    p2::add_to_linker_proxy_interfaces_async(linker)?;
    // These replace the interfaces that came with the proxies.
    linker.allow_shadowing(true);
    random::add_to_linker(linker)?;
    linker.allow_shadowing(false);
    add_cli(linker)?;
    files::add_to_linker(linker, State::files)?;
    sockets::add_to_linker(linker)?;
    config::add_to_linker(linker)?;
    keyvalue::add_to_linker(linker, State::keyvalue)?;
    logging::add_to_linker(linker)?;
    // wasi:http, for outgoing requests only.
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)?;
    linker.allow_shadowing(true);
    http::add_handle(linker)?;
    http::add_bounds(linker)?;
    linker.allow_shadowing(false);
    #[cfg(feature = "drill")]
    crate::drill::add_to_linker(linker)?;
    bindings::ToolComponent::add_to_linker::<_, HasSelf<_>>(linker, State::called)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use toolcell_wall::load::offers::offered;

    use super::*;
    use crate::load::component::ToolComponent;
    use crate::load::sandbox::Sandbox;
    use toolcell_wall::pool_sizes::SandboxOptions;

    #[test]
    fn a_guest_with_sockets_is_linked_in_a_sandbox_process_as_in_the_host() {
        let codes = "\"unknown\" \"access-denied\" \"not-supported\" \"invalid-argument\" \"out-of-memory\" \
                     \"timeout\" \"concurrency-conflict\" \"not-in-progress\" \"would-block\" \"invalid-state\" \
                     \"new-socket-limit\" \"address-not-bindable\" \"address-in-use\" \"remote-unreachable\" \
                     \"connection-refused\" \"connection-reset\" \"connection-aborted\" \"datagram-too-large\" \
                     \"name-unresolvable\" \"temporary-resolver-failure\" \"permanent-resolver-failure\"";
        let protocol = |name: &str| {
            format!(
                r#"(import "wasi:sockets/{name}@0.2.3" (instance ${name} (export "{name}-socket" (type (sub resource)))))
                (alias export ${name} "{name}-socket" (type ${name}-socket))
                (import "wasi:sockets/{name}-create-socket@0.2.3" (instance
                    (alias outer 1 $error-code (type $e)) (export "error-code" (type $code (eq $e)))
                    (alias outer 1 $family (type $f)) (export "ip-address-family" (type $of (eq $f)))
                    (alias outer 1 ${name}-socket (type $s)) (export "{name}-socket" (type $socket (eq $s)))
                    (export "create-{name}-socket" (func
                        (param "address-family" $of) (result (result (own $socket) (error $code)))))))"#
            )
        };
        let text = format!(
            r#"(component
                (import "wasi:sockets/network@0.2.3" (instance $network
                    (type $e (enum {codes})) (export "error-code" (type (eq $e)))
                    (type $f (enum "ipv4" "ipv6")) (export "ip-address-family" (type (eq $f)))))
                (alias export $network "error-code" (type $error-code))
                (alias export $network "ip-address-family" (type $family))
                {} {}
                (core module $module (func (export "run")))
                (core instance $instance (instantiate $module))
                (func (export "run") (canon lift (core func $instance "run"))))"#,
            protocol("tcp"),
            protocol("udp")
        );
        let component = wat::parse_str(text).unwrap();
        let options = SandboxOptions { calls_max: 1, ..SandboxOptions::default() };
        ToolComponent::load(&Sandbox::new(options).unwrap(), &component).unwrap();
    }

    #[test]
    fn each_name_of_a_draft_that_is_linked_is_offered() {
        assert!(config::INTERFACES.into_iter().chain(logging::INTERFACES).all(offered));
    }
}
