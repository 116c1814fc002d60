//! Which ranks there are, and where they sit.

use weft_units::{EndpointId, RankId};

/// The ranks of programs that run side by side, counted one program after another, on endpoints.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Seating {
    /// Number of the first rank of each program.
    first_ranks: Vec<u32>,
    /// Of each rank: its endpoint, and its number among the ranks there.
    seats: Vec<(EndpointId, u32)>,
}

impl Seating {
    /// The ranks of each program at these endpoints.
    pub fn new<P: IntoIterator<Item = EndpointId>>(programs: impl IntoIterator<Item = P>) -> Seating {
        let mut seating = Seating::default();
        let mut occupied: Vec<u32> = Vec::new();
        for endpoints in programs {
            seating.first_ranks.push(seating.ranks());
            for endpoint in endpoints {
                if occupied.len() <= endpoint.index() {
                    occupied.resize(endpoint.index() + 1, 0);
                }
                seating.seats.push((endpoint, occupied[endpoint.index()]));
                occupied[endpoint.index()] += 1;
            }
        }
        seating
    }

    /// Ranks of all programs.
    pub fn ranks(&self) -> u32 {
        self.seats.len() as u32
    }

    /// The number of a program's rank, counted over all programs.
    #[inline]
    pub fn number(&self, program: u32, rank: RankId) -> RankId {
        RankId(self.first_ranks[program as usize] + rank.0)
    }

    /// The program of a rank that is counted over all programs, and its rank there.
    pub fn program(&self, number: RankId) -> (u32, RankId) {
        // Programs without ranks begin where the next one does.
        let program = self.first_ranks.partition_point(|first| *first <= number.0).saturating_sub(1);
        let first = self.first_ranks.get(program).copied().unwrap_or(0);
        (program as u32, RankId(number.0 - first))
    }

    /// The endpoint of a rank that is counted over all programs.
    #[inline]
    pub fn endpoint(&self, number: RankId) -> EndpointId {
        self.seats[number.index()].0
    }

    /// The endpoint of a rank that is counted over all programs, and its number among the ranks there;
    /// `None`: there is no such rank.
    #[inline]
    pub fn seat(&self, number: RankId) -> Option<(EndpointId, u32)> {
        self.seats.get(number.index()).copied()
    }

    /// The endpoint with the most ranks, and how many it has.
    pub fn fullest_endpoint(&self) -> Option<(EndpointId, u32)> {
        let ranks = self.seats.iter().map(|(endpoint, seat)| (*endpoint, seat + 1));
        ranks.max_by_key(|(endpoint, ranks)| (*ranks, std::cmp::Reverse(*endpoint)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches ranks of one program that are counted as another's, and two ranks on one seat.
    #[test]
    fn ranks_are_counted_one_program_after_another() {
        let seating = Seating::new([vec![EndpointId(3), EndpointId(1)], vec![], vec![EndpointId(3)]]);
        assert_eq!(seating.ranks(), 3);
        assert_eq!(seating.number(2, RankId(0)), RankId(2));
        assert_eq!(seating.program(RankId(1)), (0, RankId(1)));
        assert_eq!(seating.program(RankId(2)), (2, RankId(0)));
        assert_eq!(seating.seat(RankId(2)), Some((EndpointId(3), 1)));
        assert_eq!(seating.seat(RankId(3)), None);
        assert_eq!(seating.fullest_endpoint(), Some((EndpointId(3), 2)));
    }
}
