//! What the program would measure now, and what was measured before: for `report` and `kernels`.

use crate::error::Error;
use crate::gate::protocol;
use crate::kernels::{KERNELS, Kernel};
use crate::report::{CurrentKernel, Record};
use crate::results::{self, hex};
use sha2::{Digest, Sha256};
use std::path::Path;

/// Where protocols lie in a checkout.
const PROTOCOLS: &str = "protocols";

/// SHA-256 over named source texts: `kernel_hash` of a kernel's GPU sources, `baseline_hash` of its CPU sources.
///
/// Names and lengths are hashed with the texts, so that moving a line from one file to the next is a change. Line breaks
/// that a checkout turned into CR LF are not.
pub(super) fn fingerprint(sources: &[(&str, &str)]) -> String {
    let mut hash = Sha256::new();
    for (name, text) in sources {
        let text = text.replace("\r\n", "\n");
        hash.update(format!("{name}:{}:", text.len()));
        hash.update(text);
    }
    hex(&hash.finalize())
}

/// Every kernel with the hashes of its present code and protocol. Outside of a checkout there is no protocol to compare
/// with.
pub(super) fn kernels() -> Result<Vec<CurrentKernel>, Error> {
    KERNELS
        .iter()
        .map(|kernel| {
            Ok(CurrentKernel {
                id: kernel.id().to_owned(),
                title: kernel.title().to_owned(),
                kernel_hash: Some(kernel.gpu_sources()).filter(|sources| !sources.is_empty()).map(fingerprint),
                baseline_hash: fingerprint(kernel.cpu_sources()),
                protocol_path: protocol_path(*kernel),
                protocol_sha256: protocol_sha256(*kernel)?,
            })
        })
        .collect()
}

fn protocol_path(kernel: &dyn Kernel) -> String {
    format!("{PROTOCOLS}/{}.toml", kernel.id())
}

fn protocol_sha256(kernel: &dyn Kernel) -> Result<Option<String>, Error> {
    let path = protocol_path(kernel);
    let path = Path::new(&path);
    if !path.exists() {
        return Ok(None);
    }
    let protocols = protocol::read(path, KERNELS)?;
    let own = protocols.into_iter().find(|protocol| protocol.kernel == kernel.id());
    Ok(own.map(|protocol| protocol.sha256))
}

/// Every result below a folder, with the reasons of withdrawn ones.
///
/// A folder that was named has to exist; without the usual one nothing has been measured yet.
pub(super) fn records(folder: Option<&Path>) -> Result<Vec<Record>, Error> {
    let results = folder.unwrap_or(Path::new(super::RESULTS));
    if folder.is_some()
        && let Err(error) = std::fs::read_dir(results)
    {
        return Err(Error::file(results, error));
    }
    let mut withdrawn = results::store::withdrawn(results)?;
    let loaded = results::load_all(results)?.into_iter();
    let records: Vec<Record> =
        loaded.map(|(path, result)| Record { withdrawn: withdrawn.remove(&path), path, result }).collect();
    match withdrawn.keys().next() {
        None => Ok(records),
        Some(path) => Err(Error::format(results.join("withdrawn.toml"), "path", "a result file in this folder", path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_knows_files_apart_and_not_line_breaks() {
        let base = fingerprint(&[("a", "x\ny\n"), ("b", "z\n")]);
        assert_eq!(fingerprint(&[("a", "x\r\ny\r\n"), ("b", "z\n")]), base);
        for other in [
            vec![("a", "x\n"), ("b", "y\nz\n")],
            vec![("b", "z\n"), ("a", "x\ny\n")],
            vec![("a", "x\ny\n"), ("c", "z\n")],
            vec![("a", "x\ny\n")],
        ] {
            assert_ne!(fingerprint(&other), base, "{other:?}");
        }
        assert_eq!(base.len(), 64);
    }

    #[test]
    fn a_withdrawn_result_that_is_not_there_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(records(Some(folder.path())).unwrap(), []);
        std::fs::write(
            folder.path().join("withdrawn.toml"),
            "[[withdrawn]]\npath = \"m/cosine/x.json\"\nreason = \"the fan was off\"\n",
        )
        .unwrap();
        let message = records(Some(folder.path())).unwrap_err().to_string();
        assert!(message.ends_with("expected a result file in this folder, found m/cosine/x.json"), "{message}");
        assert!(records(Some(&folder.path().join("none"))).unwrap_err().to_string().contains("No such file"));
    }

    #[test]
    fn every_kernel_has_hashes_of_its_code() {
        for kernel in kernels().unwrap() {
            assert_ne!(kernel.kernel_hash, Some(fingerprint(&[])), "{}", kernel.id);
            assert_ne!(kernel.baseline_hash, fingerprint(&[]), "{}", kernel.id);
        }
    }
}
