//! The host's end of loads against processes that send anything, or nothing: no load outlives its
//! time, and nothing invalid gets further than its message.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolcell_policy::{Limits, LoadLimit, LoadLimits};
use toolcell_schema::SchemaFindings;
use toolcell_walls::link::{self, Receiver, Sender};
use toolcell_walls::memory_file;
use toolcell_walls::process::{Command, Starter};

use super::kept::{KeptLoads, LIST};
use super::listing::{ListJob, ListName, ListingResult};
use super::loader::{Lister, LoadJob, Loader, LoaderOptions, NotLoaded, source_facts};
use super::run::{LoadBounds, LoaderRun};
use crate::load::cache::CodeCache;
use crate::load::held::{CodeElsewhere, CodeOrigin, HeldComponent};
use crate::wall::required::RequiredWalls;
use toolcell_wall::digest::ComponentDigest;
use toolcell_wall::encoding::encode;
use toolcell_wall::failure::CallFailure;
use toolcell_wall::load::cost::InstanceCost;
use toolcell_wall::load::definitions::SchemaLimits;
use toolcell_wall::load::descriptions::WrittenDescriptions;
use toolcell_wall::load::engine_name::EngineName;
use toolcell_wall::load::facts::{CodeFacts, ComponentFacts, GuestEngine, ShapeName, SourceFacts};
use toolcell_wall::load::message::{ANSWER_BYTES_MAX, FromLoader, ListReport, file_bytes_max, limits, limits_by_key};
use toolcell_wall::message::ToSandbox;
use toolcell_wall::pool_sizes::SandboxOptions;
use toolcell_wall::report::{CallReport, ListedBeside};
use toolcell_wall::sections::requested_permissions::CarriedPermissions;

const ADDS: &str = r#"(component
    (core module $module (func (export "add") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add))
    (core instance $instance (instantiate $module))
    (func (export "add") (param "a" u32) (param "b" u32) (result u32) (canon lift (core func $instance "add"))))"#;

/// The engine of all code here.
const ENGINE: EngineName = EngineName::new([7; 32]);

/// A process that does nothing, and its link, whose other end the test holds.
struct Hostile {
    run: LoaderRun,
    sender: Sender,
    receiver: Receiver,
    _starter: Starter,
}

impl Hostile {
    async fn new() -> Self {
        let starter = Starter::new().unwrap();
        let (process, _) = starter.start(idle()).await.unwrap();
        let (ours, theirs) = link::pair().unwrap();
        let (_, receiver) = link::open(ours).unwrap();
        let run = LoaderRun::over(process, receiver);
        let (sender, receiver) = link::join(theirs).await.unwrap();
        Self { run, sender, receiver, _starter: starter }
    }

    async fn hears(&mut self) -> Result<FromLoader, NotLoaded> {
        // What does not fit into the socket is written while the other end reads.
        let bounds = bounds(Duration::from_secs(3_600));
        let read = async {
            while self.receiver.receive().await.is_ok() {}
            std::future::pending().await
        };
        tokio::select! {
            heard = self.run.receive(&bounds) => heard,
            () = read => panic!("it reads for ever"),
        }
    }
}

fn idle() -> Command {
    Command::program("/bin/sleep").argument("3600")
}

fn bounds(time: Duration) -> LoadBounds<'static> {
    let until = Instant::now() + time;
    LoadBounds { until, answer_bytes_max: ANSWER_BYTES_MAX, memory_bytes_max: 1 << 30, files: &[] }
}

fn job(bytes: &[u8], time: Duration) -> LoadJob<'static> {
    let digest = ComponentDigest::of(bytes);
    let memory_bytes_max = 1 << 30;
    let call_memory_bytes = 1 << 20;
    LoadJob { digest, component: "tool", time, memory_bytes_max, call_memory_bytes, gives_way: false }
}

fn loader(program: Command, cache: Option<Arc<CodeCache>>) -> Loader {
    let stack_bytes = SandboxOptions::default().stack_bytes;
    let options = LoaderOptions { program: program.into(), stack_bytes, cache, required_walls: RequiredWalls::Best };
    Loader::new(options, Arc::new(Starter::new().unwrap()))
}

