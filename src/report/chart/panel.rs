//! One panel: one context, either kind of chart.

use super::super::numbers;
use super::super::sweep::Sweep;
use super::theme::{Place, Theme};
use super::{Area, Drawn, Kind};
use crate::results::schema::{TimingRow, Verdict};
use crate::units::{Context, Nanos};
use plotters::chart::{ChartBuilder, LabelAreaPosition};
use plotters::coord::combinators::{BindKeyPoints, IntoLogRange};
use plotters::element::{Circle, Cross, DashedPathElement, PathElement, Polygon, Rectangle, TriangleMarker};
use plotters::style::{Color, RGBColor, ShapeStyle};

/// Speed-ups that have a line of their own in every chart.
const LEVELS: [f64; 3] = [1.0, 5.0, 10.0];

/// Opacity of the shade over a crossover.
const SHADE: f64 = 0.25;

/// Both axes, shared by all panels of a chart.
pub(super) struct Scale {
    x: (f64, f64),
    y: (f64, f64),
    x_ticks: Vec<f64>,
    y_ticks: Vec<f64>,
}

impl Scale {
    pub(super) fn of(sweep: &Sweep<'_>, contexts: &[&Context], kind: Kind) -> Self {
        let sizes: Vec<f64> =
            contexts.iter().flat_map(|context| sweep.sizes(context)).map(|size| size as f64).collect();
        let values: Vec<f64> = match kind {
            Kind::Time => contexts
                .iter()
                .flat_map(|context| Series::ALL.iter().flat_map(|series| series.points(*sweep, context)))
                .filter_map(|(_, timing)| timing.median_ns)
                .map(|ns| ns as f64)
                .collect(),
            Kind::SpeedUp => {
                let rows = [sweep.gate_row(), sweep.other_row()];
                let ratios = contexts.iter().flat_map(|context| {
                    let sizes = sweep.sizes(context);
                    sizes.into_iter().flat_map(move |size| rows.map(|row| sweep.ratio(context, size, row)))
                });
                // Always from below 1x to above 10x, so that charts can be compared.
                ratios.flatten().flat_map(|ratio| [ratio.lo, ratio.hi]).chain([0.8, 11.0]).collect()
            }
        };
        let (x, y) = (range(&sizes, 1.25), range(&values, 1.3));
        let x_ticks = ticks(x, 2);
        let y_ticks = ticks(y, if kind == Kind::Time { 3 } else { 4 });
        Self { x, y, x_ticks, y_ticks }
    }
}

/// Smallest and largest value, with some room.
fn range(values: &[f64], room: f64) -> (f64, f64) {
    let positive = || values.iter().copied().filter(|value| *value > 0.0);
    let lo = positive().fold(f64::INFINITY, f64::min);
    let hi = positive().fold(0.0, f64::max);
    if lo > hi { (1.0, 10.0) } else { (lo / room, hi * room) }
}

/// Powers of ten in a range; with 2 and 5 times each where those are fewer than `enough`.
fn ticks((lo, hi): (f64, f64), enough: usize) -> Vec<f64> {
    let inside = |steps: &[f64]| -> Vec<f64> {
        let powers = (-6..16).map(|power| 10_f64.powi(power));
        let all = powers.flat_map(|power| steps.iter().map(move |step| step * power));
        all.filter(|value| (lo..=hi).contains(value)).collect()
    };
    let decades = inside(&[1.0]);
    if decades.len() >= enough { decades } else { inside(&[1.0, 2.0, 5.0]) }
}

/// A line of the time chart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Series {
    Cpu,
    OneThread,
    Gpu,
    KernelOnly,
}

impl Series {
    const ALL: [Self; 4] = [Self::OneThread, Self::KernelOnly, Self::Cpu, Self::Gpu];

