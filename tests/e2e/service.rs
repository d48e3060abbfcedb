//! A server that a service manager started: what the manager is notified of, and what the log says
//! at its end.

use std::os::unix::net::UnixDatagram;

use toolcell_tests::web::WebHost;
use toolcell_tests::{Folder, alone, manifest_of, patience};

/// The next message that is not one of these.
fn heard(manager: &UnixDatagram, but: &str) -> String {
    let mut bytes = [0; 256];
    loop {
        let count = manager.recv(&mut bytes).expect("the manager is told something");
        let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
        if text != but {
            return text;
        }
    }
}

#[test]
fn a_service_manager_is_told_that_it_serves_lives_and_stops() {
    let _alone = alone("what one process tells the manager that started it");
    let folder = Folder::with_manifest(&manifest_of(&["good"]));
    let path = folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(patience())).unwrap();
    let variables = [("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "20000")];
    let host = WebHost::in_folder_with(folder, &["--http", "127.0.0.1:0"], &variables);
    assert_eq!(heard(&manager, "WATCHDOG=1"), "READY=1");
    host.still_works();
    for _ in 0..3 {
        assert_eq!(heard(&manager, ""), "WATCHDOG=1");
    }
    host.process().terminate();
    assert_eq!(heard(&manager, "WATCHDOG=1"), "STOPPING=1");
    let ended = host.into_process().ends();
    assert!(ended.status.success(), "{ended:?}");
    let lines: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("SIGTERM")).collect();
    assert!(lines[0].contains("SIGTERM: the server stops; calls that run: 0"), "{ended:?}");
    assert!(lines[1].contains("stopped by SIGTERM, which took "), "{ended:?}");
}
