//! A machine as a picture: `weft machine draw`.
//!
//! ```text
//!   title                                   Up to MAX_SWITCHES switches are drawn one by one, with their
//!   128 endpoints, 160 switches, …          endpoints as dots (`switches.rs`). Of larger machines the parts
//!   ── x 32  ── y 32  ── qfdb 192           are drawn, such as groups, with what they hold (`parts.rs`).
//!   ┌──────────────────────────┐            Where things lie says the topology's family
//!   │   o──o──o                │            (`weft_topo::Places`).
//!   └──────────────────────────┘
//! ```

mod canvas;
mod links;
mod parts;
mod switches;

use super::assembled;
use crate::experiment::{ExperimentError, MachineInput};
use links::Bundles;
use weft_topo::{Layout, Topology as _, count_links};

/// Most switches that are drawn one by one.
const MAX_SWITCHES: u32 = 1_000;

/// Most lines between them: a drawing of more is a grey block.
const MAX_LINES: usize = 20_000;

/// The SVG of a machine.
///
/// # Errors
/// A machine that is not valid.
pub fn draw(input: &MachineInput) -> Result<String, ExperimentError> {
    let (machine, layout) = assembled(input)?;
    let places = machine.topology.places(&layout);
    let all = (layout.switches() <= MAX_SWITCHES).then(|| Bundles::between_switches(&layout));
    let all = all.filter(|bundles| bundles.lines.len() <= MAX_LINES);
    let (canvas, remark) = match all {
        Some(bundles) => (switches::drawn(&layout, &places, &bundles), None),
        None => parts::drawn(&layout, &places),
    };
    let head = Head { name: machine.name, title: machine.title, figures: figures(&layout), remark };
    Ok(canvas.document(&head, &legend(&layout)))
}

/// The lines above a drawing.
struct Head {
    name: String,
    title: String,
    figures: String,
    /// A note on things that the drawing leaves out.
    remark: Option<String>,
}

/// `128 endpoints, 160 switches, 512 links`.
fn figures(layout: &Layout) -> String {
    let links: u64 = count_links(layout).iter().map(|class| class.links).sum();
    let counts = [
        counted(layout.endpoints().into(), "endpoint"),
        counted(layout.switches().into(), "switch"),
        counted(links, "link"),
    ];
    counts.join(", ")
}

/// A row of the legend: the class of links by its number, its name and its links.
fn legend(layout: &Layout) -> Vec<(usize, String)> {
    let classes = count_links(layout).into_iter().enumerate().filter(|(_, class)| class.links > 0);
    classes.map(|(number, class)| (number, format!("{} ({})", class.class, grouped(class.links)))).collect()
}

/// `1 switch`, `8,814 switches`.
fn counted(count: u64, what: &str) -> String {
    match (count, what) {
        (1, _) => format!("1 {what}"),
        (_, "switch") => format!("{} switches", grouped(count)),
        _ => format!("{} {what}s", grouped(count)),
    }
}

/// A number with commas between its thousands.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_written_for_people() {
        assert_eq!(counted(1, "switch"), "1 switch");
        assert_eq!(counted(8_814, "switch"), "8,814 switches");
        assert_eq!(counted(1_234_567, "link"), "1,234,567 links");
        assert_eq!(grouped(999), "999");
    }
}
