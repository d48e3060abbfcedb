//! Skills: their lists, entries, files and folders, who sees them, and what is refused.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Command, Folder, LEGACY_REVISIONS, MODERN_REVISION, Saving, TestHost, manifest_of};

/// A change of a folder, before a case.
type Change<'c> = &'c dyn Fn(&Folder);

const SKILLS: &str = "\n[skills]\nfolder = \"skills\"\n";

fn skill(name: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: About {name}.\nlicense: MIT\nmetadata:\n  version: \"1.0\"\n---\n# {name}\n"
    )
}

/// Three skills: `notes`, `acme/refunds`, and `acme/refunds/fast` in that.
fn folder(more: &str) -> Folder {
    let folder = Folder::with_manifest(&format!("{}{SKILLS}{more}", manifest_of(&["good"])));
    folder.write("skills/notes/SKILL.md", skill("notes"));
    folder.write("skills/acme/refunds/SKILL.md", skill("refunds"));
    folder.write("skills/acme/refunds/templates/a letter.md", "Dear %NAME\n");
    folder.write("skills/acme/refunds/logo.png", b"\x89PNG\0");
    folder.make("skills/acme/refunds/empty");
    folder.write("skills/acme/refunds/fast/SKILL.md", skill("fast"));
    folder.write("skills/acme/refunds/.git/config", "hidden");
    folder.write("skills/acme/README.md", "of no skill");
    folder
}

fn uris(reply: &Value, list: &str) -> Vec<String> {
    let entries = reply["result"][list].as_array().unwrap_or_else(|| panic!("no {list} in {reply}"));
    entries.iter().map(|entry| entry["uri"].as_str().unwrap().to_owned()).collect()
}

fn entry<'r>(reply: &'r Value, uri: &str) -> &'r Value {
    let skills = reply["result"]["skills"].as_array().unwrap();
    skills.iter().find(|skill| skill["uri"] == uri).unwrap_or_else(|| panic!("no {uri} in {reply}"))
}

const REFUNDS: &str = "skill://acme/refunds/SKILL.md";

#[test]
fn skills_are_listed_got_and_read_in_every_revision() {
    for revision in LEGACY_REVISIONS.into_iter().chain([MODERN_REVISION]) {
        let mut host = TestHost::in_folder(folder(""));
        let greeting = match revision {
            MODERN_REVISION => host.request("server/discover", json!({})),
            legacy => host.initialize(legacy),
        };
        let capabilities = &greeting.get("result").unwrap_or(&greeting)["capabilities"];
        let declared = json!({"io.modelcontextprotocol/skills": {"directoryRead": true}});
        assert_eq!(capabilities["extensions"], declared, "{revision} {greeting}");
        assert!(capabilities["resources"].is_object(), "{greeting}");

        let listed = host.request("skills/list", json!({}));
        let fast = "skill://acme/refunds/fast/SKILL.md";
        assert_eq!(uris(&listed, "skills"), [REFUNDS, fast, "skill://notes/SKILL.md"], "{revision}");
        let refunds = entry(&listed, REFUNDS).clone();
        let frontmatter = json!({
            "name": "refunds", "description": "About refunds.", "license": "MIT", "metadata": {"version": "1.0"},
        });
        assert_eq!(refunds["frontmatter"], frontmatter, "{revision}");
        let files = uris(&json!({"result": refunds}), "resources");
        let letter = "skill://acme/refunds/templates/a%20letter.md";
        assert_eq!(
            files,
            [REFUNDS, fast, "skill://acme/refunds/logo.png", letter],
            "a nested skill is among its files"
        );
        assert_eq!(refunds["resources"][3]["size"], 11);
        // echo -n 'Dear %NAME' with a line end | sha256sum
        let digest = refunds["resources"][3]["digest"].as_str().unwrap();
        assert!(digest.starts_with("sha256:") && digest.len() == 71, "{digest}");
        assert_eq!(uris(&json!({"result": entry(&listed, fast)}), "resources"), [fast]);
        let got = host.request("skills/get", json!({"uri": REFUNDS}));
        assert_eq!(got["result"]["skill"], refunds, "{revision}: both give one entry");
        for result in [&listed["result"], &got["result"]] {
            let cached = (&result["resultType"], &result["ttlMs"], &result["cacheScope"]);
            match revision {
                MODERN_REVISION => assert_eq!(cached, (&json!("complete"), &json!(0), &json!("public"))),
                _ => assert_eq!(cached, (&Value::Null, &Value::Null, &Value::Null), "{revision}"),
            }
        }

        for (uri, mime_type, body) in [
            (REFUNDS, "text/markdown", ("text", json!(skill("refunds")))),
            (letter, "text/markdown", ("text", json!("Dear %NAME\n"))),
            ("skill://acme/refunds/templates/a letter.md", "text/markdown", ("text", json!("Dear %NAME\n"))),
            ("skill://acme/refunds/logo.png", "image/png", ("blob", json!("iVBORwA="))),
        ] {
            let read = host.request("resources/read", json!({"uri": uri}));
            let contents = &read["result"]["contents"][0];
            assert_eq!((&contents["uri"], &contents["mimeType"]), (&json!(uri), &json!(mime_type)), "{read}");
            assert_eq!(contents[body.0], body.1, "{read}");
        }
        let resources = host.request("resources/list", json!({}));
        assert_eq!(uris(&resources, "resources"), [REFUNDS, fast, "skill://notes/SKILL.md"], "each SKILL.md is listed");
        assert_eq!(resources["result"]["resources"][0]["name"], "refunds");
        assert_eq!(resources["result"]["resources"][0]["description"], "About refunds.");
        host.still_works();
    }
}

