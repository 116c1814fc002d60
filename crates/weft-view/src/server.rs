//! The server: who is let in, threads, headers.

use crate::api::{self, Answer, Refusal};
use crate::page;
use crate::shown::Shown;
use crate::source::Source;
use crate::token::Token;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use tiny_http::{Header, Method, Request, Response, StatusCode};
use weft_results::forget_live;

/// Requests that are answered at a time: a browser asks for six.
const THREADS: usize = 4;
/// The time after which a thread looks whether the server is to end.
const LOOK: Duration = Duration::from_millis(200);

/// The command that builds the page.
pub const PAGE_MEND: &str = "make view (needs Node 20.19 or later)";

/// The rules of the page: scripts, styles and figures of this server alone, no markup of a name.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// Headers of every answer.
const HEADERS: [(&str, &str); 6] = [
    ("Content-Security-Policy", CONTENT_SECURITY_POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
];

/// A server that cannot begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// Another program listens at the port.
    #[error(
        "port {0} of 127.0.0.1 is busy; name another with --port, or leave it out: any free one is taken"
    )]
    Busy(u16),
    /// A port that only root may open.
    #[error("port {0} may not be opened by this user; name one above 1023 with --port, or leave it out")]
    Forbidden(u16),
    /// The system lets nobody listen.
    #[error("cannot listen at port {port} of 127.0.0.1: {why}")]
    Listen {
        /// The port.
        port: u16,
        /// The reason.
        why: String,
    },
    /// The system has no random numbers.
    #[error("the system gives no random numbers for the token of the address: {0}")]
    Random(#[from] getrandom::Error),
}

/// Whether the page was built into this library.
pub fn has_page() -> bool {
    page::is_there()
}

/// A server of results.
pub struct Server {
    http: tiny_http::Server,
    port: u16,
    token: Token,
    source: Source,
}

impl Server {
    /// Listens at a port of 127.0.0.1; 0 takes any free one.
    ///
    /// # Errors
    /// A port that is busy or forbidden.
    pub fn new(port: u16, shown: Vec<Shown>) -> Result<Server, ViewError> {
        Server::of(port, Source::of(shown))
    }

    /// The same for what a run writes into a directory, from now on.
    ///
    /// # Errors
    /// As of [`Server::new`].
    pub fn live(port: u16, directory: PathBuf) -> Result<Server, ViewError> {
        forget_live(&directory);
        Server::of(port, Source::live(directory))
    }

    /// The run is over: from now on its whole result is shown, if there is one.
    pub fn end_live(&self) {
        self.source.end();
    }

    fn of(port: u16, source: Source) -> Result<Server, ViewError> {
        let token = Token::random()?;
        let http = tiny_http::Server::http((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
            match error.downcast_ref::<io::Error>().map(io::Error::kind) {
                Some(io::ErrorKind::AddrInUse) => ViewError::Busy(port),
                Some(io::ErrorKind::PermissionDenied) => ViewError::Forbidden(port),
                _ => ViewError::Listen { port, why: error.to_string() },
            }
        })?;
        let port = http.server_addr().to_ip().map_or(port, |address: SocketAddr| address.port());
        Ok(Server { http, port, token, source })
    }

    /// The address, with the token.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// Answers until `is_over`, which is asked a few times a second.
    pub fn run(&self, is_over: impl Fn() -> bool + Sync) {
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    while !is_over() {
                        match self.http.recv_timeout(LOOK) {
                            Ok(Some(request)) => self.answer(request),
                            Ok(None) => {}
                            // A connection that broke; not the server.
                            Err(_) => std::thread::sleep(LOOK),
                        }
                    }
                });
            }
        });
    }

    fn answer(&self, request: Request) {
        let response = match self.response(&request) {
            Ok(response) => response,
            Err(Refusal { status, why }) => {
                let text = serde_json::json!({ "error": why }).to_string();
                of_kind("application/json", text.into_bytes()).with_status_code(StatusCode(status))
            }
        };
        let with_headers = HEADERS
            .into_iter()
            .fold(response, |response, (name, value)| response.with_header(header(name, value)));
        // Whoever asked may have gone.
        let _ = request.respond(with_headers);
    }

    fn response(&self, request: &Request) -> Result<Response<io::Cursor<Vec<u8>>>, Refusal> {
        let refused = |why: &str| Refusal { status: 403, why: why.to_owned() };
        let names_us = |header: &&Header| {
            let (ip, local) = (format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port));
            header.value == ip.as_str() || header.value == local.as_str()
        };
        let host = request.headers().iter().find(|header| header.field.equiv("Host"));
        if host.as_ref().is_none_or(|host| !names_us(host)) {
            return Err(refused("this server is asked as 127.0.0.1 only"));
        }
        let address = request.url().strip_prefix('/').unwrap_or("");
        let (token, rest) = address.split_once('/').unwrap_or((address, ""));
        if !self.token.is(token) {
            return Err(refused("the address lacks the token: take the one that weft view printed"));
        }
        if !matches!(request.method(), Method::Get | Method::Head) {
            return Err(Refusal { status: 405, why: "only GET is answered".to_owned() });
        }
        if !address.contains('/') {
            let place = header("Location", &format!("/{token}/"));
            return Ok(of_kind("text/plain", Vec::new())
                .with_status_code(StatusCode(307))
                .with_header(place));
        }
        if let Some(question) = rest.strip_prefix("api/") {
            return api::answer(&self.source, question).map(|answer| match answer {
                Answer::Json(text) => of_kind("application/json", text),
                Answer::Numbers(bytes) => of_kind("application/octet-stream", bytes),
            });
        }
        let name = rest.split('?').next().unwrap_or("");
        let file = page::file(name);
        let file =
            file.ok_or_else(|| Refusal { status: 404, why: format!("the page has no file {name}") })?;
        Ok(of_kind(file.kind, file.content.to_vec()))
    }
}

fn of_kind(kind: &str, content: Vec<u8>) -> Response<io::Cursor<Vec<u8>>> {
    Response::from_data(content).with_header(header("Content-Type", kind))
}

/// A header; the names and values are ours, and plain.
fn header(name: &str, value: &str) -> Header {
    Header::from_bytes(name.as_bytes(), value.as_bytes()).expect("headers are plain text")
}
