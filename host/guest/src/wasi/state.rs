//! The data of one call's store: the WASI context with its grants, the resource table, the limiter,
//! the log.
//!
//! Rarely edit this on purpose: changing the type of the linker recompiles every WASI function.
use std::sync::Arc;

use toolcell_policy::{Denial, Invocation, Limits};
use toolcell_wall::doors::net_limits::NetLimits;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::engine::fuel::HostFuel;
use crate::engine::limiter::MemoryLimiter;
use crate::recording::CallTape;
use crate::run::asking::CallQuestions;
use crate::run::calling::OutsideCalling;
use crate::wasi::cli::capture::LogBudget;
use crate::wasi::cli::standard::StandardStreams;
use crate::wasi::cli::{Printed, RunStreams};
use crate::wasi::files::{Files, FilesView};
use crate::wasi::guest_grants::GuestGrants;
use crate::wasi::http::{self as http, HttpHooks, UnsentMessages};
use crate::wasi::keyvalue::{KeyvalueView, OutsideState};
use crate::wasi::net::{OutsideNet, OutsideNetGuard};
use toolcell_wall::caller::CallerLink;
use toolcell_wall::denials::CallDenials;

/// The data of one store. Built for one call and dropped with it.
pub(crate) struct CallState {
    wasi: WasiCtx,
    standard: StandardStreams,
    table: ResourceTable,
    files: Files,
    pub(crate) limiter: MemoryLimiter,
    pub(crate) log: LogBudget,
    pub(crate) caller: Arc<dyn CallerLink>,
    pub(crate) denials: CallDenials,
    /// The way to the state that the host keeps.
    outside_state: Option<OutsideState>,
    pub(crate) asking: CallQuestions,
    /// The way to other tools.
    calling: OutsideCalling,
    capabilities: Arc<GuestGrants>,
    /// Fuel of the host functions that were called.
    pub(crate) fuel: HostFuel,
    /// Random bytes of one request.
    random_bytes: u64,
    /// True while the instance is prewarmed: there is no call yet that may reach anything.
    starting: bool,
    net_limits: NetLimits,
    /// Made at first use; most calls never need it.
    net: Option<OutsideNetGuard>,
    http: Option<HttpHooks>,
    http_context: WasiHttpCtx,
    unsent: UnsentMessages,
    /// The output of the running program, if any.
    last_words: Option<Printed>,
    /// The tape of a call that is recorded or replayed.
    tape: Option<Box<CallTape>>,
}

