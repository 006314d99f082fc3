-- A job for sqlite3 in memory; the table `size` says how many rows.
PRAGMA cache_size = 100000;
CREATE TABLE item(id INTEGER PRIMARY KEY, owner INTEGER, name TEXT, price REAL, note BLOB);
CREATE TABLE owner(id INTEGER PRIMARY KEY, name TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < (SELECT n / 50 FROM size))
INSERT INTO owner SELECT i, printf('owner-%06d', i) FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < (SELECT n FROM size))
INSERT INTO item
SELECT i, (i * 7919) % (SELECT n / 50 FROM size) + 1, printf('item-%d-%x', i, i * 2654435761), (i * 37) % 1000 / 7.0,
       substr('0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz', i % 30, i % 40)
FROM n;
CREATE INDEX item_owner ON item(owner, price);
CREATE INDEX item_name ON item(name);
SELECT owner.name, count(*), sum(price), group_concat(item.name) FROM item JOIN owner ON owner.id = item.owner
GROUP BY owner.id ORDER BY 3 DESC;
SELECT json_group_array(json_object('id', id, 'name', name, 'price', price)) FROM item WHERE id % 3 = 0;
UPDATE item SET name = upper(name) || '-' || owner WHERE id % 2 = 0;
DELETE FROM item WHERE id % 5 = 0;
SELECT a.id, b.id FROM item a JOIN item b ON a.name = b.name AND a.id <> b.id LIMIT 10;
SELECT substr(name, 1, 6) AS prefix, count(DISTINCT note), max(length(name)) FROM item GROUP BY prefix;
