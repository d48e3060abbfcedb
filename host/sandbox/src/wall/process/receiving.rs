//! Messages of a process: each is checked, and then handled, or ends the process.
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use toolcell_walls::link::{self, Frame};

use super::calling::PendingCall;
use super::{ProcessState, SandboxProcess};
use crate::secrets::answer;
use toolcell_wall::asking::Inquiry;
use toolcell_wall::caller::FIRST_BYTES_MAX;
use toolcell_wall::doors::blob::Blob;
use toolcell_wall::encoding;
use toolcell_wall::failure::clipped;
use toolcell_wall::message::{self, CallId, FromSandbox, ToSandbox};
use toolcell_wall::start_call::StartCall;

/// Messages about calls that have ended. An honest process sends none after the end of a call.
const STRAYS_MAX: u64 = 1_000;

/// Bytes of the name of a host function, with its interface.
const FUNCTION_BYTES_MAX: usize = 512;

impl SandboxProcess {
    /// Handles a message. A malformed or unexpected one ends the process.
    pub(super) fn receive(self: &Arc<Self>, frame: &Frame) {
        // Checked before decoding, which takes a multiple of the bytes.
        let wrong = if frame.bytes.len() as u64 > self.bounds.message_bytes_max {
            Err("it sent more than any call may answer".to_owned())
        } else {
            encoding::decode(&frame.bytes)
                .map_err(|error| format!("it sent {error}"))
                .and_then(|said| self.take(said, frame.bytes.len()))
        };
        if let Err(wrong) = wrong {
            self.kill(&format!("its process broke the rules: {wrong}"));
        }
    }

    fn take(self: &Arc<Self>, message: FromSandbox, bytes: usize) -> Result<(), String> {
        if let FromSandbox::NotAhead(component, function) = &message {
            return self.not_prewarmed(*component, function);
        }
        let Some(id) = message.call() else { return self.take_of_process(message) };
        let Some(call) = self.lock().calls.get(&id).cloned() else {
            let is_stray = id < self.next.load(Ordering::Relaxed);
            let few = self.strays.fetch_add(1, Ordering::Relaxed) < STRAYS_MAX;
            return if is_stray && few { Ok(()) } else { Err("it names an unknown call".to_owned()) };
        };
        // A call ends once, with a message of bounded size.
        let ends = matches!(message, FromSandbox::Ended(..));
        if !ends && !call.messages.take(message::counted(bytes as u64)) {
            return Err("it reports too much about one call".to_owned());
        }
        match message {
            FromSandbox::Ended(_, report) => {
                self.lock().calls.remove(&id);
                call.end(Ok(report));
            }
            FromSandbox::Instantiated(_) => call.caller.instantiated(),
            FromSandbox::Progress { progress, total, message, .. } => {
                let message = message.map(|text| call.shown(text));
                call.caller.progress(progress, total, message.as_deref());
            }
            FromSandbox::Log { level, message, .. } => call.log(level, &message),
            FromSandbox::Updated(_, uri) => call.caller.updated(&call.capabilities.redactor().text(&uri)),
            FromSandbox::Denied { capability, asked, .. } => {
                let capability = message::capability(capability).ok_or("it names an unknown capability")?;
                call.denials.add_with(|| call.capabilities.grants().denied_elsewhere(capability, &asked));
            }
            FromSandbox::Used { fuel, memory_bytes, .. } => call.caller.used(fuel, memory_bytes),
            FromSandbox::Ask(_, asks) => self.ask(id, &call, asks)?,
            FromSandbox::OpenDoor(_, number, Blob(first)) => self.open_door(id, &call, number, first)?,
            FromSandbox::TakeBack(_) => call.take_back(),
            FromSandbox::NotLoaded(..) | FromSandbox::Sealed { .. } | FromSandbox::NotAhead(..) => {}
        }
        Ok(())
    }

    /// Reports once that instances of a component cannot be prewarmed.
    fn not_prewarmed(&self, component: u32, function: &str) -> Result<(), String> {
        let place = usize::try_from(component).unwrap_or(usize::MAX);
        let tell = self.bounds.tell.get(place).ok_or("it names an unknown component")?;
        if function.len() > FUNCTION_BYTES_MAX || self.noted.fetch_add(1, Ordering::Relaxed) >= self.bounds.tell.len() {
            return Err("it reports more about its components than there is".to_owned());
        }
        tell(&StartCall::of(function));
        Ok(())
    }

    fn take_of_process(&self, message: FromSandbox) -> Result<(), String> {
        if *self.state.borrow() != ProcessState::Starting {
            return Err("it starts again".to_owned());
        }
        match message {
            FromSandbox::NotLoaded(id, problem) => {
                if usize::try_from(id).is_ok_and(|id| id < self.bounds.tell.len()) {
                    let mut unusable = self.unusable.lock().unwrap_or_else(PoisonError::into_inner);
                    unusable.insert(id, clipped(problem));
                } else {
                    return Err("it names an unknown component".to_owned());
                }
            }
            FromSandbox::Sealed { missing } => {
                self.state.send_replace(ProcessState::Ready(missing));
            }
            _ => {}
        }
        Ok(())
    }

    /// Opens a door for a call. If that fails, the process gets an answer without one.
    fn open_door(&self, id: CallId, call: &PendingCall, number: u32, first: Vec<u8>) -> Result<(), String> {
        if first.len() > FIRST_BYTES_MAX {
            return Err("it opens a door with more than it may".to_owned());
        }
        let doors = call.doors();
        let theirs = doors.place().and_then(|place| {
            let (ours, theirs) = link::pair().ok()?;
            doors.serve(place, ours, first);
            Some(theirs)
        });
        let door: Vec<_> = theirs.iter().map(AsFd::as_fd).collect();
        self.send(&ToSandbox::Door(id, number), &door)
    }

    /// Asks the caller, and sends the answers to the process.
    fn ask(self: &Arc<Self>, id: CallId, call: &Arc<PendingCall>, asks: Vec<Inquiry>) -> Result<(), String> {
        let mut asking = call.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let asks_already = asking.as_ref().is_some_and(|asking| !asking.is_finished());
        if asks_already || call.doors().charge(&asks).is_err() {
            return Err("it asks more than a call may".to_owned());
        }
        let redactor = call.capabilities.redactor();
        let asks = asks.into_iter().map(|ask| answer::inquiry(redactor, ask)).collect();
        let this = Arc::clone(self);
        let asked = Arc::clone(call);
        let runtime = tokio::runtime::Handle::try_current().map_err(|error| error.to_string())?;
        let open = call.doors().waited().open();
        let task = runtime.spawn(async move {
            let answers = asked.caller.ask(asks).await;
            drop(open);
            // Its next question may come as soon as it has the answers.
            drop(asked.asking.lock().unwrap_or_else(PoisonError::into_inner).take());
            // The call may have ended meanwhile.
            let _ = this.send(&ToSandbox::Asked(id, answers), &[]);
        });
        *asking = Some(task);
        Ok(())
    }
}
