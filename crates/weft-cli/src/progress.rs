//! Progress and estimates on standard error.

use crate::output::thousands;
use crate::standard_error::say;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use weft_sim::experiment::{Estimate, ProgressListener};
use weft_units::Bytes;

/// Steps of the bar.
const STEPS: u64 = 1000;

/// The size of a file from which on it is told before the file is written.
const TOLD_SIZE: Bytes = Bytes::new(10_000_000);

/// A bar on a terminal; elsewhere only the estimate, and with `--quiet` nothing.
pub struct Bar {
    bar: ProgressBar,
    quiet: bool,
}

impl Bar {
    /// A bar that shows itself with the first progress.
    pub fn new(quiet: bool) -> Bar {
        // Hidden by indicatif where standard error is no terminal.
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let style = ProgressStyle::with_template(
            "{wide_bar} {percent:>3} %  {elapsed} of real time, {eta} left  {msg}",
        )
        .expect("the template is a constant that is tried in the tests");
        Bar { bar: ProgressBar::with_draw_target(Some(STEPS), target).with_style(style), quiet }
    }
}

impl ProgressListener for Bar {
    fn estimate(&self, estimate: Estimate) {
        if !self.quiet {
            self.bar.suspend(|| say!("weft: {}", estimate_line(estimate)));
        }
    }

    fn warn(&self, warning: &str) {
        // Also with --quiet: no progress, but something to know of the result.
        self.bar.suspend(|| say!("weft: {warning}"));
    }

    fn file_size(&self, size: Bytes) {
        if !self.quiet && size >= TOLD_SIZE {
            self.bar.suspend(|| say!("weft: about {}B on the disk", thousands(size.get() as f64)));
        }
    }

    fn advance(&self, share: f64, doing: &str) {
        if share >= 1.0 {
            // Whatever comes behind the last step has the terminal for itself.
            return self.bar.finish_and_clear();
        }
        self.bar.set_message(doing.to_owned());
        self.bar.set_position((share.clamp(0.0, 1.0) * STEPS as f64) as u64);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// `about 3 min and 512.0 MB`.
fn estimate_line(estimate: Estimate) -> String {
    let amount = format!("{}B of memory", thousands(estimate.memory_bytes as f64));
    let bound = if estimate.is_least { "at least" } else { "about" };
    let memory = if estimate.is_least { format!("at least {amount}") } else { amount.clone() };
    let rtl = if estimate.has_rtl { ", and more for the RTL, which is not in it" } else { "" };
    let line = match estimate.wall_seconds {
        None => format!("{bound} {amount}"),
        Some(seconds) if seconds < 1.0 => format!("less than a second and {bound} {amount}"),
        Some(seconds) if seconds < 120.0 => format!("about {seconds:.0} s and {memory}"),
        Some(seconds) if seconds < 7200.0 => format!("about {:.0} min and {memory}", seconds / 60.0),
        Some(seconds) => format!("about {:.0} h and {memory}", seconds / 3600.0),
    };
    line + rtl
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_written_in_units_of_their_size() {
        let of = |wall_seconds, is_least| Estimate {
            wall_seconds,
            memory_bytes: 512_000_000,
            is_least,
            has_rtl: false,
        };
        let line = |seconds| estimate_line(of(seconds, false));
        assert_eq!(estimate_line(of(None, true)), "at least 512.0 MB of memory");
        assert_eq!(estimate_line(of(Some(200.0), true)), "about 3 min and at least 512.0 MB of memory");
        assert_eq!(line(Some(0.2)), "less than a second and about 512.0 MB of memory");
        assert_eq!(line(Some(200.0)), "about 3 min and 512.0 MB of memory");
        assert_eq!(line(Some(9000.0)), "about 2 h and 512.0 MB of memory");
        assert_eq!(line(None), "about 512.0 MB of memory");
        let with_rtl = Estimate { has_rtl: true, ..of(Some(0.2), false) };
        assert!(estimate_line(with_rtl).ends_with(", and more for the RTL, which is not in it"));
    }

    /// Catches a template that indicatif refuses.
    #[test]
    fn a_bar_can_be_made() {
        Bar::new(true).advance(0.5, "load 0.3");
    }
}
