package main

import (
	"database/sql"
	"fmt"
	"strings"
)

var isBinary = map[string]bool{"BIT": true, "BINARY": true, "VARBINARY": true, "BLOB": true}

// The driver writes all that it reads of the table `original` into `copy`. Both tables must hold the
// same bytes.
// Prints the names and types of the columns.
func roundTrips(port string) {
	for _, way := range []struct{ name, parameters string }{
		{"prepared", "?time_zone=%27%2B00:00%27"},
		{"prepared parseTime", "?time_zone=%27%2B00:00%27&parseTime=true"},
		{"text", "?time_zone=%27%2B00:00%27&interpolateParams=true"},
		{"text parseTime", "?time_zone=%27%2B00:00%27&interpolateParams=true&parseTime=true"},
	} {
		db, err := sql.Open("mysql", fmt.Sprintf("root@tcp(127.0.0.1:%s)/round_trips%s", port, way.parameters))
		must(err)
		_, err = db.Exec("TRUNCATE TABLE copy")
		must(err)
		rows, err := db.Query("SELECT * FROM original WHERE id > ? ORDER BY id", 0)
		must(err)
		types, err := rows.ColumnTypes()
		must(err)
		goTypes := make([]string, len(types))
		insert := "INSERT INTO copy VALUES (" + strings.Repeat("?, ", len(types)-1) + "?)"
		count := 0
		for ; rows.Next(); count++ {
			values, places := make([]any, len(types)), make([]any, len(types))
			for i := range values {
				places[i] = &values[i]
			}
			must(rows.Scan(places...))
			for i, value := range values {
				if value != nil {
					goTypes[i] = fmt.Sprintf("%T", value)
				}
				// A byte slice is sent as a binary string, whose bytes JSON and latin1 do not take as text.
				if bytes, ok := value.([]byte); ok && !isBinary[types[i].DatabaseTypeName()] {
					values[i] = string(bytes)
				}
			}
			_, err := db.Exec(insert, values...)
			must(err)
		}
		must(rows.Err())
		expect("rows", count, 4)
		for i, column := range types {
			size := ""
			if precision, scale, ok := column.DecimalSize(); ok {
				size = fmt.Sprintf("(%d,%d)", precision, scale)
			}
			fmt.Printf("go %s: %s %s%s %s\n", way.name, column.Name(), column.DatabaseTypeName(), size, goTypes[i])
			query := fmt.Sprintf("SELECT COUNT(*) FROM original o LEFT JOIN copy c USING (id) "+
				"WHERE c.id IS NULL OR NOT HEX(o.%[1]s) <=> HEX(c.%[1]s)", column.Name())
			var different int
			must(db.QueryRow(query).Scan(&different))
			expect(way.name+" "+column.Name(), different, 0)
		}
		must(db.Close())
	}
}
