//! Forward error correction: Reed-Solomon code words of 10-bit symbols.
//!
//! ```text
//!   514 symbols of data = 640 B of the MAC, transcoded      parity
//!   ├──────────────────────────────────────────────────────┼──────┤  n = 528 or 544
//!   wrong symbols:  none · up to t = (n − 514) / 2: corrected · more: the code word is lost
//! ```
//! 20 blocks of 257 bits are a code word's 5,140 bits of data: 80 blocks of 64 bits, 640 B of the MAC. The
//! receiver
//! stores a code word before it can correct it, so that a link is longer by the time of 640 B at the rate of
//! the MAC: 51.2 ns at 100 Gb/s. Faster links interleave several code words, and store all of them.
//!
//! Each symbol is wrong with the same chance, so that the number of wrong ones is binomial. A code word that
//! has more
//! than t is uncorrected, and every packet that it touches is marked. Only code words with bytes of packets
//! are counted, each once.
//!
//! # Source
//! IEEE 802.3 clause 91 (RS(528,514), t = 7, and RS(544,514), t = 15), clause 119 (200 and 400 Gb/s: two code
//! words interleaved), 802.3df (800 Gb/s: four); Intel AN846 for both codes.
//!
//! # Not modelled
//! Errors in bursts, code words that are corrected to something wrong, the receiver's arithmetic (some 50 ns
//! more: a machine file has it in `latency`), and code words of an idle line.

use super::bit_errors::Chance;
use super::{ErrorRate, PER};
use crate::link::LineRate;
use serde::{Deserialize, Serialize};
use weft_engine::Stream;
use weft_units::{BitRate, Bytes, Span, Time};

/// A code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Fec {
    /// RS(528,514), t = 7: "KR4", 25 and 100 Gb/s.
    Rs528,
    /// RS(544,514), t = 15: "KP4", lanes of 50 Gb/s and more.
    Rs544,
}

/// Bytes of the MAC that a code word carries.
const BYTES_PER_CODEWORD: u64 = 640;

impl Fec {
    /// Symbols of a code word.
    pub const fn symbols(self) -> u32 {
        match self {
            Fec::Rs528 => 528,
            Fec::Rs544 => 544,
        }
    }

    /// Most wrong symbols that are corrected.
    pub const fn corrects(self) -> u32 {
        (self.symbols() - 514) / 2
    }

    /// Whether links of `rate` can have the code: whether the standard has it for that rate of the MAC.
    pub fn fits(self, rate: BitRate) -> bool {
        self.rates().contains(&rate)
    }

    /// The rates of the MAC for which the standard has the code.
    pub fn rates(self) -> &'static [BitRate] {
        const RATES: [BitRate; 6] = [
            BitRate::from_gigabits(25),
            BitRate::from_gigabits(100),
            BitRate::from_gigabits(50),
            BitRate::from_gigabits(200),
            BitRate::from_gigabits(400),
            BitRate::from_gigabits(800),
        ];
        match self {
            Fec::Rs528 => &RATES[..2],
            Fec::Rs544 => &RATES[1..],
        }
    }

    /// Code words that are interleaved at `rate`.
    const fn interleaved(rate: BitRate) -> u64 {
        match rate.bits_per_second() / 1_000_000_000 {
            800.. => 4,
            200.. => 2,
            _ => 1,
        }
    }

    /// Time that the receiver stores bits of a link of `rate` for. Rounded up once.
    pub fn store_time(self, rate: BitRate) -> Span {
        rate.span(Bytes::new(BYTES_PER_CODEWORD * Fec::interleaved(rate)))
    }

    /// The chances of its code words.
    pub fn figures(self, symbol_errors: ErrorRate) -> FecFigures {
        let (n, t) = (u64::from(self.symbols()), u64::from(self.corrects()));
        let (wrong, right) = (symbol_errors.count(), PER - symbol_errors.count());
        // Weights of k wrong symbols, from the likeliest k, whose weight is 2⁹⁶, to both sides:
        // P(k + 1) = P(k) (n − k) / (k + 1) p / (1 − p). That way nothing that matters is ever small.
        let likeliest = ((n + 1) * wrong / PER).min(n);
        let mut weights = vec![0; n as usize + 1];
        weights[likeliest as usize] = 1 << 96;
        for k in likeliest..n {
            weights[k as usize + 1] = times(weights[k as usize], (n - k) * wrong, (k + 1) * right);
        }
        for k in (1..=likeliest).rev() {
            weights[k as usize - 1] = times(weights[k as usize], k * right, (n - k + 1) * wrong);
        }
        let from = |k: u64| weights[k as usize..].iter().sum::<u128>();
        FecFigures {
            wrong: Chance::share(from(1), from(0)),
            uncorrected: Chance::share(from(t + 1), from(0)),
        }
    }
}

