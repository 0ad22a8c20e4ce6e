// mysql2 writes all that it reads of the table `original` into `copy`. Both tables must hold the same bytes.
// round_trips.js PORT; prints the JavaScript type of each column.
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

(async () => {
  for (const [name, more, leftOut] of ways) {
    for (const method of ['query', 'execute']) {
      const connection = await mysql.createConnection({ ...options, ...more });
      await roundTrip(name, method, connection, leftOut || []);
      await connection.end();
    }
  }
})().catch((error) => { console.error(error); process.exit(1); });
