//! `--iterations`: a number, or `osu` for OSU's own counts.

use weft_sim::experiment::osu::Iterations;

/// Reads iterations.
pub fn parse_iterations(text: &str) -> Result<Iterations, String> {
    if text == "osu" {
        return Ok(Iterations::Osu);
    }
    let wrong =
        || "neither a number of iterations nor `osu`; write 20, or osu for OSU's own counts".to_owned();
    text.parse().map(Iterations::Exactly).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_iterations_show_the_mend() {
        assert_eq!(parse_iterations("20"), Ok(Iterations::Exactly(20)));
        assert_eq!(parse_iterations("osu"), Ok(Iterations::Osu));
        for text in ["OSU", "-1", "1.5", "usual", "", "5000000000"] {
            let error = parse_iterations(text).unwrap_err();
            assert!(error.contains("write 20, or osu"), "{text}: {error}");
        }
    }
}
