//! A host that has all that an attacker wants: keys, tokens, secrets, other tools with rights of
//! their own. Each of them has the word [`CANARY`] in it.
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolcell_tests::loopback::HttpServer;
use toolcell_tests::{Answer, Folder, TestHost};

/// Part of each text that an attacker must not see.
pub const CANARY: &str = "canary";

/// The value of the secret that the attacked component is granted: the host adds it to requests,
/// and the guest never holds it.
pub const OWN_SECRET: &str = "canary-of-its-own-requests";

/// The host and what is around it.
pub struct Site {
    pub host: TestHost,
    /// The server that the attacker may ask for `/allowed/…`, and no more of.
    pub server: HttpServer,
    /// The server of another component.
    pub other: HttpServer,
}

impl Site {
    /// Starts the host.
    pub fn new() -> Self {
        Self::with("", None)
    }

    /// Starts the host as on a machine that does not give these walls, with one more component that
    /// attacks: `own`, of these keys and tables.
    pub fn with(without: &str, own: Option<&str>) -> Self {
        let server = HttpServer::start();
        let other = HttpServer::start();
        let manifest = format!(
            r#"version = 1
# canary-in-the-manifest
[server]
walls = "best"
usage = true

[defaults.limits]
deadline = "3s"
queue_wait = "500ms"
rate = "1000000/s"

[components.drill]
source = "components/drill.wasm"
[components.drill.network]
http = ["GET {allowed}"]
private = ["{server}"]
[components.drill.secrets]
OWN = {{ from = "env:OWN_SECRET", header = "Authorization", value = "Bearer {{}}", for = "{origin}" }}

[components.sealed]
source = "components/drill.wasm"
prefix = "sealed_"

[components.good]
source = "components/good.wasm"

[components.neighbour]
source = "components/reach_http.wasm"
[components.neighbour.network]
http = ["{others}"]
private = ["{other}"]
[components.neighbour.secrets]
THEIRS = {{ from = "env:THEIR_SECRET", header = "Authorization", value = "Bearer {{}}", for = "{others}" }}

[components.holder]
source = "components/reach_files.wasm"
[components.holder.filesystem]
"/data" = {{ path = "data", access = "read" }}

[components.keeper]
source = "components/reach_state.wasm"
[components.keeper.keyvalue]
"#,
            allowed = server.url("/allowed/*"),
            origin = server.url(""),
            server = server.address(),
            others = other.url(""),
            other = other.address(),
        );
        let own =
            own.map(|own| format!("[components.own]\nsource = \"components/drill.wasm\"\nprefix = \"own_\"\n{own}"));
        let folder = Folder::with_manifest(&format!("{manifest}{}", own.unwrap_or_default()));
        folder.make("out");
        for (path, text) in [
            ("data/file", "canary-in-the-mount-of-another"),
            ("home/.ssh/id_ed25519", "-----BEGIN OPENSSH PRIVATE KEY-----\ncanary-in-the-key"),
            ("tokens.jsonl", "{\"token\":\"canary-in-the-tokens\"}"),
            ("toolcell.lock.old", "canary-in-a-lock"),
        ] {
            folder.write(path, text);
        }
        let variables = [
            ("OWN_SECRET", OWN_SECRET),
            ("THEIR_SECRET", "canary-of-the-neighbour"),
            ("TOOLCELL_DRILL_WITHOUT", without),
        ];
        let mut host = TestHost::drilling(folder, &variables);
        host.still_works();
        let kept = host.call("keyvalue", json!({"op": "set", "key": "a", "value": "canary-in-the-state"}));
        assert!(!kept.is_error(), "{}", kept.everything());
        Self { host, server, other }
    }

    /// The path of something in the host's folder.
    pub fn path(&self, relative: &str) -> String {
        self.host.folder().path().join(relative).to_str().unwrap().to_owned()
    }

    /// The host's process.
    pub fn host_id(&self) -> u32 {
        self.host.process_id()
    }

    /// The file in which the host keeps state.
    pub fn state(&self) -> String {
        found(self.host.folder().path(), "redb").unwrap().to_str().unwrap().to_owned()
    }

    /// True if it is the number of a process that the host started.
    pub fn has_started(&self, id: i64) -> bool {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok());
        parent == Some(self.host_id())
    }

    /// Takes these steps as this tool.
    pub fn attack(&mut self, tool: &str, steps: &Value) -> Answer {
        self.host.call(tool, json!({"steps": steps}))
    }

    /// The host lives, and so do all its other tools, with the rights that they had.
    pub fn holds(&mut self) {
        self.host.still_works();
        let theirs = self.host.call("http", json!({"url": self.other.url("/echo")}));
        assert!(theirs.everything().contains("200"), "{}", theirs.everything());
        let kept = self.host.call("keyvalue", json!({"op": "get", "key": "a"}));
        assert!(kept.everything().contains("canary-in-the-state"), "{}", kept.everything());
    }
}

/// The first file below a folder whose name ends so.
fn found(folder: &Path, ending: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    entries.into_iter().find_map(|path| match path {
        folder if folder.is_dir() && !folder.is_symlink() => found(&folder, ending),
        file => file.to_str()?.ends_with(ending).then(|| file.clone()),
    })
}
