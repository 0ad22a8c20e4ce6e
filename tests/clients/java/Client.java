import java.sql.*;
import java.util.Properties;

/** A session of Connector/J: connects, creates, inserts, reads, transactions, errors, metadata. */
public class Client {
    static void expect(String what, Object got, Object wanted) {
        if (!String.valueOf(got).equals(String.valueOf(wanted))) {
            throw new AssertionError(what + ": got " + got + ", wanted " + wanted);
        }
    }

    static void session(String port, String options) throws SQLException {
        try (Connection connection = DriverManager.getConnection("jdbc:mysql://127.0.0.1:" + port + "/" + options, "root", "")) {
            try (Statement statement = connection.createStatement()) {
                statement.execute("DROP DATABASE IF EXISTS client_jdbc");
                statement.execute("CREATE DATABASE client_jdbc");
                statement.execute("USE client_jdbc");
                statement.execute("CREATE TABLE t (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40), score DOUBLE, "
                    + "data BLOB, n INT UNSIGNED, UNIQUE KEY name (name))");
            }
            connection.setCatalog("client_jdbc");
            try (PreparedStatement insert = connection.prepareStatement(
                "INSERT INTO t (name, score, data, n) VALUES (?, ?, ?, ?)", Statement.RETURN_GENERATED_KEYS)) {
                insert.setString(1, "Zo\u00eb \ud83d\ude00");
                insert.setDouble(2, 1.25);
                insert.setBytes(3, new byte[] {0, -1, 1});
                insert.setLong(4, 4294967295L);
                expect("rows affected", insert.executeUpdate(), 1);
                try (ResultSet keys = insert.getGeneratedKeys()) {
                    keys.next();
                    expect("generated key", keys.getLong(1) > 0, true);
                }
                for (int i = 0; i < 100; i++) {
                    insert.setString(1, "name " + i);
                    insert.setDouble(2, i / 2.0);
                    insert.setNull(3, Types.BLOB);
                    insert.setInt(4, i);
                    insert.addBatch();
                }
                expect("batch", insert.executeBatch().length, 100);
            }
            try (PreparedStatement select = connection.prepareStatement("SELECT name, score, data, n, NULL FROM t WHERE name = ?")) {
                select.setString(1, "Zo\u00eb \ud83d\ude00");
                ResultSet row = select.executeQuery();
                expect("found", row.next(), true);
                expect("name", row.getString(1), "Zo\u00eb \ud83d\ude00");
                expect("score", row.getDouble(2), 1.25);
                expect("data", row.getBytes(3).length, 3);
                expect("n", row.getLong(4), 4294967295L);
                expect("null", row.getObject(5), null);
                expect("type", row.getMetaData().getColumnTypeName(4), "INT UNSIGNED");
            }
            connection.setAutoCommit(false);
            connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            for (boolean commit : new boolean[] {true, false}) {
                try (PreparedStatement update = connection.prepareStatement("UPDATE t SET score = score + 1 WHERE name = ?")) {
                    update.setString(1, "name 1");
                    expect("updated", update.executeUpdate(), 1);
                }
                if (commit) {
                    connection.commit();
                } else {
                    connection.rollback();
                }
                try (Statement statement = connection.createStatement();
                     ResultSet row = statement.executeQuery("SELECT score FROM t WHERE name = 'name 1'")) {
                    row.next();
                    expect("score", row.getDouble(1), 1.5);
                }
                connection.commit();
            }
            connection.setAutoCommit(true);
            connection.setReadOnly(true);
            connection.setReadOnly(false);
            try (Statement statement = connection.createStatement()) {
                statement.executeUpdate("INSERT INTO t (name) VALUES ('name 7')");
                throw new AssertionError("a duplicate was taken");
            } catch (SQLIntegrityConstraintViolationException error) {
                expect("duplicate", error.getErrorCode() + error.getSQLState(), "106223000");
            }
            try (Statement statement = connection.createStatement()) {
                statement.setMaxRows(5);
                int rows = 0;
                try (ResultSet set = statement.executeQuery("SELECT * FROM t ORDER BY id DESC LIMIT 10")) {
                    while (set.next()) {
                        rows++;
                    }
                }
                expect("rows", rows, 5);
                statement.setMaxRows(0);
                try (ResultSet set = statement.executeQuery("SELECT COUNT(*), AVG(n), SUM(score) FROM t WHERE n < 50")) {
                    set.next();
                    expect("count", set.getInt(1), 50);
                    expect("avg", set.getBigDecimal(2), "24.5000");
                }
            }
            DatabaseMetaData meta = connection.getMetaData();
            StringBuilder seen = new StringBuilder();
            try (ResultSet tables = meta.getTables("client_jdbc", null, "%", new String[] {"TABLE"})) {
                while (tables.next()) {
                    seen.append(tables.getString("TABLE_NAME")).append(' ');
                }
            }
            try (ResultSet columns = meta.getColumns("client_jdbc", null, "t", "%")) {
                while (columns.next()) {
                    seen.append(columns.getString("COLUMN_NAME")).append(':').append(columns.getString("TYPE_NAME")).append(' ');
                }
            }
            try (ResultSet keys = meta.getPrimaryKeys("client_jdbc", null, "t")) {
                while (keys.next()) {
                    seen.append("key ").append(keys.getString("COLUMN_NAME")).append(' ');
                }
            }
            try (ResultSet indexes = meta.getIndexInfo("client_jdbc", null, "t", true, false)) {
                while (indexes.next()) {
                    seen.append("unique ").append(indexes.getString("INDEX_NAME")).append(' ');
                }
            }
            expect("metadata", seen, "t id:BIGINT name:VARCHAR score:DOUBLE data:BLOB n:INT UNSIGNED key id unique name unique PRIMARY ");
            expect("valid", connection.isValid(1), true);
            try (Statement statement = connection.createStatement()) {
                statement.execute("DROP DATABASE client_jdbc");
            }
        }
    }

