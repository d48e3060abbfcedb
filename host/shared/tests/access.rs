//! The documented access list: exactly what the code and the scripts ask of a server. All tests
//! with a server run as a user with these rights.
#![expect(clippy::unwrap_used, reason = "tests")]

mod engine;
mod replica;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use engine::{Access, Engine};
use replica::{MINUTE, options, run};
use toolcell_shared::{SharedState as _, Valkey, ValkeyOptions};

/// Commands that the client sends for calls of its own.
const OF_THE_CLIENT: [&str; 5] = ["EVALSHA", "SCRIPT|LOAD", "SELECT", "SUBSCRIBE", "UNSUBSCRIBE"];

/// Commands of a cluster, as the code names them and as the list does.
const OF_CLUSTERS: [(&str, &str); 2] = [("ASKING", "asking"), ("CLUSTER", "cluster|slots")];

/// A command that only sentinels are asked.
const OF_SENTINELS: &str = "SENTINEL";

/// The words behind this text, up to a quote.
fn words_behind<'t>(text: &'t str, begin: &str, quote: char) -> Vec<&'t str> {
    text.split(begin).skip(1).filter_map(|rest| rest.split(quote).next()).collect()
}

/// The commands that code and scripts name.
fn asked() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/valkey");
    let mut asked = BTreeSet::new();
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let found = match path.extension().and_then(|end| end.to_str()) {
            Some("lua") => {
                [words_behind(&text, "redis.call('", '\''), words_behind(&text, "redis.pcall('", '\'')].concat()
            }
            _ => words_behind(&text, "cmd(\"", '"'),
        };
        asked.extend(found.into_iter().map(str::to_owned));
    }
    asked
}

#[test]
fn the_documented_user_may_do_what_is_asked_and_nothing_more() {
    let mut asked = asked();
    assert!(asked.remove(OF_SENTINELS));
    for (named, _) in OF_CLUSTERS {
        assert!(asked.remove(named), "{named}");
    }
    asked.extend(OF_THE_CLIENT.map(str::to_owned));
    let asked: Vec<String> = asked.into_iter().map(|command| command.to_lowercase()).collect();
    let access = Access::documented();
    let mut documented = Access::commands(&access.alone);
    documented.sort();
    assert_eq!(documented, asked);
    assert_eq!(Access::commands(&access.further_in_cluster), OF_CLUSTERS.map(|(_, listed)| listed));
}

#[test]
fn it_may_use_any_database_and_nothing_beside_the_prefix() {
    let engine = Engine::start(&[]);
    run(async {
        let state = Valkey::new(ValkeyOptions { database: 3, ..options(engine.port()) }).unwrap();
        state.note("what", MINUTE).await.unwrap();
        assert_eq!(engine.ask(&["DBSIZE"]), ":0");
        assert_eq!(engine.ask(&["ACL", "SETUSER", "default", "resetkeys", "~toolcell:*"]), "+OK");
        let refused = state.note("what", MINUTE).await.unwrap_err();
        assert!(refused.internal().contains("permission"), "{}", refused.internal());
    });
}
