//! Parses a condition. docs/reference/where.md has the grammar.

use std::iter::Peekable;

use super::ConditionError;

/// Maximum nesting of conditions. It is limited because parsing is recursive.
const MAX_DEPTH: usize = 64;

/// A parsed condition.
#[derive(Debug, PartialEq)]
pub(crate) enum Condition {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Test { column: String, test: Test },
}

/// A test of one column.
#[derive(Debug, PartialEq)]
pub(crate) enum Test {
    Compare(Comparison, Value),
    In(Vec<Value>),
    IsNull,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A value in a condition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Integer(i128),
    Float(f64),
    Text(String),
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    /// A name without quotes. Keywords are parsed as names, too.
    Name(String),
    /// A name in double quotes, which is never a keyword.
    Quoted(String),
    Value(Value),
    Comparison(Comparison),
    Open,
    Close,
    Comma,
}

pub(crate) fn condition(text: &str) -> Result<Condition, ConditionError> {
    let tokens = tokens(text)?;
    let mut parser = Parser { text, tokens: tokens.into_iter().peekable(), depth: 0 };
    let condition = parser.any()?;
    match parser.tokens.peek() {
        None => Ok(condition),
        Some(_) => Err(parser.unexpected("`and`, `or` or the end")),
    }
}

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, ConditionError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text.get(at..).and_then(|rest| rest.chars().next()) {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let rest = text.get(at..).unwrap_or_default();
        let (token, len) = token(rest).map_err(|expected| syntax(text, at, expected))?;
        tokens.push((at, token));
        at += len;
    }
    Ok(tokens)
}

/// The token at the start of `rest`, and its length in bytes.
fn token(rest: &str) -> Result<(Token, usize), &'static str> {
    let symbols = [
        ("<=", Token::Comparison(Comparison::LessOrEqual)),
        (">=", Token::Comparison(Comparison::GreaterOrEqual)),
        ("!=", Token::Comparison(Comparison::NotEqual)),
        ("<>", Token::Comparison(Comparison::NotEqual)),
        ("==", Token::Comparison(Comparison::Equal)),
        ("=", Token::Comparison(Comparison::Equal)),
        ("<", Token::Comparison(Comparison::Less)),
        (">", Token::Comparison(Comparison::Greater)),
        ("(", Token::Open),
        (")", Token::Close),
        (",", Token::Comma),
    ];
    if let Some((symbol, token)) = symbols.into_iter().find(|(symbol, _)| rest.starts_with(symbol)) {
        return Ok((token, symbol.len()));
    }
    let len_while = |is_part: fn(char) -> bool| rest.find(|c| !is_part(c)).unwrap_or(rest.len());
    match rest.chars().next() {
        Some('\'') => quoted(rest, '\'').map(|(text, len)| (Token::Value(Value::Text(text)), len)),
        Some('"') => quoted(rest, '"').map(|(name, len)| (Token::Quoted(name), len)),
        Some(c) if c.is_ascii_digit() || "+-.".contains(c) => {
            let len = len_while(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
            let value = number(rest.get(..len).unwrap_or_default()).ok_or("a number")?;
            Ok((Token::Value(value), len))
        }
        Some(c) if is_name(c) => {
            let len = len_while(is_name);
            Ok((Token::Name(rest.get(..len).unwrap_or_default().to_owned()), len))
        }
        _ => Err("a column, a value or an operator"),
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || "_.".contains(c)
}

fn number(text: &str) -> Option<Value> {
    let float = || text.parse().ok().filter(|value: &f64| value.is_finite()).map(Value::Float);
    text.parse().ok().map(Value::Integer).or_else(float)
}

/// The quoted text at the start of `rest`, and its length including the quotes. A doubled quote stands for one quote.
fn quoted(rest: &str, quote: char) -> Result<(String, usize), &'static str> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return Ok((text, at + 1));
        }
        text.push(c);
    }
    Err("a closing quote")
}

fn syntax(text: &str, at: usize, expected: &'static str) -> ConditionError {
    let (before, rest) = text.split_at_checked(at).unwrap_or((text, ""));
    let found: String = rest.chars().take(20).collect();
    let found = if found.is_empty() { "the end".to_owned() } else { format!("`{found}`") };
    ConditionError::Syntax { at: before.chars().count() + 1, expected, found }
}

struct Parser<'a, I: Iterator<Item = (usize, Token)>> {
    text: &'a str,
    tokens: Peekable<I>,
    depth: usize,
}

