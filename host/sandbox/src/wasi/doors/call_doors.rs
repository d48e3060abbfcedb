//! The host's side of one call's doors.
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use rustix::process::{Resource, getrlimit};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use toolcell_policy::{Denial, Limit, Limits};
use toolcell_wall::doors::Opening;
use toolcell_wall::doors::net_limits::{LOOKUPS_AT_ONCE, NetLimits};
use toolcell_walls::door::{Door, DoorError, FrameReader, FrameWriter};

use crate::caller::calling::{self, CallingCounts, CallingParts};
use crate::caller::consent::{self, ConsentParts};
use crate::caller::uses::CallUses;
use crate::caller::waited::Waited;
use crate::wasi::capabilities::GrantedCapabilities;
use crate::wasi::http::{self, CallRequests};
use crate::wasi::keyvalue::{self, KeptState, StateSession};
use crate::wasi::net::{CallNet, NetGuard, OverDirection};
use crate::wasi::sockets::{self, Deciding, LookupParts};
use toolcell_wall::asking::{AskBudget, AskRefusal, Inquiry};
use toolcell_wall::caller::CallerLink;
use toolcell_wall::denials::CallDenials;
use toolcell_wall::failure::CallFailure;

/// Doors of a call in addition to those of its requests, lookups and sockets.
const OTHER_DOORS_MAX: usize = 4;

/// All doors that a call may open in addition to those of its operations.
const SPARE_DOORS: u64 = 16;

/// Descriptors that the host holds for a door.
const DESCRIPTORS_PER_DOOR: u64 = 2;

/// Descriptors that are assumed if the process has no limit.
const DESCRIPTORS_DEFAULT: u64 = 1 << 20;

/// Places of the open doors of all calls: they take a quarter of the process's descriptors. Files
/// of calls take half; the rest is for connections, processes and the host itself.
static ALL_PLACES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(DESCRIPTORS_DEFAULT).min(DESCRIPTORS_DEFAULT);
    let places = usize::try_from(descriptors / 4 / DESCRIPTORS_PER_DOOR).unwrap_or(Semaphore::MAX_PERMITS);
    Arc::new(Semaphore::new(places))
});

/// Doors that are open at once. A sandbox process may open one just before the host notices that
/// another closed, so each may exist twice.
fn open_max(limits: &NetLimits) -> usize {
    let sockets = usize::try_from(limits.sockets).unwrap_or(usize::MAX);
    let operations = limits.http_doors_max().saturating_add(sockets).saturating_add(LOOKUPS_AT_ONCE);
    operations.saturating_add(OTHER_DOORS_MAX).saturating_mul(2)
}

/// All doors of one call: one for each operation, and one for a permission request before it.
fn doors_max(limits: &NetLimits) -> u64 {
    limits.operations().saturating_mul(2).saturating_add(SPARE_DOORS)
}

/// Everything that one call has outside of its sandbox process: requests, connections, counters and
/// state. Dropping it ends all of that.
pub struct CallDoors {
    doors: Arc<DoorParts>,
    net: NetGuard,
}

/// What the tasks of a call's doors share.
struct DoorParts {
    capabilities: Arc<GrantedCapabilities>,
    caller: Arc<dyn CallerLink>,
    net: Arc<CallNet>,
    denials: CallDenials,
    requests: CallRequests,
    /// Locked by the one door to it.
    state: Mutex<StateSession>,
    state_failed: keyvalue::StateFailure,
    /// Bytes that go between the guest and the host at once.
    host_data_bytes: u64,
    /// Locked while a person is asked.
    asking: Mutex<AskBudget>,
    waited: Arc<Waited>,
    /// Locked by the one door to other tools.
    calling: Mutex<Arc<CallingCounts>>,
    misuse: Misuse,
    /// Places of open doors.
    places: Arc<Semaphore>,
    opened: AtomicU64,
}

/// The place of a door that is not open yet.
pub struct DoorPlace {
    _of_call: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

/// Reports once what no honest sandbox process sends. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Misuse(Arc<MisuseReport>);

struct MisuseReport {
    caller: Arc<dyn CallerLink>,
    told: AtomicBool,
}

impl Misuse {
    fn new(caller: Arc<dyn CallerLink>) -> Self {
        Self(Arc::new(MisuseReport { caller, told: AtomicBool::new(false) }))
    }

