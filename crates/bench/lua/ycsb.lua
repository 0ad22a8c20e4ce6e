-- The workloads A to F of the Yahoo! Cloud Serving Benchmark (Cooper et al., 2010), against a table of a key and ten fields.
--
--   A  50 % reads, 50 % updates                    zipfian
--   B  95 % reads, 5 % updates                     zipfian
--   C  reads                                       zipfian
--   D  95 % reads, 5 % inserts                     latest
--   E  95 % scans of 1 to 100 records, 5 % inserts zipfian
--   F  50 % reads, 50 % read-modify-writes         zipfian
--
--   sysbench ycsb.lua --mysql-db=ycsb --records=100000 --threads=4 prepare
--   sysbench ycsb.lua --mysql-db=ycsb --workload=A --threads=8 --time=60 run
--   sysbench ycsb.lua --mysql-db=ycsb check
--   sysbench ycsb.lua --mysql-db=ycsb cleanup
--
-- A read reads all fields, an update writes one of them. With --db-ps-mode=auto, statements are prepared; with
-- --db-ps-mode=disable, they are text. One difference from YCSB: a thread knows only the records that existed when it began
-- and those that it has inserted itself. "latest" prefers the latest of these, so that every read finds its record.

sysbench.cmdline.options = {
   records = {"Records that are loaded", 100000},
   workload = {"A, B, C, D, E or F", "A"},
   distribution = {"zipfian, latest or uniform; empty for that of the workload", ""},
   fields = {"Fields of a record", 10},
   field_bytes = {"Bytes of a field", 100},
   scan_records = {"Maximum number of records of a scan", 100},
   ordered = {"Keys in the order of their numbers instead of hashed", false},
   partitions = {"Number of partitions; 0 leaves it to the server", 0},
   engine = {"ENGINE of the table; empty for the server's default", ""},
   isolation = {"Isolation level of the sessions, such as READ COMMITTED; empty for the server's default", ""}
}

local ffi = require("ffi")
ffi.cdef "int usleep(unsigned int microseconds);"

-- sysbench.opt does not exist yet while the script is loaded, only when a command runs.
local option = setmetatable({}, {__index = function(known, name)
   known[name] = sysbench.opt[name]
   return known[name]
end})

-- Percentages of the operations, and the distribution of the records.
local WORKLOADS = {
   A = {read = 50, update = 50, distribution = "zipfian"},
   B = {read = 95, update = 5, distribution = "zipfian"},
   C = {read = 100, distribution = "zipfian"},
   D = {read = 95, insert = 5, distribution = "latest"},
   E = {scan = 95, insert = 5, distribution = "zipfian"},
   F = {read = 50, read_modify_write = 50, distribution = "zipfian"}
}
local OPERATIONS = {"read", "update", "insert", "scan", "read_modify_write"}
local ROWS_PER_INSERT = 100
-- Size of the range of numbers that each thread has for its records.
local NUMBERS_OF_A_THREAD = 1000000000
local KEY_BYTES = 32

-- ----------------------------------------------------------------------------------------------------------------------
-- Random choices
-- ----------------------------------------------------------------------------------------------------------------------

-- FNV-1a of the eight bytes of a number, which YCSB uses for its keys and to scatter popular records.
local function hash(number)
   local value = 0xcbf29ce484222325ULL
   for _ = 1, 8 do
      value = bit.bxor(value, number % 256) * 0x100000001b3ULL
      number = math.floor(number / 256)
   end
   return value
end

local function key_of(number)
   if option.ordered then
      return string.format("user%019d", number)
   end
   -- The upper bit is cleared, as in YCSB, whose numbers are signed.
   return "user" .. tostring(bit.band(hash(number), 0x7fffffffffffffffULL)):sub(1, -4)
end

local SKEW = 0.99

-- The sum of 1 / i ^ SKEW for i from 1 to count: the first terms one by one, the rest by the formula of Euler and Maclaurin.
local function zeta(count)
   local sum, first = 0, math.min(count, 10000)
   for place = 1, first do
      sum = sum + place ^ -SKEW
   end
   if count > first then
      sum = sum + (count ^ (1 - SKEW) - first ^ (1 - SKEW)) / (1 - SKEW) + (count ^ -SKEW - first ^ -SKEW) / 2
   end
   return sum
end

-- Zipfian numbers from 0, after Gray et al., "Quickly generating billion-record synthetic databases" (1994).
local function zipfian(count)
   local total, alpha = zeta(count), 1 / (1 - SKEW)
   local eta = (1 - (2 / count) ^ (1 - SKEW)) / (1 - zeta(math.min(2, count)) / total)
   return function()
      local chance = sysbench.rand.uniform_double()
      local place = chance * total
      if place < 1 or count < 2 then
         return 0
      elseif place < 1 + 0.5 ^ SKEW then
         return 1
      end
      return math.min(count - 1, math.floor(count * (eta * chance - eta + 1) ^ alpha))
   end
