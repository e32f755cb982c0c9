//! Text of numbers, without the formatting machinery: that would be a third of the npm package's module.

/// Appends a number in decimal.
pub(crate) fn push_number(text: &mut String, number: u64) {
    let (rest, digit) = (number / 10, number % 10);
    if rest > 0 {
        push_number(text, rest);
    }
    push_digit(text, digit);
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
    let digit = u32::try_from(digit).ok().and_then(|digit| char::from_digit(digit, 16));
    text.push(digit.unwrap_or('0'));
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
