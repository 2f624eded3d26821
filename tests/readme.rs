//! The README's console blocks, run as a reader would type them.
#![cfg(feature = "cli")]

#[test]
fn every_command_of_the_readme_prints_what_the_readme_says() {
    trycmd::TestCases::new().case("README.md").env("NODEVICE_SELECT", "1");
}
