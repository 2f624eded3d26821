//! Rust source as a list of tokens: comments gone, literals emptied, test-only items cut out.
//!
//! No parser is needed for what the rules look at (paths, signatures, attributes), so none is pulled in.

/// One token and the line it stands on, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
}

impl Token {
    pub(crate) fn is_name(&self) -> bool {
        self.text.starts_with(|first: char| first == '_' || first.is_alphabetic())
    }
}

/// A source without its test-only items, and the modules in other files that were declared test-only.
pub(crate) struct Shipped {
    pub(crate) tokens: Vec<Token>,
    pub(crate) test_modules: Vec<String>,
}

/// Splits source text into tokens. `::`, `->` and `=>` are one token each; a string or character literal becomes `""`.
pub(crate) fn tokens(source: &str) -> Vec<Token> {
    let text: Vec<char> = source.chars().collect();
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < text.len() {
        let start = at;
        let kind = match text[at] {
            '/' if text.get(at + 1) == Some(&'/') => {
                at = position(&text, at, |c| c == '\n');
                continue;
            }
            '/' if text.get(at + 1) == Some(&'*') => {
                at = end_of_block_comment(&text, at);
                None
            }
            '"' => {
                at = end_of_string(&text, at + 1);
                Some(String::from("\"\""))
            }
            '\'' if is_character(&text, at) => {
                at = if text[at + 1] == '\\' { position(&text, at + 3, |c| c == '\'') + 1 } else { at + 3 };
                Some(String::from("\"\""))
            }
            c if c == '_' || c.is_alphanumeric() => {
                at = position(&text, at, |c| c != '_' && !c.is_alphanumeric());
                let name: String = text[start..at].iter().collect();
                match (name.as_str(), text.get(at)) {
                    ("r" | "br" | "cr", Some('"' | '#')) if raw_string(&text, at).is_some() => {
                        at = raw_string(&text, at).unwrap_or(text.len());
                        Some(String::from("\"\""))
                    }
                    ("b" | "c", Some('"')) => {
                        at = end_of_string(&text, at + 1);
                        Some(String::from("\"\""))
                    }
                    _ => Some(name),
                }
            }
            c if c.is_whitespace() => {
                at += 1;
                None
            }
            c => {
                let pair = text.get(at + 1).map(|&next| (c, next));
                at += if matches!(pair, Some((':', ':') | ('-', '>') | ('=', '>'))) { 2 } else { 1 };
                Some(text[start..at].iter().collect())
            }
        };
        tokens.extend(kind.map(|text| Token { text, line }));
        line += text[start..at.min(text.len())].iter().filter(|&&c| c == '\n').count();
    }
    tokens
}

fn position(text: &[char], from: usize, found: impl Fn(char) -> bool) -> usize {
    (from..text.len()).find(|&at| found(text[at])).unwrap_or(text.len())
}

fn end_of_block_comment(text: &[char], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0);
    while at < text.len() {
        match (text[at], text.get(at + 1)) {
            ('/', Some('*')) => (at, depth) = (at + 2, depth + 1),
            ('*', Some('/')) => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn end_of_string(text: &[char], mut at: usize) -> usize {
    while at < text.len() && text[at] != '"' {
        at += if text[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// The end of the raw string whose hashes or quote begin at `at`; `None` for a raw name such as `r#type`.
fn raw_string(text: &[char], at: usize) -> Option<usize> {
    let open = position(text, at, |c| c != '#');
    let hashes = open - at;
    if text.get(open) != Some(&'"') {
        return None;
    }
    (open + 1..text.len()).find_map(|end| {
        let closes = text[end] == '"' && text[end + 1..].iter().take(hashes).filter(|&&c| c == '#').count() == hashes;
        closes.then_some(end + 1 + hashes)
    })
}

/// Whether a quote begins a character and not a lifetime.
fn is_character(text: &[char], at: usize) -> bool {
    text.get(at + 1) == Some(&'\\') || text.get(at + 2) == Some(&'\'')
}

/// Cuts out every item under `#[cfg(test)]` (and `#[cfg(all(test, ..))]`).
pub(crate) fn shipped(tokens: &[Token]) -> Shipped {
    let mut shipped = Shipped { tokens: Vec::new(), test_modules: Vec::new() };
    let mut at = 0;
    while at < tokens.len() {
        match attribute(tokens, at) {
            Some(end) if is_test_attribute(&tokens[at..end]) => {
                let item_end = end_of_item(tokens, end);
                let item = &tokens[end..item_end];
                if let Some(place) = item.iter().position(|token| token.text == "mod")
                    && item.last().is_some_and(|token| token.text == ";")
                {
                    shipped.test_modules.extend(item.get(place + 1).map(|name| name.text.clone()));
                }
                at = item_end;
            }
            _ => {
                shipped.tokens.push(tokens[at].clone());
                at += 1;
            }
        }
    }
    shipped
}

/// The end of the outer attribute that begins at `at`.
pub(crate) fn attribute(tokens: &[Token], at: usize) -> Option<usize> {
    (tokens.get(at)?.text == "#" && tokens.get(at + 1)?.text == "[").then(|| matching(tokens, at + 1))
}

fn is_test_attribute(attribute: &[Token]) -> bool {
    let has = |name: &str| attribute.iter().any(|token| token.text == name);
    has("cfg") && has("test") && !has("not")
}

fn end_of_item(tokens: &[Token], mut at: usize) -> usize {
    while let Some(end) = attribute(tokens, at) {
        at = end;
    }
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            ";" => return at + 1,
            "{" => return matching(tokens, at),
            "(" | "[" => at = matching(tokens, at),
            _ => at += 1,
        }
    }
    at
}

/// One past the bracket that closes the one at `open`.
pub(crate) fn matching(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<String> {
        tokens(source).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_and_literals_hold_no_tokens() {
        let source = "a /* x /* y */ z */ \"b \\\" c\" 'd' '\\n' r#\"e \" f\"# br\"g\" b'h' // i\n j<'k>::r#type";
        let expected = ["a", "\"\"", "\"\"", "\"\"", "\"\"", "\"\"", "b", "\"\"", "j", "<", "'", "k", ">", "::"];
        assert_eq!(texts(source)[..expected.len()], expected);
    }

    #[test]
    fn lines_are_counted_through_comments_and_strings() {
        let lines: Vec<_> = tokens("/* 1\n2 */ a\n\"3\n4\" b\n// c\nd").iter().map(|token| token.line).collect();
        assert_eq!(lines, [2, 3, 4, 6]);
    }

    #[test]
    fn test_only_items_are_cut_out_and_nothing_else() {
        let source = "fn a() {} #[cfg(test)] #[path = \"x\"] mod tests { fn b() { {} } } fn c() -> [u8; 2] { [1, 2] }
            #[cfg(all(test, unix))] use d::e; #[cfg(test)] mod f; #[cfg(not(test))] mod g;";
        let shipped = shipped(&tokens(source));
        let names: Vec<_> = shipped.tokens.iter().filter(|token| token.is_name()).map(|t| t.text.as_str()).collect();
        assert_eq!(names, ["fn", "a", "fn", "c", "u8", "cfg", "not", "test", "mod", "g"]);
        assert_eq!(shipped.test_modules, ["f"]);
    }
}
