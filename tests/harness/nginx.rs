//! nginx in front of hosts on loopback, with the documented configuration.

use std::fmt::Write as _;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process};

use crate::patience;

/// The page with that configuration, relative to the folder of this crate.
const PAGE: &str = "../host/docs/reverse-proxy.md";

/// The exit status of `nginx.sh` if there is no nginx to be had.
const CANNOT: i32 = 3;

/// A running nginx. Dropping this ends it.
#[derive(Debug)]
pub struct Nginx {
    child: Child,
    address: SocketAddr,
    folder: tempfile::TempDir,
    /// Its listening socket, which every reload takes over.
    _socket: TcpListener,
}

/// The path of an nginx. If none can be had here, says so on stderr and returns `None`.
///
/// # Panics
/// If looking for one fails.
#[must_use]
pub fn installed() -> Option<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("nginx.sh");
    let found = Command::new("sh").arg(script).stderr(Stdio::inherit()).output().unwrap();
    if found.status.code() == Some(CANNOT) {
        return None;
    }
    assert!(found.status.success(), "nginx.sh ended with {}", found.status);
    Some(String::from_utf8(found.stdout).unwrap().trim().into())
}

impl Nginx {
    /// Starts an nginx in front of these hosts. `change` edits the documented lines that name the
    /// hosts.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn before(program: &Path, hosts: &[SocketAddr], change: impl FnOnce(String) -> String) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        // nginx takes over sockets that its environment names, if its configuration has the same
        // addresses.
        socket.set_nonblocking(true).unwrap();
        fcntl_setfd(&socket, FdFlags::empty()).unwrap();
        let address = socket.local_addr().unwrap();
        let folder = tempfile::Builder::new().prefix("toolcell-nginx-").tempdir().unwrap();
        write(folder.path(), address, &change(servers(hosts)));
        let inherited = format!("{};", std::os::fd::AsRawFd::as_raw_fd(&socket));
        let child = Command::new(program)
            .arg("-p")
            .arg(folder.path())
            .args(["-e", "error.log", "-c", "nginx.conf"])
            .env("NGINX", inherited)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut nginx = Self { child, address, folder, _socket: socket };
        nginx.wait_for("workers", |nginx| !nginx.workers().is_empty());
        nginx
    }

    /// The address it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends requests to these hosts from now on, as after `nginx -s reload`. Waits until no other
    /// host gets a request any more.
    ///
    /// # Panics
    /// If that takes too long.
    pub fn goes_before(&mut self, hosts: &[SocketAddr]) {
        let old = self.workers();
        write(self.folder.path(), self.address, &servers(hosts));
        kill_process(Pid::from_child(&self.child), Signal::HUP).unwrap();
        self.wait_for("other workers", |nginx| {
            let now = nginx.workers();
            !now.is_empty() && !now.iter().any(|worker| old.contains(worker))
        });
    }

    /// The ids of its worker processes.
    fn workers(&self) -> Vec<u32> {
        let id = self.child.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        children.split_whitespace().filter_map(|child| child.parse().ok()).collect()
    }

    fn wait_for(&mut self, what: &str, is_there: impl Fn(&Self) -> bool) {
        let end = Instant::now() + patience();
        while !is_there(self) {
            let ended = self.child.try_wait().unwrap();
            let said = || fs::read_to_string(self.folder.path().join("error.log")).unwrap_or_default();
            assert!(ended.is_none() && Instant::now() < end, "no {what}: {ended:?}\n{}", said());
            std::thread::yield_now();
        }
    }
}

impl Nginx {
    /// The lines of its log of errors so far.
    #[must_use]
    pub fn errors(&self) -> String {
        fs::read_to_string(self.folder.path().join("error.log")).unwrap_or_default()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Its workers end with it; a kill would leave them behind.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

/// The lines that name the hosts, in the documented form.
fn servers(hosts: &[SocketAddr]) -> String {
    let shown = shown();
    let before = shown.find("    server 127.0.0.1").expect("a host in the documentation");
    let lines = shown[before..].lines().take_while(|line| line.starts_with("    server 127.0.0.1"));
    let length: usize = lines.clone().map(|line| line.len() + 1).sum();
    let options = lines.clone().next().and_then(|line| line.split(';').next()?.trim().splitn(3, ' ').nth(2));
    let mut text = shown[..before].to_owned();
    for host in hosts {
        let _ = writeln!(text, "    server {host} {};", options.unwrap_or_default());
    }
    text + &shown[before + length..]
}

/// The documented configuration.
fn shown() -> String {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE)).unwrap();
    let shown = page.split("```nginx\n").nth(1).and_then(|rest| rest.split("```").next());
    shown.expect("a configuration in the documentation").to_owned()
}

/// Writes the configuration into this folder, for plain HTTP at this address.
fn write(folder: &Path, address: SocketAddr, shown: &str) {
    let plain = |line: &&str| !line.trim_start().starts_with("ssl_");
    let mut servers: Vec<String> = shown.lines().filter(plain).map(str::to_owned).collect();
    let listen = servers.iter_mut().find(|line| line.trim_start().starts_with("listen ")).expect("where it listens");
    *listen = format!("listen {address};");
    let user = if rustix::process::getuid().is_root() { "user root;\n" } else { "" };
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary: String = temporary.map(|kind| format!("{kind}_temp_path {kind};\n")).concat();
    let text = format!(
        "{user}daemon off;\npid nginx.pid;\nworker_processes 2;\nevents {{ worker_connections 512; }}\n\
         http {{\naccess_log off;\n{temporary}{}\n}}\n",
        servers.join("\n")
    );
    fs::write(folder.join("nginx.conf"), text).unwrap();
}
