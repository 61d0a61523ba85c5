//! Numbers in messages.

/// Formats bytes with a suitable unit: `1.5 GiB`.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.into_iter().find(|(size, _)| n >= *size) {
        None => format!("{n} bytes"),
        Some((size, unit)) if n.is_multiple_of(size) => format!("{} {unit}", n / size),
        Some((size, unit)) => {
            let tenths = n.saturating_mul(10) / size;
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_the_largest_unit_that_fits() {
        let texts = [0, 1023, 1024, 1536, 4 << 30, (4 << 30) + (1 << 29)].map(bytes);
        assert_eq!(texts, ["0 bytes", "1023 bytes", "1 KiB", "1.5 KiB", "4 GiB", "4.5 GiB"]);
    }
}