/// `weight × numerator / denominator`, rounded down, where that is at most 2⁹⁶; the others are below 2⁶⁰.
fn times(weight: u128, numerator: u64, denominator: u64) -> u128 {
    let (numerator, denominator) = (u128::from(numerator), u128::from(denominator));
    let (high, low) = (weight >> 48, weight & ((1 << 48) - 1));
    let of_high = high * numerator;
    let rest = ((of_high % denominator) << 48) + low * numerator;
    ((of_high / denominator) << 48) + rest / denominator
}

/// The chances of a code word.
#[derive(Clone, Copy, Debug)]
pub struct FecFigures {
    /// That a symbol at least is wrong.
    wrong: Chance,
    /// That more are than can be corrected.
    uncorrected: Chance,
}

impl FecFigures {
    /// The chance that a code word is corrected.
    pub fn corrected(&self) -> f64 {
        self.wrong.to_f64() - self.uncorrected.to_f64()
    }

    /// The chance that it cannot be.
    pub fn uncorrected(&self) -> f64 {
        self.uncorrected.to_f64()
    }
}

/// The code words of links of a kind.
#[derive(Clone, Debug)]
pub(super) struct Codewords {
    figures: FecFigures,
    rate: LineRate,
    /// Code words that are under way at once.
    interleaved: u64,
}

/// Code words that end alike for all packets that they touch: those that are under way at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Group {
    number: u64,
    is_lost: bool,
}

/// Code words by what became of them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Outcome {
    pub(super) corrected: u64,
    pub(super) uncorrected: u64,
    /// Whether one of those that the packet touches is lost.
    pub(super) is_lost: bool,
}

impl Codewords {
    /// The code words of `fec` on a line of `rate`; `None`: no symbol is ever wrong.
    pub(super) fn new(fec: Fec, symbol_errors: ErrorRate, rate: (BitRate, LineRate)) -> Option<Codewords> {
        (!symbol_errors.is_none()).then(|| Codewords {
            figures: fec.figures(symbol_errors),
            rate: rate.1,
            interleaved: Fec::interleaved(rate.0),
        })
    }

    /// Draws random numbers for the code words that pass from `began` to `ended`, but for those that have
    /// been thrown for: `last` is the last group of these.
    pub(super) fn pass(
        &self,
        (began, ended): (Time, Time),
        last: &mut Option<Group>,
        rng: &mut Stream,
    ) -> Outcome {
        let group = Bytes::new(BYTES_PER_CODEWORD * self.interleaved);
        let number = |time: Time| self.rate.pieces_until(time, group);
        let (first, end) = (number(began), number(Time::from_ps(ended.as_ps().saturating_sub(1))));
        let mut outcome = Outcome::default();
        for number in first..=end {
            let known = last.filter(|group| group.number == number);
            let is_lost = match known {
                Some(group) => group.is_lost,
                None => self.group(&mut outcome, rng),
            };
            outcome.is_lost |= is_lost;
            *last = Some(Group { number, is_lost });
        }
        outcome
    }

