//! Ctrl-C: finished work stays, unfinished files go, the exit code is 130.

use std::sync::atomic::{AtomicBool, Ordering};

static COOPERATIVE: AtomicBool = AtomicBool::new(false);
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The exit code of an interrupted command.
pub(super) const EXIT: u8 = 130;

/// Installs the handler; called once.
pub(super) fn install() {
    let installed = ctrlc::set_handler(|| {
        // A command that asked to stop by itself gets one chance; a second Ctrl-C does not wait for it.
        if COOPERATIVE.load(Ordering::Relaxed) && !INTERRUPTED.swap(true, Ordering::Relaxed) {
            return;
        }
        crate::atomic_file::remove_unfinished();
        std::process::exit(i32::from(EXIT));
    });
    debug_assert!(installed.is_ok(), "the handler is installed once");
}

/// From now on Ctrl-C only sets the flag: the caller looks at [`interrupted`] between steps and stops by itself.
pub(super) fn cooperate() {
    COOPERATIVE.store(true, Ordering::Relaxed);
}

/// Whether Ctrl-C was pressed since [`cooperate`].
pub(super) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