end

-- Number of records at the beginning, number of records of this thread, and number of its first record.
local loaded, inserted, own_first

local function uniform_chooser()
   return function()
      return sysbench.rand.uniform(0, loaded - 1)
   end
end

-- The popular records are scattered over all records, instead of being the first ones.
local function zipfian_chooser()
   local draw = zipfian(loaded)
   return function()
      return tonumber(hash(draw()) % loaded)
   end
end

local function latest_chooser()
   local draw = zipfian(loaded)
   return function()
      local age = draw()
      return age < inserted and own_first + inserted - 1 - age or math.max(0, loaded - 1 - (age - inserted))
   end
end

local CHOOSERS = {uniform = uniform_chooser, zipfian = zipfian_chooser, latest = latest_chooser}

-- ----------------------------------------------------------------------------------------------------------------------
-- Loading and checking
-- ----------------------------------------------------------------------------------------------------------------------

local function create_statement()
   local columns = {"ycsb_key VARCHAR(" .. KEY_BYTES .. ") COLLATE utf8mb4_bin NOT NULL"}
   for field = 0, option.fields - 1 do
      columns[#columns + 1] = "field" .. field .. " VARCHAR(" .. option.field_bytes .. ") NOT NULL"
   end
   local all = "CREATE TABLE usertable (" .. table.concat(columns, ", ") .. ", PRIMARY KEY (ycsb_key))"
   if option.engine ~= "" then
      all = all .. " ENGINE = " .. option.engine
   end
   if option.partitions > 0 then
      all = all .. " PARTITION BY KEY (ycsb_key) PARTITIONS " .. option.partitions
   end
   return all
end

local function field_value()
   return sysbench.rand.string(string.rep("@", option.field_bytes))
end

local function record(number)
   local values = {"'" .. key_of(number) .. "'"}
   for field = 1, option.fields do
      values[field + 1] = "'" .. field_value() .. "'"
   end
   return "(" .. table.concat(values, ",") .. ")"
end

-- Thread 0 creates the tables. It creates ycsb_state last, which tells waiting threads that the other table exists.
local function require_tables(connection, me)
   if me == 0 then
      connection:query(create_statement())
      connection:query("CREATE TABLE ycsb_state (id INT NOT NULL PRIMARY KEY, loaded BIGINT NOT NULL, inserted BIGINT NOT NULL, " ..
         "threads BIGINT NOT NULL)" .. (option.engine ~= "" and " ENGINE = " .. option.engine or ""))
      connection:query("INSERT INTO ycsb_state VALUES (1, " .. option.records .. ", 0, 0)")
      return
   end
   local question = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = '" .. option.mysql_db ..
      "' AND table_name = 'ycsb_state'"
   for _ = 1, 6000 do
      if tonumber((connection:query_row(question))) == 1 then
         return
      end
      ffi.C.usleep(10000)
   end
   error("the tables did not appear")
end

local function prepare()
   if option.records < 1 or option.fields < 1 or option.fields > 100 then
      error("at least 1 record and 1 to 100 fields are needed")
   end
   local connection = sysbench.sql.driver():connect()
   local me = sysbench.tid % option.threads
   require_tables(connection, me)
   for first = me * ROWS_PER_INSERT, option.records - 1, option.threads * ROWS_PER_INSERT do
      local records = {}
      for number = first, math.min(first + ROWS_PER_INSERT, option.records) - 1 do
         records[#records + 1] = record(number)
      end
      connection:query("INSERT INTO usertable VALUES " .. table.concat(records, ","))
   end
end

function cleanup()
   local connection = sysbench.sql.driver():connect()
   connection:query("DROP TABLE IF EXISTS usertable")
   connection:query("DROP TABLE IF EXISTS ycsb_state")
end

-- Checks that every record exists, and that every field has the length that all writes give it.
local function check()
   local connection = sysbench.sql.driver():connect()
   local records = tonumber((connection:query_row("SELECT COUNT(*) FROM usertable")))
   local expected = tonumber((connection:query_row("SELECT loaded + inserted FROM ycsb_state WHERE id = 1")))
   local wrong = {}
   for field = 0, option.fields - 1 do
      wrong[#wrong + 1] = "CHAR_LENGTH(field" .. field .. ") <> " .. option.field_bytes
   end
   local torn = tonumber((connection:query_row("SELECT COUNT(*) FROM usertable WHERE " .. table.concat(wrong, " OR "))))
   print(string.format("%d records, %d were loaded and inserted, %d have a field of another length", records, expected, torn))
   if records ~= expected or torn > 0 then
      error("check failed: records are missing or damaged")
   end
end

sysbench.cmdline.commands = {
   prepare = {prepare, sysbench.cmdline.PARALLEL_COMMAND},
   check = {check}
}

-- ----------------------------------------------------------------------------------------------------------------------
-- A thread
-- ----------------------------------------------------------------------------------------------------------------------

local connection
local prepared = {}
local choose, workload
local pending

local function prepare_statement(name, text, ...)
   local known = {statement = connection:prepare(text), parameters = {}}
   for place, bytes in ipairs({...}) do
      -- One byte more, because the driver takes the text up to the first zero byte.
      known.parameters[place] = bytes > 0 and known.statement:bind_create(sysbench.sql.type.CHAR, bytes + 1) or
         known.statement:bind_create(sysbench.sql.type.INT)
   end
   known.statement:bind_param(unpack(known.parameters))
   prepared[name] = known
end

local function execute(name, ...)
   local known = prepared[name]
   for place, value in ipairs({...}) do
      known.parameters[place]:set(value)
      if type(value) == "string" then
         known.parameters[place].buffer[#value] = 0
      end
   end
   known.statement:execute()
end

-- Reads the number of existing records, and reserves a range of numbers for this thread's records.
local function reserve_numbers()
   connection:query("BEGIN")
   local loaded_text, taken = connection:query_row("SELECT loaded, threads FROM ycsb_state WHERE id = 1 FOR UPDATE")
   connection:query("UPDATE ycsb_state SET threads = threads + 1 WHERE id = 1")
   connection:query("COMMIT")
   loaded, inserted, own_first = tonumber(loaded_text), 0, (tonumber(taken) + 1) * NUMBERS_OF_A_THREAD
end

function thread_init()
   workload = WORKLOADS[option.workload:upper()]
   local distribution = workload and (option.distribution == "" and workload.distribution or option.distribution)
   if not workload or not CHOOSERS[distribution] then
      error("--workload is A to F, --distribution is zipfian, latest or uniform")
   end
   connection = sysbench.sql.driver():connect()
   if option.isolation ~= "" then
      connection:query("SET SESSION TRANSACTION ISOLATION LEVEL " .. option.isolation)
   end
   reserve_numbers()
   choose = CHOOSERS[distribution]()
   local lengths = {KEY_BYTES}
   for field = 1, option.fields do
      lengths[field + 1] = option.field_bytes
   end
   prepare_statement("read", "SELECT * FROM usertable WHERE ycsb_key = ?", KEY_BYTES)
   prepare_statement("scan", "SELECT * FROM usertable WHERE ycsb_key >= ? ORDER BY ycsb_key LIMIT ?", KEY_BYTES, 0)
   prepare_statement("insert", "INSERT INTO usertable VALUES (" .. string.rep("?, ", option.fields) .. "?)", unpack(lengths))
   for field = 0, option.fields - 1 do
      prepare_statement(field, "UPDATE usertable SET field" .. field .. " = ? WHERE ycsb_key = ?", option.field_bytes, KEY_BYTES)
   end
end

function thread_done()
   connection:query("UPDATE ycsb_state SET inserted = inserted + " .. inserted .. " WHERE id = 1")
   for _, known in pairs(prepared) do
      known.statement:close()
   end
   connection:disconnect()
end

local function draw()
   local kind = sysbench.rand.uniform(1, 100)
   for _, operation in ipairs(OPERATIONS) do
      kind = kind - (workload[operation] or 0)
      if kind <= 0 then
         return {operation = operation, field = sysbench.rand.uniform(0, option.fields - 1),
            key = key_of(operation == "insert" and own_first + inserted or choose())}
      end
   end
end

local operations = {
   read = function(drawn) execute("read", drawn.key) end,
   update = function(drawn) execute(drawn.field, field_value(), drawn.key) end,
   scan = function(drawn) execute("scan", drawn.key, sysbench.rand.uniform(1, option.scan_records)) end,
   insert = function(drawn)
      local values = {}
      for field = 1, option.fields do
         values[field] = field_value()
      end
      execute("insert", drawn.key, unpack(values))
      inserted = inserted + 1
   end,
   read_modify_write = function(drawn)
      execute("read", drawn.key)
      execute(drawn.field, field_value(), drawn.key)
   end
}

-- After a deadlock or a lock wait timeout, sysbench repeats the same operation.
function event()
   pending = pending or draw()
   operations[pending.operation](pending)
   pending = nil
end
