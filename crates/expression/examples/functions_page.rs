//! Prints `docs/generated/functions.md`.

fn main() {
    print!("{}", junctor_expression::function::functions_page());
}
