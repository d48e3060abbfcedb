//! The balancer before the replicas: nginx with the documented configuration, or where there is
//! none a small balancer of connections in turn.
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use toolcell_tests::nginx::{self, Nginx};

/// A balancer before these replicas.
pub enum Balancer {
    Nginx(Nginx),
    /// Sends each connection to the next replica that takes it.
    InTurn {
        address: SocketAddr,
        replicas: Arc<Mutex<Vec<SocketAddr>>>,
    },
}

impl Balancer {
    pub fn before(replicas: &[SocketAddr]) -> Self {
        match nginx::installed() {
            Some(program) => Self::Nginx(Nginx::before(&program, replicas, |shown| shown)),
            None => in_turn(replicas),
        }
    }

    pub fn address(&self) -> SocketAddr {
        match self {
            Self::Nginx(nginx) => nginx.address(),
            Self::InTurn { address, .. } => *address,
        }
    }

    pub fn goes_before(&mut self, hosts: &[SocketAddr]) {
        match self {
            Self::Nginx(nginx) => nginx.goes_before(hosts),
            Self::InTurn { replicas, .. } => *replicas.lock().unwrap() = hosts.to_vec(),
        }
    }
}

fn in_turn(replicas: &[SocketAddr]) -> Balancer {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let replicas = Arc::new(Mutex::new(replicas.to_vec()));
    let shared = Arc::clone(&replicas);
    let turn = AtomicUsize::new(0);
    // It ends with the process.
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let replicas = shared.lock().unwrap().clone();
            let first = turn.fetch_add(1, Ordering::Relaxed);
            let mut ordered = replicas.iter().cycle().skip(first % replicas.len().max(1)).take(replicas.len());
            let Some(replica) = ordered.find_map(|replica| TcpStream::connect(replica).ok()) else { continue };
            for (from, to) in [(&client, &replica), (&replica, &client)] {
                let mut from = from.try_clone().unwrap();
                let mut to = to.try_clone().unwrap();
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
        }
    });
    Balancer::InTurn { address, replicas }
}
