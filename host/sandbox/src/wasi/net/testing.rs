//! A name server for tests: it answers from its script, and counts the questions.
#![allow(clippy::unwrap_used)]

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::{RData, Record, RecordType};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

/// The addresses of a name, given how often it was asked for; `None` if the name does not exist.
type Script = dyn Fn(&str, usize) -> Option<Vec<IpAddr>> + Send + Sync;

/// A name server on a port of its own, stopped on drop.
pub(crate) struct NameServer {
    pub(crate) address: SocketAddr,
    asked: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

impl NameServer {
    /// Answers by the script. Only questions for IPv4 addresses are counted.
    pub(crate) async fn start(script: impl Fn(&str, usize) -> Option<Vec<IpAddr>> + Send + Sync + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let mut task = JoinSet::new();
        task.spawn(serve(socket, Arc::new(script), Arc::clone(&asked)));
        Self { address, asked, _task: task }
    }

    /// A server that never answers.
    pub(crate) async fn silent() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut question = [0; 512];
            while socket.recv_from(&mut question).await.is_ok() {}
        });
        Self { address, asked: Arc::default(), _task: task }
    }

    /// Times that it was asked for IPv4 addresses.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

async fn serve(socket: UdpSocket, script: Arc<Script>, asked: Arc<AtomicUsize>) {
    let mut times = std::collections::HashMap::new();
    let mut buffer = [0; 512];
    while let Ok((bytes, from)) = socket.recv_from(&mut buffer).await {
        let question = Message::from_vec(buffer.get(..bytes).unwrap()).unwrap();
        let query = question.queries.first().unwrap().clone();
        let name = query.name().to_ascii().trim_end_matches('.').to_lowercase();
        let time: &mut usize = times.entry(name.clone()).or_default();
        let addresses = script(&name, *time);
        let is_v4 = query.query_type() == RecordType::A;
        if is_v4 {
            *time += 1;
            asked.fetch_add(1, Ordering::SeqCst);
        }
        let mut answer = Message::response(question.metadata.id, question.metadata.op_code);
        answer.metadata.response_code =
            if addresses.is_some() { ResponseCode::NoError } else { ResponseCode::NXDomain };
        answer.metadata.recursion_available = true;
        answer.add_query(query.clone());
        for address in addresses.into_iter().flatten().filter(|address| address.is_ipv4() == is_v4) {
            // No cache may keep it: the next question may have another answer.
            answer.add_answer(Record::from_rdata(query.name().clone(), 0, RData::from(address)));
        }
        socket.send_to(&answer.to_vec().unwrap(), from).await.unwrap();
    }
}
