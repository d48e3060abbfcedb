//! Threads that work runs on: the one that gives it, the one that drives connections, or a worker.
//!
//! Promise: state and files hold nobody up.
//! Promise: costly requests leave others theirs.
use std::sync::mpsc;
use std::thread::ThreadId;

use super::*;

/// Workers that all wait for work: one that still starts would take what another thread leaves.
fn workers(threads: usize) -> (tokio::runtime::Runtime, Workers) {
    let io = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let workers = Workers::start(threads, io.handle().clone()).unwrap();
    while workers.shared.queue.lock().idle.len() < threads {
        std::thread::yield_now();
    }
    (io, workers)
}

#[test]
fn work_that_waits_and_yields_ends_on_a_worker() {
    let (_io, workers) = workers(2);
    let (done, ended) = mpsc::channel();
    for number in 0..100_u64 {
        let done = done.clone();
        workers.executor().run(Box::pin(async move {
            tokio::time::sleep(Duration::from_micros(number)).await;
            tokio::task::yield_now().await;
            done.send(number).unwrap();
        }));
    }
    let mut numbers: Vec<u64> = ended.iter().take(100).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..100).collect::<Vec<_>>());
}

#[test]
fn short_work_that_comes_alone_runs_where_it_was_handed_over() {
    let (_io, workers) = workers(1);
    let (done, ended) = mpsc::channel();
    let here = std::thread::current().id();
    workers.executor().run_here(Box::pin(async move { done.send(std::thread::current().id()).unwrap() }));
    assert_eq!(ended.try_recv().unwrap(), here);
}

#[test]
fn work_that_waits_leaves_the_thread_it_began_on() {
    let (_io, workers) = workers(1);
    let (done, ended) = mpsc::channel();
    let here = std::thread::current().id();
    workers.executor().run_here(Box::pin(async move {
        tokio::time::sleep(Duration::from_millis(1)).await;
        done.send(std::thread::current().id()).unwrap();
    }));
    assert_ne!(ended.recv().unwrap(), here);
}

#[test]
fn work_that_may_take_long_leaves_threads_with_other_duties_for_good() {
    let (io, workers) = workers(1);
    let (done, ended) = mpsc::channel();
    let work = move || -> Work {
        let done = done.clone();
        Box::pin(async move {
            let id = || std::thread::current().id();
            let began = id();
            toolcell_sandbox::leave().await;
            let mut ran = vec![id()];
            for _ in 0..5 {
                tokio::time::sleep(Duration::from_millis(1)).await;
                ran.push(id());
            }
            done.send((began, ran)).unwrap();
        })
    };
    let here = std::thread::current().id();
    workers.executor().run_here(work());
    let (began, ran) = ended.recv().unwrap();
    assert_eq!(began, here);
    let executor = workers.executor();
    let driven = work();
    let driver = io.block_on(io.spawn(async move {
        executor.run_driving(driven);
        std::thread::current().id()
    }));
    let driver = driver.unwrap();
    let (began, too) = ended.recv().unwrap();
    assert_eq!(began, driver);
    for thread in ran.iter().chain(&too) {
        assert!(*thread == ran[0] && *thread != here && *thread != driver, "a worker does all of the rest");
    }
}

#[test]
fn after_work_that_was_not_short_the_next_goes_to_a_worker() {
    let (_io, workers) = workers(1);
    let (done, ended) = mpsc::channel();
    let here = std::thread::current().id();
    for _ in 0..2 {
        let done = done.clone();
        workers.executor().run_here(Box::pin(async move {
            let began = Instant::now();
            while began.elapsed() < 2 * SHORT {}
            done.send(std::thread::current().id()).unwrap();
        }));
    }
    let ran: Vec<bool> = ended.iter().take(2).map(|thread| thread == here).collect();
    assert_eq!(ran, [true, false]);
}

#[test]
fn work_that_waited_and_is_alone_goes_on_where_it_was_woken_until_one_takes_long() {
    let (io, workers) = workers(1);
    let driver = io.block_on(io.spawn(async { std::thread::current().id() })).unwrap();
    let (done, ended) = mpsc::channel();
    let goes_on_there = |computes: Duration| {
        let done = done.clone();
        workers.executor().run(Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let began = Instant::now();
            while began.elapsed() < computes {}
            done.send(std::thread::current().id()).unwrap();
        }));
        ended.recv().unwrap() == driver
    };
    // On a busy machine a short call may take long.
    assert!((0..500).any(|_| goes_on_there(Duration::ZERO)));
    assert!((0..500).any(|_| goes_on_there(2 * SHORT) && !goes_on_there(Duration::ZERO)));
}

