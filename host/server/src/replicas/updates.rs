//! Notifications of changed resources for the clients of all replicas: gathered, merged and sent
//! over the replicas' bus.
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::sleep;
use toolcell_mcp::{Host, McpServer, NewsCarrier, ResourceNews};
use toolcell_shared::{Bus, News, Subscription};

use crate::owned_task::OwnedTask;

const CHANNEL: &str = "resources";

/// How long changes are gathered. Changes of one resource within it become one: clients get at most
/// ten a second for each.
const GATHERED: Duration = Duration::from_millis(100);

/// Addresses that are gathered for one client or for all. More become "any may have changed"; those
/// from calls of one component, "any of the component's".
const ADDRESSES_MAX: usize = 1_024;

/// Clients that have their own gathered addresses. Beyond these, everybody is notified that any
/// resource may have changed.
const CLIENTS_MAX: usize = 1_024;

/// Addresses in one message: with the longest ones, a quarter of what the bus accepts.
const MESSAGE_ADDRESSES_MAX: usize = 256;

/// Versions of resources that clients know. Replicas on one disk all announce a change.
const NOTIFIED_MAX: usize = 4_096;

/// Pause before clients that read too slowly are notified again.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// Carries notifications of changed resources.
pub struct Updates {
    gathered: Arc<Gathered>,
    _tasks: [OwnedTask; 2],
}

#[derive(Default)]
struct Gathered {
    news: Mutex<WaitingNews>,
    ready: Notify,
}

/// Waiting notifications: by their client, and by the component whose calls changed them. No
/// component's addresses count for another.
type WaitingNews = BTreeMap<(Option<String>, Option<String>), ResourceNews>;

/// Takes notifications from calls, once the server carries any.
#[derive(Default)]
pub struct NewsDesk(OnceLock<Weak<Updates>>);

impl NewsDesk {
    /// From now on, notifications go there.
    pub fn open(&self, updates: &Arc<Updates>) {
        let _ = self.0.set(Arc::downgrade(updates));
    }

    /// Takes changes of a component's resources, without waiting.
    pub fn notify(&self, component: &str, news: ResourceNews) {
        if let Some(updates) = self.0.get().and_then(Weak::upgrade) {
            updates.gathered.add(Some(component), news);
        }
    }

    /// Any of a component's resources may have changed, for this client or for all.
    pub fn notify_of_all(&self, component: &str, to: Option<String>) {
        let components = [component.to_owned()].into();
        self.notify(component, ResourceNews { to, components, ..ResourceNews::default() });
    }
}

impl Updates {
    /// Starts carrying notifications to the clients of this server.
    pub fn start<H: Host>(server: &Arc<McpServer<H>>, bus: Arc<dyn Bus>, runtime: &Handle) -> Arc<Self> {
        let _inside = runtime.enter();
        let gathered = Arc::<Gathered>::default();
        let heard = bus.subscribe(&[CHANNEL]);
        let speaking = runtime.spawn(publish_gathered(Arc::clone(&gathered), Arc::clone(server), bus));
        let hearing = runtime.spawn(listen(Arc::clone(server), heard));
        Arc::new(Self { gathered, _tasks: [speaking, hearing].map(OwnedTask) })
    }
}

impl NewsCarrier for Updates {
    fn carry(&self, news: ResourceNews) {
        self.gathered.add(None, news);
    }
}

impl Gathered {
    fn add(&self, component: Option<&str>, news: ResourceNews) {
        gather(&mut self.news.lock(), component, news);
        self.ready.notify_one();
    }
}

/// Adds changes to the waiting ones, within their bounds.
fn gather(waiting: &mut WaitingNews, component: Option<&str>, news: ResourceNews) {
    let key = (news.to.clone(), component.map(str::to_owned));
    if waiting.len() >= CLIENTS_MAX && !waiting.contains_key(&key) {
        waiting.clear();
        waiting.insert((None, None), ResourceNews { all: true, list: true, ..ResourceNews::default() });
        return;
    }
    let ResourceNews { to, updated, components, all, list } = news;
    let known = waiting.entry(key).or_insert_with(|| ResourceNews { to, ..ResourceNews::default() });
    known.all |= all;
    known.list |= list;
    known.components.extend(components);
    known.updated.extend(updated);
    if known.updated.len() > ADDRESSES_MAX {
        match component {
            Some(component) => known.components.extend([component.to_owned()]),
            None => known.all = true,
        }
    }
    if known.all || component.is_some_and(|component| known.components.contains(component)) {
        known.updated.clear();
    }
}

/// The changes in pieces that fit a message.
fn pieces(news: ResourceNews) -> Vec<ResourceNews> {
    let ResourceNews { to, updated, components, all, list } = news;
    let mut pieces = vec![ResourceNews { to: to.clone(), updated: BTreeMap::new(), components, all, list }];
    for (uri, version) in updated {
        match pieces.last_mut() {
            Some(last) if last.updated.len() < MESSAGE_ADDRESSES_MAX => {
                last.updated.insert(uri, version);
            }
            _ => pieces.push(ResourceNews {
                to: to.clone(),
                updated: BTreeMap::from([(uri, version)]),
                ..ResourceNews::default()
            }),
        }
    }
    pieces
}

async fn publish_gathered<H: Host>(gathered: Arc<Gathered>, server: Arc<McpServer<H>>, bus: Arc<dyn Bus>) {
    loop {
        gathered.ready.notified().await;
        sleep(GATHERED).await;
        let news = std::mem::take(&mut *gathered.news.lock());
        for piece in news.into_values().flat_map(pieces) {
            let Ok(message) = serde_json::to_vec(&piece) else { continue };
            if let Err(error) = bus.publish(CHANNEL, &message).await {
                tracing::debug!("other replicas are not notified of changed resources: {error}");
                server.resources_changed(&piece);
            }
        }
    }
}

