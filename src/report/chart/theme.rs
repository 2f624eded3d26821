//! Colours and text of a chart.

use super::{Area, Drawn};
use plotters::element::Text;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontStyle, IntoFont, RGBColor, TextStyle};

/// One of the two versions of a chart.
pub(super) struct Theme {
    pub(super) name: &'static str,
    pub(super) background: RGBColor,
    pub(super) plot: RGBColor,
    pub(super) grid: RGBColor,
    pub(super) line: RGBColor,
    pub(super) ink: RGBColor,
    pub(super) faint: RGBColor,
    pub(super) cpu: RGBColor,
    pub(super) one_thread: RGBColor,
    pub(super) gpu: RGBColor,
    pub(super) kernel: RGBColor,
}

// Series: Okabe and Ito's palette, apart for every kind of colour vision, lightened for the dark version.
pub(super) static LIGHT: Theme = Theme {
    name: "light",
    background: RGBColor(255, 255, 255),
    plot: RGBColor(250, 250, 250),
    grid: RGBColor(225, 228, 232),
    line: RGBColor(110, 118, 129),
    ink: RGBColor(31, 35, 40),
    faint: RGBColor(89, 99, 110),
    cpu: RGBColor(0, 114, 178),
    one_thread: RGBColor(110, 118, 129),
    gpu: RGBColor(213, 94, 0),
    kernel: RGBColor(170, 68, 140),
};

pub(super) static DARK: Theme = Theme {
    name: "dark",
    background: RGBColor(13, 17, 23),
    plot: RGBColor(20, 25, 32),
    grid: RGBColor(44, 51, 60),
    line: RGBColor(139, 148, 158),
    ink: RGBColor(230, 237, 243),
    faint: RGBColor(157, 167, 178),
    cpu: RGBColor(86, 180, 233),
    one_thread: RGBColor(157, 167, 178),
    gpu: RGBColor(240, 160, 30),
    kernel: RGBColor(214, 140, 188),
};

/// Which end of a text its position is.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Left,
    Middle,
}

/// The library writes sizes into the file divided by this.
const SIZE_FACTOR: f64 = 1.24;

impl Theme {
    /// The style of a text of this height.
    pub(super) fn style(&self, pixels: u32, color: RGBColor) -> TextStyle<'static> {
        colored(TextStyle::from(("sans-serif", f64::from(pixels) * SIZE_FACTOR).into_font()), color)
    }

    pub(super) fn text(
        &self,
        root: &Area<'_>,
        text: &str,
        at: (i32, i32),
        place: Place,
        pixels: u32,
        color: RGBColor,
    ) -> Drawn {
        let h = match place {
            Place::Left => HPos::Left,
            Place::Middle => HPos::Center,
        };
        let style = self.style(pixels, color).pos(Pos::new(h, VPos::Bottom));
        Ok(root.draw(&Text::new(text.to_owned(), at, style))?)
    }

    pub(super) fn bold(&self, root: &Area<'_>, text: &str, at: (i32, i32)) -> Drawn {
        let font = ("sans-serif", 17.0 * SIZE_FACTOR).into_font().style(FontStyle::Bold);
        let style = colored(TextStyle::from(font), self.ink).pos(Pos::new(HPos::Left, VPos::Bottom));
        Ok(root.draw(&Text::new(text.to_owned(), at, style))?)
    }
}

fn colored(style: TextStyle<'static>, color: RGBColor) -> TextStyle<'static> {
    TextStyle { color: color.to_backend_color(), ..style }
}
