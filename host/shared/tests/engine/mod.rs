//! A Valkey or Redis server for tests, on a loopback port, with a folder of its own; alone, watched
//! by sentinels, or as a cluster; and a way to it that tests can disturb.
#![allow(dead_code, unused_imports, reason = "each test crate uses a part of it")]
mod access;
mod cluster;
mod disturbed;
#[path = "../../../../tests/harness/patience.rs"]
pub mod patience;
mod watched;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

pub use access::Access;
pub use cluster::Cluster;
pub use disturbed::{Disturbance, DisturbedWay};
use patience::patience;
use tempfile::TempDir;
pub use watched::{MAIN, Watched};

/// Variable that names another server's program.
const PROGRAM: &str = "TEST_VALKEY_SERVER";

/// Lines of the log of a server and of a sentinel once it answers.
const READY: [&str; 2] = ["Ready to accept connections", "Sentinel ID is"];

/// The user of an operator, whatever the password.
pub const OPERATOR: &str = "operator";

/// Tries of a port that another process takes meanwhile.
const PORTS_TRIED: usize = 5;

/// A running server. It ends when dropped.
pub struct Engine {
    program: PathBuf,
    folder: TempDir,
    port: u16,
    kind: Kind,
    options: Vec<String>,
    process: Mutex<Option<Child>>,
}

/// A kind of process.
enum Kind {
    Server,
    /// With these lines in its configuration, which it writes itself from then on.
    Sentinel(String),
    /// A node of a cluster.
    Node,
}

impl Engine {
    /// Starts a server with these further options.
    pub fn start(options: &[&str]) -> Self {
        Self::start_as(Kind::Server, options)
    }

