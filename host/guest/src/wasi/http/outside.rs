//! The sandbox's side of a request. Only the host decides on it. Limits are checked here, too, so
//! that a guest beyond one does not reach the host.
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame as BodyFrame};
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolcell_wall::doors::http::{BodyEnd, HeaderFields, HttpSaid, RequestHead, RequestWaits, ResponseHead};
use toolcell_wall::doors::{Opening, decode};
use toolcell_walls::door::{Door, DoorError, DoorFrame, FrameReader, FrameWriter, HOST_BYTES_MAX};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use super::{fault, held};
use crate::wasi::net::OutsideNet;
use toolcell_wall::caller::Outside;

/// The task that runs along with a response until its body is dropped.
pub(crate) type Worker = Box<dyn Future<Output = Result<(), Error>> + Send>;

/// A request under way.
pub(super) type Sending = Box<dyn Future<Output = Result<(Response<WasiBody>, Worker), Error>> + Send>;

/// The requests of one call, made through its way out.
pub(crate) struct OutsideRequests {
    outside: Arc<dyn Outside>,
    net: Arc<OutsideNet>,
    /// As many permits as the host gives the call doors for requests.
    places: Arc<Semaphore>,
}

/// The parts of a request that is on its way.
struct Leaving {
    outside: Arc<dyn Outside>,
    net: Arc<OutsideNet>,
    places: Arc<Semaphore>,
    wait: Duration,
}

impl OutsideRequests {
    pub(crate) fn new(outside: Arc<dyn Outside>, net: Arc<OutsideNet>) -> Self {
        let places = Arc::new(Semaphore::new(net.limits().http_doors_max()));
        Self { outside, net, places }
    }

    /// Sends the request to the host.
    pub(crate) fn send(&self, request: Request<WasiBody>, options: Option<RequestOptions>) -> Sending {
        if !self.net.request() {
            return Box::new(std::future::ready(Err(Error::ConnectionLimitReached)));
        }
        let longest = self.net.limits().connect;
        let wait = options.and_then(|options| options.connect_timeout).map_or(longest, |wait| wait.min(longest));
        let Self { outside, net, places } = self;
        let outside = Arc::clone(outside);
        let net = Arc::clone(net);
        let places = Arc::clone(places);
        Box::new(Leaving { outside, net, places, wait }.run(request, options))
    }
}

impl Leaving {
    async fn run(
        self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
    ) -> Result<(Response<WasiBody>, Worker), Error> {
        let ended = Arc::clone(&self.net);
        tokio::select! {
            biased;
            () = ended.ended() => Err(Error::ConnectionTerminated),
            answer = self.answer(request, options) => answer,
        }
    }

    async fn answer(
        self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
    ) -> Result<(Response<WasiBody>, Worker), Error> {
        let place = tokio::time::timeout(self.wait, self.places.acquire_owned()).await;
        let place = place.map_err(|_| Error::ConnectionLimitReached)?.map_err(|_| Error::ConnectionTerminated)?;
        let request = held::hold(request).await;
        let door = self.outside.open().await.and_then(Door::of).map_err(|_| Error::ConnectionTerminated)?;
        let (mut reader, mut writer) = door.split();
        let body_bytes = if request.body().is_end_stream() { Some(0) } else { request.body().size_hint().exact() };
        let head = RequestHead::new(&request, waits(options), body_bytes);
        writer.message(&Opening::Http(Box::new(head))).await.map_err(|_| Error::ConnectionTerminated)?;
        let mut sending = Box::pin(send(writer, request.into_body(), body_bytes));
        let mut is_sent = false;
        let answer = {
            let mut answer = pin!(reader.message::<HttpSaid>(HOST_BYTES_MAX));
            loop {
                tokio::select! {
                    biased;
                    answer = &mut answer => break answer,
                    () = &mut sending, if !is_sent => is_sent = true,
                }
            }
        };
        match answer {
            Ok(HttpSaid::Head(head)) => {
                let response = response(head, reader, place).ok_or(Error::HttpProtocolError)?;
                let ready: Worker = Box::new(std::future::ready(Ok(())));
                let rest = async move {
                    sending.await;
                    Ok(())
                };
                Ok((response, if is_sent { ready } else { Box::new(rest) }))
            }
            Ok(HttpSaid::Failed(fault)) => Err(fault::error(fault)),
            // The host closes a door before the answer if it does not serve it.
            _ => Err(Error::ConnectionTerminated),
        }
    }
}

fn waits(options: Option<RequestOptions>) -> RequestWaits {
    let RequestOptions { connect_timeout, first_byte_timeout, between_bytes_timeout } = options.unwrap_or_default();
    RequestWaits { connect: connect_timeout, first_byte: first_byte_timeout, between_bytes: between_bytes_timeout }
}

/// Sends the guest's body. If the host refuses it, its answer has the reason.
async fn send(mut writer: FrameWriter, mut body: WasiBody, body_bytes: Option<u64>) {
    if body_bytes != Some(0) {
        let end = loop {
            match body.frame().await {
                Some(Ok(frame)) => match frame.into_data().map_err(BodyFrame::into_trailers) {
                    Ok(data) => {
                        if writer.data(data).await.is_err() {
                            break None;
                        }
                    }
                    Err(Ok(trailers)) => break Some(BodyEnd::Trailers(HeaderFields::from(&trailers))),
                    Err(Err(_)) => {}
                },
                Some(Err(_)) => break Some(BodyEnd::Aborted),
                None => break Some(BodyEnd::Whole),
            }
        };
        if let Some(end) = end {
            let _ = writer.message(&end).await;
        }
    }
    // The side that reads closes the door.
    writer.forget();
}

fn response(head: ResponseHead, reader: FrameReader, place: OwnedSemaphorePermit) -> Option<Response<WasiBody>> {
    let ResponseHead { status, fields, whole } = head;
    let body = OutsideBody { reader, whole, _place: place };
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(status).ok()?;
    *response.headers_mut() = fields.into_map()?;
    Some(response)
}

/// A server's body, as it comes through the door. It holds the door and a place among the call's
/// doors, and so the request's turn.
struct OutsideBody {
    reader: FrameReader,
    whole: bool,
    _place: OwnedSemaphorePermit,
}

impl Body for OutsideBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, Error>>> {
        if self.whole {
            return Poll::Ready(None);
        }
        let message = match ready!(self.reader.poll_frame(context, HOST_BYTES_MAX)) {
            Ok(Some(DoorFrame::Data(data))) => return Poll::Ready(Some(Ok(BodyFrame::data(data)))),
            Ok(Some(DoorFrame::Message(message))) => decode(&message).map_err(DoorError::from),
            Ok(None) => Err(DoorError::Closed),
            Err(error) => Err(error),
        };
        self.whole = true;
        Poll::Ready(match message {
            Ok(HttpSaid::Whole) => None,
            Ok(HttpSaid::Trailers(trailers)) => {
                Some(trailers.into_map().map(BodyFrame::trailers).ok_or(Error::HttpProtocolError))
            }
            Ok(HttpSaid::Failed(fault)) => Some(Err(fault::error(fault))),
            Ok(HttpSaid::Head(_)) | Err(_) => Some(Err(Error::ConnectionTerminated)),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.whole
    }
}