impl CallState {
    /// Whatever the grants do not name is absent: arguments, environment, preopens, sockets, name
    /// lookups. Standard input is closed. Standard output and error go to the call's log.
    pub(crate) fn new(limits: &Limits, capabilities: Arc<GuestGrants>, caller: Arc<dyn CallerLink>) -> Self {
        let log = LogBudget::new(limits.log_bytes());
        let standard = StandardStreams::of_call(capabilities.grants(), &log);
        let wasi = wasi_context(limits, &capabilities, &standard);
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles());
        let limiter = MemoryLimiter::new(limits.memory_bytes());
        let denials = CallDenials::new(Arc::clone(&caller));
        let asking = CallQuestions::of(limits);
        let calling = OutsideCalling::of(limits);
        let files = Files::new(Arc::clone(capabilities.files()));
        let net_limits = NetLimits::from(limits);
        let http_context = http::context(&net_limits);
        Self {
            wasi,
            standard,
            table,
            files,
            limiter,
            log,
            caller,
            denials,
            outside_state: None,
            asking,
            calling,
            capabilities,
            fuel: HostFuel::new(limits.fuel()),
            random_bytes: limits.random_bytes(),
            starting: false,
            net_limits,
            net: None,
            http: None,
            http_context,
            unsent: UnsentMessages::default(),
            last_words: None,
            tape: None,
        }
    }

    /// The state for a host function. Each call of one passes here once.
    pub(crate) fn called(&mut self) -> &mut Self {
        self.fuel.count_call();
        self.reached()
    }

    /// The state for functions that are counted further down.
    pub(crate) fn reached(&mut self) -> &mut Self {
        if self.starting {
            self.seal();
        }
        self
    }

    /// From now on, and until [`CallState::started`], code runs that no call was recorded or
    /// approved for.
    pub(crate) fn starting(&mut self) {
        self.starting = true;
    }

    /// Ends the start code. False if it called a host function: it got nothing, and its instance
    /// must not serve a call.
    pub(crate) fn started(&mut self) -> bool {
        self.starting = false;
        self.fuel.calls() == 0
    }

    /// Removes all of the tool's capabilities. The instance serves no more calls.
    #[cold]
    fn seal(&mut self) {
        if self.fuel.calls() == 0 {
            self.fuel.count_call();
        }
        let limits = Limits::default();
        let sealed = GuestGrants::sealed("");
        self.files = Files::new(Arc::clone(sealed.files()));
        self.standard = StandardStreams::of_call(sealed.grants(), &self.log);
        self.wasi = wasi_context(&limits, &sealed, &self.standard);
        self.net_limits = NetLimits::from(&limits);
        self.net = None;
        self.http = None;
        self.capabilities = sealed;
    }

    /// Takes fuel for the work that a host function is about to do.
    ///
    /// # Errors
    /// As [`HostFuel::spend`].
    pub(crate) fn spend(&mut self, fuel: u64) -> wasmtime::Result<()> {
        self.fuel.spend(fuel)
    }

    /// Begins the run of a program, with streams, arguments and variables for this run only.
    pub(crate) fn begin_run(&mut self, limits: &Limits, standard: RunStreams) {
        self.last_words = Some(standard.printed.clone());
        self.files.show_devices();
        let RunStreams { invocation, printed } = standard;
        let stdin = invocation.stdin.clone().or_else(|| self.capabilities.grants().stdin().map(str::to_owned));
        self.standard = StandardStreams::of_run(stdin, &printed);
        self.wasi = program_context(limits, &self.capabilities, &invocation, &self.standard);
    }

    /// The standard streams, for WASI 0.3.
    pub(super) fn standard(&self) -> &StandardStreams {
        &self.standard
    }

    /// The last words of a program that was stopped, and of no other guest.
    pub(crate) fn last_words(&self) -> String {
        self.last_words.as_ref().map(Printed::last_words).unwrap_or_default()
    }

    /// Records or replays the call.
    pub(crate) fn set_tape(&mut self, tape: CallTape) {
        self.tape = Some(Box::new(tape));
    }

    /// The tape of a call that is recorded or replayed.
    pub(crate) fn tape(&mut self) -> Option<&mut CallTape> {
        self.tape.as_deref_mut()
    }

    /// Prints what a replayed guest prints.
    pub(crate) fn print(&self, is_stdout: bool, bytes: &[u8]) -> wasmtime::Result<()> {
        self.standard.print(is_stdout, bytes)
    }

    /// The bytes of a file in this call's scratch space, at most `bytes_max`; or a sentence with
    /// the reason.
    pub(crate) fn read_own_file(&mut self, path: &str, bytes_max: u64) -> Result<Vec<u8>, String> {
        if let Some(CallTape::Playing(player)) = self.tape() {
            return player.own_file(path);
        }
        let read = self.files.read_own(path, bytes_max);
        if let Some(CallTape::Recording(recorder)) = self.tape() {
            recorder.own_file(path, &read);
        }
        read
    }

    /// Makes a file in this call's scratch space; or a sentence with the reason.
    pub(crate) fn write_own_file(&mut self, path: &str, bytes: &[u8]) -> Result<(), String> {
        self.files.write_own(path, bytes)
    }

    /// From now on, the guest's progress, log and denials go to this caller.
    pub(crate) fn hand_to(&mut self, caller: Arc<dyn CallerLink>) {
        self.files.end_call();
        self.denials.hand_to(Arc::clone(&caller));
        self.caller = caller;
        // Connections that the last call left open end here.
        self.http = None;
        self.net = None;
        self.outside_state = None;
        self.calling.close();
    }

    /// The call's share of the network.
    pub(crate) fn net(&mut self) -> &Arc<OutsideNet> {
        self.net.get_or_insert_with(|| OutsideNetGuard::new(self.net_limits)).net()
    }

    /// The most random bytes of one request.
    pub(crate) fn random_bytes_max(&self) -> u64 {
        self.random_bytes
    }

    /// Takes room for bytes that the host keeps for an unsent HTTP message; false if there is none.
    ///
    /// # Errors
    /// As [`HostFuel::spend`]: where room is short, the messages are counted.
    pub(crate) fn holds_unsent(&mut self, handle: u32, bytes: usize) -> wasmtime::Result<bool> {
        if !self.unsent.has_room(bytes) {
            self.spend(self.unsent.len() as u64)?;
            self.unsent.count(&self.table);
        }
        Ok(self.unsent.take(handle, bytes))
    }

    /// The guest's handles, for host functions of this crate that are counted elsewhere.
    pub(crate) fn table(&mut self) -> &mut ResourceTable {
        &mut self.table
    }

    /// Reports that the guest asked for something that its tool is not granted.
    pub(crate) fn deny(&self, denial: Denial) {
        self.denials.add(denial);
    }

    /// One value of `wasi:config`.
    pub(crate) fn setting(&self, key: &str) -> Option<String> {
        let value = self.capabilities.setting(key);
        if value.is_none() && self.capabilities.observing() {
            self.deny(self.capabilities.grants().no_setting(key));
        }
        value
    }

    /// Prepares for a call of another tool with the same mounts.
    pub(crate) fn set_capabilities(&mut self, capabilities: &Arc<GuestGrants>) {
        self.files.set_prepared(capabilities.files());
        self.capabilities = Arc::clone(capabilities);
        self.http = None;
    }

    /// Sets the network limits of another tool.
    pub(crate) fn set_net_limits(&mut self, limits: &Limits) {
        self.net_limits = NetLimits::from(limits);
        self.http_context = http::context(&self.net_limits);
    }

    /// `wasi:filesystem` of this call.
    pub(crate) fn files(&mut self) -> FilesView<'_> {
        self.called();
        self.files_again()
    }

    /// The same, for the rest of a function that was counted when it began.
    pub(crate) fn files_again(&mut self) -> FilesView<'_> {
        FilesView { files: &mut self.files, table: &mut self.table, denials: &self.denials }
    }

    /// `wasi:keyvalue` of this call.
    pub(crate) fn keyvalue(&mut self) -> KeyvalueView<'_> {
        self.called();
        let outside = self.caller.outside();
        let state = outside.map(|outside| self.outside_state.get_or_insert_with(|| OutsideState::new(outside)));
        KeyvalueView { state, table: &mut self.table, fuel: &mut self.fuel }
    }

    /// Refills the budget of calls of other tools.
    pub(crate) fn set_calling(&mut self, limits: &Limits) {
        self.calling = OutsideCalling::of(limits);
    }

    /// The calls of other tools, and the time that they may wait for persons.
    pub(crate) fn calling(&mut self) -> (&mut OutsideCalling, &CallQuestions) {
        (&mut self.calling, &self.asking)
    }

    /// The capabilities of the tool.
    pub(crate) fn capabilities(&self) -> &Arc<GuestGrants> {
        &self.capabilities
    }
}

