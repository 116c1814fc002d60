//! A picture on any backend: headings, axes, contents, legends.

use crate::axis::{Scale, number};
use crate::colour::{heat, series};
use crate::image::FONT;
use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind};
use plotters::element::{Circle, PathElement, Polygon, Rectangle, Text};
use plotters::prelude::DrawingBackend;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    BLACK, Color, FontDesc, FontFamily, FontStyle, IntoTextStyle, RGBColor, TextStyle, WHITE,
};
use weft_analysis::picture::{Axis, Cells, Content, Panel, Picture, Segments, Series};

/// Width of a picture in its own units.
pub const WIDTH: u32 = 960;
/// Height of a panel.
pub const HEIGHT: u32 = 360;
/// Height of a row of a heat map, where it has many.
const ROW_HEIGHT: u32 = 14;
const HEADING: u32 = 62;
const LEGEND: u32 = 200;
const MARGIN: u32 = 16;
const GREY: RGBColor = RGBColor(90, 90, 90);
const MESH: RGBColor = RGBColor(225, 225, 225);

type Drawn<DB> = Result<(), DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>>;
type Area<DB> = DrawingArea<DB, Shift>;
type Chart<'a, DB> = ChartContext<'a, DB, Cartesian2d<Scale, Scale>>;

/// The height of a picture.
pub fn height(picture: &Picture) -> u32 {
    HEADING + picture.panels.iter().map(panel_height).sum::<u32>()
}

fn panel_height(panel: &Panel) -> u32 {
    match &panel.content {
        Content::Cells(cells) => HEIGHT.max(cells.values.len() as u32 * ROW_HEIGHT + 110),
        _ => HEIGHT,
    }
}

/// The pen: sizes times the scale of the backend.
#[derive(Clone, Copy)]
struct Pen {
    scale: f64,
}

impl Pen {
    fn size(self, size: u32) -> i32 {
        (f64::from(size) * self.scale).round() as i32
    }

    fn width(self, tenths: u32) -> u32 {
        ((f64::from(tenths) * self.scale / 10.0).round() as u32).max(1)
    }

    fn font(self, size: u32, style: FontStyle) -> FontDesc<'static> {
        FontDesc::new(FontFamily::Name(FONT), f64::from(size) * self.scale, style)
    }

    fn text(self, size: u32, colour: RGBColor, at: (HPos, VPos)) -> TextStyle<'static> {
        self.font(size, FontStyle::Normal).color(&colour).pos(Pos::new(at.0, at.1)).into_text_style(&(0, 0))
    }
}

/// Draws a picture, `scale` times as large as [`WIDTH`] says.
pub fn draw<DB: DrawingBackend>(area: &Area<DB>, picture: &Picture, scale: f64) -> Drawn<DB> {
    let pen = Pen { scale };
    area.fill(&WHITE)?;
    let left = (HPos::Left, VPos::Top);
    let margin = pen.size(MARGIN);
    let heading = pen.font(20, FontStyle::Bold).color(&BLACK).pos(Pos::new(HPos::Left, VPos::Top));
    area.draw(&Text::new(picture.title.clone(), (margin, pen.size(10)), heading))?;
    area.draw(&Text::new(picture.subtitle.clone(), (margin, pen.size(37)), pen.text(13, GREY, left)))?;
    let mut rest = area.split_vertically(pen.size(HEADING)).1;
    for panel in &picture.panels {
        let (this, below) = rest.split_vertically(pen.size(panel_height(panel)));
        draw_panel(&this, panel, pen)?;
        rest = below;
    }
    Ok(())
}

fn draw_panel<DB: DrawingBackend>(area: &Area<DB>, panel: &Panel, pen: Pen) -> Drawn<DB> {
    let (plot, legend) = area.split_horizontally(pen.size(WIDTH - LEGEND));
    let (x, y) = scales(panel);
    let flip = matches!(panel.content, Content::Cells(_) | Content::Segments(_));
    let longest = panel.y.names.iter().map(|name| name.chars().count()).max().unwrap_or(0) as u32;
    let mut builder = ChartBuilder::on(&plot);
    builder
        .margin(pen.size(MARGIN))
        .margin_right(pen.size(8))
        .x_label_area_size(pen.size(46))
        .y_label_area_size(pen.size(58.max(30 + longest * 6)));
    if !panel.title.is_empty() {
        builder.caption(&panel.title, pen.font(14, FontStyle::Bold));
    }
    let mut chart = builder.build_cartesian_2d(x.clone(), y.clone())?;
    let rows = if panel.y.names.is_empty() { 8 } else { 48 };
    let columns = if panel.x.names.is_empty() { 10 } else { 24 };
    let mut mesh = chart.configure_mesh();
    mesh.x_desc(panel.x.text())
        .y_desc(panel.y.text())
        .x_labels(columns)
        .y_labels(rows)
        .label_style(pen.font(11, FontStyle::Normal).color(&BLACK))
        .axis_desc_style(pen.font(13, FontStyle::Normal).color(&BLACK))
        .axis_style(BLACK.stroke_width(pen.width(10)))
        .bold_line_style(MESH.stroke_width(pen.width(8)))
        .set_all_tick_mark_size(pen.size(4))
        .max_light_lines(0);
    if flip {
        mesh.disable_mesh();
    }
    mesh.draw()?;
    match &panel.content {
        Content::Lines(lines) => {
            lines.iter().try_for_each(|line| draw_line(&mut chart, line, pen))?;
            draw_legend(&legend, &keys(lines), pen)
        }
        Content::Stacked(lines) => {
            draw_stacked(&mut chart, lines)?;
            // The uppermost area has the uppermost name.
            let mut keys: Vec<Key> = keys(lines);
            keys.iter_mut().for_each(|key| key.form = Form::Area);
            keys.reverse();
            draw_legend(&legend, &keys, pen)
        }
        Content::Segments(all) => {
            draw_segments(&mut chart, all, (&x, &y), pen)?;
            draw_legend(&legend, &segment_keys(all), pen)
        }
        Content::Cells(cells) => {
            draw_cells(&mut chart, cells)?;
            draw_bar(&legend, cells, pen)
        }
    }
}

