//! The standard streams of a store: what a guest reads, and what happens to its output. Both
//! versions of WASI go through them.
use toolcell_policy::Grants;
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::p2::pipe::MemoryInputPipe;

use crate::wasi::cli::capture::LogBudget;
use crate::wasi::cli::printing::Printer;
use crate::wasi::cli::run_streams::{Printed, Stream};

/// The standard streams of a guest.
#[derive(Clone, Debug)]
pub(crate) struct StandardStreams {
    /// `None`: standard input is closed.
    pub(crate) stdin: Option<MemoryInputPipe>,
    pub(crate) stdout: OutputStream,
    pub(crate) stderr: OutputStream,
}

/// Where a guest's output goes.
#[derive(Clone, Debug)]
pub(crate) enum OutputStream {
    /// The call's log.
    Log(LogBudget),
    /// The output of a program.
    Run(Stream),
}

impl StandardStreams {
    /// Those of a guest that is not a program.
    pub(crate) fn of_call(grants: &Grants, log: &LogBudget) -> Self {
        let stdin = grants.stdin().map(|text| MemoryInputPipe::new(text.to_owned()));
        let output = OutputStream::Log(log.clone());
        Self { stdin, stdout: output.clone(), stderr: output }
    }

    /// Those of one run of a program.
    pub(crate) fn of_run(stdin: Option<String>, printed: &Printed) -> Self {
        let stdin = stdin.map(MemoryInputPipe::new);
        Self { stdin, stdout: OutputStream::Run(printed.out()), stderr: OutputStream::Run(printed.error()) }
    }

    /// Prints to standard output, or to standard error.
    pub(crate) fn print(&self, is_stdout: bool, bytes: &[u8]) -> wasmtime::Result<()> {
        if is_stdout { self.stdout.print(bytes) } else { self.stderr.print(bytes) }
    }

    /// Gives them to a context of WASI 0.2.
    pub(crate) fn give_to(&self, builder: &mut WasiCtxBuilder) {
        builder.stdout(Printer(self.stdout.clone())).stderr(Printer(self.stderr.clone()));
        if let Some(stdin) = &self.stdin {
            builder.stdin(stdin.clone());
        }
    }
}

impl OutputStream {
    /// Receives output without waiting. An error ends the call.
    pub(crate) fn print(&self, bytes: &[u8]) -> wasmtime::Result<()> {
        match self {
            Self::Log(log) => {
                log.keep(bytes);
                Ok(())
            }
            Self::Run(stream) => stream.print(bytes).map_err(wasmtime::Error::new),
        }
    }
}
