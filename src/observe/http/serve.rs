//! The accept loop: limits of connections, time and size, and an orderly end.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::routes::routes;
use crate::observe::commands::Desk;
use crate::observe::questions::Questions;
use crate::observe::readiness::Readiness;
use crate::telemetry::{HttpRefusal, Telemetry};

/// What the HTTP side is told.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Host names by which it may be asked for, besides `localhost` and any IP address.
    pub allowed_hosts: Vec<String>,
    /// Limits.
    pub limits: HttpLimits,
    /// Who may give commands; none: nobody.
    pub desk: Option<Desk>,
    /// Where questions about one key go; none: they are not answered.
    pub questions: Option<Questions>,
}

impl HttpSettings {
    /// Every default, at this address.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        Self { listen, allowed_hosts: Vec::new(), limits: HttpLimits::default(), desk: None, questions: None }
    }
}

/// Limits of the HTTP side.
#[derive(Debug, Clone, Copy)]
pub struct HttpLimits {
    /// More connections at once are answered with 503 and closed.
    pub connections: usize,
    /// From the accept, or the end of the last answer, to the end of the headers.
    pub header: Duration,
    /// From the headers to the begin of the answer.
    pub answer: Duration,
    /// A connection ends after the request in which it reached this age; a stuck one a moment later.
    pub connection_age: Duration,
    /// Longest body of a request.
    pub body_bytes: usize,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connections: 64,
            header: Duration::from_secs(20),
            answer: Duration::from_secs(10),
            connection_age: Duration::from_secs(300),
            body_bytes: 16 * 1024,
        }
    }
}

/// How long a connection has for its last answer once it should end.
const LAST_ANSWER: Duration = Duration::from_secs(2);
/// Pause after an accept that failed, for instance for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// A request line with headers is at most so long.
const MAX_HEAD_BYTES: usize = 64 * 1024;
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\ncontent-length: 21\r\n\r\ntoo many connections\n";

/// The HTTP side could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be had.
    #[error("cannot listen on {listen}: {cause}; choose another observe.listen or stop what uses it")]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// Why not.
        cause: io::Error,
    },
    /// No thread or runtime for it.
    #[error("cannot start the thread of the http side: {0}")]
    Thread(io::Error),
}

/// A server that runs in the caller's runtime.
#[derive(Debug)]
pub struct Serving {
    /// Where it listens.
    pub addr: SocketAddr,
    /// Ends when the shutdown future has, and the last answers are out.
    pub task: JoinHandle<()>,
}

/// Listens, and serves until `shutdown` ends.
///
/// # Errors
/// [`ServeError::Listen`] when the address cannot be had.
pub async fn serve(
    settings: &HttpSettings,
    telemetry: Arc<Telemetry>,
    readiness: Arc<Readiness>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<Serving, ServeError> {
    let listen = settings.listen;
    let error = |cause| ServeError::Listen { listen, cause };
    let listener = TcpListener::bind(listen).await.map_err(error)?;
    let addr = listener.local_addr().map_err(error)?;
    let routes = routes(settings, Arc::clone(&telemetry), readiness);
    let limits = settings.limits;
    let task = tokio::spawn(async move {
        let (end, ended) = watch::channel(());
        let mut connections = JoinSet::new();
        tokio::select! {
            () = accept(&listener, &routes, limits, &telemetry, &ended, &mut connections) => {}
            () = shutdown => {}
        }
        drop((listener, end));
        while connections.join_next().await.is_some() {}
    });
    Ok(Serving { addr, task })
}

/// Accepts for ever.
async fn accept(
    listener: &TcpListener,
    routes: &axum::Router,
    limits: HttpLimits,
    telemetry: &Arc<Telemetry>,
    ended: &watch::Receiver<()>,
    connections: &mut JoinSet<()>,
) {
    let slots = Arc::new(Semaphore::new(limits.connections));
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
            telemetry.count_http_refused(HttpRefusal::Connections);
            // The buffer of a new socket is empty, so this is sent or the peer is gone: either way it ends here.
            drop(stream.try_write(FULL));
            continue;
        };
        let (routes, telemetry, ended) = (routes.clone(), Arc::clone(telemetry), ended.clone());
        connections.spawn(async move {
            connection(stream, routes, limits, telemetry, ended).await;
            drop(slot);
        });
    }
}

/// Serves one connection to its end: of its own, by age, or of the server.
async fn connection(
    stream: TcpStream,
    routes: axum::Router,
    limits: HttpLimits,
    telemetry: Arc<Telemetry>,
    mut ended: watch::Receiver<()>,
) {
    let mut protocol = http1::Builder::new();
    protocol.timer(TokioTimer::new()).header_read_timeout(limits.header).max_buf_size(MAX_HEAD_BYTES);
    let serving = protocol.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        outcome = serving.as_mut() => {
            // Every other error is of a peer that left or spoke no HTTP.
            if outcome.is_err_and(|error| error.is_timeout()) {
                telemetry.count_http_refused(HttpRefusal::Timeout);
            }
            return;
        }
        () = sleep(limits.connection_age) => {}
        _ = ended.changed() => {}
    }
    serving.as_mut().graceful_shutdown();
    if timeout(LAST_ANSWER, serving).await.is_err() {
        telemetry.count_http_refused(HttpRefusal::Timeout);
    }
}

/// A server with a thread and runtime of its own, for a program that has none.
#[derive(Debug)]
pub struct HttpServer {
    addr: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl HttpServer {
    /// Listens, and serves until it is dropped.
    ///
    /// # Errors
    /// [`ServeError`] when there is no address, thread or runtime to be had.
    pub fn start(
        settings: HttpSettings,
        telemetry: Arc<Telemetry>,
        readiness: Arc<Readiness>,
    ) -> Result<Self, ServeError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ServeError::Thread)?;
        let (end, ended) = oneshot::channel::<()>();
        let (started, outcome) = mpsc::sync_channel(1);
        let serve_until_end = async move {
            let shutdown = async move { drop(ended.await) };
            let serving = serve(&settings, telemetry, readiness, shutdown).await;
            let task = match serving {
                Ok(serving) => {
                    drop(started.send(Ok(serving.addr)));
                    serving.task
                }
                Err(error) => return drop(started.send(Err(error))),
            };
            drop(task.await);
        };
        let thread = thread::Builder::new().name("http".to_owned()).spawn(move || runtime.block_on(serve_until_end));
        let thread = thread.map_err(ServeError::Thread)?;
        let gone = || ServeError::Thread(io::Error::other("it ended before it had started"));
        let addr = outcome.recv().map_err(|_| gone())??;
        Ok(Self { addr, end: Some(end), thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }
}

/// Stops accepting, gives answers under way a moment, and waits for the end.
impl Drop for HttpServer {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
