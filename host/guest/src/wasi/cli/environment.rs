//! `wasi:cli/environment`: wasmtime-wasi's own. If attempts are observed, each read of an empty
//! environment is noted.
use wasmtime_wasi::cli::WasiCliView as _;
use wasmtime_wasi::p2::bindings::cli::environment::Host;

use crate::wasi::state::CallState;

impl Host for CallState {
    fn get_environment(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        let variables = self.cli().get_environment()?;
        if variables.is_empty() && self.capabilities().observing() {
            self.deny(self.capabilities().grants().no_environment());
        }
        Ok(variables)
    }

    fn get_arguments(&mut self) -> wasmtime::Result<Vec<String>> {
        self.cli().get_arguments()
    }

    fn initial_cwd(&mut self) -> wasmtime::Result<Option<String>> {
        self.cli().initial_cwd()
    }
}
