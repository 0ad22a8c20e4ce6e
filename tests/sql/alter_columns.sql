-- not recorded: MariaDB copies with other texts and engines
CREATE DATABASE alter_columns; USE alter_columns;
create table t (id int auto_increment primary key, v int); insert into t(v) values (1),(2),(3); update t set id=0 where id=2;
alter table t add column x int; select * from t order by id, v; insert into t(v) values (9); select * from t order by id, v;
alter table t auto_increment=20; insert into t(v) values (10); select max(id) from t;
alter table t drop primary key, add key (id); select * from t order by id, v; insert into t(v) values (11); select * from t where v=11;
create table s (id int primary key, pid int, foreign key (pid) references s(id));
alter table s drop column id; alter table s drop primary key; alter table s modify id bigint;
insert into s values (1,null),(2,1);
alter table s rename column id to a, rename column pid to b; show create table s\G
alter table s rename column a to b, rename column b to a; show create table s\G
create table c (id int primary key, pid int, foreign key (pid) references t2(id) on delete set null);
create table t2 (id int primary key); create table c (id int primary key, pid int, foreign key (pid) references t2(id) on delete set null);
alter table c modify pid int not null;
create table u (id int, pid int); insert into u values (1,null),(2,1);
alter table u add primary key (id), add foreign key (pid) references u(id); show create table u\G
create table w (v int); insert into w values (1),(2); alter table w add id int auto_increment primary key, auto_increment=100; select min(id), max(id) from w;
set time_zone='+02:00'; create table ts (t timestamp, u timestamp(3), j timestamp); insert into ts values ('2024-01-01 10:00:00','2024-01-01 10:00:00','2024-01-01 10:00:00');
alter table ts modify j json; alter table ts modify t varchar(30), modify u bigint; select * from ts; alter table ts modify u json; select u, json_type(u) from ts;
alter table w partition by key (id) partitions 2; alter table w add partition partitions 0;
create table p (id int primary key, v int, unique(v));
drop table if exists c; create table c (id int primary key auto_increment, pid int, foreign key (pid) references p(id) on delete cascade);
insert into p values (1,10),(2,20); insert into c (pid) values (1),(1),(2);
alter table p auto_increment=5;
alter table c auto_increment=100;
insert into c(pid) values (2); select * from c order by id;
alter table p change id pid bigint;
alter table p rename column id to pid;
show create table c\G
alter table p add column x int first;
delete from p where pid=1; select * from c order by id;
alter table p drop column pid;
alter table c drop column pid;
alter table c modify pid bigint;
alter table c drop foreign key c_ibfk_1, modify pid bigint;
show create table c\G
alter table c modify pid int, add constraint fkx foreign key (pid) references p(pid);
insert into c(pid) values (77);
alter table c drop index pid;
alter table c drop foreign key fkx; insert into c(pid) values (77);
alter table c add column z int, add constraint fkx foreign key (pid) references p(pid);
show create table c\G
delete from c where pid=77;
alter table c add column z int, add constraint fkx foreign key (pid) references p(pid);
show create table c\G
insert into c(pid) values (77);
alter table c rename to cc, drop column z;
show tables; show create table cc\G
delete from p where pid=2;
alter table cc add column gg int not null unique;
alter table cc add column gg int not null primary key;
alter table cc add column h varchar(3) default 'abcd';
alter table cc add column h varchar(3) default 'abc', add unique (h, id);
select * from cc order by id;
alter table cc modify h varchar(2);
alter table cc add column id int;
alter table cc change nope n int;
alter table cc add column q int after nope;
alter table cc drop column h, drop column pid, drop column id;
DROP DATABASE alter_columns;
