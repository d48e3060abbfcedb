//! Tasks, kept in memory and files, or on the server that replicas share.
use std::path::Path;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use tokio::runtime::Handle;
use toolcell_mcp::{Host, LOST_TASK, McpServer, TaskOptions};
use toolcell_policy::{Manifest, TasksPolicy};
use toolcell_shared::{
    Away, Bus, Changed, Creation, LocalTasks, NewTask, News, SharedTasks, Subscription, TaskBounds, TaskChange,
    TaskRecord, TaskStatus, Tasks,
};

use crate::error::StartError;
use crate::owned_task::OwnedTask;
use crate::replicas::bus::publish;
use crate::state::shared;

/// The channel on which replicas announce changed tasks.
const CHANNEL: &str = "tasks";

/// The folder of tasks, within that of state.
const FOLDER: &str = "tasks";

/// The tasks of a server. All replicas are notified of each change.
#[derive(Debug)]
pub struct KeptTasks {
    tasks: Arc<dyn Tasks>,
    bus: Arc<dyn Bus>,
    _hearing: OwnedTask,
}

impl KeptTasks {
    /// Keeps the tasks of this server. Relative paths start from `folder`.
    ///
    /// # Errors
    ///
    /// [`StartError`]: the shared state cannot be used.
    pub fn start<H: Host>(
        server: &Arc<McpServer<H>>,
        manifest: &Manifest,
        folder: &Path,
        bus: Arc<dyn Bus>,
        runtime: &Handle,
    ) -> Result<Arc<Self>, StartError> {
        let policy = manifest.tasks();
        let on_server = |options| SharedTasks::new(options, bounds(policy), LOST_TASK, runtime);
        let shared = shared::tasks(manifest.state(), folder, on_server)?;
        let tasks: Arc<dyn Tasks> = shared.unwrap_or_else(|| {
            let files = folder.join(manifest.server().state()).join(FOLDER);
            let bus = Arc::clone(&bus);
            let runtime = runtime.clone();
            let here = LocalTasks::new(bounds(policy), Some(&files), LOST_TASK);
            Arc::new(here.telling(move |id| {
                let bus = Arc::clone(&bus);
                let id = id.to_owned();
                // If it fails, waiting callers ask again.
                drop(runtime.spawn(async move { publish(&*bus, CHANNEL, id.as_bytes()).await }));
            }))
        });
        let _inside = runtime.enter();
        let heard = bus.subscribe(&[CHANNEL]);
        let hearing = OwnedTask(runtime.spawn(listen(Arc::downgrade(server), heard)));
        let kept = Arc::new(Self { tasks, bus, _hearing: hearing });
        let options = TaskOptions {
            ttl: policy.ttl(),
            ttl_max: policy.ttl_max(),
            poll: policy.poll(),
            result_bytes_max: policy.result_bytes(),
        };
        let store: Arc<dyn Tasks> = Arc::<Self>::clone(&kept);
        server.keep_tasks_in(store, options);
        Ok(kept)
    }

    /// Makes all replicas check a task again.
    async fn notify(&self, id: &str) {
        if let Err(error) = publish(&*self.bus, CHANNEL, id.as_bytes()).await {
            tracing::debug!("other replicas are not notified that a task has changed: {error}");
        }
    }
}

/// Receives announcements of changed tasks, forever.
async fn listen<H: Host>(server: Weak<McpServer<H>>, mut heard: Subscription) {
    loop {
        let news = heard.next().await;
        let Some(server) = server.upgrade() else { return };
        match news {
            // Some may have been lost.
            News::Listening => server.task_changed(None).await,
            News::Message(id) => {
                if let Ok(id) = std::str::from_utf8(&id) {
                    server.task_changed(Some(id)).await;
                }
            }
        }
    }
}

#[async_trait]
impl Tasks for KeptTasks {
    async fn create(&self, task: &NewTask<'_>) -> Result<Creation, Away> {
        self.tasks.create(task).await
    }

    async fn find(&self, caller: &str, id: &str) -> Result<Option<TaskRecord>, Away> {
        self.tasks.find(caller, id).await
    }

    async fn list(&self, caller: &str, after: u64, most: usize) -> Result<Vec<TaskRecord>, Away> {
        self.tasks.list(caller, after, most).await
    }

    async fn change(&self, id: &str, change: TaskChange<'_>) -> Result<Changed, Away> {
        let changed = self.tasks.change(id, change).await?;
        if changed == Changed::Done {
            self.notify(id).await;
        }
        Ok(changed)
    }

    async fn answer(&self, caller: &str, id: &str, answers: &[(String, String)]) -> Result<bool, Away> {
        let known = self.tasks.answer(caller, id, answers).await?;
        if known {
            self.notify(id).await;
        }
        Ok(known)
    }

    async fn pull(&self, id: &str) -> Result<Option<Vec<(String, String)>>, Away> {
        self.tasks.pull(id).await
    }

    async fn cancel(&self, caller: &str, id: &str, message: &str) -> Result<Option<(TaskStatus, TaskRecord)>, Away> {
        let cancelled = self.tasks.cancel(caller, id, message).await?;
        if cancelled.as_ref().is_some_and(|(before, _)| !before.is_over()) {
            self.notify(id).await;
        }
        Ok(cancelled)
    }

    async fn forget(&self, id: &str) -> Result<(), Away> {
        self.tasks.forget(id).await
    }

    /// This process ends, and all tasks that it runs with it.
    async fn leave(&self) -> Result<(), Away> {
        self.tasks.leave().await.inspect_err(|away| {
            tracing::debug!("the end of tasks is noticed a moment later: {}", away.internal());
        })
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