    fn points<'a>(self, sweep: Sweep<'a>, context: &Context) -> Vec<(u64, &'a TimingRow)> {
        let row = sweep.gate_row();
        let point = |size: u64| {
            let timing = match self {
                Self::Cpu => sweep.cpu(context, size, row),
                Self::OneThread => sweep.one_thread(context, size, row),
                Self::Gpu => sweep.gpu(context, size, row),
                Self::KernelOnly => sweep.gpu(context, size, "kernel_only"),
            };
            timing.filter(|timing| timing.median_ns.is_some_and(|ns| ns > 0)).map(|timing| (size, timing))
        };
        sweep.sizes(context).into_iter().filter_map(point).collect()
    }

    fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU best",
            Self::OneThread => "CPU, 1 thread",
            Self::Gpu => "GPU, transfers included",
            Self::KernelOnly => "GPU kernel only (not a gate)",
        }
    }

    fn color(self, theme: &Theme) -> RGBColor {
        match self {
            Self::Cpu => theme.cpu,
            Self::OneThread => theme.one_thread,
            Self::Gpu => theme.gpu,
            Self::KernelOnly => theme.kernel,
        }
    }

    /// Length of dash and gap; `None` is a solid line.
    fn dash(self) -> Option<(u32, u32)> {
        match self {
            Self::Cpu | Self::Gpu => None,
            Self::OneThread => Some((2, 4)),
            Self::KernelOnly => Some((7, 5)),
        }
    }

    fn marker(self) -> Marker {
        match self {
            Self::Cpu => Marker::Disc,
            Self::OneThread => Marker::Square,
            Self::Gpu => Marker::Triangle,
            Self::KernelOnly => Marker::Ring,
        }
    }
}

#[derive(Clone, Copy)]
enum Marker {
    Disc,
    Ring,
    Square,
    Triangle,
    Cross,
    /// The shade of a crossover.
    Shade,
}

impl Marker {
    /// Draws it at a pixel.
    fn draw(self, root: &Area<'_>, at: (i32, i32), color: RGBColor, theme: &Theme) -> Drawn {
        let (x, y) = at;
        match self {
            Self::Disc => root.draw(&Circle::new(at, 4, color.filled()))?,
            Self::Ring => {
                root.draw(&Circle::new(at, 4, theme.plot.filled()))?;
                root.draw(&Circle::new(at, 4, color.stroke_width(2)))?;
            }
            Self::Square => root.draw(&Rectangle::new([(x - 3, y - 3), (x + 3, y + 3)], color.filled()))?,
            Self::Triangle => root.draw(&TriangleMarker::new(at, 6, color.filled()))?,
            Self::Shade => {
                root.draw(&Rectangle::new([(x - 5, y - 8), (x + 5, y + 8)], color.mix(SHADE).filled()))?;
            }
            Self::Cross => root.draw(&Cross::new(at, 5, color.stroke_width(3)))?,
        }
        Ok(())
    }
}

/// A panel and its place in pixels; `left`, `top` are those of the plot and its title.
pub(super) struct Panel<'a> {
    pub(super) sweep: Sweep<'a>,
    pub(super) context: &'a Context,
    /// What stands above it, line by line, and the height of that.
    pub(super) title: &'a [String],
    pub(super) title_height: u32,
    pub(super) scale: &'a Scale,
    pub(super) kind: Kind,
    pub(super) theme: &'a Theme,
    pub(super) left: u32,
    pub(super) top: u32,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) y_labels: bool,
    pub(super) x_labels: bool,
}

