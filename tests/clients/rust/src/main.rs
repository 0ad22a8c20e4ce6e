//! Round trips of every type, and logins, by mysql_async and sqlx.
//!
//!   client PORT METADATA.tsv          what a driver reads of the table `original`, it writes into `copy`; it
//!                                     describes the columns as the file does
//!   client PORT DIRECTORY             logins; DIRECTORY has the server's socket and its folder `tls`

mod logins;
mod round_trips;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let port = arguments[1].parse().expect("the port is a number");
    match arguments.get(2) {
        None => panic!("a file or a directory is missing"),
        Some(file) if file.ends_with(".tsv") => {
            let described = round_trips::descriptions(file);
            round_trips::descriptions_of_mysql_async(port, &described).await;
            round_trips::descriptions_of_sqlx(port, &described).await;
            round_trips::mysql_async(port).await;
            round_trips::sqlx(port).await;
        }
        Some(directory) => {
            logins::mysql_async(port, directory).await;
            logins::sqlx(port, directory).await;
            println!("rust: logins as expected");
        }
    }
}
