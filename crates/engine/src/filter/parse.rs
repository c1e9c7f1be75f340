//! From text to [`Expression`]: one function for each rule of the grammar.

use super::{Expression, InvalidFilter};

const OPERAND: &str = r#""attributes", "hasPrefix", "NOT", "-" or "(""#;
const STRING: &str = "a string in double quotes";
const ESCAPE: &str = r#"an escape: \uXXXX, \xXX, \OOO, \" or \\"#;

/// Reads the whole text as one expression.
pub(super) fn whole(text: &str) -> Result<Expression, InvalidFilter> {
    let mut parser = Parser { text, at: 0 };
    let expression = parser.chain()?;
    parser.skip_space();
    match parser.rest() {
        "" => Ok(expression),
        _ => Err(parser.expected(r#""AND", "OR" or the end"#)),
    }
}

struct Parser<'t> {
    text: &'t str,
    /// The offset of what is read next. Always at the start of a character.
    at: usize,
}

impl<'t> Parser<'t> {
    fn chain(&mut self) -> Result<Expression, InvalidFilter> {
        let first = self.unary()?;
        let (operator, other) = if self.word("AND") {
            ("AND", "OR")
        } else if self.word("OR") {
            ("OR", "AND")
        } else {
            return Ok(first);
        };
        let mut parts = vec![first, self.unary()?];
        while self.word(operator) {
            parts.push(self.unary()?);
        }
        let at = self.at;
        if self.word(other) {
            return Err(InvalidFilter::Mixed { at });
        }
        Ok(match operator {
            "AND" => Expression::All(parts),
            _ => Expression::Any(parts),
        })
    }

    fn unary(&mut self) -> Result<Expression, InvalidFilter> {
        match self.word("NOT") || self.symbol("-") {
            true => Ok(Expression::Not(Box::new(self.primary()?))),
            false => self.primary(),
        }
    }

    fn primary(&mut self) -> Result<Expression, InvalidFilter> {
        if self.symbol("(") {
            let inner = self.chain()?;
            self.need(")", r#""AND", "OR" or ")""#)?;
            Ok(inner)
        } else if self.word("hasPrefix") {
            self.has_prefix()
        } else if self.word("attributes") {
            self.has_or_compare()
        } else {
            Err(self.expected(OPERAND))
        }
    }

    fn has_or_compare(&mut self) -> Result<Expression, InvalidFilter> {
        if self.symbol(":") {
            return Ok(Expression::Has { key: self.key()? });
        }
        self.need(".", r#"":" or ".""#)?;
        let key = self.key()?;
        let negated = self.symbol("!=");
        if !negated {
            self.need("=", r#""=" or "!=""#)?;
        }
        let value = self.string()?;
        let equals = Expression::Equals { key, value };
        Ok(match negated {
            true => Expression::Not(Box::new(equals)),
            false => equals,
        })
    }

    fn has_prefix(&mut self) -> Result<Expression, InvalidFilter> {
        self.need("(", r#""(""#)?;
        if !self.word("attributes") {
            return Err(self.expected(r#""attributes""#));
        }
        self.need(".", r#"".""#)?;
        let key = self.key()?;
        self.need(",", r#"",""#)?;
        let prefix = self.string()?;
        self.need(")", r#"")""#)?;
        Ok(Expression::HasPrefix { key, prefix })
    }

    fn key(&mut self) -> Result<String, InvalidFilter> {
        self.skip_space();
        if self.rest().starts_with('"') {
            return self.string();
        }
        let is_key = |character: char| {
            character.is_ascii_alphanumeric() || character == '_' || character == '-'
        };
        let end = self.rest().find(|character| !is_key(character));
        let key = &self.rest()[..end.unwrap_or(self.rest().len())];
        if key.is_empty() {
            return Err(self.expected("the key of an attribute, in double quotes if need be"));
        }
        self.at += key.len();
        Ok(key.to_owned())
    }

    fn string(&mut self) -> Result<String, InvalidFilter> {
        if !self.symbol("\"") {
            return Err(self.expected(STRING));
        }
        let mut value = String::new();
        loop {
            let start = self.at;
            match self.next_character() {
                Some('"') => return Ok(value),
                Some('\\') => match self.escaped() {
                    Some(character) => value.push(character),
                    None => {
                        self.at = start;
                        return Err(self.expected(ESCAPE));
                    }
                },
                Some(character) => value.push(character),
                None => return Err(self.expected("a closing double quote")),
            }
        }
    }

    /// The character of an escape, whose backslash has been read.
    fn escaped(&mut self) -> Option<char> {
        match self.next_character()? {
            'u' => self.digits(4, 16),
            'x' => self.digits(2, 16),
            '0'..='7' => {
                self.at -= 1;
                self.digits(3, 8)
            }
            character @ ('"' | '\\') => Some(character),
            _ => None,
        }
    }

    /// The character whose code has exactly `count` digits in `radix`.
    fn digits(&mut self, count: usize, radix: u32) -> Option<char> {
        let digits = self.rest().get(..count)?;
        self.at += count;
        // `from_str_radix` alone would take a sign too.
        match digits.chars().all(|digit| digit.is_digit(radix)) {
            true => char::from_u32(u32::from_str_radix(digits, radix).ok()?),
            false => None,
        }
    }

    /// Reads `word` if it is next and ends there.
    fn word(&mut self, word: &str) -> bool {
        self.skip_space();
        let goes_on =
            |rest: &str| rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_');
        let found = matches!(self.rest().strip_prefix(word), Some(rest) if !goes_on(rest));
        if found {
            self.at += word.len();
        }
        found
    }

    /// Reads `symbol` if it is next.
    fn symbol(&mut self, symbol: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(symbol);
        if found {
            self.at += symbol.len();
        }
        found
    }

    fn need(&mut self, symbol: &str, expected: &'static str) -> Result<(), InvalidFilter> {
        match self.symbol(symbol) {
            true => Ok(()),
            false => Err(self.expected(expected)),
        }
    }

    fn skip_space(&mut self) {
        let rest = self.rest().trim_start_matches([' ', '\t', '\r', '\n']);
        self.at = self.text.len() - rest.len();
    }

    fn next_character(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn expected(&self, expected: &'static str) -> InvalidFilter {
        let at = self.at;
        InvalidFilter::Unexpected { at, expected }
    }
}
