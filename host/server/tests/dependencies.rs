//! The crates that others are built on, as cargo resolves them: the engine of WebAssembly is in one
//! crate alone, and the server is built without it.
#![allow(clippy::unwrap_used, clippy::expect_used)]
use std::process::Command;

/// Names of engines and compilers of WebAssembly begin so.
const ENGINE: [&str; 8] =
    ["cranelift", "pulley", "regalloc", "toolcell-guest", "wasm-encoder", "wasmparser", "wasmtime", "wit-"];

/// All crates that a crate of the project is built on, itself among them.
fn built_on(name: &str, depth: &[&str]) -> Vec<String> {
    let cargo = std::env::var("CARGO").expect("cargo runs the tests");
    let tree = ["tree", "--offline", "--locked", "--edges", "normal", "--prefix", "none", "--package", name];
    let tree = Command::new(cargo).args(tree).args(depth).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).unwrap();
    let name = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    tree.lines().map(name).filter(|name| !name.is_empty()).collect()
}

fn engines(of: &[String]) -> Vec<&String> {
    of.iter().filter(|name| ENGINE.iter().any(|engine| name.starts_with(engine))).collect()
}

#[test]
fn the_server_and_all_that_it_is_built_on_have_no_engine() {
    let server = built_on("toolcell-server", &[]);
    for own in ["toolcell-sandbox", "toolcell-wall", "toolcell-walls", "toolcell-mcp"] {
        assert!(server.iter().any(|name| name == own), "{own} is looked at as well");
    }
    assert!(engines(&server).is_empty(), "{:?}", engines(&server));
}

#[test]
fn the_crate_of_guests_alone_names_the_engine() {
    assert!(engines(&built_on("toolcell-guest", &["--depth", "1"])).iter().any(|name| *name == "wasmtime"));
    assert!(!built_on("toolcell-guest", &[]).contains(&"toolcell-sandbox".to_owned()), "nor does it name the host");
    let program = built_on("toolcell", &["--depth", "1"]);
    assert_eq!(engines(&program), ["toolcell-guest"]);
}

#[test]
fn what_is_said_through_a_wall_names_neither_end() {
    let wall = built_on("toolcell-wall", &[]);
    let forbidden = ["toolcell-guest", "toolcell-sandbox", "toolcell-walls", "tokio"];
    let found: Vec<_> = wall.iter().filter(|name| forbidden.contains(&name.as_str())).collect();
    assert!(found.is_empty(), "{found:?}");
}
