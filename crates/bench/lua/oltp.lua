-- The OLTP transaction of sysbench, with features that the scripts of sysbench 1.0 lack: IN lists as point selects, ranges
-- with a filter, locks in key order, partitions, an isolation level. An option sets the number of each kind of statement.
--
--   sysbench oltp.lua --mysql-db=sbtest --table_size=100000 prepare
--   sysbench oltp.lua --mysql-db=sbtest --table_size=100000 --in_keys=100 --simple_ranges=0 ... run
--   sysbench oltp.lua --mysql-db=sbtest --table_size=100000 check
--   sysbench oltp.lua --mysql-db=sbtest cleanup
--
-- With --db-ps-mode=auto, statements are prepared; with --db-ps-mode=disable, they are text.

sysbench.cmdline.options = {
   table_size = {"Rows of a table", 10000},
   tables = {"Tables, sbtest1 to sbtestN", 1},
   point_selects = {"Point selects in a transaction", 10},
   in_keys = {"Keys of a point select, which is an IN list; 0 for an equality", 0},
   range_size = {"Rows of a range", 100},
   simple_ranges = {"Ranges in a transaction", 1},
   sum_ranges = {"SELECT SUM() of a range in a transaction", 1},
   order_ranges = {"Ranges with ORDER BY in a transaction", 1},
   distinct_ranges = {"Ranges with DISTINCT in a transaction", 1},
   filter = {"Ranges read range_size rows and return one of them, by a condition on filter_col", false},
   index_updates = {"Updates of the indexed column in a transaction", 1},
   non_index_updates = {"Updates of another column in a transaction", 1},
   delete_inserts = {"Pairs of DELETE and INSERT in a transaction", 1},
   skip_trx = {"No BEGIN and COMMIT", false},
   single_statement = {"One statement per event instead of the transaction: select, update_key, update_nokey, insert or delete", ""},
   secondary = {"id has a plain secondary index and no primary key", false},
   auto_inc = {"The ids of rows come from AUTO_INCREMENT", false},
   ordered_locks = {"A transaction writes in the order of tables and keys", true},
   partitions = {"Number of partitions by id; 0 leaves it to the server", 0},
   engine = {"ENGINE of the tables; empty for the server's default", ""},
   isolation = {"Isolation level of the sessions, such as READ COMMITTED; empty for the server's default", ""}
}

local ROWS_PER_INSERT = 500
-- Groups of eleven digits, ten or five of them, separated by dashes.
local C_FORMAT = string.rep("###########-", 9) .. "###########"
local PAD_FORMAT = string.rep("###########-", 4) .. "###########"
local INTEGER = sysbench.sql.type.INT

-- sysbench.opt does not exist yet while the script is loaded, only when a command runs.
local option = setmetatable({}, {__index = function(known, name)
   known[name] = sysbench.opt[name]
   return known[name]
end})

local function table_name(number)
   return "sbtest" .. number
end

local function create_statement(number)
   local key = option.secondary and "KEY xid (id)" or "PRIMARY KEY (id)"
   local text = "CREATE TABLE " .. table_name(number) .. " (id INT NOT NULL" .. (option.auto_inc and " AUTO_INCREMENT" or "") ..
      ", k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT ''" ..
      (option.filter and ", filter_col INT NOT NULL DEFAULT 0" or "") .. ", " .. key .. ")"
   if option.engine ~= "" then
      text = text .. " ENGINE = " .. option.engine
   end
   if option.partitions > 0 then
      text = text .. " PARTITION BY KEY (id) PARTITIONS " .. option.partitions
   end
   return text
end

local function columns()
   return (option.auto_inc and "" or "id, ") .. "k, c, pad" .. (option.filter and ", filter_col" or "")
end

local function row(id)
   local values = string.format("%d, '%s', '%s'", sysbench.rand.default(1, option.table_size),
      sysbench.rand.string(C_FORMAT), sysbench.rand.string(PAD_FORMAT))
   if not option.auto_inc then
      values = id .. ", " .. values
   end
   return "(" .. values .. (option.filter and ", " .. id or "") .. ")"
end

