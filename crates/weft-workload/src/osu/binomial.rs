//! Who sends to whom in each step of a binomial broadcast: what Eq. 1 of TR-488 counts.
//!
//! ```text
//!   8 ranks, root 0:   step 0   0 ▶ 4
//!                      step 1   0 ▶ 2   4 ▶ 6
//!                      step 2   0 ▶ 1   2 ▶ 3   4 ▶ 5   6 ▶ 7
//! ```
//!
//! # Source
//! MPICH 3.2.1, `MPIR_Bcast_binomial`; TR-488 §6.1.3 and §6.1.4.

/// The pairs (sender, receiver) of step `step` of a broadcast from rank 0 to `ranks` ranks; `None` after
/// the last step.
pub fn broadcast_step(ranks: u32, step: u32) -> Option<impl Iterator<Item = (u32, u32)>> {
    let steps = ranks.max(1).next_power_of_two().trailing_zeros();
    let distance = 1u32 << steps.checked_sub(step + 1)?;
    let pair = move |sender: u32| (sender, sender + distance);
    Some((0..ranks.saturating_sub(distance)).step_by(2 * distance as usize).map(pair))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(ranks: u32) -> Vec<Vec<(u32, u32)>> {
        (0..).map_while(|step| broadcast_step(ranks, step)).map(Iterator::collect).collect()
    }

    #[test]
    fn the_steps_are_those_of_the_figure() {
        assert_eq!(steps(8), [vec![(0, 4)], vec![(0, 2), (4, 6)], vec![(0, 1), (2, 3), (4, 5), (6, 7)]]);
        assert_eq!(steps(1), [[]; 0]);
    }

    /// Catches a rank that is left out or hears twice, and a sender that has not heard.
    #[test]
    fn everybody_hears_once() {
        for ranks in 1..70 {
            let mut heard = vec![false; ranks as usize];
            heard[0] = true;
            for (from, to) in steps(ranks).into_iter().flatten() {
                assert!(heard[from as usize] && !heard[to as usize], "{ranks}: {from} to {to}");
                heard[to as usize] = true;
            }
            assert!(heard.into_iter().all(|heard| heard), "{ranks}");
        }
    }
}
