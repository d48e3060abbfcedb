//! The official Rust SDK sees reloads. New code answers without a notification; a changed list is
//! announced once.

use rmcp::model::{CallToolRequestParams, ServerNotification, SubscriptionFilter};
use rmcp::service::{NotificationContext, RunningService, Subscription};
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::mpsc;
use toolcell_tests::Folder;

use super::rmcp::{Mode, Target};

/// New answers in a row after which no process answers as before.
const IN_A_ROW: usize = 9;

/// Passes on list changes that are announced without a subscription.
struct Ear(mpsc::UnboundedSender<()>);

impl ClientHandler for Ear {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        let _ = self.0.send(());
    }
}

/// The list changes that a connection is notified of: unasked in the legacy era, through its
/// subscription in the modern one.
struct Heard {
    bare: mpsc::UnboundedReceiver<()>,
    subscription: Option<Subscription>,
}

impl Heard {
    async fn next(&mut self) {
        match &mut self.subscription {
            None => self.bare.recv().await.expect("the connection lives"),
            Some(subscription) => match subscription.next().await {
                Ok(Some(ServerNotification::ToolListChangedNotification(_))) => {}
                other => panic!("a change was expected, not {other:?}"),
            },
        }
    }

    /// True if no notification waits.
    async fn is_quiet(&mut self) -> bool {
        tokio::time::timeout(std::time::Duration::ZERO, self.next()).await.is_err()
    }
}

/// Saves the next versions over the served one, and checks the effect of each.
pub(super) async fn converse(mode: Mode, folder: &Folder, target: Target) {
    let (client, mut heard) = connect(mode, target).await;
    assert_eq!((version(&client).await.as_str(), names(&client).await), ("a", vec!["version".into(), "linger".into()]));
    let save = |next: &str| {
        let path = |relative: &str| folder.path().join(relative);
        std::fs::rename(path(&format!("next/{next}.wasm")), path("components/tool.wasm")).unwrap();
    };
    save("same_list");
    // The test's own time limit bounds it. Replicas take the new code a moment after one another.
    let mut in_a_row = 0;
    while in_a_row < IN_A_ROW {
        in_a_row = if version(&client).await == "a" { 0 } else { in_a_row + 1 };
    }
    assert_eq!((version(&client).await.as_str(), names(&client).await), ("b", vec!["version".into(), "linger".into()]));
    assert!(heard.is_quiet().await, "nobody hears of other code behind the same list");
    save("other_list");
    heard.next().await;
    assert_eq!((version(&client).await.as_str(), names(&client).await), ("c", vec!["version".into(), "extra".into()]));
    assert!(heard.is_quiet().await, "the other list is heard of once");
    client.cancel().await.expect("the connection closes");
}

async fn connect(mode: Mode, target: Target) -> (RunningService<RoleClient, Ear>, Heard) {
    let (sender, bare) = mpsc::unbounded_channel();
    let client = super::rmcp::connect(mode, Ear(sender), target).await;
    let wanted = SubscriptionFilter::builder().tools_list_changed().build();
    let subscription = match mode {
        Mode::Legacy => None,
        Mode::Auto | Mode::Modern => Some(client.listen(wanted).await.expect("listening is acknowledged")),
    };
    (client, Heard { bare, subscription })
}

/// The version that answers.
async fn version(client: &RunningService<RoleClient, Ear>) -> String {
    let answer = client.call_tool(CallToolRequestParams::new("version")).await.expect("an answer");
    let answer = serde_json::to_value(answer).unwrap();
    assert_ne!(answer["isError"], true, "{answer}");
    answer["content"][0]["text"].as_str().unwrap().to_owned()
}

/// The names of the listed tools.
async fn names(client: &RunningService<RoleClient, Ear>) -> Vec<String> {
    let tools = client.list_all_tools().await.expect("the list of tools");
    tools.into_iter().map(|tool| tool.name.into_owned()).collect()
}
