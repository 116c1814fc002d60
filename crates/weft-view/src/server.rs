//! The server: who is let in, threads, headers.

use crate::api::{self, Answer, Refusal};
use crate::connections::{Asked, Connections};
use crate::http::{Head, Response};
use crate::page;
use crate::shown::Shown;
use crate::source::Source;
use crate::token::Token;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use weft_results::forget_live;

/// Requests that are answered at a time: a browser asks for six.
const THREADS: usize = 4;
/// Requests that wait for a thread. Those of more are closed unanswered.
const MAX_WAITING: usize = 64;

/// The command that builds the page.
pub const PAGE_MEND: &str = "make view (needs Node 20.19 or later)";

/// The rules of the page: scripts, styles and figures of this server alone, no markup of a name.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// The rules of a page that is one file: its own styles, and nothing else.
const RULES_OF_ONE_FILE: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Headers of every answer, besides the rules.
const HEADERS: [(&str, &str); 5] = [
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

/// Makes a page that is one file; or says why it cannot.
pub type MakePage = Box<dyn Fn() -> Result<String, String> + Send + Sync>;

/// A server of results.
pub struct Server {
    listener: TcpListener,
    port: u16,
    token: Token,
    source: Source,
    /// The page in place of that of results.
    page: Option<MakePage>,
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

    /// The same for one page, made anew whenever it is asked for.
    ///
    /// # Errors
    /// As of [`Server::new`].
    pub fn of_page(port: u16, page: MakePage) -> Result<Server, ViewError> {
        Ok(Server { page: Some(page), ..Server::of(port, Source::of(Vec::new()))? })
    }

    /// The run is over: from now on its whole result is shown, if there is one.
    pub fn end_live(&self) {
        self.source.end();
    }

    fn of(port: u16, source: Source) -> Result<Server, ViewError> {
        let token = Token::random()?;
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AddrInUse => ViewError::Busy(port),
            io::ErrorKind::PermissionDenied => ViewError::Forbidden(port),
            _ => ViewError::Listen { port, why: error.to_string() },
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Server { listener, port, token, source, page: None })
    }

    /// The address, with the token.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// Answers until `is_over`, which is asked a few times a second.
    pub fn run(&self, is_over: impl Fn() -> bool) {
        let (to_answer, asked) = sync_channel(MAX_WAITING);
        let asked = Mutex::new(asked);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| self.answer_all(&asked));
            }
            let mut connections = Connections::to(&self.listener);
            while !is_over() {
                for request in connections.requests() {
                    // One too many is closed.
                    let _ = to_answer.try_send(request);
                }
            }
            // The threads end with the channel.
            drop(to_answer);
        });
    }

    fn answer_all(&self, asked: &Mutex<Receiver<Asked>>) {
        let next = || asked.lock().unwrap_or_else(PoisonError::into_inner).recv();
        while let Ok(Asked { head, answer_to }) = next() {
            let with_content = !head.as_ref().is_ok_and(|head| head.method == "HEAD");
            let response = head.and_then(|head| self.response(&head)).unwrap_or_else(refusal);
            let rules = if self.page.is_some() { RULES_OF_ONE_FILE } else { CONTENT_SECURITY_POLICY };
            let headers = [&[("Content-Security-Policy", rules)], &HEADERS[..]].concat();
            answer_to.answer(|mut to| response.write(&headers, with_content, &mut to));
        }
    }

    fn response(&self, head: &Head) -> Result<Response, Refusal> {
        let refused = |why: &str| Refusal { status: 403, why: why.to_owned() };
        let names = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        if !names.contains(&head.host) {
            return Err(refused("this server is asked as 127.0.0.1 only"));
        }
        let address = head.target.strip_prefix('/').unwrap_or("");
        let (token, rest) = address.split_once('/').unwrap_or((address, ""));
        if !self.token.is(token) {
            return Err(refused("the address lacks the token: take the one that weft view printed"));
        }
        if !matches!(head.method.as_str(), "GET" | "HEAD") {
            return Err(Refusal { status: 405, why: "only GET is answered".to_owned() });
        }
        if head.has_body {
            return Err(Refusal { status: 413, why: "a question has no body".to_owned() });
        }
        if !address.contains('/') {
            let location = Some(format!("/{token}/"));
            return Ok(Response { status: 307, location, ..Response::of("text/plain", Vec::new()) });
        }
        if let Some(question) = rest.strip_prefix("api/") {
            return api::answer(&self.source, question).map(|answer| match answer {
                Answer::Json(text) => Response::of("application/json", text),
                Answer::Numbers(bytes) => Response::of("application/octet-stream", bytes),
            });
        }
        let name = rest.split('?').next().unwrap_or("");
        if let Some(make) = self.page.as_ref().filter(|_| name.is_empty()) {
            let page = make().map_err(|why| Refusal { status: 500, why })?;
            return Ok(Response::of("text/html; charset=utf-8", page.into_bytes()));
        }
        let file = page::file(name);
        let file =
            file.ok_or_else(|| Refusal { status: 404, why: format!("the page has no file {name}") })?;
        Ok(Response::of(file.kind, file.content.to_vec()))
    }
}

fn refusal(Refusal { status, why }: Refusal) -> Response {
    let key = if status == Refusal::ABSENT { "absent" } else { "error" };
    let text = serde_json::json!({ key: why }).to_string();
    Response { status, ..Response::of("application/json", text.into_bytes()) }
}
