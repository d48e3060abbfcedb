//! A guest's operations, without the guest, through a door.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
#[path = "../../../../shared/tests/engine/mod.rs"]
mod engine;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine::Engine;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use toolcell_shared::{Kept, ValkeyOptions};
use toolcell_wall::doors::Opening;
use toolcell_wall::doors::state::{BATCH_KEYS_MAX, StateOperation, StateWanted};
use toolcell_wall::encoding::encode;
use toolcell_walls::door::framed_message;
use wasmtime::component::Resource;

use crate::testing::{TestCaller, TestDoors};
use crate::wasi::guest_grants::GuestGrants;
use crate::wasi::keyvalue::bindings::wasi::keyvalue::store::{Error, Host as _, HostBucket as _};
use crate::wasi::keyvalue::bindings::wasi::keyvalue::{atomics, batch};
use crate::wasi::keyvalue::host::{Bucket, Trouble};
use crate::wasi::state::CallState;
use toolcell_sandbox::{GrantSources, GrantedCapabilities};

/// State on this server.
fn kept(engine: &Engine) -> Arc<Kept> {
    let options = ValkeyOptions::at("127.0.0.1", engine.port());
    let options = ValkeyOptions { prefix: "test".to_owned(), within: Duration::from_secs(10), ..options };
    Kept::new(options).unwrap()
}

/// One call of a tool whose component has these tables.
struct Call {
    state: CallState,
    doors: TestDoors,
    caller: Arc<TestCaller>,
    capabilities: Arc<GrantedCapabilities>,
}

/// Each place of a guest's state, with a folder and a server that nobody used.
struct Way {
    folder: TempDir,
    shared: Option<(Engine, Arc<Kept>)>,
}

fn ways() -> Vec<Way> {
    let on_server = || {
        let engine = Engine::start(&[]);
        let kept = kept(&engine);
        (engine, kept)
    };
    [false, true]
        .into_iter()
        .map(|shared| Way { folder: TempDir::new().unwrap(), shared: shared.then(on_server) })
        .collect()
}

impl Way {
    fn call(&self, tables: &str) -> Call {
        let shared = self.shared.as_ref().map(|(_, kept)| kept);
        Call::on(self.folder.path(), shared, tables)
    }
}

impl Call {
    fn new(folder: &Path, tables: &str) -> Self {
        Self::on(folder, None, tables)
    }

    fn on(folder: &Path, shared_state: Option<&Arc<Kept>>, tables: &str) -> Self {
        let text = format!("version = 1\n[components.it]\nsource = \"it.wasm\"\n{tables}\n");
        let source = toolcell_policy::Source { name: "toolcell.toml", text: &text };
        let manifest = toolcell_policy::parse(&source).unwrap_or_else(|problems| panic!("{problems:?}")).manifest;
        let component = manifest.component("it").unwrap();
        let sources = GrantSources {
            observing: false,
            folder,
            variable: &|_| None,
            secret: &|_| Err(toolcell_policy::AdvisedFault::unadvised("")),
            state_folder: &folder.join("state"),
            shared_state,
            name_servers: &[],
        };
        let limits = component.tool_limits("tool");
        let capabilities =
            GrantedCapabilities::prepare(&component.tool_grants("tool"), &sources).unwrap_or_else(|p| panic!("{p:?}"));
        let doors = TestDoors::new(&capabilities, limits);
        let caller = Arc::clone(&doors.caller);
        let state = CallState::new(limits, GuestGrants::sealed("it"), doors.caller());
        Self { state, doors, caller, capabilities }
    }

    async fn open(&mut self, name: &str) -> Resource<Bucket> {
        self.state.keyvalue().open(name.to_owned()).await.unwrap()
    }

    /// The call has ended with an answer.
    async fn settle(&mut self) {
        self.doors.calls.settle().await.unwrap();
    }

    fn denials(&self) -> Vec<String> {
        self.doors.calls.denials().0.iter().map(ToString::to_string).collect()
    }
}

fn again(bucket: &Resource<Bucket>) -> Resource<Bucket> {
    Resource::new_borrow(bucket.rep())
}

fn told<T: std::fmt::Debug>(result: Result<T, Trouble>) -> String {
    match result.unwrap_err() {
        Trouble::Guest(Error::Other(text)) => text,
        other => format!("{other:?}"),
    }
}

