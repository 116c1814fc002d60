//! HTTP/1.1, as far as the page needs it: requests without a body, and one answer for each connection.
//!
//! The server closes a connection behind its answer. So no byte behind a head is ever looked at: neither a
//! body, whatever length it claims, nor a second request that hides in one.

use crate::api::Refusal;
use httparse::{EMPTY_HEADER, Status};
use std::io::{self, Write};

/// The longest head of a request in bytes: a browser's is 1 KB.
pub const MAX_HEAD: usize = 16 << 10;
/// Headers of a request: a browser sends 20.
const MAX_HEADERS: usize = 64;

/// The head of a request.
pub struct Head {
    /// `GET`, mostly.
    pub method: String,
    /// The address behind the host.
    pub target: String,
    /// The host that is asked, from its only `Host` header.
    pub host: String,
    /// Whether a body follows, or might: only a `Content-Length: 0` says that none does.
    pub has_body: bool,
}

impl Head {
    /// Reads a whole head.
    ///
    /// # Errors
    /// Anything that is not one.
    pub fn parse(bytes: &[u8]) -> Result<Head, Refusal> {
        let refused = |status, why: &str| Refusal { status, why: why.to_owned() };
        let mut headers = [EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(bytes) {
            Ok(Status::Complete(_)) => {}
            Ok(Status::Partial) => return Err(refused(400, "the request has no end")),
            Err(httparse::Error::TooManyHeaders) => return Err(too_large()),
            Err(error) => return Err(refused(400, &format!("this is no HTTP request: {error}"))),
        }
        let named = |name: &'static str| {
            let is_named = move |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case(name);
            request.headers.iter().filter(is_named).map(|header| header.value)
        };
        let mut hosts = named("Host");
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(refused(400, "a request names one host"));
        };
        let has_body = named("Transfer-Encoding").next().is_some()
            || named("Content-Length").any(|length| length.trim_ascii() != b"0");
        Ok(Head {
            method: request.method.unwrap_or_default().to_owned(),
            target: request.path.unwrap_or_default().to_owned(),
            host: String::from_utf8_lossy(host).into_owned(),
            has_body,
        })
    }
}

/// The answer to a head that is too large.
pub fn too_large() -> Refusal {
    Refusal { status: 431, why: format!("a request has at most {MAX_HEAD} bytes and {MAX_HEADERS} headers") }
}

/// An answer.
pub struct Response {
    /// The status.
    pub status: u16,
    /// The media type.
    pub kind: &'static str,
    /// The address to ask instead.
    pub location: Option<String>,
    /// The content.
    pub content: Vec<u8>,
}

impl Response {
    /// An answer with a content.
    pub fn of(kind: &'static str, content: Vec<u8>) -> Response {
        Response { status: 200, kind, location: None, content }
    }

    /// Writes it with these headers besides its own; `with_content`: not for a request that asks for the head
    /// alone.
    ///
    /// # Errors
    /// A connection that takes no more.
    pub fn write(&self, headers: &[(&str, &str)], with_content: bool, to: &mut impl Write) -> io::Result<()> {
        let Response { status, kind, location, content } = self;
        let mut head = format!("HTTP/1.1 {status} {}\r\nContent-Type: {kind}\r\n", reason(*status));
        let place = location.as_deref().map(|location| ("Location", location));
        for (name, value) in headers.iter().copied().chain(place) {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("Content-Length: {}\r\nConnection: close\r\n\r\n", content.len());
        to.write_all(head.as_bytes())?;
        if with_content { to.write_all(content) } else { Ok(()) }
    }
}

/// The words behind a status.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        _ => "Internal Server Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(text: &str) -> u16 {
        Head::parse(text.as_bytes()).err().unwrap().status
    }

    /// Catches a body that is overlooked, whatever length it claims.
    #[test]
    fn a_body_is_noticed_without_being_read() {
        let has_body = |header: &str| {
            let text = format!("GET /a HTTP/1.1\r\nHost: b\r\n{header}\r\n\r\n");
            let head = Head::parse(text.as_bytes()).ok().unwrap();
            assert_eq!((&*head.method, &*head.target, &*head.host), ("GET", "/a", "b"));
            head.has_body
        };
        assert!(!has_body("content-length: 0") && !has_body("Accept: */*"));
        for header in [
            "Content-Length: 99999999999999999999999",
            "content-length: -1",
            "Content-Length:",
            "Content-Length: 0\r\nContent-Length: 7",
            "Transfer-Encoding: chunked",
            "transfer-encoding: identity",
        ] {
            assert!(has_body(header), "{header}");
        }
    }

    /// Catches a head that is half read, or that two readers would read differently.
    #[test]
    fn broken_heads_are_refused() {
        let host = "Host: b\r\n";
        for (text, expected) in [
            ("GET /a HTTP/1.1\r\n\r\n".to_owned(), 400),
            (format!("GET /a HTTP/1.1\r\n{host}{host}\r\n"), 400),
            (format!("GET /a HTTP/1.1\r\n{host}"), 400),
            (format!("GET /a\r\n{host}\r\n"), 400),
            (format!("GET /a HTTP/1.1\r\n{host}no colon\r\n\r\n"), 400),
            ("\u{0}\u{1}\u{2}\r\n\r\n".to_owned(), 400),
            (format!("GET /a HTTP/1.1\r\n{host}{}\r\n", "X: y\r\n".repeat(64)), 431),
        ] {
            assert_eq!(status(&text), expected, "{text:?}");
        }
    }

    /// Catches a content where the head alone was asked for, and a head that does not say how long it is.
    #[test]
    fn answers_say_how_long_they_are() {
        let response =
            Response { status: 307, location: Some("/t/".into()), ..Response::of("a/b", vec![7; 3]) };
        let text = |with_content| {
            let mut bytes = Vec::new();
            response.write(&[("X-Y", "z")], with_content, &mut bytes).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        let head = "HTTP/1.1 307 Temporary Redirect\r\nContent-Type: a/b\r\nX-Y: z\r\nLocation: /t/\r\n\
                    Content-Length: 3\r\nConnection: close\r\n\r\n";
        assert_eq!(text(false), head);
        assert_eq!(text(true), format!("{head}\u{7}\u{7}\u{7}"));
    }
}
