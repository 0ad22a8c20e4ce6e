package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"github.com/go-sql-driver/mysql"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func expect(what string, got, wanted any) {
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		panic(fmt.Sprintf("%s: got %v, wanted %v", what, got, wanted))
	}
}

func session(parameters string) {
	db, err := sql.Open("mysql", fmt.Sprintf("root@tcp(127.0.0.1:%s)/%s", os.Args[1], parameters))
	must(err)
	defer db.Close()
	must(db.Ping())
	exec := func(text string, values ...any) sql.Result {
		result, err := db.Exec(text, values...)
		must(err)
		return result
	}
	exec("DROP DATABASE IF EXISTS client_go")
	exec("CREATE DATABASE client_go")
	exec(`CREATE TABLE client_go.t (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40), score DOUBLE,
		data BLOB, n INT UNSIGNED, UNIQUE KEY name (name))`)
	result := exec("INSERT INTO client_go.t (name, score, data, n) VALUES (?, ?, ?, ?)", "Zoë", 1.25, []byte{0, 255, 1}, 4294967295)
	id, err := result.LastInsertId()
	must(err)
	count, err := result.RowsAffected()
	must(err)
	expect("rows affected", count, 1)
	var name string
	var score float64
	var data []byte
	var n uint32
	var missing sql.NullString
	must(db.QueryRow("SELECT name, score, data, n, NULL FROM client_go.t WHERE id = ?", id).Scan(&name, &score, &data, &n, &missing))
	expect("row", fmt.Sprintf("%v %v %v %v %v", name, score, data, n, missing.Valid), "Zoë 1.25 [0 255 1] 4294967295 false")
	statement, err := db.Prepare("INSERT INTO client_go.t (name, score, n) VALUES (?, ?, ?)")
	must(err)
	for i := 0; i < 100; i++ {
		_, err := statement.Exec(fmt.Sprintf("name %d", i), float64(i)/2, i)
		must(err)
	}
	must(statement.Close())
	_, err = db.Exec("INSERT INTO client_go.t (name) VALUES (?)", "name 7")
	var problem *mysql.MySQLError
	if !errors.As(err, &problem) || problem.Number != 1062 {
		panic(fmt.Sprint("a duplicate gave ", err))
	}
	for _, commit := range []bool{true, false} {
		transaction, err := db.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
		must(err)
		_, err = transaction.Exec("UPDATE client_go.t SET score = score + 1 WHERE name = ?", "name 1")
		must(err)
		if commit {
			must(transaction.Commit())
		} else {
			must(transaction.Rollback())
		}
		must(db.QueryRow("SELECT score FROM client_go.t WHERE name = ?", "name 1").Scan(&score))
		expect("score", score, 1.5)
	}
	readOnly, err := db.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true})
	must(err)
	_, err = readOnly.Exec("DELETE FROM client_go.t")
	if !errors.As(err, &problem) || problem.Number != 1792 {
		panic(fmt.Sprint("a write in a read-only transaction gave ", err))
	}
	must(readOnly.Rollback())
	rows, err := db.Query("SELECT id, name FROM client_go.t WHERE n < ? ORDER BY n DESC LIMIT ?", 50, 3)
	must(err)
	seen := ""
	for rows.Next() {
		var id int64
		must(rows.Scan(&id, &name))
		seen += name + ","
	}
	must(rows.Err())
	expect("rows", seen, "name 49,name 48,name 47,")
	types, err := db.Query("SELECT * FROM client_go.t LIMIT 0")
	must(err)
	columns, err := types.ColumnTypes()
	must(err)
	shown := ""
	for _, column := range columns {
		shown += column.DatabaseTypeName() + " "
	}
	must(types.Close())
	expect("types", shown, "BIGINT VARCHAR DOUBLE BLOB UNSIGNED INT ")
	exec("DROP DATABASE client_go")
}

func severalStatements() {
	db, err := sql.Open("mysql", fmt.Sprintf("root@tcp(127.0.0.1:%s)/?multiStatements=true", os.Args[1]))
	must(err)
	defer db.Close()
	rows, err := db.Query("SELECT 'a;b'; SELECT 2 AS two; SELECT 3")
	must(err)
	seen := ""
	for more := true; more; more = rows.NextResultSet() {
		for rows.Next() {
			var value string
			must(rows.Scan(&value))
			seen += value + " "
		}
	}
	must(rows.Err())
	expect("results", seen, "a;b 2 3 ")
}

func main() {
	if len(os.Args) == 4 && os.Args[2] == "round_trips" {
		checkDescriptions(os.Args[1], os.Args[3])
		roundTrips(os.Args[1])
		return
	}
	if len(os.Args) == 4 {
		logins(os.Args[1], os.Args[2], os.Args[3])
		return
	}
	severalStatements()
	gormSession()
	session("")
	session("?interpolateParams=true&collation=utf8mb4_general_ci&parseTime=true&timeout=5s&maxAllowedPacket=0")
	session("?charset=utf8mb4,utf8&checkConnLiveness=true&clientFoundRows=true&columnsWithAlias=true&sql_mode=%27STRICT_ALL_TABLES%27")
	fmt.Println("go: everything as expected")
}