/// A component, and facts about it that a loader would tell.
fn held(name: Option<String>) -> (HeldComponent, ComponentFacts, CodeFacts) {
    let bytes = wat::parse_str(ADDS).unwrap();
    let facts = ComponentFacts {
        exports: vec!["add()".to_owned()],
        imports: Vec::new(),
        shape: ShapeName::Typed,
        is_program: false,
        left_out: Vec::new(),
        functions: Some(vec!["add".to_owned()]),
        describable: Some(["add", "add.a", "add.b"].map(str::to_owned).to_vec()),
        requested: CarriedPermissions::None,
    };
    let cost = InstanceCost { instances: 1, host_bytes: 1_600, ..InstanceCost::default() };
    let source = source_facts(ComponentDigest::of(&bytes), &bytes);
    let code = CodeFacts { source, engine: GuestEngine::Sync, cost };
    let file = memory_file::sealed(b"code").unwrap();
    let elsewhere = CodeElsewhere { file, facts: code, origin: CodeOrigin::Compiled, name };
    (HeldComponent::new(elsewhere, facts.clone()), facts, code)
}

#[tokio::test]
async fn each_wrong_answer_ends_the_load() {
    let large = FromLoader::Failed("x".repeat(ANSWER_BYTES_MAX));
    let table = [
        ("nothing", Vec::new()),
        ("another version", vec![0xff, 0]),
        ("garbage", vec![0xaa; 100]),
        ("more than it may", encode(&large).unwrap()),
        ("no answer", [encode(&FromLoader::NotWit(String::new())).unwrap(), vec![0]].concat()),
    ];
    for (what, bytes) in table {
        let mut hostile = Hostile::new().await;
        hostile.sender.send(&bytes, &[]).unwrap();
        let Err(NotLoaded::Ended { reason }) = hostile.hears().await else { panic!("{what}") };
        assert!(reason.starts_with("it broke the rules: it sent "), "{what}: {reason}");
    }
    let mut hostile = Hostile::new().await;
    let file = tempfile::tempfile().unwrap();
    hostile.sender.send(&encode(&FromLoader::Failed(String::new())).unwrap(), &[file.as_fd()]).unwrap();
    assert!(matches!(hostile.hears().await, Err(NotLoaded::Ended { .. })), "a descriptor");
}

#[tokio::test]
async fn a_loader_that_is_late_or_writes_too_much_or_closes_its_link_is_ended() {
    let mut hostile = Hostile::new().await;
    assert!(matches!(hostile.run.receive(&bounds(Duration::from_millis(20))).await, Err(NotLoaded::TooLate)));
    let mut hostile = Hostile::new().await;
    let file = memory_file::empty().unwrap();
    file.write_all_at(b"four", 0).unwrap();
    let answer = hostile.run.receive(&LoadBounds { files: &[(&file, 3)], ..bounds(Duration::from_secs(3_600)) }).await;
    assert_eq!(
        answer.unwrap_err().to_string(),
        "the process that loads it was ended: it broke the rules: it wrote more than 3B"
    );
    let mut hostile = Hostile::new().await;
    hostile.sender.close();
    let Err(NotLoaded::Ended { reason }) = hostile.hears().await else { panic!("a closed link") };
    assert!(reason.contains("signal: 9"), "{reason}");
    let mut hostile = Hostile::new().await;
    let answer = hostile.run.receive(&LoadBounds { memory_bytes_max: 1, ..bounds(Duration::from_secs(3_600)) }).await;
    assert!(matches!(answer, Err(NotLoaded::TooMuchMemory)));
}

