//! The secret of an address.

use std::fmt;
use subtle::ConstantTimeEq as _;

/// A random secret of 128 bits, written in 32 hexadecimal digits.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// A new one, of the system's random numbers.
    ///
    /// # Errors
    /// A system that gives none.
    pub fn random() -> Result<Token, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Whether a text is the token. The time tells nothing of where it differs.
    pub fn is(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a token that is the same each time, or that a beginning of it opens.
    #[test]
    fn only_the_whole_token_is_it() {
        let (token, other) = (Token::random().unwrap(), Token::random().unwrap());
        let text = token.to_string();
        assert_eq!(text.len(), 32);
        assert!(token.is(&text));
        assert!(!token.is(&other.to_string()) && !token.is(&text[..31]) && !token.is(""));
    }
}
