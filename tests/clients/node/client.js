const mysql = require('mysql2/promise');
const assert = require('assert');

async function session(options) {
  const connection = await mysql.createConnection({ host: '127.0.0.1', port: Number(process.argv[2]), user: 'root', ...options });
  await connection.query('DROP DATABASE IF EXISTS client_node');
  await connection.query('CREATE DATABASE client_node');
  await connection.changeUser({ database: 'client_node' });
  await connection.query('CREATE TABLE t (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40), score DOUBLE, data BLOB, big BIGINT UNSIGNED, UNIQUE KEY name (name))');
  const [inserted] = await connection.execute('INSERT INTO t (name, score, data, big) VALUES (?, ?, ?, ?)', ['Zoë 😀', 1.25, Buffer.from([0, 255, 1]), '18446744073709551615']);
  assert.strictEqual(inserted.affectedRows, 1);
  const [rows, fields] = await connection.execute('SELECT *, NULL AS missing FROM t WHERE id = ?', [inserted.insertId]);
  assert.strictEqual(rows.length, 1);
  assert.strictEqual(rows[0].name, 'Zoë 😀');
  assert.strictEqual(rows[0].score, 1.25);
  assert.deepStrictEqual(rows[0].data, Buffer.from([0, 255, 1]));
  if (options.supportBigNumbers) assert.strictEqual(rows[0].big, '18446744073709551615');
  assert.strictEqual(rows[0].missing, null);
  assert.deepStrictEqual(fields.map((field) => field.name), ['id', 'name', 'score', 'data', 'big', 'missing']);
  const [same] = await connection.query('SELECT *, NULL AS missing FROM t WHERE id = ?', [inserted.insertId]);
  if (options.supportBigNumbers) assert.strictEqual(same[0].big, '18446744073709551615');
  await connection.query('INSERT INTO t (name, score) VALUES ?', [Array.from({ length: 100 }, (_, i) => [`name ${i}`, i / 2])]);
  await assert.rejects(connection.execute('INSERT INTO t (name) VALUES (?)', ['name 7']), (error) => error.errno === 1062 && error.code === 'ER_DUP_ENTRY' && error.sqlState === '23000');
  for (const commit of [true, false]) {
    await connection.beginTransaction();
    await connection.execute('UPDATE t SET score = score + 1 WHERE name = ?', ['name 1']);
    await (commit ? connection.commit() : connection.rollback());
    const [[row]] = await connection.execute('SELECT score FROM t WHERE name = ?', ['name 1']);
    assert.strictEqual(row.score, 1.5);
  }
  const [limited] = await connection.query('SELECT name FROM t WHERE score < ? ORDER BY score DESC, id LIMIT ? OFFSET ?', [10, 2, 1]);
  assert.deepStrictEqual(limited.map((row) => row.name), ['name 18', 'name 17']);
  await assert.rejects(connection.query('SELEC 1'), (error) => error.errno === 1064);
  await connection.query('DROP DATABASE client_node');
  await connection.ping();
  await connection.end();
}

async function severalStatements() {
  const connection = await mysql.createConnection({ host: '127.0.0.1', port: Number(process.argv[2]), user: 'root', multipleStatements: true });
  const [results] = await connection.query("SELECT 'a;b' AS text; SET @n = 2; SELECT @n + 1 AS n");
  assert.strictEqual(results.length, 3);
  assert.deepStrictEqual([results[0][0].text, Number(results[2][0].n)], ['a;b', 3]);
  await assert.rejects(connection.query('SELECT 1; SELECT nothing; SELECT 2'), (error) => error.errno === 1054);
  await assert.rejects(connection.execute('SELECT 1; SELECT 2'), (error) => error.errno === 1064);
  await connection.end();
}

(async () => {
  await severalStatements();
  await session({});
  await session({ supportBigNumbers: true, bigNumberStrings: true, charset: 'utf8mb4_general_ci', rowsAsArray: false, timezone: 'Z', flags: ['-DEPRECATE_EOF'] });
  await session({ compress: true, flags: ['FOUND_ROWS'] });
  const pool = mysql.createPool({ host: '127.0.0.1', port: Number(process.argv[2]), user: 'root', connectionLimit: 8 });
  const answers = await Promise.all(Array.from({ length: 200 }, (_, i) => pool.execute('SELECT ? + 1 AS n', [i])));
  answers.forEach(([rows], i) => assert.strictEqual(Number(rows[0].n), i + 1));
  await pool.end();
  console.log('node: everything as expected');
})().catch((error) => { console.error(error); process.exit(1); });
