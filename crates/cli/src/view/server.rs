//! HTTP on the loopback interface. Only GET requests with the page's key are answered.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tiny_http::{Header, Method, Request, Response};

use super::catalogue::{Catalogue, Refused};
use crate::interrupt;
use crate::{Exit, Failure};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Threads that answer. Drawing pictures takes most of the time.
const THREADS: usize = 4;
/// How long a thread waits for a request before it looks for Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(200);

/// The page may load only what this server sends, and may not be framed by other pages.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self'; \
                      connect-src 'self'; frame-ancestors 'none'";

pub(super) struct Server {
    http: tiny_http::Server,
    address: String,
    key: String,
}

impl Server {
    pub(super) fn bind(port: u16) -> Result<Self, Failure> {
        let http = tiny_http::Server::http(("127.0.0.1", port)).map_err(|error| {
            Failure::not_run(format!("cannot listen on 127.0.0.1, port {port}: {error}")).hint("choose another --port")
        })?;
        let address = http.server_addr().to_string();
        // The keys of a new hasher come from the operating system's random numbers.
        let random = || RandomState::new().hash_one(&address);
        Ok(Self { key: format!("{:016x}{:016x}", random(), random()), address, http })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/{}/", self.address, self.key)
    }

    /// Answers until a signal stops the command.
    pub(super) fn serve(&self, catalogue: &Catalogue<'_>) -> Result<Exit, Failure> {
        let _catching = interrupt::catch();
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    while interrupt::caught().is_none() {
                        if let Ok(Some(request)) = self.http.recv_timeout(PATIENCE) {
                            self.answer(request, catalogue);
                        }
                    }
                });
            }
        });
        Ok(interrupt::caught().unwrap_or(Exit::Done))
    }

    fn answer(&self, request: Request, catalogue: &Catalogue<'_>) {
        let reply = if *request.method() != Method::Get {
            Reply::error(405, "only GET is answered")
        } else if !self.is_for_us(&request) {
            // A page of another site can make a browser send requests, but under the other site's name.
            Reply::error(403, "wrong host")
        } else {
            self.reply(request.url(), catalogue)
        };
        let mut response = Response::from_data(reply.body).with_status_code(reply.status);
        for (name, value) in [
            ("Content-Type", reply.kind),
            ("Content-Security-Policy", POLICY),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Cache-Control", "private, max-age=3600"),
        ] {
            if let Ok(header) = Header::from_bytes(name, value) {
                response.add_header(header);
            }
        }
        // A browser that leaves early is not an error.
        let _ = request.respond(response);
    }

    fn is_for_us(&self, request: &Request) -> bool {
        let host = request.headers().iter().find(|header| header.field.equiv("Host"));
        host.is_some_and(|host| host.value.as_str() == self.address)
    }

    fn reply(&self, url: &str, catalogue: &Catalogue<'_>) -> Reply {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let Some(name) = path.strip_prefix('/').and_then(|path| path.strip_prefix(self.key.as_str())) else {
            return Reply::error(404, "open the address that packds printed");
        };
        let query = parsed(query);
        let found = match name {
            "/" => Ok(Reply::text("text/html; charset=utf-8", PAGE)),
            "/page.css" => Ok(Reply::text("text/css; charset=utf-8", STYLE)),
            "/page.js" => Ok(Reply::text("text/javascript; charset=utf-8", SCRIPT)),
            "/pack" => catalogue.pack().map(Reply::json),
            "/samples" => catalogue.samples(&query).map(Reply::json),
            "/sample" => catalogue.sample(&query).map(Reply::json),
            "/picture" => catalogue.picture(&query).map(|png| Reply { status: 200, kind: "image/png", body: png }),
            _ => return Reply::error(404, "no such page"),
        };
        found.unwrap_or_else(|Refused(why)| Reply::error(400, &why))
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

    fn json(value: serde_json::Value) -> Self {
        Self { status: 200, kind: "application/json", body: value.to_string().into_bytes() }
    }

    fn error(status: u16, why: &str) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: why.as_bytes().to_vec() }
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
