//! The audit file as a whole: written, continued, torn, tampered with, full.
//!
//! Promise: the audit shows changes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use toolcell_audit::{
    Break, CallFinished, CallStarted, Clipped, ComponentLoaded, Event, HostStopped, LineError, OpenError, Opened,
    Outcome, RECORD_BYTES_MAX, Reason, Sink, SinkError, Summary, Usage, verify,
};

struct Folder {
    _folder: TempDir,
    file: PathBuf,
}

fn folder() -> Folder {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    Folder { _folder: folder, file }
}

fn stopped<'a>(calls: u64) -> Event<'a> {
    Event::HostStopped(HostStopped { reason: Clipped("end of input"), calls })
}

fn finished<'a>(id: u64) -> Event<'a> {
    Event::CallFinished(CallFinished {
        id,
        tool: "echo",
        outcome: Outcome::Ok,
        usage: Usage::default(),
        uses: None,
        uses_left_out: 0,
        detail: None,
        recording: None,
    })
}

fn write(file: &Path, records: u64) -> Opened {
    let (sink, opened) = Sink::open(file).unwrap();
    for calls in 0..records {
        sink.record(|| stopped(calls)).unwrap();
    }
    opened
}

fn check(text: &[u8]) -> Result<Summary, Break> {
    verify(text)
}

