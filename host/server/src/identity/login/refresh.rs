//! The use of a login's record at a time, and its refresh.
use std::path::Path;
use std::time::SystemTime;

use toolcell_policy::LoginPolicy;

use super::client::SendRequest;
use super::endpoints::Client;
use super::error::LoginError;
use super::record::Record;
use super::token::{self, AskedEndpoint};
use super::vault::{LockedVault, Vault};

/// The use of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Its access token is used.
    Use,
    /// Its refresh token gives another first.
    Refresh,
    /// Nobody is logged in.
    Missing,
    /// The login is at another server, or for something else.
    Other,
    /// The server gives no more tokens, for this reason.
    Ended(String),
}

/// A record that can be used, and why it could not be refreshed where that was due.
pub(super) struct Renewed {
    pub(super) record: Record,
    /// True if the server gave its token just now.
    pub(super) is_new: bool,
    pub(super) failed: Option<LoginError>,
}

/// Why there is no token.
pub(super) enum NotRenewed {
    /// Only a new login helps.
    Nothing(Plan),
    /// It may go better later.
    Failed(LoginError),
}

impl From<LoginError> for NotRenewed {
    fn from(error: LoginError) -> Self {
        Self::Failed(error)
    }
}

impl Plan {
    pub(super) fn of(record: Option<&Record>, policy: &LoginPolicy, now: SystemTime) -> Self {
        let Some(record) = record else { return Self::Missing };
        if !record.is_of(policy) {
            return Self::Other;
        }
        let before = |time: Option<SystemTime>| time.is_none_or(|time| now < time);
        if before(record.renew_at(policy.limits().early())) {
            Self::Use
        } else if record.refreshes() {
            Self::Refresh
        } else if before(record.until()) {
            Self::Use
        } else {
            Self::Ended(record.ended().unwrap_or("expired").to_owned())
        }
    }
}

/// Gives a record whose access token can be used now, refreshed where that is due. One process at a
/// time refreshes; the others take what it has stored. `send` makes the client where it is needed.
pub(super) async fn renew<S: SendRequest>(
    policy: &LoginPolicy,
    folder: &Path,
    vault: &Vault,
    send: impl FnOnce() -> Result<S, LoginError>,
) -> Result<Renewed, NotRenewed> {
    let plan = |record: Option<&Record>| Plan::of(record, policy, SystemTime::now());
    let record = vault.read().await?;
    match (plan(record.as_ref()), record) {
        (Plan::Use, Some(record)) => return Ok(Renewed { record, is_new: false, failed: None }),
        (Plan::Refresh, Some(_)) => {}
        (nothing, _) => return Err(NotRenewed::Nothing(nothing)),
    }
    let open = vault.open()?;
    let lock = open.lock().await?;
    let renewed = renew_locked(policy, folder, &lock, send).await;
    lock.release().await;
    renewed
}

/// As [`renew`], while no other process changes the login.
async fn renew_locked<S: SendRequest>(
    policy: &LoginPolicy,
    folder: &Path,
    lock: &LockedVault<'_>,
    send: impl FnOnce() -> Result<S, LoginError>,
) -> Result<Renewed, NotRenewed> {
    // Another process may have refreshed it while this one waited.
    let record = lock.read().await?;
    let mut record = match (Plan::of(record.as_ref(), policy, SystemTime::now()), record) {
        (Plan::Use, Some(record)) => return Ok(Renewed { record, is_new: false, failed: None }),
        (Plan::Refresh, Some(record)) => record,
        (nothing, _) => return Err(NotRenewed::Nothing(nothing)),
    };
    // The new tokens have a place before the old one is spent.
    let draft = lock.draft()?;
    let now = SystemTime::now();
    let asked = match (send(), Client::read(policy, folder)) {
        (Ok(send), Ok(client)) => {
            let endpoint = AskedEndpoint { address: &record.token_endpoint, auth: record.auth(), client: &client };
            token::refresh(policy, &endpoint, record.refresh_token.as_deref().unwrap_or_default(), &send).await
        }
        (Err(error), _) | (_, Err(error)) => Err(error),
    };
    match asked {
        Ok(tokens) => {
            record.renew(tokens, now);
            // Tokens that cannot be stored are used all the same: the old ones are spent.
            let failed = lock.write(draft, &record).await.err();
            Ok(Renewed { record, is_new: true, failed })
        }
        Err(error) if error.is_final() => {
            record.end(&error.to_string());
            lock.write(draft, &record).await?;
            usable_until_its_end(record, policy)
        }
        Err(error) if record.until().is_none_or(|until| now < until) => {
            Ok(Renewed { record, is_new: false, failed: Some(error) })
        }
        Err(error) => Err(NotRenewed::Failed(error)),
    }
}

