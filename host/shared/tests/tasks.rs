//! One suite over each place of tasks: memory, files, and a real server; alone, behind sentinels,
//! and as a cluster.
#![expect(clippy::unwrap_used, reason = "tests")]

mod engine;
mod replica;

use std::path::Path;
use std::time::{Duration, Instant};

use engine::{Cluster, Engine, Watched};
use replica::{MINUTE, behind, of, options, run};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::time::sleep;
use toolcell_shared::{
    Changed, Creation, LocalTasks, LostTask, NewTask, SharedTasks, TaskBounds, TaskChange, TaskStatus, Tasks,
    ValkeyOptions,
};

const BOUNDS: TaskBounds =
    TaskBounds { caller_max: 10, all_max: 15, caller_bytes_max: 100_000, all_bytes_max: 150_000 };

const LOST: LostTask = LostTask { body: "e{}", message: "lost" };

fn here(folder: Option<&Path>) -> LocalTasks {
    LocalTasks::new(BOUNDS, folder, LOST)
}

fn shared(options: &ValkeyOptions) -> SharedTasks {
    SharedTasks::new(options.clone(), BOUNDS, LOST, &Handle::current()).unwrap()
}

/// Two replicas of each place. In memory they are one; with files they are two processes, or one.
fn each(test: impl AsyncFn(&dyn Tasks, &dyn Tasks)) {
    each_together(&test);
    let folder = TempDir::new().unwrap();
    let files = || here(Some(&folder.path().join("tasks")));
    run(async { test(&files(), &files()).await });
}

/// [`each`] place where the bounds hold for both together.
fn each_together(test: &impl AsyncFn(&dyn Tasks, &dyn Tasks)) {
    let memory = here(None);
    let folder = TempDir::new().unwrap();
    let files = here(Some(&folder.path().join("tasks")));
    run(test(&memory, &memory));
    run(test(&files, &files));
    let alone = Engine::start(&[]);
    let watched = Watched::start(&[]);
    let cluster = Cluster::start(&[]);
    for options in [options(alone.port()), behind(&watched), of(&cluster)] {
        let options = ValkeyOptions { within: Duration::from_secs(5), ..options };
        run(async { test(&shared(&options), &shared(&options)).await });
    }
}

fn id(number: usize) -> String {
    format!("{number:032x}")
}

async fn create(tasks: &dyn Tasks, caller: &str, number: usize, ttl: Duration, bytes: usize) -> Creation {
    tasks.create(&NewTask { id: &id(number), caller, ttl, bytes }).await.unwrap()
}

async fn end(tasks: &dyn Tasks, number: usize, body: &str) -> Changed {
    let ends = TaskChange::Ends { status: TaskStatus::Completed, body, message: "" };
    tasks.change(&id(number), ends).await.unwrap()
}

async fn status(tasks: &dyn Tasks, caller: &str, number: usize) -> Option<TaskStatus> {
    tasks.find(caller, &id(number)).await.unwrap().map(|task| task.status)
}

#[test]
fn any_replica_finds_a_task_and_nobody_but_its_caller() {
    each(async |one, other| {
        assert_eq!(create(one, "ann", 1, MINUTE, 10).await, Creation::Created);
        let task = other.find("ann", &id(1)).await.unwrap().unwrap();
        assert_eq!(
            (task.status, task.ttl_ms, &*task.body, task.message.as_str()),
            (TaskStatus::Working, 60_000, "", "")
        );
        assert_eq!(status(other, "bob", 1).await, None);
        assert_eq!(status(other, "ann", 2).await, None);
        assert_eq!(one.change(&id(1), TaskChange::Says("half é")).await, Ok(Changed::Done));
        assert_eq!(other.find("ann", &id(1)).await.unwrap().unwrap().message, "half é");
        assert_eq!(end(one, 1, "r{\"é\":1}").await, Changed::Done);
        let task = other.find("ann", &id(1)).await.unwrap().unwrap();
        assert_eq!((task.status, &*task.body), (TaskStatus::Completed, "r{\"é\":1}"));
        assert_eq!(one.change(&id(1), TaskChange::Says("more")).await, Ok(Changed::Over));
        assert_eq!(one.pull(&id(1)).await, Ok(None));
        assert_eq!(one.pull(&id(2)).await, Ok(None));
        one.forget(&id(1)).await.unwrap();
        assert_eq!(status(other, "ann", 1).await, None);
        one.forget(&id(1)).await.unwrap();
    });
}