fn wasi_context(limits: &Limits, capabilities: &GuestGrants, standard: &StandardStreams) -> WasiCtx {
    let mut builder = context_of(limits);
    standard.give_to(&mut builder);
    for (name, value) in capabilities.environment() {
        builder.env(name, value);
    }
    let grants = capabilities.grants();
    if !grants.args().is_empty() {
        builder.args(grants.args());
    }
    builder.build()
}

/// The context of one run of a program: the component's fixed arguments and variables, and the
/// run's own.
fn program_context(
    limits: &Limits,
    capabilities: &GuestGrants,
    invocation: &Invocation,
    standard: &StandardStreams,
) -> WasiCtx {
    let mut builder = context_of(limits);
    standard.give_to(&mut builder);
    let own = |name: &str| invocation.env.iter().any(|(other, _)| other == name);
    for (name, value) in capabilities.environment().iter().filter(|(name, _)| !own(name)).chain(&invocation.env) {
        builder.env(name, value);
    }
    let grants = capabilities.grants();
    // By custom a program's first argument is its name.
    builder.arg(grants.subject().component()).args(grants.args()).args(&invocation.args);
    builder.build()
}

/// What every guest's context has: bounds, and no socket of the kernel's.
fn context_of(limits: &Limits) -> WasiCtxBuilder {
    let mut builder = WasiCtx::builder();
    builder.max_random_size(limits.random_bytes());
    builder.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
    builder
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.called();
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for CallState {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        self.called();
        let net = Arc::clone(self.net());
        let Self { http, table, http_context, caller, .. } = self;
        let hooks = http.get_or_insert_with(|| HttpHooks::new(net, caller.as_ref()));
        WasiHttpCtxView { hooks, table, ctx: http_context }
    }
}
