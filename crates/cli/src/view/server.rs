//! HTTP on the loopback interface. Only GET requests with the page's key are answered.
//!
//! Each connection has its own thread and carries one request, so no request waits behind an idle connection.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::catalogue::{Catalogue, Refused};
use crate::interrupt;
use crate::{Exit, Failure};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Maximum number of simultaneous connections. A browser opens six; further ones wait in the system's queue.
const MAX_CONNECTIONS: usize = 32;
/// How long the server sleeps between two checks for connections and for Ctrl-C.
const PAUSE: Duration = Duration::from_millis(5);
/// How long a client may take to send its request, or to receive a part of the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum length of a line of a request in bytes, and maximum number of lines.
const MAX_HEAD: usize = 16 << 10;
const MAX_HEADERS: usize = 64;

/// The page may load only what this server sends, and other pages may not frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                      connect-src 'self'; frame-ancestors 'none'";

pub(super) struct Server {
    listener: TcpListener,
    address: SocketAddr,
    key: String,
}

impl Server {
    pub(super) fn bind(port: u16) -> Result<Self, Failure> {
        let bound = TcpListener::bind(("127.0.0.1", port)).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        });
        let (address, listener) = bound.map_err(|error| {
            Failure::not_run(format!("cannot listen on 127.0.0.1, port {port}: {error}")).hint("choose another --port")
        })?;
        // The keys of a new hasher come from the operating system's random numbers.
        let random = || RandomState::new().hash_one(address);
        Ok(Self { listener, address, key: format!("{:016x}{:016x}", random(), random()) })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/{}/", self.address, self.key)
    }

    /// Answers requests until a signal stops the command. The caller catches signals.
    pub(super) fn serve(&self, catalogue: &Catalogue<'_>) -> Exit {
        let open = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            loop {
                if let Some(exit) = interrupt::caught() {
                    return exit;
                }
                let is_full = open.load(Ordering::Acquire) >= MAX_CONNECTIONS;
                let Some((stream, _)) = (!is_full).then(|| self.listener.accept().ok()).flatten() else {
                    std::thread::sleep(PAUSE);
                    continue;
                };
                open.fetch_add(1, Ordering::AcqRel);
                let open = &open;
                scope.spawn(move || {
                    // A browser that leaves early is not an error.
                    let _ = self.answer(stream, catalogue);
                    open.fetch_sub(1, Ordering::AcqRel);
                });
            }
        })
    }

    fn answer(&self, mut stream: TcpStream, catalogue: &Catalogue<'_>) -> io::Result<()> {
        // An accepted connection may inherit the listener's non-blocking mode.
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let reply = match Request::read(&mut stream)? {
            None => Reply::error(400, "malformed or oversized request"),
            Some(request) if request.method != "GET" => Reply::error(405, "only GET requests are supported"),
            // Pages of other sites can make a browser send requests, but those requests have another host name.
            Some(request) if request.host != self.address.to_string() => Reply::error(403, "wrong host name"),
            Some(request) => self.reply(&request.target, catalogue),
        };
        reply.send(&mut stream)
    }

    fn reply(&self, target: &str, catalogue: &Catalogue<'_>) -> Reply {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let Some(name) = path.strip_prefix('/').and_then(|path| path.strip_prefix(self.key.as_str())) else {
            return Reply::error(404, "open the address that packds printed");
        };
        let query = parsed(query);
        let found = match name {
            "/" => Ok(Reply::text("text/html; charset=utf-8", PAGE)),
            "/page.css" => Ok(Reply::text("text/css; charset=utf-8", STYLE)),
            "/page.js" => Ok(Reply::text("text/javascript; charset=utf-8", SCRIPT)),
            "/pack" => catalogue.pack().map(|value| Reply::json(&value)),
            "/samples" => catalogue.samples(&query).map(|value| Reply::json(&value)),
            "/sample" => catalogue.sample(&query).map(|value| Reply::json(&value)),
            "/picture" => catalogue.picture(&query).map(|png| Reply { status: 200, kind: "image/png", body: png }),
            _ => return Reply::error(404, "no such page"),
        };
        found.unwrap_or_else(|Refused(why)| Reply::error(400, &why))
    }
}

/// The parts of a request that are used.
struct Request {
    method: String,
    target: String,
    host: String,
}

impl Request {
    /// Reads a request. `None` if it is malformed or too long.
    fn read(stream: &mut TcpStream) -> io::Result<Option<Self>> {
        let mut head = Vec::new();
        let mut piece = [0; 4096];
        while head.len() < MAX_HEAD {
            let n = stream.read(&mut piece)?;
            head.extend_from_slice(piece.get(..n).unwrap_or(&[]));
            let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
            let mut request = httparse::Request::new(&mut headers);
            match request.parse(&head) {
                Ok(httparse::Status::Complete(_)) => return Ok(Some(Self::of(&request))),
                Ok(httparse::Status::Partial) if n > 0 => {}
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    fn of(request: &httparse::Request<'_, '_>) -> Self {
        let host = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("host"));
        Self {
            method: request.method.unwrap_or_default().to_owned(),
            target: request.path.unwrap_or_default().to_owned(),
            host: host.map(|host| String::from_utf8_lossy(host.value).into_owned()).unwrap_or_default(),
        }
    }
}

struct Reply {
    status: u16,
    kind: &'static str,
    body: Vec<u8>,
}

impl Reply {
    fn text(kind: &'static str, text: &str) -> Self {
        Self { status: 200, kind, body: text.as_bytes().to_vec() }
    }

    fn json(value: &serde_json::Value) -> Self {
        Self { status: 200, kind: "application/json", body: value.to_string().into_bytes() }
    }

    fn error(status: u16, why: &str) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: why.as_bytes().to_vec() }
    }

    fn send(self, stream: &mut TcpStream) -> io::Result<()> {
        let cache = if self.status == 200 { "private, max-age=3600" } else { "no-store" };
        write!(
            stream,
            "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: {cache}\r\n\
             Content-Security-Policy: {POLICY}\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\r\n",
            self.status,
            if self.status == 200 { "OK" } else { "Refused" },
            self.kind,
            self.body.len()
        )?;
        stream.write_all(&self.body)
    }
}

/// The names and values of a query, with `%` escapes and `+` decoded.
fn parsed(query: &str) -> BTreeMap<String, String> {
    query
        .split('&')
        .filter_map(|part| part.split_once('='))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = text.bytes();
    let mut out = Vec::new();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let hex: Vec<u8> = bytes.by_ref().take(2).collect();
                str::from_utf8(&hex).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok()).unwrap_or(b'?')
            }
            byte => byte,
        });
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_a_query_are_decoded() {
        let query = parsed("text=a%20b+c%26&class=3&broken=%f&none");
        let expected = [("broken", "\u{f}"), ("class", "3"), ("text", "a b c&")];
        assert_eq!(query, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    }
}
