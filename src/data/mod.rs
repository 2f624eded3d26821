//! Host types that kernels and formats share. Each is checked once, when it is made.

mod buffer;
mod byte_strings;
mod csr;
pub mod generate;
pub mod generate_sparse;
pub mod generate_texts;
mod matrix;
mod text_units;
mod texts;

pub use buffer::Buffer;
pub use byte_strings::ByteStrings;
pub use csr::Csr;
pub use matrix::{Element, Matrix, Rows};
pub use text_units::{Clusters, Normalization, Reading, Unit};
pub use texts::{LONGEST, Symbols, Text, Texts};