/// The scales on which all of a panel can be seen.
fn scales(panel: &Panel) -> (Scale, Scale) {
    let (mut xs, mut ys): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    match &panel.content {
        Content::Lines(lines) => {
            for line in lines {
                xs.extend(line.points.iter().map(|point| point[0]));
                ys.extend(line.points.iter().map(|point| point[1]));
                ys.extend(line.interval.iter().flatten());
            }
        }
        Content::Stacked(lines) => {
            xs.extend(lines.iter().flat_map(|line| line.points.iter().map(|point| point[0])));
            ys.extend(sums(lines).iter().flat_map(|row| row.iter().copied()));
        }
        Content::Segments(all) => {
            for [x0, y0, x1, y1] in all.iter().flat_map(|one| &one.segments) {
                xs.extend([x0, x1]);
                ys.extend([y0, y1]);
            }
        }
        Content::Cells(cells) => xs.extend(&cells.edges),
    }
    let of = |axis: &Axis, values: Vec<f64>| Scale::of(axis, values.into_iter());
    // Cells fill their panel.
    if let (Content::Cells(cells), true) = (&panel.content, panel.x.names.is_empty())
        && let (Some(first), Some(last)) = (cells.edges.first(), cells.edges.last())
    {
        return (Scale::Linear(*first..*last), of(&panel.y, ys));
    }
    (of(&panel.x, xs), of(&panel.y, ys))
}

/// For each series the sums up to and with it.
fn sums(lines: &[Series]) -> Vec<Vec<f64>> {
    let mut sum = vec![0.0; lines.iter().map(|line| line.points.len()).max().unwrap_or(0)];
    let add = |line: &Series| {
        sum.iter_mut().zip(&line.points).for_each(|(sum, point)| *sum += point[1]);
        sum.clone()
    };
    lines.iter().map(add).collect()
}

fn draw_line<DB: DrawingBackend>(chart: &mut Chart<'_, DB>, line: &Series, pen: Pen) -> Drawn<DB> {
    let colour = series(line.colour);
    let points: Vec<(f64, f64)> = line.points.iter().map(|point| (point[0], point[1])).collect();
    let stroke = colour.stroke_width(pen.width(18));
    if line.dashed {
        let on = pen.size(6);
        chart.draw_series(plotters::series::DashedLineSeries::new(points.clone(), on, on * 2 / 3, stroke))?;
    } else {
        chart.draw_series([PathElement::new(points.clone(), stroke)])?;
    }
    let bars = points.iter().zip(&line.interval).map(|((x, _), [low, high])| {
        PathElement::new(vec![(*x, *low), (*x, *high)], colour.stroke_width(pen.width(10)))
    });
    chart.draw_series(bars)?;
    if line.marks {
        let radius = pen.size(3);
        chart.draw_series(points.into_iter().map(|point| Circle::new(point, radius, colour.filled())))?;
    }
    Ok(())
}

fn draw_stacked<DB: DrawingBackend>(chart: &mut Chart<'_, DB>, lines: &[Series]) -> Drawn<DB> {
    let mut below: Vec<f64> = vec![0.0; lines.first().map_or(0, |line| line.points.len())];
    for (line, sum) in lines.iter().zip(sums(lines)) {
        let xs = line.points.iter().map(|point| point[0]);
        let mut outline: Vec<(f64, f64)> = xs.clone().zip(sum.iter().copied()).collect();
        outline.extend(xs.zip(below.iter().copied()).rev().collect::<Vec<_>>());
        chart.draw_series([Polygon::new(outline, series(line.colour).filled())])?;
        below = sum;
    }
    Ok(())
}