/// A token that cannot be refreshed any more may hold for a while.
fn usable_until_its_end(record: Record, policy: &LoginPolicy) -> Result<Renewed, NotRenewed> {
    match Plan::of(Some(&record), policy, SystemTime::now()) {
        Plan::Use => Ok(Renewed { record, is_new: false, failed: None }),
        plan => Err(NotRenewed::Nothing(plan)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::record::tests::record;
    use super::super::store::{RecordPlace, Store};
    use super::super::token::tests::{Answers, policy_of};
    use super::*;

    const GIVEN: &str =
        r#"{"access_token":"second-access","token_type":"Bearer","expires_in":3600,"refresh_token":"two"}"#;
    const SPENT: &str = r#"{"error":"invalid_grant","error_description":"grant request is invalid"}"#;

    /// A login in a folder of states, and its server's next answers.
    struct Scene {
        policy: Arc<LoginPolicy>,
        state: tempfile::TempDir,
        answers: Arc<Answers>,
    }

    impl Scene {
        fn of(refresh: Option<&str>, ago: u64, life: u64, answers: &[(u16, &str)]) -> Self {
            let policy = policy_of("issuer = \"https://login.example.com\"");
            let state = tempfile::tempdir().unwrap();
            let store = Store::open(&RecordPlace::shared(state.path(), "notes")).unwrap();
            store.lock().unwrap().write(&record(&policy, refresh, ago, life)).unwrap();
            Self { policy, state, answers: Arc::new(Answers::new(answers)) }
        }

        /// The access token that is used, or why there is none; and why it was not renewed.
        async fn renew(&self) -> (String, String) {
            let send = || Ok(Arc::clone(&self.answers));
            let vault = Vault::File(RecordPlace::shared(self.state.path(), "notes"));
            match renew(&self.policy, self.state.path(), &vault, send).await {
                Ok(Renewed { record, failed, .. }) => {
                    (record.access_token.clone(), failed.map(|error| error.to_string()).unwrap_or_default())
                }
                Err(NotRenewed::Nothing(plan)) => (format!("{plan:?}"), String::new()),
                Err(NotRenewed::Failed(error)) => ("failed".to_owned(), error.to_string()),
            }
        }

        fn stored(&self) -> Record {
            Store::read_record(&RecordPlace::shared(self.state.path(), "notes")).unwrap().unwrap()
        }

        fn asked(&self) -> usize {
            self.answers.forms().len()
        }
    }

    #[tokio::test]
    async fn a_token_that_holds_is_used_and_one_that_ends_is_refreshed_and_stored_first() {
        let scene = Scene::of(Some("one"), 0, 3_600, &[(200, GIVEN)]);
        assert_eq!(scene.renew().await, ("first-access".to_owned(), String::new()));
        assert_eq!(scene.asked(), 0);
        let scene = Scene::of(Some("one"), 3_590, 3_600, &[(200, GIVEN)]);
        assert_eq!(scene.renew().await, ("second-access".to_owned(), String::new()));
        assert_eq!(scene.answers.forms(), ["grant_type=refresh_token&refresh_token=one&client_id=desk"]);
        let stored = scene.stored();
        assert_eq!((stored.access_token.as_str(), stored.refresh_token.as_deref()), ("second-access", Some("two")));
        assert_eq!(scene.renew().await.0, "second-access");
        assert_eq!(scene.asked(), 1);
    }

    #[tokio::test]
    async fn a_server_that_does_not_rotate_leaves_the_refresh_token_as_it_is() {
        let given = GIVEN.replace(",\"refresh_token\":\"two\"", "");
        let scene = Scene::of(Some("one"), 3_600, 3_600, &[(200, &given)]);
        assert_eq!(scene.renew().await.0, "second-access");
        assert_eq!(scene.stored().refresh_token.as_deref(), Some("one"));
    }

    #[tokio::test]
    async fn a_spent_refresh_token_is_shown_once_and_never_again() {
        let scene = Scene::of(Some("one"), 3_600, 3_600, &[(400, SPENT)]);
        let ended = "Ended(\"https://login.example.com/token refuses: invalid_grant: grant request is invalid\")";
        for _ in 0..3 {
            assert_eq!(scene.renew().await, (ended.to_owned(), String::new()));
        }
        assert_eq!((scene.asked(), scene.stored().refresh_token.as_deref()), (1, None));
        // While the access token holds, it is used.
        let scene = Scene::of(Some("one"), 3_590, 3_600, &[(400, SPENT)]);
        assert_eq!(scene.renew().await, ("first-access".to_owned(), String::new()));
        assert_eq!(scene.renew().await, ("first-access".to_owned(), String::new()));
        assert_eq!(scene.asked(), 1);
    }

    #[tokio::test]
    async fn a_server_that_is_down_costs_no_login() {
        let down = "https://login.example.com/token: it answers with status 503";
        let scene = Scene::of(Some("one"), 3_590, 3_600, &[(503, "")]);
        assert_eq!(scene.renew().await, ("first-access".to_owned(), down.to_owned()));
        let scene = Scene::of(Some("one"), 3_600, 3_600, &[(503, ""), (200, GIVEN)]);
        assert_eq!(scene.renew().await, ("failed".to_owned(), down.to_owned()));
        assert_eq!(scene.stored().refresh_token.as_deref(), Some("one"));
        assert_eq!(scene.renew().await.0, "second-access");
    }

    #[tokio::test]
    async fn without_a_login_of_this_server_nothing_is_asked() {
        let scene = Scene::of(None, 3_600, 3_600, &[]);
        assert_eq!(scene.renew().await.0, "Ended(\"expired\")");
        let scene = Scene::of(None, 0, 3_600, &[]);
        assert_eq!(scene.renew().await.0, "first-access");
        let mut scene = Scene::of(Some("one"), 3_600, 3_600, &[]);
        scene.policy = policy_of("issuer = \"https://evil.example.com\"");
        assert_eq!(scene.renew().await.0, "Other");
        std::fs::remove_file(RecordPlace::shared(scene.state.path(), "notes").path()).unwrap();
        assert_eq!(scene.renew().await.0, "Missing");
        assert_eq!(scene.asked(), 0);
    }

    #[tokio::test]
    async fn a_refresh_token_is_not_spent_where_its_successor_has_no_place() {
        let scene = Scene::of(Some("one"), 3_600, 3_600, &[(200, GIVEN)]);
        std::fs::create_dir(super::super::store::folder(scene.state.path()).join(".notes.new")).unwrap();
        assert_eq!(scene.renew().await.0, "failed");
        assert_eq!((scene.asked(), scene.stored().refresh_token.as_deref()), (0, Some("one")));
    }

    #[test]
    fn of_many_that_refresh_at_once_one_asks_the_server_and_all_get_its_token() {
        let scene = Arc::new(Scene::of(Some("one"), 3_600, 3_600, &[(200, GIVEN), (400, SPENT)]));
        let renew = |scene: Arc<Scene>| {
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(scene.renew()).0
        };
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let scene = Arc::clone(&scene);
                std::thread::spawn(move || renew(scene))
            })
            .collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), "second-access");
        }
        assert_eq!(scene.asked(), 1);
    }
}