impl Panel<'_> {
    pub(super) fn draw(&self, root: &Area<'_>) -> Drawn {
        let theme = self.theme;
        let (left, top) = (i32::try_from(self.left)?, i32::try_from(self.top)?);
        for (line, from_top) in self.title.iter().zip((1_u32..).map(|line| line * super::TITLE_LINE)) {
            theme.text(root, line, (left, top + i32::try_from(from_top)?), Place::Left, 13, theme.ink)?;
        }
        let plot_top = self.top + self.title_height;
        // Room for the numbers is taken outside of the plot, so that all plots are of one size.
        let (y_room, x_room) = (if self.y_labels { 62 } else { 0 }, if self.x_labels { 26 } else { 0 });
        let area = root.clone().shrink((self.left - y_room, plot_top), (self.width + y_room, self.height + x_room));
        let (x, y) = (self.scale.x, self.scale.y);
        let x_axis = (x.0..x.1).log_scale().with_key_points(self.scale.x_ticks.clone());
        let y_axis = (y.0..y.1).log_scale().with_key_points(self.scale.y_ticks.clone());
        let mut chart = ChartBuilder::on(&area)
            .set_label_area_size(LabelAreaPosition::Left, y_room)
            .set_label_area_size(LabelAreaPosition::Bottom, x_room)
            .build_cartesian_2d(x_axis, y_axis)?;
        chart.plotting_area().fill(&theme.plot)?;
        let kind = self.kind;
        chart
            .configure_mesh()
            .x_labels(self.scale.x_ticks.len())
            .y_labels(self.scale.y_ticks.len())
            .max_light_lines(0)
            .bold_line_style(theme.grid.stroke_width(1))
            .axis_style(theme.line.stroke_width(1))
            .label_style(theme.style(12, theme.faint))
            .x_label_formatter(&|size| numbers::short(whole(*size)))
            .y_label_formatter(&|value| match kind {
                Kind::Time => tick_of_time(*value),
                Kind::SpeedUp => format!("{value}x"),
            })
            .draw()?;
        let at = |x: f64, y: f64| chart.plotting_area().map_coordinate(&(x, y));
        match self.kind {
            Kind::Time => self.draw_times(root, at),
            Kind::SpeedUp => self.draw_ratios(root, at),
        }
    }

    fn draw_times(&self, root: &Area<'_>, at: impl Fn(f64, f64) -> (i32, i32)) -> Drawn {
        for series in Series::ALL {
            let color = series.color(self.theme);
            let points = series.points(self.sweep, self.context);
            let place = |size: u64, ns: u64| at(size as f64, ns as f64);
            let medians: Vec<_> =
                points.iter().filter_map(|(size, timing)| Some(place(*size, timing.median_ns?))).collect();
            draw_line(root, &medians, color.stroke_width(2), series.dash())?;
            for (size, timing) in &points {
                if let (Some(low), Some(high)) = (timing.p25_ns, timing.p75_ns) {
                    let bar = vec![place(*size, low.max(1)), place(*size, high.max(1))];
                    root.draw(&PathElement::new(bar, color.stroke_width(1)))?;
                }
            }
            for median in medians {
                series.marker().draw(root, median, color, self.theme)?;
            }
        }
        Ok(())
    }

    fn draw_ratios(&self, root: &Area<'_>, at: impl Fn(f64, f64) -> (i32, i32)) -> Drawn {
        let (theme, sweep) = (self.theme, self.sweep);
        let (x, y) = (self.scale.x, self.scale.y);
        for crossover in &sweep.result.crossovers {
            let wanted = crossover.context == *self.context && crossover.row == sweep.gate_row();
            if let (true, Some(lo), Some(hi)) = (wanted && sweep.has_gpu, crossover.lo, crossover.hi) {
                let corners = [at(lo as f64, y.1), at(hi as f64, y.0)];
                root.draw(&Rectangle::new(corners, theme.line.mix(SHADE).filled()))?;
            }
        }
        for level in LEVELS {
            let line = [at(x.0, level), at(x.1, level)];
            let dash = if level == 1.0 { None } else { Some(if level == 5.0 { (8, 4) } else { (3, 4) }) };
            draw_line(root, &line, theme.line.stroke_width(1), dash)?;
        }
        let ratios = |row: &str| -> Vec<_> {
            let sizes = sweep.sizes(self.context).into_iter();
            sizes.filter_map(|size| Some((size, sweep.ratio(self.context, size, row)?))).collect()
        };
        let other: Vec<_> =
            ratios(sweep.other_row()).iter().map(|(size, ratio)| at(*size as f64, ratio.point)).collect();
        draw_line(root, &other, theme.kernel.stroke_width(2), Some((7, 5)))?;
        for place in other {
            Marker::Square.draw(root, place, theme.kernel, theme)?;
        }
        let own = ratios(sweep.gate_row());
        let upper = own.iter().map(|(size, ratio)| at(*size as f64, ratio.hi));
        let lower = own.iter().rev().map(|(size, ratio)| at(*size as f64, ratio.lo));
        root.draw(&Polygon::new(upper.chain(lower).collect::<Vec<_>>(), theme.gpu.mix(0.25).filled()))?;
        let points: Vec<_> = own.iter().map(|(size, ratio)| at(*size as f64, ratio.point)).collect();
        draw_line(root, &points, theme.gpu.stroke_width(2), None)?;
        for ((size, _), place) in own.iter().zip(points) {
            let gate = sweep.gate(self.context, *size, sweep.gate_row());
            let marker = match gate.map(|gate| (gate.verdict, gate.decides)) {
                Some((Verdict::Fail, true)) => Marker::Cross,
                Some((Verdict::Inconclusive, _)) => Marker::Ring,
                _ => Marker::Disc,
            };
            marker.draw(root, place, theme.gpu, theme)?;
        }
        Ok(())
    }
}