fn draw_segments<DB: DrawingBackend>(
    chart: &mut Chart<'_, DB>,
    all: &[Segments],
    (x, y): (&Scale, &Scale),
    pen: Pen,
) -> Drawn<DB> {
    for (colour, one) in all.iter().enumerate() {
        let stroke = series(colour).mix(0.7).stroke_width(pen.width(8));
        let path = |[x0, y0, x1, y1]: &[f64; 4]| {
            PathElement::new(vec![(x.middle(*x0), y.middle(*y0)), (x.middle(*x1), y.middle(*y1))], stroke)
        };
        chart.draw_series(one.segments.iter().map(path))?;
    }
    Ok(())
}

fn largest(cells: &Cells) -> f64 {
    cells.values.iter().flatten().copied().fold(0.0, f64::max)
}

fn draw_cells<DB: DrawingBackend>(chart: &mut Chart<'_, DB>, cells: &Cells) -> Drawn<DB> {
    let most = largest(cells).max(f64::MIN_POSITIVE);
    for (row, values) in cells.values.iter().enumerate() {
        let (low, high) = (row as f64, row as f64 + 1.0);
        let mut from = 0;
        // Equal neighbours are one rectangle.
        for group in values.chunk_by(|a, b| a == b) {
            let to = from + group.len();
            let corners = [(cells.edges[from], low), (cells.edges[to], high)];
            chart.draw_series([Rectangle::new(corners, heat(group[0] / most).filled())])?;
            from = to;
        }
    }
    Ok(())
}

/// The sign of a series in a legend.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Line,
    Dashed,
    Area,
}

/// A line of a legend.
struct Key {
    label: String,
    colour: usize,
    form: Form,
}

fn keys(lines: &[Series]) -> Vec<Key> {
    let form = |line: &Series| if line.dashed { Form::Dashed } else { Form::Line };
    lines.iter().map(|l| Key { label: l.label.clone(), colour: l.colour, form: form(l) }).collect()
}

fn segment_keys(all: &[Segments]) -> Vec<Key> {
    let key = |(colour, one): (usize, &Segments)| Key { label: one.label.clone(), colour, form: Form::Line };
    all.iter().enumerate().map(key).collect()
}

fn draw_legend<DB: DrawingBackend>(area: &Area<DB>, keys: &[Key], pen: Pen) -> Drawn<DB> {
    let style = pen.text(11, BLACK, (HPos::Left, VPos::Center));
    let mut y = pen.size(MARGIN + 12);
    for key in keys {
        let (colour, stroke) = (series(key.colour), pen.width(20));
        let path = |from: i32, to: i32| {
            PathElement::new(
                vec![(pen.size(8) + from, y), (pen.size(8) + to, y)],
                colour.stroke_width(stroke),
            )
        };
        match key.form {
            Form::Line => area.draw(&path(0, pen.size(20)))?,
            Form::Dashed => {
                area.draw(&path(0, pen.size(8)))?;
                area.draw(&path(pen.size(12), pen.size(20)))?;
            }
            Form::Area => {
                let corners = [(pen.size(8), y - pen.size(5)), (pen.size(28), y + pen.size(5))];
                area.draw(&Rectangle::new(corners, colour.filled()))?;
            }
        }
        area.draw(&Text::new(shortened(&key.label), (pen.size(34), y), style.clone()))?;
        y += pen.size(18);
    }
    Ok(())
}

/// A label that fits into the legend.
fn shortened(label: &str) -> String {
    const MOST: usize = 28;
    if label.chars().count() <= MOST {
        return label.to_owned();
    }
    label.chars().take(MOST - 1).chain(['…']).collect()
}

/// The colours of a heat map with their values.
fn draw_bar<DB: DrawingBackend>(area: &Area<DB>, cells: &Cells, pen: Pen) -> Drawn<DB> {
    const STEPS: u32 = 64;
    let (top, height) = (MARGIN + 30, 200);
    let most = largest(cells);
    let edge = |step: u32| pen.size(top) + pen.size(height) * (STEPS - step) as i32 / STEPS as i32;
    for step in 0..STEPS {
        let corners = [(pen.size(12), edge(step + 1)), (pen.size(32), edge(step))];
        let colour = heat(f64::from(step) / f64::from(STEPS - 1));
        area.draw(&Rectangle::new(corners, colour.filled()))?;
    }
    let style = pen.text(11, BLACK, (HPos::Left, VPos::Center));
    for quarter in 0..=4 {
        let value = number(most * f64::from(quarter) / 4.0, most / 20.0);
        area.draw(&Text::new(value, (pen.size(40), edge(STEPS * quarter / 4)), style.clone()))?;
    }
    let label = match cells.unit {
        "" => cells.label.clone(),
        unit => format!("{} ({unit})", cells.label),
    };
    area.draw(&Text::new(label, (pen.size(12), pen.size(MARGIN + 10)), style))
}
