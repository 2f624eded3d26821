//! `lodestar report`: results -> docs/guides/performance.md and its charts.

use super::{Exit, Io, RESULTS, current};
use crate::report::{Page, Settings, differences, render, write};
use crate::results::ledger;
use anyhow::Context;
use serde_json::json;
use std::io::Write;
use std::path::{Component, Path, PathBuf};

/// Render performance.md and its charts from the result files
///
/// Only what stands between the page's two markers is rendered; text outside of them is kept. With --check nothing is
/// written: exit code 1 says that the page, a chart or the ledger of the results is not what it has to be, and each
/// difference is named. Neither needs a GPU.
#[derive(clap::Args)]
#[command(after_long_help = "Examples:\n  lodestar report\n  lodestar report --check")]
pub(super) struct Arguments {
    /// Folder of the result files [default: results]
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// The page; charts go into the folder `charts` beside it
    #[arg(long, value_name = "FILE", default_value = PAGE)]
    page: PathBuf,
    /// Write nothing, fail if anything differs from a fresh render or the ledger is broken
    #[arg(long)]
    check: bool,
}

const PAGE: &str = "docs/guides/performance.md";

pub(super) fn run(arguments: &Arguments, io: &mut Io) -> anyhow::Result<Exit> {
    let records = current::records(arguments.results.as_deref())?;
    let results = arguments.results.as_deref().unwrap_or(Path::new(RESULTS));
    let settings = Settings {
        kernels: current::kernels()?,
        results_link: link(&arguments.page, results)?,
        command: command(arguments),
    };
    let page = render(&records, &settings)?;
    if arguments.check {
        return check(&arguments.page, &page, results, io);
    }
    let changed = write(&arguments.page, &page)?;
    if io.json {
        let summary = json!({
            "page": arguments.page,
            "results": records.len(),
            "charts": page.charts.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            "changed": changed,
        });
        serde_json::to_writer_pretty(&mut io.out, &summary)?;
        writeln!(io.out)?;
        return Ok(0);
    }
    for path in &changed {
        writeln!(io.out, "{}", path.display())?;
    }
    io.note(format_args!(
        "{}: {} results, {} charts, {}",
        arguments.page.display(),
        records.len(),
        page.charts.len(),
        match changed.len() {
            0 => "nothing changed".to_owned(),
            1 => "1 file changed".to_owned(),
            number => format!("{number} files changed"),
        }
    ));
    Ok(0)
}

fn check(path: &Path, page: &Page, results: &Path, io: &mut Io) -> anyhow::Result<Exit> {
    let mut found: Vec<String> = differences(path, page)?.iter().map(ToString::to_string).collect();
    let ledger = results.join(ledger::FILE);
    let faults = if results.exists() { ledger::check(results)? } else { Vec::new() };
    found.extend(faults.iter().map(|fault| format!("{}: {fault}", ledger.display())));
    if io.json {
        serde_json::to_writer_pretty(&mut io.out, &json!({ "page": path, "differences": found }))?;
        writeln!(io.out)?;
    } else {
        for difference in &found {
            writeln!(io.out, "{difference}")?;
        }
    }
    if found.is_empty() {
        io.note(format_args!("{}: as rendered, and the ledger is whole", path.display()));
        return Ok(0);
    }
    io.note("`lodestar report` renders the page; a broken ledger has to be repaired from version control");
    Ok(1)
}

/// The command that renders this page, as it is printed on it.
fn command(arguments: &Arguments) -> String {
    let mut command = "lodestar report".to_owned();
    if let Some(results) = &arguments.results
        && results != Path::new(RESULTS)
    {
        command += &format!(" --results {}", results.display());
    }
    if arguments.page != Path::new(PAGE) {
        command += &format!(" --page {}", arguments.page.display());
    }
    command
}

