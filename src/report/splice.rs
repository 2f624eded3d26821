//! The page on disk: generated text between two markers, everything outside of them kept; charts in a folder beside it.

use super::Page;
use super::chart::MARK;
use crate::atomic_file::AtomicFile;
use crate::error::Error;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- BEGIN lodestar report -->";
const END: &str = "<!-- END lodestar report -->";

/// What a page starts from when there is none.
const TEMPLATE: &str = "# Performance

Which kernels gain from a GPU, on which machine, from which size on, and which do not. Everything between the two
markers is rendered from the files in `results/`; write outside of them.
";

/// Where what is on disk and a fresh render differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// A page or a chart that is not there.
    Missing {
        /// Which.
        path: PathBuf,
    },
    /// A page or a chart with other content.
    Changed {
        /// Which.
        path: PathBuf,
        /// First line that differs, from 1.
        line: usize,
        /// What a render has there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A chart of an earlier render that no longer belongs to the page.
    LeftOver {
        /// Which.
        path: PathBuf,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { path } => write!(f, "{}: missing", path.display()),
            Self::LeftOver { path } => write!(f, "{}: no longer part of the page", path.display()),
            Self::Changed { path, line, expected, found } => {
                write!(f, "{}: line {line}: expected {expected:?}, found {found:?}", path.display())
            }
        }
    }
}

/// Compares what is on disk with a render.
///
/// # Errors
/// [`Error::File`] for what cannot be read, [`Error::Format`] for a page without its markers.
pub fn differences(path: &Path, page: &Page) -> Result<Vec<Difference>, Error> {
    let mut differences = Vec::new();
    for (path, text) in wanted(path, page)? {
        match read(&path)? {
            None => differences.push(Difference::Missing { path }),
            Some(found) => differences.extend(first_difference(&path, &text, &found)),
        }
    }
    differences.extend(left_over(path, page)?.into_iter().map(|path| Difference::LeftOver { path }));
    Ok(differences)
}

/// Writes the page and its charts, and removes charts that no longer belong to it. Files that are as they should be are not
/// touched. Gives what was written and removed.
///
/// # Errors
/// As [`differences`], and [`Error::File`] for what cannot be written.
pub fn write(path: &Path, page: &Page) -> Result<Vec<PathBuf>, Error> {
    let mut changed = Vec::new();
    let mut wanted = wanted(path, page)?;
    // Charts first: a page never points to one that is not there yet.
    wanted.reverse();
    for (path, text) in wanted {
        if read(&path)?.as_deref() == Some(&text) {
            continue;
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| Error::file(folder, error))?;
        }
        let mut file = AtomicFile::create(&path)?;
        file.write_all(text.as_bytes()).map_err(|error| Error::file(&path, error))?;
        file.commit()?;
        changed.push(path);
    }
    for path in left_over(path, page)? {
        std::fs::remove_file(&path).map_err(|error| Error::file(&path, error))?;
        changed.push(path);
    }
    Ok(changed)
}

/// Every file of the page with its whole text, the page first.
fn wanted(path: &Path, page: &Page) -> Result<Vec<(PathBuf, String)>, Error> {
    let existing = read(path)?.unwrap_or_else(|| TEMPLATE.to_owned());
    let mut files = vec![(path.to_owned(), spliced(path, &existing, &page.text)?)];
    let charts = charts_folder(path);
    files.extend(page.charts.iter().map(|(name, text)| (charts.join(name), text.clone())));
    Ok(files)
}

fn charts_folder(page: &Path) -> PathBuf {
    page.with_file_name("charts")
}

/// The page with `text` between its markers; appended, markers included, where it has none yet.
fn spliced(path: &Path, existing: &str, text: &str) -> Result<String, Error> {
    let block = format!("{BEGIN}\n{}\n{END}", text.trim_end_matches('\n'));
    let begins: Vec<_> = existing.match_indices(BEGIN).map(|(at, _)| at).collect();
    let ends: Vec<_> = existing.match_indices(END).map(|(at, _)| at).collect();
    match (begins.as_slice(), ends.as_slice()) {
        ([], []) if existing == TEMPLATE => Ok(format!("{existing}\n{block}\n")),
        ([begin], [end]) if begin < end => {
            Ok(format!("{}{block}{}", &existing[..*begin], &existing[end + END.len()..]))
        }
        _ => Err(Error::format(
            path,
            "markers",
            format!("{BEGIN} and then {END}, once each"),
            format!("{} and {} of them", begins.len(), ends.len()),
        )),
    }
}

/// Charts in the folder that some render made (they carry its mark) and this one did not.
fn left_over(path: &Path, page: &Page) -> Result<Vec<PathBuf>, Error> {
    let folder = charts_folder(path);
    let names: BTreeMap<&str, ()> = page.charts.iter().map(|(name, _)| (name.as_str(), ())).collect();
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::file(&folder, error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| Error::file(&folder, error))?.path();
        let ours = path.file_name().and_then(|name| name.to_str()).is_some_and(|name| names.contains_key(name));
        let chart = path.extension().is_some_and(|extension| extension == "svg");
        if chart && !ours && read(&path)?.is_some_and(|text| text.contains(MARK)) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// A file's text with `\n` line breaks (a checkout may have changed them); `None` where there is no file.
fn read(path: &Path) -> Result<Option<String>, Error> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.replace("\r\n", "\n"))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file(path, error)),
    }
}

