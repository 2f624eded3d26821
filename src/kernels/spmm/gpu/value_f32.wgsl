// f32: an invocation's vector is four neighbouring columns, 16 bytes; every adapter of a workgroup's width has it.
alias Value = f32;
alias Vector = vec4<f32>;
