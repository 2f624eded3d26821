//! Who may import whom.

use crate::source::Token;

/// What each module may use besides itself and [`EVERYONE_MAY_USE`]. A module that is not in this table may not exist.
/// `kernels` is the list and its traits (`src/kernels/mod.rs`); `kernel` is any folder under it.
const TABLE: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("units", &[]),
    ("atomic_file", &[]),
    ("data", &[]),
    ("simd", &[]),
    ("formats", &["data"]),
    ("device", &["data"]),
    ("machine", &["data", "simd", "device"]),
    ("kernels", &["simd", "device", "kernel"]),
    ("kernel", &["kernels", "data", "simd", "device"]),
    ("results", &["machine"]),
    ("gate", &["kernels", "machine", "results"]),
    ("report", &["results"]),
    ("cli", &["data", "simd", "formats", "device", "machine", "kernels", "kernel", "results", "gate", "report"]),
];

/// Open to every module but themselves among each other, where only `error` is.
const EVERYONE_MAY_USE: &[&str] = &["error", "units", "atomic_file"];

/// A command of a kernel speaks through these and reads files, as does a case on real input; the rest of a kernel may only name them in a signature.
const COMMAND_MAY_USE: &[&str] = &["formats"];
const WHAT_A_COMMAND_IS_GIVEN: &[&str] = &["Io", "Progress"];

/// Names at the root of the crate that are not modules, and the module they come from.
const ROOT_NAMES: &[(&str, &str)] = &[("Error", "error"), ("DeviceError", "error"), ("dispatch", "simd")];

/// A path into this crate, from its root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) path: Vec<String>,
    pub(crate) line: usize,
}

/// Every path that begins with `crate` or `super`, in a file that is the module `module`.
pub(crate) fn imports(module: &[&str], tokens: &[Token]) -> Vec<Import> {
    let mut module: Vec<String> = module.iter().map(ToString::to_string).collect();
    let mut braces = Vec::new();
    let mut imports = Vec::new();
    let text = |at: usize| tokens.get(at).map_or("", |token: &Token| token.text.as_str());
    let mut at = 0;
    while at < tokens.len() {
        match text(at) {
            "{" => {
                let inline = at >= 2 && text(at - 2) == "mod";
                if inline {
                    module.push(tokens[at - 1].text.clone());
                }
                braces.push(inline);
            }
            "}" if braces.pop() == Some(true) => drop(module.pop()),
            "crate" | "super"
                if text(at + 1) == "::" && (at == 0 || text(at - 1) != "::") && !visibility(tokens, at) =>
            {
                let mut base = if text(at) == "crate" { Vec::new() } else { module.clone() };
                while text(at) == "super" && text(at + 1) == "::" {
                    base.pop();
                    at += 2;
                }
                if text(at) == "crate" {
                    at += 2;
                }
                at = tree(tokens, at, &base, &mut imports);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    imports
}

/// `pub(in crate::x)` says who may look in; it uses nothing.
fn visibility(tokens: &[Token], at: usize) -> bool {
    at >= 3 && tokens[at - 1].text == "in" && tokens[at - 2].text == "(" && tokens[at - 3].text == "pub"
}

/// Collects the paths of one (possibly braced) path after `base::`, and returns where it ends.
fn tree(tokens: &[Token], mut at: usize, base: &[String], imports: &mut Vec<Import>) -> usize {
    let mut path = base.to_vec();
    let line = tokens.get(at).map_or(0, |token| token.line);
    loop {
        match tokens.get(at).map(|token| token.text.as_str()) {
            Some("{") => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token.text != "}") {
                    let next = tree(tokens, at, &path, imports);
                    at = next.max(at + 1);
                    // What a name is renamed to, and the comma.
                    while tokens.get(at).is_some_and(|token| !["}", ","].contains(&token.text.as_str())) {
                        at += 1;
                    }
                    if tokens.get(at).is_some_and(|token| token.text == ",") {
                        at += 1;
                    }
                }
                return at + 1;
            }
            Some("self") => at += 1,
            Some("*") => {
                path.push("*".into());
                at += 1;
            }
            Some(name) if tokens[at].is_name() => {
                path.push(name.into());
                at += 1;
            }
            _ => break,
        }
        if tokens.get(at).is_none_or(|token| token.text != "::") {
            break;
        }
        at += 1;
    }
    imports.push(Import { path, line });
    at
}

/// Which line of the table a path belongs to: its first segment, but `kernel` for anything inside a kernel's folder.
fn unit<'a>(path: &'a [String], kernels: &[String]) -> Option<&'a str> {
    let first = path.first()?.as_str();
    if let Some((_, module)) = ROOT_NAMES.iter().find(|(name, _)| *name == first) {
        return Some(module);
    }
    let inside = path.get(1).is_some_and(|second| kernels.contains(second));
    Some(if first == "kernels" && inside { "kernel" } else { first })
}

