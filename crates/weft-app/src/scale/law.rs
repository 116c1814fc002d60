//! The laws by which sizes and computation go to another number of ranks (D1.4, section 7.1).
//!
//! | quantity | of one recording | of two |
//! |---|---|---|
//! | bytes to a neighbour | the touching area, edge or corner | with a margin: `1/n + h` for `1/n` |
//! | those that fall faster | | a power of the ranks; faster than the volume, the mean of both areas |
//! | computation | the volume of the domain | `a + b / ranks` |
//! | blocks of collectives | the same; all between ranks together | a power of the ranks |
//!
//! `n` is the number of ranks along a dimension across the message, and `h` is fitted.

use crate::grid::RankGrid;

/// Whether the whole problem or that of a rank stays the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ScaleMode {
    /// Strong scaling: the whole problem stays, domains become smaller.
    #[default]
    Strong,
    /// Weak scaling: domains stay, and so do the sizes of messages.
    Weak,
}

/// The scales between which sizes go. The first recording is the one from which all is taken.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Scales {
    pub(super) mode: ScaleMode,
    /// Ranks along each dimension of the recording.
    pub(super) recorded: [u32; 3],
    /// The same of the second recording.
    pub(super) second: Option<[u32; 3]>,
    /// The same of the result.
    pub(super) wanted: [u32; 3],
}

fn ranks(extents: [u32; 3]) -> f64 {
    extents.iter().map(|extent| f64::from(*extent)).product()
}

impl Scales {
    /// Ranks of the result.
    pub(super) fn ranks(&self) -> u32 {
        self.wanted.iter().product()
    }

    /// The recorded rank that stands for a rank: at the same border or edge, or within as far.
    pub(super) fn counterpart(&self, rank: u32) -> u32 {
        let Scales { recorded, wanted, .. } = *self;
        let place = RankGrid { extents: wanted, periodic: false }.place(rank);
        let place = [0, 1, 2].map(|dimension: usize| {
            let (place, wanted, recorded) = (place[dimension], wanted[dimension], recorded[dimension]);
            match place {
                0 => 0,
                last if last + 1 == wanted => recorded - 1,
                // Places within, if the recording has any.
                place if recorded > 2 => 1 + (place - 1) * (recorded - 2) / (wanted - 2).max(1),
                place => place * recorded / wanted,
            }
        });
        RankGrid { extents: recorded, periodic: false }.rank(place)
    }

    /// The points of a grid on other ranks than recorded ones.
    pub(super) fn points(&self, points: [u64; 3], extents: [u32; 3]) -> [u64; 3] {
        match self.mode {
            ScaleMode::Strong => points,
            ScaleMode::Weak => [0, 1, 2].map(|dimension: usize| {
                points[dimension] * u64::from(extents[dimension]) / u64::from(self.recorded[dimension])
            }),
        }
    }

