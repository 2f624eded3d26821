//! WGSL that repeats a line for every word or bit: what has to be in registers cannot be an array with an index.

/// A column of so many words. `column` takes it one symbol further, `finish` gives its distances to the kernel's `write`.
macro_rules! words {
    ($($i:literal)*) => {
        concat!(
            "\nstruct State {\n", $("  vp", $i, ": u32, vn", $i, ": u32,\n",)* "}\n\n",
            "fn fresh() -> State {\n  var s: State;\n", $("  s.vp", $i, " = 0xffffffffu; s.vn", $i, " = 0u;\n",)*
            "  return s;\n}\n\n",
            "fn column(s: ptr<function, State>, row: u32, above: Edge) -> Edge {\n  var edge = above;\n  var w: Word;\n",
            $(
                "  if (", $i, "u > 0u && ", $i, "u % PER == 0u) { edge = START; }\n",
                "  w = word((*s).vp", $i, ", (*s).vn", $i, ", table[", $i, "u * ROWS + row], edge);\n",
                "  (*s).vp", $i, " = w.vp; (*s).vn", $i, " = w.vn; edge = w.edge;\n",
            )*
            "  return edge;\n}\n\n",
            "fn finish(s: ptr<function, State>, base: u32, length: u32, place: u32) {\n  var sum = length;\n",
            $(
                "  sum += height((*s).vp", $i, ", (*s).vn", $i, ", rows_of(base, ", $i, "u / PER, ", $i, "u % PER));\n",
                "  if ((", $i, "u + 1u) % PER == 0u) { write(base, ", $i, "u / PER, sum, place); sum = length; }\n",
            )*
            "}\n",
        )
    };
}

/// Where a column is kept between dispatches.
macro_rules! kept_words {
    ($($i:literal)*) => {
        concat!(
            "\nfn keep(s: ptr<function, State>, at: u32) {\n",
            $(
                "  kept[at + ", $i, "u * 2u * LANES] = (*s).vp", $i, ";\n",
                "  kept[at + (", $i, "u * 2u + 1u) * LANES] = (*s).vn", $i, ";\n",
            )*
            "}\n\nfn recall(s: ptr<function, State>, at: u32) {\n",
            $(
                "  (*s).vp", $i, " = kept[at + ", $i, "u * 2u * LANES];\n",
                "  (*s).vn", $i, " = kept[at + (", $i, "u * 2u + 1u) * LANES];\n",
            )*
            "}\n",
        )
    };
}

/// The bits of the codes of 32 symbols, one plane a bit.
macro_rules! planes {
    ($($b:literal)*) => {
        concat!(
            "\noverride PLANES: u32 = 8u;\n",
            "\nstruct Planes {\n  are_known: u32,\n", $("  p", $b, ": u32,\n",)* "}\n\n",
            "fn add_code(s: ptr<function, Planes>, code: u32, row: u32) {\n",
            $("  (*s).p", $b, " |= ((code >> ", $b, "u) & 1u) << row;\n",)*
            "}\n\n",
            "fn is_equal(s: ptr<function, Planes>, code: u32) -> u32 {\n  var differs = 0u;\n",
            $(
                "  differs |= (*s).p", $b, " ^ bitcast<u32>(bitcast<i32>(code << (31u - ", $b, "u)) >> 31u);\n",
            )*
            "  return ~differs & (*s).are_known;\n}\n",
        )
    };
}

pub(super) const WORDS_1: &str = words!(0);
pub(super) const WORDS_2: &str = words!(0 1);
pub(super) const WORDS_4: &str = words!(0 1 2 3);
pub(super) const WORDS_8: &str = words!(0 1 2 3 4 5 6 7);
pub(super) const KEPT_8: &str = kept_words!(0 1 2 3 4 5 6 7);

pub(super) const PLANES_2: &str = planes!(0 1);
pub(super) const PLANES_5: &str = planes!(0 1 2 3 4);
pub(super) const PLANES_8: &str = planes!(0 1 2 3 4 5 6 7);
pub(super) const PLANES_16: &str = planes!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
pub(super) const PLANES_32: &str =
    planes!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