#[test]
fn a_record_carries_link_time_event_and_fields_in_order() {
    let folder = folder();
    let (sink, opened) = Sink::open(&folder.file).unwrap();
    assert_eq!(opened, Opened { records: 0, torn_bytes: 0 });
    let started = CallStarted {
        id: 1,
        generation: 1,
        era: "legacy",
        revision: "2025-11-25",
        caller: Clipped("local"),
        request: Clipped("7"),
        trace: None,
        parent: None,
        root: None,
        depth: None,
        tool: "wx_forecast",
        component: "weather",
        component_digest: "sha256:aa",
        policy_digest: "sha256:bb",
        arguments_digest: "sha256:cc",
        arguments_bytes: 2,
        arguments: None,
    };
    sink.record(|| Event::CallStarted(started)).unwrap();
    let text = fs::read_to_string(&folder.file).unwrap();
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    let time = record["time"].as_str().unwrap();
    assert_eq!(
        text,
        format!(
            "{{\"seq\":1,\"prev\":\"{}\",\"time\":\"{time}\",\"event\":\"call.started\",\"id\":1,\"generation\":1,\
             \"era\":\"legacy\",\"revision\":\"2025-11-25\",\"caller\":\"local\",\"request\":\"7\",\
             \"tool\":\"wx_forecast\",\"component\":\"weather\",\"component_digest\":\"sha256:aa\",\
             \"policy_digest\":\"sha256:bb\",\"arguments_digest\":\"sha256:cc\",\"arguments_bytes\":2}}\n",
            "0".repeat(64)
        )
    );
    assert_eq!(fs::metadata(&folder.file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_chain_is_continued_by_the_next_process() {
    let folder = folder();
    write(&folder.file, 3);
    assert_eq!(write(&folder.file, 2), Opened { records: 3, torn_bytes: 0 });
    let summary = check(&fs::read(&folder.file).unwrap()).unwrap();
    assert_eq!(summary.records, 5);
    let (first, last) = summary.times.unwrap();
    assert!(first <= last && first.ends_with('Z'));
}

#[test]
fn an_empty_audit_is_whole() {
    let summary = check(b"").unwrap();
    assert_eq!((summary.records, summary.head, summary.times), (0, "0".repeat(64), None));
}

#[test]
fn whoever_tampers_is_found_out_at_the_line() {
    let folder = folder();
    write(&folder.file, 4);
    let text = fs::read_to_string(&folder.file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let join = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes();
    let changed = lines[1].replace("\"calls\":1", "\"calls\":9");
    let too_long = format!("{{\"seq\":{}", " ".repeat(RECORD_BYTES_MAX));
    for (what, text, line, expected) in [
        ("changed", join(&[lines[0], &changed, lines[2], lines[3]]), 3, "does not follow"),
        ("removed", join(&[lines[0], lines[2], lines[3]]), 2, "record 3 stands where record 2 belongs"),
        ("begun late", join(&lines[1..]), 1, "record 2 stands where record 1 belongs"),
        ("doubled", join(&[lines[0], lines[0]]), 2, "record 1 stands where record 2 belongs"),
        ("swapped", join(&[lines[0], lines[2], lines[1]]), 2, "record 3 stands"),
        ("inserted", join(&[lines[0], "hello", lines[1]]), 2, "not an audit record"),
        ("link given twice", join(&[&lines[0].replacen("{\"seq\":1,", "{\"seq\":1,\"seq\":1,", 1)]), 1, "not an audit"),
        ("cut within", text.as_bytes()[..text.len() - 5].to_vec(), 4, "the record is torn"),
        ("last newline cut", text.as_bytes()[..text.len() - 1].to_vec(), 4, "the record is torn"),
        ("too long", join(&[lines[0], &too_long]), 2, "longer than"),
    ] {
        let broken = check(&text).unwrap_err();
        assert_eq!(broken.line, line, "{what}: {broken}");
        assert!(broken.to_string().contains(expected), "{what}: {broken}");
    }
}

#[test]
fn cutting_off_whole_records_shows_in_the_head() {
    let folder = folder();
    write(&folder.file, 2);
    let text = fs::read_to_string(&folder.file).unwrap();
    let first = format!("{}\n", text.lines().next().unwrap());
    let whole = check(text.as_bytes()).unwrap();
    let cut = check(first.as_bytes()).unwrap();
    assert_ne!(whole.head, cut.head);
}

#[test]
fn a_torn_record_is_cut_off_and_the_audit_says_so() {
    let folder = folder();
    write(&folder.file, 2);
    let mut text = fs::read(&folder.file).unwrap();
    text.extend_from_slice(b"{\"seq\":3,\"prev\":\"ab");
    fs::write(&folder.file, &text).unwrap();
    assert!(matches!(check(&text), Err(Break { line: 3, reason: Reason::Line(LineError::Torn), .. })));

    assert_eq!(write(&folder.file, 1), Opened { records: 2, torn_bytes: 19 });
    let text = fs::read_to_string(&folder.file).unwrap();
    assert_eq!(check(text.as_bytes()).unwrap().records, 4);
    let repaired = text.lines().nth(2).unwrap();
    assert!(repaired.ends_with("\"event\":\"audit.repaired\",\"dropped_bytes\":19}"), "{repaired}");
}

#[test]
fn a_file_that_is_no_audit_is_left_as_it_is() {
    for text in ["my notes", "my notes\n", "{\"seq\":1}\n", "\0\0\0"] {
        let folder = folder();
        fs::write(&folder.file, text).unwrap();
        assert!(matches!(Sink::open(&folder.file), Err(OpenError::NotAnAudit)), "{text:?}");
        assert_eq!(fs::read_to_string(&folder.file).unwrap(), text);
    }
}

#[test]
fn two_writers_do_not_share_a_file() {
    let folder = folder();
    let first = Sink::open(&folder.file).unwrap();
    let second = Sink::open(&folder.file).unwrap().0;
    assert_eq!(first.0.path(), Some(&*folder.file));
    let other = folder.file.with_file_name(format!("{}-2", folder.file.file_name().unwrap().to_str().unwrap()));
    assert_eq!(second.path(), Some(&*other));
    let chains = toolcell_audit::chains(&folder.file).unwrap();
    let chains: Vec<_> = chains.into_iter().map(|chain| (chain.number, chain.path)).collect();
    assert_eq!(chains, [(1, folder.file.clone()), (2, other)]);
    drop(first);
    assert_eq!(Sink::open(&folder.file).unwrap().0.path(), Some(&*folder.file), "the free one is continued");
}

#[test]
fn a_full_disk_refuses_each_record() {
    let (sink, opened) = Sink::open(Path::new("/dev/full")).unwrap();
    assert_eq!(opened, Opened { records: 0, torn_bytes: 0 });
    for id in 0..2 {
        let error = sink.record(|| finished(id)).unwrap_err();
        let SinkError::Io(cause) = &error else { unreachable!("{error}") };
        assert_eq!(cause.kind(), std::io::ErrorKind::StorageFull, "{error}");
    }
}

#[test]
fn a_fifo_is_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("audit.jsonl");
    let link = folder.path().join("link");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    std::os::unix::fs::symlink(&fifo, &link).unwrap();
    for path in [&fifo, &link] {
        let error = Sink::open(path).unwrap_err();
        assert_eq!(error.to_string(), "cannot open the audit file: not a regular file");
    }
}

#[test]
fn a_record_too_large_is_refused_and_the_chain_goes_on() {
    let folder = folder();
    let (sink, _) = Sink::open(&folder.file).unwrap();
    let names = vec!["a".repeat(64); 3_000];
    let tools: Vec<&str> = names.iter().map(String::as_str).collect();
    let loaded = |tools: &[&str]| {
        let loaded = ComponentLoaded {
            generation: 1,
            name: "weather",
            digest: "sha256:aa",
            size_bytes: 1,
            policy_digest: "sha256:bb",
            tools,
            source: Clipped("components/weather.wasm"),
            signed_by: None,
        };
        sink.record(|| Event::ComponentLoaded(loaded))
    };
    assert!(matches!(loaded(&tools), Err(SinkError::TooLarge { bytes }) if bytes > RECORD_BYTES_MAX));
    loaded(&tools[..1_000]).unwrap();
    sink.record(|| stopped(0)).unwrap();
    let text = fs::read_to_string(&folder.file).unwrap();
    assert!(text.lines().next().unwrap().ends_with("\"event\":\"audit.missed\",\"records\":1}"), "{text}");
    assert_eq!(check(text.as_bytes()).unwrap().records, 3);
}

#[test]
fn records_of_many_threads_form_one_chain() {
    let folder = folder();
    let (sink, _) = Sink::open(&folder.file).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let sink = &sink;
            scope.spawn(move || (0..100).for_each(|id| sink.record(|| finished(thread * 100 + id)).unwrap()));
        }
    });
    assert_eq!(check(&fs::read(&folder.file).unwrap()).unwrap().records, 800);
}

#[test]
fn a_disabled_sink_does_not_even_make_the_event() {
    let sink = Sink::disabled();
    assert!(!sink.is_enabled());
    sink.record(|| unreachable!("the event was made")).unwrap();
}
