-- The tables of dbt2.lua, their initial rows, and the random input of TPC-C, clauses 1.3, 2.1.6 and 4.3.

local ffi = require("ffi")
ffi.cdef "int usleep(unsigned int microseconds);"

-- sysbench.opt does not exist yet while the script is loaded, only when a command runs.
local option = setmetatable({}, {__index = function(known, name)
   known[name] = sysbench.opt[name]
   return known[name]
end})
local DISTRICTS = 10
local ROWS_PER_INSERT = 250
local NULL = {}

-- Initially, 2,100 of 3,000 orders are delivered; with another number of orders, the same share.
local function delivered_at_first()
   return math.floor(option.customers * 7 / 10)
end

-- ----------------------------------------------------------------------------------------------------------------------
-- Random input, clauses 2.1.6, 4.3.2 and 4.3.3
-- ----------------------------------------------------------------------------------------------------------------------

local uniform = sysbench.rand.uniform

-- The constants C of loading and running. Those of the last name differ by 97, which clause 2.1.6.1 allows.
local LAST_NAME_CONSTANT_LOAD, LAST_NAME_CONSTANT_RUN = 123, 220
local CUSTOMER_CONSTANT, ITEM_CONSTANT = 259, 7911

local function non_uniform(bound, constant, least, most)
   local mixed = bit.bor(uniform(0, bound), uniform(least, most))
   return (mixed + constant) % (most - least + 1) + least
end

local SYLLABLES = {[0] = "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"}

local function last_name(number)
   return SYLLABLES[math.floor(number / 100)] .. SYLLABLES[math.floor(number / 10) % 10] .. SYLLABLES[number % 10]
end

local function text(least, most)
   return sysbench.rand.string(string.rep("@", uniform(least, most)))
end

local function digits(count)
   return sysbench.rand.string(string.rep("#", count))
end

local function zip()
   return digits(4) .. "11111"
end

