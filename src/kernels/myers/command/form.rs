//! What is compared with what, as the arguments say it.

use super::arguments::Arguments;
use crate::error::Error;
use crate::formats::StringFormat;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What is compared with what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Form {
    /// One text with every string of a file.
    Pattern(OsString, PathBuf),
    /// Two columns of a file, line by line.
    Pairs(PathBuf),
    /// Every string of one file with every string of another.
    Two(PathBuf, PathBuf),
    /// The strings of a file with each other.
    Within(PathBuf),
}

impl Form {
    pub(super) fn of(arguments: &Arguments) -> Result<Self, Error> {
        let form = Self::named(arguments)?;
        let paths = form.paths();
        if paths.iter().filter(|path| is_stdin(path)).count() > 1 {
            return Err(Error::argument("-", "stdin for one file only", "it twice"));
        }
        // A format that no file takes has been given for nothing, or the extension is wrong.
        if let Some(format) = arguments.format
            && let Some(path) = paths.first().filter(|_| !paths.iter().any(|path| StringFormat::is_open(path)))
            && StringFormat::of(path, None)? != format
        {
            let expected =
                format!("{}, as the extension of {} says", StringFormat::of(path, None)?.name(), path.display());
            return Err(Error::argument(
                "--format",
                expected,
                format!("{} (stdin may hold any format)", format.name()),
            ));
        }
        if arguments.exclude_self && !matches!(form, Self::Two(..)) {
            let found = match form {
                Self::Within(_) => "one file, whose strings are not compared with themselves",
                _ => "one text or pairs",
            };
            return Err(Error::argument("--exclude-self", "two files, A and B", found));
        }
        if !arguments.columns.is_empty() && !matches!(form, Self::Pairs(_) | Self::Two(..)) {
            return Err(Error::argument("--columns", "--pairs or two files; --column for one", "one file"));
        }
        if matches!(form, Self::Pairs(_)) {
            if arguments.column.is_some() {
                return Err(Error::argument("--column", "--columns A,B with --pairs", "one column"));
            }
            if arguments.columns.iter().any(Option::is_none) {
                return Err(Error::argument("--columns", "two with --pairs, A,B", "one column"));
            }
        }
        if arguments.header {
            let formats: Result<Vec<_>, _> =
                paths.iter().map(|path| StringFormat::of(path, arguments.format)).collect();
            let formats = formats?;
            if !formats.iter().any(|format| format.is_table()) {
                let found = formats.iter().map(|format| format.name()).collect::<Vec<_>>().join(" and ");
                return Err(Error::argument("--header", "csv or tsv, whose first line may be one", found));
            }
        }
        Ok(form)
    }

    fn named(arguments: &Arguments) -> Result<Self, Error> {
        if let Some(path) = &arguments.pairs {
            return Ok(Self::Pairs(path.clone()));
        }
        // There is one without --pairs.
        let first = arguments.first.clone().unwrap_or_default();
        if let Some(pattern) = &arguments.pattern {
            return Ok(Self::Pattern(pattern.clone(), first.into()));
        }
        let Some(second) = arguments.second.clone() else {
            if is_file(&first) {
                return Ok(Self::Within(first.into()));
            }
            let expected = "a file (of one text, say also which file to compare it with)";
            return Err(Error::argument("FILE", expected, missing(&first)));
        };
        let is_two = is_file(&first);
        if !is_two && looks_like_a_file(&first) {
            let expected = "a file, or a text that does not look like one (--pattern takes any)";
            return Err(Error::argument("PATTERN", expected, missing(&first)));
        }
        if !is_stdin(&second) && std::fs::metadata(&second).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            return Err(Error::argument("FILE", "a file of strings", missing(second.as_os_str())));
        }
        Ok(if is_two { Self::Two(first.into(), second) } else { Self::Pattern(first, second) })
    }

    pub(super) fn paths(&self) -> Vec<&Path> {
        match self {
            Self::Pattern(_, path) | Self::Pairs(path) | Self::Within(path) => vec![path],
            Self::Two(a, b) => vec![a, b],
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Pattern(..) => "one to many",
            Self::Pairs(_) => "pairs",
            Self::Two(..) => "all pairs",
            Self::Within(_) => "all pairs of one file",
        }
    }

    /// What the arguments were taken for, in words.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Pattern(text, path) => {
                format!("one to many: {text:?} is the text, every string of {} is compared with it", path.display())
            }
            Self::Pairs(path) => format!("pairs: two columns of {}, line by line", path.display()),
            Self::Two(a, b) => {
                let (a, b) = (a.display(), b.display());
                format!("all pairs: every string of {a}, which is a file, with every string of {b}")
            }
            Self::Within(path) => format!("all pairs of one file: the strings of {} with each other", path.display()),
        }
    }
}

fn missing(name: &OsStr) -> String {
    let is = if Path::new(name).is_dir() { "which is a folder" } else { "and there is no such file" };
    format!("{:?}, {is}", name.to_string_lossy())
}

pub(super) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Whether there is something to read under this name.
fn is_file(name: &OsStr) -> bool {
    is_stdin(Path::new(name)) || std::fs::metadata(name).is_ok_and(|metadata| !metadata.is_dir())
}

/// Whether a person who wrote this is likely to have meant a file.
fn looks_like_a_file(name: &OsStr) -> bool {
    let path = Path::new(name);
    let ends = |end: &str| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(end));
    let separated = name.as_encoded_bytes().iter().any(|&byte| std::path::is_separator(char::from(byte)));
    separated || !StringFormat::is_open(path) || ["txt", "gz", "zst"].into_iter().any(ends)
}