#[tokio::test]
async fn files_that_a_loader_fills_count_as_its_memory() {
    let files = [(); 2].map(|()| memory_file::empty().unwrap());
    files.iter().for_each(|file| file.set_len(40 << 20).unwrap());
    let files = files.each_ref().map(|file| (file, file_bytes_max(64 << 20)));
    let until = Duration::from_secs(30);
    let mut hostile = Hostile::new().await;
    let answer = hostile.run.receive(&LoadBounds { files: &files, memory_bytes_max: 64 << 20, ..bounds(until) }).await;
    assert!(matches!(answer, Err(NotLoaded::TooMuchMemory)), "{answer:?}");
    // The total for all processes is exceeded as well, if it is smaller.
    let starter = Starter::bounded(1).unwrap();
    // It may be gone before its link is open.
    let heard = match LoaderRun::start(&starter, &idle().into(), &ToSandbox::Cancel(0), &[]).await {
        Ok(mut run) => run.receive(&bounds(Duration::from_secs(3_600))).await,
        Err(gone) => Err(gone),
    };
    let Err(NotLoaded::Ended { reason }) = heard else { panic!("it loads: {heard:?}") };
    assert!(reason.starts_with("all processes of components together took more memory than 0 MiB"), "{reason}");
    // Each may be as long as all of that memory, but not longer.
    assert_eq!([64 << 20, u64::MAX].map(file_bytes_max), [64 << 20, 1 << 30]);
}

#[tokio::test]
async fn a_load_whose_process_is_gone_or_silent_ends_with_a_reason() {
    let bytes = wat::parse_str(ADDS).unwrap();
    let gone =
        loader(Command::program("/bin/false"), None).load(&bytes, &job(&bytes, Duration::from_secs(3_600))).await;
    // Its link may be closed before the first message is sent.
    assert!(matches!(gone, Err(NotLoaded::Ended { .. } | NotLoaded::Failed(_))), "a process that ends");
    let silent = loader(idle(), None).load(&bytes, &job(&bytes, Duration::from_millis(50))).await;
    assert!(matches!(silent, Err(NotLoaded::TooLate)));
    let none = loader(Command::program("/nowhere"), None).load(&bytes, &job(&bytes, Duration::from_secs(3_600))).await;
    assert!(matches!(none, Err(NotLoaded::Failed(_))));
}

#[tokio::test]
async fn an_answer_out_of_its_turn_is_no_list() {
    let loader = loader(idle(), None);
    let (component, facts, _) = held(None);
    let answers = [
        FromLoader::Linked(Box::new(facts)),
        FromLoader::Ready { missing: Vec::new(), engine: None },
        FromLoader::Refused { message: String::new(), hint: String::new(), shown: None },
    ];
    for answer in answers {
        let Hostile { run, sender, receiver: _receiver, _starter } = Hostile::new().await;
        sender.send(&encode(&answer).unwrap(), &[]).unwrap();
        let limits = Limits::default();
        let written = WrittenDescriptions::default();
        let schemas = SchemaLimits::of(&toolcell_policy::LoadLimits::default(), Duration::from_secs(1));
        let job = ListJob { limits: &limits, memory_bytes_max: 1, written: &written, schemas };
        let listing = loader.list(&component, Some(Lister(run)), &[], &job);
        let ListingResult::Report(report, ..) = listing.await else { panic!("{answer:?}") };
        assert!(matches!(report.outcome, Err(CallFailure::SandboxEnded { .. })), "{answer:?}: {:?}", report.outcome);
    }
}