/// Why the module `from` may not import `import`; nothing if it may. `kernels` are the names of the kernels' folders.
pub(crate) fn objection(from: &[&str], import: &Import, kernels: &[String]) -> Option<String> {
    let from: Vec<String> = from.iter().map(ToString::to_string).collect();
    let path = import.path.join("::");
    let (Some(user), Some(used)) = (unit(&from, kernels), unit(&import.path, kernels)) else {
        return Some(format!("names the crate's root (crate::{path}); name the module"));
    };
    let Some((_, may_use)) = TABLE.iter().find(|(module, _)| *module == user) else {
        return Some(format!("module {user} has no line in the table of imports"));
    };
    if !TABLE.iter().any(|(module, _)| *module == used) {
        return Some(format!("crate::{path}: module {used} has no line in the table of imports"));
    }
    let same_kernel = || from.get(1) == import.path.get(1) || from[1] == "chain";
    let allowed = if user == "kernel" && used == "kernel" {
        same_kernel()
    } else if user == used {
        true
    } else if EVERYONE_MAY_USE.contains(&user) {
        used == "error"
    } else {
        EVERYONE_MAY_USE.contains(&used)
            || may_use.contains(&used)
            || (user.starts_with("kernel") && used == "cli" && is_given(import))
            || (user == "kernel"
                && from.iter().any(|file| file == "command" || file == "case")
                && COMMAND_MAY_USE.contains(&used))
    };
    (!allowed).then(|| format!("{} may not use {used} (crate::{path})", from.join("::")))
}

fn is_given(import: &Import) -> bool {
    import.path.get(1).is_some_and(|name| WHAT_A_COMMAND_IS_GIVEN.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tokens;

    fn paths(module: &[&str], source: &str) -> Vec<String> {
        imports(module, &tokens(source)).into_iter().map(|import| import.path.join("::")).collect()
    }

    #[test]
    fn paths_are_found_in_uses_groups_expressions_and_macros() {
        assert_eq!(
            paths(&["gate"], "use crate::kernels::{self, Case, cosine::{rank, simd as fast}};"),
            ["kernels", "kernels::Case", "kernels::cosine::rank", "kernels::cosine::simd"]
        );
        assert_eq!(
            paths(&["gate"], "use crate::{error::Error, formats}; fn f() { crate::units::Bytes(1); }"),
            ["error::Error", "formats", "units::Bytes"]
        );
        assert_eq!(
            paths(&["simd"], "$crate::dispatch!(l, s => f(s)); crate::data::Matrix::<f32>::new()"),
            ["dispatch", "data::Matrix"]
        );
        assert_eq!(paths(&["gate"], "pub(crate) use other::crate_name; pub(in crate::gate) fn f() {}"), [""; 0]);
    }

    #[test]
    fn super_is_resolved_from_the_module_it_stands_in() {
        let module = ["kernels", "cosine", "gpu"];
        assert_eq!(
            paths(&module, "use super::rank; use super::super::spmm::case;"),
            ["kernels::cosine::rank", "kernels::spmm::case"]
        );
        assert_eq!(
            paths(&module, "mod inner { use super::super::simd; } use super::simd;"),
            ["kernels::cosine::simd", "kernels::cosine::simd"]
        );
    }

    fn judged(from: &[&str], source: &str) -> Vec<String> {
        let kernels = ["cosine", "spmm", "chain"].map(String::from);
        imports(from, &tokens(source)).iter().filter_map(|import| objection(from, import, &kernels)).collect()
    }

    #[test]
    fn what_the_table_allows_passes() {
        for (from, source) in [
            (
                &["gate", "plan"][..],
                "use crate::kernels::{Case, KERNELS}; use crate::machine; use crate::results::schema;",
            ),
            (&["kernels", "cosine", "simd"], "use crate::{Error, dispatch, data::Matrix}; use super::rank::rank;"),
            (&["kernels", "cosine", "command"], "use crate::formats::npy; use crate::cli::{Io, Progress};"),
            (&["kernels", "cosine", "command", "answer"], "use crate::formats::RankedLists;"),
            (&["kernels", "chain", "gpu"], "use crate::kernels::spmm::gpu;"),
            (&["kernels"], "static K: &[&dyn Kernel] = &[&cosine::Cosine]; use crate::simd::Level;"),
            (&["atomic_file"], "use crate::error::Error;"),
            (&["cli", "gate"], "use crate::gate::plan; use crate::report; use super::Io;"),
        ] {
            assert_eq!(judged(from, source), [""; 0], "{from:?}");
        }
    }

    #[test]
    fn what_the_table_forbids_is_named_with_both_ends() {
        for (from, source, found) in [
            (&["data", "csr"][..], "use crate::formats::npy;", "data::csr may not use formats (crate::formats::npy)"),
            (
                &["gate"],
                "use crate::kernels::cosine::Metric;",
                "gate may not use kernel (crate::kernels::cosine::Metric)",
            ),
            (&["report"], "use crate::{results, kernels};", "report may not use kernels (crate::kernels)"),
            (&["gate"], "fn f() { crate::cli::run([]) }", "gate may not use cli (crate::cli::run)"),
            (
                &["units"],
                "use crate::atomic_file::AtomicFile;",
                "units may not use atomic_file (crate::atomic_file::AtomicFile)",
            ),
            (
                &["kernels", "cosine", "simd"],
                "use crate::formats;",
                "kernels::cosine::simd may not use formats (crate::formats)",
            ),
            (
                &["kernels", "cosine", "command"],
                "use crate::cli::output::note;",
                "kernels::cosine::command may not use cli (crate::cli::output::note)",
            ),
            (
                &["kernels", "cosine", "gpu"],
                "use super::super::spmm::case;",
                "kernels::cosine::gpu may not use kernel (crate::kernels::spmm::case)",
            ),
            (&["gate"], "use crate::extra::x;", "crate::extra::x: module extra has no line in the table of imports"),
            (&["extra"], "use crate::error::Error;", "module extra has no line in the table of imports"),
            (&["gate"], "use crate::{self};", "names the crate's root (crate::); name the module"),
        ] {
            assert_eq!(judged(from, source), [found]);
        }
        assert!(!judged(&["gate"], "use super::*;").is_empty(), "a glob over the crate's root hides what is used");
    }
}
