//! The charts: time against size and speed-up against size, one panel per context, in a light and a dark version.
//!
//! Series differ by colour (safe for the colour-blind), dash and marker. Positions are whole pixels and nothing depends on
//! the clock or the system's fonts, so a chart is the same text every time.

mod panel;
mod theme;

use super::judge::Judgement;
use super::sweep::{self, Sweep};
use crate::units::Context;
use panel::Panel;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::prelude::SVGBackend;
use theme::Theme;

/// In every chart's description: by it a render knows the charts of an earlier one.
pub const MARK: &str = "Rendered by lodestar report.";

/// The drawing library refused a chart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("chart {name}: {message}")]
pub struct Error {
    /// File name of the chart.
    pub name: String,
    /// What the library said.
    pub message: String,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// What a chart shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Time of a call against size.
    Time,
    /// Speed-up against size.
    SpeedUp,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::SpeedUp => "speedup",
        }
    }
}

/// The charts of one kernel on one machine: file name and SVG. No speed-up where there was no GPU.
pub(super) fn charts(judgement: &Judgement<'_>) -> Result<Vec<(String, String)>, Error> {
    let mut charts = Vec::new();
    for kind in kinds(judgement) {
        for theme in [&theme::LIGHT, &theme::DARK] {
            let name = file_name(judgement, kind, theme.name);
            let svg = chart(judgement, kind, theme)
                .map_err(|error| Error { name: name.clone(), message: error.to_string() })?;
            charts.push((name, svg));
        }
    }
    Ok(charts)
}

/// Which charts there are for a judgement.
pub(super) fn kinds(judgement: &Judgement<'_>) -> Vec<Kind> {
    let sweep = Sweep::of(judgement);
    let contexts = sweep.contexts();
    let any = |has: &dyn Fn(&Context, u64) -> bool| {
        contexts.iter().any(|context| sweep.sizes(context).into_iter().any(|size| has(context, size)))
    };
    let row = sweep.gate_row();
    let timed = any(&|context, size| sweep.cpu(context, size, row).is_some_and(|timing| timing.median_ns.is_some()));
    let compared = any(&|context, size| sweep.ratio(context, size, row).is_some());
    [(Kind::Time, timed), (Kind::SpeedUp, compared)].into_iter().filter_map(|(kind, is)| is.then_some(kind)).collect()
}

/// `cosine-xeon-123f4241-time-light.svg`; a `+` means something else in an address.
pub(super) fn file_name(judgement: &Judgement<'_>, kind: Kind, theme: &str) -> String {
    let result = judgement.result();
    format!("{}-{}-{}-{theme}.svg", result.kernel, result.machine.machine_id.replace('+', "-"), kind.name())
}

/// What a chart says, in a sentence: its description, and the text shown where it cannot be.
pub(super) fn description(judgement: &Judgement<'_>, kind: Kind) -> String {
    let result = judgement.result();
    let (title, machine, axis) = (&judgement.title, &result.machine.machine_id, &result.protocol.size_axis);
    match kind {
        Kind::Time => format!("{title} on {machine}: time of one call against {axis}, both axes logarithmic"),
        Kind::SpeedUp => format!(
            "{title} on {machine}: time of the CPU arm over time of the GPU arm against {axis}, both axes logarithmic, \
             with lines at 1x, 5x and 10x"
        ),
    }
}

const WIDTH: u32 = 960;
const HEADER: u32 = 104;
const LEFT: u32 = 68;
const RIGHT: u32 = 16;
const GAP: u32 = 14;
/// A line of what stands above a panel, and what is left free below the last one.
const TITLE_LINE: u32 = 16;
const TITLE_GAP: u32 = 6;
const BOTTOM: u32 = 30;
const FOOTER: u32 = 24;

fn columns(panels: usize) -> u32 {
    match panels {
        0 | 1 => 1,
        2 | 4 => 2,
        3 | 5..=9 => 3,
        _ => 4,
    }
}

