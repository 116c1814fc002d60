//! A design as a picture: kernels with their channels, dispatchers and aggregators, the ports of the
//! Communication IP and its links.
//!
//! ```text
//!   link 0 ┌────────────┐ port 0 ◄─ aggregator_0 ◄═ krnl_sr_1
//!   ═══════│            │        ─► dispatcher_0 ═►
//!   link 1 │            │ port 1   …
//!   ═══════└────────────┘
//! ```
//! Streams that join two kernels directly go from one to the other to their right.
//!
//! # Source
//! TEXTAROSSA D2.8 Figures 2.2, 3.1 and 5.7.

use crate::config::{Design, DesignKernel};
use crate::linker::SWITCH;
use crate::streams::{DesignStream, StreamEnd};
use std::fmt::Write as _;

/// Height of a port with its kernel, and of a link.
const ROW: u32 = 96;
const LINK: u32 = 40;
const MARGIN: u32 = 24;
/// Left edges of the columns.
const SWITCH_AT: u32 = 120;
const ADAPTERS_AT: u32 = 400;
const KERNELS_AT: u32 = 640;
const KERNELS_END: u32 = 820;
const WIDTH: u32 = KERNELS_END + 40;
/// Between the lines of two streams.
const LANE: u32 = 150;

/// A place of the picture.
#[derive(Clone, Copy)]
struct PicturePoint {
    x: u32,
    y: u32,
}

/// A box with its name in the middle.
struct DrawnBox {
    x: u32,
    y: u32,
    width: u32,
    height: u32,
}

/// The picture as SVG.
pub fn svg(design: &Design) -> String {
    let rows = design.kernels.len() as u32 * ROW;
    let inner = rows.max(design.links * LINK);
    let height = inner + 3 * MARGIN;
    let width = WIDTH + LANE * design.streams.len() as u32;
    let mut picture = DesignPicture(String::new());
    let switch = DrawnBox { x: SWITCH_AT, y: MARGIN, width: 180, height: inner };
    picture.block(&switch, SWITCH, "#dce6f2");
    for link in 0..design.links {
        let y = MARGIN + link * LINK + LINK / 2;
        picture.line(PicturePoint { x: 16, y }, PicturePoint { x: SWITCH_AT, y }, 4);
        picture.text(68, y - 6, &format!("link {link}"));
    }
    for kernel in &design.kernels {
        picture.kernel(kernel);
    }
    for (lane, stream) in (0..).zip(&design.streams) {
        picture.stream(design, stream, lane);
    }
    picture.text(WIDTH / 2, height - MARGIN / 2, &format!("{}: {} MHz", design.name(), design.megahertz));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\" text-anchor=\"middle\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n{}</svg>\n",
        picture.0
    )
}

/// Elements of a picture. Writing into a string does not fail.
struct DesignPicture(String);

impl DesignPicture {
    fn kernel(&mut self, kernel: &DesignKernel) {
        let DesignKernel { name, port, inputs, outputs, .. } = kernel;
        let top = MARGIN + port * ROW;
        let (out, back) = (top + 24, top + 64);
        self.text(330, top + 12, &format!("port {port}"));
        for (y, adapter) in [(out, "aggregator"), (back, "dispatcher")] {
            let block = DrawnBox { x: ADAPTERS_AT, y: y - 14, width: 120, height: 28 };
            self.block(&block, &format!("{adapter}_{port}"), "#f2ead3");
        }
        let own =
            DrawnBox { x: KERNELS_AT, y: out - 14, width: KERNELS_END - KERNELS_AT, height: back - out + 28 };
        self.block(&own, name, "#dff0d8");
        let switch_end = SWITCH_AT + 180;
        let at = |x, y| PicturePoint { x, y };
        self.arrow(at(ADAPTERS_AT, out), at(switch_end, out));
        self.arrow(at(switch_end, back), at(ADAPTERS_AT, back));
        self.arrow(at(KERNELS_AT, out), at(ADAPTERS_AT + 120, out));
        self.arrow(at(ADAPTERS_AT + 120, back), at(KERNELS_AT, back));
        self.text(580, out - 6, &format!("{outputs} out"));
        self.text(580, back - 6, &format!("{inputs} in"));
    }

    /// A stream from kernel to kernel, in a lane of its own.
    fn stream(&mut self, design: &Design, stream: &DesignStream, lane: u32) {
        let DesignStream { name, from, to, depth, .. } = stream;
        // Writers leave at the upper half of their boxes, readers are entered at the lower one.
        let height = |end: &StreamEnd, within: u32| {
            let port = design.kernels.iter().find(|kernel| kernel.name == end.kernel)?.port;
            Some(MARGIN + port * ROW + within + 4 * (lane % 4))
        };
        let (Some(begin), Some(end)) = (height(from, 18), height(to, 60)) else { return };
        let x = KERNELS_END + 30 + lane * LANE;
        let at = |x, y| PicturePoint { x, y };
        self.line(at(KERNELS_END, begin), at(x, begin), 1);
        self.line(at(x, begin), at(x, end), 1);
        self.arrow(at(x, end), at(KERNELS_END, end));
        self.text(x + LANE / 2 - 8, (begin + end) / 2, &format!("{name}: {depth} words"));
    }

    fn block(&mut self, block: &DrawnBox, name: &str, fill: &str) {
        let DrawnBox { x, y, width, height } = *block;
        let _ = writeln!(
            self.0,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"4\" fill=\"{fill}\" \
             stroke=\"#444\"/>"
        );
        self.text(x + width / 2, y + height / 2 + 4, name);
    }

    fn text(&mut self, x: u32, y: u32, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(self.0, "<text x=\"{x}\" y=\"{y}\">{text}</text>");
    }

    fn line(&mut self, from: PicturePoint, to: PicturePoint, width: u32) {
        let (PicturePoint { x: x1, y: y1 }, PicturePoint { x: x2, y: y2 }) = (from, to);
        let _ = writeln!(
            self.0,
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"#444\" stroke-width=\"{width}\"/>"
        );
    }

    /// A line with a head at its end, to the left or to the right.
    fn arrow(&mut self, from: PicturePoint, to: PicturePoint) {
        self.line(from, to, 1);
        let PicturePoint { x, y } = to;
        let back = if from.x > x { x + 8 } else { x - 8 };
        let (above, below) = (y - 4, y + 4);
        let _ = writeln!(self.0, "<path d=\"M{x} {y} L{back} {above} L{back} {below} Z\" fill=\"#444\"/>");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::{joined, latency};

    /// Catches a kernel, an adapter or a link that is not drawn.
    #[test]
    fn everything_is_in_the_picture() {
        let picture = svg(&latency());
        for name in
            ["krnl_sr_1", "krnl_sr_2", "aggregator_1", "dispatcher_0", "link 1", SWITCH, "3 out", "4 in"]
        {
            assert!(picture.contains(&format!(">{name}</text>")), "{name}");
        }
        assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
        assert!(svg(&joined()).contains(">taps: 16 words</text>"));
    }
}
