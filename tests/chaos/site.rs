//! Three replicas, their balancer, and the servers of their shared state.
use std::os::unix::fs::PermissionsExt as _;

use toolcell_tests::engine::{Cluster, Engine, MAIN, Watched};
use toolcell_tests::web::WebHost;
use toolcell_tests::{Folder, manifest_of};

use crate::balancer::Balancer;

/// The key that all replicas share.
const KEY: &str = "0123456789abcdef0123456789abcdef";

/// Calls that each caller may make of the tool with a rate, in a minute.
pub const RATE_PER_MINUTE: u64 = 600;

/// Everything that runs.
pub struct Site {
    pub state: State,
    /// `None` for a moment while one is replaced.
    pub replicas: [Option<WebHost>; 3],
    pub balancer: Balancer,
}

/// The shared state.
pub enum State {
    Alone(Box<Engine>),
    Watched(Box<Watched>),
    Clustered(Box<Cluster>),
}

/// The arrangement of the shared state.
#[derive(Clone, Copy)]
pub enum Arrangement {
    Alone,
    /// A copy and sentinels.
    Watched,
    /// A cluster of three nodes and a copy of the first.
    Clustered,
}

impl Site {
    /// Starts everything.
    pub fn start(arrangement: Arrangement) -> Self {
        let state = match arrangement {
            Arrangement::Alone => {
                State::Alone(Box::new(Engine::start(&["--appendonly", "yes", "--appendfsync", "always"])))
            }
            Arrangement::Watched => State::Watched(Box::new(Watched::start(&[]))),
            Arrangement::Clustered => State::Clustered(Box::new(Cluster::start(&[]))),
        };
        let replicas = [(); 3].map(|()| Some(replica(&state)));
        let addresses: Vec<_> = replicas.iter().flatten().map(WebHost::address).collect();
        Self { balancer: Balancer::before(&addresses), state, replicas }
    }

    /// Puts a new replica instead of one, before the balancer knows of it.
    pub fn start_again(&mut self, number: usize) {
        self.replicas[number] = Some(replica(&self.state));
        self.tell();
    }

    /// Makes the balancer send requests to the replicas that there are.
    pub fn tell(&mut self) {
        let addresses: Vec<_> = self.replicas.iter().flatten().map(WebHost::address).collect();
        self.balancer.goes_before(&addresses);
    }
}

fn replica(state: &State) -> WebHost {
    let at = |engine: &Engine| format!("127.0.0.1:{}", engine.port());
    let state = match state {
        State::Alone(engine) => format!("shared = \"redis://{}\"", at(engine)),
        State::Watched(watched) => {
            let sentinels = watched.sentinels.each_ref().map(at).join(",");
            format!("shared = \"redis://{sentinels}\"\nsentinel = \"{MAIN}\"")
        }
        State::Clustered(cluster) => {
            let nodes = cluster.nodes.each_ref().map(at).join(",");
            format!("shared = \"redis://{nodes}\"\ncluster = true")
        }
    };
    let head = format!("version = 1\n[server]\nstate_key = \"file:state.key\"\n[state]\n{state}\n");
    let manifest = manifest_of(&["good"]).replacen("version = 1\n", &head, 1);
    let further = format!(
        "[components.asked]\nsource = \"components/good.wasm\"\nprefix = \"asked_\"\napproval = \"always\"\n\
         [components.rated]\nsource = \"components/good.wasm\"\nprefix = \"rated_\"\n\
         [components.rated.limits]\nrate = \"{RATE_PER_MINUTE}/min\"\n"
    );
    let folder = Folder::with_manifest(&format!("{manifest}{further}"));
    folder.write("state.key", KEY);
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(folder.path().join("state.key"), private).unwrap();
    WebHost::in_folder(folder, &["--http", "127.0.0.1:0"])
}
