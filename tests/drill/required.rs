//! Hosts on machines that do not give every wall.

use toolcell_tests::{Folder, TestHost};

fn host(walls: &str, without: &str) -> TestHost {
    let manifest =
        format!("version = 1\n[server]\nwalls = \"{walls}\"\n[components.good]\nsource = \"components/good.wasm\"\n");
    TestHost::drilling(Folder::with_manifest(&manifest), &[("TOOLCELL_DRILL_WITHOUT", without)])
}

#[test]
fn a_host_that_requires_walls_does_not_start_without_one_and_says_which() {
    for wall in ["landlock", "system-calls", "pid-namespace", "memory"] {
        let refused = host("required", wall).ends();
        assert!(!refused.status.success(), "{wall}");
        assert_eq!(refused.stdout, "", "{wall}: it serves");
        assert!(refused.stderr.contains("not every wall stands: "), "{wall}: {}", refused.stderr);
        assert!(refused.stderr.contains(&format!("{wall} (")), "{wall}: {}", refused.stderr);
    }
}

#[test]
fn a_host_that_takes_what_there_is_serves_and_one_line_says_what_is_missing() {
    for wall in ["landlock", "pid-namespace"] {
        let mut host = host("best", wall);
        host.will_say("walls: without ");
        let said = host.said();
        let line = said.lines().find(|line| line.starts_with("walls: ")).unwrap();
        assert!(line.contains(&format!("{wall} (")), "{line}");
        host.still_works();
    }
}