/// From the folder of `page` to `target`, with `/`.
fn link(page: &Path, target: &Path) -> anyhow::Result<String> {
    let whole = |path: &Path| -> anyhow::Result<Vec<String>> {
        let path = std::path::absolute(path).with_context(|| path.display().to_string())?;
        let mut parts: Vec<String> = Vec::new();
        for part in path.components() {
            match part {
                Component::ParentDir => drop(parts.pop()),
                Component::CurDir => {}
                part => parts.push(part.as_os_str().to_string_lossy().into_owned()),
            }
        }
        Ok(parts)
    };
    let (mut from, to) = (whole(page)?, whole(target)?);
    from.pop();
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = vec!["..".to_owned(); from.len() - common];
    let link = [up, to[common..].to_vec()].concat().join("/");
    Ok(if link.is_empty() { ".".to_owned() } else { link })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_from_the_page_to_the_results() {
        for (page, results, expected) in [
            ("docs/guides/performance.md", "results", "../../results"),
            ("docs/guides/performance.md", "docs/./guides/results", "results"),
            ("performance.md", "results", "results"),
            ("a/b/c.md", "a/b", "."),
            ("a/b/c.md", "a/../d", "../../d"),
        ] {
            assert_eq!(link(Path::new(page), Path::new(results)).unwrap(), expected, "{page} {results}");
        }
    }

    #[test]
    fn the_command_on_the_page_names_what_is_not_usual() {
        let arguments = |results: Option<&str>, page: &str| Arguments {
            results: results.map(PathBuf::from),
            page: PathBuf::from(page),
            check: true,
        };
        assert_eq!(command(&arguments(None, PAGE)), "lodestar report");
        assert_eq!(command(&arguments(Some("results"), PAGE)), "lodestar report");
        assert_eq!(command(&arguments(Some("mine"), "my.md")), "lodestar report --results mine --page my.md");
    }

    /// Runs the command with everything below a folder; gives its exit code and what it printed.
    fn run_in(folder: &Path, check: bool) -> (Exit, String) {
        let printed = folder.join("printed");
        let mut io = Io::new(false, true);
        io.out = Box::new(std::fs::File::create(&printed).unwrap());
        let (results, page) = (Some(folder.join("results")), folder.join("docs/performance.md"));
        let exit = run(&Arguments { results, page, check }, &mut io).unwrap();
        (exit, std::fs::read_to_string(&printed).unwrap())
    }

    /// Results of two runs on a machine with and one without a GPU, in a ledger.
    fn results(folder: &Path) -> Vec<String> {
        use crate::report::fixtures::{CPU_MACHINE, Fixture, GPU_MACHINE};
        use crate::results::schema::Verdict;
        let results = folder.join("results");
        let fail = Fixture::new("cosine", GPU_MACHINE).verdict(Verdict::Fail, Some("below_gate")).record();
        let none = Fixture::new("cosine", CPU_MACHINE).verdict(Verdict::NoGpu, None).record();
        let paths = [fail, none].map(|record| {
            let path = results.join(&record.path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, serde_json::to_string_pretty(&record.result).unwrap()).unwrap();
            ledger::append(&results, &record.path, &record.result.run.ended_utc).unwrap();
            record.path
        });
        paths.to_vec()
    }

    #[test]
    fn a_failed_result_cannot_be_dropped_changed_or_prettified_unnoticed() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let paths = results(folder);
        assert_eq!(run_in(folder, true).0, 1, "there is no page yet");
        let (exit, printed) = run_in(folder, false);
        // The page, two charts of the GPU's machine and one of the other, in two versions.
        assert_eq!((exit, printed.lines().count()), (0, 7), "{printed}");
        assert_eq!(run_in(folder, true), (0, String::new()));
        assert_eq!(run_in(folder, false), (0, String::new()), "nothing to change");

        let page = folder.join("docs/performance.md");
        let text = std::fs::read_to_string(&page).unwrap();
        assert!(text.contains("1.80x [1.74, 1.86]") && text.contains("](../results/"), "{text}");
        std::fs::write(&page, text.replace("1.80x [1.74", "8.80x [1.74")).unwrap();
        let (exit, printed) = run_in(folder, true);
        assert!(exit == 1 && printed.contains("performance.md: line ") && printed.contains("8.80x"), "{printed}");
        std::fs::write(&page, text).unwrap();

        let path = folder.join("results").join(&paths[0]);
        let json = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, json.replace("\"seed\": 42", "\"seed\": 43")).unwrap();
        let (exit, printed) = run_in(folder, true);
        assert!(exit == 1 && printed.contains("ledger.csv: "), "{printed}");
        std::fs::remove_file(&path).unwrap();
        // The page can be rendered without the failure, but the ledger remembers it.
        assert_eq!(run_in(folder, false).0, 0);
        let (exit, printed) = run_in(folder, true);
        assert!(exit == 1 && printed.contains(&paths[0]), "{printed}");
    }
}
