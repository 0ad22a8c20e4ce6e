// Logins by every method over TCP, TLS and the Unix socket, the modes of TLS, and refusals.
//
// logins.js PORT DIRECTORY PORT_WITHOUT_TLS: DIRECTORY has the server's socket and its folder `tls`.
const mysql = require('mysql2/promise');
const plugins = require('mysql2').authPlugins;
const assert = require('assert');
const fs = require('fs');
const net = require('net');
const os = require('os');

const [port, folder, portWithoutTls] = process.argv.slice(2);
const password = 'a pass, word';
const name = 'client_node';
const read = (path) => fs.readFileSync(`${folder}/${path}`);

const ca = read('tls/ca.pem');
const certificate = { ca, cert: read('tls/client-cert.pem'), key: read('tls/client-key.pem') };
const tcp = { host: '127.0.0.1', port: Number(port) };
const socket = { socketPath: `${folder}/mysql.sock` };
const ways = { tcp, tls: { ...tcp, ssl: { ca } }, socket };

async function one(options, text) {
  const connection = await mysql.createConnection(options);
  const [rows] = await connection.query({ sql: text, rowsAsArray: true });
  await connection.end();
  return rows[0];
}

async function administrator(...texts) {
  const connection = await mysql.createConnection({ ...socket, user: 'root' });
  for (const text of texts) await connection.query(text);
  await connection.end();
}

// A new account, whose password the server has not seen yet.
const account = (method, conditions = '') => administrator(`DROP USER IF EXISTS ${name}`,
  `CREATE USER ${name} IDENTIFIED WITH ${method} BY '${password}' ${conditions}`);

async function admitted(options, isEncrypted) {
  assert.deepStrictEqual(await one({ user: name, password, ...options }, 'SELECT CURRENT_USER()'), [`${name}@%`]);
  const [, version] = await one({ user: name, password, ...options }, "SHOW STATUS LIKE 'Ssl_version'");
  assert.strictEqual(version !== '', isEncrypted);
}

// The login fails with this error of the server, or with an error of the client (0).
async function refused(number, options) {
  await assert.rejects(one({ user: name, password, ...options }, 'SELECT 1'), (error) => {
    const isExpected = number === 0 ? !(error.errno > 0) : error.errno === number;
    if (!isExpected) console.error('expected', number);
    return isExpected;
  });
}

async function methods() {
  for (const [way, options] of Object.entries(ways)) {
    // The first login with caching_sha2_password sends the password, the second proves that the client has it.
    for (const method of ['mysql_native_password', 'caching_sha2_password']) {
      await account(method);
      await refused(1045, { ...options, password: `${password}?` });
      await admitted(options, way === 'tls');
      await refused(1045, { ...options, password: `${password}?` });
      await refused(1045, { ...options, password: '' });
      await refused(1045, { ...options, user: 'nobody_node' });
    }
  }
  const system = os.userInfo().username;
  await administrator(`DROP USER ${name}`, `CREATE USER ${name} IDENTIFIED WITH auth_socket AS '${system}'`);
  await admitted({ ...socket, password: '' }, false);
  await refused(1045, { ...tcp, password: '' });
  await refused(1045, { ...ways.tls, password: '' });
  await administrator(`ALTER USER ${name} IDENTIFIED WITH auth_socket AS 'nobody_${system}'`);
  await refused(1045, { ...socket, password: '' });
}

// The key is asked for once, by the login that sends the password; later ones are proofs.
async function keys() {
  let seen = [];
  const authPlugins = (options) => ({ caching_sha2_password: plugins.caching_sha2_password(options) });
  await account('caching_sha2_password');
  await refused(1045, { ...tcp, authPlugins: authPlugins({ serverPublicKey: read('foreign-public.pem') }) });
  await admitted({ ...tcp, authPlugins: authPlugins({ onServerPublicKey: (key) => seen.push(String(key)) }) }, false);
  assert.deepStrictEqual(seen.map((key) => key.replace('\x01', '').trim()), [String(read('tls/public_key.pem')).trim()]);
  await admitted({ ...tcp, authPlugins: authPlugins({ serverPublicKey: read('foreign-public.pem') }) }, false);
  await account('caching_sha2_password');
  await admitted({ ...tcp, authPlugins: authPlugins({ serverPublicKey: read('tls/public_key.pem') }) }, false);
}

async function tlsModes() {
  await account('caching_sha2_password');
  const modes = [{ rejectUnauthorized: false }, { ca }, { ca, verifyIdentity: true }, certificate,
    { ca, minVersion: 'TLSv1.3' }, { ca, maxVersion: 'TLSv1.2' }];
  for (const ssl of modes) await admitted({ ...tcp, host: 'localhost', ssl }, true);
  await refused(0, { ...tcp, ssl: { ca: read('foreign.pem') } });
  await refused(0, { ...tcp, ssl: {} });
  const other = { host: 'other', stream: () => net.connect(Number(port), '127.0.0.1') };
  await admitted({ ...other, ssl: { ca } }, true);
  await refused(0, { ...other, ssl: { ca, verifyIdentity: true } });
  await refused(0, { ...tcp, ssl: { ca, cert: read('foreign.pem'), key: read('foreign-key.pem') } });

  await account('caching_sha2_password', 'REQUIRE SSL');
  await refused(1045, tcp);
  await admitted(ways.tls, true);
  await account('caching_sha2_password', 'REQUIRE X509');
  await refused(1045, ways.tls);
  await admitted({ ...tcp, ssl: certificate }, true);

  await account('caching_sha2_password');
  await administrator('SET GLOBAL require_secure_transport = ON');
  try {
    await refused(3159, tcp);
    await admitted(ways.tls, true);
    await admitted(socket, false);
  } finally {
    await administrator('SET GLOBAL require_secure_transport = OFF');
  }
}

async function withoutTls() {
  const plain = { host: '127.0.0.1', port: Number(portWithoutTls), user: 'root', password: '' };
  assert.deepStrictEqual(await one(plain, 'SELECT CURRENT_USER()'), ['root@localhost']);
  await refused(0, { ...plain, ssl: { ca } });
}

(async () => {
  await methods();
  await keys();
  await tlsModes();
  await withoutTls();
  await administrator(`DROP USER ${name}`);
  console.log('node: logins as expected');
})().catch((error) => { console.error(error); process.exit(1); });
