//! Prints `docs/generated/signals.md`.

fn main() {
    print!("{}", junctor_signals::codec::signals_page());
}
