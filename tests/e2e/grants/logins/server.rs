//! The authorization server of the tests: `oidc-provider`, which is certified, on the loopback, as
//! `tests/clients/oidc/server.mjs` sets it up.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::Value;
use toolcell_tests::patience;

use super::browser::Browser;

/// The server, until it is dropped.
pub(super) struct AuthorizationServer {
    child: Child,
    issuer: String,
    /// Open, since the server says more than its name.
    _stdout: BufReader<ChildStdout>,
}

impl AuthorizationServer {
    /// Installs it where it is not, and starts it.
    pub(super) fn start() -> Self {
        let clients = concat!(env!("CARGO_MANIFEST_DIR"), "/clients");
        let installed = Command::new("sh").arg(format!("{clients}/setup.sh")).arg("oidc").output().unwrap();
        assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
        let paths = String::from_utf8(installed.stdout).unwrap();
        let (node, folder) = paths.trim().split_once('\n').unwrap();
        let mut child = Command::new(node)
            .arg(format!("{clients}/oidc/server.mjs"))
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut issuer = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut issuer).unwrap();
        assert!(issuer.starts_with("http://127.0.0.1:"), "{issuer:?}");
        Self { child, issuer: issuer.trim().to_owned(), _stdout: stdout }
    }

    /// Its name.
    pub(super) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Host and port.
    pub(super) fn authority(&self) -> &str {
        self.issuer.strip_prefix("http://").unwrap()
    }

    /// Sets one of the things that `server.mjs` lets tests set.
    pub(super) fn set(&self, what: &str, number: u32) {
        let page = Browser::default().post(&format!("{}/test/{what}?{number}", self.issuer), "");
        assert_eq!(page.status, 200, "{what}");
    }

    /// The statuses of refreshes so far.
    pub(super) fn refreshes(&self) -> Vec<u64> {
        let page = Browser::default().get(&format!("{}/test/tokens", self.issuer));
        let requests: Vec<Value> = serde_json::from_str(&page.body).unwrap();
        let refreshes = requests.iter().filter(|request| request["grant"] == "refresh_token");
        refreshes.map(|request| request["status"].as_u64().unwrap()).collect()
    }

    /// The codes that gave tokens so far.
    pub(super) fn codes(&self) -> usize {
        let page = Browser::default().get(&format!("{}/test/tokens", self.issuer));
        let requests: Vec<Value> = serde_json::from_str(&page.body).unwrap();
        let of_code = |request: &&Value| request["grant"] == "authorization_code" && request["status"] == 200;
        requests.iter().filter(of_code).count()
    }

    /// Waits until it has served so many requests that it was told not to answer.
    pub(super) fn holds(&self, count: usize) {
        let end = Instant::now() + patience();
        while Browser::default().get(&format!("{}/test/held", self.issuer)).body != count.to_string() {
            assert!(Instant::now() < end, "{count} requests are not held");
        }
    }

    /// The access and refresh tokens that it gave so far.
    pub(super) fn issued(&self) -> Vec<String> {
        let page = Browser::default().get(&format!("{}/test/issued", self.issuer));
        serde_json::from_str(&page.body).unwrap()
    }

    /// Takes a token back, as a person does on a page of their account.
    pub(super) fn revoke(&self, token: &str) {
        let form = format!("client_id=desk&token={token}");
        assert_eq!(Browser::default().post(&format!("{}/token/revocation", self.issuer), &form).status, 200);
    }
}

impl Drop for AuthorizationServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
