//! The two formats of a picture.

use crate::draw::{WIDTH, draw, height};
use plotters::backend::{BitMapBackend, SVGBackend};
use plotters::drawing::IntoDrawingArea;
use plotters::style::{FontStyle, register_font};
use std::sync::Once;
use weft_analysis::picture::Picture;

/// Pixels of a PNG for each unit of the picture's width.
const PNG_PIXELS: u32 = 2;
/// Points that are drawn for each pixel in each direction, so that edges are smooth.
const SAMPLES: u32 = 2;

/// A picture that cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[error("the picture cannot be drawn: {0}")]
pub struct DrawError(String);

/// The name of the font in both formats: a bitmap has Noto Sans, a browser takes its own.
pub(crate) const FONT: &str = "sans-serif";

fn with_font() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (style, bytes) in
            [(FontStyle::Normal, notosans::REGULAR_TTF), (FontStyle::Bold, notosans::BOLD_TTF)]
        {
            // A font that cannot be read is found by the tests of this crate.
            let _ = register_font(FONT, style, bytes);
        }
    });
}

/// The picture as SVG.
///
/// # Errors
/// A failure of the library.
pub fn svg(picture: &Picture) -> Result<String, DrawError> {
    with_font();
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (WIDTH, height(picture))).into_drawing_area();
        draw(&area, picture, 1.0).map_err(|e| DrawError(e.to_string()))?;
        area.present().map_err(|e| DrawError(e.to_string()))?;
    }
    Ok(crisp(text))
}

/// Areas without smoothed edges: cells of a heat map would show light lines between them at other scales.
fn crisp(text: String) -> String {
    text.replace("<rect ", "<rect shape-rendering=\"crispEdges\" ")
}

/// The picture as PNG.
///
/// # Errors
/// A failure of the library.
pub fn png(picture: &Picture) -> Result<Vec<u8>, DrawError> {
    with_font();
    let (width, height) = (WIDTH * PNG_PIXELS, height(picture) * PNG_PIXELS);
    let (wide, high) = (width * SAMPLES, height * SAMPLES);
    let mut samples = vec![255; (wide * high * 3) as usize];
    {
        let area = BitMapBackend::with_buffer(&mut samples, (wide, high)).into_drawing_area();
        draw(&area, picture, f64::from(PNG_PIXELS * SAMPLES)).map_err(|e| DrawError(e.to_string()))?;
        area.present().map_err(|e| DrawError(e.to_string()))?;
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let failed = |e: png::EncodingError| DrawError(e.to_string());
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&smoothed(&samples, (width, height))).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(bytes)
}

