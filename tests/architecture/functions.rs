//! Functions generic over the SIMD level must be inlined into the level's code, or they run as scalar code with calls.
//! The compiler does not warn. A seldom-taken path may leave the level on purpose, and says so: `#[inline(never)]`.

use crate::source::{Token, attribute, matching};

/// Functions with a body that are generic over `Simd` (themselves or through their `impl`) and carry none of `#[simd]`,
/// `#[inline(always)]` and `#[inline(never)]`: name and line.
pub(crate) fn undecided(tokens: &[Token]) -> Vec<(String, usize)> {
    let text = |at: usize| tokens.get(at).map_or("", |token: &Token| token.text.as_str());
    let names_simd = |range: std::ops::Range<usize>| range.into_iter().any(|at| text(at) == "Simd");
    let mut found = Vec::new();
    let mut generic_until = 0;
    let mut decided = false;
    let mut at = 0;
    while at < tokens.len() {
        if let Some(end) = attribute(tokens, at) {
            decided |= decides(&tokens[at..end]);
            at = end;
            continue;
        }
        match text(at) {
            "impl" | "trait" if text(at + 1) == "<" || text(at) == "trait" => {
                let open = header_end(tokens, at);
                // `impl<..> Simd for X` implements the level itself; only the parameters and the `where` count.
                if text(at) == "impl" && names_simd(at..end_of_generics(tokens, at + 1)) {
                    generic_until = generic_until.max(matching(tokens, open));
                }
                decided = false;
                at = open;
            }
            "fn" if tokens.get(at + 1).is_some_and(Token::is_name) => {
                let end = header_end(tokens, at);
                let generic = names_simd(at + 2..end) || at < generic_until;
                if generic && !decided && text(end) == "{" {
                    found.push((tokens[at + 1].text.clone(), tokens[at].line));
                }
                decided = false;
                at = end;
            }
            // What may stand between an attribute and the `fn` it belongs to.
            "pub" | "(" | ")" | "crate" | "super" | "const" | "unsafe" | "extern" => {}
            _ => decided = false,
        }
        at += 1;
    }
    found
}

fn decides(attribute: &[Token]) -> bool {
    let names: Vec<_> = attribute.iter().filter(|token| token.is_name()).map(|token| token.text.as_str()).collect();
    names == ["simd"]
        || names == ["inline", "always"]
        || names == ["inline", "never"]
        || names.ends_with(&["simd", "simd"])
}

/// Where the body or the semicolon of the item at `at` is.
fn header_end(tokens: &[Token], mut at: usize) -> usize {
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            "{" | ";" => break,
            "(" | "[" => at = matching(tokens, at),
            _ => at += 1,
        }
    }
    at
}

/// One past the `>` that closes the `<` at `open`.
fn end_of_generics(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "<" => depth += 1,
            ">" => depth = depth.saturating_sub(1),
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
    use crate::source::tokens;

    fn names(source: &str) -> Vec<String> {
        undecided(&tokens(source)).into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn a_marked_function_passes() {
        let source = "#[simd] fn a<S: Simd>(s: S) {} #[inline(always)] pub(crate) fn b<S>(s: S) where S: Simd {}
            #[simd] #[expect(clippy::x, reason = \"y\")] fn c(s: impl Simd) -> u32 { 1 }
            #[crate::simd::simd] fn d<S: Simd>() {} #[cold] #[inline(never)] fn n<S: Simd>() {} fn e(level: Level) {} trait T { fn f<S: Simd>(s: S); }
            impl<S: Simd> X<S> { #[inline(always)] fn g(&self) {} #[simd] pub fn h(&self) {} }
            impl Y { fn i(&self) { match v { Variant::Simd { threads } => 1 } } }";
        assert_eq!(names(source), [""; 0]);
    }

    #[test]
    fn an_unmarked_function_is_found_wherever_its_bound_stands() {
        assert_eq!(names("fn a<S: Simd>(s: S) {}"), ["a"]);
        assert_eq!(names("#[inline] pub fn a<'x, S: Copy + Simd, F: Fn(u8) -> u8>(s: S) {}"), ["a"]);
        assert_eq!(names("fn a<S>(s: S) -> u8 where S: Simd { 1 }"), ["a"]);
        assert_eq!(names("fn a(s: impl Simd) {}"), ["a"]);
        assert_eq!(names("impl<S: Simd> X<S> { #[simd] fn a(&self) {} fn b(&self) {} } fn c() {}"), ["b"]);
    }

    #[test]
    fn a_mark_belongs_to_the_next_function_only() {
        assert_eq!(names("#[simd] fn a<S: Simd>(s: S) {} fn b<S: Simd>(s: S) {}"), ["b"]);
        assert_eq!(names("#[inline(always)] struct X; fn b<S: Simd>(s: S) {}"), ["b"]);
    }
}
