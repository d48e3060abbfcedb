//! Settings that need a new process: those that clients got at their start, and those of the engine
//! and the transport. All others take effect with the next generation. Of `[logins]`, the service
//! that has the pages knows.
use toolcell_policy::{ConsolePolicy, Manifest};

/// The keys that differ from those at the process's start.
pub fn waiting(started: &Manifest, now: &Manifest) -> Vec<String> {
    let audit = started.audit() != now.audit();
    let http = started.http() != now.http();
    let console = console_waits(started.console(), now.console());
    let metrics = started.metrics() != now.metrics();
    let traces = started.traces() != now.traces();
    let state = started.state() != now.state();
    let alerts = started.alerts() != now.alerts();
    let started = started.server();
    let now = now.server();
    let keys = [
        ("name", started.name() != now.name()),
        ("title", started.title() != now.title()),
        ("description", started.description() != now.description()),
        ("website", started.website() != now.website()),
        ("icons", started.icons() != now.icons()),
        ("instructions", started.instructions() != now.instructions()),
        ("page_size", started.page_size() != now.page_size()),
        ("line_max", started.line_bytes_max() != now.line_bytes_max()),
        ("in_flight_max", started.in_flight_max() != now.in_flight_max()),
        ("pending_max", started.pending_max() != now.pending_max()),
        ("subscriptions_max", started.subscriptions_max() != now.subscriptions_max()),
        ("watched_max", started.watched_max() != now.watched_max()),
        ("caller_watched_max", started.caller_watched_max() != now.caller_watched_max()),
        ("drain", started.drain() != now.drain()),
        ("calls", started.calls() != now.calls()),
        ("prewarm_memory", started.prewarm_memory_bytes() != now.prewarm_memory_bytes()),
        ("stack", started.stack_bytes() != now.stack_bytes()),
        ("walls", started.walls() != now.walls()),
        ("wall_idle", started.wall_idle() != now.wall_idle()),
        ("wall_memory", started.wall_memory_bytes() != now.wall_memory_bytes()),
        ("[audit]", audit),
        ("[http]", http),
        ("approve_in", started.approve_in() != now.approve_in()),
        ("[metrics]", metrics),
        ("[console]", console),
        ("[traces]", traces),
        ("[alerts]", alerts),
        ("[state]", state),
    ];
    keys.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key.to_owned()).collect()
}

/// True if the console needs another address or other files, or must begin to check tokens. The
/// operators and their rights follow the generation.
fn console_waits(started: Option<&ConsolePolicy>, now: Option<&ConsolePolicy>) -> bool {
    let place = |console: Option<&ConsolePolicy>| {
        let console = console?;
        let tls = console.tls().map(|files| (files.certificate().to_owned(), files.key().to_owned()));
        Some((console.listen(), console.hosts().to_vec(), tls))
    };
    let takes_tokens = |console: Option<&ConsolePolicy>| console.is_some_and(|console| !console.operators().is_empty());
    let is_elsewhere = place(started).unwrap_or_default() != place(now).unwrap_or_default();
    is_elsewhere || !takes_tokens(started) && takes_tokens(now)
}

#[cfg(test)]
mod tests {
    use toolcell_policy::{Source, parse};

    use super::*;

    fn server(keys: &str) -> Manifest {
        let text = format!("version = 1\n[server]\n{keys}\n[components.a]\nsource = \"a.wasm\"\n");
        parse(&Source { name: "test", text: &text }).unwrap().manifest
    }

    #[test]
    fn what_clients_were_told_and_the_engine_was_set_up_with_waits() {
        let started = server("");
        for (key, value) in [
            ("name", "\"x\""),
            ("title", "\"x\""),
            ("description", "\"x\""),
            ("website", "\"https://a.example\""),
            ("icons", "[{ src = \"https://a.example/i.png\" }]"),
            ("instructions", "\"x\""),
            ("page_size", "2"),
            ("line_max", "\"1MiB\""),
            ("in_flight_max", "2"),
            ("pending_max", "2"),
            ("subscriptions_max", "2"),
            ("watched_max", "2"),
            ("caller_watched_max", "2"),
            ("drain", "\"1s\""),
            ("calls", "2"),
            ("prewarm_memory", "\"1MiB\""),
            ("stack", "\"64KiB\""),
            ("walls", "\"none\""),
            ("wall_idle", "\"1s\""),
            ("wall_memory", "\"1GiB\""),
            ("approve_in", "[\"console\"]"),
        ] {
            assert_eq!(waiting(&started, &server(&format!("{key} = {value}"))), [key]);
        }
        assert_eq!(waiting(&started, &server("[audit]\nkeep = 3")), ["[audit]"]);
        assert_eq!(waiting(&started, &server("narrow_cancels = false")), [""; 0]);
        assert_eq!(waiting(&started, &server("[http]\nbody = '1MiB'")), ["[http]"]);
        assert_eq!(waiting(&started, &server("[metrics]\nlisten = '127.0.0.1:9464'")), ["[metrics]"]);
        assert_eq!(waiting(&started, &server("[console]\nlisten = '127.0.0.1:9465'")), ["[console]"]);
        assert_eq!(waiting(&started, &server("[console]\ndecide = true")), [""; 0]);
        let console = |keys: &str| server(&format!("[http]\ntokens = 'tokens.jsonl'\n[console]\n{keys}"));
        let with_operators = console("operators = ['ann']");
        assert_eq!(waiting(&console(""), &with_operators), ["[console]"], "nobody's tokens were checked before");
        assert_eq!(waiting(&with_operators, &console("operators = ['bob']")), [""; 0]);
        assert_eq!(waiting(&with_operators, &console("")), [""; 0]);
        assert_eq!(waiting(&started, &server("[traces]\nendpoint = 'http://127.0.0.1:4318'")), ["[traces]"]);
        let state = "state_key = 'env:KEY'\n[state]\nshared = 'redis://127.0.0.1'";
        assert_eq!(waiting(&started, &server(state)), ["[state]"]);
        assert_eq!(waiting(&started, &server("[alerts]\nrefusals = 5")), ["[alerts]"]);
        assert_eq!(waiting(&started, &server("log = \"warn\"")), [""; 0]);
        assert_eq!(waiting(&started, &server("usage = true")), [""; 0]);
    }
}
