//! Events: parts of a view for pages that are open, at most once a second for each. Values are
//! computed once for all viewers, and only while there are any.
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::StatusCode;
use hyper::body::Bytes;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use toolcell_console::model::{Approvals, Changes, Denials, Frame, Now};
use toolcell_console::update::{self, Update};
use toolcell_console::{View, routes};

use super::form::Fields;
use super::gather::Sources;
use super::listen::ConnectionTime;
use super::reply::{self, Reply};
use super::service::{Console, Visit};
use super::spoken::{SeenNews, SpokenNews};

/// Viewers: the operators of one server, with a page or two each.
const VIEWERS_MAX: usize = 16;

/// Time between two events of a viewer. Nobody reads faster.
const EVERY: Duration = Duration::from_secs(1);

/// Age up to which values are shared: slightly less than the time between events.
const FRESH: Duration = Duration::from_millis(900);

/// Time in which a viewer must accept an event. Then the connection is closed.
const TAKEN_WITHIN: Duration = Duration::from_secs(10);

/// Time after which an empty event is sent, so that proxies keep the connection.
const BEAT: Duration = Duration::from_secs(15);

/// Life of a stream; the page then asks for another.
const STREAM_TIME: Duration = Duration::from_secs(3_600);

/// A viewer's page.
struct ViewedPage {
    view: View,
    /// The component to which a view of denials is limited; empty for all.
    component: String,
}

/// The viewers, and the values that they share.
pub struct Viewers {
    places: Arc<Semaphore>,
    now: FreshValue<Now>,
    denials: FreshValue<Denials>,
    changes: FreshValue<Changes>,
    approvals: FreshValue<Approvals>,
    news: FreshValue<SpokenNews>,
}

impl Default for Viewers {
    fn default() -> Self {
        let places = Arc::new(Semaphore::new(VIEWERS_MAX));
        let (now, denials, changes, approvals, news) = Default::default();
        Self { places, now, denials, changes, approvals, news }
    }
}

/// A value that is computed at most once a second.
struct FreshValue<T>(Mutex<Option<(Instant, Arc<T>)>>);

impl<T> Default for FreshValue<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> FreshValue<T> {
    /// The value, unless it was computed before `since`: a page loaded then already shows a newer
    /// one.
    fn get(&self, since: Instant, make: impl FnOnce() -> T) -> Arc<T> {
        let mut kept = self.0.lock();
        if let Some((_, value)) = kept.as_ref().filter(|(made, _)| *made >= since && made.elapsed() < FRESH) {
            return Arc::clone(value);
        }
        let value = Arc::new(make());
        *kept = Some((Instant::now(), Arc::clone(&value)));
        value
    }
}

impl Viewers {
    /// Parts of a view, and the news, for a viewer who came at this time.
    fn update(
        &self,
        sources: &Sources,
        frame: &Frame,
        looked_at: &ViewedPage,
        came: Instant,
    ) -> (Update, Arc<SpokenNews>) {
        let ViewedPage { view, component } = looked_at;
        let update = match *view {
            View::Now => update::now(frame, &self.now.get(came, || sources.now())),
            View::Denials => update::denials(frame, &self.denials.get(came, || sources.denials()), component),
            View::Changes => update::changes(frame, &self.changes.get(came, || sources.changes())),
            View::Approvals => update::approvals(frame, &self.approvals.get(came, || sources.approvals())),
            View::Tools | View::Audit | View::Callers => update::counts(frame, *view),
        };
        (update, self.news.get(came, || SpokenNews::of(sources)))
    }
}

impl Console {
    pub(super) fn events(self: &Arc<Self>, visit: Visit, fields: &Fields, time: ConnectionTime) -> Reply {
        let Some(view) = View::of_key(fields.get(routes::VIEW)) else {
            return reply::problem(StatusCode::NOT_FOUND, "There is no such view.", None);
        };
        let Ok(place) = Arc::clone(&self.state.viewers.places).try_acquire_owned() else {
            let hint = "Close another page of the console.";
            return reply::problem(StatusCode::SERVICE_UNAVAILABLE, "Too many pages are open.", Some(hint));
        };
        let view = ViewedPage { view, component: fields.get(routes::COMPONENT).to_owned() };
        let view = Arc::new(view);
        let (sender, pieces) = mpsc::channel(1);
        time.extend(STREAM_TIME);
        drop(tokio::spawn(Arc::clone(self).send_events(visit, view, sender, time, place)));
        reply::stream(pieces, "text/event-stream", None)
    }

    async fn send_events(
        self: Arc<Self>,
        visit: Visit,
        view: Arc<ViewedPage>,
        sender: mpsc::Sender<io::Result<Bytes>>,
        time: ConnectionTime,
        _place: OwnedSemaphorePermit,
    ) {
        let came = Instant::now();
        let ends = came + STREAM_TIME;
        let mut told = came;
        let mut last = Update::default();
        let mut heard = None::<SeenNews>;
        while Instant::now() < ends {
            // An open page alone does not keep its session alive.
            let holds = self.session_gate.sessions.holds(&visit.secret, Instant::now());
            if !holds || !self.session_gate.still_admits(&visit.session) {
                let _ = sender.try_send(Ok(Bytes::from_static(update::ENDED.as_bytes())));
                return;
            }
            let console = Arc::clone(&self);
            let frame = self.frame(&visit, false);
            let view = Arc::clone(&view);
            let made = tokio::task::spawn_blocking(move || {
                console.state.viewers.update(&console.sources, &frame, &view, came)
            });
            let Ok((update, news)) = made.await else { return };
            // A page that was just loaded shows the earlier news.
            let to_say = heard.get_or_insert_with(|| SeenNews::all_of(&news)).hears(&news);
            let is_news = to_say.is_some() || update != last;
            if is_news || told.elapsed() >= BEAT {
                let piece =
                    if is_news { spoken(&update, &last, to_say.as_deref()) } else { update::KEEP_ALIVE.to_owned() };
                let sent = tokio::time::timeout(TAKEN_WITHIN, sender.send(Ok(piece.into()))).await;
                match sent {
                    Ok(Ok(())) => {}
                    // The page is closed.
                    Ok(Err(_)) => return,
                    Err(_) => return time.extend(Duration::ZERO),
                }
                (last, told) = (update, Instant::now());
            }
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = sender.closed() => return,
            }
        }
    }
}

/// The event of an update for a page, with text for screen readers.
fn spoken(update: &Update, last: &Update, sentences: Option<&str>) -> String {
    match sentences {
        Some(sentences) => update.clone().saying(sentences).event(last),
        None => update.event(last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_for_all_who_look_at_the_same_time() {
        let shared = FreshValue::default();
        let came = Instant::now();
        let mut made = 0;
        for _ in 0..10 {
            let value = shared.get(came, || {
                made += 1;
                made
            });
            assert_eq!(*value, 1);
        }
    }

    #[test]
    fn who_comes_later_is_given_no_value_from_before() {
        let shared = FreshValue::default();
        let came = Instant::now();
        assert_eq!(*shared.get(came, || "before"), "before");
        let later = Instant::now() + Duration::from_nanos(1);
        assert_eq!(*shared.get(later, || "after"), "after");
        assert_eq!(*shared.get(came, || "never made"), "after");
    }
}
