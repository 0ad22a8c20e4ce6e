package main

import (
	"database/sql"
	"fmt"
	"math"
	"os"
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

// The driver's description of each column must follow from the numbers of the protocol that the file has: table,
// column, type, length, decimals, flags and collation.
func checkDescriptions(port, path string) {
	text, err := os.ReadFile(path)
	must(err)
	db, err := sql.Open("mysql", fmt.Sprintf("root@tcp(127.0.0.1:%s)/round_trips", port))
	must(err)
	for _, table := range []string{"original", "described"} {
		var seen, expected []string
		for _, line := range strings.Split(string(text), "\n") {
			if !strings.HasPrefix(line, table+"\t") {
				continue
			}
			var column string
			var code, length, decimals, flags, collation int64
			fields := strings.ReplaceAll(strings.TrimPrefix(line, table+"\t"), "\t", " ")
			_, err := fmt.Sscan(fields, &column, &code, &length, &decimals, &flags, &collation)
			must(err)
			precision, scale, hasSize := decimalSize(code, length, decimals)
			name := typeName(code, flags, collation)
			expected = append(expected, fmt.Sprint(column, name, flags&1 == 0, precision, scale, hasSize))
		}
		rows, err := db.Query("SELECT * FROM " + table + " WHERE FALSE")
		must(err)
		types, err := rows.ColumnTypes()
		must(err)
		for _, column := range types {
			nullable, ok := column.Nullable()
			precision, scale, hasSize := column.DecimalSize()
			name := column.DatabaseTypeName()
			seen = append(seen, fmt.Sprint(column.Name(), name, nullable && ok, precision, scale, hasSize))
		}
		must(rows.Close())
		expect("descriptions of "+table, strings.Join(seen, "\n"), strings.Join(expected, "\n"))
	}
	must(db.Close())
}

func decimalSize(code, length, decimals int64) (int64, int64, bool) {
	switch {
	case code == 246 && decimals > 0:
		return length - 2, decimals, true
	case code == 246:
		return length - 1, decimals, true
	case code == 7 || code == 11 || code == 12:
		return decimals, decimals, true
	case (code == 4 || code == 5) && decimals == 31:
		return math.MaxInt64, math.MaxInt64, true
	case code == 4 || code == 5:
		return math.MaxInt64, decimals, true
	}
	return 0, 0, false
}

func typeName(code, flags, collation int64) string {
	isBinary := collation == 63
	name := map[int64]string{1: "TINYINT", 2: "SMALLINT", 3: "INT", 4: "FLOAT", 5: "DOUBLE", 7: "TIMESTAMP", 8: "BIGINT",
		9: "MEDIUMINT", 10: "DATE", 11: "TIME", 12: "DATETIME", 13: "YEAR", 16: "BIT", 245: "JSON", 246: "DECIMAL",
		252: "TEXT", 253: "VARCHAR", 254: "CHAR", 255: "GEOMETRY"}[code]
	switch {
	case flags&256 != 0:
		return "ENUM"
	case flags&2048 != 0:
		return "SET"
	case isBinary && code >= 252 && code <= 254:
		return map[int64]string{252: "BLOB", 253: "VARBINARY", 254: "BINARY"}[code]
	case flags&32 != 0 && strings.HasSuffix(name, "INT"):
		return "UNSIGNED " + name
	}
	return name
}
