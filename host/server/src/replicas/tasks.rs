//! Tasks as the protocol knows them, kept in memory and files, or on the server that replicas
//! share. Must not hold: how a task runs.
use std::path::Path;
use std::sync::{Arc, Weak};

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use toolcell_mcp::store::{StoreAway, Storing};
use toolcell_mcp::tasks as mcp;
use toolcell_mcp::{McpServer, TaskOptions};
use toolcell_policy::{Manifest, TasksPolicy};
use toolcell_shared::{
    Away, Bus, Changed, Creation, LostTask, NewTask, News, Subscription, TaskBounds, TaskChange, TaskRecord,
    TaskStatus, Tasks, TasksHere,
};

use crate::error::StartError;
use crate::reload::Current;
use crate::replicas::bus::publish;
use crate::replicas::shared;

/// The channel on which replicas say which task has changed.
const CHANNEL: &str = "tasks";

/// The folder of tasks, in that of what tools keep.
const FOLDER: &str = "tasks";

/// The tasks of a server.
pub struct KeptTasks {
    tasks: Arc<dyn Tasks>,
    bus: Arc<dyn Bus>,
    hearing: std::sync::OnceLock<JoinHandle<()>>,
}

impl KeptTasks {
    /// Keeps the tasks of this server, as the manifest says. Relative paths start from `folder`.
    ///
    /// # Errors
    /// [`StartError`], where the shared state cannot be used.
    pub fn start(
        server: &Arc<McpServer<Current>>,
        manifest: &Manifest,
        folder: &Path,
        (bus, runtime): (Arc<dyn Bus>, &Handle),
    ) -> Result<Arc<Self>, StartError> {
        let policy = manifest.tasks();
        let lost = LostTask { body: mcp::LOST_TASK.0, message: mcp::LOST_TASK.1 };
        let shared = shared::tasks(manifest.state(), folder, (bounds(policy), lost), runtime)?;
        let tasks: Arc<dyn Tasks> = shared.unwrap_or_else(|| {
            let files = folder.join(manifest.server().state()).join(FOLDER);
            let bus = Arc::clone(&bus);
            let runtime = runtime.clone();
            let here = TasksHere::new(bounds(policy), Some(&files), lost);
            Arc::new(here.telling(move |id| {
                let bus = Arc::clone(&bus);
                let id = id.to_owned();
                // Where it fails, whoever waits asks again.
                drop(runtime.spawn(async move { publish(&*bus, CHANNEL, id.as_bytes()).await }));
            }))
        });
        let _inside = runtime.enter();
        let heard = bus.subscribe(&[CHANNEL]);
        let kept = Arc::new(Self { tasks, bus, hearing: std::sync::OnceLock::new() });
        let _ = kept.hearing.set(runtime.spawn(hear(Arc::downgrade(server), heard)));
        let options = TaskOptions {
            ttl: policy.ttl(),
            ttl_max: policy.ttl_max(),
            poll: policy.poll(),
            result_bytes_max: policy.result_bytes(),
        };
        let store: Arc<dyn mcp::TaskStore> = Arc::<Self>::clone(&kept);
        server.keep_tasks_in(store, options);
        Ok(kept)
    }

    /// This process ends, and with it all tasks that it runs.
    pub async fn leave(&self) {
        if let Err(away) = self.tasks.leave().await {
            tracing::debug!("that tasks have ended is known a moment later: {}", away.internal());
        }
    }

    /// Has all replicas look at a task again.
    async fn tell(&self, id: &str) {
        if let Err(error) = publish(&*self.bus, CHANNEL, id.as_bytes()).await {
            tracing::debug!("other replicas do not hear that a task has changed: {error}");
        }
    }
}

impl Drop for KeptTasks {
    fn drop(&mut self) {
        self.hearing.get().into_iter().for_each(JoinHandle::abort);
    }
}

/// Hears which tasks have changed, without end.
async fn hear(server: Weak<McpServer<Current>>, mut heard: Subscription) {
    loop {
        let news = heard.next().await;
        let Some(server) = server.upgrade() else { return };
        match news {
            // Some may be lost.
            News::Listening => server.task_changed(None).await,
            News::Message(id) => {
                if let Ok(id) = std::str::from_utf8(&id) {
                    server.task_changed(Some(id)).await;
                }
            }
        }
    }
}

