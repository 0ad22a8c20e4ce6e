// mysql2 writes all that it reads of the table `original` into `copy`. Both tables must hold the same bytes.
// round_trips.js PORT METADATA; prints the JavaScript type of each column. The driver describes the columns as the
// file METADATA does.
const fs = require('fs');
const mysql = require('mysql2/promise');
const assert = require('assert');

const options = {
  host: '127.0.0.1', port: Number(process.argv[2]), user: 'root', database: 'round_trips',
  supportBigNumbers: true, bigNumberStrings: true,
};

// A Date counts milliseconds, so columns with microseconds are copied as strings.
const ways = [
  ['strings', { dateStrings: true }],
  ['dates', { timezone: 'Z' }, ['c_time6', 'c_datetime6', 'c_timestamp6']],
];

function typeOf(value) {
  return value !== null && typeof value === 'object' ? value.constructor.name : typeof value;
}

// JSON comes as a value, and ? writes a string as it is.
function written(column, value) {
  if (column === 'c_json' && value !== null) return JSON.stringify(value);
  return value;
}

async function roundTrip(name, method, connection, leftOut) {
  await connection.query("SET time_zone = '+00:00'");
  await connection.query('TRUNCATE TABLE copy');
  const [, fields] = await connection.query('SELECT * FROM original WHERE FALSE');
  const columns = fields.map((field) => field.name).filter((column) => !leftOut.includes(column));
  const [rows] = await connection[method](`SELECT ${columns} FROM original ORDER BY id`);
  assert.strictEqual(rows.length, 4);
  for (const row of rows) {
    await connection[method](`INSERT INTO copy (${columns}) VALUES (${columns.map(() => '?')})`,
      columns.map((column) => written(column, row[column])));
  }
  for (const column of columns) {
    const types = [...new Set(rows.slice(0, 3).map((row) => typeOf(row[column])))].sort();
    console.log(`node ${method} ${name}: ${column} ${types.join(' ')}`);
    const [different] = await connection.query(
      `SELECT o.id, LEFT(o.${column}, 80) AS o, LEFT(c.${column}, 80) AS c FROM original o LEFT JOIN copy c USING (id) `
      + `WHERE c.id IS NULL OR NOT HEX(o.${column}) <=> HEX(c.${column})`);
    assert.deepStrictEqual(different, [], `${method} ${name} ${column}`);
  }
}

// Type, length, decimals, flags and collation of each column, as numbers of the protocol.
async function checkDescriptions(path) {
  const lines = fs.readFileSync(path, 'utf8').split('\n').filter((line) => line && !line.startsWith('#'));
  const connection = await mysql.createConnection(options);
  await connection.query('SET NAMES utf8mb4 COLLATE utf8mb4_0900_ai_ci');
  for (const table of ['original', 'described']) {
    for (const method of ['query', 'execute']) {
      const [, fields] = await connection[method](`SELECT * FROM ${table} WHERE FALSE`);
      const seen = fields.map((field) => [table, field.name, field.columnType, field.columnLength, field.decimals,
        field.flags, field.characterSet].join('\t'));
      assert.deepStrictEqual(seen, lines.filter((line) => line.startsWith(`${table}\t`)), `${table} ${method}`);
    }
  }
  await connection.end();
}

(async () => {
  await checkDescriptions(process.argv[3]);
  for (const [name, more, leftOut] of ways) {
    for (const method of ['query', 'execute']) {
      const connection = await mysql.createConnection({ ...options, ...more });
      await roundTrip(name, method, connection, leftOut || []);
      await connection.end();
    }
  }
})().catch((error) => { console.error(error); process.exit(1); });
