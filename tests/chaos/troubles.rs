//! Troubles, one at a time.
use std::time::{Duration, Instant};

use toolcell_tests::web::Ask;

use crate::load::Counts;
use crate::site::{Arrangement, Site, State};

/// Time of load before and after.
const QUIET: Duration = Duration::from_secs(3);

/// Time for a replica that starts to be ready.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug)]
pub enum Trouble {
    Nothing,
    ReplicaKilled,
    ReplicaPaused(Duration),
    StateKilled,
    StatePaused(Duration),
    MainKilled,
    MainPaused(Duration),
    NodeKilled,
    NodePaused(Duration),
    Reload,
    Replacement,
}

impl Trouble {
    /// All, from the least to the worst.
    pub fn all() -> Vec<Self> {
        let pauses = [1, 10, 60].map(Duration::from_secs);
        let mut all = vec![Self::Nothing, Self::Reload, Self::Replacement, Self::ReplicaKilled, Self::StateKilled];
        all.push(Self::MainKilled);
        all.extend(pauses.map(Self::ReplicaPaused));
        all.extend(pauses.map(Self::StatePaused));
        all.push(Self::MainPaused(Duration::from_secs(10)));
        all.extend([Self::NodeKilled, Self::NodePaused(Duration::from_secs(10))]);
        all
    }

    pub fn name(&self) -> String {
        match self {
            Self::Nothing => "nothing".to_owned(),
            Self::ReplicaKilled => "kill -9 of a replica".to_owned(),
            Self::ReplicaPaused(time) => format!("a replica stands still for {time:?}"),
            Self::StateKilled => "kill -9 of the state's server, started again".to_owned(),
            Self::StatePaused(time) => format!("the state's server stands still for {time:?}"),
            Self::MainKilled => "failover: kill -9 of the main server".to_owned(),
            Self::MainPaused(time) => format!("failover: the main server stands still for {time:?}"),
            Self::NodeKilled => "cluster: kill -9 of a node with a copy".to_owned(),
            Self::NodePaused(time) => format!("cluster: a node with a copy stands still for {time:?}"),
            Self::Reload => "a manifest reloaded by one replica after another".to_owned(),
            Self::Replacement => "one replica after another replaced".to_owned(),
        }
    }

    /// The time that something stands still.
    pub fn pause(&self) -> Duration {
        match self {
            Self::ReplicaPaused(time) | Self::StatePaused(time) => *time,
            _ => Duration::ZERO,
        }
    }

    /// True if calls of a replica may be cut off.
    pub fn stops_replicas(&self) -> bool {
        matches!(self, Self::ReplicaKilled | Self::ReplicaPaused(_))
    }

    fn arrangement(&self) -> Arrangement {
        match self {
            Self::MainKilled | Self::MainPaused(_) => Arrangement::Watched,
            Self::NodeKilled | Self::NodePaused(_) => Arrangement::Clustered,
            _ => Arrangement::Alone,
        }
    }
}

/// Loads a new site, and has this go wrong meanwhile.
pub fn run(trouble: &Trouble) -> Counts {
    let mut site = Site::start(trouble.arrangement());
    let balancer = site.balancer.address();
    Counts::during(balancer, || {
        pass(QUIET);
        happen(trouble, &mut site);
        pass(QUIET);
    })
}

fn happen(trouble: &Trouble, site: &mut Site) {
    match (trouble, &site.state) {
        (Trouble::ReplicaPaused(time), _) => {
            let Some(replica) = &site.replicas[1] else { return };
            replica.process().pause();
            pass(*time);
            replica.process().resume();
        }
        (Trouble::ReplicaKilled, _) => {
            if let Some(replica) = site.replicas[1].take() {
                drop(replica.into_process().is_killed_leaving_its_folder());
            }
            pass(QUIET);
            site.start_again(1);
        }
        (Trouble::StateKilled, State::Alone(engine)) => {
            engine.kill();
            pass(Duration::from_secs(1));
            engine.start_again();
        }
        (Trouble::StatePaused(time), State::Alone(engine)) => {
            engine.pause();
            pass(*time);
            engine.go_on();
        }
        (Trouble::MainKilled, State::Watched(watched)) => {
            watched.main.kill();
            fails_over(site);
        }
        (Trouble::MainPaused(time), State::Watched(watched)) => {
            watched.main.pause();
            let began = Instant::now();
            fails_over(site);
            pass(time.saturating_sub(began.elapsed()));
            watched.main.go_on();
        }
        (Trouble::NodeKilled, State::Clustered(cluster)) => {
            cluster.nodes[0].kill();
            fails_over(site);
        }
        (Trouble::NodePaused(time), State::Clustered(cluster)) => {
            cluster.nodes[0].pause();
            let began = Instant::now();
            fails_over(site);
            pass(time.saturating_sub(began.elapsed()));
            cluster.nodes[0].go_on();
        }
        (Trouble::Reload, _) => {
            for replica in site.replicas.iter().flatten() {
                let folder = replica.process().folder();
                let manifest = std::fs::read_to_string(folder.manifest()).unwrap();
                folder.write("toolcell.toml", format!("{manifest}\n[components.rated.tools.echo]\ntitle = \"New\"\n"));
                replica.process().hang_up();
                replica.process().will_say("generation 2");
                pass(Duration::from_secs(1));
            }
        }
        (Trouble::Replacement, _) => {
            for number in 0..site.replicas.len() {
                // The documented order: out of the balancer, ended, started, into the balancer.
                let old = site.replicas[number].take();
                site.tell();
                if let Some(old) = old {
                    old.process().terminate();
                    let ended = old.into_process().ends();
                    drop(ended);
                }
                site.start_again(number);
                let replica = site.replicas[number].as_ref();
                let until = Instant::now() + READY_WITHIN;
                let is_ready = || replica.is_some_and(|one| one.ask(&Ask::bare("GET", "/readyz")).status() == 200);
                while !is_ready() && Instant::now() < until {
                    std::thread::yield_now();
                }
            }
        }
        _ => (),
    }
}

/// Waits until the copy takes the place of what it copies.
fn fails_over(site: &Site) {
    let until = Instant::now() + READY_WITHIN;
    let has_failed_over = || match &site.state {
        State::Alone(_) => true,
        State::Watched(watched) => watched.main_port() == watched.copy.port(),
        State::Clustered(cluster) => cluster.copy.whole_answer(&["INFO", "replication"]).contains("role:master"),
    };
    while !has_failed_over() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    pass(QUIET);
}

/// Lets a time pass under load.
fn pass(time: Duration) {
    std::thread::sleep(time);
}
