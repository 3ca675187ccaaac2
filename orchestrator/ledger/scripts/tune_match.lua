-- Journal values of a tuning's parameters: the iterations of which no game was dealt have them.
--
-- KEYS 1 tests    hash    open matches
--      2 next     hash    match -> next game
--      3 last     hash    match -> last entry of its journal
--      4 values   zset    values (JSON) by their first iteration
--      5 journal  stream  the match's
-- ARGV 1 match  2 games of an iteration  3 iterations  4 kind  5 data (JSON without its first brace)
--      6 schema version  7 by
-- Reply {'tuned', first iteration}
--       {'not-ready'}  all iterations were dealt, or the match is not open

if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return {'not-ready'} end
local dealt = tonumber(redis.call('HGET', KEYS[2], ARGV[1])) - 1
local first = math.ceil(dealt / tonumber(ARGV[2])) + 1
if first > tonumber(ARGV[3]) then return {'not-ready'} end
local data = '{"first":' .. text(first) .. ',' .. ARGV[5]
local at = record_facts(KEYS[5], {{ARGV[4], data}}, ARGV[6], ARGV[7], '', '')
redis.call('HSET', KEYS[3], ARGV[1], text(at))
for _, later in ipairs(redis.call('ZRANGEBYSCORE', KEYS[4], first, '+inf')) do
  redis.call('ZREM', KEYS[4], later)
end
redis.call('ZADD', KEYS[4], first, data)
return {'tuned', first}
