SHOW COLUMNS FROM junctor_info.threadblocks;
SHOW COLUMNS FROM junctor_info.cpustat_50ms;
SHOW COLUMNS FROM junctor_info.cpustat_1sec LIKE 'os%';
SHOW COLUMNS FROM junctor_info.cpustat_20sec LIKE 'slot';
SELECT COUNT(*) > 0 AS has_blocks, MIN(instance) FROM junctor_info.threadblocks WHERE module = 'sql';
SELECT COUNT(*) FROM junctor_info.cpustat_50ms WHERE slot > 19;
SELECT COUNT(*) FROM junctor_info.cpustat_50ms WHERE elapsed_us <> executing_us + sleeping_us + spinning_us + sending_us + buffer_full_us AND elapsed_us - executing_us - sleeping_us - spinning_us - sending_us - buffer_full_us > 4;
SHOW COLUMNS FROM junctor_info.threadstat LIKE '%switches';
