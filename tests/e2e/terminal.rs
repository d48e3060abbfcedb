//! The output on a terminal: colours, progress, and the examples, served until an interrupt.

use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use toolcell_tests::terminal::{self, CTRL_C, Terminal};
use toolcell_tests::{Command, Folder, toolchain};

const WRONG: &str = "version = 1\n[components.good]\nsource = \"components/good.wasm\"\nlimits = { deadline = 30 }\n";

/// Time that the examples have. Each is compiled for the first time, on a machine that runs other
/// tests.
const EXAMPLES: Duration = Duration::from_secs(180);

/// True if there is no terminal. Then stderr says so.
fn is_left_out() -> bool {
    let is_here = terminal::can_be_had();
    if !is_here {
        toolchain::say("LEFT OUT: what people see on a terminal: this machine gives none");
    }
    !is_here
}

/// The text without its colours.
fn plain(coloured: &str) -> String {
    let mut parts = coloured.split("\u{1b}[");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').unwrap().1)
}

#[test]
fn problems_have_colours_on_a_terminal_and_nowhere_else() {
    if is_left_out() {
        return;
    }
    let folder = Folder::with_manifest(WRONG);
    let check = || Command::in_folder(&folder, &["check"]);
    let written = check().run();
    assert_eq!(written.code(), 1);
    let written = written.stderr + &written.stdout;
    let (code, shown) = check().on_terminal().ended();
    assert_eq!(code, 1, "{shown}");
    assert!(shown.contains("\u{1b}[91merror"), "{shown:?}");
    assert_eq!(plain(&shown), written);
    for (value, coloured) in [("1", false), ("no", false), ("", true)] {
        let (_, shown) = check().with_variable("NO_COLOR", value).on_terminal().ended();
        assert_eq!(shown.contains('\u{1b}'), coloured, "NO_COLOR={value:?}: {shown:?}");
        assert_eq!(plain(&shown), written);
    }
}

#[test]
fn what_takes_over_a_second_says_how_far_it_is_and_leaves_nothing_behind() {
    if is_left_out() {
        return;
    }
    let limits = "[components.loops.limits]\nfuel = 1_000_000_000_000_000\ndeadline = \"5s\"\n";
    let manifest = format!("version = 1\n[components.loops]\nsource = \"components/loops.wasm\"\n{limits}");
    let folder = Folder::with_manifest(&manifest);
    let calibrate = || Command::in_folder(&folder, &["calibrate", "spin", "--with", "{}"]);
    // Elsewhere no progress is printed. The one call reaches its deadline after five seconds.
    let written = calibrate().run();
    let written = written.failed_with(1);
    assert!(!written.contains("calling"), "{written}");
    let mut terminal = calibrate().on_terminal();
    terminal.until("calling [                        ] 0/");
    let (code, shown) = terminal.ended();
    assert_eq!(code, 1, "{shown}");
    let (_, last) = shown.rsplit_once("\r\u{1b}[K").unwrap();
    assert!(shown.matches("calling [").count() > 1, "drawn once: {shown:?}");
    assert_eq!(plain(last), written);
}

#[test]
fn what_is_served_over_stdio_has_no_colours_among_its_frames() {
    if is_left_out() {
        return;
    }
    let folder = Folder::with_manifest("version = 1\n[components.good]\nsource = \"components/good.wasm\"\n");
    let mut terminal = Command::in_folder(&folder, &["serve"]).on_terminal();
    terminal.type_in("{\"jsonrpc\":\"2.0\",\"id\":\"typed\",\"method\":\"ping\"}\n");
    let shown = terminal.until("\"id\":\"typed\",\"result\":");
    let answer = shown.lines().find(|line| line.contains("\"result\"")).unwrap();
    assert!(!answer.contains('\u{1b}'), "{answer:?}");
    terminal.type_in(CTRL_C);
    assert_eq!(terminal.ended().0, 0);
}

#[test]
fn the_examples_are_served_to_whoever_sits_there_until_an_interrupt() {
    if is_left_out() {
        return;
    }
    let conversation = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest-examples/conversation.py");
    let mut command = std::process::Command::new(conversation);
    command.arg("--toolcell").arg(toolcell_tests::toolcell()).args(["--port", "0"]);
    let mut terminal = Terminal::running(&command, EXAMPLES);
    let shown = terminal.until(" until Ctrl-C");
    let (_, address) = shown.rsplit_once("serving at http://").unwrap();
    let (address, _) = address.split_once("/mcp").unwrap();
    TcpStream::connect(address).unwrap();
    assert!(shown.contains("\u{1b}[1;32m✓\u{1b}[0m 27 requests"), "{shown}");
    terminal.type_in(CTRL_C);
    let (code, shown) = terminal.ended();
    assert_eq!(code, 0, "{shown}");
    TcpStream::connect(address).unwrap_err();
}