const GRANTED: &str = "[components.it.keyvalue]\nquota = \"1KiB\"\nentries = 5\nvalue = \"100B\"";

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_does_what_it_says_and_is_kept() {
    for way in ways() {
        let mut call = way.call(GRANTED);
        let bucket = call.open("").await;
        let mut view = call.state.keyvalue();
        assert_eq!(view.get(again(&bucket), "a".to_owned()).await.unwrap(), None);
        view.set(again(&bucket), "a".to_owned(), b"1".to_vec()).await.unwrap();
        assert_eq!(view.get(again(&bucket), "a".to_owned()).await.unwrap().unwrap(), b"1");
        assert!(view.exists(again(&bucket), "a".to_owned()).await.unwrap());
        let number = atomics::Host::increment(&mut view, again(&bucket), "n".to_owned(), 41).await;
        assert_eq!(number.unwrap(), 41);
        let pairs = vec![("b".to_owned(), Vec::new()), ("c".to_owned(), vec![0xff; 100])];
        batch::Host::set_many(&mut view, again(&bucket), pairs).await.unwrap();
        let keys = ["c", "none", "b"].map(str::to_owned).to_vec();
        let found = batch::Host::get_many(&mut view, again(&bucket), keys).await.unwrap();
        assert_eq!(found, [Some(("c".to_owned(), vec![0xff; 100])), None, Some(("b".to_owned(), Vec::new()))]);
        batch::Host::delete_many(&mut view, again(&bucket), vec!["b".to_owned()]).await.unwrap();
        view.delete(again(&bucket), "a".to_owned()).await.unwrap();
        let page = view.list_keys(again(&bucket), None).await.unwrap();
        assert_eq!((page.keys, page.cursor), (vec!["n".to_owned(), "c".to_owned()], None));
        call.settle().await;
        assert!(call.caller.misuse.lock().unwrap().is_empty());
        drop(call);
        let mut next = way.call(GRANTED);
        let bucket = next.open("default").await;
        assert_eq!(next.state.keyvalue().get(bucket, "n".to_owned()).await.unwrap().unwrap(), b"41");
        assert_eq!(way.folder.path().join("state").exists(), way.shared.is_none());
    }
}

#[tokio::test]
async fn a_guest_is_told_the_same_of_every_bound() {
    let rows: [(&str, &str, usize); 4] = [
        ("a key", "a key is 1 to 512 bytes long", 0),
        ("a value", "quota: one value is at most 100 bytes", 101),
        ("no number", "the value is not a decimal number", 1),
        ("a batch", "one batch has at most 10000 keys", 2),
    ];
    for way in ways() {
        let mut call = way.call(GRANTED);
        let bucket = call.open("b").await;
        let mut view = call.state.keyvalue();
        view.set(again(&bucket), "x".to_owned(), b"x".to_vec()).await.unwrap();
        for (name, text, number) in rows {
            let said = match number {
                0 => told(view.get(again(&bucket), String::new()).await),
                1 => told(atomics::Host::increment(&mut view, again(&bucket), "x".to_owned(), 1).await),
                2 => {
                    let keys = vec!["x".to_owned(); BATCH_KEYS_MAX + 1];
                    told(batch::Host::delete_many(&mut view, again(&bucket), keys).await)
                }
                bytes => told(view.set(again(&bucket), "y".to_owned(), vec![0; bytes]).await),
            };
            assert!(said.starts_with(text), "{name}: {said}");
        }
        let pairs = (0..5).map(|n| (format!("k{n}"), vec![1])).collect();
        let said = told(batch::Host::set_many(&mut view, again(&bucket), pairs).await);
        assert!(said.starts_with("quota: at most 5 entries"), "{said}");
        assert!(matches!(view.open("a/b".to_owned()).await, Err(Trouble::Guest(Error::NoSuchStore))));
    }
}

#[tokio::test]
async fn without_a_grant_the_denial_reaches_the_caller_once() {
    let folder = TempDir::new().unwrap();
    let mut call = Call::new(folder.path(), "");
    let denied = call.state.keyvalue().open("b".to_owned()).await;
    assert!(matches!(denied, Err(Trouble::Guest(Error::AccessDenied))), "{denied:?}");
    let denials = call.denials();
    assert_eq!(denials.len(), 1);
    assert_eq!(*call.caller.denied.lock().unwrap(), denials);
}

