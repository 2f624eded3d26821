//! The specification: the table of Wagner and Fischer (J. ACM 21, 1974), one row at a time.

use crate::data::Text;

/// The distance of two strings.
pub fn distance(a: Text<'_>, b: Text<'_>) -> u32 {
    let mut row: Vec<u32> = (0..=b.len()).map(|j| u32::try_from(j).expect("a text is shorter than 2^32")).collect();
    for (i, x) in (1..).zip(a.iter()) {
        let mut diagonal = row[0];
        row[0] = i;
        for (j, y) in (1..).zip(b.iter()) {
            let substituted = diagonal + u32::from(x != y);
            diagonal = row[j];
            row[j] = substituted.min(row[j - 1] + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_that_everyone_knows() {
        for (a, b, expected) in [
            ("kitten", "sitting", 3),
            ("intention", "execution", 5),
            ("saturday", "sunday", 3),
            ("", "AA", 2),
            ("", "", 0),
            ("a\0b", "ab", 1),
            ("flaw", "lawn", 2),
        ] {
            let distance = distance(Text::Narrow(a.as_bytes()), Text::Narrow(b.as_bytes()));
            assert_eq!(distance, expected, "{a} {b}");
        }
    }
}