#[test]
fn questions_are_answered_one_by_one_and_those_of_nobody_are_ignored() {
    each(async |one, other| {
        create(one, "ann", 1, MINUTE, 10).await;
        let pair = |key: &str, text: &str| (key.to_owned(), text.to_owned());
        let questions = [pair("a", "{1}"), pair("b", "{2}")];
        assert_eq!(one.change(&id(1), TaskChange::Asks(&questions)).await, Ok(Changed::Done));
        let mut task = other.find("ann", &id(1)).await.unwrap().unwrap();
        task.questions.sort();
        assert_eq!((task.status, task.questions.as_slice()), (TaskStatus::InputRequired, &questions[..]));
        assert_eq!(other.answer("bob", &id(1), &[pair("a", "his")]).await, Ok(false));
        assert_eq!(other.answer("ann", &id(1), &[pair("a", "ja"), pair("c", "nobody asked")]).await, Ok(true));
        let task = other.find("ann", &id(1)).await.unwrap().unwrap();
        assert_eq!((task.status, task.questions.len()), (TaskStatus::InputRequired, 1));
        assert_eq!(other.answer("ann", &id(1), &[pair("a", "twice"), pair("b", "nein")]).await, Ok(true));
        assert_eq!(status(other, "ann", 1).await, Some(TaskStatus::Working));
        let mut answers = one.pull(&id(1)).await.unwrap().unwrap();
        answers.sort();
        assert_eq!(answers, [pair("a", "ja"), pair("b", "nein")]);
        assert_eq!(one.pull(&id(1)).await, Ok(Some(Vec::new())));
        one.change(&id(1), TaskChange::Asks(&questions)).await.unwrap();
        one.change(&id(1), TaskChange::Asks(&[])).await.unwrap();
        assert_eq!(status(other, "ann", 1).await, Some(TaskStatus::Working), "they were taken back");
        assert_eq!(other.answer("ann", &id(1), &[pair("a", "late")]).await, Ok(true));
        assert_eq!(one.pull(&id(1)).await, Ok(Some(Vec::new())));
    });
}