    /// Draws random numbers for one group; whether a code word of it is lost.
    fn group(&self, outcome: &mut Outcome, rng: &mut Stream) -> bool {
        let mut is_lost = false;
        for _ in 0..self.interleaved {
            let thrown = rng.next_u64();
            if self.figures.uncorrected.strikes(thrown) {
                outcome.uncorrected += 1;
                is_lost = true;
            } else if self.figures.wrong.strikes(thrown) {
                outcome.corrected += 1;
            }
        }
        is_lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_units::LineCode;

    /// ln of n over k.
    fn ln_choose(n: u32, k: u32) -> f64 {
        (0..k).map(|i| f64::from(n - i).ln() - f64::from(i + 1).ln()).sum()
    }

    /// The closed form: the sum of the binomial from t + 1 on.
    fn closed_form(fec: Fec, p: f64) -> f64 {
        let n = fec.symbols();
        let of_k = |k: u32| (ln_choose(n, k) + f64::from(k) * p.ln() + f64::from(n - k) * (-p).ln_1p()).exp();
        (fec.corrects() + 1..=n).map(of_k).sum()
    }

    /// Catches a wrong n, t or recursion, and precision that is lost where chances are small.
    #[test]
    fn chances_of_code_words_are_binomial() {
        assert_eq!((Fec::Rs528.corrects(), Fec::Rs544.corrects()), (7, 15));
        for fec in [Fec::Rs528, Fec::Rs544] {
            for per_million in [50_u32, 200, 1_000, 5_000, 10_000, 20_000, 30_000, 50_000, 100_000] {
                let rate = ErrorRate::new(u64::from(per_million) * 1_000_000_000).unwrap();
                let (figures, p) = (fec.figures(rate), f64::from(per_million) / 1e6);
                let (found, exact) = (figures.uncorrected(), closed_form(fec, p));
                // The last place of 96 bits is 1.3e-29.
                assert!((found - exact).abs() < 1e-7 * exact + 1e-24, "{fec:?} {p}: {found} {exact}");
                let whole = (f64::from(fec.symbols()) * (-p).ln_1p()).exp();
                assert!((figures.corrected() + found + whole - 1.0).abs() < 1e-9, "{fec:?} {p}");
            }
            assert!(fec.figures(ErrorRate::new(PER / 2).unwrap()).uncorrected() > 0.999_999);
        }
    }

    /// Catches a store time that is not that of a code word: 51.2 ns at 100 Gb/s (FIELD.md D).
    #[test]
    fn store_times_by_hand() {
        let at = |gigabits| Fec::Rs544.store_time(BitRate::from_gigabits(gigabits)).as_ps();
        assert_eq!(Fec::Rs528.store_time(BitRate::from_gigabits(100)).as_ps(), 51_200);
        assert_eq!([at(50), at(100), at(200), at(400), at(800)], [102_400, 51_200, 51_200, 25_600, 25_600]);
    }

    /// Catches a code word that is thrown for twice, or not at all, where packets meet in it.
    #[test]
    fn each_code_word_is_counted_once() {
        let rate = BitRate::from_gigabits(100);
        let line = LineRate::new(rate, LineCode::NONE).unwrap();
        let errors = ErrorRate::new(PER / 2).unwrap();
        let codewords = Codewords::new(Fec::Rs528, errors, (rate, line)).unwrap();
        let (mut last, mut rng, mut counted) = (None, Stream::new(1, 2, 3), 0);
        for packet in 0..100u64 {
            // Packets of 100 B, 8 ns each, without a gap.
            let at = |n: u64| Time::from_ps(n * 8_000);
            let outcome = codewords.pass((at(packet), at(packet + 1)), &mut last, &mut rng);
            assert!(outcome.is_lost, "{packet}");
            counted += outcome.uncorrected;
        }
        // 10,000 B are 15.6 code words.
        assert_eq!(counted, 16);
    }
}
