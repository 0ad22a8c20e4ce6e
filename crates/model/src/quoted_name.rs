//! Names in SQL texts.

/// Appends a name in backticks. A backtick within the name is doubled.
pub fn push_quoted_name(name: &str, text: &mut String) {
    text.push('`');
    for character in name.chars() {
        text.push(character);
        if character == '`' {
            text.push('`');
        }
    }
    text.push('`');
}

/// The name in backticks. A backtick within the name is doubled.
pub fn quoted_name(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 2);
    push_quoted_name(name, &mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backticks_in_names_are_doubled() {
        assert_eq!(quoted_name("a`b"), "`a``b`");
    }
}