impl mcp::TaskStore for KeptTasks {
    fn create(&self, task: mcp::NewTask) -> Storing<'_, mcp::Creation> {
        Box::pin(async move {
            let mcp::NewTask { id, caller, ttl, bytes } = task;
            let created = self.tasks.create(&NewTask { id: &id, caller: &caller, ttl, bytes }).await;
            created.map_err(is_away).map(|created| match created {
                Creation::Created => mcp::Creation::Created,
                Creation::CallerFull => mcp::Creation::CallerFull,
                Creation::Full => mcp::Creation::Full,
            })
        })
    }

    fn find<'t>(&'t self, caller: &'t str, id: &'t str) -> Storing<'t, Option<mcp::StoredTask>> {
        Box::pin(async move { Ok(self.tasks.find(caller, id).await.map_err(is_away)?.map(stored)) })
    }

    fn list<'t>(&'t self, caller: &'t str, after: u64, most: usize) -> Storing<'t, Vec<mcp::StoredTask>> {
        Box::pin(async move {
            let listed = self.tasks.list(caller, after, most).await.map_err(is_away)?;
            Ok(listed.into_iter().map(stored).collect())
        })
    }

    fn change<'t>(&'t self, id: &'t str, change: mcp::TaskChange) -> Storing<'t, mcp::Changed> {
        Box::pin(async move {
            let changed = match &change {
                mcp::TaskChange::Says(message) => self.tasks.change(id, TaskChange::Says(message)).await,
                mcp::TaskChange::Asks(questions) => self.tasks.change(id, TaskChange::Asks(questions)).await,
                mcp::TaskChange::Ends { status, body, message } => {
                    let status = match status {
                        mcp::TaskStatus::Completed => TaskStatus::Completed,
                        _ => TaskStatus::Failed,
                    };
                    self.tasks.change(id, TaskChange::Ends { status, body, message }).await
                }
            };
            let changed = changed.map_err(is_away)?;
            if changed == Changed::Done {
                self.tell(id).await;
            }
            Ok(match changed {
                Changed::Done => mcp::Changed::Done,
                Changed::Over => mcp::Changed::Over,
                Changed::NoRoom => mcp::Changed::NoRoom,
            })
        })
    }

    fn answer<'t>(&'t self, caller: &'t str, id: &'t str, answers: Vec<(String, String)>) -> Storing<'t, bool> {
        Box::pin(async move {
            let known = self.tasks.answer(caller, id, &answers).await.map_err(is_away)?;
            if known {
                self.tell(id).await;
            }
            Ok(known)
        })
    }

    fn pull<'t>(&'t self, id: &'t str) -> Storing<'t, Option<Vec<(String, String)>>> {
        Box::pin(async move { self.tasks.pull(id).await.map_err(is_away) })
    }

    fn cancel<'t>(&'t self, caller: &'t str, id: &'t str) -> Storing<'t, Option<(mcp::TaskStatus, mcp::StoredTask)>> {
        Box::pin(async move {
            let cancelled = self.tasks.cancel(caller, id, mcp::CANCELLED_MESSAGE).await.map_err(is_away)?;
            if cancelled.as_ref().is_some_and(|(before, _)| !before.is_over()) {
                self.tell(id).await;
            }
            Ok(cancelled.map(|(before, task)| (status(before), stored(task))))
        })
    }

    fn forget<'t>(&'t self, id: &'t str) -> Storing<'t, ()> {
        Box::pin(async move { self.tasks.forget(id).await.map_err(is_away) })
    }
}

/// The operator knows from the shared state itself.
fn is_away(_: Away) -> StoreAway {
    StoreAway
}

fn stored(task: TaskRecord) -> mcp::StoredTask {
    let TaskRecord { id, number, status: is, message, created_ms, changed_ms, ttl_ms, questions, body } = task;
    let status = status(is);
    mcp::StoredTask { id, number, status, message, created_ms, changed_ms, ttl_ms, questions, body }
}

const fn status(status: TaskStatus) -> mcp::TaskStatus {
    match status {
        TaskStatus::Working => mcp::TaskStatus::Working,
        TaskStatus::InputRequired => mcp::TaskStatus::InputRequired,
        TaskStatus::Completed => mcp::TaskStatus::Completed,
        TaskStatus::Failed => mcp::TaskStatus::Failed,
        TaskStatus::Cancelled => mcp::TaskStatus::Cancelled,
    }
}

fn bounds(policy: &TasksPolicy) -> TaskBounds {
    TaskBounds {
        caller_max: policy.caller_max(),
        all_max: policy.all_max(),
        caller_bytes_max: policy.caller_bytes(),
        all_bytes_max: policy.all_bytes(),
    }
}