    /// The factor of the bytes of messages to a neighbour in this direction, of means in both recordings.
    pub(super) fn between_neighbours(&self, offset: [i32; 3], mean: f64, second: Option<f64>) -> f64 {
        let across: Vec<usize> = (0..3).filter(|dimension| offset[*dimension] == 0).collect();
        // The domain's extents across the direction at one scale, each with a margin, by those at another.
        let ratio = |from: [u32; 3], to: [u32; 3], margin: f64| {
            let extent = |count: u32| 1.0 / f64::from(count) + margin;
            across.iter().map(|&dimension| extent(to[dimension]) / extent(from[dimension])).product::<f64>()
        };
        let Some((other, second)) = self.second.zip(second.filter(|second| *second > 0.0 && mean > 0.0))
        else {
            return match self.mode {
                ScaleMode::Strong => ratio(self.recorded, self.wanted, 0.0),
                ScaleMode::Weak => 1.0,
            };
        };
        let recorded = mean / second;
        let (bare, same) = (ratio(other, self.recorded, 0.0), 1.0);
        if self.is_beyond_geometry(mean, Some(second)) {
            // The mean of what both recordings give.
            let from_second = ratio(other, self.wanted, 0.0) / recorded;
            return (ratio(self.recorded, self.wanted, 0.0) * from_second).sqrt();
        }
        if !(bare.min(same)..=bare.max(same)).contains(&recorded) || bare == same {
            return self.power(mean, second, other);
        }
        // The margin is found between none and so much that the sizes are the same, by halves of its
        // share of the whole.
        let margin = |share: f64| share / (1.0 - share);
        let (mut low, mut high) = (0.0, 1.0 - 1e-9);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            let is_below = (ratio(other, self.recorded, margin(middle)) < recorded) == (bare < same);
            if is_below { low = middle } else { high = middle }
        }
        ratio(self.recorded, self.wanted, margin((low + high) / 2.0))
    }

    /// Whether bytes to a neighbour fall faster with the ranks than the volume of a part, which no geometry
    /// of parts does.
    pub(super) fn is_beyond_geometry(&self, mean: f64, second: Option<f64>) -> bool {
        let (Some(other), Some(second), ScaleMode::Strong) = (self.second, second, self.mode) else {
            return false;
        };
        mean > 0.0 && mean / second < ranks(other) / ranks(self.recorded)
    }

    /// The factor of a rank's computation, of means in both recordings.
    pub(super) fn computation(&self, mean: f64, second: Option<f64>) -> f64 {
        let Some((other, second)) = self.second.zip(second.filter(|second| *second > 0.0 && mean > 0.0))
        else {
            return match self.mode {
                ScaleMode::Strong => ranks(self.recorded) / ranks(self.wanted),
                ScaleMode::Weak => 1.0,
            };
        };
        let (one, two, wanted) = (1.0 / ranks(self.recorded), 1.0 / ranks(other), 1.0 / ranks(self.wanted));
        let shared = (second - mean) / (two - one);
        let constant = mean - shared * one;
        if shared < 0.0 || constant < 0.0 {
            return self.power(mean, second, other);
        }
        (constant + shared * wanted) / mean
    }

    /// The factor of the bytes that all ranks together give in a collective with blocks between ranks.
    pub(super) fn blocks(&self, mean: f64, second: Option<f64>) -> f64 {
        match self.second.zip(second.filter(|second| *second > 0.0 && mean > 0.0)) {
            Some((other, second)) => self.power(mean, second, other),
            None => match self.mode {
                ScaleMode::Strong => 1.0,
                ScaleMode::Weak => ranks(self.wanted) / ranks(self.recorded),
            },
        }
    }

    /// The factor of what goes by a power of the number of ranks.
    pub(super) fn power(&self, mean: f64, second: f64, other: [u32; 3]) -> f64 {
        let exponent = (mean / second).ln() / (ranks(self.recorded) / ranks(other)).ln();
        (ranks(self.wanted) / ranks(self.recorded)).powf(exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scales(second: Option<[u32; 3]>) -> Scales {
        Scales { mode: ScaleMode::Strong, recorded: [3; 3], second, wanted: [4; 3] }
    }

    /// Catches a face that goes by the volume, and a margin that is not found.
    #[test]
    fn a_slab_with_its_margin_is_exact() {
        let one = scales(None);
        let close = |left: f64, right: f64| assert!((left / right - 1.0).abs() < 1e-6, "{left} {right}");
        close(one.between_neighbours([1, 0, 0], 100.0, None), 9.0 / 16.0);
        close(one.between_neighbours([1, 1, 0], 100.0, None), 3.0 / 4.0);
        close(one.between_neighbours([1, 1, 1], 100.0, None), 1.0);
        let slab = |count: f64| (50.0 / count + 24.0) * (50.0 / count + 24.0);
        let two = scales(Some([2; 3]));
        close(two.between_neighbours([0, 0, 1], slab(3.0), Some(slab(2.0))), slab(4.0) / slab(3.0));
        close(two.between_neighbours([0, 0, 1], 7.0, Some(7.0)), 1.0);
        // 8, 27 and 64 ranks.
        close(
            two.computation(3.0 + 100.0 / 27.0, Some(3.0 + 100.0 / 8.0)),
            (3.0 + 100.0 / 64.0) / (3.0 + 100.0 / 27.0),
        );
        close(two.blocks(27.0, Some(8.0)), 64.0 / 27.0);
    }
}