-- A random text; one in ten contains the word ORIGINAL.
local function original_text()
   local data = text(26, 50)
   if uniform(1, 10) > 1 then
      return data
   end
   local place = uniform(0, #data - 8)
   return data:sub(1, place) .. "ORIGINAL" .. data:sub(place + 9)
end

local function permutation(count)
   local numbers = {}
   for place = 1, count do
      numbers[place] = place
   end
   for place = count, 2, -1 do
      local other = uniform(1, place)
      numbers[place], numbers[other] = numbers[other], numbers[place]
   end
   return numbers
end

-- ----------------------------------------------------------------------------------------------------------------------
-- Tables, clause 1.3
-- ----------------------------------------------------------------------------------------------------------------------

local ADDRESS = "street_1 VARCHAR(20) NOT NULL, %sstreet_2 VARCHAR(20) NOT NULL, %scity VARCHAR(20) NOT NULL, " ..
   "%sstate CHAR(2) NOT NULL, %szip CHAR(9) NOT NULL, "

local function address_columns(prefix)
   return prefix .. ADDRESS:format(prefix, prefix, prefix, prefix)
end

local function stock_districts()
   local columns = {}
   for district = 1, DISTRICTS do
      columns[district] = string.format("s_dist_%02d CHAR(24) NOT NULL, ", district)
   end
   return table.concat(columns)
end

-- For each table: name, columns, primary key or nil, whether a hash index suffices for it, warehouse column or nil.
local function tables()
   return {
      {"warehouse", "w_id INT NOT NULL, w_name VARCHAR(10) NOT NULL, " .. address_columns("w_") ..
         "w_tax INT NOT NULL, w_ytd BIGINT NOT NULL", "w_id", true, "w_id"},
      {"district", "d_id INT NOT NULL, d_w_id INT NOT NULL, d_name VARCHAR(10) NOT NULL, " .. address_columns("d_") ..
         "d_tax INT NOT NULL, d_ytd BIGINT NOT NULL, d_next_o_id INT NOT NULL", "d_w_id, d_id", true, "d_w_id"},
      {"customer", "c_id INT NOT NULL, c_d_id INT NOT NULL, c_w_id INT NOT NULL, c_first VARCHAR(16) NOT NULL, " ..
         "c_middle CHAR(2) NOT NULL, c_last VARCHAR(16) NOT NULL, " .. address_columns("c_") ..
         "c_phone CHAR(16) NOT NULL, c_since BIGINT NOT NULL, c_credit CHAR(2) NOT NULL, c_credit_lim BIGINT NOT NULL, " ..
         "c_discount INT NOT NULL, c_balance BIGINT NOT NULL, c_ytd_payment BIGINT NOT NULL, c_payment_cnt INT NOT NULL, " ..
         "c_delivery_cnt INT NOT NULL, c_data VARCHAR(500) NOT NULL, " ..
         "KEY customer_name (c_w_id, c_d_id, c_last, c_first)", "c_w_id, c_d_id, c_id", true, "c_w_id"},
      {"history", "h_c_id INT NOT NULL, h_c_d_id INT NOT NULL, h_c_w_id INT NOT NULL, h_d_id INT NOT NULL, " ..
         "h_w_id INT NOT NULL, h_date BIGINT NOT NULL, h_amount BIGINT NOT NULL, h_data VARCHAR(24) NOT NULL"},
      {"new_orders", "no_o_id INT NOT NULL, no_d_id INT NOT NULL, no_w_id INT NOT NULL",
         "no_w_id, no_d_id, no_o_id", false, "no_w_id"},
      {"orders", "o_id INT NOT NULL, o_d_id INT NOT NULL, o_w_id INT NOT NULL, o_c_id INT NOT NULL, " ..
         "o_entry_d BIGINT NOT NULL, o_carrier_id INT NULL, o_ol_cnt INT NOT NULL, o_all_local INT NOT NULL, " ..
         "KEY orders_customer (o_w_id, o_d_id, o_c_id, o_id)", "o_w_id, o_d_id, o_id", true, "o_w_id"},
      {"order_line", "ol_o_id INT NOT NULL, ol_d_id INT NOT NULL, ol_w_id INT NOT NULL, ol_number INT NOT NULL, " ..
         "ol_i_id INT NOT NULL, ol_supply_w_id INT NOT NULL, ol_delivery_d BIGINT NULL, ol_quantity INT NOT NULL, " ..
         "ol_amount BIGINT NOT NULL, ol_dist_info CHAR(24) NOT NULL",
         "ol_w_id, ol_d_id, ol_o_id, ol_number", false, "ol_w_id"},
      {"item", "i_id INT NOT NULL, i_im_id INT NOT NULL, i_name VARCHAR(24) NOT NULL, i_price BIGINT NOT NULL, " ..
         "i_data VARCHAR(50) NOT NULL", "i_id", true},
      {"stock", "s_i_id INT NOT NULL, s_w_id INT NOT NULL, s_quantity INT NOT NULL, " .. stock_districts() ..
         "s_ytd BIGINT NOT NULL, s_order_cnt INT NOT NULL, s_remote_cnt INT NOT NULL, s_data VARCHAR(50) NOT NULL",
         "s_w_id, s_i_id", true, "s_w_id"},
      -- The counts of runs, one row per thread. Concurrent runs differ in their first warehouse.
      {"dbt2_count", "first_warehouse INT NOT NULL, thread INT NOT NULL, microseconds BIGINT NOT NULL, new_order BIGINT NOT NULL, " ..
         "rolled_back BIGINT NOT NULL, payment BIGINT NOT NULL, order_status BIGINT NOT NULL, delivery BIGINT NOT NULL, " ..
         "stock_level BIGINT NOT NULL, retries BIGINT NOT NULL", "first_warehouse, thread"},
      -- The New-Orders of each thread by the bucket of their duration.
      {"dbt2_latency", "first_warehouse INT NOT NULL, thread INT NOT NULL, bucket INT NOT NULL, transactions BIGINT NOT NULL",
         "first_warehouse, thread, bucket"},
      -- Created last: it tells waiting loaders that all other tables exist.
      {"dbt2_ready", "id INT NOT NULL", "id"}
   }
end

local function create_statement(definition)
   local name, columns, key, is_hash, warehouse = unpack(definition, 1, 5)
   local all = "CREATE TABLE " .. name .. " (" .. columns
   if key then
      all = all .. ", PRIMARY KEY (" .. key .. ")" .. ((is_hash and option.pk_using_hash) and " USING HASH" or "")
   end
   all = all .. ")"
   if option.engine ~= "" then
      all = all .. " ENGINE = " .. option.engine
   end
   if warehouse and option.partitions > 0 then
      all = all .. " PARTITION BY KEY (" .. warehouse .. ") PARTITIONS " .. option.partitions
   end
   return all
end

-- ----------------------------------------------------------------------------------------------------------------------
-- Loading, clause 4.3.3.1
-- ----------------------------------------------------------------------------------------------------------------------

-- Collects rows and sends them in statements of ROWS_PER_INSERT.
local function loader(connection, name)
   local rows = {}
   local function send()
      if #rows > 0 then
         connection:query("INSERT INTO " .. name .. " VALUES " .. table.concat(rows, ","))
         rows = {}
      end
   end
   local function add(...)
      local values = {...}
      for place, value in ipairs(values) do
         if value == NULL then
            values[place] = "NULL"
         elseif type(value) == "string" then
            values[place] = "'" .. value .. "'"
         else
            values[place] = string.format("%d", value)
         end
      end
      rows[#rows + 1] = "(" .. table.concat(values, ",") .. ")"
      if #rows >= ROWS_PER_INSERT then
         send()
      end
   end
   return add, send
end

local function address()
   return text(10, 20), text(10, 20), text(10, 20), sysbench.rand.string("@@"), zip()
end

local function load_items(connection)
   local add, send = loader(connection, "item")
   for id = 1, option.items do
      add(id, uniform(1, 10000), text(14, 24), uniform(100, 10000), original_text())
   end
   send()
end

local function load_warehouse(connection, warehouse)
   local add, send = loader(connection, "warehouse")
   local street_1, street_2, city, state, code = address()
   add(warehouse, text(6, 10), street_1, street_2, city, state, code, uniform(0, 2000), option.customers * DISTRICTS * 1000)
   send()
end

local function load_stock(connection, warehouse)
   local add, send = loader(connection, "stock")
   for item = 1, option.items do
      local information = {}
      for district = 1, DISTRICTS do
         information[district] = text(24, 24)
      end
      information[#information + 1] = 0
      information[#information + 1] = 0
      information[#information + 1] = 0
      information[#information + 1] = original_text()
      add(item, warehouse, uniform(10, 100), unpack(information))
   end
   send()
end

local function load_customers(connection, warehouse, district)
   local add, send = loader(connection, "customer")
   local add_history, send_history = loader(connection, "history")
   local now = os.time()
   for customer = 1, option.customers do
      local name = customer <= 1000 and customer - 1 or non_uniform(255, LAST_NAME_CONSTANT_LOAD, 0, 999)
      local street_1, street_2, city, state, code = address()
      add(customer, district, warehouse, text(8, 16), "OE", last_name(name), street_1, street_2, city, state, code,
         digits(16), now, uniform(1, 10) == 1 and "BC" or "GC", 5000000, uniform(0, 5000), -1000, 1000, 1, 0, text(300, 500))
      add_history(customer, district, warehouse, district, warehouse, now, 1000, text(12, 24))
   end
   send()
   send_history()
end

local function load_orders(connection, warehouse, district)
   local add, send = loader(connection, "orders")
   local add_line, send_lines = loader(connection, "order_line")
   local add_new, send_new = loader(connection, "new_orders")
   local now = os.time()
   for order, customer in ipairs(permutation(option.customers)) do
      local is_delivered = order <= delivered_at_first()
      local lines = uniform(5, 15)
      add(order, district, warehouse, customer, now, is_delivered and uniform(1, 10) or NULL, lines, 1)
      for number = 1, lines do
         add_line(order, district, warehouse, number, uniform(1, option.items), warehouse, is_delivered and now or NULL, 5,
            is_delivered and 0 or uniform(1, 999999), text(24, 24))
      end
      if not is_delivered then
         add_new(order, district, warehouse)
      end
   end
   send()
   send_lines()
   send_new()
end

local function load_district(connection, warehouse, district)
   local add, send = loader(connection, "district")
   local street_1, street_2, city, state, code = address()
   add(district, warehouse, text(6, 10), street_1, street_2, city, state, code, uniform(0, 2000), option.customers * 1000,
      option.customers + 1)
   send()
   load_customers(connection, warehouse, district)
   load_orders(connection, warehouse, district)
end

local function create_tables(connection)
   for _, definition in ipairs(tables()) do
      connection:query(create_statement(definition))
   end
end

-- The command `create`: the tables without rows, for data that come from elsewhere.
local function create()
   create_tables(sysbench.sql.driver():connect())
end

local function require_tables(connection, me)
   if me == 0 then
      create_tables(connection)
      return
   end
   local question = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = '" .. option.mysql_db ..
      "' AND table_name = 'dbt2_ready'"
   for _ = 1, 6000 do
      if tonumber((connection:query_row(question))) == 1 then
         return
      end
      ffi.C.usleep(10000)
   end
   error("the tables did not appear")
end

-- The command `prepare`.
local function prepare()
   if option.customers < 10 or option.items < 15 or option.warehouses < 1 then
      error("at least 1 warehouse, 10 customers and 15 items are needed")
   end
   local connection = sysbench.sql.driver():connect()
   local me = sysbench.tid % option.threads
   require_tables(connection, me)
   local parts = {function() load_items(connection) end}
   for warehouse = 1, option.warehouses do
      parts[#parts + 1] = function()
         load_warehouse(connection, warehouse)
         load_stock(connection, warehouse)
      end
      for district = 1, DISTRICTS do
         parts[#parts + 1] = function() load_district(connection, warehouse, district) end
      end
   end
   for place = me + 1, #parts, option.threads do
      parts[place]()
   end
end

-- The command `cleanup`.
local function cleanup()
   local connection = sysbench.sql.driver():connect()
   for _, definition in ipairs(tables()) do
      connection:query("DROP TABLE IF EXISTS " .. definition[1])
   end
end

-- ----------------------------------------------------------------------------------------------------------------------
-- Random input of runs
-- ----------------------------------------------------------------------------------------------------------------------

local function draw_customer()
   return non_uniform(1023, CUSTOMER_CONSTANT, 1, option.customers)
end

local function draw_item()
   return non_uniform(8191, ITEM_CONSTANT, 1, option.items)
end

local function draw_last_name()
   return last_name(non_uniform(255, LAST_NAME_CONSTANT_RUN, 0, math.min(option.customers, 1000) - 1))
end

return {
   option = option,
   DISTRICTS = DISTRICTS,
   delivered_at_first = delivered_at_first,
   create = create,
   prepare = prepare,
   cleanup = cleanup,
   draw_customer = draw_customer,
   draw_item = draw_item,
   draw_last_name = draw_last_name
}
