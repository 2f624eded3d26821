//! The architecture as a test: who may import whom, and the few other rules that no lint knows.
//! `docs/architecture.md` says why each of them is there.
//!
//! Each rule is a function over source text with tests of its own, on text that breaks it.

mod functions;
mod imports;
mod source;

use source::Token;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// One source file that ships: its path from the repository's root, its module, its tokens without test-only items.
struct File {
    path: String,
    module: Vec<String>,
    tokens: Vec<Token>,
}

impl File {
    fn is_in(&self, folder: &str) -> bool {
        self.path.starts_with(&format!("{folder}/")) || self.path == format!("{folder}.rs")
    }

    fn module(&self) -> Vec<&str> {
        self.module.iter().map(String::as_str).collect()
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn folder_entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in folder_entries(folder) {
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// `src/kernels/cosine/mod.rs` is `kernels::cosine`, `src/gate/plan.rs` is `gate::plan`.
fn module_of(path: &str) -> Vec<String> {
    let inner = path.trim_start_matches("src/").trim_end_matches(".rs").trim_end_matches("/mod");
    inner.split('/').map(String::from).collect()
}

/// Everything under `src/` that ends up in a build without `cfg(test)`.
fn files() -> Vec<File> {
    let mut paths = Vec::new();
    rust_files(&root().join("src"), &mut paths);
    let mut files = Vec::new();
    let mut test_modules = BTreeSet::new();
    for path in paths {
        let source = std::fs::read_to_string(&path).unwrap();
        let path = path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/");
        let shipped = source::shipped(&source::tokens(&source));
        let module = module_of(&path);
        let parent = if path == "src/lib.rs" || path == "src/main.rs" { &[][..] } else { &module[..] };
        test_modules.extend(shipped.test_modules.into_iter().map(|name| [parent, &[name]].concat()));
        files.push(File { path, module, tokens: shipped.tokens });
    }
    files.retain(|file| !test_modules.iter().any(|module| file.module.starts_with(module)));
    assert!(files.len() > 20, "only {} files found under src: the rules would hold for nothing", files.len());
    files
}

/// The folders under `src/kernels`.
fn kernel_folders() -> Vec<String> {
    let folders = folder_entries(&root().join("src/kernels")).into_iter().filter(|path| path.is_dir());
    folders.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

fn assert_none(rule: &str, objections: &[String]) {
    assert!(objections.is_empty(), "{rule}:\n  {}", objections.join("\n  "));
}

#[test]
fn every_import_is_in_the_table() {
    let kernels = kernel_folders();
    let mut objections = Vec::new();
    for file in files().iter().filter(|file| file.path != "src/lib.rs" && file.path != "src/main.rs") {
        for import in imports::imports(&file.module(), &file.tokens) {
            let objection = imports::objection(&file.module(), &import, &kernels);
            objections.extend(objection.map(|objection| format!("{}:{}: {objection}", file.path, import.line)));
        }
    }
    assert_none("imports that tests/architecture/imports.rs does not allow", &objections);
}

#[test]
fn the_program_is_a_call_of_cli() {
    let files = files();
    let main = files.iter().find(|file| file.path == "src/main.rs").unwrap();
    assert_eq!(after("lodestar", &main.tokens), ["cli"].into(), "src/main.rs calls cli::run and nothing else");
}

/// What follows `name::`, each once.
fn after<'a>(name: &str, tokens: &'a [Token]) -> BTreeSet<&'a str> {
    let triples = tokens.windows(3).filter(|window| window[0].text == name && window[1].text == "::");
    triples.map(|window| window[2].text.as_str()).collect()
}

/// Lines on which a crate is named: as the start of a path, or in a `use`.
fn names_crate(name: &str, tokens: &[Token]) -> Vec<usize> {
    let mut lines = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1).map_or("", |token| token.text.as_str());
        let previous = if at == 0 { "" } else { tokens[at - 1].text.as_str() };
        if token.text == name && previous != "::" && (next == "::" || previous == "use" || previous == "crate") {
            lines.push(token.line);
        }
    }
    lines
}

