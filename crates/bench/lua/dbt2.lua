-- TPC-C without think times: a thread begins its next transaction when the last one ends. The statements are those of DBT2
-- without stored procedures, each sent alone. It follows the specification of TPC-C 5.11, with these differences:
--
--   * all values are integers: money in cents, taxes and discounts in ten-thousandths, times in seconds since 1970;
--   * Delivery is not deferred, and handles its ten districts in one transaction; without think times, results are not tpmC;
--   * Order-Status and Stock-Level read one snapshot, like the other transactions.
--
--   sysbench dbt2.lua --mysql-db=dbt2 --warehouses=4 --threads=4 prepare
--   sysbench dbt2.lua --mysql-db=dbt2 --warehouses=4 --threads=8 --time=60 run
--   sysbench dbt2.lua --mysql-db=dbt2 --warehouses=4 check
--   sysbench dbt2.lua --mysql-db=dbt2 cleanup
--
-- `check` verifies the consistency conditions 1 to 12 of clause 3.3.2. A run with 1 per cent of New-Orders rolled back, and
-- with deadlocks and lock waits, after which a transaction is repeated with the same input, must preserve all of them.
--
-- With --db-ps-mode=auto, writes are prepared. Reads are text in both modes, because the driver of sysbench 1.0 returns no
-- rows of prepared statements.

sysbench.cmdline.options = {
   warehouses = {"Warehouses in the database", 1},
   first_warehouse = {"First warehouse that this run uses as home", 1},
   run_warehouses = {"Warehouses that this run uses; 0 is all", 0},
   items = {"Items; the specification says 100000", 100000},
   customers = {"Customers of a district, and its initial orders; the specification says 3000", 3000},
   pk_using_hash = {"Primary keys that are never read in order have only a hash index, if the server has hash indexes", false},
   partitions = {"Number of partitions by warehouse; 0 leaves it to the server", 0},
   engine = {"ENGINE of the tables; empty for the server's default", ""},
   isolation = {"Isolation level of the sessions, such as READ COMMITTED; empty for the server's default", ""}
}

