-- Creates and drops a database with sysbench itself, so that a benchmark needs no other client:
--
--   sysbench database.lua --mysql-db=information_schema --name=sbtest create
--   sysbench database.lua --mysql-db=information_schema --name=sbtest drop

sysbench.cmdline.options = {
   name = {"The database", "sbtest"}
}

local function statement(before)
   local name = sysbench.opt.name
   if not name:match("^[%w_]+$") then
      error("--name is letters, digits and underscores")
   end
   sysbench.sql.driver():connect():query(before .. name)
end

sysbench.cmdline.commands = {
   create = {function()
      -- Data of an earlier run would distort the measurement.
      statement("DROP DATABASE IF EXISTS ")
      statement("CREATE DATABASE ")
   end},
   drop = {function() statement("DROP DATABASE IF EXISTS ") end}
}

function event()
   error("database.lua has no run; its commands are create and drop")
end