fn crate_is_named_outside(name: &str, folder: &str, files: &[File]) -> Vec<String> {
    let outside = files.iter().filter(|file| !file.is_in(folder));
    outside
        .flat_map(|file| names_crate(name, &file.tokens).into_iter().map(|line| format!("{}:{line}", file.path)))
        .collect()
}

#[test]
fn only_the_device_layer_names_wgpu() {
    let files = files();
    for name in ["wgpu", "pollster", "naga"] {
        assert_none(&format!("{name} outside of src/device"), &crate_is_named_outside(name, "src/device", &files));
    }
}

#[test]
fn only_the_simd_layer_names_the_simd_crate() {
    let files = files();
    for name in ["fearless_simd", "fearless_simd_macros"] {
        assert_none(&format!("{name} outside of src/simd"), &crate_is_named_outside(name, "src/simd", &files));
    }
}

#[test]
fn a_crate_is_found_in_paths_and_uses_but_not_in_fields() {
    let lines = |source: &str| names_crate("wgpu", &source::tokens(source));
    assert_eq!(lines("use wgpu::Device;\nuse wgpu as w;\nextern crate wgpu;\nfn f(d: &wgpu::Queue) {}"), [1, 2, 3, 4]);
    assert_eq!(lines("struct Code { wgpu: Option<String> } // wgpu::x\nlet a = code.wgpu; crate::wgpu::x"), [0; 0]);
}

#[test]
fn functions_over_a_simd_level_are_inlined_into_it_or_say_why_not() {
    let mut objections = Vec::new();
    for file in files() {
        let found = functions::undecided(&file.tokens);
        objections.extend(found.into_iter().map(|(name, line)| format!("{}:{line}: fn {name}", file.path)));
    }
    assert_none("functions generic over Simd without #[simd], #[inline(always)] or #[inline(never)]", &objections);
}

/// Lines that print or end the process.
fn prints_or_exits(tokens: &[Token]) -> Vec<usize> {
    let texts: Vec<_> = tokens.iter().map(|token| token.text.as_str()).collect();
    let found = texts.windows(3).enumerate().filter(|(_, window)| match window {
        [name, "!", _] => ["println", "eprintln", "print", "eprint", "dbg"].contains(name),
        ["process", "::", name] => ["exit", "abort"].contains(name),
        _ => false,
    });
    found.map(|(at, _)| tokens[at].line).collect()
}

#[test]
fn only_cli_prints_or_exits() {
    let mut objections = Vec::new();
    for file in files().iter().filter(|file| !file.is_in("src/cli")) {
        objections.extend(prints_or_exits(&file.tokens).into_iter().map(|line| format!("{}:{line}", file.path)));
    }
    assert_none("printing or exiting outside of src/cli", &objections);
}

#[test]
fn printing_and_exiting_are_found() {
    let source =
        "fn f() {\n eprintln!(\"x\");\n std::process::exit(1);\n dbg!(1);\n let print = 1;\n write!(out, \"\") }";
    assert_eq!(prints_or_exits(&source::tokens(source)), [2, 3, 4]);
}

/// Names that say nothing about what is inside.
fn says_nothing(module: &[String]) -> bool {
    const VAGUE: &[&str] = &["utils", "util", "common", "helpers", "helper", "base", "misc", "shared"];
    module.iter().any(|name| VAGUE.contains(&name.as_str()))
}

#[test]
fn every_module_has_a_name_that_says_what_it_holds() {
    let mut objections = Vec::new();
    for file in files() {
        let inline = after_mod(&file.tokens);
        if says_nothing(&file.module) || says_nothing(&inline) {
            objections.push(file.path);
        }
    }
    assert_none("modules whose name says nothing", &objections);
}

fn after_mod(tokens: &[Token]) -> Vec<String> {
    tokens.windows(2).filter(|window| window[0].text == "mod").map(|window| window[1].text.clone()).collect()
}

#[test]
fn a_vague_name_is_found_in_a_path_and_in_the_text() {
    assert!(says_nothing(&module_of("src/gate/utils.rs")));
    assert!(says_nothing(&module_of("src/helpers/mod.rs")));
    assert!(says_nothing(&after_mod(&source::tokens("mod common { }"))));
    assert!(!says_nothing(&module_of("src/data/matrix.rs")));
}