    /// Reports it, unless honest processes cause such an end, too.
    pub(crate) fn found(&self, error: &DoorError) {
        if error.is_misuse() && !self.0.told.swap(true, Ordering::AcqRel) {
            self.0.caller.misused(&error.to_string());
        }
    }
}

impl CallDoors {
    /// No doors yet. The capabilities are the tool's own, with secrets and state; the caller gets
    /// denials and questions.
    #[must_use]
    pub fn new(capabilities: &Arc<GrantedCapabilities>, limits: &Limits, caller: &Arc<dyn CallerLink>) -> Self {
        Self::noting(capabilities, limits, caller, None)
    }

    /// The same. Uses of grants are noted here, if somebody wants them.
    pub(crate) fn noting(
        capabilities: &Arc<GrantedCapabilities>,
        limits: &Limits,
        caller: &Arc<dyn CallerLink>,
        uses: Option<&Arc<CallUses>>,
    ) -> Self {
        let guard = NetGuard::new(NetLimits::from(limits), uses.cloned());
        let net = Arc::clone(guard.net());
        let denials = CallDenials::new(Arc::clone(caller));
        let doors = DoorParts {
            capabilities: Arc::clone(capabilities),
            caller: Arc::clone(caller),
            state: Mutex::default(),
            state_failed: keyvalue::StateFailure::default(),
            host_data_bytes: limits.host_data_bytes(),
            asking: Mutex::new(AskBudget::of(limits)),
            waited: Arc::default(),
            calling: Mutex::new(Arc::new(CallingCounts::of(limits))),
            requests: CallRequests::new(Arc::clone(capabilities.http()), Arc::clone(&net), denials.clone()),
            misuse: Misuse::new(Arc::clone(caller)),
            places: Arc::new(Semaphore::new(open_max(net.limits()))),
            opened: AtomicU64::new(0),
            denials,
            net,
        };
        Self { doors: Arc::new(doors), net: guard }
    }

    /// A place for one more door; `None` if the call, or all calls together, have as many as they
    /// may.
    pub fn place(&self) -> Option<DoorPlace> {
        let Some(of_call) = self.doors.place() else {
            self.doors.misuse.found(&DoorError::Wrong("more doors were opened than the call may have"));
            return None;
        };
        let of_all = Arc::clone(&ALL_PLACES).try_acquire_owned().ok()?;
        Some(DoorPlace { _of_call: of_call, _of_all: of_all })
    }

    /// Serves one door over one end of a stream socket, until it is closed or the call ends. The
    /// first bytes have come already. Returns at once.
    ///
    /// Call it within the tokio runtime that is to do the work.
    pub fn serve(&self, place: DoorPlace, socket: OwnedFd, first: Vec<u8>) {
        let doors = Arc::clone(&self.doors);
        // A call that has ended opens no door.
        let _ = self.net.net().spawn(async move {
            let _place = place;
            if let Err(error) = doors.door(socket, &first).await {
                doors.misuse.found(&error);
            }
        });
    }

    /// Ends every running operation, and closes the call's doors and connections. Usage, denials
    /// and writes stay known.
    pub fn close(&self) {
        self.net.net().end();
    }

    /// Closes them, and returns once the call's writes are on the disk. Without this call the
    /// writes are kept, too, but nobody waits for the disk.
    ///
    /// # Errors
    /// The writes are not on the disk, so the call's answer must not be sent.
    pub async fn settle(&self) -> Result<(), CallFailure> {
        self.close();
        let settled = self.doors.state.lock().await.settle().await;
        settled.map_err(|fault| CallFailure::from(&fault))
    }

    /// The failure of the call's state, if any. The sandbox process only knows that there was one.
    #[must_use]
    pub fn state_failure(&self) -> Option<CallFailure> {
        self.doors.state_failed.get()
    }

    /// Takes questions of the guest from the call's budget of questions, which permission requests
    /// use, too.
    ///
    /// # Errors
    /// The limit that they are over.
    pub fn charge(&self, asks: &[Inquiry]) -> Result<(), AskRefusal> {
        match self.doors.asking.try_lock() {
            Ok(mut budget) => budget.charge(asks),
            // No guest asks while it waits for a person.
            Err(_) => Err(AskRefusal::OverLimit("the call asks while it waits for a person".to_owned())),
        }
    }