-- sysbench does not search the folder of this file for the other files.
package.path = (debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "?.lua;" .. package.path
local common = require("dbt2_load")
local check = require("dbt2_check")
local option, DISTRICTS = common.option, common.DISTRICTS
local uniform = sysbench.rand.uniform
local INTEGER = sysbench.sql.type.BIGINT

local ffi = require("ffi")
ffi.cdef [[
   typedef struct { long seconds; long nanoseconds; } dbt2_time;
   int clock_gettime(int clock, dbt2_time *time);
]]

sysbench.cmdline.commands = {
   create = {common.create},
   prepare = {common.prepare, sysbench.cmdline.PARALLEL_COMMAND},
   check = {check}
}

cleanup = common.cleanup

-- ----------------------------------------------------------------------------------------------------------------------
-- Statements
-- ----------------------------------------------------------------------------------------------------------------------

local connection
local statements = {}

-- The values of the first row of a query; nothing if it has no row.
local function row(format, ...)
   return connection:query_row(string.format(format, ...))
end

local function number(format, ...)
   return tonumber((row(format, ...)))
end

-- All rows of a query, each a list of texts.
local function rows(format, ...)
   local result = connection:query(string.format(format, ...))
   local all = {}
   for place = 1, result.nrows do
      all[place] = result:fetch_row()
   end
   return all
end

-- Executes a write. Its first execution prepares it, with space for the longest text. sysbench does not return the number
-- of changed rows.
local function write(what, ...)
   local values = {...}
   local known = statements[what]
   if not known then
      known = {statement = connection:prepare(what), parameters = {}}
      for place, value in ipairs(values) do
         known.parameters[place] = type(value) == "string" and known.statement:bind_create(sysbench.sql.type.CHAR, 100) or
            known.statement:bind_create(INTEGER)
      end
      known.statement:bind_param(unpack(known.parameters))
      statements[what] = known
   end
   for place, value in ipairs(values) do
      known.parameters[place]:set(value)
      if type(value) == "string" then
         -- The driver takes the text up to the first zero byte.
         known.parameters[place].buffer[#value] = 0
      end
   end
   known.statement:execute()
end

-- ----------------------------------------------------------------------------------------------------------------------
-- The five transactions, clauses 2.4 to 2.8: their random inputs and their statements
-- ----------------------------------------------------------------------------------------------------------------------

local home

local function run_warehouses()
   return option.run_warehouses > 0 and option.run_warehouses or option.warehouses
end

local function other_warehouse()
   local warehouse = uniform(1, option.warehouses - 1)
   return warehouse < home and warehouse or warehouse + 1
end

-- 60 per cent of the transactions select the customer by last name.
local function draw_customer_or_name()
   if uniform(1, 100) <= 60 then
      return nil, common.draw_last_name()
   end
   return common.draw_customer()
end

-- Of the customers with this last name, the middle one in the order of first names.
local function customer_by_name(warehouse, district, name)
   local found = rows("SELECT c_id FROM customer WHERE c_w_id = %d AND c_d_id = %d AND c_last = '%s' ORDER BY c_first",
      warehouse, district, name)
   if #found == 0 then
      error("there is no customer " .. name .. " in district " .. district .. " of warehouse " .. warehouse)
   end
   return tonumber(found[math.ceil(#found / 2)][1])
end

local function draw_new_order()
   local input = {run = "new_order", district = uniform(1, DISTRICTS), customer = common.draw_customer(), lines = {}, all_local = 1}
   for line = 1, uniform(5, 15) do
      local supplier = home
      if option.warehouses > 1 and uniform(1, 100) == 1 then
         supplier = other_warehouse()
         input.all_local = 0
      end
      input.lines[line] = {item = common.draw_item(), supplier = supplier, quantity = uniform(1, 10)}
   end
   if uniform(1, 100) == 1 then
      -- No item has that number.
      input.lines[#input.lines].item = option.items + 1
   end
   return input
end

local function new_order_line(input, order, place)
   local line = input.lines[place]
   local price = number("SELECT i_price FROM item WHERE i_id = %d", line.item)
   if not price then
      return nil
   end
   local quantity, information = row("SELECT s_quantity, s_dist_%02d FROM stock WHERE s_w_id = %d AND s_i_id = %d FOR UPDATE",
      input.district, line.supplier, line.item)
   quantity = tonumber(quantity) - line.quantity
   if quantity < 10 then
      quantity = quantity + 91
   end
   write("UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ? " ..
      "WHERE s_w_id = ? AND s_i_id = ?", quantity, line.quantity, line.supplier == home and 0 or 1, line.supplier, line.item)
   write("INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity, " ..
      "ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, NULL, ?, ?, ?)", order, input.district, home, place, line.item,
      line.supplier, line.quantity, line.quantity * price, information)
   return line.quantity * price
end

local function new_order(input)
   connection:query("BEGIN")
   row("SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d", home,
      input.district, input.customer)
   row("SELECT w_tax FROM warehouse WHERE w_id = %d", home)
   local order = number("SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = %d AND d_id = %d FOR UPDATE", home,
      input.district)
   write("UPDATE district SET d_next_o_id = ? WHERE d_w_id = ? AND d_id = ?", order + 1, home, input.district)
   write("INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local) " ..
      "VALUES (?, ?, ?, ?, ?, NULL, ?, ?)", order, input.district, home, input.customer, os.time(), #input.lines,
      input.all_local)
   write("INSERT INTO new_orders (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)", order, input.district, home)
   for place = 1, #input.lines do
      if not new_order_line(input, order, place) then
         connection:query("ROLLBACK")
         return "rolled_back"
      end
   end
   connection:query("COMMIT")
   return "new_order"
end

local function draw_payment()
   local district = uniform(1, DISTRICTS)
   local input = {run = "payment", district = district, customer_warehouse = home, customer_district = district,
      amount = uniform(100, 500000)}
   if option.warehouses > 1 and uniform(1, 100) <= 15 then
      input.customer_warehouse, input.customer_district = other_warehouse(), uniform(1, DISTRICTS)
   end
   input.customer, input.name = draw_customer_or_name()
   return input
end

local function payment(input)
   connection:query("BEGIN")
   write("UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?", input.amount, home)
   local warehouse_name = row("SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = %d", home)
   write("UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?", input.amount, home, input.district)
   local district_name = row("SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district WHERE d_w_id = %d " ..
      "AND d_id = %d", home, input.district)
   local warehouse, district = input.customer_warehouse, input.customer_district
   local customer = input.customer or customer_by_name(warehouse, district, input.name)
   local credit = row("SELECT c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, " ..
      "c_since, c_credit_lim, c_discount, c_balance FROM customer WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d FOR UPDATE",
      warehouse, district, customer)
   local sums = "c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1"
   local place = " WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
   if credit == "BC" then
      local note = string.format("%d %d %d %d %d %d|", customer, district, warehouse, input.district, home, input.amount)
      write("UPDATE customer SET " .. sums .. ", c_data = LEFT(CONCAT(?, c_data), 500)" .. place, input.amount, input.amount,
         note, warehouse, district, customer)
   else
      write("UPDATE customer SET " .. sums .. place, input.amount, input.amount, warehouse, district, customer)
   end
   write("INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) " ..
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?)", customer, district, warehouse, input.district, home, os.time(), input.amount,
      warehouse_name .. "    " .. district_name)
   connection:query("COMMIT")
   return "payment"
end

local function draw_order_status()
   local input = {run = "order_status", district = uniform(1, DISTRICTS)}
   input.customer, input.name = draw_customer_or_name()
   return input
end

local function order_status(input)
   connection:query("BEGIN")
   local customer = input.customer or customer_by_name(home, input.district, input.name)
   row("SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d", home,
      input.district, customer)
   local order, _, _, lines = row("SELECT o_id, o_entry_d, o_carrier_id, o_ol_cnt FROM orders WHERE o_w_id = %d AND o_d_id = %d " ..
      "AND o_c_id = %d ORDER BY o_id DESC LIMIT 1", home, input.district, customer)
   if not order then
      error("a customer without an order")
   end
   local found = rows("SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line WHERE ol_w_id = %d " ..
      "AND ol_d_id = %d AND ol_o_id = %d", home, input.district, order)
   if #found ~= tonumber(lines) then
      error("order " .. order .. " of district " .. input.district .. " has " .. #found .. " lines, not " .. lines)
   end
   connection:query("COMMIT")
   return "order_status"
end

local function draw_delivery()
   return {run = "delivery", carrier = uniform(1, 10)}
end

-- Writes to each row before reading it. A transaction sees its own writes, even if its snapshot is older than the row.
local function deliver_district(district, carrier)
   local order = number("SELECT no_o_id FROM new_orders WHERE no_w_id = %d AND no_d_id = %d ORDER BY no_o_id LIMIT 1 FOR UPDATE",
      home, district)
   if not order then
      return
   end
   write("DELETE FROM new_orders WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?", home, district, order)
   write("UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?", carrier, home, district, order)
   local customer = number("SELECT o_c_id FROM orders WHERE o_w_id = %d AND o_d_id = %d AND o_id = %d", home, district, order)
   write("UPDATE order_line SET ol_delivery_d = ? WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?", os.time(), home, district,
      order)
   local amount = number("SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id = %d", home,
      district, order)
   if not customer or not amount then
      error("the new order " .. order .. " of district " .. district .. " was locked and is not there")
   end
   write("UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? " ..
      "AND c_id = ?", amount, home, district, customer)
end

local function delivery(input)
   connection:query("BEGIN")
   for district = 1, DISTRICTS do
      deliver_district(district, input.carrier)
   end
   connection:query("COMMIT")
   return "delivery"
end

local function draw_stock_level()
   return {run = "stock_level", district = uniform(1, DISTRICTS), threshold = uniform(10, 20)}
end

local function stock_level(input)
   connection:query("BEGIN")
   local next_order = number("SELECT d_next_o_id FROM district WHERE d_w_id = %d AND d_id = %d", home, input.district)
   row("SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id >= %d " ..
      "AND ol_o_id < %d AND s_w_id = ol_w_id AND s_i_id = ol_i_id AND s_quantity < %d", home, input.district, next_order - 20,
      next_order, input.threshold)
   connection:query("COMMIT")
   return "stock_level"
end

-- ----------------------------------------------------------------------------------------------------------------------
-- A thread
-- ----------------------------------------------------------------------------------------------------------------------

local transactions = {new_order = new_order, payment = payment, order_status = order_status, delivery = delivery,
   stock_level = stock_level}
local COUNTERS = {"new_order", "rolled_back", "payment", "order_status", "delivery", "stock_level", "retries"}
-- Number of buckets of durations for each factor e, so that a bucket is about 3 per cent wide.
local BUCKETS = 32
local counters = {}
local latencies = {}
local pending, pending_us, start_us

local function now_us()
   local time = ffi.new("dbt2_time")
   ffi.C.clock_gettime(1, time)
   return tonumber(time.seconds) * 1000000 + math.floor(tonumber(time.nanoseconds) / 1000)
end

-- Runs in the main thread before the other threads begin.
function init()
   if option.first_warehouse + run_warehouses() - 1 > option.warehouses then
      error("the run uses more warehouses than there are")
   end
   local cleaner = sysbench.sql.driver():connect()
   cleaner:query("DELETE FROM dbt2_count WHERE first_warehouse = " .. option.first_warehouse)
   cleaner:query("DELETE FROM dbt2_latency WHERE first_warehouse = " .. option.first_warehouse)
end

function thread_init()
   connection = sysbench.sql.driver():connect()
   if option.isolation ~= "" then
      connection:query("SET SESSION TRANSACTION ISOLATION LEVEL " .. option.isolation)
   end
   home = option.first_warehouse + sysbench.tid % run_warehouses()
   for _, name in ipairs(COUNTERS) do
      counters[name] = 0
   end
end

-- Of 100 transactions, 45 are New-Orders, 43 Payments, and 4 of each other kind.
local function draw()
   local kind = uniform(1, 100)
   if kind <= 45 then
      return draw_new_order()
   elseif kind <= 88 then
      return draw_payment()
   elseif kind <= 92 then
      return draw_order_status()
   elseif kind <= 96 then
      return draw_delivery()
   end
   return draw_stock_level()
end

function event()
   start_us = start_us or now_us()
   if not pending then
      pending, pending_us = draw(), now_us()
   end
   local done = transactions[pending.run](pending)
   counters[done] = counters[done] + 1
   if pending.run == "new_order" then
      -- The duration includes failed attempts.
      local bucket = math.floor(math.log(math.max(1, now_us() - pending_us)) * BUCKETS)
      latencies[bucket] = (latencies[bucket] or 0) + 1
   end
   pending = nil
end

-- sysbench repeats the event with the same input. A lock wait timeout leaves the transaction open.
function sysbench.hooks.before_restart_event(failure)
   counters.retries = counters.retries + 1
   failure.connection:query("ROLLBACK")
end

function thread_done()
   local values = {option.first_warehouse, sysbench.tid, now_us() - (start_us or now_us())}
   for place, name in ipairs(COUNTERS) do
      values[place + 3] = counters[name]
   end
   connection:query("INSERT INTO dbt2_count VALUES (" .. table.concat(values, ", ") .. ")")
   local buckets = {}
   for bucket, transactions in pairs(latencies) do
      buckets[#buckets + 1] = string.format("(%d, %d, %d, %d)", option.first_warehouse, sysbench.tid, bucket, transactions)
   end
   if #buckets > 0 then
      connection:query("INSERT INTO dbt2_latency VALUES " .. table.concat(buckets, ", "))
   end
   for _, known in pairs(statements) do
      known.statement:close()
   end
   connection:disconnect()
end

-- The duration in milliseconds that a share of the New-Orders does not exceed: the end of its bucket.
local function new_order_quantile(share)
   local found = rows("SELECT bucket, SUM(transactions) FROM dbt2_latency WHERE first_warehouse = %d GROUP BY bucket ORDER BY bucket",
      option.first_warehouse)
   local total, seen = 0, 0
   for _, bucket in ipairs(found) do
      total = total + tonumber(bucket[2])
   end
   for _, bucket in ipairs(found) do
      seen = seen + tonumber(bucket[2])
      if seen >= total * share then
         return math.exp((tonumber(bucket[1]) + 1) / BUCKETS) / 1000
      end
   end
   return 0
end

-- Runs in the main thread after all other threads have ended.
function done()
   connection = sysbench.sql.driver():connect()
   local sums = {}
   for place, name in ipairs(COUNTERS) do
      sums[place] = "SUM(" .. name .. ")"
   end
   local counted = {row("SELECT MAX(microseconds), " .. table.concat(sums, ", ") .. " FROM dbt2_count WHERE first_warehouse = %d",
      option.first_warehouse)}
   local minutes = tonumber(counted[1] or 0) / 60000000
   if minutes <= 0 then
      return
   end
   print("dbt2:")
   for place, name in ipairs(COUNTERS) do
      print(string.format("    %-28s %s", name .. ":", counted[place + 1]))
   end
   print(string.format("    %-28s %.3f", "new order p50 ms:", new_order_quantile(0.5)))
   print(string.format("    %-28s %.3f", "new order p99 ms:", new_order_quantile(0.99)))
   -- Like the specification, counts New-Orders that were rolled back intentionally.
   print(string.format("    %-28s %.2f", "new orders per minute:", (tonumber(counted[2]) + tonumber(counted[3])) / minutes))
end