#[test]
fn the_list_of_kernels_is_the_list_of_folders() {
    let listed: BTreeSet<_> = lodestar::kernels::KERNELS.iter().map(|kernel| kernel.id().to_owned()).collect();
    assert_eq!(listed, kernel_folders().into_iter().collect(), "KERNELS in src/kernels/mod.rs, folders in src/kernels");
    assert_eq!(listed.len(), lodestar::kernels::KERNELS.len(), "two kernels have the same id");
}

/// The files that every kernel has, so that who knows one kernel knows where to look in all.
fn missing_files(folder: &Path) -> Vec<String> {
    const FILES: [&str; 7] = ["mod.rs", "reference.rs", "simd.rs", "gpu.rs", "case.rs", "command.rs", "tests.rs"];
    FILES.iter().filter(|name| !folder.join(name).is_file()).map(ToString::to_string).collect()
}

#[test]
fn every_kernel_has_the_same_files() {
    for kernel in kernel_folders() {
        let folder = root().join("src/kernels").join(&kernel);
        assert_none(&format!("files that src/kernels/{kernel} lacks"), &missing_files(&folder));
    }
    assert_eq!(missing_files(&root().join("src/gate")).len(), 6, "a folder that is no kernel lacks files");
}

/// Files of a kernel that its hashes do not cover, though a change in them may change what is measured: with one missing, a
/// result would not turn stale.
fn not_hashed(folder: &Path, hashed: &BTreeSet<&str>) -> Vec<String> {
    /// They say what is measured and for whom, not how it is computed.
    const BESIDE: [&str; 7] = ["mod.rs", "reference.rs", "case.rs", "case", "command.rs", "command", "tests.rs"];
    fn walk(folder: &Path, prefix: &str, found: &mut Vec<String>) {
        for path in folder_entries(folder) {
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name in UTF-8");
            if BESIDE.contains(&name) {
                continue;
            }
            match path.is_dir() {
                true => walk(&path, &format!("{prefix}{name}/"), found),
                false => found.push(format!("{prefix}{name}")),
            }
        }
    }
    let mut found = Vec::new();
    walk(folder, "", &mut found);
    found.retain(|name| !hashed.contains(name.as_str()));
    found
}

#[test]
fn every_source_of_a_kernel_is_in_a_hash() {
    for kernel in lodestar::kernels::KERNELS {
        let folder = root().join("src/kernels").join(kernel.id());
        let hashed = kernel.cpu_sources().iter().chain(kernel.gpu_sources()).map(|&(name, _)| name).collect();
        assert_none(&format!("sources of {} that no hash covers", kernel.id()), &not_hashed(&folder, &hashed));
        assert!(not_hashed(&folder, &BTreeSet::new()).contains(&"simd.rs".to_owned()), "without hashes all are missed");
    }
}

#[test]
fn every_kernel_has_its_protocol() {
    let without = |protocol: &dyn Fn(&str) -> PathBuf| -> Vec<String> {
        let section = |kernel: &str| format!("[{kernel}]");
        let has = |kernel: &str| {
            std::fs::read_to_string(protocol(kernel)).is_ok_and(|text| text.lines().any(|line| line == section(kernel)))
        };
        kernel_folders().into_iter().filter(|kernel| !has(kernel)).collect()
    };
    let protocols = root().join("protocols");
    assert_none("kernels without protocols/<id>.toml", &without(&|kernel| protocols.join(format!("{kernel}.toml"))));
    assert_eq!(without(&|_| root().join("Cargo.toml")), kernel_folders(), "a file without the section is no protocol");
}

#[test]
fn the_module_of_a_file_is_its_path() {
    assert_eq!(module_of("src/kernels/cosine/mod.rs"), ["kernels", "cosine"]);
    assert_eq!(module_of("src/gate/plan.rs"), ["gate", "plan"]);
    assert_eq!(module_of("src/error.rs"), ["error"]);
}
