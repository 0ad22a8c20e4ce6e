// TypeORM creates a schema, changes it, and finds no difference between the schema wanted and the schema read.
// typeorm.js PORT
const assert = require('assert');
const mysql = require('mysql2/promise');
const { DataSource, EntitySchema, In, Like, MoreThan } = require('typeorm');

const DATABASE = 'client_typeorm';
const base = { host: '127.0.0.1', port: Number(process.argv[2]), user: 'root' };

function entities(later) {
  const customer = new EntitySchema({
    name: 'Customer',
    columns: {
      id: { type: 'int', primary: true, generated: 'increment' },
      name: { type: 'varchar', length: 80, comment: 'as on the invoice' },
      email: { type: 'varchar', length: 120, nullable: true, unique: true, collation: 'utf8mb4_bin' },
      status: { type: 'enum', enum: later ? ['new', 'active', 'gone', 'lost'] : ['new', 'active', 'gone'], default: 'new' },
      flags: { type: 'set', enum: ['a', 'b', 'c'], nullable: true },
      settings: { type: 'json', nullable: true },
      credit: { type: 'decimal', precision: 20, scale: 6, default: '0.000000' },
      score: { type: later ? 'float' : 'double', nullable: true },
      small: { type: 'smallint', unsigned: true, nullable: true },
      photo: { type: 'mediumblob', nullable: true },
      created: { type: 'datetime', precision: 6, createDate: true },
      changed: { type: 'datetime', precision: 6, updateDate: true },
      version: { type: 'int', version: true },
      length: { type: 'int', asExpression: 'char_length(`name`)', generatedType: 'STORED', nullable: true },
      ...(later ? { phone: { type: 'varchar', length: 30, default: 'none' } } : {}),
    },
    indices: [{ name: 'by_name', columns: ['name', 'created'] }],
    relations: { invoices: { type: 'one-to-many', target: 'Invoice', inverseSide: 'customer' } },
  });
  const invoice = new EntitySchema({
    name: 'Invoice',
    columns: {
      id: { type: 'bigint', primary: true, generated: 'increment', unsigned: true },
      number: { type: 'varchar', length: later ? 40 : 20 },
      total: { type: 'decimal', precision: 10, scale: 2, nullable: true },
      paid: { type: 'time', nullable: true },
    },
    uniques: [{ name: 'one_number', columns: ['number', 'customer'] }],
    relations: {
      customer: { type: 'many-to-one', target: 'Customer', inverseSide: 'invoices', onDelete: 'CASCADE', nullable: false, joinColumn: true },
      tags: { type: 'many-to-many', target: 'Tag', joinTable: true },
    },
  });
  const tag = new EntitySchema({
    name: 'Tag',
    columns: { code: { type: 'char', length: 8, primary: true }, parentCode: { type: 'char', length: 8, nullable: true } },
  });
  return [customer, invoice, tag];
}

async function connected(later) {
  const source = new DataSource({ type: 'mysql', ...base, username: 'root', database: DATABASE, entities: entities(later), bigNumberStrings: true });
  await source.initialize();
  return source;
}

// The statements by which TypeORM would change the schema that it reads into the one that it wants.
async function differences(source) {
  const { upQueries } = await source.driver.createSchemaBuilder().log();
  return upQueries.map((query) => query.query);
}

async function schema(later) {
  const source = await connected(later);
  assert.notDeepStrictEqual(await differences(source), []);
  await source.synchronize();
  assert.deepStrictEqual(await differences(source), []);
  return source;
}

async function objects(source) {
  const customers = source.getRepository('Customer');
  const zoe = await customers.save({ name: 'Zoë 😀', email: 'z@x', flags: ['a', 'c'], settings: { a: [1, null] }, photo: Buffer.from([0, 255]) });
  await customers.save(Array.from({ length: 50 }, (_, i) => ({ name: `name ${i}`, score: i / 2 })));
  const read = await customers.findOneByOrFail({ id: zoe.id });
  assert.deepStrictEqual([read.name, read.status, read.flags, read.settings, read.credit], ['Zoë 😀', 'new', ['a', 'c'], { a: [1, null] }, '0.000000']);
  assert.strictEqual(read.length, 5);
  read.status = 'active';
  await customers.save(read);
  assert.strictEqual((await customers.findOneByOrFail({ id: zoe.id })).version, 2);
  const tags = await source.getRepository('Tag').save([{ code: 'one' }, { code: 'two', parentCode: 'one' }]);
  const invoices = source.getRepository('Invoice');
  await invoices.save({ number: 'A1', total: '12.50', paid: '10:11:12', customer: zoe, tags });
  await invoices.save({ number: 'A2', total: '7.25', customer: zoe, tags: tags.slice(0, 1) });
  await assert.rejects(invoices.save({ number: 'A2', customer: zoe }), (error) => error.errno === 1062);
  const [found, count] = await customers.findAndCount({
    where: [{ name: Like('name 4%'), score: MoreThan(20) }, { id: In([zoe.id]) }], relations: { invoices: { tags: true } }, order: { name: 'DESC' }, take: 3,
  });
  assert.strictEqual(count, 10);
  assert.deepStrictEqual(found.map((customer) => customer.invoices.length), [2, 0, 0]);
  const sums = await invoices.createQueryBuilder('i').innerJoin('i.customer', 'c').leftJoin('i.tags', 't').select('c.name', 'name')
    .addSelect('SUM(i.total)', 'sum').addSelect('COUNT(DISTINCT t.code)', 'tags').groupBy('c.id').having('COUNT(*) > :least', { least: 1 }).getRawMany();
  assert.deepStrictEqual(sums, [{ name: 'Zoë 😀', sum: '32.25', tags: '2' }]);
  await assert.rejects(source.transaction('SERIALIZABLE', async (manager) => {
    const locked = await manager.getRepository('Customer').findOne({ where: { id: zoe.id }, lock: { mode: 'pessimistic_write' } });
    await manager.getRepository('Customer').update(locked.id, { score: 9 });
    throw new Error('undo');
  }), /undo/);
  assert.strictEqual((await customers.findOneByOrFail({ id: zoe.id })).score, null);
  await customers.upsert([{ name: 'again', email: 'z@x' }], ['email']);
  assert.strictEqual((await customers.findOneByOrFail({ id: zoe.id })).name, 'again');
  await customers.delete(zoe.id);
  assert.strictEqual(await invoices.count(), 0);
}

async function main() {
  const admin = await mysql.createConnection(base);
  await admin.query(`DROP DATABASE IF EXISTS ${DATABASE}`);
  await admin.query(`CREATE DATABASE ${DATABASE}`);
  const first = await schema(false);
  await objects(first);
  await first.destroy();
  const second = await schema(true);
  await objects(second);
  await second.dropDatabase();
  await second.destroy();
  await admin.query(`DROP DATABASE ${DATABASE}`);
  await admin.end();
  console.log('TypeORM: a schema, its change, and objects');
}

main();
