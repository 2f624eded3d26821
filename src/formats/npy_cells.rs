//! Arrays of small numbers as .npy, written value after value.

use super::npy_header;

/// The type of the numbers in an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cells {
    /// Unsigned, 1 byte.
    U8,
    /// Unsigned, 2 bytes.
    U16,
    /// Unsigned, 4 bytes.
    U32,
    /// Floating, 4 bytes.
    F32,
}

impl Cells {
    /// The smallest whole numbers that can be as large as this.
    pub fn up_to(largest: u32) -> Self {
        match largest {
            0..=0xff => Self::U8,
            0x100..=0xffff => Self::U16,
            _ => Self::U32,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::F32 => "f32",
        }
    }

    /// Bytes of one number.
    pub fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::U32 | Self::F32 => 4,
        }
    }

    /// The bytes before the numbers of an array of this shape, in C order.
    pub fn npy_header(self, shape: &[usize]) -> Vec<u8> {
        let descr = match self {
            Self::U8 => "|u1",
            Self::U16 => "<u2",
            Self::U32 => "<u4",
            Self::F32 => "<f4",
        };
        let shape = match shape {
            [length] => format!("({length},)"),
            _ => format!("({})", shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
        };
        npy_header::write_array(descr, &shape)
    }

    /// Appends whole numbers as they stand in the file. One that is too large becomes the largest there is, and a floating
    /// one is rounded.
    pub fn append(self, numbers: &[u32], bytes: &mut Vec<u8>) {
        match self {
            Self::U8 => bytes.extend(numbers.iter().map(|&number| u8::try_from(number).unwrap_or(u8::MAX))),
            Self::U16 => {
                bytes.extend(numbers.iter().flat_map(|&number| u16::try_from(number).unwrap_or(u16::MAX).to_le_bytes()))
            }
            Self::U32 => bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes())),
            Self::F32 => Self::append_f32(numbers.iter().map(|&number| number as f32), bytes),
        }
    }

    /// Appends floating numbers as they stand in the file.
    pub fn append_f32(numbers: impl Iterator<Item = f32>, bytes: &mut Vec<u8>) {
        bytes.extend(numbers.flat_map(f32::to_le_bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_type_that_is_large_enough_is_taken() {
        for (largest, cells) in
            [(0, "u8"), (255, "u8"), (256, "u16"), (65_535, "u16"), (65_536, "u32"), (u32::MAX, "u32")]
        {
            assert_eq!(Cells::up_to(largest).name(), cells);
        }
    }

    #[test]
    fn numbers_are_little_endian_and_the_largest_stands_for_all_above() {
        let bytes = |cells: Cells| {
            let mut bytes = vec![7];
            cells.append(&[1, 0x102, u32::MAX], &mut bytes);
            bytes
        };
        assert_eq!(bytes(Cells::U8), [7, 1, 255, 255]);
        assert_eq!(bytes(Cells::U16), [7, 1, 0, 2, 1, 255, 255]);
        assert_eq!(bytes(Cells::U32), [7, 1, 0, 0, 0, 2, 1, 0, 0, 255, 255, 255, 255]);
        assert_eq!(bytes(Cells::F32)[1..5], 1_f32.to_le_bytes());
        let header =
            |cells: Cells, shape: &[usize]| String::from_utf8_lossy(&cells.npy_header(shape)[10..]).into_owned();
        assert!(header(Cells::U16, &[3]).starts_with("{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }"));
        assert!(header(Cells::U8, &[3, 4]).starts_with("{'descr': '|u1', 'fortran_order': False, 'shape': (3, 4), }"));
        assert!(Cells::F32.npy_header(&[3, 4]).len().is_multiple_of(64));
    }
}
