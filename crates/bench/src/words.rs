//! Numbers for people.

use std::fmt::Display;

/// A number with its noun: `1 thread`, `2 threads`.
pub fn counted<N: Display + PartialEq + From<u8>>(n: N, noun: &str) -> String {
    let s = if n == N::from(1) { "" } else { "s" };
    format!("{n} {noun}{s}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_is_not_several() {
        let shown = [0_usize, 1, 2].map(|n| counted(n, "thread"));
        assert_eq!(shown, ["0 threads", "1 thread", "2 threads"]);
    }
}
