#!/usr/bin/env bash
# Makes sure that this machine can build lodestar and has an adapter to run shaders on: a Vulkan loader and a driver.
# Where there is no driver it installs Mesa's software one (Debian and Ubuntu), and elsewhere says what to install.
# Does nothing, and needs no rights, where everything is there already.
#
#   scripts/set-up.sh             fails where there is no adapter in the end (tests need one)
#   scripts/set-up.sh --optional  goes on without (the gate then measures the CPU arm and says NO-GPU)
set -euo pipefail

say() { printf 'set-up: %s\n' "$*" >&2; }

optional=false
case "${1-}" in
    "") ;;
    --optional) optional=true ;;
    *)
        say "unknown argument $1 (only --optional is known)"
        exit 2
        ;;
esac

# Prints the folders in which the Vulkan loader looks for drivers.
driver_folders() {
    printf '%s\n' "${XDG_CONFIG_HOME:-${HOME:-/root}/.config}/vulkan/icd.d" /etc/xdg/vulkan/icd.d /etc/vulkan/icd.d \
        "${XDG_DATA_HOME:-${HOME:-/root}/.local/share}/vulkan/icd.d"
    local folders folder
    IFS=: read -ra folders <<<"${XDG_DATA_DIRS:-/usr/local/share:/usr/share}"
    for folder in "${folders[@]}"; do printf '%s\n' "$folder/vulkan/icd.d"; done
}

# Whether a shared library is there: by its path, or by its name in the linker's cache or in LD_LIBRARY_PATH.
library_is_there() {
    case "$1" in
        /*) [ -e "$1" ] ;;
        *)
            local folders folder
            IFS=: read -ra folders <<<"${LD_LIBRARY_PATH-}"
            for folder in ${folders[@]+"${folders[@]}"}; do [ -e "$folder/$1" ] && return 0; done
            # Into a variable first: grep -q would close the pipe early, which pipefail reads as a failure.
            local cache
            cache=$(PATH="$PATH:/sbin:/usr/sbin" ldconfig -p 2>/dev/null) || cache=""
            [[ $cache == *[[:space:]]"$1"[[:space:]]* ]] || [ -e "/usr/lib/$1" ] || [ -e "/lib/$1" ]
            ;;
    esac
}

# Whether a GPU's device file is there (WSL's is /dev/dxg).
gpu_is_there() {
    local device
    for device in /dev/dri/renderD* /dev/nvidia[0-9]* /dev/dxg; do [ -e "$device" ] && return 0; done
    return 1
}

# Whether a driver's manifest names a library that exists, for a device that exists: Mesa installs its GPU drivers
# everywhere, and a container may hold a GPU's driver without the GPU.
driver_is_usable() {
    [ -r "$1" ] || return 1
    local library
    library=$(sed -n 's/.*"library_path"[[:space:]]*:[[:space:]]*"\([^"]*\)".*/\1/p' "$1")
    case "$library" in
        *lvp* | *swiftshader*) ;;
        *) gpu_is_there || return 1 ;;
    esac
    case "$library" in
        "") return 1 ;;
        /*) library_is_there "$library" ;;
        */*) [ -e "$(dirname "$1")/$library" ] ;;
        *) library_is_there "$library" ;;
    esac
}

# Prints the first usable driver's manifest.
driver() {
    local chosen=${VK_DRIVER_FILES:-${VK_ICD_FILENAMES-}} manifest folder manifests
    if [ -n "$chosen" ]; then
        IFS=: read -ra manifests <<<"$chosen"
    else
        manifests=()
        while IFS= read -r folder; do
            for manifest in "$folder"/*.json; do manifests+=("$manifest"); done
        done < <(driver_folders)
    fi
    for manifest in ${manifests[@]+"${manifests[@]}"}; do
        if driver_is_usable "$manifest"; then
            printf '%s\n' "$manifest"
            return 0
        fi
    done
    return 1
}

adapter_is_there() { library_is_there libvulkan.so.1 && driver >/dev/null; }

# Installs packages with apt; the lists are fetched only when they are missing or too old.
apt_install() {
    local as_root=()
    if [ "$(id -u)" != 0 ]; then
        if ! command -v sudo >/dev/null; then
            say "not root, and there is no sudo; run as root: apt-get install $*"
            return 1
        fi
        as_root=(sudo)
        # Where nobody can type a password, fail instead of waiting for one.
        [ -t 0 ] || as_root=(sudo -n)
    fi
    local install=(${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive
        apt-get install -y -q --no-install-recommends "$@")
    say "installing $*"
    "${install[@]}" >/dev/null 2>&1 </dev/null && return 0
    ${as_root[@]+"${as_root[@]}"} apt-get update -q >/dev/null || say "apt-get update failed; trying to install anyway"
    "${install[@]}" >/dev/null
}

ensure_toolchain() {
    if ! command -v cargo >/dev/null; then
        say "cargo not found: install Rust (https://rustup.rs), then run this again"
        exit 1
    fi
    if ! command -v cc >/dev/null; then
        if command -v apt-get >/dev/null; then
            apt_install gcc libc6-dev || true
        fi
        if ! command -v cc >/dev/null; then
            say "no linker: install a C toolchain (gcc and the C library's development files)"
            exit 1
        fi
    fi
}

ensure_adapter() {
    # Only Linux needs a package; elsewhere Metal and DX12 come with the system.
    [ "$(uname -s)" = Linux ] || return 0
    adapter_is_there && return 0
    if command -v apt-get >/dev/null; then
        say "no Vulkan driver found; a software one will do"
        apt_install mesa-vulkan-drivers libvulkan1 || true
    else
        say "no Vulkan driver found, and no apt-get to install a software one with. Install it:"
        say "  Fedora    dnf install mesa-vulkan-drivers vulkan-loader"
        say "  Arch      pacman -S vulkan-swrast vulkan-icd-loader"
        say "  Alpine    apk add mesa-vulkan-swrast vulkan-loader"
        say "  openSUSE  zypper install libvulkan_lvp libvulkan1"
    fi
    adapter_is_there && return 0
    if $optional; then
        say "going on without an adapter: only the CPU arm will run"
    else
        say "no adapter: install mesa-vulkan-drivers and libvulkan1, or run 'LODESTAR_GPU=auto cargo test' to test without"
        exit 1
    fi
}

ensure_toolchain
ensure_adapter
