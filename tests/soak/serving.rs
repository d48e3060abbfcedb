//! What the soak serves: fixtures that behave and fixtures that do not, under limits that machines
//! under load still keep.

use toolcell_tests::{Folder, toolcell};

/// Fuel of a hostile call. Enough for any fixture that ends by itself, burnt in some ten
/// milliseconds by those that do not.
pub const FUEL: &str = "20_000_000";

/// Before the names of tools that end by their deadline alone.
pub const LATE: &str = "late_";

/// The deadline of those.
pub const LATE_DEADLINE: &str = "50ms";

/// Before the names of tools that end only when they are cancelled.
pub const ENDLESS: &str = "endless_";

/// Components that are served under their own names and the limits of all.
const PLAIN: [&str; 6] = ["good", "loops", "hungry", "noisy", "liar", "quitter"];

/// Components with one tool, `run`, each with its own name before it.
const ONE_TOOL: [&str; 6] =
    ["many_memories", "realloc_outside", "realloc_spins", "result_outside", "result_not_utf8", "post_return_spins"];

/// A folder that serves all of it.
pub fn folder() -> Folder {
    // The rate and the places are never reached: what is busy now is answered by the machine's
    // speed, and cannot be checked.
    let mut manifest = format!(
        "version = 1\n\n[defaults.limits]\nfuel = {FUEL}\ndeadline = \"10m\"\nmemory = \"16MiB\"\noutput = \"64KiB\"\n\
         rate = \"1000000/s\"\nconcurrency = 64\nqueue_wait = \"10m\"\n"
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
    Folder::with_manifest(&manifest)
}

/// The command that serves the folder.
pub fn command(folder: &Folder) -> std::process::Command {
    let mut command = std::process::Command::new(toolcell());
    command.arg("serve").arg("--manifest").arg(folder.manifest()).env_remove("RUST_BACKTRACE");
    command
}