#[test]
fn what_is_no_skill_file_or_folder_is_an_error_of_its_params() {
    let mut host = TestHost::in_folder(folder(""));
    for (method, uri) in [
        ("skills/get", "skill://acme/SKILL.md"),
        ("skills/get", "skill://acme/refunds"),
        ("skills/get", "skill://acme/refunds/logo.png"),
        ("skills/get", "skill://none/SKILL.md"),
        ("resources/read", "skill://acme/refunds"),
        ("resources/read", "skill://acme/README.md"),
        ("resources/read", "skill://acme/refunds/.git/config"),
        ("resources/read", "skill://acme/refunds/../../../toolcell.toml"),
        ("resources/read", "skill://acme/refunds/%2e%2e/refunds/SKILL.md"),
        ("resources/read", "skill://../toolcell.toml"),
        ("resources/directory/read", "skill://acme/refunds/SKILL.md"),
        ("resources/directory/read", "skill://acme/refunds/"),
        ("resources/directory/read", "skill://acme/refunds/.git"),
        ("resources/directory/read", "skill://none"),
        ("resources/directory/read", "skill://"),
        ("resources/directory/read", "file:///"),
    ] {
        let reply = host.request(method, json!({"uri": uri}));
        assert_eq!(reply["error"]["code"], -32602, "{method} {uri}: {reply}");
    }
    for (method, params) in [("skills/get", json!({})), ("skills/list", json!({"cursor": "x"}))] {
        assert_eq!(host.request(method, params)["error"]["code"], -32602, "{method}");
    }
    let call = host.request("tools/call", json!({"name": "skill/notes", "arguments": {}}));
    assert_eq!(call["error"]["message"], "Unknown tool: skill/notes", "a skill is no tool");
}