/// A label in lines of at most so many pixels, broken behind its commas.
fn lines(label: &str, pixels: u32) -> Vec<String> {
    /// Of a character of the font of titles, about.
    const PIXELS: usize = 7;
    let mut lines: Vec<String> = Vec::new();
    for part in label.split_inclusive(", ") {
        match lines.last_mut() {
            Some(line) if (line.len() + part.trim_end().len()) * PIXELS <= pixels as usize => line.push_str(part),
            _ => lines.push(part.to_owned()),
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

fn chart(judgement: &Judgement<'_>, kind: Kind, theme: &Theme) -> Result<String, Box<dyn std::error::Error>> {
    let sweep = Sweep::of(judgement);
    let contexts: Vec<&Context> = sweep.contexts();
    let (own, common) = sweep::split_labels(&contexts);
    let columns = columns(contexts.len());
    let rows = u32::try_from(contexts.len())?.div_ceil(columns);
    let plot_width = (WIDTH - LEFT - RIGHT - GAP * (columns - 1)) / columns;
    let plot_height = match columns {
        1 => 380,
        2 => 280,
        3 => 220,
        _ => 170,
    };
    let titles: Vec<_> = own.iter().map(|label| lines(label, plot_width)).collect();
    let title_height = TITLE_GAP + TITLE_LINE * u32::try_from(titles.iter().map(Vec::len).max().unwrap_or(0).max(1))?;
    let row_height = title_height + plot_height + GAP;
    let height = HEADER + rows * row_height - GAP + BOTTOM + FOOTER;
    let scale = panel::Scale::of(&sweep, &contexts, kind);

    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        root.fill(&theme.background)?;
        header(&root, judgement, kind, &common, theme)?;
        for (index, (context, title)) in contexts.iter().zip(&titles).enumerate() {
            let index = u32::try_from(index)?;
            let (column, row) = (index % columns, index / columns);
            let below = index + columns;
            let panel = Panel {
                sweep,
                context,
                title,
                title_height,
                scale: &scale,
                kind,
                theme,
                left: LEFT + column * (plot_width + GAP),
                top: HEADER + row * row_height,
                width: plot_width,
                height: plot_height,
                // Scales are shared: only the outer panels carry numbers.
                y_labels: column == 0,
                x_labels: below >= u32::try_from(contexts.len())?,
            };
            panel.draw(&root)?;
        }
        let axis = &judgement.result().protocol.size_axis;
        let middle = i32::try_from(LEFT + (WIDTH - LEFT - RIGHT) / 2)?;
        theme.text(&root, axis, (middle, i32::try_from(height - 8)?), theme::Place::Middle, 13, theme.ink)?;
        root.present()?;
    }
    let title = format!("{} on {}", judgement.title, judgement.result().machine.machine_id);
    Ok(described(&svg, &title, &description(judgement, kind)))
}

fn header(root: &Area<'_>, judgement: &Judgement<'_>, kind: Kind, common: &str, theme: &Theme) -> Drawn {
    let result = judgement.result();
    let left = i32::try_from(LEFT)?;
    let what = match kind {
        Kind::Time => "time of one call",
        Kind::SpeedUp => "speed-up, CPU time over GPU time",
    };
    theme.bold(root, &format!("{}: {what}", judgement.title), (left, 32))?;
    let mut parts = vec![result.machine.machine_id.clone(), format!("row {}", result.protocol.gate_row)];
    parts.extend((!common.is_empty()).then(|| common.to_owned()));
    parts.push(match kind {
        Kind::Time => "lower is better; bars are quartiles".to_owned(),
        Kind::SpeedUp => "higher is better; the band is the interval that is judged".to_owned(),
    });
    theme.text(root, &parts.join(" | "), (left, 54), theme::Place::Left, 13, theme.faint)?;
    panel::legend(root, &Sweep::of(judgement), kind, theme, (left, 78))
}

/// The SVG with a title and a description as its first children.
fn described(svg: &str, title: &str, description: &str) -> String {
    let end = svg.find("<svg").and_then(|start| svg[start..].find('>').map(|end| start + end + 1)).unwrap_or(0);
    let (open, rest) = svg.split_at(end);
    format!(
        "{open}\n<title>{}</title>\n<desc>{}. {MARK}</desc>\n{}\n",
        escaped(title),
        escaped(description),
        rest.trim()
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{self, Fixture};
    use super::super::judge::judge;
    use super::*;
    use crate::results::schema::Verdict;

    fn svgs(fixture: &Fixture) -> Vec<(String, String)> {
        let records = [fixture.record()];
        charts(&judge(&records, &fixtures::kernels())[0]).unwrap()
    }

    #[test]
    fn a_gpu_has_two_charts_in_two_versions_and_none_points_outside() {
        let charts = svgs(&Fixture::new("cosine", fixtures::GPU_MACHINE));
        let names: Vec<_> = charts.iter().map(|(name, _)| name.as_str()).collect();
        let expected = ["time-light", "time-dark", "speedup-light", "speedup-dark"];
        let expected = expected.map(|end| format!("cosine-ryzen9-7950x-rtx4090-3fa9c1d2-{end}.svg"));
        assert_eq!(names, expected);
        for (name, svg) in &charts {
            assert!(svg.contains("<title>Tiled cosine + top-k on ") && svg.contains(MARK), "{name}");
            for forbidden in ["currentColor", "<script", "@font-face", "@import", "href", "url("] {
                assert!(!svg.contains(forbidden), "{name}: {forbidden}");
            }
            // The first shape is the background, over the whole picture.
            let shape = svg.split("<rect").nth(1).unwrap();
            assert!(shape.contains("x=\"0\" y=\"0\" width=\"960\""), "{name}: {shape}");
        }
        assert_ne!(charts[0].1, charts[1].1);
    }

    #[test]
    fn without_a_gpu_only_the_cpu_is_drawn() {
        let charts = svgs(&Fixture::new("cosine", fixtures::CPU_MACHINE).verdict(Verdict::NoGpu, None));
        assert_eq!(charts.len(), 2);
        for (name, svg) in &charts {
            assert!(name.contains("-time-") && !svg.contains("GPU") && !svg.contains("kernel only"), "{name}");
            assert!(!svg.contains("speed-up"), "{name}");
        }
    }

    #[test]
    fn a_wrong_result_has_no_ratio_to_draw() {
        let charts = svgs(&Fixture::new("cosine", fixtures::GPU_MACHINE).verdict(Verdict::Invalid, Some("mismatch")));
        assert!(charts.iter().all(|(name, _)| name.contains("-time-")), "{charts:?}");
    }

    #[test]
    fn labels_are_broken_where_they_would_reach_into_the_next_panel() {
        assert!(lines("", 100).is_empty());
        assert_eq!(lines("k 10", 300), ["k 10"]);
        let label = "no cutoff, pairs, pattern_length 8, letters";
        assert_eq!(lines(label, 1_000), [label]);
        assert_eq!(lines(label, 7 * 17), ["no cutoff, pairs,", "pattern_length 8,", "letters"]);
        assert_eq!(lines(label, 7), ["no cutoff,", "pairs,", "pattern_length 8,", "letters"]);
    }

    #[test]
    fn titles_are_escaped_and_come_first() {
        let svg = described("<svg width=\"1\">\n<rect/>\n</svg>\n", "a < b & c", "d > e");
        assert!(svg.starts_with("<svg width=\"1\">\n<title>a &lt; b &amp; c</title>\n<desc>d &gt; e. "), "{svg}");
        assert!(svg.ends_with("<rect/>\n</svg>\n"), "{svg}");
    }
}