async fn listen<H: Host>(server: Arc<McpServer<H>>, mut heard: Subscription) {
    let mut told = NotifiedVersions::default();
    let mut began = false;
    let mut waits = false;
    loop {
        let news = tokio::select! {
            news = heard.next() => match news {
                // Unless it is the first time, some may be lost.
                News::Listening if std::mem::replace(&mut began, true) => {
                    ResourceNews { all: true, list: true, ..ResourceNews::default() }
                }
                News::Listening => continue,
                News::Message(message) => match serde_json::from_slice(&message) {
                    Ok(news) => told.new_of(news),
                    Err(_) => continue,
                },
            },
            () = sleep(TRY_AGAIN_AFTER), if waits => ResourceNews::default(),
        };
        waits = server.resources_changed(&news);
    }
}

/// The versions of resources that clients know.
#[derive(Default)]
struct NotifiedVersions(HashMap<String, u64>);

impl NotifiedVersions {
    /// The part of the changes that is new.
    fn new_of(&mut self, mut news: ResourceNews) -> ResourceNews {
        let said = news.updated.len();
        news.updated.retain(|uri, version| *version == 0 || self.0.get(uri) != Some(version));
        if self.0.len() + news.updated.len() > NOTIFIED_MAX {
            self.0.clear();
        }
        self.0.extend(news.updated.iter().map(|(uri, version)| (uri.clone(), *version)));
        // Another replica has announced the same list.
        news.list &= said == 0 || !news.updated.is_empty();
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(to: Option<&str>, uris: impl IntoIterator<Item = (String, u64)>) -> ResourceNews {
        let to = to.map(str::to_owned);
        let updated = uris.into_iter().collect();
        ResourceNews { to, updated, list: true, ..ResourceNews::default() }
    }

    #[test]
    fn changes_of_one_resource_are_one_and_too_many_are_a_change_of_any() {
        let mut waiting = BTreeMap::new();
        for version in 0..10_000 {
            gather(&mut waiting, None, news(None, [("a:/".to_owned(), version)]));
        }
        assert_eq!(waiting.len(), 1);
        assert_eq!(waiting[&(None, None)].updated, BTreeMap::from([("a:/".to_owned(), 9_999)]));
        for number in 0..ADDRESSES_MAX {
            gather(&mut waiting, None, news(None, [(format!("b:/{number}"), 1)]));
        }
        assert!(waiting[&(None, None)].all && waiting[&(None, None)].updated.is_empty());
        for client in 0..2 * CLIENTS_MAX {
            gather(&mut waiting, None, news(Some(&client.to_string()), []));
            assert!(waiting.len() <= CLIENTS_MAX);
        }
        assert!(waiting[&(None, None)].all, "nothing is lost");
    }

    #[test]
    fn a_component_that_tells_of_too_many_is_told_of_as_a_whole_and_nobody_elses_count() {
        let mut waiting = WaitingNews::default();
        gather(&mut waiting, None, news(None, [("a:/".to_owned(), 1)]));
        gather(&mut waiting, Some("quiet"), news(None, [("q:/".to_owned(), 0)]));
        for number in 0..10_000 {
            gather(&mut waiting, Some("loud"), news(None, [(format!("b:/{number}"), 0)]));
        }
        let of = |component: Option<&str>| &waiting[&(None, component.map(str::to_owned))];
        assert_eq!((of(None).all, of(None).updated.len()), (false, 1));
        assert_eq!((of(Some("quiet")).components.len(), of(Some("quiet")).updated.len()), (0, 1));
        let loud = of(Some("loud"));
        assert_eq!((loud.all, loud.updated.len()), (false, 0));
        assert_eq!(loud.components, ["loud".to_owned()].into());
    }

    #[test]
    fn the_longest_news_fit_their_messages() {
        let uri = |number: usize| (format!("{number:04}{}", "\u{1}".repeat(2_044)), 1);
        let all = pieces(news(Some("client"), (0..ADDRESSES_MAX).map(uri)));
        assert_eq!(all.len(), 4);
        assert_eq!(all.iter().map(|piece| piece.updated.len()).sum::<usize>(), ADDRESSES_MAX);
        assert_eq!(all.iter().filter(|piece| piece.list).count(), 1);
        // Addresses are in their normal form, so none has anything to escape in JSON.
        let plain = |number: usize| (format!("{number:04}{}", "%01".repeat(2_044)), u64::MAX);
        for piece in pieces(news(Some("client"), (0..ADDRESSES_MAX).map(plain))) {
            let message = serde_json::to_vec(&piece).unwrap();
            assert!(message.len() <= toolcell_shared::MESSAGE_BYTES_MAX, "{}", message.len());
        }
    }

    #[test]
    fn several_replicas_tell_of_one_change_and_clients_hear_it_once() {
        let mut told = NotifiedVersions::default();
        let change = |version| news(None, [("a:/".to_owned(), version)]);
        assert_eq!(told.new_of(change(7)), change(7));
        assert!(told.new_of(change(7)).is_empty());
        assert_eq!(told.new_of(change(8)), change(8));
        for _ in 0..2 {
            assert_eq!(told.new_of(change(0)), change(0), "unlike any other");
        }
        assert!(!told.new_of(news(None, [])).is_empty());
        for number in 0..3 * NOTIFIED_MAX {
            told.new_of(news(None, [(format!("b:/{number}"), 1)]));
            assert!(told.0.len() <= NOTIFIED_MAX);
        }
    }
}
