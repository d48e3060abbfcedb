//! A value that takes time and that many wait for: one thread gets it, and all get what it got.
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use toolcell_sandbox::{NoValue, SecretValue};

/// The result that requests wait for.
type Landing = watch::Receiver<Option<Result<SecretValue, NoValue>>>;

/// The thread that gets a value.
pub struct FlightThread {
    /// Its name.
    pub name: &'static str,
    /// Its stack, in bytes.
    pub stack_bytes: usize,
}

/// The flight that is under way, if any.
#[derive(Clone, Default)]
pub struct Flight(Arc<Mutex<Option<Landing>>>);

impl Flight {
    /// The value that is under way, or else the one that `get` gives on a thread of its own. The
    /// thread goes on when nobody waits any more.
    pub async fn value(
        &self,
        thread: FlightThread,
        get: impl FnOnce() -> Result<SecretValue, NoValue> + Send + 'static,
    ) -> Result<SecretValue, NoValue> {
        let mut landing = self.landing(thread, get);
        // An error: the thread ended without a word.
        let landed = landing.wait_for(Option::is_some).await.map_err(|_| NoValue)?;
        landed.clone().unwrap_or(Err(NoValue))
    }

    fn landing(
        &self,
        thread: FlightThread,
        get: impl FnOnce() -> Result<SecretValue, NoValue> + Send + 'static,
    ) -> Landing {
        let mut running = self.0.lock();
        // One whose sender is gone has ended without a word.
        if let Some(running) = running.as_ref().filter(|running| running.has_changed().is_ok()) {
            return running.clone();
        }
        let (sender, receiver) = watch::channel(None);
        let this = self.clone();
        let builder = std::thread::Builder::new().name(thread.name.to_owned()).stack_size(thread.stack_bytes);
        let spawned = builder.spawn(move || {
            let value = get();
            *this.0.lock() = None;
            sender.send_replace(Some(value));
        });
        if let Err(error) = spawned {
            tracing::error!("cannot start the thread {}: {error}", thread.name);
        }
        *running = Some(receiver.clone());
        receiver
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;

    use zeroize::Zeroizing;

    use super::*;

    const THREAD: FlightThread = FlightThread { name: "test", stack_bytes: 64 << 10 };

    #[tokio::test]
    async fn all_who_wait_get_one_value_and_the_next_gets_another() {
        let flight = Flight::default();
        let count = Arc::new(AtomicUsize::new(0));
        for round in 1..=2 {
            let (go, gone) = channel::<()>();
            let gone = Arc::new(Mutex::new(gone));
            let waiting: Vec<_> = (0..9)
                .map(|_| {
                    let count = Arc::clone(&count);
                    let gone = Arc::clone(&gone);
                    flight.landing(THREAD, move || {
                        let _ = gone.lock().recv();
                        let value = format!("value {}", count.fetch_add(1, Ordering::Relaxed) + 1);
                        SecretValue::new(Zeroizing::new(value)).map_err(|_| NoValue)
                    })
                })
                .collect();
            go.send(()).unwrap();
            for mut landing in waiting {
                let value = landing.wait_for(Option::is_some).await.unwrap().clone().unwrap().unwrap();
                assert_eq!(value.reveal(), format!("value {round}"));
            }
        }
    }

    #[tokio::test]
    async fn a_thread_that_panics_gives_nothing_and_the_next_one_does() {
        let flight = Flight::default();
        assert!(flight.value(THREAD, || panic!("a bug")).await.is_err());
        let value = flight.value(THREAD, || SecretValue::new(Zeroizing::new("v".to_owned())).map_err(|_| NoValue));
        assert_eq!(value.await.unwrap().reveal(), "v");
    }
}
