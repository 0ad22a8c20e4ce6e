//! Prints the page `docs/generated/privileges.md`.

fn main() {
    print!("{}", junctor_sql::privileges_page());
}
