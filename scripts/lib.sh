# Shared by scripts/test and .ci/run; sourced, not run.
# shellcheck shell=bash

# The oldest compiler the workspace accepts (rust-version in Cargo.toml) and the one CI is pinned to, because each
# release of clippy brings new lints.
RUST_VERSION=1.95

say() { printf '\n==> %s\n' "$*"; }
note() { printf '    %s\n' "$*"; }
die() { printf '\nerror: %s\n' "$*" >&2; exit 1; }

# Prints the active compiler's version as major.minor, or nothing.
active_rust() { { rustc --version 2>/dev/null || true; } | sed -n 's/^rustc \([0-9]*\.[0-9]*\)\..*/\1/p'; }

# version_at_least HAVE WANT
version_at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# A compiler alone cannot link; say so before cargo fails with a page of text.
need_linker() {
    command -v cc >/dev/null || die "no C compiler (cc) found; on Debian: apt-get install build-essential"
}

# Makes RUST_VERSION the active toolchain of this shell, through rustup.
install_rust() {
    command -v rustup >/dev/null || die "need Rust $RUST_VERSION, and rustup is not here to fetch it"
    note "installing Rust $RUST_VERSION with rustup"
    rustup toolchain install "$RUST_VERSION.0" --profile minimal --component rustfmt,clippy
    export RUSTUP_TOOLCHAIN="$RUST_VERSION.0"
}

# Any compiler that can build the workspace.
need_rust() {
    need_linker
    local have
    have=$(active_rust)
    if [ -z "$have" ] || ! version_at_least "$have" "$RUST_VERSION"; then
        note "active Rust: ${have:-none}"
        install_rust
    fi
    note "$(rustc --version), $(cargo --version)"
}

# Exactly the compiler CI is pinned to, with rustfmt and clippy.
need_pinned_rust() {
    need_linker
    local have
    have=$(active_rust)
    if [ "$have" != "$RUST_VERSION" ] || ! cargo fmt --version >/dev/null 2>&1 || ! cargo clippy --version >/dev/null 2>&1; then
        note "active Rust: ${have:-none}"
        install_rust
    fi
    note "$(rustc --version), $(cargo fmt --version), $(cargo clippy --version)"
}

# fetch_debian PACKAGE FOLDER: downloads a package and unpacks it (not installs) into FOLDER/root. Needs no root. With lists of its
# own where the machine has none.
fetch_debian() {
    local package=$1 folder=$2
    command -v apt-get >/dev/null || die "no $package, and no apt-get to fetch one; install it"
    rm -rf "$folder/debs" "$folder/apt" "$folder/root"
    mkdir -p "$folder/debs" "$folder/apt/lists/partial" "$folder/apt/cache" "$folder/root"
    (
        cd "$folder/debs"
        apt-get download -qq "$package" 2>/dev/null || {
            own=(-o "Dir::State::lists=$folder/apt/lists" -o "Dir::Cache=$folder/apt/cache")
            apt-get "${own[@]}" update -qq && apt-get "${own[@]}" download -qq "$package"
        }
    ) >&2 || die "$package could not be downloaded"
    dpkg -x "$folder"/debs/"$package"_*.deb "$folder/root"
    rm -rf "$folder/debs" "$folder/apt"
}