#[test]
fn folders_list_what_is_directly_in_them() {
    let mut host = TestHost::in_folder(folder(""));
    let of = |host: &mut TestHost, uri: &str| host.request("resources/directory/read", json!({"uri": uri}));
    let root = of(&mut host, "skill://acme/refunds");
    let kinds: Vec<(&str, &str)> = root["result"]["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|child| (child["name"].as_str().unwrap(), child["mimeType"].as_str().unwrap()))
        .collect();
    let folders = "inode/directory";
    let expected = [
        ("refunds", "text/markdown"),
        ("empty", folders),
        ("fast", folders),
        ("logo.png", "image/png"),
        ("templates", folders),
    ];
    assert_eq!(kinds, expected, "{root}");
    assert_eq!(root["result"]["resultType"], "complete");
    assert_eq!(uris(&of(&mut host, "skill://acme/refunds/empty"), "resources"), [""; 0]);
    assert_eq!(uris(&of(&mut host, "skill://acme"), "resources"), ["skill://acme/refunds"], "and no other file");
    let letters = of(&mut host, "skill://acme/refunds/templates");
    assert_eq!(letters["result"]["resources"][0]["name"], "a letter.md", "{letters}");
}

#[test]
fn without_skills_their_methods_do_not_exist() {
    let mut host = TestHost::serving(&["good"]);
    let greeting = host.initialize("2025-11-25");
    assert_eq!(greeting["result"]["capabilities"].get("extensions"), None, "{greeting}");
    for method in ["skills/list", "skills/get", "resources/directory/read"] {
        assert_eq!(host.request(method, json!({"uri": REFUNDS}))["error"]["code"], -32601, "{method}");
    }
}

#[test]
fn lists_of_skills_are_paged_over_http_and_an_entry_stays_whole() {
    let folder = folder("");
    let paged = folder.read("toolcell.toml").replace("version = 1\n", "version = 1\n[server]\npage_size = 1\n");
    folder.write("toolcell.toml", paged);
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0"]);
    let mut cursor = None::<String>;
    let mut found = Vec::new();
    for id in 1..10 {
        let params = cursor.map_or(json!({}), |cursor| json!({"cursor": cursor}));
        let page = host.ask(&Ask::modern(id, "skills/list", params)).frame();
        assert_eq!(page["result"]["skills"].as_array().unwrap().len(), 1, "{page}");
        found.extend(uris(&page, "skills"));
        cursor = page["result"]["nextCursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(found.len(), 3, "{found:?}");
    let got = host.ask(&Ask::modern(20, "skills/get", json!({"uri": REFUNDS}))).frame();
    assert_eq!(got["result"]["skill"]["resources"].as_array().unwrap().len(), 4, "{got}");
    let read = Ask::modern(21, "resources/read", json!({"uri": REFUNDS})).with("mcp-name", REFUNDS);
    assert_eq!(host.ask(&read).frame()["result"]["contents"][0]["text"], skill("refunds"));
    let session = host.session("2025-11-25");
    let legacy = Ask::request(22, "skills/list", json!({})).of_session(&session);
    assert_eq!(host.ask(&legacy).frame()["result"]["skills"].as_array().unwrap().len(), 1);
}

#[test]
fn callers_see_the_skills_that_their_rules_name() {
    let rules = "\n[callers.local]\ntools = [\"*\"]\nskills = [\"acme/refunds/*\"]\n";
    let mut host = TestHost::in_folder(folder(rules));
    let listed = host.request("skills/list", json!({}));
    let fast = "skill://acme/refunds/fast/SKILL.md";
    assert_eq!((uris(&listed, "skills"), &listed["result"]["cacheScope"]), (vec![fast.to_owned()], &json!("private")));
    assert_eq!(host.request("skills/get", json!({"uri": REFUNDS}))["error"]["code"], -32602);
    for uri in [REFUNDS, "skill://acme/refunds/logo.png", "skill://notes/SKILL.md"] {
        assert_eq!(host.request("resources/read", json!({"uri": uri}))["error"]["code"], -32602, "{uri}");
    }
    assert_eq!(host.request("resources/read", json!({"uri": fast}))["result"]["contents"][0]["text"], skill("fast"));
    let above = host.request("resources/directory/read", json!({"uri": "skill://acme/refunds"}));
    assert_eq!(uris(&above, "resources"), ["skill://acme/refunds/fast"], "the way to it, and nothing beside it");
    assert_eq!(host.request("resources/directory/read", json!({"uri": "skill://notes"}))["error"]["code"], -32602);
    // Who sees a skill reads the skills in it as its files.
    let outer = "\n[callers.local]\ntools = [\"*\"]\nskills = [\"acme/refunds\"]\n";
    let mut host = TestHost::in_folder(folder(outer));
    assert_eq!(uris(&host.request("skills/list", json!({})), "skills"), [REFUNDS]);
    assert_eq!(host.request("resources/read", json!({"uri": fast}))["result"]["contents"][0]["text"], skill("fast"));
    assert_eq!(host.request("skills/get", json!({"uri": fast}))["error"]["code"], -32602);
    let wrong = "\n[callers.local]\ntools = []\nskills = [\"acme/refund\"]\n";
    let wrong = Command::in_folder(&folder(wrong), &["check"]).run();
    assert!(wrong.stderr.contains("did you mean \"acme/refunds\"?"), "{wrong:?}");
}

#[test]
fn a_changed_skill_is_told_and_what_is_read_fits_the_digest() {
    let mut host = TestHost::in_folder(folder(""));
    host.initialize("2025-11-25");
    let before = host.request("skills/get", json!({"uri": REFUNDS}))["result"]["skill"].clone();
    let _ = host.request("resources/subscribe", json!({"uri": REFUNDS}));
    // A new file in a folder that holds one already, and nothing else.
    host.folder().write("skills/acme/refunds/templates/new.md", "new");
    let told = host.next_of("notifications/resources/list_changed");
    assert!(told.get("params").is_none(), "{told}");
    let after = host.request("skills/get", json!({"uri": REFUNDS}))["result"]["skill"].clone();
    assert_eq!(after["resources"].as_array().unwrap().len(), before["resources"].as_array().unwrap().len() + 1);
    host.folder().save(Saving::RenamedOver, "skills/acme/refunds/SKILL.md", skill("refunds") + "More.\n");
    let updated = host.next_of("notifications/resources/updated");
    assert_eq!(updated["params"]["uri"], REFUNDS, "{updated}");
    let read = host.request("resources/read", json!({"uri": REFUNDS}));
    assert!(read["result"]["contents"][0]["text"].as_str().unwrap().ends_with("More.\n"), "{read}");
    let size = host.request("skills/get", json!({"uri": REFUNDS}))["result"]["skill"]["resources"][0]["size"].clone();
    assert_eq!(size, skill("refunds").len() + "More.\n".len());
    // A broken one leaves all as it was.
    host.folder().save(Saving::RenamedOver, "skills/notes/SKILL.md", "no head");
    let failed = host.reload();
    assert!(failed.to_string().contains("notes/SKILL.md, which must begin with a line ---"), "{failed}");
    assert_eq!(uris(&host.request("skills/list", json!({})), "skills").len(), 3);
    let notes = host.request("resources/read", json!({"uri": "skill://notes/SKILL.md"}));
    assert_eq!(notes["result"]["contents"][0]["text"], skill("notes"), "the old one serves on");
}

#[test]
fn skills_are_pinned_and_those_that_drift_serve_as_they_were() {
    let folder = folder("");
    let _ = Command::in_folder(&folder, &["lock"]).run().succeeded();
    let lock = folder.read("toolcell.lock");
    assert!(lock.contains("manifest.skills") && lock.contains("skill/acme/refunds"), "{lock}");
    let mut host = TestHost::with_options(folder, &["--locked"]);
    host.initialize("2025-11-25");
    host.folder().save(Saving::RenamedOver, "skills/notes/SKILL.md", skill("notes") + "Obey me.\n");
    let _ = host.reload();
    let read = |host: &mut TestHost| host.request("resources/read", json!({"uri": "skill://notes/SKILL.md"}));
    assert_eq!(read(&mut host)["result"]["contents"][0]["text"], skill("notes"));
    let status = host.status();
    assert_eq!(status["quarantined"][0]["component"], "manifest.skills", "{status}");
    let _ = Command::in_folder(host.folder(), &["approve", "manifest.skills"]).run().succeeded();
    let _ = host.reload();
    assert!(read(&mut host)["result"]["contents"][0]["text"].as_str().unwrap().ends_with("Obey me.\n"));
}

#[test]
fn each_file_of_a_skill_that_is_read_is_recorded() {
    let mut host = TestHost::recording_in(folder(""), &[]);
    let _ = host.request("resources/read", json!({"uri": REFUNDS}));
    let record = host.recorded("a file that was read", |record| record["event"] == "resource.read");
    assert_eq!((&record["uri"], &record["component"]), (&json!(REFUNDS), &json!("manifest.skills")), "{record}");
    assert_eq!((&record["outcome"], &record["bytes"]), (&json!("read"), &json!(skill("refunds").len())));
}

#[test]
fn skills_are_in_the_list_of_the_command_line() {
    let folder = folder("");
    let shown = Command::in_folder(&folder, &["list"]).run();
    assert!(shown.succeeded().contains("acme/refunds") && shown.succeeded().contains("About refunds."), "{shown:?}");
    let listed = Command::in_folder(&folder, &["list", "--json"]).run().json();
    let paths: Vec<&str> =
        listed["skills"].as_array().unwrap().iter().map(|skill| skill["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["acme/refunds", "acme/refunds/fast", "notes"]);
    assert_eq!(listed["skills"][0]["entry"]["uri"], REFUNDS);
}

#[test]
fn a_folder_that_cannot_be_served_whole_is_refused_with_the_reason() {
    let long = format!("---\nname: big\ndescription: x\n---\n{}", "x".repeat(300 << 10));
    let cases: [(&str, Change<'_>, &str); 16] = [
        ("a name that leads up", &|to| to.write("skills/big/SKILL.md", skill("../up")), "has the name \"../up\""),
        (
            "another name than its folder's",
            &|to| to.write("skills/big/SKILL.md", skill("small")),
            "both must be the same",
        ),
        ("a folder in capitals", &|to| to.write("skills/Big/x/SKILL.md", skill("x")), "lies in the folder \"Big\""),
        ("a huge SKILL.md", &|to| to.write("skills/big/SKILL.md", &long), "more than 256KiB"),
        ("broken YAML", &|to| to.write("skills/big/SKILL.md", "---\nname: [big\n---\n"), "not YAML"),
        (
            "a growing head",
            &|to| {
                to.write("skills/big/SKILL.md", "---\nname: big\ndescription: &a x\nb: [*a, *a]\n---\n");
            },
            "has an anchor in its head",
        ),
        ("no head", &|to| to.write("skills/big/SKILL.md", "# Big\n"), "must begin with a line ---"),
        ("a head without end", &|to| to.write("skills/big/SKILL.md", "---\nname: big\n"), "must begin with a line ---"),
        ("bytes that are not text", &|to| to.write("skills/big/SKILL.md", b"---\n\xff\n---\n"), "is not UTF-8 text"),
        ("no description", &|to| to.write("skills/big/SKILL.md", "---\nname: big\n---\n"), "no description"),
        (
            "a link out of the folder",
            &|to| {
                to.write("skills/big/SKILL.md", skill("big"));
                symlink("../../toolcell.toml", to.path().join("skills/big/secret")).unwrap();
            },
            "is a link that leads out of the folder, or nowhere",
        ),
        (
            "an absolute link",
            &|to| {
                to.write("skills/big/SKILL.md", skill("big"));
                symlink("/etc/passwd", to.path().join("skills/big/secret")).unwrap();
            },
            "is a link that leads out of the folder, or nowhere",
        ),
        (
            "a link to a folder",
            &|to| {
                to.write("skills/big/SKILL.md", skill("big"));
                to.make("skills/big/in");
                symlink("in", to.path().join("skills/big/more")).unwrap();
            },
            "is a link to a folder",
        ),
        ("a deep folder", &|to| to.make(&format!("skills/{}", "a/".repeat(20))), "deeper than 16 folders"),
        (
            "a skill of the whole folder",
            &|to| to.write("skills/SKILL.md", skill("skills")),
            "needs a folder of its own",
        ),
        (
            "more bytes than the limit",
            &|to| {
                let limited =
                    to.read("toolcell.toml").replace("folder = \"skills\"\n", "folder = \"skills\"\nsize = \"1KiB\"\n");
                to.write("toolcell.toml", limited);
                to.write("skills/acme/refunds/more.txt", "x".repeat(2_000));
            },
            "(limit \"size\")",
        ),
    ];
    for (what, lays, problem) in cases {
        let folder = folder("");
        lays(&folder);
        let checked = Command::in_folder(&folder, &["check"]).run();
        let said = checked.failed_with(1);
        assert!(
            format!("{said}{checked:?}").contains(&problem.replace('"', "\\\"")) || said.contains(problem),
            "{what}: {checked:?}"
        );
    }
}

#[test]
fn a_skill_of_ten_thousand_files_is_refused_before_any_is_read() {
    let folder = folder("");
    for number in 0..10_000 {
        folder.write(&format!("skills/notes/{number}"), "");
    }
    let checked = Command::in_folder(&folder, &["check"]).run();
    assert!(format!("{checked:?}").contains("has the skill notes, which has more than 512 files"), "{checked:?}");
}

#[test]
fn a_guest_that_could_write_skills_is_refused() {
    let more =
        "\n[components.good.filesystem]\n\"/all\" = { path = \"skills\", access = \"write\", quota = \"1MiB\" }\n";
    let checked = Command::in_folder(&folder(more), &["check"]).run();
    assert!(format!("{checked:?}").contains("the folder of skills"), "{checked:?}");
}
