//! Lookahead: how far one site can see before another can disturb it.

use weft_units::Span;

/// The least time that an event takes from one site to another. Windows are no longer than this.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lookahead(Span);

/// A cut between two sites across which events would take no time.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{cut} has no latency, so the two sides cannot be separate sites; give it a latency of at least 1ps")]
pub struct ZeroLatencyCut {
    /// What lies between the two sites: the name of a link.
    pub cut: String,
}

impl Lookahead {
    /// Sites that never send each other anything.
    pub const UNLIMITED: Lookahead = Lookahead(Span::MAX);

    /// The lookahead of a model whose sites are joined by `cuts` of the given latencies and names.
    ///
    /// # Errors
    /// The first cut without latency.
    pub fn across<'a>(cuts: impl IntoIterator<Item = (Span, &'a str)>) -> Result<Lookahead, ZeroLatencyCut> {
        let mut least = Span::MAX;
        for (latency, cut) in cuts {
            if latency == Span::ZERO {
                return Err(ZeroLatencyCut { cut: cut.to_owned() });
            }
            least = least.min(latency);
        }
        Ok(Lookahead(least))
    }

    /// The least time between sites.
    pub const fn span(self) -> Span {
        self.0
    }

    /// log2 of the window length in ps: the largest power of two within the lookahead, so that an
    /// event finds its window by a shift. Windows of unlimited lookahead are 2^24 ps (17 µs), which
    /// bounds what is sorted at once.
    pub(crate) const fn window_shift(self) -> u32 {
        let shift = self.0.as_ps().ilog2();
        if shift > 24 { 24 } else { shift }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_without_latency_is_refused_by_name() {
        let cuts = [(Span::from_ns(5), "link A"), (Span::ZERO, "link B")];
        assert!(Lookahead::across(cuts).unwrap_err().to_string().starts_with("link B has no latency"));
        assert_eq!(Lookahead::across([(Span::from_ps(100), "x")]).unwrap().window_shift(), 6);
    }
}