fn draw_line(root: &Area<'_>, points: &[(i32, i32)], style: ShapeStyle, dash: Option<(u32, u32)>) -> Drawn {
    if points.len() < 2 {
        return Ok(());
    }
    match dash {
        None => root.draw(&PathElement::new(points.to_vec(), style))?,
        Some((length, gap)) => root.draw(&DashedPathElement::new(points.to_vec(), length, gap, style))?,
    }
    Ok(())
}

/// What the lines and markers mean, from left to right.
pub(super) fn legend(root: &Area<'_>, sweep: &Sweep<'_>, kind: Kind, theme: &Theme, from: (i32, i32)) -> Drawn {
    type Entry = (RGBColor, Option<Option<(u32, u32)>>, Marker, String);
    let mut entries: Vec<Entry> = Vec::new();
    match kind {
        Kind::Time => {
            for series in [Series::Cpu, Series::OneThread, Series::Gpu, Series::KernelOnly] {
                let contexts = sweep.contexts();
                if contexts.iter().any(|context| !series.points(*sweep, context).is_empty()) {
                    let color = series.color(theme);
                    entries.push((color, Some(series.dash()), series.marker(), series.name().to_owned()));
                }
            }
        }
        Kind::SpeedUp => {
            entries.push((theme.gpu, Some(None), Marker::Disc, sweep.gate_row().to_owned()));
            entries.push((theme.kernel, Some(Some((7, 5))), Marker::Square, sweep.other_row().to_owned()));
            entries.push((theme.gpu, None, Marker::Ring, "INCONCLUSIVE".to_owned()));
            entries.push((theme.gpu, None, Marker::Cross, "FAIL at a gate size".to_owned()));
            if sweep.result.crossovers.iter().any(|crossover| crossover.lo.is_some() && crossover.hi.is_some()) {
                let name = format!("1x or {}x is crossed here", sweep.result.protocol.gate);
                entries.push((theme.line, None, Marker::Shade, name));
            }
        }
    }
    let (mut x, y) = from;
    for (color, line, marker, name) in entries {
        let width = if line.is_some() { 34 } else { 14 };
        if let Some(dash) = line {
            draw_line(root, &[(x, y), (x + width, y)], color.stroke_width(2), dash)?;
        }
        marker.draw(root, (x + width / 2, y), color, theme)?;
        theme.text(root, &name, (x + width + 6, y + 7), Place::Left, 13, theme.ink)?;
        // Fonts differ between readers: an upper bound of the width of such words.
        x += width + 6 + 8 * i32::try_from(name.chars().count())? + 18;
    }
    Ok(())
}

/// `1 us`, `200 ms`: a round number needs no decimals.
fn tick_of_time(ns: f64) -> String {
    let text = Nanos(whole(ns)).to_string();
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "ticks are positive and far below 2^64")]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(ticks((800.0, 125_000.0), 2), [1e3, 1e4, 1e5]);
        assert_eq!(ticks((0.7, 14.0), 4), [1.0, 2.0, 5.0, 10.0]);
        assert_eq!(range(&[], 1.3), (1.0, 10.0));
        assert_eq!(range(&[0.0, 4.0], 2.0), (2.0, 8.0));
        for (ns, text) in [(1e3, "1 us"), (2e5, "200 us"), (1e6, "1 ms"), (5e10, "50 s"), (2e9, "2 s")] {
            assert_eq!(tick_of_time(ns), text);
        }
    }
}
