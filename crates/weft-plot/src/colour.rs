//! Colours that people with any kind of sight tell apart.

use plotters::style::RGBColor;
use plotters::style::colors::colormaps::{ColorMap, ViridisRGB};

/// Okabe and Ito, "Color Universal Design", 2008; its yellow is left out, which is faint on white, and grey
/// stands for black, which is the text's.
const SERIES: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(110, 110, 110),
    RGBColor(0, 0, 0),
];

/// The colour of a series. Those after the eighth are lighter.
pub fn series(number: usize) -> RGBColor {
    let RGBColor(red, green, blue) = SERIES[number % SERIES.len()];
    let light = |part: u8| if number < SERIES.len() { part } else { part / 2 + 127 };
    RGBColor(light(red), light(green), light(blue))
}

/// The colour of a value of a heat map, as a share of the largest.
pub fn heat(share: f64) -> RGBColor {
    ViridisRGB.get_color(share.clamp(0.0, 1.0))
}