#[test]
fn work_that_comes_alone_to_the_thread_that_drives_is_done_there() {
    let (io, workers) = workers(1);
    let (told, events) = mpsc::channel();
    let executor = workers.executor();
    let driver = io.block_on(io.spawn(async move {
        let ends = told.clone();
        executor.run_driving(Box::pin(async move {
            ends.send(("ends", std::thread::current().id())).unwrap();
        }));
        told.send(("goes on", std::thread::current().id())).unwrap();
        std::thread::current().id()
    }));
    let done: Vec<_> = events.iter().take(2).collect();
    let driver = driver.unwrap();
    assert_eq!(done, ["ends", "goes on"].map(|what| (what, driver)));
    let (done, ended) = mpsc::channel();
    let elsewhere = Box::pin(async move { done.send(std::thread::current().id()).unwrap() });
    workers.executor().run_driving(elsewhere);
    let ran = ended.recv().unwrap();
    assert!(ran != driver && ran != std::thread::current().id(), "nobody but a worker runs what comes elsewhere");
}

/// A thread that waits for input as the reader does, until something was written to it.
fn wait(executor: &GuestExecutor, input: &std::io::PipeReader) {
    use std::os::fd::AsFd as _;
    let flags = executor.wait(&[input.as_fd()], &mut || ()).unwrap();
    assert_eq!(flags, [PollFlags::IN]);
}

#[test]
fn work_that_waits_for_another_process_goes_on_where_it_is_woken_until_the_thread_leaves() {
    use std::io::{Read as _, Write as _};
    let (_io, workers) = workers(1);
    let executor = workers.executor();
    let (mut input, mut writes) = std::io::pipe().unwrap();
    let mut waits = || {
        writes.write_all(&[1]).unwrap();
        wait(&executor, &input);
        input.read_exact(&mut [0]).unwrap();
    };
    // From here on this thread counts as waiting.
    waits();
    let here = std::thread::current().id();
    let (done, ended) = mpsc::channel();
    let begin = || {
        let (wakes, woken) = tokio::sync::oneshot::channel::<()>();
        let done = done.clone();
        executor.run_waiting(Box::pin(async move {
            let began = std::thread::current().id();
            woken.await.unwrap();
            done.send((began, std::thread::current().id())).unwrap();
        }));
        wakes
    };
    begin().send(()).unwrap();
    assert!(ended.try_recv().is_err(), "not within what woke it");
    waits();
    assert_eq!(ended.try_recv(), Ok((here, here)));
    let wakes = begin();
    begin().send(()).unwrap();
    executor.leave();
    let (began, went_on) = ended.recv().unwrap();
    assert!(began == here && went_on != here, "what was woken before goes on elsewhere");
    wakes.send(()).unwrap();
    let (began, went_on) = ended.recv().unwrap();
    assert!(began == here && went_on != here, "and what is woken afterwards");
}

#[test]
fn other_work_that_a_waiting_thread_wakes_is_not_run_there() {
    use std::io::Write as _;
    let (_io, workers) = workers(1);
    let executor = workers.executor();
    let (input, mut writes) = std::io::pipe().unwrap();
    writes.write_all(&[1]).unwrap();
    wait(&executor, &input);
    let (wakes, woken) = tokio::sync::oneshot::channel::<()>();
    let (done, ended) = mpsc::channel();
    executor.run(Box::pin(async move {
        woken.await.unwrap();
        done.send(std::thread::current().id()).unwrap();
    }));
    wakes.send(()).unwrap();
    assert_ne!(ended.recv().unwrap(), std::thread::current().id());
    executor.leave();
}

#[test]
fn dropping_the_workers_ends_what_waits() {
    let (_io, workers) = workers(1);
    let (told, ended) = mpsc::channel::<()>();
    workers.executor().run(Box::pin(async move {
        let _told = told;
        tokio::task::yield_now().await;
    }));
    drop(workers);
    assert!(ended.recv().is_err(), "its end went with the work");
}

#[test]
fn long_work_keeps_no_short_work_waiting() {
    let (_io, workers) = workers(1);
    let (began, long_began) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    workers.executor().run(Box::pin(async move {
        toolcell_mcp::leave_thread().await;
        began.send(std::thread::current().id()).unwrap();
        released.recv().unwrap();
    }));
    let long = long_began.recv().unwrap();
    let (done, ended) = mpsc::channel();
    for _ in 0..10 {
        let done = done.clone();
        workers.executor().run(Box::pin(async move { done.send(std::thread::current().id()).unwrap() }));
    }
    let threads: Vec<ThreadId> = ended.iter().take(10).collect();
    assert!(threads.iter().all(|thread| *thread != long), "the one worker for short work is free");
    release.send(()).unwrap();
}

#[test]
fn work_that_waits_for_another_process_begins_where_connections_are_driven_until_one_takes_long() {
    let (io, workers) = workers(1);
    let began_there = |computes: Duration| {
        let executor = workers.executor();
        let driven = io.spawn(async move {
            let (done, ended) = mpsc::channel();
            executor.run_waiting(Box::pin(async move {
                let began = Instant::now();
                while began.elapsed() < computes {}
                done.send(std::thread::current().id()).unwrap();
            }));
            (std::thread::current().id(), ended)
        });
        let (driver, ended) = io.block_on(driven).unwrap();
        ended.recv().unwrap() == driver
    };
    // On a busy machine a short call may take long.
    assert!((0..500).any(|_| began_there(2 * SHORT) && began_there(Duration::ZERO)));
    assert!((0..500).any(|_| began_there(SHORT_OF_WAITING + SHORT) && !began_there(Duration::ZERO)));
}