    static void cursors(String port) throws SQLException {
        String url = "jdbc:mysql://127.0.0.1:" + port + "/?useCursorFetch=true&rewriteBatchedStatements=true";
        try (Connection connection = DriverManager.getConnection(url, "root", ""); Statement statement = connection.createStatement()) {
            statement.execute("DROP DATABASE IF EXISTS client_jdbc");
            statement.execute("CREATE DATABASE client_jdbc");
            statement.execute("CREATE TABLE client_jdbc.t (id INT PRIMARY KEY, name VARCHAR(9))");
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO client_jdbc.t VALUES (?, ?)")) {
                for (int i = 0; i < 1000; i++) {
                    insert.setInt(1, i);
                    insert.setString(2, "name " + i);
                    insert.addBatch();
                }
                insert.executeBatch();
            }
            try (PreparedStatement select = connection.prepareStatement("SELECT id, name FROM client_jdbc.t WHERE id >= ? ORDER BY id");
                 PreparedStatement other = connection.prepareStatement("SELECT name FROM client_jdbc.t WHERE id = ?")) {
                for (int size : new int[] {1, 7, 100, 2000}) {
                    select.setFetchSize(size);
                    select.setInt(1, 500);
                    int next = 500;
                    try (ResultSet rows = select.executeQuery()) {
                        while (rows.next()) {
                            expect("id", rows.getInt(1), next);
                            if (next % 100 == 0) {
                                // Another cursor of the same connection is open meanwhile.
                                other.setFetchSize(1);
                                other.setInt(1, next);
                                try (ResultSet row = other.executeQuery()) {
                                    row.next();
                                    expect("name", row.getString(1), rows.getString(2));
                                }
                            }
                            next++;
                        }
                    }
                    expect("rows", next, 1000);
                }
                select.setInt(1, 5000);
                expect("no row", select.executeQuery().next(), false);
            }
            statement.execute("DROP DATABASE client_jdbc");
        }
    }

    static void severalStatements(String port) throws SQLException {
        String url = "jdbc:mysql://127.0.0.1:" + port + "/?allowMultiQueries=true&rewriteBatchedStatements=true";
        try (Connection connection = DriverManager.getConnection(url, "root", ""); Statement statement = connection.createStatement()) {
            statement.execute("DROP DATABASE IF EXISTS client_jdbc; CREATE DATABASE client_jdbc; "
                + "CREATE TABLE client_jdbc.t (id INT PRIMARY KEY, name VARCHAR(9))");
            StringBuilder seen = new StringBuilder();
            boolean hasRows = statement.execute("INSERT INTO client_jdbc.t VALUES (1, 'a;b'), (2, ';'), (3, ''); "
                + "SELECT name FROM client_jdbc.t ORDER BY id; UPDATE client_jdbc.t SET name = 'c' WHERE id > 1; SELECT COUNT(*) FROM client_jdbc.t;");
            while (hasRows || statement.getUpdateCount() != -1) {
                if (hasRows) {
                    ResultSet rows = statement.getResultSet();
                    while (rows.next()) {
                        seen.append(rows.getString(1)).append(' ');
                    }
                } else {
                    seen.append(statement.getUpdateCount()).append(" changed ");
                }
                hasRows = statement.getMoreResults();
            }
            expect("results", seen, "3 changed a;b ;  2 changed 3 ");
            // The driver sends these as one text.
            try (PreparedStatement update = connection.prepareStatement("UPDATE client_jdbc.t SET name = ? WHERE id = ?")) {
                for (int i = 0; i < 40; i++) {
                    update.setString(1, "n;" + i);
                    update.setInt(2, i);
                    update.addBatch();
                }
                int changed = 0;
                for (int count : update.executeBatch()) {
                    changed += count;
                }
                expect("batch", changed, 3);
            }
            statement.execute("DROP DATABASE client_jdbc");
        }
    }

    public static void main(String[] arguments) throws Exception {
        cursors(arguments[0]);
        severalStatements(arguments[0]);
        session(arguments[0], "");
        session(arguments[0], "?useServerPrepStmts=true&cachePrepStmts=true&rewriteBatchedStatements=true&useConfigs=maxPerformance");
        session(arguments[0], "?characterEncoding=UTF-8&connectionCollation=utf8mb4_general_ci&useInformationSchema=true&sessionVariables=lock_wait_timeout=5&useCompression=true&sslMode=PREFERRED");
        session(arguments[0], "?useServerPrepStmts=true&useCursorFetch=false&useLocalSessionState=true&useAffectedRows=true&allowMultiQueries=false&connectTimeout=5000&socketTimeout=20000");
        System.out.println("jdbc: everything as expected");
    }
}
