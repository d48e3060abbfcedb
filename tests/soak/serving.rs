//! The fixtures of the soak, good and hostile, under limits that leave time enough on a machine
//! under load.

use toolcell_tests::{Folder, toolcell};

/// Fuel of a hostile call. It is enough for any fixture that ends by itself. The others burn it in
/// some ten milliseconds.
pub const FUEL: &str = "20_000_000";

/// The prefix of tools that only their deadline ends.
pub const LATE: &str = "late_";

/// The deadline of those tools.
pub const LATE_DEADLINE: &str = "50ms";

/// The prefix of tools that end only when they are cancelled.
pub const ENDLESS: &str = "endless_";

/// Components that are served under their own names, with the limits of all.
const PLAIN: [&str; 6] = ["good", "loops", "hungry", "noisy", "liar", "quitter"];

/// Components with one tool, `run`, whose prefix is the component's name.
const ONE_TOOL: [&str; 6] =
    ["many_memories", "realloc_outside", "realloc_spins", "result_outside", "result_not_utf8", "post_return_spins"];

/// A folder that serves all components, in sandbox processes if it has `walls`.
pub fn folder(walls: bool) -> Folder {
    Folder::with_manifest(&manifest(walls, 0))
}

/// Saves the manifest with another limit, which no call comes near. Each component is a new one by
/// that, and has never ended a sandbox.
pub fn begin_anew(folder: &Folder, time: u64) {
    folder.write("toolcell.toml.new", manifest(true, time));
    // A file that is half written is not a manifest.
    let _ = std::fs::rename(folder.path().join("toolcell.toml.new"), folder.manifest());
}

fn manifest(walls: bool, time: u64) -> String {
    // The rate and the number of places are never exhausted. Refusals for those reasons would
    // depend on the machine's speed and could not be checked.
    let mut manifest = format!(
        "version = 1\n\n[defaults.limits]\nfuel = {FUEL}\ndeadline = \"10m\"\nmemory = \"16MiB\"\noutput = \"64KiB\"\n\
         rate = \"1000000/s\"\nconcurrency = 64\nqueue_wait = \"10m\"\nask_wait = \"{}s\"\n\n[server]\nwalls = \"{}\"\n",
        300 + time % 600,
        if walls { "best" } else { "none" },
    );
    let mut component = |name: &str, source: &str, prefix: &str, limits: &str| {
        manifest.push_str(&format!("\n[components.{name}]\nsource = \"components/{source}.wasm\"\n"));
        if !prefix.is_empty() {
            manifest.push_str(&format!("prefix = \"{prefix}\"\n"));
        }
        if !limits.is_empty() {
            manifest.push_str(&format!("\n[components.{name}.limits]\n{limits}\n"));
        }
    };
    for name in PLAIN {
        component(name, name, "", "");
    }
    for name in ONE_TOOL {
        component(name, name, &format!("{name}_"), "");
    }
    let much = "fuel = 1_000_000_000_000_000";
    component("late", "loops", LATE, &format!("{much}\ndeadline = \"{LATE_DEADLINE}\""));
    component("endless", "loops", ENDLESS, &format!("{much}\ndeadline = \"1h\""));
    manifest
}

/// The command that serves the folder.
pub fn command(folder: &Folder) -> std::process::Command {
    let mut command = std::process::Command::new(toolcell());
    command.arg("serve").arg("--manifest").arg(folder.manifest()).env_remove("RUST_BACKTRACE");
    command
}
