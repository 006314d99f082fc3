-- A million rows: filled, indexed with sorter threads, joined, changed, thinned out, vacuumed.
PRAGMA page_size = 4096;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -65536;
PRAGMA threads = 2;

CREATE TABLE entry (id INTEGER PRIMARY KEY, name TEXT NOT NULL, amount INTEGER NOT NULL, body BLOB);
INSERT INTO entry
  WITH RECURSIVE counter (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counter WHERE n < 1000000)
  SELECT n,
         printf('name-%08x', n * 2654435761 % 4294967296),
         n * 7919 % 1000003,
         CASE n % 100 WHEN 0 THEN zeroblob(n % 5000) ELSE NULL END
  FROM counter;
SELECT 'rows', count(*) FROM entry;

CREATE INDEX entry_name ON entry (name);
CREATE UNIQUE INDEX entry_amount ON entry (amount, id);
SELECT 'names', min(name), max(name), count(DISTINCT substr(name, 1, 9)) FROM entry;
SELECT 'join', count(*), sum(a.amount - b.amount)
  FROM entry a JOIN entry b ON b.amount = (a.amount * 31 + 7) % 1000003 WHERE a.id % 10 = 0;
SELECT 'window', sum(rank) FROM (SELECT row_number() OVER (PARTITION BY amount % 97 ORDER BY name) AS rank
                                 FROM entry WHERE id <= 200000);
SELECT 'json', length(json_group_array(json_object('id', id, 'name', name))) FROM entry WHERE id <= 100000;

CREATE VIRTUAL TABLE page USING fts5 (words);
INSERT INTO page SELECT name || ' amount ' || amount || ' modulo ' || (amount % 1009) FROM entry WHERE id <= 50000;
SELECT 'found', count(*) FROM page WHERE page MATCH 'modulo AND 7';

UPDATE entry SET name = upper(name), body = zeroblob(100) WHERE id % 17 = 0;
DELETE FROM entry WHERE id % 5 = 0;
VACUUM;
SELECT 'left', count(*), sum(amount), sum(length(body)) FROM entry;
SELECT 'integrity', integrity_check FROM pragma_integrity_check;
