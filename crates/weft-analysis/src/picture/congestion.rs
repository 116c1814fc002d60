//! Congestion trees over time: when each stood, and how its branches filled.

use super::panel::{Axis, Cells, Content, Panel};
use super::shown::ShownRun;
use crate::congestion::congestion_trees;
use weft_results::ResultsError;

/// Rows of the picture, at most: of the largest trees, the branches near the root.
const MAX_ROWS: usize = 40;
/// Trees in the picture, at most.
const MAX_TREES: usize = 4;

/// The largest trees of a run: a row for each root, and one for each branch.
pub(super) fn trees(shown: &ShownRun<'_>) -> Result<Panel, ResultsError> {
    let mut trees = congestion_trees(shown.result, &|_, _| None)?;
    trees.retain(|tree| tree.run == shown.run);
    trees.truncate(MAX_TREES);
    let Some(edges) = trees.first().map(|tree| tree.history.edges.clone()) else {
        let why = format!("there is no congestion tree in run {}: no busy link has others wait", shown.run);
        return Err(ResultsError::NothingToDraw { directory: shown.result.directory.clone(), why });
    };
    let each = (MAX_ROWS / trees.len()).saturating_sub(1);
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for tree in trees {
        names.push(format!("root: {}", tree.root));
        values.push(percent(tree.history.stood));
        let branches = tree.branches.iter().zip(tree.history.branches).take(each);
        for (branch, waited) in branches {
            names.push(format!("{} away: {}", branch.depth, branch.link));
            values.push(percent(waited));
        }
    }
    Ok(Panel {
        title: shown.label.clone(),
        x: Axis::new("time", "µs"),
        y: Axis::names("link", names),
        content: Content::Cells(Cells { edges, values, label: "waits, or full".to_owned(), unit: "%" }),
    })
}

/// Shares in percent.
fn percent(shares: Vec<f64>) -> Vec<f64> {
    shares.into_iter().map(|share| share * 100.0).collect()
}