local function fill(connection, number)
   connection:query(create_statement(number))
   local before = "INSERT INTO " .. table_name(number) .. " (" .. columns() .. ") VALUES "
   for first = 1, option.table_size, ROWS_PER_INSERT do
      local rows = {}
      for id = first, math.min(first + ROWS_PER_INSERT - 1, option.table_size) do
         rows[#rows + 1] = row(id)
      end
      connection:query(before .. table.concat(rows, ","))
   end
   connection:query("CREATE INDEX k_" .. number .. " ON " .. table_name(number) .. " (k)")
end

-- Fills the tables. Several threads divide the tables among themselves.
local function prepare()
   local connection = sysbench.sql.driver():connect()
   for number = sysbench.tid % option.threads + 1, option.tables, option.threads do
      fill(connection, number)
   end
end

function cleanup()
   local connection = sysbench.sql.driver():connect()
   for number = 1, option.tables do
      connection:query("DROP TABLE IF EXISTS " .. table_name(number))
   end
end

-- Checks that each table still has its number of rows, and that a scan and the index give the same sum.
local function check()
   local connection = sysbench.sql.driver():connect()
   local wrong = 0
   for number = 1, option.tables do
      local name = table_name(number)
      local rows, sum = connection:query_row("SELECT COUNT(*), SUM(k) FROM " .. name)
      local by_index, index_sum = connection:query_row("SELECT COUNT(*), SUM(k) FROM " .. name .. " WHERE k > -1")
      local is_good = tonumber(rows) == option.table_size and by_index == rows and index_sum == sum
      print(string.format("%s: %s rows, %s by k: %s", name, rows, by_index, is_good and "good" or "WRONG"))
      wrong = wrong + (is_good and 0 or 1)
   end
   if wrong > 0 then
      error("check failed: " .. wrong .. " tables are wrong")
   end
end

sysbench.cmdline.commands = {
   prepare = {prepare, sysbench.cmdline.PARALLEL_COMMAND},
   check = {check}
}

-- A prepared statement with its parameters: {statement, parameters}.
local function prepared(connection, text, types)
   local statement = connection:prepare(text)
   local parameters = {}
   for place, kind in ipairs(types) do
      if type(kind) == "string" then
         -- One byte more, because the driver takes the text up to the first zero byte.
         parameters[place] = statement:bind_create(sysbench.sql.type.CHAR, #kind + 1)
      else
         parameters[place] = statement:bind_create(kind)
      end
   end
   statement:bind_param(unpack(parameters))
   return {statement = statement, parameters = parameters}
end

local function statements_of(connection, number)
   local name = table_name(number)
   local range = " WHERE id BETWEEN ? AND ?" .. (option.filter and " AND filter_col = ?" or "")
   local range_types = option.filter and {INTEGER, INTEGER, INTEGER} or {INTEGER, INTEGER}
   local point, point_types = " = ?", {INTEGER}
   if option.in_keys > 0 then
      point = " IN (" .. string.rep("?, ", option.in_keys - 1) .. "?)"
      for key = 1, option.in_keys do
         point_types[key] = INTEGER
      end
   end
   local insert_columns = "(id, k, c, pad" .. (option.filter and ", filter_col) VALUES (?, ?, ?, ?, ?)" or ") VALUES (?, ?, ?, ?)")
   local insert_types = {INTEGER, INTEGER, C_FORMAT, PAD_FORMAT, option.filter and INTEGER or nil}
   -- Number per transaction, text and parameter types. Only statements that the transaction runs are prepared.
   local all = {
      point = {option.point_selects, "SELECT c FROM " .. name .. " WHERE id" .. point, point_types},
      simple_range = {option.simple_ranges, "SELECT c FROM " .. name .. range, range_types},
      sum_range = {option.sum_ranges, "SELECT SUM(k) FROM " .. name .. range, range_types},
      order_range = {option.order_ranges, "SELECT c FROM " .. name .. range .. " ORDER BY c", range_types},
      distinct_range = {option.distinct_ranges, "SELECT DISTINCT c FROM " .. name .. range .. " ORDER BY c", range_types},
      index_update = {option.index_updates, "UPDATE " .. name .. " SET k = k + 1 WHERE id = ?", {INTEGER}},
      non_index_update = {option.non_index_updates, "UPDATE " .. name .. " SET c = ? WHERE id = ?", {C_FORMAT, INTEGER}},
      delete = {option.delete_inserts, "DELETE FROM " .. name .. " WHERE id = ?", {INTEGER}},
      insert = {option.delete_inserts, "INSERT INTO " .. name .. " " .. insert_columns, insert_types},
      auto_insert = {0, "INSERT INTO " .. name .. " (k, c, pad) VALUES (?, ?, ?)", {INTEGER, C_FORMAT, PAD_FORMAT}}
   }
   local single = ({select = "point", update_key = "index_update", update_nokey = "non_index_update", insert = "auto_insert",
      delete = "delete"})[option.single_statement]
   local statements = {}
   for what, parts in pairs(all) do
      local wanted = parts[1] > 0
      if single then
         wanted = what == single or (single == "auto_insert" and what == "insert")
      end
      if wanted then
         statements[what] = prepared(connection, parts[2], parts[3])
      end
   end
   return statements
end

local connection
local statements = {}

function thread_init()
   connection = sysbench.sql.driver():connect()
   if option.isolation ~= "" then
      connection:query("SET SESSION TRANSACTION ISOLATION LEVEL " .. option.isolation)
   end
   for number = 1, option.tables do
      statements[number] = statements_of(connection, number)
   end
end

function thread_done()
   for _, of_table in pairs(statements) do
      for _, prepared_statement in pairs(of_table) do
         prepared_statement.statement:close()
      end
   end
   connection:disconnect()
end

local function random_table()
   return option.tables == 1 and 1 or sysbench.rand.uniform(1, option.tables)
end

local function random_id()
   return sysbench.rand.default(1, option.table_size)
end

-- Executes a prepared statement. A string is the format of a random text, a number is the value itself.
local function execute(number, what, ...)
   local prepared_statement = statements[number][what]
   for place, value in ipairs({...}) do
      if type(value) == "string" then
         prepared_statement.parameters[place]:set_rand_str(value)
      else
         prepared_statement.parameters[place]:set(value)
      end
   end
   return prepared_statement.statement:execute()
end

local function point_select()
   local number = random_table()
   local ids = {}
   for key = 1, math.max(option.in_keys, 1) do
      ids[key] = random_id()
   end
   execute(number, "point", unpack(ids))
end

local function range(what)
   local first = random_id()
   local last = first + option.range_size - 1
   if option.filter then
      execute(random_table(), what, first, last, sysbench.rand.uniform(first, last))
   else
      execute(random_table(), what, first, last)
   end
end

local function insert(number, id)
   if option.filter then
      execute(number, "insert", id, random_id(), C_FORMAT, PAD_FORMAT, id)
   else
      execute(number, "insert", id, random_id(), C_FORMAT, PAD_FORMAT)
   end
end

local writes = {
   index_update = function(number, id) execute(number, "index_update", id) end,
   non_index_update = function(number, id) execute(number, "non_index_update", C_FORMAT, id) end,
   delete_insert = function(number, id)
      execute(number, "delete", id)
      insert(number, id)
   end
}

-- The random writes of a transaction. They are sorted, so that transactions lock common rows in the same order.
local function draw_writes()
   local drawn = {}
   for _, kind in ipairs({{"index_update", option.index_updates}, {"non_index_update", option.non_index_updates},
      {"delete_insert", option.delete_inserts}}) do
      for _ = 1, kind[2] do
         drawn[#drawn + 1] = {what = kind[1], number = random_table(), id = random_id()}
      end
   end
   if option.ordered_locks then
      table.sort(drawn, function(left, right)
         if left.number ~= right.number then
            return left.number < right.number
         end
         return left.id < right.id
      end)
   end
   return drawn
end

local function single_statement(what)
   local number, id = random_table(), random_id()
   if what == "select" then
      point_select()
   elseif what == "update_key" then
      execute(number, "index_update", id)
   elseif what == "update_nokey" then
      execute(number, "non_index_update", C_FORMAT, id)
   elseif what == "delete" then
      execute(number, "delete", id)
   elseif option.auto_inc then
      execute(number, "auto_insert", random_id(), C_FORMAT, PAD_FORMAT)
   else
      -- An id beyond the rows. A duplicate among 2,147 million ids is unlikely, and runs may ignore error 1062.
      insert(number, sysbench.rand.uniform(option.table_size + 1, 2147483647))
   end
end

local function transaction()
   for _ = 1, option.point_selects do
      point_select()
   end
   for _, kind in ipairs({{"simple_range", option.simple_ranges}, {"sum_range", option.sum_ranges},
      {"order_range", option.order_ranges}, {"distinct_range", option.distinct_ranges}}) do
      for _ = 1, kind[2] do
         range(kind[1])
      end
   end
   for _, write in ipairs(draw_writes()) do
      writes[write.what](write.number, write.id)
   end
end

function event()
   if option.single_statement ~= "" then
      single_statement(option.single_statement)
      return
   end
   if not option.skip_trx then
      connection:query("BEGIN")
   end
   transaction()
   if not option.skip_trx then
      connection:query("COMMIT")
   end
end

-- After a deadlock or a lock wait timeout, sysbench repeats the event. The timeout leaves the transaction open.
function sysbench.hooks.before_restart_event(failure)
   if not option.skip_trx and option.single_statement == "" then
      failure.connection:query("ROLLBACK")
   end
end
