//! Notifies the service manager that the server is ready, stopping, or alive. The protocol is that
//! of `sd_notify(3)`, which systemd has had since version 1.
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
#[cfg(target_os = "linux")]
use std::os::unix::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

/// The variable with the manager's socket: a path, or `@` and an abstract name.
const SOCKET: &str = "NOTIFY_SOCKET";

/// The variable with the manager's watchdog interval, in µs.
const WATCHDOG: &str = "WATCHDOG_USEC";

/// The variable with the process that the interval is meant for.
const WATCHDOG_PROCESS: &str = "WATCHDOG_PID";

/// The service manager that started this process, if one did.
#[derive(Clone, Debug, Default)]
pub struct ServiceManager(Option<Arc<UnixDatagram>>);

impl ServiceManager {
    /// The one that the environment names, if any.
    pub fn of_environment() -> Self {
        let Some(named) = std::env::var_os(SOCKET) else { return Self::default() };
        match connected(named.as_bytes()) {
            Ok(socket) => Self(Some(Arc::new(socket))),
            Err(error) => {
                tracing::warn!("the service manager could not be notified that this serves: {SOCKET}: {error}");
                Self::default()
            }
        }
    }

    pub fn ready(&self) {
        self.send("READY=1");
    }

    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// From now on, notifies the manager twice per watchdog interval that the runtime still runs
    /// tasks.
    pub fn keep_watched(&self, runtime: &Handle) {
        let Some(interval) = watchdog() else { return };
        let manager = self.clone();
        drop(runtime.spawn(async move {
            loop {
                manager.send("WATCHDOG=1");
                tokio::time::sleep(interval / 2).await;
            }
        }));
    }

    /// Sends a message. If the manager does not accept it, the message is lost.
    fn send(&self, message: &str) {
        if let Some(socket) = &self.0 {
            let _ = socket.send(message.as_bytes());
        }
    }
}

fn connected(named: &[u8]) -> std::io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    match named.strip_prefix(b"@") {
        #[cfg(target_os = "linux")]
        Some(name) => socket.connect_addr(&SocketAddr::from_abstract_name(name)?)?,
        _ => socket.connect(Path::new(std::ffi::OsStr::from_bytes(named)))?,
    }
    // A manager that does not read must not block the server.
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// The watchdog interval for this process.
fn watchdog() -> Option<Duration> {
    let process = std::env::var(WATCHDOG_PROCESS).ok();
    if process.is_some_and(|process| process != std::process::id().to_string()) {
        return None;
    }
    let micros = std::env::var(WATCHDOG).ok()?.parse().ok()?;
    Some(Duration::from_micros(micros)).filter(|time| !time.is_zero())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_manager_hears_at_a_path_and_at_an_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let at_path = UnixDatagram::bind(&path).unwrap();
        let name = format!("toolcell-test-{}", std::process::id());
        let at_name = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let named = format!("@{name}");
        for (heard, named) in [(at_path, path.as_os_str().as_bytes()), (at_name, named.as_bytes())] {
            let manager = ServiceManager(Some(Arc::new(connected(named).unwrap())));
            manager.ready();
            manager.stopping();
            let mut bytes = [0; 64];
            for expected in ["READY=1", "STOPPING=1"] {
                let count = heard.recv(&mut bytes).unwrap();
                assert_eq!(bytes.get(..count), Some(expected.as_bytes()));
            }
        }
        assert!(connected(folder.path().join("none").as_os_str().as_bytes()).is_err());
    }
}
