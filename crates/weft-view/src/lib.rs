//! A page in the browser that shows results: `weft view`, and `--view` of a run that goes on.
//!
//! ```text
//!  browser ──GET /TOKEN/index.html──► page   files that `make view` builds and this library carries
//!          ──GET /TOKEN/api/links───► api    figures of weft-analysis and weft-sim as JSON, or as f32s
//!          ◄─403───────────────────── server all that has not the token of the address
//! ```
//! | file | reads |
//! |---|---|
//! | `server` | who is let in, threads, headers |
//! | `connections` | connections whose requests are still coming, within bounds |
//! | `http` | heads of requests, and answers |
//! | `token` | the secret of the address |
//! | `page` | the files of the page |
//! | `api` | figures by address |
//! | `query` | parameters of an address |
//! | `shown` | a result with the map of its machine |
//! | `source` | what is shown, also while a run goes on |
//! | `timeline` | ranks over time, for Perfetto |
//!
//! # Security
//! The server listens on 127.0.0.1 alone. Every address begins with a token of 128 random bits; another gets
//! 403, whatever it asks for. A request that names another host gets 403 too, so that no name of a stranger's
//! that resolves to 127.0.0.1 gets through. The page may load nothing from elsewhere and runs no script but
//! its own files (Content-Security-Policy); names in results become text, never markup.
//!
//! Anybody on this computer can connect. Before the token is known, a connection costs 16 KB and 5 seconds
//! at most, and no thread of its own; 64 may be open. No body is read. tiny_http has no such bounds: it
//! starts a thread for each connection, and reserves memory for all of a body that a stranger announces,
//! which ends the process. So the server is the project's own; only the parser of heads, httparse, is not.

mod api;
mod connections;
mod http;
mod page;
mod query;
mod server;
mod shown;
mod source;
mod timeline;
mod token;

pub use server::{MakePage, PAGE_MEND, Server, ViewError, has_page};
pub use shown::Shown;
pub use token::Token;
