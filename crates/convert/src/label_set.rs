//! Sets of class ids as bits: id `i` is bit `i % 8` of byte `i / 8`.

/// The class ids in a set, in ascending order.
pub(crate) fn ids(set: &[u8]) -> impl Iterator<Item = i64> + '_ {
    let bits = set.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1));
    (0..).zip(bits).filter(|(_, bit)| *bit == 1).map(|(id, _)| id)
}

/// A set of `bytes` bytes. Negative ids, and ids for which it has no bit, are left out.
pub(crate) fn of(ids: impl IntoIterator<Item = i64>, bytes: usize) -> Vec<u8> {
    let mut set = vec![0_u8; bytes];
    for id in ids.into_iter().filter_map(|id| usize::try_from(id).ok()) {
        if let Some(byte) = set.get_mut(id / 8) {
            *byte |= 1 << (id % 8);
        }
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_labels_are_their_bits() {
        assert_eq!(ids(&[0b1000_0001, 2]).collect::<Vec<_>>(), [0, 7, 9]);
        assert_eq!(of([9, 0, 7, -1, 16], 2), [0b1000_0001, 2]);
    }
}
