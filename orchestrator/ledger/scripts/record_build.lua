-- Journal what became of a build of a test match's engine on a remote worker.
--
-- KEYS 1 tests    hash    open matches
--      2 last     hash    match -> last entry of its journal
--      3 journal  stream  the match's
-- ARGV 1 match  2 the number of its opening  3 kind  4 data (JSON)  5 schema version  6 worker
-- Reply {'recorded', seq}
--       {'fenced'}         the match is over, or was opened again

local facts = redis.call('HGET', KEYS[1], ARGV[1])
if not facts or cjson.decode(facts).run ~= ARGV[2] then return {'fenced'} end
local at = record_facts(KEYS[3], {{ARGV[3], ARGV[4]}}, ARGV[5], ARGV[6], '', '')
redis.call('HSET', KEYS[2], ARGV[1], text(at))
return {'recorded', at}