/// Each pixel as the mean of its samples.
fn smoothed(samples: &[u8], (width, height): (u32, u32)) -> Vec<u8> {
    let stride = (width * SAMPLES * 3) as usize;
    let mut pixels = Vec::with_capacity((width * height * 3) as usize);
    for y in 0..height {
        for x in 0..width {
            for channel in 0..3 {
                let sample = |dy: u32, dx: u32| {
                    let at =
                        (y * SAMPLES + dy) as usize * stride + ((x * SAMPLES + dx) * 3 + channel) as usize;
                    u32::from(samples[at])
                };
                let all = (0..SAMPLES).flat_map(|dy| (0..SAMPLES).map(move |dx| (dy, dx)));
                let sum: u32 = all.map(|(dy, dx)| sample(dy, dx)).sum();
                pixels.push((sum / (SAMPLES * SAMPLES)) as u8);
            }
        }
    }
    pixels
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_analysis::picture::{Axis, Cells, Content, Panel, Segments, Series};

    fn axis(label: &str, log: bool) -> Axis {
        Axis { label: label.to_owned(), unit: "µs", log, from_zero: !log, names: Vec::new() }
    }

    fn picture(content: Content) -> Picture {
        let names = Axis { names: vec!["sw 0".to_owned(), "sw <1>".to_owned()], ..axis("queue", false) };
        let y = if matches!(content, Content::Cells(_)) { names } else { axis("y", true) };
        let panel = Panel { title: "a & b".to_owned(), x: axis("x", false), y, content };
        Picture {
            kind: "rates",
            title: "<script>alert(1)</script>".to_owned(),
            subtitle: "weft traffic".to_owned(),
            panels: vec![panel.clone(), panel],
        }
    }

    fn contents() -> [Content; 4] {
        let series = Series {
            label: "<b>one</b>".to_owned(),
            points: vec![[0.0, 1.0], [1.0, 20.0], [2.0, 5.0]],
            interval: vec![[0.5, 2.0], [15.0, 30.0], [4.0, 6.0]],
            marks: true,
            ..Series::default()
        };
        let cells = Cells {
            edges: vec![0.0, 1.0, 2.0],
            values: vec![vec![0.0, 1.0], vec![2.0, 0.0]],
            label: "held".to_owned(),
            unit: "KiB",
        };
        let segments = Segments { label: "pattern".to_owned(), segments: vec![[0.0, 1.0, 2.0, 9.0]] };
        [
            Content::Lines(vec![series.clone(), Series { dashed: true, ..series.clone() }]),
            Content::Stacked(vec![series.clone(), series]),
            Content::Cells(cells),
            Content::Segments(vec![segments]),
        ]
    }

    /// Catches text of results that is markup in the picture, and a picture that is no SVG.
    #[test]
    fn svg_escapes_text_and_shows_axes_and_legends() {
        for content in contents() {
            let text = svg(&picture(content)).unwrap();
            let document = roxmltree::Document::parse(&text).unwrap();
            let texts: Vec<&str> =
                document.descendants().filter(|n| n.has_tag_name("text")).filter_map(|n| n.text()).collect();
            let texts: Vec<&str> = texts.iter().map(|text| text.trim()).collect();
            assert!(document.descendants().all(|node| !node.has_tag_name("script")));
            assert!(texts.contains(&"<script>alert(1)</script>"), "{texts:?}");
            assert!(texts.contains(&"x (µs)"), "{texts:?}");
        }
        let lines = svg(&picture(contents()[0].clone())).unwrap();
        assert!(lines.contains("&lt;b&gt;one&lt;/b&gt;"));
    }

    /// Catches a picture whose black text stands on the black of a dark page: it has a white ground of its
    /// own, as large as itself. Catches light lines between the cells of a heat map at other scales.
    #[test]
    fn svg_brings_its_ground_and_its_areas_touch() {
        for content in contents() {
            let text = svg(&picture(content)).unwrap();
            let document = roxmltree::Document::parse(&text).unwrap();
            let root = document.root_element();
            let ground = root.first_element_child().unwrap();
            assert!(
                ground.has_tag_name("rect") && ground.attribute("fill") == Some("#FFFFFF"),
                "{text:.300}"
            );
            for size in ["width", "height"] {
                assert_eq!(ground.attribute(size), root.attribute(size));
            }
            let mut areas = document.descendants().filter(|node| node.has_tag_name("rect"));
            assert!(areas.all(|area| area.attribute("shape-rendering") == Some("crispEdges")));
        }
    }

    /// Catches a bitmap without a font, and one of another size than it says.
    #[test]
    fn png_has_text_and_colours() {
        for content in contents() {
            let bytes = png(&picture(content)).unwrap();
            let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
            let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
            let info = reader.next_frame(&mut pixels).unwrap();
            assert_eq!(info.width, WIDTH * PNG_PIXELS);
            let heading = &pixels[..(info.width * 40 * 3) as usize];
            assert!(heading.iter().any(|value| *value < 60), "no heading");
            let coloured = pixels.chunks(3).filter(|p| p[0].abs_diff(p[2]) > 60).count();
            assert!(coloured > 50, "{coloured}");
        }
    }
}
