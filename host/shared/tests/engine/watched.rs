//! A main server, a copy of it, and three sentinels that make the copy the main server when the
//! first fails.
use super::{Engine, Kind, OPERATOR, in_time};

/// Name by which the sentinels know the main server.
pub const MAIN: &str = "tools";

/// A main server that is watched.
pub struct Watched {
    /// The main server at first.
    pub main: Engine,
    /// Its copy.
    pub copy: Engine,
    /// Those who watch.
    pub sentinels: [Engine; 3],
}

impl Watched {
    /// Starts them, and waits until a failure of the main server would be noticed. The servers have
    /// these further options.
    pub fn start(options: &[&str]) -> Self {
        let main = Engine::start(options);
        let port = main.port().to_string();
        let copy = Engine::start(&[options, &["--replicaof", "127.0.0.1", &port]].concat());
        let lines = format!(
            "sentinel monitor {MAIN} 127.0.0.1 {port} 2\nsentinel down-after-milliseconds {MAIN} 500\n\
             sentinel failover-timeout {MAIN} 3000\nsentinel auth-user {MAIN} {OPERATOR}\n\
             sentinel auth-pass {MAIN} any\n"
        );
        let sentinels = [(); 3].map(|()| Engine::start_as(Kind::Sentinel(lines.clone()), &[]));
        let watched = Self { main, copy, sentinels };
        in_time("the sentinels know each other and the copy", || {
            watched.sentinels.iter().all(|sentinel| {
                let copies = sentinel.whole_answer(&["SENTINEL", "REPLICAS", MAIN]);
                sentinel.ask(&["SENTINEL", "CKQUORUM", MAIN]).contains("3 usable")
                    && copies.contains(&format!("{}\r\n", watched.copy.port()))
                    && copies.contains("master-link-status\r\n$2\r\nok")
            })
        });
        watched
    }

    /// A sentinel that names this port of 127.0.0.1, whatever is there.
    pub fn sentinel_that_names(port: u16) -> Engine {
        let lines = format!("sentinel monitor {MAIN} 127.0.0.1 {port} 2\n");
        Engine::start_as(Kind::Sentinel(lines), &[])
    }

    /// Port of the server that the first sentinel calls the main one.
    pub fn main_port(&self) -> u16 {
        let answer = self.sentinels[0].whole_answer(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MAIN]);
        answer.lines().nth(4).unwrap().parse().unwrap()
    }
}
