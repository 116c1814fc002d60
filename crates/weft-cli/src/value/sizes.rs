//! `--size`: one size, or first and last: `256`, `0:4M`.

use weft_units::Bytes;

/// Sizes, ascending.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sizes(pub Vec<Bytes>);

/// Reads sizes: `a:b` is a, then the powers of two above it up to b; `0:b` is 0, then 1, 2, 4 … up to b.
pub fn parse_sizes(text: &str) -> Result<Sizes, String> {
    if text.contains(',') {
        return Err("sizes are no list; write one, or FIRST:LAST such as 1:4M".to_owned());
    }
    let read = |text: &str| text.parse::<Bytes>().map_err(|error| error.to_string());
    let parts = text.split(':').map(read).collect::<Result<Vec<_>, _>>()?;
    let (first, last) = match parts[..] {
        [size] => return Ok(Sizes(vec![size])),
        [first, last] => (first, last),
        _ => return Err("a range of sizes is FIRST:LAST; write 1:4M".to_owned()),
    };
    if last < first {
        return Err(format!("{last} is less than {first}; write {last}:{first}"));
    }
    let powers = (0..u64::BITS).map(|power| Bytes::new(1 << power));
    let above = powers.skip_while(|&size| size <= first).take_while(|&size| size <= last);
    Ok(Sizes(std::iter::once(first).chain(above).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(text: &str) -> Vec<u64> {
        parse_sizes(text).unwrap().0.into_iter().map(Bytes::get).collect()
    }

    #[test]
    fn ranges_are_the_first_then_powers_of_two() {
        assert_eq!(sizes("0:8"), [0, 1, 2, 4, 8]);
        assert_eq!(sizes("3:20"), [3, 4, 8, 16]);
        assert_eq!(sizes("4:4"), [4]);
        assert_eq!(sizes("4K"), [4096]);
        assert_eq!(sizes("0:4M").len(), 24);
        assert_eq!(sizes("0:18446744073709551615").len(), 65);
    }

    #[test]
    fn wrong_sizes_show_the_mend() {
        for (text, mend) in [
            ("8:4", "write 4:8"),
            ("1,2,4", "such as 1:4M"),
            ("1:2:3", "write 1:4M"),
            ("4k", "4K"),
            ("-1", "256, 4K"),
        ] {
            let error = parse_sizes(text).unwrap_err();
            assert!(error.contains(mend), "{text}: {error}");
        }
    }
}
