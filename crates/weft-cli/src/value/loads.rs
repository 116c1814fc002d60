//! `--load`: one load, a list, or first, last and step: `0.6`, `0.2,0.6`, `0.1:1.0:0.1`.

use weft_sim::experiment::load::Load;

/// The most points of one curve: more is a slip, such as a step with a zero too many.
const MOST: u32 = 1000;

/// Loads, ascending; above zero but for a single zero, the idle machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loads(pub Vec<Load>);

/// Reads loads. The steps are exact decimals: the last load is `b` itself where the steps meet it.
pub fn parse_loads(text: &str) -> Result<Loads, String> {
    if text.contains(',') {
        let mut loads = text.split(',').map(str::parse).collect::<Result<Vec<Load>, String>>()?;
        loads.sort();
        loads.dedup();
        return match loads.first() {
            Some(first) if *first == Load::from_millionths(0) => {
                Err("a load of 0 offers no traffic; leave it out of the list".to_owned())
            }
            _ => Ok(Loads(loads)),
        };
    }
    let parts = text.split(':').map(str::parse).collect::<Result<Vec<Load>, String>>()?;
    let (first, last, step) = match parts[..] {
        [load] => return Ok(Loads(vec![load])),
        [first, last, step] => (first, last, step),
        _ => return Err("a range of loads is FIRST:LAST:STEP; write 0.1:1.0:0.1".to_owned()),
    };
    let zero = Load::from_millionths(0);
    if first == zero {
        return Err(
            "a load of 0 offers no traffic; start above it, such as 0.1:1.0:0.1, or write --load 0 for \
                    the idle machine"
                .to_owned(),
        );
    }
    if step == zero {
        return Err(format!("a step of 0 never gets from {first} to {last}; write {first}:{last}:0.1"));
    }
    if last < first {
        return Err(format!("{last} comes before {first}; write {last}:{first}:{step}"));
    }
    let count = (last.millionths() - first.millionths()) / step.millionths() + 1;
    if count > MOST {
        return Err(format!("these are {count} loads, and at most {MOST} are run; take a larger step"));
    }
    let load = |n| Load::from_millionths(first.millionths() + n * step.millionths());
    Ok(Loads((0..count).map(load).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads(text: &str) -> Vec<String> {
        parse_loads(text).unwrap().0.iter().map(Load::to_string).collect()
    }

    /// Catches drift: in binary floating point 0.1 added nine times is less than 1, and 0.3 is not met.
    #[test]
    fn ranges_are_exact_decimals() {
        let tenths = ["0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1.0"];
        assert_eq!(loads("0.1:1.0:0.1"), tenths);
        assert_eq!(loads("0.05:0.3:0.1"), ["0.05", "0.15", "0.25"]);
        assert_eq!(loads("0.6,0.2,0.6"), ["0.2", "0.6"]);
        assert_eq!(loads("0.6"), ["0.6"]);
        assert_eq!(loads("0"), ["0.0"]);
        assert_eq!(loads("0.3:0.3:0.1"), ["0.3"]);
    }

    #[test]
    fn wrong_loads_show_the_mend() {
        for (text, mend) in [
            ("0:1:0.1", "start above it"),
            ("0,0.5", "leave it out"),
            ("0.1:1.0:0", "write 0.1:1.0:0.1"),
            ("0.9:0.1:0.1", "write 0.1:0.9:0.1"),
            ("0.1:0.9", "FIRST:LAST:STEP"),
            ("0.1:0.9:x", "such as 0.6"),
            ("60%", "percentage"),
            ("0.000001:1:0.000001", "larger step"),
        ] {
            let error = parse_loads(text).unwrap_err();
            assert!(error.contains(mend), "{text}: {error}");
        }
    }
}
