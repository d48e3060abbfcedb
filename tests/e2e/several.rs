//! Several processes of one manifest, as bridges and editors start them: what tools keep is one
//! state for all, and an address that only one can have names the process that has it.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};
use toolcell_tests::{Command, Folder, TestHost, alone};

use crate::grants::came_to;

/// A folder with a tool that keeps state.
fn keeping() -> Folder {
    Folder::with_manifest(
        "version = 1\n[components.reach_state]\nsource = \"components/reach_state.wasm\"\n\
         [components.reach_state.keyvalue]\nentries = 1_000\n",
    )
}

fn start(host: &mut TestHost, op: Value) -> Value {
    host.start_call("keyvalue", op)
}

fn did(host: &mut TestHost, op: Value) -> Value {
    came_to(&host.call("keyvalue", op)).unwrap()
}

#[test]
fn ten_processes_that_write_at_once_share_what_a_tool_keeps() {
    let _alone = alone("the processes of one folder");
    let folder = keeping();
    let mut hosts: Vec<TestHost> = (0..10).map(|_| TestHost::in_folder(folder.clone())).collect();
    let set = |number: usize| json!({"op": "set", "key": format!("k{number}"), "value": number.to_string()});
    let calls: Vec<Value> = hosts.iter_mut().enumerate().map(|(number, host)| start(host, set(number))).collect();
    for (host, call) in hosts.iter_mut().zip(&calls) {
        assert_eq!(came_to(&host.answer_to(call)), Ok(Value::Null));
    }
    let all: Vec<String> = (0..10).map(|number| format!("k{number}")).collect();
    let mut counted = Vec::new();
    for host in &mut hosts {
        let mut keys: Vec<String> = serde_json::from_value(did(host, json!({"op": "keys"}))).unwrap();
        keys.sort();
        assert_eq!(keys, all, "each reads what the others wrote");
    }
    // Each has several calls under way, and none has to try again.
    for _ in 0..3 {
        let add = || json!({"op": "increment", "key": "n"});
        let calls: Vec<[Value; 4]> = hosts.iter_mut().map(|host| [(); 4].map(|()| start(host, add()))).collect();
        for (host, calls) in hosts.iter_mut().zip(&calls) {
            counted.extend(calls.iter().map(|call| came_to(&host.answer_to(call)).unwrap().as_u64().unwrap()));
        }
    }
    counted.sort_unstable();
    assert_eq!(counted, (1..=120).collect::<Vec<_>>(), "no increment is lost or done twice");
}

#[test]
fn a_killed_process_loses_nothing_that_it_answered() {
    let _alone = alone("the processes of one folder");
    let folder = keeping();
    let add = || json!({"op": "increment", "key": "n"});
    let count = |value: &Value| value.as_u64().unwrap();
    let mut other = TestHost::in_folder(folder.clone());
    let mut known = count(&did(&mut other, add()));
    for round in 0..6 {
        let mut host = TestHost::in_folder(folder.clone());
        for _ in 0..=round % 3 {
            known += 1;
            assert_eq!(count(&did(&mut host, add())), known);
        }
        // It is killed with two more under way, of which any number may be done.
        let _under_way = [start(&mut host, add()), start(&mut host, add())];
        drop(host);
        let found = count(&did(&mut other, add()));
        assert!((known + 1..=known + 3).contains(&found), "{found} after {known}");
        known = found;
    }
}

#[test]
fn an_address_that_is_taken_names_the_process_that_has_it() {
    let _alone = alone("the address of one process");
    let text = |listen: &str| format!("version = 1\n{listen}\n[components.good]\nsource = \"components/good.wasm\"\n");
    let first = TestHost::with_options(Folder::with_manifest(&text("")), &["--http", "127.0.0.1:0"]);
    let http = first.reached_at();
    let names = format!("process {} (toolcell) listens there", first.process_id());
    let refused = |folder: &Folder, options: &[&str]| {
        let ended = Command::in_folder(folder, &[&["serve"], options].concat()).run();
        assert!(ended.stderr.contains(&names) && ended.code() != 0, "{options:?}: {ended:?}");
        assert!(!ended.stderr.contains("--audit off") && !ended.stderr.contains("required = false"), "{ended:?}");
    };
    let folder = Folder::with_manifest(&text(""));
    refused(&folder, &["--http", &http.to_string()]);
    refused(&Folder::with_manifest(&text(&format!("[metrics]\nlisten = \"{http}\""))), &[]);
    refused(&Folder::with_manifest(&text(&format!("[console]\nlisten = \"{http}\""))), &[]);

    let socket = folder.path().join("http.sock");
    let at = format!("unix:{}", socket.display());
    let unix = TestHost::with_options(folder.clone(), &["--http", &at]);
    unix.will_say("http.sock");
    let ended = Command::in_folder(&folder, &["serve", "--http", &at]).run();
    let names = format!("process {} (toolcell) listens there", unix.process_id());
    assert!(ended.stderr.contains(&names), "{ended:?}");
}

#[test]
fn a_file_that_is_not_a_socket_is_not_replaced_by_one() {
    let _alone = alone("the files of one process");
    let folder = Folder::with_manifest("version = 1\n[components.good]\nsource = \"components/good.wasm\"\n");
    let manifest = folder.read("toolcell.toml");
    folder.write("file", "precious");
    symlink("file", folder.path().join("link")).unwrap();
    // A control socket stands in no other folder.
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    for name in ["toolcell.toml", "file", "link"] {
        let path = folder.path().join(name).display().to_string();
        for options in [["--http", &format!("unix:{path}")], ["--control", &path]] {
            let ended = Command::in_folder(&folder, &[&["serve"], &options[..]].concat()).run();
            let said = format!("{name}: what is there is not a socket; move it away, or name another path");
            let said = if options[0] == "--http" { said.replacen(':', " cannot be listened on:", 1) } else { said };
            assert!(ended.stderr.contains(&said) && ended.code() != 0, "{options:?}: {ended:?}");
        }
    }
    assert_eq!(folder.read("toolcell.toml"), manifest);
    assert_eq!(folder.read("link"), "precious");
    assert!(folder.path().join("link").is_symlink());
}
