//! Counts in messages.

use std::fmt::Display;

/// A number with its noun: `1 thread`, `2 threads`, `3 classes`.
#[must_use]
pub fn counted<N: Display + PartialEq + From<u8>>(n: N, noun: &str) -> String {
    let ending = match noun {
        _ if n == N::from(1) => "",
        _ if noun.ends_with("ss") || noun.ends_with("ch") || noun.ends_with('x') => "es",
        _ => "s",
    };
    format!("{n} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_is_not_several() {
        let shown = [0_usize, 1, 2].map(|n| counted(n, "thread"));
        assert_eq!(shown, ["0 threads", "1 thread", "2 threads"]);
        let nouns = ["class", "batch", "index"];
        assert_eq!(nouns.map(|noun| counted(2, noun)), ["2 classes", "2 batches", "2 indexes"]);
        assert_eq!(nouns.map(|noun| counted(1, noun)), ["1 class", "1 batch", "1 index"]);
    }
}
