\set region random(0, 49)
\set low random(0, 45000)
SELECT name, count(*), sum(price), string_agg(words, ',' ORDER BY placed) FROM customer c JOIN orders o ON o.customer = c.id WHERE region = :region GROUP BY name ORDER BY 3 DESC;
WITH list AS (SELECT jsonb_agg(to_jsonb(o) ORDER BY price) AS orders FROM orders o WHERE id BETWEEN :low AND :low + 500) SELECT count(*), max(one ->> 'words') FROM list, jsonb_array_elements(orders) one;
SELECT word, count(*) FROM orders, regexp_split_to_table(words, ' +') word WHERE id BETWEEN :low AND :low + 200 GROUP BY word ORDER BY 2 DESC, 1 LIMIT 10;
SELECT length(array_to_string(array_agg(words ORDER BY words DESC), '')) FROM orders WHERE id BETWEEN :low AND :low + 4000;
SELECT count(*), max(c.name) FROM orders a JOIN orders b USING (customer) JOIN orders d USING (customer) JOIN customer c ON c.id = customer JOIN customer e ON e.region = c.region WHERE a.id = :low;
UPDATE customer SET notes = notes || jsonb_build_object('seen', :low::int) WHERE id = :low % 5000;