    /// The time in which the call waits for a person.
    pub(crate) fn waited(&self) -> &Arc<Waited> {
        &self.doors.waited
    }

    /// Bytes of requests sent, and of responses received.
    #[must_use]
    pub fn traffic_bytes(&self) -> (u64, u64) {
        (self.doors.net.egress_bytes(), self.doors.net.ingress_bytes())
    }

    /// The first denials, and the number of all. Takes the denials.
    #[must_use]
    pub fn denials(&self) -> (Vec<Denial>, u64) {
        self.doors.denials.take()
    }

    /// The limit on bytes that the call exceeded, if any.
    #[must_use]
    pub fn over(&self) -> Option<Limit> {
        self.doors.net.over().map(|direction| match direction {
            OverDirection::Egress => Limit::Egress,
            OverDirection::Ingress => Limit::Ingress,
        })
    }
}

impl DoorParts {
    /// A place for one more door; `None` if there are too many, now or in total.
    fn place(&self) -> Option<OwnedSemaphorePermit> {
        let opened = self.opened.fetch_add(1, Ordering::Relaxed);
        let is_one_too_many = opened >= doors_max(self.net.limits());
        Arc::clone(&self.places).try_acquire_owned().ok().filter(|_| !is_one_too_many)
    }

    /// Serves one door until the operation is done, or the other side closes it.
    async fn door(&self, socket: OwnedFd, first: &[u8]) -> Result<(), DoorError> {
        let door = Door::of(socket)?;
        door.hold_back()?;
        let mut hangup = Some(door.hangup()?);
        let (mut reader, writer) = door.split_after(first);
        let opening = reader.message::<Opening>(self.net.limits().head_bytes_max()).await?;
        if matches!(opening, Opening::Tcp(_)) {
            // The last bytes of a connection may still be in the socket, so it is read to its end.
            hangup = None;
        }
        let closed = async {
            match hangup {
                Some(hangup) => hangup.wait().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            served = self.operation(opening, reader, writer) => served,
            () = closed => Ok(()),
        }
    }

    fn asked(&self) -> LookupParts<'_> {
        LookupParts { capabilities: &self.capabilities, net: &self.net, denials: &self.denials }
    }

    fn deciding(&self) -> Deciding<'_> {
        Deciding { net: &self.net, grants: self.capabilities.grants(), denials: &self.denials }
    }

    async fn operation(&self, opening: Opening, reader: FrameReader, mut writer: FrameWriter) -> Result<(), DoorError> {
        match opening {
            Opening::Http(head) => http::serve(&self.requests, &self.net, &self.misuse, *head, reader, writer).await,
            Opening::State => {
                let Ok(mut session) = self.state.try_lock() else {
                    return Err(DoorError::Wrong("a second door to the call's state was opened"));
                };
                let state = KeptState {
                    session: &mut session,
                    grants: self.capabilities.grants(),
                    granted: self.capabilities.keyvalue(),
                    denials: &self.denials,
                    caller: &*self.caller,
                    net: &self.net,
                };
                keyvalue::serve(state, &self.state_failed, self.host_data_bytes, reader, writer).await
            }
            Opening::Lookup(name) => {
                let addresses = sockets::look_up(self.asked(), &name).await;
                writer.message(&addresses).await
            }
            Opening::Tcp(wanted) => sockets::serve_tcp(self.deciding(), wanted, reader, writer).await,
            Opening::Udp(wanted) => sockets::serve_udp(self.deciding(), wanted, reader, writer).await,
            Opening::Calling => {
                let Ok(counts) = self.calling.try_lock() else {
                    return Err(DoorError::Wrong("a second door to other tools was opened"));
                };
                let calling = CallingParts {
                    capabilities: Arc::clone(&self.capabilities),
                    caller: Arc::clone(&self.caller),
                    net: Arc::clone(&self.net),
                    denials: self.denials.clone(),
                    waited: Arc::clone(&self.waited),
                    counts: Arc::clone(&counts),
                };
                calling::serve(calling, self.host_data_bytes, reader, writer).await
            }
            Opening::Consent(request) => {
                let mut budget = self.asking.lock().await;
                let _open = self.waited.open();
                let asked = self.asked();
                let caller = &*self.caller;
                let consenting = ConsentParts { asked, caller, budget: &mut budget, waits: None };
                consent::serve(consenting, request, writer).await
            }
        }
    }
}
