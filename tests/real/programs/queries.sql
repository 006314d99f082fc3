-- After pgbench: what it left, then sorts, hash joins, parallel workers, JSON, arrays, regular expressions,
-- PL/pgSQL and the LLVM compiler, all in backends' memory.
\pset format unaligned
\pset tuples_only on
SELECT 'balances', sum(abalance), (SELECT sum(tbalance) FROM pgbench_tellers),
       (SELECT sum(bbalance) FROM pgbench_branches), (SELECT sum(delta) FROM pgbench_history) FROM pgbench_accounts;
SELECT 'accounts', md5(string_agg(aid || ':' || abalance, ',' ORDER BY aid)) FROM pgbench_accounts;
SELECT 'history', count(*), md5(string_agg(tid || ':' || aid || ':' || delta, ',' ORDER BY tid, aid, delta))
FROM pgbench_history;

CREATE TABLE event AS
SELECT n AS id, n * 7919 % 10007 AS kind, md5(n::text) AS name,
       jsonb_build_object('n', n, 'tags', jsonb_build_array(n % 7, md5((n % 100)::text))) AS detail
FROM generate_series(1, 120000) AS n;
CREATE INDEX event_name ON event (name);
CREATE INDEX event_detail ON event USING gin (detail jsonb_path_ops);
ANALYZE event;
SELECT 'gin', count(*) FROM event WHERE detail @> '{"tags": [3]}';
SELECT 'regexp', count(*), min(regexp_replace(name, '([a-f]+)([0-9]+)', '\2\1', 'g'))
FROM event WHERE name ~ '^[a-f]{2,}[0-9]+.*(ab|cd)';

SET work_mem = '32MB';
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SELECT 'join', count(*), sum(a.id - b.id) FROM event a JOIN event b ON a.kind = b.kind AND a.id < b.id;
SELECT 'window', sum(place) FROM (SELECT rank() OVER (PARTITION BY kind % 100 ORDER BY name) AS place FROM event) AS r;

SET jit = on;
SET jit_above_cost = 0;
SET jit_inline_above_cost = 0;
SET jit_optimize_above_cost = 0;
SELECT 'compiled', count(*), sum(id * 3 + kind), max(length(name) + kind % 13) FROM event WHERE kind % 3 = 1;
SET jit = off;

CREATE FUNCTION collatz(start bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    value bigint := start;
    path bigint[] := ARRAY[]::bigint[];
BEGIN
    WHILE value <> 1 LOOP
        path := path || value;
        value := CASE WHEN value % 2 = 0 THEN value / 2 ELSE 3 * value + 1 END;
    END LOOP;
    RETURN array_length(path, 1);
END
$$;
SELECT 'plpgsql', sum(collatz(n)) FROM generate_series(2, 2000) AS n;
SELECT 'large values', sum(length(repeat(md5(n::text), 100000))) FROM generate_series(1, 20) AS n;
