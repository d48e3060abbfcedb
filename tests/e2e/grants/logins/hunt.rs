//! A hunt for the tokens of callers' logins: in traces, the log, the audit, the files of logins,
//! and the memory of guests.
//!
//! Promise: tokens of a login are secrets.
//! Promise: a caller's login is that caller's alone.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::FileExt as _;
use std::time::Instant;

use memchr::memmem;
use serde_json::json;
use toolcell_tests::loopback::{Collector, HttpServer, Manner, Scripted};
use toolcell_tests::patience;
use toolcell_tests::web::Wire;

use super::callers::{Scene, ended, modern, shown};
use crate::walls::sealed;

/// A path whose answer never comes.
const SILENT: &str = "/api/silent";

/// Bytes that are read of a process at once.
const CHUNK: usize = 1 << 16;

/// The words that are in the writable memory of a process, each once.
fn words_in(process: u32, words: &[String]) -> Vec<String> {
    let maps = BufReader::new(File::open(format!("/proc/{process}/maps")).unwrap());
    let memory = File::open(format!("/proc/{process}/mem")).unwrap();
    let longest = words.iter().map(String::len).max().unwrap_or_default();
    let mut found: Vec<String> = Vec::new();
    for line in maps.lines().map(Result::unwrap) {
        let mut parts = line.split_whitespace();
        let place = parts.next().unwrap();
        if !parts.next().unwrap().starts_with("rw") {
            continue;
        }
        let (start, end) = place.split_once('-').unwrap();
        let at = |text: &str| u64::from_str_radix(text, 16).unwrap();
        // The end of what was read before goes on in what is read next.
        let mut read = Vec::new();
        for address in (at(start)..at(end)).step_by(CHUNK) {
            let kept = read.len().min(longest);
            read.drain(..read.len() - kept);
            let bytes = CHUNK.min(usize::try_from(at(end) - address).unwrap());
            read.resize(kept + bytes, 0);
            if memory.read_exact_at(&mut read[kept..], address).is_err() {
                break;
            }
            if read.iter().any(|byte| *byte != 0) {
                let here = words.iter().filter(|word| memmem::find(&read, word.as_bytes()).is_some());
                let new: Vec<String> = here.filter(|word| !found.contains(word)).cloned().collect();
                found.extend(new);
            }
        }
    }
    found
}

#[test]
fn tokens_of_callers_are_in_no_trace_record_file_or_guest() {
    let collector = Collector::start(Manner::Takes);
    // It sends tokens back, which the host takes out.
    let api = HttpServer::scripted(|seen| match seen.target() {
        SILENT => Scripted::As("/silent"),
        _ => Scripted::Whole(200, "text/plain", seen.head.clone()),
    });
    let scene = Scene::serving(api, &format!("[traces]\nendpoint = \"{}\"\n", collector.url()));
    let mut answers = String::new();
    for (token, person) in [(&scene.ann, "ann"), (&scene.bob, "bob")] {
        let again = modern(true, &scene.api.url(&format!("/api/of-{person}")), &json!({}));
        let _ = scene.log_in(token, person);
        let frame = ended(&scene.host.ask(&shown(token, &again))).to_string();
        assert!(frame.contains("Bearer [redacted:"), "{frame}");
        answers.push_str(&frame);
    }
    let issued = scene.server.issued();
    assert_eq!(issued.len(), 4, "an access and a refresh token of each");
    // Neither caller's requests have anything of the other's.
    let (anns, bobs) = issued.split_at(2);
    for (target, own, other) in [("/api/of-ann", anns, bobs), ("/api/of-bob", bobs, anns)] {
        let seen = scene.api.seen().into_iter().find(|seen| seen.target() == target).unwrap();
        assert_eq!(seen.values("authorization"), [format!("Bearer {}", own[0])]);
        assert!(other.iter().all(|token| !seen.head.contains(token)), "{target}: {}", seen.head);
    }

    // Guests of both wait for the API, which has their tokens.
    let waiting = modern(true, &scene.api.url(SILENT), &json!({}));
    let mut wires = [&scene.ann, &scene.bob].map(|token| {
        let mut wire = Wire::to(scene.host.address());
        wire.send(&shown(token, &waiting).bytes());
        wire
    });
    let shown_there = || scene.api.seen().into_iter().filter(|seen| seen.target() == SILENT).count();
    let end = Instant::now() + patience();
    while shown_there() < wires.len() {
        assert!(Instant::now() < end, "{:?}", scene.api.seen());
        std::thread::yield_now();
    }
    let host = scene.host.process().process_id();
    let held = words_in(host, &issued);
    assert!(!held.is_empty(), "the host holds the tokens that it sent, so the search must find some");
    let processes = sealed(host);
    assert!(!processes.is_empty());
    for process in processes {
        assert_eq!(words_in(process, &issued), Vec::<String>::new(), "in the sandbox process {process}");
    }
    for wire in &mut wires {
        drop(wire.stream().shutdown(std::net::Shutdown::Both));
    }

    // The spans of all four calls that ended.
    let end = Instant::now() + patience();
    let begun = |collector: &Collector| collector.spans().iter().filter(|span| span.name == "tools/call http").count();
    while begun(&collector) < 4 {
        assert!(Instant::now() < end, "{:?}", collector.spans());
        std::thread::yield_now();
    }
    let everything = format!(
        "{answers}{}{}{}",
        scene.everything(),
        String::from_utf8_lossy(&collector.bodies()),
        collector.heads().concat()
    );
    for token in &issued {
        assert!(!everything.contains(token), "{token} in {everything}");
    }
}
