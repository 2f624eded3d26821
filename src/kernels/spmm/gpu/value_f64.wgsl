// f64: an invocation's vector is two neighbouring columns, 16 bytes; a workgroup needs an adapter with SHADER_F64. Only
// + * and fma are used: nothing else is sure to work in double precision.
alias Value = f64;
alias Vector = vec2<f64>;
