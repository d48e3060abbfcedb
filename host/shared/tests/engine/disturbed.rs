//! A way to a server that tests can disturb: a network that is slow, cut or silent.
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

/// A change to bytes on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// They pass.
    Nothing,
    /// Those to the server are lost, and all others that its connections carry from then on.
    QuestionsAreLost,
    /// Those from the server are lost, and all others that its connections carry from then on.
    AnswersAreLost,
    /// The connection ends at the first of those from the server.
    AnswersCutIt,
    /// Those from the server take this much longer.
    AnswersTake(Duration),
}

/// A listening port that leads to a server.
pub struct DisturbedWay {
    port: u16,
    disturbance: Arc<Mutex<Disturbance>>,
}

impl DisturbedWay {
    /// To the server at this port.
    pub fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let disturbance = Arc::new(Mutex::new(Disturbance::Nothing));
        let shared = Arc::clone(&disturbance);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                for stream in [&client, &server] {
                    stream.set_nodelay(true).unwrap();
                }
                let from = client.try_clone().unwrap();
                let to = server.try_clone().unwrap();
                let disturbance = Arc::clone(&shared);
                std::thread::spawn(move || carry(from, to, &disturbance, true));
                let disturbance = Arc::clone(&shared);
                std::thread::spawn(move || carry(server, client, &disturbance, false));
            }
        });
        Self { port, disturbance }
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Makes this happen from now on.
    pub fn set(&self, disturbance: Disturbance) {
        *self.disturbance.lock().unwrap() = disturbance;
    }
}

/// Carries bytes one way until either end closes.
fn carry(mut from: TcpStream, to: TcpStream, disturbance: &Mutex<Disturbance>, are_questions: bool) {
    let ends = [from.try_clone().unwrap(), to.try_clone().unwrap()];
    let (late, is_due) = mpsc::channel();
    // What is on its way does not hold up what is sent after it.
    let writer = std::thread::spawn(move || deliver(to, &is_due));
    let mut bytes = [0; 16_384];
    let mut is_lost = false;
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let mut due = Instant::now();
        match *disturbance.lock().unwrap() {
            Disturbance::QuestionsAreLost => is_lost |= are_questions,
            Disturbance::AnswersAreLost => is_lost |= !are_questions,
            Disturbance::AnswersCutIt if !are_questions => break,
            Disturbance::AnswersTake(time) if !are_questions => due += time,
            _ => (),
        }
        let sent = bytes.get(..count).unwrap_or_default().to_vec();
        if !is_lost && late.send((due, sent)).is_err() {
            break;
        }
    }
    drop(late);
    for end in ends {
        let _ = end.shutdown(Shutdown::Both);
    }
    writer.join().unwrap();
}

/// Writes each of these when it is due.
fn deliver(mut to: TcpStream, is_due: &mpsc::Receiver<(Instant, Vec<u8>)>) {
    for (due, bytes) in is_due {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
}