impl<I: Iterator<Item = (usize, Token)>> Parser<'_, I> {
    fn any(&mut self) -> Result<Condition, ConditionError> {
        let mut parts = vec![self.all()?];
        while self.keyword("or") {
            parts.push(self.all()?);
        }
        Ok(one_of(parts, Condition::Any))
    }

    fn all(&mut self) -> Result<Condition, ConditionError> {
        let mut parts = vec![self.not()?];
        while self.keyword("and") {
            parts.push(self.not()?);
        }
        Ok(one_of(parts, Condition::All))
    }

    fn not(&mut self) -> Result<Condition, ConditionError> {
        if self.depth == MAX_DEPTH {
            return Err(self.unexpected("at most 64 nested conditions"));
        }
        self.depth += 1;
        let condition = if self.keyword("not") {
            self.not().map(|inner| Condition::Not(Box::new(inner)))
        } else if self.symbol(&Token::Open) {
            self.any().and_then(|inner| self.expect(&Token::Close, "`)`").map(|()| inner))
        } else {
            self.test()
        };
        self.depth -= 1;
        condition
    }

    fn test(&mut self) -> Result<Condition, ConditionError> {
        let is_column = |token: &Token| match token {
            Token::Name(name) => !["and", "or", "not", "in", "is", "null"].contains(&name.to_lowercase().as_str()),
            other => matches!(other, Token::Quoted(_)),
        };
        let column = match self.tokens.next_if(|(_, token)| is_column(token)) {
            Some((_, Token::Name(name) | Token::Quoted(name))) => name,
            _ => return Err(self.unexpected("a column")),
        };
        let (is_negated, test) = self.test_of_column()?;
        let test = Condition::Test { column, test };
        Ok(if is_negated { Condition::Not(Box::new(test)) } else { test })
    }

    /// The part of a test after the column name, and whether the test is negated.
    fn test_of_column(&mut self) -> Result<(bool, Test), ConditionError> {
        if self.keyword("is") {
            let is_negated = self.keyword("not");
            return match self.keyword("null") {
                true => Ok((is_negated, Test::IsNull)),
                false => Err(self.unexpected("`null`")),
            };
        }
        let is_negated = self.keyword("not");
        if self.keyword("in") {
            return Ok((is_negated, Test::In(self.list()?)));
        }
        match self.tokens.next_if(|(_, token)| !is_negated && matches!(token, Token::Comparison(_))) {
            Some((_, Token::Comparison(comparison))) => Ok((false, Test::Compare(comparison, self.value()?))),
            _ if is_negated => Err(self.unexpected("`in`")),
            _ => Err(self.unexpected("=, !=, <, <=, >, >=, `in` or `is null`")),
        }
    }

    fn list(&mut self) -> Result<Vec<Value>, ConditionError> {
        self.expect(&Token::Open, "`(`")?;
        let mut values = vec![self.value()?];
        while self.symbol(&Token::Comma) {
            values.push(self.value()?);
        }
        self.expect(&Token::Close, "`,` or `)`")?;
        Ok(values)
    }

    fn value(&mut self) -> Result<Value, ConditionError> {
        if self.keyword("true") {
            return Ok(Value::Integer(1));
        }
        if self.keyword("false") {
            return Ok(Value::Integer(0));
        }
        match self.tokens.next_if(|(_, token)| matches!(token, Token::Value(_))) {
            Some((_, Token::Value(value))) => Ok(value),
            _ => Err(self.unexpected("a number, or a string in single quotes")),
        }
    }

    fn keyword(&mut self, word: &str) -> bool {
        let is_word = |token: &Token| matches!(token, Token::Name(name) if name.eq_ignore_ascii_case(word));
        self.tokens.next_if(|(_, token)| is_word(token)).is_some()
    }

    fn symbol(&mut self, symbol: &Token) -> bool {
        self.tokens.next_if(|(_, token)| token == symbol).is_some()
    }

    fn expect(&mut self, symbol: &Token, name: &'static str) -> Result<(), ConditionError> {
        if self.symbol(symbol) { Ok(()) } else { Err(self.unexpected(name)) }
    }

    fn unexpected(&mut self, expected: &'static str) -> ConditionError {
        let at = self.tokens.peek().map_or(self.text.len(), |(at, _)| *at);
        syntax(self.text, at, expected)
    }
}

/// The only condition, or all conditions joined by `join`.
fn one_of(mut parts: Vec<Condition>, join: fn(Vec<Condition>) -> Condition) -> Condition {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            join(parts)
        }
        None => join(parts),
    }
}