fn first_difference(path: &Path, expected: &str, found: &str) -> Option<Difference> {
    if expected == found {
        return None;
    }
    let (mut expected, mut found) = (expected.split('\n'), found.split('\n'));
    let mut line = 0;
    loop {
        line += 1;
        let (wanted, actual) = (expected.next(), found.next());
        if wanted != actual || wanted.is_none() {
            let excerpt =
                |text: Option<&str>| text.map_or_else(|| "the end".to_owned(), |text| excerpt(text, wanted, actual));
            return Some(Difference::Changed {
                path: path.to_owned(),
                line,
                expected: excerpt(wanted),
                found: excerpt(actual),
            });
        }
    }
}

/// The part of a long line around the first character in which two lines differ.
fn excerpt(text: &str, wanted: Option<&str>, actual: Option<&str>) -> String {
    const LONGEST: usize = 60;
    let pairs = wanted.unwrap_or_default().chars().zip(actual.unwrap_or_default().chars());
    let same = pairs.take_while(|(a, b)| a == b).count();
    text.chars().skip(same.saturating_sub(LONGEST / 3)).take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Page {
        let chart = format!("<svg>{MARK}</svg>\n");
        Page { text: text.into(), charts: vec![("a-light.svg".into(), chart.clone()), ("b-light.svg".into(), chart)] }
    }

    #[test]
    fn a_missing_page_is_made_and_prose_outside_the_markers_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("docs/guides/performance.md");
        assert_eq!(differences(&path, &page("1.00x\n")).unwrap().len(), 3);
        assert_eq!(write(&path, &page("1.00x\n")).unwrap().len(), 3);
        assert_eq!(differences(&path, &page("1.00x\n")).unwrap(), []);
        assert_eq!(write(&path, &page("1.00x\n")).unwrap(), [] as [PathBuf; 0]);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# Performance\n"), "{text}");
        std::fs::write(&path, format!("Mine, before.\n{text}Mine, after.\n")).unwrap();
        write(&path, &page("2.00x\n")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("Mine, before.\n# Performance\n") && text.ends_with("Mine, after.\n"), "{text}");
        assert!(text.contains(&format!("{BEGIN}\n2.00x\n{END}\n")) && !text.contains("1.00x"), "{text}");
    }

    #[test]
    fn one_digit_changed_by_hand_is_found_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("performance.md");
        let page = page("| cosine | 4.98x |\n");
        write(&path, &page).unwrap();
        let text = std::fs::read_to_string(&path).unwrap().replace("4.98x", "5.98x");
        std::fs::write(&path, text).unwrap();
        let found = differences(&path, &page).unwrap();
        let [Difference::Changed { line: 7, expected, found, .. }] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((expected.as_str(), found.as_str()), ("| cosine | 4.98x |", "| cosine | 5.98x |"));
    }

    #[test]
    fn charts_that_are_changed_missing_or_left_over_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("performance.md");
        let page = page("");
        write(&path, &page).unwrap();
        let charts = folder.path().join("charts");
        std::fs::write(charts.join("a-light.svg"), "<svg/>").unwrap();
        std::fs::remove_file(charts.join("b-light.svg")).unwrap();
        std::fs::write(charts.join("old-light.svg"), format!("<svg>{MARK}</svg>")).unwrap();
        std::fs::write(charts.join("drawn-by-hand.svg"), "<svg/>").unwrap();
        let found: Vec<_> = differences(&path, &page).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("a-light.svg: line 1: expected"), "{found:?}");
        assert!(found[1].ends_with("b-light.svg: missing"), "{found:?}");
        assert!(found[2].ends_with("old-light.svg: no longer part of the page"), "{found:?}");
        write(&path, &page).unwrap();
        assert_eq!(differences(&path, &page).unwrap(), []);
        assert!(charts.join("drawn-by-hand.svg").exists() && !charts.join("old-light.svg").exists());
    }

    #[test]
    fn a_page_without_its_markers_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("performance.md");
        for text in
            ["my own page\n", &format!("{END}\n{BEGIN}\n"), &format!("{BEGIN}{BEGIN}{END}"), &format!("x{BEGIN}")]
        {
            std::fs::write(&path, text).unwrap();
            let message = write(&path, &page("")).unwrap_err().to_string();
            assert!(message.contains("performance.md: markers: expected <!-- BEGIN lodestar report -->"), "{message}");
            assert_eq!(&std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn line_breaks_changed_by_a_checkout_are_not_a_difference() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("performance.md");
        write(&path, &page("a\nb\n")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap().replace('\n', "\r\n");
        std::fs::write(&path, text).unwrap();
        assert_eq!(differences(&path, &page("a\nb\n")).unwrap(), []);
    }
}
