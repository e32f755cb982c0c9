//! Text of numbers, without the formatting machinery: that would be a third of the npm package's module.

use alloc::string::String;

/// What is before the first such byte, and what after it.
pub(crate) fn cut(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let (before, rest) = bytes.split_at_checked(bytes.iter().position(|byte| *byte == at)?)?;
    Some((before, rest.split_first()?.1))
}

/// As [`cut`], of a text and one of the characters of ASCII.
pub(crate) fn cut_text(text: &str, at: u8) -> Option<(&str, &str)> {
    let (before, rest) = text.split_at_checked(text.bytes().position(|byte| byte == at)?)?;
    Some((before, rest.split_at_checked(1)?.1))
}

/// The parts of a text, of which the last may hold the separator; how many there are.
pub(crate) fn parts<const N: usize>(text: &str, at: u8) -> ([&str; N], usize) {
    let mut parts = [""; N];
    let (mut left, mut count) = (Some(text), 0_usize);
    for part in &mut parts {
        let Some(text) = left else { break };
        count = count.saturating_add(1);
        let cut = if count < N { cut_text(text, at) } else { None };
        (*part, left) = cut.map_or((text, None), |(before, after)| (before, Some(after)));
    }
    (parts, count)
}

/// A number in plain decimal digits: sixteen at most, so that no sum overflows.
pub(crate) fn digits(text: &str) -> Option<u64> {
    let add = |sum: u64, byte: u8| {
        let digit = u64::from(byte).wrapping_sub(u64::from(b'0'));
        (digit < 10).then(|| sum.wrapping_mul(10).wrapping_add(digit))
    };
    text.bytes().try_fold(0, add).filter(|_| (1..=16).contains(&text.len()))
}

/// Appends a number in decimal.
pub(crate) fn push_number(text: &mut String, number: u64) {
    let (rest, digit) = (number / 10, number % 10);
    if rest > 0 {
        push_number(text, rest);
    }
    push_digit(text, digit);
}

/// Appends numbers with commas between them.
pub(crate) fn push_numbers(text: &mut String, numbers: &[u64]) {
    for (index, number) in numbers.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        push_number(text, *number);
    }
}

/// Appends a number in lower-case hexadecimal, without leading zeros.
pub(crate) fn push_hex(text: &mut String, number: u64) {
    let (rest, digit) = (number / 16, number % 16);
    if rest > 0 {
        push_hex(text, rest);
    }
    push_digit(text, digit);
}

fn push_digit(text: &mut String, digit: u64) {
    let digits = b"0123456789abcdef";
    text.push(digits.get(digit as usize).map_or('0', |digit| char::from(*digit)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_the_standard_library_writes_them() {
        for number in [0, 9, 10, 15, 16, 255, 256, 1_000_000, u64::MAX] {
            let (mut decimal, mut hex) = (String::new(), String::new());
            push_number(&mut decimal, number);
            push_hex(&mut hex, number);
            assert_eq!((decimal, hex), (number.to_string(), format!("{number:x}")));
        }
    }
}