#[test]
fn a_cancellation_is_heard_while_others_ask_without_a_pause() {
    each(async |one, other| {
        create(one, "ann", 1, MINUTE, 10).await;
        let of_one = id(1);
        let busy = async {
            loop {
                assert_eq!(status(one, "ann", 99).await, None);
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = busy => {}
            cancelled = other.cancel("ann", &of_one, "") => assert!(cancelled.unwrap().is_some()),
        }
        assert_eq!(status(one, "ann", 1).await, Some(TaskStatus::Cancelled));
    });
}

#[test]
fn a_cancelled_task_stays_cancelled() {
    each(async |one, other| {
        create(one, "ann", 1, MINUTE, 10).await;
        assert!(other.cancel("bob", &id(1), "his").await.unwrap().is_none());
        let (before, task) = other.cancel("ann", &id(1), "hers").await.unwrap().unwrap();
        assert_eq!((before, task.status, task.message.as_str()), (TaskStatus::Working, TaskStatus::Cancelled, "hers"));
        assert_eq!(one.pull(&id(1)).await, Ok(None), "who runs it knows");
        assert_eq!(end(one, 1, "r{}").await, Changed::Over);
        let (before, task) = one.cancel("ann", &id(1), "again").await.unwrap().unwrap();
        assert_eq!(
            (before, task.status, task.message.as_str()),
            (TaskStatus::Cancelled, TaskStatus::Cancelled, "hers")
        );
    });
}

#[test]
fn tasks_are_listed_in_their_order_page_by_page() {
    each(async |one, other| {
        for number in [5, 3, 9, 7] {
            create(one, "ann", number, MINUTE, 1).await;
        }
        create(other, "bob", 1, MINUTE, 1).await;
        end(one, 9, "r{}").await;
        let first = other.list("ann", 0, 3).await.unwrap();
        let ids: Vec<&str> = first.iter().map(|task| task.id.as_str()).collect();
        assert_eq!(ids, [id(5), id(3), id(9)]);
        assert_eq!((first[2].status, &*first[2].body), (TaskStatus::Completed, ""));
        let rest = one.list("ann", first[2].number, 3).await.unwrap();
        assert_eq!(rest.iter().map(|task| task.id.clone()).collect::<Vec<_>>(), [id(7)]);
        assert_eq!(other.list("cid", 0, 3).await, Ok(Vec::new()));
    });
}

#[test]
fn a_caller_and_all_are_bounded_and_what_ends_makes_room() {
    each_together(&async |one: &dyn Tasks, other: &dyn Tasks| {
        for number in 0..BOUNDS.caller_max {
            let ttl = if number == 0 { Duration::from_millis(300) } else { MINUTE };
            assert_eq!(create(one, "ann", number, ttl, 1_000).await, Creation::Created, "{number}");
        }
        let full = create(other, "ann", 90, MINUTE, 1).await;
        if full == Creation::Created {
            // On a busy machine the first one is over by now.
            other.forget(&id(90)).await.unwrap();
        } else {
            assert_eq!(full, Creation::CallerFull);
        }
        until("the first is over", async || status(one, "ann", 0).await.is_none()).await;
        assert_eq!(create(one, "ann", 91, MINUTE, 1).await, Creation::Created);
        assert_eq!(create(one, "bob", 92, MINUTE, 100_001).await, Creation::CallerFull, "his bytes");
        for number in 100..105 {
            assert_eq!(create(other, "bob", number, MINUTE, 1).await, Creation::Created);
        }
        assert_eq!(create(other, "bob", 106, MINUTE, 1).await, Creation::Full);
        // Arguments make room for results.
        assert_eq!(end(one, 1, &format!("r{}", "x".repeat(91_000))).await, Changed::Done);
        assert_eq!(end(one, 2, &format!("r{}", "x".repeat(5_000))).await, Changed::NoRoom);
        assert_eq!(status(other, "ann", 2).await, Some(TaskStatus::Working));
        assert_eq!(end(one, 2, &format!("r{}", "x".repeat(500))).await, Changed::Done, "a short one always fits");
        one.cancel("ann", &id(3), "").await.unwrap();
        one.forget(&id(1)).await.unwrap();
        assert_eq!(end(one, 4, &format!("r{}", "x".repeat(5_000))).await, Changed::Done);
    });
}

/// Asks until this holds.
async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds().await {
        assert!(Instant::now() < end, "not in time: {what}");
        sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn tasks_of_a_process_that_ends_have_failed_and_its_results_stay() {
    let engine = Engine::start(&[]);
    let options = ValkeyOptions { within: Duration::from_secs(5), ..options(engine.port()) };
    run(async {
        let one = shared(&options);
        let other = shared(&options);
        create(&one, "ann", 1, MINUTE, 1).await;
        create(&one, "ann", 2, MINUTE, 1).await;
        create(&other, "ann", 3, MINUTE, 1).await;
        end(&one, 1, "r{}").await;
        one.leave().await.unwrap();
        let lost = other.find("ann", &id(2)).await.unwrap().unwrap();
        assert_eq!((lost.status, &*lost.body, lost.message.as_str()), (TaskStatus::Failed, "e{}", "lost"));
        assert_eq!(status(&other, "ann", 1).await, Some(TaskStatus::Completed));
        assert_eq!(status(&other, "ann", 3).await, Some(TaskStatus::Working));
        // One that says nothing any more is lost a moment later.
        let silent = shared(&options);
        create(&silent, "ann", 4, MINUTE, 1).await;
        assert_eq!(status(&other, "ann", 4).await, Some(TaskStatus::Working));
        drop(silent);
        until("it is lost", async || status(&other, "ann", 4).await == Some(TaskStatus::Failed)).await;
    });
}

/// The keys of processes, which say that they run.
fn processes(engine: &Engine) -> Vec<String> {
    let found = engine.whole_answer(&["KEYS", "test:1:task:{all}:process:*"]);
    found.lines().filter(|line| line.starts_with("test:")).map(str::to_owned).collect()
}

#[test]
fn a_server_that_was_away_for_long_ends_no_task_of_a_process_that_runs() {
    let engine = Engine::start(&[]);
    let options = ValkeyOptions { within: Duration::from_secs(5), ..options(engine.port()) };
    run(async {
        let one = shared(&options);
        let other = shared(&options);
        create(&one, "ann", 1, MINUTE, 1).await;
        let process = processes(&engine).pop().unwrap();
        // As it is after an outage, or a leap of the clock: the time of the process is over, and
        // none was heard for as long.
        for ago_ms in ["25000", "3600000"] {
            let passed = "redis.call('DEL', KEYS[1], KEYS[2]) local t = redis.call('TIME') \
                          return redis.call('SET', KEYS[3], string.format('%.0f', t[1] * 1000 - ARGV[1]))";
            let beginning = "test:1:task:{all}:";
            let [grace, heard] = ["grace", "heard"].map(|name| format!("{beginning}{name}"));
            assert_eq!(engine.ask(&["EVAL", passed, "3", &process, &grace, &heard, ago_ms]), "+OK");
            assert_eq!(status(&other, "ann", 1).await, Some(TaskStatus::Working), "{ago_ms}");
            until("its process says that it runs", async || processes(&engine).contains(&process)).await;
            assert_eq!(status(&other, "ann", 1).await, Some(TaskStatus::Working), "{ago_ms}");
        }
        // One that is not heard while another is has ended.
        create(&other, "ann", 2, MINUTE, 1).await;
        drop(one);
        assert_eq!(engine.ask(&["DEL", &process, "test:1:task:{all}:grace"]), ":2");
        assert_eq!(status(&other, "ann", 1).await, Some(TaskStatus::Failed));
        assert_eq!(status(&other, "ann", 2).await, Some(TaskStatus::Working));
    });
}

#[test]
fn a_silence_is_forgiven_once_and_who_asks_again_learns_that_nobody_is_left() {
    let engine = Engine::start(&[]);
    let options = ValkeyOptions { within: Duration::from_secs(5), ..options(engine.port()) };
    run(async {
        let one = shared(&options);
        let other = shared(&options);
        create(&one, "ann", 1, MINUTE, 1).await;
        drop(one);
        let process = processes(&engine).pop().unwrap();
        let passed = "redis.call('DEL', KEYS[1]) local t = redis.call('TIME') \
                      return redis.call('SET', KEYS[2], string.format('%.0f', t[1] * 1000 - 25000))";
        assert_eq!(engine.ask(&["EVAL", passed, "2", &process, "test:1:task:{all}:heard"]), "+OK");
        assert_eq!(status(&other, "ann", 1).await, Some(TaskStatus::Working), "it may say so still");
        until("it is lost", async || status(&other, "ann", 1).await == Some(TaskStatus::Failed)).await;
    });
}

#[test]
fn a_later_process_takes_over_the_files_of_one_that_ended_and_of_none_that_runs() {
    let folder = TempDir::new().unwrap();
    let files = folder.path().join("tasks");
    run(async {
        let first = here(Some(&files));
        for number in 1..=4 {
            create(&first, "ann", number, MINUTE, 1).await;
        }
        create(&first, "ann", 5, Duration::from_millis(1), 1).await;
        end(&first, 1, "r{\"a\":\"é\\n\"}").await;
        first.cancel("ann", &id(2), "hers").await.unwrap();
        first.forget(&id(4)).await.unwrap();
        let beside = here(Some(&files));
        assert_eq!(status(&beside, "ann", 3).await, Some(TaskStatus::Working), "the first one runs");
        create(&beside, "ann", 6, MINUTE, 1).await;
        drop(first);
        let mut later = here(Some(&files));
        let end = Instant::now() + Duration::from_secs(60);
        // The lock goes with the thread that held it.
        while status(&later, "ann", 3).await != Some(TaskStatus::Failed) {
            assert!(Instant::now() < end, "the files are not taken over");
            sleep(Duration::from_millis(20)).await;
            later = here(Some(&files));
        }
        let done = later.find("ann", &id(1)).await.unwrap().unwrap();
        assert_eq!((done.status, &*done.body), (TaskStatus::Completed, "r{\"a\":\"é\\n\"}"));
        let lost = later.find("ann", &id(3)).await.unwrap().unwrap();
        assert_eq!((lost.status, &*lost.body), (TaskStatus::Failed, "e{}"));
        let cancelled = later.find("ann", &id(2)).await.unwrap().unwrap();
        assert_eq!((cancelled.status, cancelled.message.as_str()), (TaskStatus::Cancelled, "hers"));
        assert_eq!(status(&later, "ann", 5).await, None);
        assert_eq!(status(&later, "ann", 6).await, Some(TaskStatus::Working), "its process runs");
        assert_eq!(status(&later, "bob", 1).await, None);
    });
}

#[test]
fn a_folder_in_the_place_of_a_task_loses_no_other_task() {
    let folder = TempDir::new().unwrap();
    let files = folder.path().join("tasks");
    run(async {
        let first = here(Some(&files));
        for number in 1..=3 {
            create(&first, "ann", number, MINUTE, 1).await;
        }
        let own = std::fs::read_dir(&files).unwrap().next().unwrap().unwrap().path();
        for name in [id(2), id(9), format!("{}.letter-1", id(3))] {
            let _ = std::fs::remove_file(own.join(&name));
            std::fs::create_dir(own.join(&name)).unwrap();
        }
        drop(first);
        // The lock goes with the thread that held it.
        let end = Instant::now() + Duration::from_secs(60);
        let mut later = here(Some(&files));
        while status(&later, "ann", 3).await != Some(TaskStatus::Failed) {
            assert!(Instant::now() < end, "the files are not taken over");
            sleep(Duration::from_millis(20)).await;
            later = here(Some(&files));
        }
        assert_eq!(status(&later, "ann", 1).await, Some(TaskStatus::Failed));
        assert_eq!(status(&later, "ann", 2).await, None);
    });
}

#[test]
fn who_waits_for_a_task_of_another_process_hears_of_its_end_and_of_that_of_its_process() {
    let folder = TempDir::new().unwrap();
    let files = folder.path().join("tasks");
    run(async {
        let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let waiting = here(Some(&files)).telling(move |id| drop(told.send(id.to_owned())));
        let first = here(Some(&files));
        for number in [1, 2] {
            create(&first, "ann", number, MINUTE, 1).await;
            assert_eq!(status(&waiting, "ann", number).await, Some(TaskStatus::Working));
        }
        end(&first, 1, "r{}").await;
        assert_eq!(heard.recv().await, Some(id(1)));
        assert_eq!(status(&waiting, "ann", 1).await, Some(TaskStatus::Completed));
        drop(first);
        assert_eq!(heard.recv().await, Some(id(2)));
        until("it is lost", async || status(&waiting, "ann", 2).await == Some(TaskStatus::Failed)).await;
    });
}

#[test]
fn ten_processes_find_and_list_the_tasks_of_all() {
    let folder = TempDir::new().unwrap();
    let files = folder.path().join("tasks");
    run(async {
        let processes: Vec<LocalTasks> = (0..10).map(|_| here(Some(&files))).collect();
        for (number, process) in processes.iter().enumerate() {
            create(process, "ann", number, MINUTE, 1).await;
            create(process, "bob", 100 + number, MINUTE, 1).await;
            end(process, number, &format!("r{number}")).await;
        }
        for process in &processes {
            let mut listed = Vec::new();
            let mut after = 0;
            // Page by page.
            loop {
                let page = process.list("ann", after, 3).await.unwrap();
                let Some(last) = page.last() else { break };
                after = last.number;
                listed.extend(page.into_iter().map(|task| task.id));
            }
            // Those that began within one millisecond have any order.
            listed.sort();
            assert_eq!(listed, (0..10).map(id).collect::<Vec<_>>());
            for number in 0..10 {
                let task = process.find("ann", &id(number)).await.unwrap().unwrap();
                assert_eq!((task.status, &*task.body), (TaskStatus::Completed, format!("r{number}").as_str()));
            }
        }
        // One that is killed: the others have what it had.
        let mut processes = processes;
        drop(processes.remove(3));
        until("another has it", async || {
            let running = processes[0].find("bob", &id(103)).await.unwrap().map(|task| task.status);
            running == Some(TaskStatus::Failed)
        })
        .await;
        assert_eq!(
            processes[0].find("ann", &id(3)).await.unwrap().map(|task| task.status),
            Some(TaskStatus::Completed)
        );
        assert_eq!(
            processes[7].find("ann", &id(3)).await.unwrap().map(|task| task.status),
            Some(TaskStatus::Completed)
        );
    });
}
