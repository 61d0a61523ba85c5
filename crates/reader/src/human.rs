//! Numbers in messages.

use packds_system::counted;

const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];

/// Formats bytes with a suitable unit: `1.5 GiB`, `2 GiB`.
pub(crate) fn bytes(n: u64) -> String {
    match UNITS.into_iter().find(|(size, _)| n >= *size) {
        Some((size, unit)) if n.is_multiple_of(size) => format!("{} {unit}", n / size),
        _ => tenths(n),
    }
}

/// Formats bytes in the same way, but always with tenths: `1.5 GiB`, `2.0 GiB`.
pub(crate) fn tenths(n: u64) -> String {
    let Some((size, unit)) = UNITS.into_iter().find(|(size, _)| n >= *size) else {
        return counted(n, "byte");
    };
    let tenths = u128::from(n) * 10 / u128::from(size);
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_the_largest_unit_that_fits() {
        let texts = [0, 1, 1023, 1024, 1536, 4 << 30, (4 << 30) + (1 << 29)].map(bytes);
        assert_eq!(texts, ["0 bytes", "1 byte", "1023 bytes", "1 KiB", "1.5 KiB", "4 GiB", "4.5 GiB"]);
    }
}