#[test]
fn what_a_loader_made_is_found_again_under_its_own_name_alone() {
    let root = tempfile::tempdir().unwrap();
    let cache = Arc::new(CodeCache::open(&root.path().join("code"), &root.path().join("state/key"), 1 << 30).unwrap());
    let stack_bytes = SandboxOptions::default().stack_bytes;
    let bytes = wat::parse_str(ADDS).unwrap();
    let kept = KeptLoads::new(Arc::clone(&cache), stack_bytes, true);
    let (component, facts, code) = held(None);
    let source = source_facts(component.digest(), &bytes);
    let name = kept.name(ENGINE, GuestEngine::Sync, source);
    let others = [
        kept.name(EngineName::new([8; 32]), GuestEngine::Sync, source),
        kept.name(ENGINE, GuestEngine::Async, source),
        kept.name(ENGINE, GuestEngine::Sync, SourceFacts { adapted: true, ..source }),
        KeptLoads::new(Arc::clone(&cache), stack_bytes, false).name(ENGINE, GuestEngine::Sync, source),
    ];
    assert!(!others.contains(&name), "another program, the other engine, a program of preview 1, or no walls");
    assert!(kept.find(source).is_none());
    // Code of another component, as an attacker who controls the loader would send it.
    let wrong = memory_file::sealed(b"no code at all").unwrap();
    assert!(kept.keep_code(&name, &wrong).is_some());
    kept.keep_facts(&name, &code, &facts);
    assert!(kept.find(source).is_none() && !kept.has(source), "nobody has said what engine it is for");
    kept.engine().learn(ENGINE);
    let found = kept.find(source).unwrap();
    assert_eq!(found.code_origin(), CodeOrigin::Cache);
    assert_eq!(found.inspection().exports(), component.inspection().exports());
    assert_eq!(found.engine(), GuestEngine::Sync);
    // Facts that claim another engine than that of their name.
    let claimed = CodeFacts { engine: GuestEngine::Async, ..code };
    kept.keep_facts(&name, &claimed, &facts);
    assert!(kept.find(source).is_none());
    // Code for the other engine.
    let name_async = kept.name(ENGINE, GuestEngine::Async, source);
    assert!(kept.keep_code(&name_async, &wrong).is_some());
    kept.keep_facts(&name_async, &claimed, &facts);
    assert_eq!(kept.find(source).unwrap().engine(), GuestEngine::Async);
    kept.keep_facts(&name, &code, &facts);
    // A file under another's name is refused.
    let at = |name: &str| root.path().join("code").join(name);
    let another = source_facts(ComponentDigest::of(b"another"), b"another");
    let other = kept.name(ENGINE, GuestEngine::Sync, another);
    std::fs::copy(at(&format!("loaded-{name}.cwasm")), at(&format!("loaded-{other}.cwasm"))).unwrap();
    std::fs::copy(at(&format!("facts-{name}.facts")), at(&format!("facts-{other}.facts"))).unwrap();
    assert!(kept.find(another).is_none());
}

#[test]
fn a_list_is_kept_for_the_limits_and_texts_that_it_was_made_with() {
    let root = tempfile::tempdir().unwrap();
    let cache = Arc::new(CodeCache::open(&root.path().join("code"), &root.path().join("state/key"), 1 << 30).unwrap());
    let kept = KeptLoads::new(cache, SandboxOptions::default().stack_bytes, true);
    let written = WrittenDescriptions::default();
    let other =
        WrittenDescriptions { given: [("a".to_owned(), "b".to_owned())].into(), ..WrittenDescriptions::default() };
    let less = Limits::default().with(toolcell_policy::Limit::HostData, 1 << 20).unwrap();
    let schemas = |load| SchemaLimits::of(&load, Duration::from_secs(1));
    let named = |limits: &Limits, written: &WrittenDescriptions, load| {
        ListName::of(LIST, "name", &ListJob { limits, memory_bytes_max: 1, written, schemas: schemas(load) }).unwrap()
    };
    let list = |limits: &Limits, written: &WrittenDescriptions| named(limits, written, LoadLimits::default());
    let listing = ListReport::new(
        CallReport::without_running(Vec::new()),
        Ok(ListedBeside::default()),
        SchemaFindings::default(),
    );
    kept.keep_listing(&list(&Limits::default(), &written), &listing);
    assert!(kept.listing(&list(&Limits::default(), &written)).is_some());
    assert!(kept.listing(&list(&Limits::default(), &other)).is_none());
    assert!(kept.listing(&list(&less, &written)).is_none());
    // A definition that was too large to check may have any problem.
    let larger = LoadLimits::default().with(LoadLimit::Definition, 1 << 20).unwrap();
    assert!(kept.listing(&named(&Limits::default(), &written, larger)).is_none());
    assert_eq!(limits(&limits_by_key(&less)), less);
}
