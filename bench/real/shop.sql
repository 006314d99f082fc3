CREATE TABLE customer (id int PRIMARY KEY, name text, region int, notes jsonb);

INSERT INTO customer SELECT n, md5(n::text), n % 50, jsonb_build_object('since', 2000 + n % 25, 'tags', ARRAY[md5('a' || n), md5('b' || n)]) FROM generate_series(0, 4999) n;

CREATE TABLE orders (id int PRIMARY KEY, customer int, placed date, price numeric, words text);

INSERT INTO orders SELECT n, n * 7 % 5000, date '2020-01-01' + n % 900, n * 37 % 10000 / 100.0, translate(md5(n::text), '048c', '    ') FROM generate_series(0, 49999) n;

CREATE INDEX ON orders (customer);

ANALYZE;

