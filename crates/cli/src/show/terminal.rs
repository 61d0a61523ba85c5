//! Inline images in terminals that support them.

use packds_system::to_usize;
use std::ffi::OsString;
use std::io::{self, Write};

/// A protocol for inline images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Kitty,
    Iterm2,
}

impl Protocol {
    /// Detects the protocol from environment variables.
    pub(super) fn detect(variable: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let of = |name| variable(name).and_then(|v| v.into_string().ok()).unwrap_or_default();
        // Terminal multiplexers do not forward images.
        if !of("TMUX").is_empty() || of("TERM").starts_with("screen") {
            return None;
        }
        let (term, program) = (of("TERM"), of("TERM_PROGRAM"));
        match program.as_str() {
            "iTerm.app" | "WezTerm" | "vscode" => Some(Self::Iterm2),
            "ghostty" => Some(Self::Kitty),
            _ if !of("KITTY_WINDOW_ID").is_empty() => Some(Self::Kitty),
            _ if term.contains("kitty") || term.contains("ghostty") => Some(Self::Kitty),
            _ => None,
        }
    }

    pub(super) fn send(self, png: &[u8], out: &mut dyn Write) -> io::Result<()> {
        let text = base64(png);
        match self {
            Self::Kitty => {
                // The protocol limits a message to 4096 bytes.
                let mut pieces = text.as_bytes().chunks(4096).peekable();
                let mut keys = "a=T,f=100,";
                while let Some(piece) = pieces.next() {
                    let more = u8::from(pieces.peek().is_some());
                    write!(out, "\x1b_G{keys}m={more};")?;
                    out.write_all(piece)?;
                    out.write_all(b"\x1b\\")?;
                    keys = "";
                }
            }
            Self::Iterm2 => write!(out, "\x1b]1337;File=inline=1;size={}:{text}\x07", png.len())?,
        }
        out.write_all(b"\n")
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for (i, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let digit = to_usize(bits >> shift & 63);
            let digit = DIGITS.get(digit).copied().unwrap_or(b'A');
            out.push(if i <= group.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        let of = |text: &str| base64(text.as_bytes());
        assert_eq!(
            ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(of),
            ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]
        );
    }

    #[test]
    fn terminals_are_told_apart() {
        let detect = |set: &[(&str, &str)]| {
            Protocol::detect(|name| set.iter().find(|(key, _)| *key == name).map(|(_, v)| v.into()))
        };
        assert_eq!(detect(&[("TERM", "xterm-kitty")]), Some(Protocol::Kitty));
        assert_eq!(detect(&[("KITTY_WINDOW_ID", "1")]), Some(Protocol::Kitty));
        assert_eq!(detect(&[("TERM_PROGRAM", "iTerm.app")]), Some(Protocol::Iterm2));
        assert_eq!(detect(&[("TERM", "xterm-256color")]), None);
        assert_eq!(detect(&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/x")]), None);
    }

    #[test]
    fn kitty_gets_pieces_of_4096_bytes() {
        let mut sent = Vec::new();
        Protocol::Kitty.send(&[0; 6000], &mut sent).unwrap();
        let text = String::from_utf8(sent).unwrap();
        assert!(text.starts_with("\x1b_Ga=T,f=100,m=1;AAAA"));
        assert!(text.contains("\x1b\\\x1b_Gm=0;"));
        assert!(text.ends_with("\x1b\\\n"));
    }
}
