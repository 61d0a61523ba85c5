//! Run lengths of COCO: the pixels of a mask, column by column, as the lengths of runs of background and mask in turn. They are a list of
//! numbers, or text, as pycocotools writes it.

use super::rings::{MAX_SIDE, Run, push};

/// Groups of 5 bits that a length may have. Longer ones exceed any mask.
const MAX_GROUPS: u32 = 9;

/// The lengths in a text: groups of 5 bits, the lowest first. From the third on, a length is the difference to the one two before.
pub(super) fn lengths(text: &str) -> Result<Vec<u64>, String> {
    let mut lengths: Vec<u64> = Vec::new();
    let (mut value, mut n_groups) = (0_i64, 0);
    for letter in text.bytes() {
        let group = letter.checked_sub(b'0').filter(|group| *group < 64);
        let group =
            group.ok_or_else(|| format!("the text of run lengths has '{}'", char::from(letter).escape_debug()))?;
        if n_groups == MAX_GROUPS {
            return Err(format!("a run length has more than {MAX_GROUPS} characters"));
        }
        value |= i64::from(group & 0x1f) << (5 * n_groups);
        n_groups += 1;
        if group & 0x20 != 0 {
            continue;
        }
        if group & 0x10 != 0 {
            value |= -1 << (5 * n_groups);
        }
        let before = if lengths.len() > 2 { lengths.iter().rev().nth(1).copied().unwrap_or_default() } else { 0 };
        let length = before.checked_add_signed(value);
        lengths.push(length.ok_or_else(|| format!("the run length {} is below 0", lengths.len()))?);
        (value, n_groups) = (0, 0);
    }
    if n_groups > 0 {
        return Err("the text of run lengths ends within a number".to_owned());
    }
    Ok(lengths)
}

/// The runs of the mask in a picture of this height and width.
pub(super) fn runs(lengths: &[u64], [height, width]: [u64; 2]) -> Result<Vec<Run>, String> {
    let side = |side: u64| u32::try_from(side).ok().filter(|side| (1..=MAX_SIDE).contains(side));
    let (Some(height), Some(width)) = (side(height), side(width)) else {
        return Err(format!("expected a height and width from 1 to {MAX_SIDE}, found {height} x {width}"));
    };
    let n_pixels = u64::from(height) * u64::from(width);
    let wrong = || {
        let sum = lengths.iter().fold(0_u64, |sum, length| sum.saturating_add(*length));
        format!("expected run lengths that sum to {n_pixels} pixels ({height} x {width}), found {sum}")
    };
    let (mut runs, mut at) = (Vec::new(), 0_u64);
    for (number, length) in lengths.iter().enumerate() {
        let end = at.checked_add(*length).filter(|end| *end <= n_pixels).ok_or_else(wrong)?;
        // A run goes on at the top of the next column.
        while number % 2 == 1 && at < end {
            let (x, top) = (at / u64::from(height), at % u64::from(height));
            let bottom = (top + (end - at)).min(u64::from(height));
            at += bottom - top;
            let narrow = |side: u64| u32::try_from(side).unwrap_or(MAX_SIDE);
            push(&mut runs, Run { x: narrow(x), top: narrow(top), bottom: narrow(bottom) });
        }
        at = end;
    }
    if at == n_pixels { Ok(runs) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_pycocotools_are_lengths() {
        // Written by pycocotools for these lengths.
        for (text, expected) in [
            ("", &[][..]),
            ("41202", &[4, 1, 2, 1, 4]),
            ("01YT1<", &[0, 1, 1161, 13]),
            ("01je001", &[0, 1, 698, 1, 699]),
        ] {
            assert_eq!(lengths(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn lengths_that_do_not_fill_the_picture_are_refused() {
        let run = |x, top, bottom| Run { x, top, bottom };
        assert_eq!(runs(&[2, 5, 5], [3, 4]), Ok(vec![run(0, 2, 3), run(1, 0, 3), run(2, 0, 1)]));
        assert_eq!(runs(&[1, 1, 0, 1, 9], [3, 4]), Ok(vec![run(0, 1, 3)]));
        assert_eq!(runs(&[0, 12], [3, 4]).unwrap().len(), 4);
        for (lengths, size, words) in [
            (&[2, 5][..], [3, 4], "expected run lengths that sum to 12 pixels (3 x 4), found 7"),
            (&[2, 11], [3, 4], "found 13"),
            (&[u64::MAX, u64::MAX], [3, 4], "found 18446744073709551615"),
            (&[], [0, 4], "expected a height and width from 1 to 1048576, found 0 x 4"),
            (&[], [3, u64::MAX], "found 3 x 18446744073709551615"),
        ] {
            let error = runs(lengths, size).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn texts_that_are_not_lengths_are_refused() {
        for (text, words) in [
            ("0 1", "the text of run lengths has ' '"),
            ("0\u{e9}", "the text of run lengths has"),
            ("0o", "ends within a number"),
            ("ooooooooooo0", "more than 9 characters"),
            ("O", "the run length 0 is below 0"),
        ] {
            let error = lengths(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