    fn start_as(kind: Kind, options: &[&str]) -> Self {
        let program = program();
        let folder = TempDir::new().unwrap();
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let process = Mutex::new(None);
        let mut engine = Self { program, folder, port: 0, kind, options, process };
        let started = (0..PORTS_TRIED).any(|_| {
            engine.port = free_port();
            engine.try_start()
        });
        assert!(started, "the server does not start");
        engine
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The id of its process.
    pub fn process_id(&self) -> u32 {
        self.process.lock().unwrap().as_ref().unwrap().id()
    }

    /// Its address, for a test that asks it as an operator.
    pub fn operator_url(&self) -> String {
        format!("redis://{OPERATOR}:any@127.0.0.1:{}", self.port)
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Ends it at once.
    pub fn kill(&self) {
        let mut process = self.process.lock().unwrap();
        if let Some(mut process) = process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Starts it again at its port, without what it held.
    pub fn start_again(&self) {
        assert!(self.try_start(), "the server does not start again");
    }

    /// Stops it from running, as a machine does that is too busy.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    /// Lets it run again.
    pub fn go_on(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let id = self.process_id();
        assert!(Command::new("kill").args([signal, &id.to_string()]).status().unwrap().success());
    }

    /// Forgets all keys and scripts.
    pub fn flush(&self) {
        for command in [&["FLUSHALL"][..], &["SCRIPT", "FLUSH"]] {
            self.ask(command);
        }
    }

    /// Sends one command, and returns the first line of its answer.
    pub fn ask(&self, command: &[&str]) -> String {
        self.whole_answer(command).lines().next().unwrap_or_default().to_owned()
    }

    /// Sends one command as an operator, and returns its answer as the protocol writes it.
    pub fn whole_answer(&self, command: &[&str]) -> String {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        connection.set_read_timeout(Some(patience())).unwrap();
        let mut answers = BufReader::new(connection.try_clone().unwrap());
        let mut answer = String::new();
        if self.has_operator() {
            connection.write_all(&as_wire(&["AUTH", OPERATOR, "any"])).unwrap();
            read_answer(&mut answers, &mut answer);
            assert_eq!(answer, "+OK\r\n");
            answer.clear();
        }
        connection.write_all(&as_wire(command)).unwrap();
        read_answer(&mut answers, &mut answer);
        answer
    }

    fn try_start(&self) -> bool {
        let mut process = Command::new(&self.program)
            .args(self.arguments())
            .args(&self.options)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let ready = lines.any(|line| READY.iter().any(|ready| line.contains(ready)));
        // Its log has a reader until it ends.
        std::thread::spawn(move || lines.for_each(drop));
        match ready {
            true => *self.process.lock().unwrap() = Some(process),
            false => drop(process.wait()),
        }
        ready
    }

    /// False for a sentinel, and for a server whose users are those of a test.
    fn has_operator(&self) -> bool {
        let has_own_users = self.options.iter().any(|option| option == "--aclfile");
        !matches!(self.kind, Kind::Sentinel(_)) && !has_own_users
    }

    fn arguments(&self) -> Vec<String> {
        let port = self.port.to_string();
        let server = ["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--logfile", ""];
        let server = server.map(str::to_owned).to_vec();
        match &self.kind {
            Kind::Server if !self.has_operator() => server,
            Kind::Server => [server, users(&Access::documented().alone)].concat(),
            Kind::Node => {
                let Access { alone, further_in_cluster, .. } = Access::documented();
                let server = [server, users(&[alone, further_in_cluster].concat())].concat();
                let bus = free_port().to_string();
                let node = ["--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-port", &bus];
                [server, node.map(str::to_owned).to_vec()].concat()
            }
            Kind::Sentinel(lines) => {
                let config = self.folder.path().join("sentinel.conf");
                let begun = format!("port {port}\nbind 127.0.0.1\n");
                if !std::fs::read_to_string(&config).is_ok_and(|text| text.starts_with(&begun)) {
                    std::fs::write(&config, begun + lines).unwrap();
                }
                ["sentinel.conf", "--sentinel"].map(str::to_owned).to_vec()
            }
        }
    }
}

/// Options for the users of a server. Replicas and tests are its default user, who may do what the
/// documentation lists, and nothing more. The operator may do all; copies come as the operator.
fn users(rules: &[String]) -> Vec<String> {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    [
        words(&format!("--user {OPERATOR} on nopass ~* &* +@all --masteruser {OPERATOR} --masterauth any")),
        words("--user default on nopass"),
        rules.to_vec(),
    ]
    .concat()
}

/// A command as the protocol writes it.
fn as_wire(command: &[&str]) -> Vec<u8> {
    let mut text = format!("*{}\r\n", command.len());
    command.iter().for_each(|part| text.push_str(&format!("${}\r\n{part}\r\n", part.len())));
    text.into_bytes()
}

/// Reads one answer: a line, and as many bytes or further answers as that says.
fn read_answer(from: &mut BufReader<TcpStream>, answer: &mut String) {
    let begin = answer.len();
    from.read_line(answer).unwrap();
    let line = answer.get(begin..).unwrap().trim_end().to_owned();
    let (kind, count) = line.split_at(1);
    match (kind, count.parse::<u64>()) {
        ("$", Ok(count)) => drop(from.take(count + 2).read_to_string(answer).unwrap()),
        ("*", Ok(count)) => (0..count).for_each(|_| read_answer(from, answer)),
        _ => (),
    }
}

/// A port that is free at this moment.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Waits until this holds.
fn in_time(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + patience();
    while !holds() {
        assert!(Instant::now() < until, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits until this holds.
pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let until = Instant::now() + patience();
    while !holds().await {
        assert!(Instant::now() < until, "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The server's program: the one that is named, or else that of the tests' clients.
fn program() -> PathBuf {
    if let Some(named) = std::env::var_os(PROGRAM) {
        return named.into();
    }
    let setup = Path::new(env!("CARGO_MANIFEST_DIR"));
    let setup = setup.ancestors().map(|folder| folder.join("tests/clients/setup.sh")).find(|path| path.is_file());
    let printed = Command::new(setup.unwrap()).arg("valkey").stderr(Stdio::inherit()).output().unwrap();
    assert!(printed.status.success(), "tests/clients/setup.sh valkey: {}", printed.status);
    String::from_utf8(printed.stdout).unwrap().trim().into()
}