#[tokio::test]
async fn fuel_is_the_same_wherever_the_state_is() {
    let mut spent = Vec::new();
    for way in ways() {
        let mut call = way.call(GRANTED);
        let bucket = call.open("b").await;
        call.state.keyvalue().set(again(&bucket), "a".to_owned(), vec![1; 50]).await.unwrap();
        call.state.keyvalue().get(again(&bucket), "a".to_owned()).await.unwrap();
        call.state.keyvalue().list_keys(bucket, None).await.unwrap();
        spent.push(call.state.fuel.spent());
    }
    assert!(spent.iter().all(|fuel| *fuel == spent[0]), "{spent:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_and_the_operator_are_told_that_the_server_is_away() {
    for way in ways().into_iter().filter(|way| way.shared.is_some()) {
        let mut call = way.call(GRANTED);
        let bucket = call.open("b").await;
        call.state.keyvalue().set(again(&bucket), "a".to_owned(), b"1".to_vec()).await.unwrap();
        let (engine, _) = way.shared.as_ref().unwrap();
        engine.ask(&["CONFIG", "SET", "maxmemory", "1"]);
        let away = "the state that replicas share cannot be reached; try again";
        let said = told(call.state.keyvalue().set(again(&bucket), "b".to_owned(), Vec::new()).await);
        assert_eq!(said, format!("{away}: it may have been done, so look first"));
        let noted = call.caller.away.lock().unwrap().clone();
        assert!(noted.len() == 1 && noted[0].contains("OOM") && noted[0].contains("127.0.0.1"), "{noted:?}");
        assert!(call.caller.misuse.lock().unwrap().is_empty());
        call.settle().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_have_namespaces_of_their_own_whatever_a_process_says() {
    let folder = TempDir::new().unwrap();
    let lines = format!("{GRANTED}\nper_caller = true");
    let mut call = Call::new(folder.path(), &lines);
    let bucket = call.open("b").await;
    call.state.keyvalue().set(bucket, "mine".to_owned(), b"1".to_vec()).await.unwrap();
    call.settle().await;
    // The host knows the caller as "tester", and the process does not know its name.
    let kept = async |caller: &str| call.capabilities.kept_value(caller, "b", "mine".to_owned()).await.unwrap();
    assert_eq!(kept("tester").await.unwrap(), b"1");
    assert_eq!(kept("").await, None);
}

/// Deletes as many empty keys.
fn deleting(keys: usize) -> StateWanted<'static> {
    StateWanted { bucket: "".into(), operation: StateOperation::DeleteMany(vec![String::new(); keys]) }
}

/// The frame of a message.
fn framed(message: &impl serde::Serialize) -> Vec<u8> {
    framed_message(&encode(message).unwrap())
}

#[tokio::test]
async fn a_process_that_speaks_otherwise_is_cut_off_and_its_writes_stay_within_bounds() {
    let opening = framed(&Opening::State);
    let rows: [(&str, Vec<u8>); 4] = [
        ("garbage", framed_message(&[0xff; 50])),
        ("longer than any", b"tw\x01\0\xff\xff\xff\x7f\0\0\0\0\0\0\0\0".to_vec()),
        ("more keys than any message has", framed(&deleting(100_000))),
        ("an opening again", opening.clone()),
    ];
    for (name, bytes) in rows {
        let folder = TempDir::new().unwrap();
        let call = Call::new(folder.path(), GRANTED);
        let mut door = call.doors.knock();
        door.write_all(&opening).await.unwrap();
        door.write_all(&bytes).await.unwrap();
        let mut said = Vec::new();
        let _ = door.read_to_end(&mut said).await;
        assert!(said.is_empty(), "{name}: {said:?}");
        assert_eq!(call.caller.misuse.lock().unwrap().len(), 1, "{name}");
    }
}

#[tokio::test]
async fn a_process_cannot_pass_the_bound_of_a_batch_by_its_own_words() {
    let folder = TempDir::new().unwrap();
    let call = Call::new(folder.path(), GRANTED);
    let mut door = call.doors.knock();
    door.write_all(&framed(&Opening::State)).await.unwrap();
    door.write_all(&framed(&deleting(BATCH_KEYS_MAX + 1))).await.unwrap();
    let mut said = vec![0; 200];
    let bytes = door.read(&mut said).await.unwrap();
    let said = String::from_utf8_lossy(&said[..bytes]);
    assert!(said.contains("one batch has at most 10000 keys"), "{said:?}");
}

#[tokio::test]
async fn a_call_has_one_door_to_its_state() {
    let folder = TempDir::new().unwrap();
    let mut call = Call::new(folder.path(), GRANTED);
    let bucket = call.open("b").await;
    let mut second = call.doors.knock();
    second.write_all(&framed(&Opening::State)).await.unwrap();
    assert_eq!(second.read(&mut [0]).await.unwrap(), 0);
    assert_eq!(*call.caller.misuse.lock().unwrap(), ["a second door to the call's state was opened"]);
    call.state.keyvalue().set(bucket, "a".to_owned(), Vec::new()).await.unwrap();
    call.settle().await;
    // The call has ended: so has its state.
    let ended = call.state.keyvalue().open("b".to_owned()).await;
    assert!(matches!(ended, Err(Trouble::Trap(_))), "{ended:?}");
}
